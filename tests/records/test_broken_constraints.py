"""Which constraints a task breaks where it runs, and who else is in the same place."""

from __future__ import annotations

import io
from typing import Any

import pytest

from argosy.host.journal import Journal
from argosy.host.records import EndedRecord, PlacedRecord, ScaledRecord, SubmittedRecord
from argosy.host.setup import HostSetup
from argosy.model.constraints.text import parse_constraint
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, GroupSpec
from argosy.records.journal_file import JournalFile
from argosy.records.occupancy import Occupancy
from argosy.records.state import RunState
from argosy.testing.builders import job, scenario

ROOM = Resources(8_000, 2**34)
CELL = CellSpec(
    machines=(
        Machine("m0", ROOM, joins={"rack": ("r0",)}),
        Machine("m1", ROOM, joins={"rack": ("r0",)}),
        Machine("m2", ROOM, joins={"rack": ("r1",)}),
        # It is in two racks, and the next one in none.
        Machine("m3", ROOM, joins={"rack": ("r1", "r0")}),
        Machine("m4", ROOM),
    ),
    groups=(GroupSpec(name="rack", sets=("r0", "r1")),),
)


def placed(at: int = 5, *facts: Any, **where: list[int]) -> tuple[Occupancy, dict[str, int]]:
    """Each job's tasks are on these machines; jobs are tagged by their names. Also their numbers."""
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(scenario("omega", [], cell=CELL)))
    numbers = {}
    for number, (name, machines) in enumerate(where.items()):
        numbers[name] = number
        made = job(name, len(machines), cpu=1, memory=1, tags=(name,)).job
        journal.write(SubmittedRecord(0, number, made, "s-0"))
        on = [(index, machine) for index, machine in enumerate(machines) if machine >= 0]
        journal.write(PlacedRecord(0, name, [i for i, _ in on], [m for _, m in on], "s-0"))
    for fact in facts:
        journal.write(fact)
    journal.flush()
    return Occupancy(RunState.of(JournalFile(stream.getvalue()), 100), at), numbers


def broken(found: tuple[Occupancy, dict[str, int]], task: str, *constraints: str) -> list[str]:
    cell, numbers = found
    name, _, index = task.partition("/")
    rules = tuple(map(parse_constraint, constraints))
    return list(cell.broken(task_number(numbers[name], int(index)), rules))


APART = "w -> {w, 0, 0} in machine hard"
FEW = "w -> {w, 0, 1} in rack hard"
NEAR = "w -> {db, 1, inf} in rack"
NOT_DB = "w -> {db, 0, 0} in rack"


@pytest.mark.parametrize(
    ("constraint", "where", "near"),
    [
        (APART, {"w": [0, 1, 0, 2]}, ": w/2 is in m0 too"),
        (APART, {"w": [0, 0, 0, 2]}, ": w/1 and w/2 are in m0 too"),
        (APART, {"w": [0, 1, 2]}, None),
        # Others on the machine are in nobody's way.
        (APART, {"z": [0, 0], "w": [0, 0], "db": [0]}, ": w/1 is in m0 too"),
        (FEW, {"w": [0, 1]}, None),
        (FEW, {"w": [0, 1, 1, 2, 4]}, ": w/1 and w/2 are in r0 too"),
        # A machine that is in no rack cannot keep what is to be kept in one.
        (FEW, {"w": [4, 0, 0, 1]}, ""),
        (NEAR, {"w": [0], "db": [2]}, ""),
        (NEAR, {"w": [0], "db": [1]}, None),
        (NOT_DB, {"w": [0], "db": [2, 1]}, ": db/1 is in r0 too"),
        (NOT_DB, {"w": [3], "db": [2, 1]}, ": db/0 and db/1 are in r0 and r1 too"),
        (NOT_DB, {"w": [4], "db": [4, 1]}, ""),
    ],
)
def test_a_broken_constraint_names_those_that_are_too_many(
    constraint: str, where: dict[str, list[int]], near: str | None
) -> None:
    told = [] if near is None else [f"'{constraint}' is broken there{near}"]
    assert broken(placed(**where), "w/0", constraint) == told


def test_others_are_named_in_the_order_of_their_names() -> None:
    found = placed(w=[0], b=[0], a=[0])
    told = broken(found, "w/0", "w -> {b, 0, 0} in machine", "w -> {a, 0, 0} in machine")
    assert told == [
        "'w -> {b, 0, 0} in machine' is broken there: b/0 is in m0 too",
        "'w -> {a, 0, 0} in machine' is broken there: a/0 is in m0 too",
    ]
    many = placed(w=[1, *[0] * 11])
    told = broken(many, "w/1", "w -> {w, 0, 8} in machine")
    assert told == [
        "'w -> {w, 0, 8} in machine' is broken there: w/10, w/11 and w/2 to w/9 are in m0 too"
    ]


def test_who_is_only_counted_by_a_constraint_breaks_none() -> None:
    found = placed(w=[0], db=[0])
    assert broken(found, "db/0", NOT_DB, APART) == []
    assert broken(found, "w/0", APART, NOT_DB) == [f"'{NOT_DB}' is broken there: db/0 is in r0 too"]


def test_a_task_without_a_machine_breaks_nothing() -> None:
    assert broken(placed(w=[0, 0, -1]), "w/2", APART) == []
    ended = EndedRecord(4, [0])
    assert broken(placed(5, ended, w=[0, 0]), "w/0", APART) == []
    assert broken(placed(5, ended, w=[0, 0]), "w/1", APART) == []
    assert broken(placed(3, ended, w=[0, 0]), "w/1", APART) == [
        f"'{APART}' is broken there: w/0 is in m0 too"
    ]


def test_tasks_that_their_job_does_not_have_any_more_are_in_nobodys_way() -> None:
    fewer = ScaledRecord(9, 0, job("w", 2, cpu=1, memory=1, tags=("w",)).job)
    for at in (5, 20):
        found = placed(at, fewer, w=[0, 1, 0])
        assert broken(found, "w/0", APART) == []
    kept = placed(5, fewer, w=[0, 0, 0])
    assert broken(kept, "w/1", APART) == [f"'{APART}' is broken there: w/0 is in m0 too"]
