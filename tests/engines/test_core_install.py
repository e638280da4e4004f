"""An installation without the extra `ilp`: engines that need it say so, and nothing replaces it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from argosy import cli
from argosy.engines.registry import ENGINES

SCENARIO = """\
name = "small"
horizon = "1min"

[[cell.machines]]
name = "m"
count = 4
capacity = { cpu = 8000, memory = "32GiB" }

[[workload.jobs]]
id = "a"
kind = "service"
count = 2
request = { cpu = 500 }
tags = ["w"]
constraints = ["w -> {w, 0, 0} in machine"]

[[fleet]]
name = "s"
engine = "medea"
"""


@pytest.fixture
def call(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ortools", None)
    (tmp_path / "small.toml").write_text(SCENARIO)

    def calling(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            cli.main(list(arguments))
        code = stop.value.code
        assert isinstance(code, int)
        return (code, *capsys.readouterr())

    return calling


@pytest.mark.parametrize("engine", ["medea", "ilp-all"])
def test_an_engine_that_was_asked_for_and_lacks_the_solver_is_one_error(call, engine) -> None:
    for arguments in (
        ("run", "small.toml", "--engine", engine),
        ("compare", "small.toml", "--engine", engine, "--engine", "omega", "--jobs", "1"),
    ):
        code, out, err = call(*arguments)
        assert (code, out) == (2, "")
        (line,) = err.splitlines()
        assert f"{engine} needs the extra 'ilp', which is not installed" in line
        assert "pip install 'argosy[ilp]'" in line
    assert not Path("runs").exists()


def test_medea_with_a_heuristic_needs_no_solver(call) -> None:
    text = Path("small.toml").read_text() + 'settings = { algorithm = "tag-popularity" }\n'
    Path("small.toml").write_text(text)
    code, out, err = call("run", "small.toml", "--no-save", "-o", "json")
    assert code == 0, err
    assert json.loads(out)["counts"]["tasks_running"] == 2


def test_a_comparison_of_all_engines_skips_what_cannot_run_and_says_so(call) -> None:
    code, out, err = call("compare", "small.toml", "--seeds", "1", "--jobs", "1", "-o", "json")
    assert code == 0, err
    document = json.loads(out)
    assert set(document["skipped"]) == {"medea", "ilp-all"}
    assert {run["engine"] for run in document["runs"]} == set(ENGINES) - {"medea", "ilp-all"}
    assert err.count("note: skipped: ") == 2
    assert "note: skipped: medea needs the extra 'ilp'" in err


def test_the_list_of_engines_marks_what_lacks_something(call) -> None:
    _, out, _ = call("engines", "-o", "json")
    lacking = {each["name"]: each["lacking"] for each in json.loads(out)}
    assert {name for name, text in lacking.items() if text} == {"medea", "ilp-all"}
    assert "pip install 'argosy[ilp]'" in lacking["medea"]
    assert "not as it is set by default: medea needs the extra 'ilp'" in call("engines")[1]
    assert "needs the extra 'ilp'" in call("engines", "medea")[1]
