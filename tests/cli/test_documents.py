"""JSON of `run` and `compare` keeps to the documented schemas; Markdown tables are tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from command_line import QUICKSTART, Call

from argosy.report.markdown import markdown_table
from argosy.report.schemas import compare_schema, run_schema
from argosy.report.tables import Column, Table, Unit

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def documented(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))
    return schema


def test_the_documented_schemas_are_those_of_the_code() -> None:
    """To write them again: python -m argosy.report.schemas docs/schemas"""
    for name, schema in (("run", run_schema()), ("compare", compare_schema())):
        assert documented(name) == json.loads(json.dumps(schema))


def test_a_run_keeps_to_its_schema(argosy: Call, tmp_path: Path) -> None:
    told = argosy("run", QUICKSTART, "--out", str(tmp_path / "r"), "-o", "json")
    document = json.loads(told.out)
    jsonschema_rs.validate(documented("run"), document)
    assert document["notable_jobs"]
    del document["notes"]
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(documented("run"), document)


def test_a_comparison_keeps_to_its_schema(argosy: Call) -> None:
    engines = ("--engine", "omega", "--engine", "medea", "--seeds", "2", "--jobs", "1")
    objectives = ("--objective", "jct", "--objective", "wait")
    told = argosy("compare", QUICKSTART, *engines, *objectives, "-o", "json")
    document = json.loads(told.out)
    jsonschema_rs.validate(documented("compare"), document)
    document["seeds"] = "1, 2"
    with pytest.raises(jsonschema_rs.ValidationError):
        jsonschema_rs.validate(documented("compare"), document)


def test_reports_can_be_markdown(argosy: Call, tmp_path: Path) -> None:
    run, compared = tmp_path / "run.md", tmp_path / "compare.md"
    out = str(tmp_path / "r")
    assert argosy("run", QUICKSTART, "--out", out, "--markdown", str(run)).code == 0
    text = run.read_text("utf-8")
    for part in ("# quickstart: omega x3", "## Slowest jobs", "| at the end | jobs | tasks |"):
        assert part in text
    engines = ("--engine", "omega", "--engine", "spread", "--seeds", "2", "--jobs", "1")
    told = argosy("compare", QUICKSTART, *engines, "--markdown", str(compared))
    assert f"wrote {compared}" in told.err
    assert "## By median JCT" in compared.read_text("utf-8")


def test_nothing_in_a_table_is_markup() -> None:
    table = Table(
        (Column("a", "a|b"), Column("n", "n", Unit.COUNT)), (("web -> {web, 0, 0} *hard*|", 1_200),)
    )
    assert markdown_table(table).splitlines() == [
        "| a\\|b | n |",
        "| --- | ---: |",
        "| web -\\> {web, 0, 0} \\*hard\\*\\| | 1,200 |",
    ]
