"""Facts of a journal in, columns of steps and tallies of schedulers out."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.host import TaskState
from argosy.host.job_state import JobState
from argosy.host.records import (
    AbandonedRecord,
    AttemptRecord,
    CancelledRecord,
    CrashedRecord,
    EndedRecord,
    EnqueuedRecord,
    FailedRecord,
    LostRecord,
    PlacedRecord,
    ProbedRecord,
    RefusedRecord,
    ReleasedRecord,
    RestartedRecord,
    RestoredRecord,
    ResubmittedRecord,
    RetriedRecord,
    StartedRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.explanations import Explanation, Why
from argosy.model.jobs import task_number
from argosy.records.state import RunState
from argosy.records.steps import STATE_AFTER, JournalSteps, SchedulerTally, Step
from argosy.testing.builders import job, scenario

NO_ROOM, LIMIT, STALE = int(Why.NO_ROOM), int(Why.JOB_LIMIT), int(Why.STALE)


def read(*facts: Any) -> JournalSteps:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    for fact in facts:
        steps.read(fact)
    steps.check()
    return steps


def rows(steps: JournalSteps) -> list[tuple[int, ...]]:
    """Task, when it was recorded and takes effect, what, machine and scheduler."""
    columns = steps.columns()
    names = ("tasks", "at", "effective", "kinds", "machines", "schedulers")
    return list(zip(*(getattr(columns, name).tolist() for name in names), strict=True))


def test_every_step_has_its_row() -> None:
    b = task_number(1, 0)
    steps = read(
        SubmittedRecord(0, 0, job("a", 3).job, "s-0"),
        SubmittedRecord(1, 1, job("b", 2).job, "s-1"),
        PlacedRecord(2, "b", [1, 0], [5, 6], "s-1"),
        EnqueuedRecord(3, "a", [0, 2], [7, 1], "s-0", None, 10, 4),
        ProbedRecord(4, "a", [1], [1, 2], "s-0"),
        StartedRecord(5, [0, 2], [7, 1], 9),
        LostRecord(6, "b", [1], [5], "preempted"),
        LostRecord(7, "a", [0], [7], "machine_lost"),
        EndedRecord(8, [b]),
        FailedRecord(9, 2, 1, 1, ""),
        RetriedRecord(9, "a", [2], 1, "", for_good=True),
        ReleasedRecord(10, "b", [1], "s-1"),
        AbandonedRecord(11, "b", [1], "s-1", Explanation()),
        CancelledRecord(12, 0, [0, 1]),
    )
    assert rows(steps) == [
        (b + 1, 2, 2, Step.PLACED, 5, 1),
        (b, 2, 2, Step.PLACED, 6, 1),
        (0, 3, 13, Step.ENQUEUED, 7, 0),
        (2, 3, 17, Step.ENQUEUED, 1, 0),
        (1, 4, 4, Step.PROBED, -1, 0),
        (0, 5, 14, Step.STARTED, 7, -1),
        (2, 5, 14, Step.STARTED, 1, -1),
        (b + 1, 6, 6, Step.PREEMPTED, 5, -1),
        (0, 7, 7, Step.LOST, 7, -1),
        (b, 8, 8, Step.ENDED, -1, -1),
        (2, 9, 9, Step.FAILED, -1, -1),
        (2, 9, 9, Step.FAILED_FOR_GOOD, -1, -1),
        (b + 1, 10, 10, Step.RELEASED, -1, 1),
        (b + 1, 11, 11, Step.ABANDONED, -1, 1),
        (0, 12, 12, Step.CANCELLED, -1, -1),
        (1, 12, 12, Step.CANCELLED, -1, -1),
    ]
    assert [steps.number(name) for name in ("a", "b", "c")] == [0, 1, None]


def test_every_kind_of_step_leads_to_one_state() -> None:
    assert len(STATE_AFTER) == len(Step)
    states = {step.name: TaskState(int(STATE_AFTER[step])).name for step in Step}
    assert states == {
        **dict.fromkeys(("PLACED", "STARTED"), "RUNNING"),
        **dict.fromkeys(("ENQUEUED", "PROBED"), "QUEUED"),
        **dict.fromkeys(
            ("PREEMPTED", "LOST", "RELEASED", "UNPROBED", "FAILED", "ADDED_AGAIN"), "PENDING"
        ),
        "ENDED": "FINISHED",
        "ABANDONED": "ABANDONED",
        "FAILED_FOR_GOOD": "FAILED",
        "CANCELLED": "CANCELLED",
    }


def test_a_job_of_an_earlier_host_goes_on_where_it_was() -> None:
    state = JobState(
        submitted=3,
        running=(0, 1),
        machines=(4, 2),
        finished=(2,),
        failed=(3,),
        cancelled=(4,),
        abandoned=(5,),
    )
    steps = read(RestoredRecord(9, 0, job("a", 7).job, "s-1", state))
    assert rows(steps) == [
        (0, 9, 9, Step.PLACED, 4, 1),
        (1, 9, 9, Step.PLACED, 2, 1),
        (2, 9, 9, Step.ENDED, -1, -1),
        (3, 9, 9, Step.FAILED_FOR_GOOD, -1, -1),
        (4, 9, 9, Step.CANCELLED, -1, -1),
        (5, 9, 9, Step.ABANDONED, -1, -1),
    ]
    assert (steps.submitted, steps.first_attempt, steps.thought) == ([3], [-1], [0])
    assert {name: tally.jobs for name, tally in steps.schedulers.items()} == {"s-0": 0, "s-1": 1}
    counts = RunState(steps, 9).counts
    assert [counts[state] for state in TaskState] == [1, 0, 2, 1, 1, 1, 1]


def test_a_job_handed_over_counts_for_both_schedulers_and_once_for_each() -> None:
    steps = read(
        SubmittedRecord(0, 0, job("a").job, "s-0"),
        ResubmittedRecord(1, "a", [0], "s-0"),
        ResubmittedRecord(2, "a", [0], "s-1"),
        ResubmittedRecord(3, "a", [0], "s-1"),
    )
    assert {name: tally.jobs for name, tally in steps.schedulers.items()} == {"s-0": 1, "s-1": 1}


def test_attempts_add_up_and_the_first_is_remembered() -> None:
    steps = read(
        SubmittedRecord(0, 0, job("a").job, "s-0"),
        AttemptRecord(2, "a", "s-0", 5, 1),
        AttemptRecord(9, "a", "s-0", 4),
    )
    assert (steps.first_attempt, steps.thought) == ([2], [10])
    tally = steps.schedulers["s-0"]
    assert [tally.busy_until(at) for at in (9, 11, 13, 20)] == [6, 8, 10, 10]


def test_decision_time_ends_with_a_crash() -> None:
    tally = SchedulerTally()
    tally.attempt(0, 10, 0)
    tally.attempt(4, 10, 2)
    assert [tally.busy_until(at) for at in (4, 10, 14)] == [6, 18, 22]
    tally.crash(6)
    assert (tally.crashes, tally.busy_until(6), tally.busy_until(99)) == (1, 10, 10)
    tally.attempt(20, 3, 0)
    assert tally.busy_until(21) == 11


def test_everything_at_one_instant_is_one_transaction() -> None:
    tally = SchedulerTally()
    for at in (5, 5, 6):
        tally.commit(at)
    tally.refuse(6, [LIMIT])
    tally.refuse(6, [NO_ROOM, NO_ROOM])
    tally.refuse(7, [LIMIT, STALE])
    tally.refuse(7, [STALE])
    tally.refuse(8, [LIMIT])
    assert (tally.transactions, tally.refusals, tally.successes, tally.conflicts) == (4, 3, 1, 2)
    assert tally.refused == {LIMIT: 3, NO_ROOM: 2, STALE: 2}


def test_probes_of_a_crashed_scheduler_no_longer_wait() -> None:
    steps = read(
        SubmittedRecord(0, 0, job("a", 2).job, "s-0"),
        SubmittedRecord(0, 1, job("b", 1).job, "s-1"),
        ProbedRecord(1, "a", [0, 1], [1, 2], "s-0"),
        ProbedRecord(1, "b", [0], [3], "s-1"),
        StartedRecord(2, [1], [2], 0),
        CrashedRecord(3, "s-0"),
        RestartedRecord(4, "s-0"),
        CrashedRecord(5, "s-0"),
    )
    assert [row for row in rows(steps) if row[3] == Step.UNPROBED] == [
        (0, 3, 3, Step.UNPROBED, -1, -1)
    ]
    assert steps.scheduler_changes == [(3, "s-0", False), (4, "s-0", True), (5, "s-0", False)]


@pytest.mark.parametrize("part", ["s-0:hand", "s-1:hand"])
def test_a_part_of_a_scheduler_counts_on_its_own(part: str) -> None:
    steps = read(
        SubmittedRecord(0, 0, job("a", 2).job, "s-0"),
        PlacedRecord(1, "a", [0], [0], part),
        RefusedRecord(2, "a", [1], [0], part, [NO_ROOM], [0], [1]),
    )
    assert list(steps.schedulers) == ["s-0", "s-1", part]
    assert steps.columns().schedulers.tolist() == [2]
    assert steps.schedulers[part].transactions == 2


@pytest.mark.parametrize(
    "fact",
    [
        PlacedRecord(1, "a", [0], [0], "stranger"),
        EnqueuedRecord(1, "a", [0], [0], "stranger"),
        ProbedRecord(1, "a", [0], [0], "stranger"),
        ReleasedRecord(1, "a", [0], "stranger"),
        AbandonedRecord(1, "a", [0], "stranger:s-0", Explanation()),
        RefusedRecord(1, "a", [0], [0], "stranger", [NO_ROOM], [0], [1]),
    ],
)
def test_a_scheduler_that_is_not_of_the_fleet_is_a_contradiction(fact: Any) -> None:
    placed = PlacedRecord(0, "a", [0], [0], "s-0")
    with pytest.raises(ValueError, match="schedulers"):
        read(SubmittedRecord(0, 0, job("a", 2).job, "s-0"), placed, fact)
