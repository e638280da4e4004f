"""Mesos as a function from events to effects: what is offered, hoarded, declined and given up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, only, take, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.mesos import Mesos, MesosSettings
from argosy.model.effects import Abandon, Commit, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    TimerFired,
)
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Claims, ResizeMachine, Transaction
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, job


def a_mesos(seed: int = 1, **settings: Any) -> Mesos:
    return Mesos(MesosSettings(**settings), Context("s", (), Random(seed)))


def submit(engine: Mesos, cell: Cell, submission: SimulatedJob, number: int, now: int = 0) -> Any:
    tasks = tasks_of(number, *range(submission.tasks))
    return engine.handle(JobSubmitted(submission.job, number, tasks), cell, now)


def offer(engine: Mesos, cell: Cell, now: int = 0) -> Any:
    return engine.handle(TimerFired("offer"), cell, now)


def decide(engine: Mesos, cell: Cell, thinking: Think, now: int = 0) -> Any:
    return engine.handle(DecisionDue(thinking.token), cell, now)


def answer(engine: Mesos, cell: Cell, commit: Commit, now: int = 0) -> Any:
    return engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, now)


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def large(name: str, tasks: int, **fields: Any) -> SimulatedJob:
    """Each task takes a whole machine of four cores."""
    return job(name, tasks, cpu=4_000, memory=64 * GIB, **fields)


def test_a_gang_that_is_given_up_gives_up_its_hoarded_tasks_too() -> None:
    engine, cell = a_mesos(attempts=1), cell_of(4, 4)
    submit(engine, cell, large("gang", 3, gang=True), 0)
    thinking = only(offer(engine, cell), Think)
    gone = only(decide(engine, cell, thinking), Abandon)
    assert sorted(gone.tasks.tolist()) == tasks_of(0, 0, 1, 2).tolist()


def test_a_gang_whose_commit_is_refused_begins_again_without_its_hoard() -> None:
    engine, cell = a_mesos(refuse=0), cell_of(4, 4)
    take(cell, 1, 4)
    submit(engine, cell, large("gang", 2, gang=True), 0)
    assert not of(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    assert len(commit.transaction.claims) == 2
    # Somebody else takes the machine that was hoarded, and leaves it again.
    take(cell, 0, 1)
    answer(engine, cell, commit)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    assert sorted(commit.transaction.claims.tasks.tolist()) == tasks_of(0, 0, 1).tolist()
    assert cell.commit(commit.transaction).all_accepted


def test_a_machine_that_shrinks_below_what_is_on_offer_is_not_offered_to_others() -> None:
    engine, cell = a_mesos(), cell_of(4)
    submit(engine, cell, job("a", 1), 0)
    only(offer(engine, cell), Think)
    smaller = ResizeMachine(0, Resources(2_000, 8 * GIB))
    cell.commit(Transaction(OPERATOR, machines=(smaller,)))
    submit(engine, cell, job("b", 1, kind="service"), 1)
    effects = offer(engine, cell)
    assert not of(effects, Think)
    assert only(effects, WakeMe).at == SECOND


def test_a_fair_share_is_up_to_and_including_an_equal_part_of_the_cell() -> None:
    engine, cell = a_mesos(offers="fair-share"), cell_of(4, 4)
    submit(engine, cell, large("a", 1), 0)
    submit(engine, cell, large("b", 1, kind="service"), 1)
    chosen = []
    for _ in range(2):
        # Both decide at once, because neither was offered more than half.
        commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
        chosen += commit.transaction.claims.machines.tolist()
    assert sorted(chosen) == [0, 1]


def test_a_fair_share_begins_at_any_machine() -> None:
    chosen = set()
    for seed in range(12):
        engine, cell = a_mesos(seed, offers="fair-share"), cell_of(4, 4, 4, 4)
        submit(engine, cell, large("a", 1), 0)
        submit(engine, cell, large("b", 1, kind="service"), 1)
        commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
        chosen.update(commit.transaction.claims.machines.tolist())
    assert len(chosen) > 2


def test_a_gang_that_shrinks_gives_its_hoard_back_to_the_allocator() -> None:
    engine, cell = a_mesos(), cell_of(4, 4)
    gang, smaller = large("gang", 3, gang=True), large("gang", 2, gang=True)
    submit(engine, cell, gang, 0)
    decide(engine, cell, only(offer(engine, cell), Think))
    submit(engine, cell, large("b", 2, kind="service"), 1)
    effects = offer(engine, cell, 1)
    assert not of(effects, Think)
    removed = JobChanged(smaller.job, 0, np.empty(0, np.int64), tasks_of(0, 2))
    engine.handle(removed, cell, 1)
    commit = only(decide(engine, cell, only(offer(engine, cell, 2), Think)), Commit)
    assert len(commit.transaction.claims) == 2


@pytest.mark.parametrize("gang", [False, True])
def test_tasks_cancelled_during_a_decision_are_neither_claimed_nor_explained(gang: bool) -> None:
    engine, cell = a_mesos(), cell_of(4)
    submission = large("a", 2, gang=gang)
    submit(engine, cell, submission, 0)
    thinking = only(offer(engine, cell), Think)
    engine.handle(JobCancelled(submission.job, 0, tasks_of(0, 0, 1)), cell, 0)
    assert not decide(engine, cell, thinking)


def test_the_rest_of_a_gang_that_shrinks_during_a_decision_is_decided_on_again() -> None:
    engine, cell = a_mesos(refuse=0), cell_of(4, 4)
    gang, smaller = large("gang", 2, gang=True), large("gang", 1, gang=True)
    submit(engine, cell, gang, 0)
    thinking = only(offer(engine, cell), Think)
    engine.handle(JobChanged(smaller.job, 0, np.empty(0, np.int64), tasks_of(0, 1)), cell, 0)
    assert not of(decide(engine, cell, thinking), Commit)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(0, 0).tolist()


def test_what_was_withdrawn_during_a_commit_concerns_no_later_commit() -> None:
    engine, cell = a_mesos(refuse=0), cell_of(4)
    first, second = job("a", 1, cpu=2_000), job("b", 1, cpu=3_000)
    submit(engine, cell, first, 0)
    submit(engine, cell, second, 1)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    engine.handle(JobCancelled(first.job, 0, tasks_of(0, 0)), cell, 0)
    take(cell, 0, 4)
    answer(engine, cell, commit)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    # The other job's commit is refused as well; what is tried again is still that job.
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    take(cell, 0, 4)
    answer(engine, cell, commit)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    claims = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit).transaction.claims
    assert claims.tasks.tolist() == tasks_of(1, 0).tolist()
    assert claims.shapes.tolist() == [cell.shape(Resources(3_000, GIB))]


def test_machines_that_were_of_use_are_offered_again_at_once() -> None:
    engine, cell = a_mesos(refuse=600 * SECOND), cell_of(4, 2)
    wide = job("wide", 3, cpu=3_000)
    submit(engine, cell, wide, 0)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    effects = answer(engine, cell, commit)
    assert [len(each.tasks) for each in of(effects, Explain)] == [2]
    # What is left of m0 was not declined; m1 was.
    only(offer(engine, cell), Think)


def test_every_job_that_was_never_tried_is_told_why_nothing_is_offered() -> None:
    engine, cell = a_mesos(t_idle=SECOND), cell_of(4)
    hog = large("hog", 1, kind="other")

    def fill(number: int) -> None:
        submit(engine, cell, hog, number)
        answer(engine, cell, only(decide(engine, cell, only(offer(engine, cell), Think)), Commit))

    def told() -> list[int]:
        return [task for each in of(offer(engine, cell), Explain) for task in each.tasks.tolist()]

    fill(0)
    first = job("first", 1)
    submit(engine, cell, first, 1)
    assert told() == tasks_of(1, 0).tolist()
    engine.handle(JobCancelled(first.job, 1, tasks_of(1, 0)), cell, 0)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(0, 0)))
    # Four jobs are placed, and one is left when the cell is full again.
    for number in range(2, 7):
        submit(engine, cell, job(f"j{number}", 1, cpu=100), number)
    for number in range(2, 6):
        commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
        answer(engine, cell, commit)
        cell.commit(Transaction(OPERATOR, releases=tasks_of(number, 0)))
    fill(7)
    submit(engine, cell, job("last", 1), 8)
    assert told() == [*tasks_of(6, 0).tolist(), *tasks_of(8, 0).tolist()]


def test_a_fair_share_counts_what_the_framework_and_others_hold() -> None:
    """Of ten machines, others hold six. Two frameworks share four, and one of them holds one."""
    engine, cell = a_mesos(offers="fair-share", refuse=0), cell_of(*[4] * 10)
    others = np.arange(6, dtype=np.int32)
    whole = np.full(6, cell.shape(Resources(4_000, 64 * GIB)), np.int32)
    claims = Claims(tasks_of(99, *range(6)), others, whole, cell.versions(others))
    assert cell.commit(Transaction(OPERATOR, claims)).all_accepted
    submit(engine, cell, large("a", 1), 0)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    answer(engine, cell, commit)
    submit(engine, cell, large("other", 1, kind="service"), 1)
    only(offer(engine, cell), Think)
    submit(engine, cell, large("wide", 4), 2)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    assert len(commit.transaction.claims) == 1


def test_a_framework_with_its_share_is_told_so() -> None:
    engine, cell = a_mesos(offers="fair-share", refuse=0), cell_of(4, 4)
    submit(engine, cell, large("gone", 1, kind="service"), 0)
    engine.handle(JobCancelled(large("gone", 1, kind="service").job, 0, tasks_of(0, 0)), cell, 0)
    submit(engine, cell, large("a", 1), 1)
    answer(engine, cell, only(decide(engine, cell, only(offer(engine, cell), Think)), Commit))
    submit(engine, cell, large("b", 1), 2)
    told = only(offer(engine, cell), Explain).explanation
    assert told.ruled_out == {"full": 1, "beyond its share": 1}
    assert "tasks of the framework end" in told.remedy


def test_a_framework_may_go_through_its_queue_with_one_offer() -> None:
    engine, cell = a_mesos(uses="queue", refuse=0, t_job=100, t_task=0), cell_of(4, 4, 4)
    for number, name in enumerate(("a", "b")):
        submit(engine, cell, large(name, 1), number)
    submit(engine, cell, large("other", 1, kind="service"), 2)
    thinking = only(offer(engine, cell), Think)
    after = answer(engine, cell, only(decide(engine, cell, thinking), Commit))
    # Everything is still on offer to the first framework, which decides on its second job.
    following = only(after, Think)
    assert following.job == 1
    assert not of(offer(engine, cell), Think)
    last = answer(engine, cell, only(decide(engine, cell, following), Commit))
    assert not of(last, Think)
    assert only(offer(engine, cell), Think).job == 2


def test_a_job_that_was_not_wholly_placed_may_rest_before_it_is_queued_again() -> None:
    engine, cell = a_mesos(uses="queue", refuse=0, rest=SECOND), cell_of(4)
    submit(engine, cell, large("wide", 2), 0)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    effects = answer(engine, cell, commit)
    assert only(effects, WakeMe) == WakeMe(SECOND, "rest")
    later = engine.handle(TimerFired("rest"), cell, SECOND)
    assert only(later, WakeMe).name == "offer"


def test_tasks_of_a_resting_job_can_be_cancelled() -> None:
    engine, cell = a_mesos(uses="queue", refuse=0, rest=SECOND), cell_of(4)
    wide = large("wide", 2)
    submit(engine, cell, wide, 0)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    answer(engine, cell, commit)
    engine.handle(JobCancelled(wide.job, 0, tasks_of(0, 0, 1)), cell, 0)
    assert engine.handle(TimerFired("rest"), cell, SECOND) == ()


@pytest.mark.parametrize(("tasks", "expected"), [(2, 5), (1, 3)])
def test_a_job_of_which_nothing_was_placed_may_be_given_up_sooner(
    tasks: int, expected: int
) -> None:
    """The first task of two finds a machine; a giant finds none."""
    engine, cell = a_mesos(refuse=0, attempts=5, attempts_in_vain=3), cell_of(4)
    size = {"cpu": 4_000, "memory": 64 * GIB} if tasks == 2 else {"cpu": 64_000}
    submit(engine, cell, job("j", tasks, **size), 0)
    attempt, is_over = 0, False
    while not is_over:
        attempt += 1
        found = of(offer(engine, cell), Think)
        if not found:
            # Everything is taken: what is free is nothing.
            cell.commit(
                Transaction(OPERATOR, machines=(ResizeMachine(0, Resources(8_000, 65 * GIB)),))
            )
            found = of(offer(engine, cell), Think)
        effects = decide(engine, cell, found[0])
        if of(effects, Commit):
            effects = answer(engine, cell, only(effects, Commit))
        is_over = bool(of(effects, Abandon))
    assert attempt == expected
