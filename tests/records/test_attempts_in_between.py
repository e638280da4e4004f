"""Decisions on other tasks of a job, which a story tells only while its own task has no machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_told_answers import A, B, b, texts

from argosy.host.records import (
    AbandonedRecord,
    AttemptRecord,
    CancelledRecord,
    EnqueuedRecord,
    ExplainedRecord,
    LostRecord,
    PlacedRecord,
    ProbedRecord,
    ReleasedRecord,
    ResubmittedRecord,
    StartedRecord,
)
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import task_number
from argosy.records.answers import TaskAnswers

Ask = Callable[..., TaskAnswers]
OWN = task_number(0, 1)
PLACED = PlacedRecord(2, "a", [1], [6], "s-0")


def decided_at(told: TaskAnswers) -> list[int]:
    return [int(line.partition(" ")[0]) for line in texts(told) if "starts to decide" in line]


@pytest.mark.parametrize(
    "facts",
    [
        (PLACED,),
        (EnqueuedRecord(2, "a", [1], [6], "s-0"),),
        (ProbedRecord(2, "a", [1], [6], "s-0"),),
        (EnqueuedRecord(2, "a", [1], [6], "s-0"), StartedRecord(2, [OWN], [6])),
        (AbandonedRecord(2, "a", [1], "s-0", Explanation(remedy="wait")),),
        (CancelledRecord(2, 0, [1]),),
        (PLACED, LostRecord(3, "a", [1], [6], "crash"), PlacedRecord(3, "a", [1], [5], "s-0")),
    ],
)
def test_what_comes_after_it_has_a_machine_or_is_over_is_left_out(
    ask: Ask, facts: tuple[Any, ...]
) -> None:
    before, after = AttemptRecord(1, "a", "s-0", 0), AttemptRecord(4, "a", "s-1", 0)
    assert decided_at(ask(A, before, *facts, after)) == [1]


@pytest.mark.parametrize(
    "fact",
    [
        LostRecord(3, "a", [1], [6], "crash"),
        ReleasedRecord(3, "a", [1], "s-0"),
        ResubmittedRecord(3, "a", [1], "s-1"),
    ],
)
def test_once_it_has_lost_its_machine_decisions_are_told_again(ask: Ask, fact: Any) -> None:
    again = AttemptRecord(4, "a", "s-1", 0)
    assert decided_at(ask(A, PLACED, fact, again)) == [4]
    assert decided_at(ask(A, PLACED, again)) == []


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (Refusal(Why.BEHIND, task=b(1)), "b/1 goes first, and has no machine yet"),
        (Refusal(Why.BEHIND), Refusal(Why.BEHIND).sentence("")),
        (Refusal(Why.MACHINE_GONE, machine=6, task=b(1)), Refusal(Why.MACHINE_GONE).sentence("m6")),
        (Refusal(Why.FILTERED, machine=6), "it would break a hard constraint on m6"),
        (Refusal(Why.FILTERED), "it would break a hard constraint on a machine"),
    ],
)
def test_who_goes_first_is_named(ask: Ask, refusal: Refusal, told: str) -> None:
    waits = ExplainedRecord(3, "a", [1], "s-0", Explanation(refused=refusal))
    assert texts(ask(A, B, waits))[-1] == f"3 waits: {told}"
