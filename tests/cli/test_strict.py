"""Scenarios that ask for what can never be met: noted, linted, and refused with --strict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command_line import QUICKSTART, Call

from argosy.cli.strictness import unmet_notes
from argosy.scenarios import unmeetable_demands

NEVER = """\
name = "never"
horizon = "1min"
[[cell.machines]]
name = "m"
count = 4
capacity = { cpu = 4000, memory = "8GiB" }
[[workload.jobs]]
id = "giant"
request = { cpu = 9000 }
duration = "1s"
[[workload.jobs]]
id = "crowd"
gang = true
count = 5
request = { cpu = 3000 }
duration = "1s"
[[fleet]]
name = "s"
engine = "omega"
"""


@pytest.fixture
def never(tmp_path: Path) -> Path:
    path = tmp_path / "never.toml"
    path.write_text(NEVER, "utf-8")
    return path


@pytest.mark.parametrize("command", ["run", "compare"])
def test_strict_refuses_before_anything_runs(argosy: Call, never: Path, command: str) -> None:
    result = argosy(command, str(never), "--strict")
    assert result.code == 2
    assert not result.out
    assert "giant has tasks that ask for 9 cores; the largest machine has 4 cores" in result.err
    assert "nor can demands of crowd" in result.err
    assert "what would help: ask for 5 cores less" in result.err


def test_without_it_the_run_goes_on_and_says_so(argosy: Call, never: Path) -> None:
    result = argosy("run", str(never), "--no-save")
    assert result.code == 0
    assert "note: can never be met: crowd is a gang of 5 tasks" in result.err


def test_lint_names_each_demand_as_an_error(argosy: Call, never: Path) -> None:
    result = argosy("constraints", "lint", str(never), "-o", "csv")
    assert result.code == 1
    lines = result.out.splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["error", "too-large", "job giant"],
        ["error", "gang", "job crowd"],
    ]


def test_a_scenario_that_can_be_met_is_not_refused(argosy: Call) -> None:
    assert argosy("run", QUICKSTART, "--strict", "--no-save").code == 0


def test_a_sweep_says_for_which_values_a_demand_can_never_be_met(argosy: Call, never: Path) -> None:
    vary = "cell.machines.m.capacity.cpu=4000,9000"
    result = argosy("sweep", str(never), "--vary", vary, "--seeds", "1")
    assert result.code == 0
    notes = [line for line in result.err.splitlines() if "can never be met" in line]
    assert [line.split(": can")[0] for line in notes] == [
        "note: with cell.machines.m.capacity.cpu = 4000"
    ] * 2

    refused = argosy("sweep", str(never), "--vary", vary, "--strict")
    assert (refused.code, refused.out) == (2, "")
    assert "never.toml with cell.machines.m.capacity.cpu = 4000" in refused.err


@pytest.mark.parametrize(
    ("count", "changed", "last"),
    [
        (5, "", "can never be met: demand 4"),
        (6, "", "1 more demand can never be met: argosy constraints lint f.toml"),
        (9, "", "4 more demands can never be met: argosy constraints lint f.toml"),
        # The file alone may ask for nothing of the kind.
        (6, "seed = 3", "1 more demand can never be met"),
    ],
)
def test_of_many_demands_five_are_told_and_the_rest_counted(
    count: int, changed: str, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    demands = [f"demand {number}" for number in range(count)]
    monkeypatch.setattr(unmeetable_demands, "unmeetable_demands", lambda scenario: iter(demands))
    spec: Any = None
    notes = unmet_notes(spec, Path("f.toml"), False, changed=changed)
    assert notes[:5] == [f"can never be met: {demand}" for demand in demands[:5]]
    assert (len(notes), notes[-1]) == (5 + (count > 5), last)
