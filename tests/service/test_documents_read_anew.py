"""Documents are read anew, and checked anew, when machines or schedulers have changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from argosy.service import submissions
from argosy.service.submissions import Submissions
from argosy.testing.builders import job


def world(life: int, machines: int) -> Any:
    return SimpleNamespace(life=life, projection=SimpleNamespace(machine_version=machines))


#: Life and version of the machines, and whether either has changed since the one before.
MOMENTS = [
    ((1, 1), True),
    ((1, 1), False),
    ((1, 2), True),
    ((1, 2), False),
    ((2, 2), True),
    ((2, 1), True),
    ((2, 1), False),
    ((1, 1), True),
]


def test_the_same_document_is_read_again_in_another_life_or_with_other_machines() -> None:
    made, reads = Submissions(), list[str]()

    def fresh(world: Any, table: Any, default_id: str, path: Any) -> Any:
        reads.append(default_id)
        return job(default_id).job

    made._read = fresh  # type: ignore[method-assign]
    for number, (moment, is_new) in enumerate(MOMENTS):
        before = len(reads)
        found = made.read(world(*moment), {"command": "true"}, f"j{number}")
        assert found == job(f"j{number}").job
        assert len(reads) - before == is_new
    made.read(world(1, 1), {"command": "false"}, "other")
    made.read(world(1, 1), {"command": "true"}, "again")
    assert reads[-1] == "other"


def test_checks_are_those_of_the_machines_there_are_and_count_each_job_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cells: list[Any] = []

    def checks(cell: Any) -> Any:
        cells.append(cell)
        return SimpleNamespace(tasks=0)

    monkeypatch.setattr(submissions, "JobChecks", checks)
    monkeypatch.setattr(submissions, "present_cell", lambda world: world.life)
    made = Submissions()
    for moment, is_new in MOMENTS:
        before = len(cells)
        found = made._job_checks(world(*moment))
        assert found.tasks == 0
        found.tasks = 99
        assert len(cells) - before == is_new
    assert cells == [1, 1, 2, 2, 1]
