"""How far a world has come, as the guard against standstill sees it, and how long it waits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.host import TaskState
from argosy.host.standstill import ProgressMark, StandstillGuard


def guard(counts: dict[str, int], *, jobs: int = 3, machines: int = 8, tasks: int = 0) -> Any:
    columns = np.array([counts.get(state.name.lower(), 0) for state in TaskState])
    host: Any = SimpleNamespace(
        board=SimpleNamespace(counts=lambda: columns),
        jobs=[None] * jobs,
        view=SimpleNamespace(machines=machines),
        runtime=SimpleNamespace(open_tasks=tasks),
        schedulers=[None, None],
    )
    return StandstillGuard(host)


def test_tasks_that_are_over_count_and_so_do_those_with_a_place() -> None:
    counts = {"pending": 1_000, "queued": 100, "running": 10, "finished": 3, "failed": 2}
    counts |= {"cancelled": 4, "abandoned": 5}
    assert guard(counts)._mark(77) == ProgressMark(77, 3, 8, 14, 124)


@pytest.mark.parametrize(
    ("tasks", "machines", "events"),
    [
        (0, 0, 10_000 + 20 * 2),
        (1, 8, 10_000 + 3_000 + 20 * 11),
        (1_000, 8, 10_000 + 3_000_000 + 20 * 1_010),
        (5_000, 8, 10_000 + 3_000_000 + 20 * 5_010),
    ],
)
def test_how_many_events_it_allows_grows_with_tasks_machines_and_schedulers(
    tasks: int, machines: int, events: int
) -> None:
    assert guard({}, machines=machines, tasks=tasks)._allowed() == events
