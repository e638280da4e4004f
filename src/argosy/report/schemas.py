"""The JSON documents of `argosy run` and `argosy compare`, as types and as JSON Schemas."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from argosy.records.summary import Summary
from argosy.report.comparison import Ranking
from argosy.report.notable_jobs import NotableJob
from argosy.report.overall import Overall


class ComparisonDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`argosy compare -o json`. Times are in microseconds."""

    #: The scenario's file.
    scenario: str
    seeds: list[int]
    #: What the scenario could not express of its trace.
    left_out: list[str]
    #: Demands that can never be met.
    unmet: list[str]
    #: Engines that cannot run here, with the reason.
    skipped: dict[str, str]
    #: Engines that failed, with the error.
    failures: dict[str, str]
    #: One ranking per metric.
    comparisons: list[Ranking]
    #: All objectives together; null without `--objective`.
    overall: Overall | None
    #: One row per run, flat, as in CSV.
    runs: list[dict[str, Any]]


class RunAdditions(msgspec.Struct, frozen=True, kw_only=True):
    """What `argosy run -o json` has beside the fields of a summary. Times are in microseconds."""

    #: Where the run is saved; null with `--no-save`.
    directory: str | None
    notes: list[str]
    #: Sent by schedulers; sent by machines to schedulers.
    messages: int
    notices: int
    #: The slowest and the unfinished jobs; empty if the run is not saved.
    notable_jobs: list[NotableJob]


def compare_schema() -> dict[str, Any]:
    return _titled(msgspec.json.schema(ComparisonDocument), "argosy compare -o json")


def run_schema() -> dict[str, Any]:
    """The fields of a summary and those beside it are in one object."""
    (summary, additions), components = msgspec.json.schema_components([Summary, RunAdditions])
    built = {"allOf": [summary, additions], "$defs": components}
    return _titled(built, "argosy run -o json")


def _titled(schema: dict[str, Any], title: str) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def main(folder: Path) -> None:
    """Writes both into a folder."""
    for name, schema in (("run", run_schema()), ("compare", compare_schema())):
        text = json.dumps(schema, indent=2) + "\n"
        (folder / f"{name}.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
