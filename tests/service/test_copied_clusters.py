"""What a plan takes along of a cluster, and that it takes copies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.service import planning
from argosy.service.planning import copy_cluster


class Task(msgspec.Struct):
    state: str
    machine: str = ""


class Left(msgspec.Struct, frozen=True):
    """How a job was left."""

    job: str
    running: tuple[int, ...] = ()
    machines: tuple[int, ...] = ()


class Row(msgspec.Struct):
    job: str
    counts: dict[str, int]
    tasks: dict[int, Task]
    number: int = 5

    def as_left(self) -> Left:
        return Left(self.job)


class World:
    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = list(rows)
        self.asked: list[tuple[list[str], bool]] = []

    def present_machines(self) -> list[tuple[Machine, bool]]:
        return [(Machine(f"m{at}", Resources(1, 1)), at in (1, 3)) for at in range(4)]

    def open_rows(self) -> list[Row]:
        return self.rows

    def setup(self, machines: list[Machine], *, is_resumed: bool) -> Any:
        self.asked.append(([machine.name for machine in machines], is_resumed))
        return "setup"


@pytest.fixture(autouse=True)
def structs_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "replace", msgspec.structs.replace)


def copied(*rows: Row) -> tuple[World, Any]:
    world = World(rows)
    return world, copy_cluster(world)  # type: ignore[arg-type]


def test_a_cluster_without_jobs_is_not_resumed_and_knows_who_drains() -> None:
    world, found = copied()
    assert world.asked == [(["m0", "m1", "m2", "m3"], False)]
    assert (found.setup, found.draining, found.rows, found.states) == ("setup", (1, 3), (), ())


def test_tasks_that_run_on_machines_that_are_there_go_on() -> None:
    tasks = {
        0: Task("running", "m2"),
        1: Task("queued", "m1"),
        2: Task("running", "gone"),
        3: Task("running", "m0"),
        4: Task("pending"),
        5: Task("finished", "m3"),
    }
    world, found = copied(Row("a", {}, tasks), Row("b", {}, {}))
    assert world.asked[0][1] is True
    assert found.states == (Left("a", (0, 3), (2, 0)), Left("b"))


def test_what_is_planned_changes_nothing_of_the_cluster() -> None:
    row = Row("a", {"running": 1}, {0: Task("running", "m2")})
    _, found = copied(row)
    [copy] = found.rows
    assert copy == msgspec.structs.replace(row, number=-1)
    copy.counts["running"] = 9
    copy.tasks[0].state = "lost"
    copy.tasks[7] = Task("pending")
    assert (row.counts, row.number) == ({"running": 1}, 5)
    assert row.tasks == {0: Task("running", "m2")}
