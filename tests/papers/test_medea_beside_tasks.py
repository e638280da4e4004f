"""What is measured of tasks beside applications, and of containers that break something, on placements
that are given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.papers.firmament.workload import BEGIN
from argosy.papers.medea import tasks, trial
from argosy.papers.medea.trial import MB, PlacementTrial
from argosy.testing.builders import job

MS = 1_000
START = int(BEGIN * 1_000_000)


def measured(
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    *jobs: tuple[str, int, int, int],
    wanted: list[int] | None = None,
) -> PointResult:
    """Of jobs of a kind: when they came, when all of their tasks were placed, and how many those are."""
    kinds, submit, placed, sizes = zip(*jobs, strict=True)
    columns = np.array(submit), np.array(submit), np.array(placed), np.array(placed)
    board = SimpleNamespace(job_columns=lambda: columns)
    host = SimpleNamespace(board=board, jobs=SimpleNamespace(counts=list(sizes)))
    world: Any = SimpleNamespace(kinds=list(kinds), host=host, run=lambda: None)
    monkeypatch.setattr(tasks, "_world", lambda load, engine, jobs: world)
    monkeypatch.setattr(tasks, "arriving", lambda load: [job("a", 70), job("b", 59)])
    monkeypatch.setattr(tasks, "found", lambda load: [])

    def applications(load: Any, containers: int) -> list[Any]:
        if wanted is not None:
            wanted.append(containers)
        return []

    monkeypatch.setattr(tasks, "_applications", applications)
    asked = ExperimentPoint(
        paper="medea", figure="11c", parameters={"engine": engine}, seed=1, scale="smoke"
    )
    return tasks.beside_applications(asked)


def test_tasks_wait_as_long_as_the_last_of_their_job_and_applications_count_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted: list[int] = []
    result = measured(
        monkeypatch,
        "medea",
        # What is there at the beginning does not count.
        ("batch", 0, 900 * MS, 50),
        ("batch", START, START + 5 * MS, 1),
        ("batch", START + 1, START + 1 + MS, 3),
        ("batch", START + 2, -1, 4),
        ("lra", START, START + 800 * MS, 13),
        ("lra", START, -1, 39),
        wanted=wanted,
    )
    assert [result[f"p{share}"] for share in (5, 25, 50)] == [1.0, 1.0, 1.0]
    assert result["p99"] == pytest.approx(1 + 4 * 0.97)
    assert (result["applications"], result["containers"]) == (1, 13 / 8)
    # A quarter of the containers of applications, and half of the tasks.
    assert result[DONE] == 0.25
    assert len(result.series["waits"]) == 99
    assert wanted == [12]


def test_fewer_tasks_than_applications_count_as_done_and_alone_tasks_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wanted: list[int] = []
    few = ("batch", START, START + MS, 1), ("batch", START, -1, 3)
    done = measured(monkeypatch, "medea", *few, ("lra", START, START + 1, 13))
    assert (done[DONE], done["containers"]) == (0.25, 13 / 4)
    alone = measured(monkeypatch, "yarn", *few, wanted=wanted)
    assert (alone[DONE], alone["applications"], alone["containers"]) == (0.25, 0, 0)
    assert wanted == []


def test_each_container_that_breaks_something_counts_with_its_extent() -> None:
    cell = PlacementTrial(4, 2, "ilp", 1)
    assert cell.violating() == (0, 0)
    apart = "appID:self & w -> {appID:self & w, 0, 0} in machine"
    kinds = cell.submit([("w", MB, 5), ("other", MB, 5)], [apart], 0)
    for machine in (0, 0, 0, 1, 2):
        for kind in kinds:
            cell.ledger.start(kind.tags, machine)
    cell.containers = 10
    share, extent = cell.violating()
    # Three of ten, with two others each.
    assert share == 0.3
    assert extent == pytest.approx(3 * 2 / 10)
    # Those of one application count after others have come.
    [plain] = cell.submit([("w", MB, 1)], [], 0)
    cell.ledger.start(plain.tags, 0)
    assert cell.violating() == (share, extent)


@pytest.mark.parametrize(("algorithm", "always"), [("ilp", False), ("ilp-solved", True)])
def test_only_one_algorithm_solves_whatever_it_costs(
    algorithm: str, always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def solve(problem: Any, random: Any, **how: Any) -> Any:
        seen.append((how["limits"], how["always"]))
        nothing = np.zeros(0, np.int64)
        return SimpleNamespace(kinds=nothing, machines=nothing)

    monkeypatch.setattr(trial, "solve", solve)
    cell = PlacementTrial(4, 2, algorithm, 1)
    cell.place(cell.submit([("w", MB, 1)], [], 0))
    assert seen == [(trial.LIMITS, always)]
