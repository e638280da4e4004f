"""Whose hard constraints placements are judged by, and which placements are judged at all."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs
from test_good_reasons import NEXT
from test_told_findings import details

from argosy.campaign.rules import HardConstraintsAreKept
from argosy.host import records
from argosy.model.constraints.text import parse_constraint
from argosy.model.explanations import Explanation
from argosy.model.jobs import task_number
from argosy.model.scenario import Scenario
from argosy.testing.builders import SECOND, cell, job, scenario

APART = "web -> {db, 0, 0} in machine"
BROKEN = "hard-constraint"


def spec(text: str = f"{APART} hard", *, by_operator: bool = False, **fleet: Any) -> Scenario:
    """Applications with the tags web and db, and a third one with the constraint, or the operator."""
    # A hard one about nobody, so that there is something to judge.
    rule = (parse_constraint(text), parse_constraint("x -> {y, 0, 0} in machine hard"))
    made = scenario(
        **{"engine": "medea", "replicas": 1, **fleet},
        jobs=[
            job("w", seconds=None, kind="service", tags=("web",)),
            job("c", 2, kind="service", tags=("c",), constraints=() if by_operator else rule),
            job("d", 2, seconds=None, kind="service", tags=("db",)),
        ],
        cell=cell(3),
    )
    own = rule if by_operator else ()
    return structs.replace(made, cell=structs.replace(made.cell, constraints=own))


def placed(at: int, name: str, machine: int, index: int = 0, by: str = "s") -> records.PlacedRecord:
    return records.PlacedRecord(at * SECOND, name, [index], [machine], by)


def ended(at: int, *indices: int) -> records.EndedRecord:
    return records.EndedRecord(at * SECOND, [task_number(1, index) for index in indices])


def complaints(made: Scenario, *journal: records.JournalRecord) -> list[str]:
    return [told for _, _, told in details(HardConstraintsAreKept, made, *journal)]


BOTH_RUN = (placed(2, "c", 1), placed(2, "c", 1, 1))


@pytest.mark.parametrize(
    ("life", "counts"),
    [
        ((), True),
        ((records.EnqueuedRecord(2 * SECOND, "c", [0, 1], [1, 1], "s"),), True),
        (BOTH_RUN, True),
        ((*BOTH_RUN, ended(12, 0)), True),
        ((*BOTH_RUN, ended(12, 1)), True),
        ((records.CancelledRecord(12 * SECOND, 1, [0]),), True),
        ((*BOTH_RUN, ended(12, 0, 1)), False),
        ((records.CancelledRecord(12 * SECOND, 1, [0, 1]),), False),
        ((records.AbandonedRecord(12 * SECOND, "c", [0, 1], "s", Explanation()),), False),
    ],
)
def test_an_application_has_its_constraint_until_all_of_it_is_over(
    life: tuple[Any, ...], counts: bool
) -> None:
    found = complaints(spec(), placed(1, "w", 0), *life, NEXT, placed(13, "d", 0))
    assert len(found) == counts
    assert all(told.endswith("is broken by placing d/0 at 13 s") for told in found)


def test_of_constraints_only_hard_ones_count_and_the_operator_s_always() -> None:
    together = (placed(1, "w", 0), NEXT, placed(3, "d", 0))
    over = (placed(1, "w", 0), *BOTH_RUN, ended(12, 0, 1), NEXT, placed(13, "d", 0))
    assert len(complaints(spec(), *together)) == 1
    assert complaints(spec(APART), *together) == []
    assert len(complaints(spec(by_operator=True), *together)) == 1
    assert len(complaints(spec(by_operator=True), *over)) == 1
    assert complaints(spec(APART, by_operator=True), *together) == []


def test_only_one_scheduler_that_follows_constraints_is_held_to_them() -> None:
    together = (placed(1, "w", 0), NEXT, placed(3, "d", 0))
    assert complaints(spec(engine="omega"), *together) == []
    by_one = (placed(1, "w", 0, by="s-0"), NEXT, placed(3, "d", 0, by="s-0"))
    assert complaints(spec(replicas=2), *by_one) == []


def test_what_was_broken_before_may_stay_so_but_not_become_worse() -> None:
    broken = (placed(1, "w", 0), placed(1, "d", 0))
    [first] = complaints(spec(), *broken, NEXT, placed(3, "c", 0), NEXT, placed(4, "d", 1, 1))
    assert first.endswith("is broken by placing d/0, w/0 at 1 s")
    # A task that is moved says nothing of who broke what.
    moved = (placed(1, "w", 0), placed(1, "d", 1), NEXT, placed(3, "d", 0))
    assert complaints(spec(), *moved, NEXT, placed(4, "c", 0)) == []
    # Nor is anything judged that is placed together with one that is moved.
    several = (placed(1, "w", 0), placed(1, "d", 1), NEXT)
    assert complaints(spec(), *several, placed(3, "d", 2), placed(3, "d", 0, 1)) == []
    assert len(complaints(spec(), *several, placed(3, "d", 0, 1))) == 1
