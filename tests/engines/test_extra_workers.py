"""Extra workers of MapReduce jobs, as effects of events: where they come from and when they go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs
from serial_attempts import cell_of, end, only, submit, take, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.mapreduce import MapReduce
from argosy.engines.mapreduce.prediction import History, Workers, best_addition, best_start
from argosy.engines.mapreduce.scaling import TIMER
from argosy.host.scheduler import make_settings
from argosy.model.effects import Commit, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobSubmitted,
    PhaseFinished,
    TaskFailed,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.transactions import OPERATOR, Transaction
from argosy.testing.builders import SECOND, shared_job

#: Decisions take no time, and extra workers come after those that the job asked for.
AT_ONCE = {"t_job": 0, "t_task": 0, "at_start": False}


def a_job(name: str, activities: tuple[int, ...] = (40, 2), workers: int = 2) -> Job:
    seconds = tuple(10.0 for _ in activities)
    return shared_job(name, workers, activities, seconds, cpu=1_000, program="count").job


def an_engine(cell: Cell, activities: tuple[int, ...] = (40, 2), **settings: Any) -> MapReduce:
    """A scheduler that has run the program once, as job 0."""
    made = make_settings(MapReduce, {**AT_ONCE, **settings})
    engine = MapReduce(made, Context("s", (), Random(1)))
    started(engine, cell, a_job("before", activities), 0)
    for phase in range(len(activities)):
        engine.handle(PhaseFinished(0, phase, 10 * SECOND), cell, 0)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(0, 0, 1)))
    return engine


def started(engine: MapReduce, cell: Cell, job: Job, number: int) -> Any:
    """What follows when the workers that a job asked for have been placed."""
    _, effects = end(engine, cell, only(submit(engine, cell, job, number), Think))
    return effects


def scaling(effects: Any) -> list[Think]:
    return [effect for effect in effects if isinstance(effect, Think) and effect.token < 0]


def claimed(engine: MapReduce, cell: Cell, effects: Any) -> Any:
    """The commit of extra workers."""
    [thinking] = scaling(effects)
    return only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)


def added(engine: MapReduce, cell: Cell, effects: Any) -> Any:
    commit = claimed(engine, cell, effects)
    return engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 0)


def test_extra_workers_go_only_where_the_job_may_run() -> None:
    cell = cell_of(8, 8, 8, m1={"disk": "ssd"})
    engine, picky = an_engine(cell), a_job("picky")
    group = structs.replace(picky.groups[0], requires={"disk": "ssd"})
    effects = started(engine, cell, structs.replace(picky, groups=(group,)), 1)
    claims = claimed(engine, cell, effects).transaction.claims
    assert set(claims.machines.tolist()) == {1}
    assert len(claims) == 6


@pytest.mark.parametrize(("activities", "is_timed"), [(8, False), (9, True), (12, True)])
def test_a_job_is_considered_again_if_some_extra_workers_found_no_machine(
    activities: int, is_timed: bool
) -> None:
    # There is room for all, but the job may use one machine only: for two of its own and six more.
    cell = cell_of(8, 8, 8, m1={"disk": "ssd"})
    engine, picky = an_engine(cell, (activities, 2)), a_job("picky", (activities, 2))
    group = structs.replace(picky.groups[0], requires={"disk": "ssd"})
    effects = started(engine, cell, structs.replace(picky, groups=(group,)), 1)
    assert bool([each for each in effects if isinstance(each, WakeMe)]) == is_timed
    assert len(claimed(engine, cell, effects).transaction.claims) == 6


def test_extra_workers_are_not_claimed_for_a_job_that_is_over_by_then() -> None:
    cell = cell_of(16)
    engine, job = an_engine(cell), a_job("j")
    [thinking] = scaling(started(engine, cell, job, 1))
    engine.handle(JobCancelled(job, 1, tasks_of(1, 0, 1)), cell, 0)
    assert not engine.handle(DecisionDue(thinking.token), cell, 0)
    # The next job is considered.
    assert scaling(started(engine, cell, a_job("k"), 2))


def test_a_job_gets_its_extra_workers_with_those_it_asked_for() -> None:
    cell = cell_of(16)
    engine = an_engine(cell, (6, 4), at_start=True, t_job=SECOND, t_task=SECOND)
    thinking = only(submit(engine, cell, a_job("j", (6, 4)), 1), Think)
    assert thinking.duration == 7 * SECOND
    claims, effects = end(engine, cell, thinking)
    assert claims.tasks.tolist() == tasks_of(1, *range(6)).tolist()
    assert not scaling(effects)
    released = only(engine.handle(PhaseFinished(1, 0, 10 * SECOND), cell, 0), Commit).transaction
    assert sorted(released.releases.tolist()) == tasks_of(1, 4, 5).tolist()


def test_extra_workers_refused_at_the_start_are_not_placed_like_others() -> None:
    cell = cell_of(16)
    engine = an_engine(cell, (6, 4), at_start=True)
    thinking = only(submit(engine, cell, a_job("j", (6, 4)), 1), Think)
    take(cell, 0, 13)
    claims, effects = end(engine, cell, thinking)
    assert len(claims) == 6
    # Three fit, of which the job asked for two; the job is considered again, but nothing is put back.
    assert [cell.machine_of(int(task)) for task in tasks_of(1, *range(6))] == [0] * 3 + [None] * 3
    assert not [effect for effect in effects if isinstance(effect, Think) and effect.token >= 0]


def test_jobs_that_wait_share_the_idle_room_with_the_one_that_is_placed() -> None:
    cell = cell_of(16)
    engine = an_engine(cell, at_start=True)
    thinking = only(submit(engine, cell, a_job("busy", (2, 2)), 1), Think)
    submit(engine, cell, a_job("j"), 2)
    submit(engine, cell, a_job("k"), 3)
    _, effects = end(engine, cell, thinking)
    claims, _ = end(engine, cell, only(effects, Think))
    # 14 cores are left: two for the workers asked for; three jobs share the other 12.
    assert len(claims) == 2 + 4


def test_a_job_cancelled_while_it_is_decided_on_gets_no_extra_workers() -> None:
    cell = cell_of(16)
    engine, job = an_engine(cell, at_start=True), a_job("j")
    thinking = only(submit(engine, cell, job, 1), Think)
    engine.handle(JobCancelled(job, 1, tasks_of(1, 0, 1)), cell, 0)
    assert not engine.handle(DecisionDue(thinking.token), cell, 0)


def test_one_request_is_decided_on_at_a_time() -> None:
    cell = cell_of(16)
    engine = an_engine(cell)
    [thinking] = scaling(started(engine, cell, a_job("j"), 1))
    assert not submit(engine, cell, a_job("k"), 2)
    commit = only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)
    effects = engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 0)
    # Jobs that wait to be placed come before more workers for others.
    assert only(effects, Think).job == 2


@pytest.mark.parametrize(("t_task", "expected"), [(0, 9), (20, 1), (60, 0)])
def test_extra_workers_are_worth_the_longer_decision(t_task: int, expected: int) -> None:
    # One worker has 100 s left, two 50, three 33 and ten 10.
    assert best_start([(100, 10)], 1, 9, t_task) == expected


def test_a_job_that_ended_is_not_considered_again() -> None:
    cell = cell_of(8)
    engine, job = an_engine(cell), a_job("j")
    effects = started(engine, cell, job, 1)
    assert only(effects, WakeMe).name == TIMER
    added(engine, cell, effects)
    engine.handle(JobCancelled(job, 1, tasks_of(1, *range(8))), cell, 0)
    assert not engine.handle(TimerFired(TIMER), cell, 30 * SECOND)


def test_a_job_that_needs_no_more_workers_does_not_hold_up_the_next() -> None:
    cell = cell_of(8)
    engine = an_engine(cell)
    take(cell, 0, 6)
    # Both want more workers than there is room for, until one of them has only two activities left.
    assert not scaling(started(engine, cell, a_job("j"), 1))
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1)))
    assert not scaling(started(engine, cell, a_job("k"), 2))
    assert not scaling(engine.handle(PhaseFinished(1, 0, 10 * SECOND), cell, 0))
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 2, 3, 4, 5)))
    [thinking] = scaling(engine.handle(TimerFired(TIMER), cell, 30 * SECOND))
    assert thinking.job == 2


def test_a_worker_that_failed_for_good_is_missed() -> None:
    cell = cell_of(2, 4)
    engine, job = an_engine(cell, (40, 40)), a_job("j", (40, 40))
    take(cell, 1, 4)
    # The cell is full, so that no extra worker is considered until the next phase.
    assert not scaling(started(engine, cell, job, 1))
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    nothing, where = np.zeros(1, np.int64), np.zeros(1, np.int32)
    failed = TaskFailed(job, 1, tasks_of(1, 0), where, nothing, 1, "error", again=False)
    engine.handle(failed, cell, 0)
    assert not scaling(engine.handle(PhaseFinished(1, 0, 10 * SECOND), cell, 0))


def test_the_youngest_extra_workers_are_released_first() -> None:
    cell = cell_of(16)
    engine = an_engine(cell, (6, 4))
    added(engine, cell, started(engine, cell, a_job("j", (6, 4)), 1))
    assert cell.machine_of(int(tasks_of(1, 5)[0])) == 0
    effects = engine.handle(PhaseFinished(1, 0, 10 * SECOND), cell, 0)
    released = only(effects, Commit).transaction.releases
    assert sorted(released.tolist()) == tasks_of(1, 4, 5).tolist()


def test_workers_that_were_released_are_not_released_again() -> None:
    cell, phases = cell_of(16), (8, 6, 3)
    engine = an_engine(cell, phases)
    added(engine, cell, started(engine, cell, a_job("j", phases), 1))
    for phase, expected in ((0, [6, 7]), (1, [3, 4, 5])):
        effects = engine.handle(PhaseFinished(1, phase, 10 * SECOND), cell, 0)
        released = only(effects, Commit).transaction.releases
        assert sorted(released.tolist()) == tasks_of(1, *expected).tolist()


def test_workers_that_a_later_phase_has_use_for_are_kept() -> None:
    cell = cell_of(16)
    engine = an_engine(cell, (6, 2, 6))
    added(engine, cell, started(engine, cell, a_job("j", (6, 2, 6)), 1))
    effects = engine.handle(PhaseFinished(1, 0, 10 * SECOND), cell, 0)
    assert not [effect for effect in effects if isinstance(effect, Commit)]


def test_a_job_taken_over_gets_extra_workers_once_the_rest_is_placed() -> None:
    cell = cell_of(16)
    engine = an_engine(cell)
    rest = JobSubmitted(a_job("j"), 1, tasks_of(1, 1))
    _, effects = end(engine, cell, only(engine.handle(rest, cell, 0), Think))
    assert scaling(effects)


def test_a_job_taken_over_is_in_the_phase_that_is_heard_of() -> None:
    cell = cell_of(16)
    engine = an_engine(cell, (6, 6, 2))
    rest = JobSubmitted(a_job("j", (6, 6, 2)), 1, tasks_of(1, 1))
    _, effects = end(engine, cell, only(engine.handle(rest, cell, 0), Think))
    added(engine, cell, effects)
    effects = engine.handle(PhaseFinished(1, 1, 10 * SECOND), cell, 0)
    assert len(only(effects, Commit).transaction.releases) == 4


def test_indices_of_extra_workers_are_never_used_twice() -> None:
    cell = cell_of(8)
    engine, job = an_engine(cell), a_job("j")
    commit = claimed(engine, cell, started(engine, cell, job, 1))
    assert commit.transaction.claims.tasks.tolist() == tasks_of(1, *range(2, 8)).tolist()
    # All are refused: somebody else took the machine meanwhile.
    take(cell, 0, 6)
    engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 0)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, *range(6))))
    again = claimed(engine, cell, engine.handle(TimerFired(TIMER), cell, 30 * SECOND))
    assert again.transaction.claims.tasks.tolist() == tasks_of(1, *range(8, 14)).tolist()


def test_indices_of_extra_workers_follow_each_other() -> None:
    cell = cell_of(3, 3, 3, 8)
    engine = an_engine(cell)
    take(cell, 3, 8)
    wide = shared_job("wide", 1, (40, 2), (10, 10), cpu=2_000, program="count").job
    # By their sum, 7 cores are room for three workers of two cores; two machines have room for one.
    effects = started(engine, cell, wide, 1)
    commit = claimed(engine, cell, effects)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(1, 1, 2).tolist()
    engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 0)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, *range(8))))
    again = claimed(engine, cell, engine.handle(TimerFired(TIMER), cell, 30 * SECOND))
    assert again.transaction.claims.tasks[0] == tasks_of(1, 3)[0]


def test_a_lost_extra_worker_is_not_placed_again_and_its_job_is_still_whole() -> None:
    cell = cell_of(16)
    engine, job = an_engine(cell, (6, 6)), a_job("j", (6, 6))
    added(engine, cell, started(engine, cell, job, 1))
    lost = tasks_of(1, 2, 3)
    cell.commit(Transaction(OPERATOR, releases=lost))
    event = TasksLost(job, 1, lost, np.zeros(2, np.int32), Why.PREEMPTED)
    assert not engine.handle(event, cell, 0)
    claims = claimed(engine, cell, engine.handle(PhaseFinished(1, 0, 10 * SECOND), cell, 0))
    assert len(claims.transaction.claims) == 2


@pytest.mark.parametrize(("decision", "expected"), [(60, 1), (100, 0), (99, 1)])
def test_what_workers_do_while_more_are_decided_on_counts(decision: int, expected: int) -> None:
    # One worker has 100 s left: 60 s later there are 40, which two do in 20.
    assert best_addition([(100, 10)], 1, 1, decision, 0) == expected


def test_a_later_phase_without_history_is_left_out_of_a_prediction() -> None:
    job, history = a_job("j", (10, 5)), History()
    workers = Workers(job)
    assert workers.time_left(history, 0) is None
    history.learn(job, 0, SECOND)
    assert workers.time_left(history, 0) == [(10 * SECOND, 10)]


def test_a_phase_does_no_more_work_at_once_than_it_has_activities() -> None:
    job, history = a_job("j", (2, 5)), History()
    workers = Workers(job)
    workers.own = 4
    history.learn(job, 0, 10 * SECOND)
    assert workers.time_left(history, 3 * SECOND) == [(14 * SECOND, 2)]


def test_work_of_one_phase_is_not_counted_in_the_next() -> None:
    job, history = a_job("j", (10, 5)), History()
    workers = Workers(job)
    workers.own = 2
    for phase in (0, 1):
        history.learn(job, phase, 10 * SECOND)
    later = (50 * SECOND, 5)
    assert workers.time_left(history, 30 * SECOND) == [(40 * SECOND, 10), later]
    workers.next_phase(45 * SECOND)
    assert workers.time_left(history, 45 * SECOND) == [later]
    assert workers.time_left(history, 50 * SECOND) == [(40 * SECOND, 5)]
