"""Engines that use machines' queues, as functions from events to effects: what they read and where
tasks go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from queue_reports import an_engine, of, report
from serial_attempts import cell_of, only, take, tasks_of

from argosy.cell import Cell
from argosy.engines.eagle import Eagle
from argosy.engines.hawk import Hawk
from argosy.engines.shared.backlog import Backlog, with_room
from argosy.engines.shared.probing import Candidates, draw, share_of
from argosy.engines.yaq_d import YaqD
from argosy.model.effects import AskQueues, Commit, Enqueue, Explain, Probe, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    QueuesReported,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, RemoveMachine, Transaction
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, job, shared_job


def submit(engine: Any, cell: Cell, submission: SimulatedJob, number: int) -> Any:
    tasks = tasks_of(number, *range(submission.tasks))
    return engine.handle(JobSubmitted(submission.job, number, tasks), cell, 0)


def place(engine: Any, cell: Cell, submission: SimulatedJob, number: int, **columns: Any) -> Any:
    asked = only(submit(engine, cell, submission, number), AskQueues)
    return report(engine, cell, asked, **columns)


YAQS = pytest.mark.parametrize("name", ["yaq-c", "yaq-d"])


@YAQS
def test_tasks_of_a_job_count_each_other(name: str) -> None:
    waits = [0, 30 * SECOND, 100 * SECOND, 100 * SECOND]
    effects = place(an_engine(name), cell_of(4, 4, 4, 4), job("a", 4, seconds=20), 0, waits=waits)
    # The first machine has 0, 20 and 40 s of work by turns; the second has 30.
    assert only(effects, Enqueue).machines.tolist() == [0, 0, 1, 0]


@YAQS
def test_only_the_last_machines_are_chosen_from(name: str) -> None:
    effects = place(an_engine(name, share=0.5), cell_of(4, 4, 4, 4), job("a", 8), 0)
    assert set(only(effects, Enqueue).machines.tolist()) == {2, 3}


def test_one_scheduler_asks_machines_and_several_use_their_heartbeats() -> None:
    for name, latest in (("yaq-c", False), ("yaq-d", True)):
        asked = only(submit(an_engine(name), cell_of(4), job("a"), 0), AskQueues)
        assert (asked.latest, asked.which, asked.until_room) == (latest, "all", None)


@YAQS
def test_queues_at_the_schedulers_limit_are_left_alone(name: str) -> None:
    engine, cell = an_engine(name, limit=2, retry=SECOND), cell_of(4, 4, 4, 4)
    effects = place(engine, cell, job("a", 8), 0, lengths=[1, 2, 3, 1])
    assert set(only(effects, Enqueue).machines.tolist()) == {0, 3}
    full = {"lengths": [2, 2, 3, 2]}
    effects = place(engine, cell, job("b", 1), 1, **full)
    assert only(effects, Explain).tasks.tolist() == tasks_of(1, 0).tolist()
    wake = only(effects, WakeMe)
    assert wake.at == SECOND
    # One timer for all who wait.
    assert not of(place(engine, cell, job("c", 1), 2, **full), WakeMe)
    asked = of(engine.handle(TimerFired(wake.name), cell, SECOND), AskQueues)
    assert len(asked) == 2
    assert only(report(engine, cell, asked[0], SECOND, **full), WakeMe).at == 2 * SECOND


@YAQS
def test_tasks_that_fit_nowhere_wait_for_machines_and_not_for_time(name: str) -> None:
    engine, cell = an_engine(name, retry=SECOND), cell_of(4)
    effects = place(engine, cell, job("giant", 1, cpu=8_000), 0)
    assert only(effects, Explain)
    assert not of(effects, WakeMe)
    joins = AddMachine(Machine("m1", Resources(16_000, 64 * GIB)))
    cell.commit(Transaction(OPERATOR, machines=(joins,)))
    asked = only(engine.handle(MachineJoined(1), cell, 0), AskQueues)
    assert only(report(engine, cell, asked), Enqueue).machines.tolist() == [1]


@YAQS
def test_cancelled_tasks_are_not_sent_when_their_wait_is_over(name: str) -> None:
    engine, cell, made = an_engine(name, limit=1), cell_of(4), job("a", 2)
    wake = only(place(engine, cell, made, 0, lengths=[1]), WakeMe)
    engine.handle(JobCancelled(made.job, 0, tasks_of(0, 0, 1)), cell, 0)
    for asked in of(engine.handle(TimerFired(wake.name), cell, SECOND), AskQueues):
        assert not of(report(engine, cell, asked, SECOND), Enqueue)


@YAQS
def test_no_more_tasks_are_sent_than_queues_have_room_for(name: str) -> None:
    engine, cell = an_engine(name), cell_of(4, 4, 4)
    effects = place(engine, cell, job("a", 4), 0, room=[1, 0, 2])
    sent = only(effects, Enqueue)
    assert np.bincount(sent.machines, minlength=3).max() <= 2
    assert sent.machines.tolist().count(0) <= 1
    assert 1 not in sent.machines.tolist()
    left = 4 - len(sent.tasks)
    assert len(only(effects, Explain).tasks) == left
    assert only(effects, AskQueues).until_room.tolist() == [0, 1, 2]


@YAQS
def test_a_machine_that_joined_while_queues_were_reported_has_room(name: str) -> None:
    engine, cell = an_engine(name), cell_of(4)
    asked = only(submit(engine, cell, job("a", 1), 0), AskQueues)
    joins = AddMachine(Machine("m1", Resources(4_000, 64 * GIB)))
    cell.commit(Transaction(OPERATOR, machines=(joins,)))
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    effects = engine.handle(QueuesReported(asked.token, one, one, none), cell, 0)
    assert only(effects, Enqueue).machines.tolist() == [1]


def test_both_limits_hold() -> None:
    engine, cell = an_engine("yaq-d", limit=2), cell_of(4, 4, 4)
    effects = place(engine, cell, job("a", 1), 0, lengths=[2, 0, 0], room=[5, 0, 5])
    assert only(effects, Enqueue).machines.tolist() == [2]


def test_jitter_is_at_most_as_large_as_set_in_whole_steps() -> None:
    fine, coarse = (an_engine("yaq-d", jitter=30, jitter_step=step) for step in (1, 10))
    assert isinstance(fine, YaqD)
    drawn = fine.noise(2_000)
    assert drawn is not None
    assert (drawn.min(), drawn.max()) == (0, 30)
    drawn = coarse.noise(200)
    assert set((drawn - np.arange(200)).tolist()) == {0, 10, 20, 30}
    assert an_engine("yaq-d").noise(5) is None


def test_a_sparrow_that_thinks_forgets_what_is_cancelled_meanwhile() -> None:
    engine, cell, made = an_engine("sparrow", t_job=100, t_task=10), cell_of(4), job("a", 3)
    thinking = only(submit(engine, cell, made, 0), Think)
    assert thinking.duration == 130
    engine.handle(JobCancelled(made.job, 0, tasks_of(0, 0, 1, 2)), cell, 0)
    assert not engine.handle(DecisionDue(thinking.token), cell, 130)


def test_a_sparrow_cancels_left_over_probes_and_repeats_machines_as_set() -> None:
    for is_set in (False, True):
        same = 0
        for seed in range(12):
            engine = an_engine("sparrow", seed, cancel=is_set, repeated=is_set)
            probe = only(submit(engine, cell_of(4, 4), job("a", 1), 0), Probe)
            assert probe.cancel is is_set
            same += len(set(probe.machines.tolist())) == 1
        assert (same > 0) is is_set


@pytest.mark.parametrize(("estimate", "expected"), [(None, 0), (7 * SECOND, 7 * SECOND)])
def test_a_task_that_comes_back_is_sent_with_its_estimate_if_it_has_one(
    estimate: int | None, expected: int
) -> None:
    engine, cell = an_engine("sparrow"), cell_of(4)
    made = Job("a", (TaskGroup(1, Resources(1_000, GIB), estimate=estimate),))
    back = TasksLost(made, 0, tasks_of(0, 0), np.zeros(1, np.int32), Why.QUEUE_FULL)
    asked = only(engine.handle(back, cell, 0), AskQueues)
    assert only(report(engine, cell, asked, room=[3]), Probe).estimate == expected


def test_an_eagle_repeats_machines_only_if_that_is_set() -> None:
    for is_set in (False, True):
        same = 0
        for seed in range(12):
            engine = an_engine("eagle", seed, repeated=is_set)
            probe = only(place(engine, cell_of(4, 4), job("a", 1), 0), Probe)
            same += len(set(probe.machines.tolist())) == 1
        assert (same > 0) is is_set


def test_draws_without_repetition_are_of_different_machines_as_far_as_possible() -> None:
    machines = np.arange(10, dtype=np.int32)
    for seed in range(20):
        assert len(set(draw(machines, 7, Random(seed), repeated=False).tolist())) == 7
        counts = np.bincount(draw(machines, 23, Random(seed), repeated=False), minlength=10)
        assert sorted(counts.tolist()) == [2] * 7 + [3] * 3


@pytest.mark.parametrize(
    ("share", "machines", "expected"), [(0.07, 100, 7), (0.5, 3, 2), (0.98, 10, 10), (1.0, 4, 4)]
)
def test_a_share_of_the_machines_is_rounded_up_but_for_errors_of_binary_numbers(
    share: float, machines: int, expected: int
) -> None:
    assert share_of(share, machines) == expected


def test_a_machine_that_joined_counts_before_its_news_have_come() -> None:
    cell, known, made = cell_of(4), Candidates(), job("a", 1).job
    assert known.of(made, made.groups[0], cell).tolist() == [0]
    joins = AddMachine(Machine("m1", Resources(4_000, 64 * GIB)))
    cell.commit(Transaction(OPERATOR, machines=(joins,)))
    assert known.of(made, made.groups[0], cell).tolist() == [0, 1]


@pytest.mark.parametrize("name", ["hawk", "eagle"])
def test_lost_machines_of_the_partitions_are_forgotten(name: str) -> None:
    engine, cell = an_engine(name, cutoff=60 * SECOND, long_share=0.5), cell_of(4, 4, 4, 4)
    long, where = job("long", 1, seconds=100), np.zeros(1, np.int32)

    def waits_at(number: int) -> list[int]:
        back = TasksLost(long.job, number, tasks_of(number, 0), where, Why.QUEUE_FULL)
        asked = of(engine.handle(back, cell, 0), AskQueues)
        assert all(each.which == "long" for each in asked)
        return [machine for each in asked for machine in each.until_room.tolist()]

    assert waits_at(0) == [2, 3]
    engine.handle(JobCancelled(long.job, 0, tasks_of(0, 0)), cell, 0)
    cell.commit(Transaction(OPERATOR, machines=(RemoveMachine(2),)))
    engine.handle(MachineLost(2), cell, 0)
    assert waits_at(1) == [3]


def test_where_all_have_long_tasks_eagle_probes_what_is_left_for_short_ones() -> None:
    engine, cell = an_engine("eagle", cutoff=60 * SECOND, long_share=0.5), cell_of(4, 4, 4, 4)
    assert isinstance(engine, Eagle)
    everywhere = {"lengths": [1, 1, 1, 1]}
    probe = only(place(engine, cell, job("a", 2, seconds=1), 0, **everywhere), Probe)
    assert set(probe.machines.tolist()) == {0, 1}
    cell.commit(Transaction(OPERATOR, machines=(RemoveMachine(0),)))
    engine.handle(MachineLost(0), cell, 0)
    probe = only(place(engine, cell, job("b", 2, seconds=1), 1, **everywhere), Probe)
    assert set(probe.machines.tolist()) == {1}


def test_an_eagle_that_knows_the_current_state_does_not_remember_where_long_tasks_were() -> None:
    engine, cell = an_engine("eagle", cutoff=60 * SECOND, long_share=1.0), cell_of(4, 4, 4, 4)
    waits = [0, 0, SECOND, SECOND]
    long = only(place(engine, cell, job("long", 2, seconds=100), 0, waits=waits), Enqueue)
    assert sorted(long.machines.tolist()) == [0, 1]
    # By now others have long tasks. All four are probed; two refuse, and tell which are free.
    now = {"lengths": [0, 0, 1, 1]}
    probe = only(place(engine, cell, job("a", 2, seconds=1), 1, **now), Probe)
    assert sorted(probe.machines.tolist()) == [0, 0, 1, 1]


def test_a_hawk_asks_machines_only_about_long_jobs() -> None:
    engine, cell = an_engine("hawk", cutoff=60 * SECOND), cell_of(4, 4)
    assert isinstance(engine, Hawk)
    assert only(submit(engine, cell, job("short", 1, seconds=1), 0), Probe)
    assert only(submit(engine, cell, job("long", 1, seconds=100), 1), AskQueues).which == "long"


def endless(name: str, tasks: int, **fields: Any) -> SimulatedJob:
    return job(name, tasks, seconds=None, **fields)


def answer(engine: Any, cell: Cell, commit: Commit, now: int = 0) -> Any:
    return engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, now)


def test_tasks_that_run_until_stopped_are_claimed_where_most_room_is() -> None:
    engine, cell = an_engine("sparrow"), cell_of(2, 8, 4)
    commit = only(submit(engine, cell, endless("a", 1), 0), Commit)
    assert commit.transaction.claims.machines.tolist() == [1]
    workers = shared_job("w", 1, (4,), (1,))
    assert only(submit(engine, cell, workers, 1), Commit)


def test_tasks_that_run_until_stopped_are_tried_again_every_second() -> None:
    engine, cell = an_engine("sparrow"), cell_of(1)
    take(cell, 0, 1)
    made = endless("a", 2)
    first = JobSubmitted(made.job, 0, tasks_of(0, 1))
    wake = only(engine.handle(first, cell, 0), WakeMe)
    assert wake.at == SECOND
    # A lost one joins the other; one timer serves both.
    lost = TasksLost(made.job, 0, tasks_of(0, 0), np.zeros(1, np.int32), Why.PREEMPTED)
    assert not of(engine.handle(lost, cell, 0), WakeMe)
    effects = engine.handle(TimerFired(wake.name), cell, SECOND)
    assert sorted(only(effects, Explain).tasks.tolist()) == tasks_of(0, 0, 1).tolist()
    assert only(effects, WakeMe).at == 2 * SECOND
    engine.handle(JobCancelled(made.job, 0, tasks_of(0, 0, 1)), cell, SECOND)
    assert not engine.handle(TimerFired(wake.name), cell, 2 * SECOND)


def test_a_refused_claim_of_a_task_that_was_cancelled_meanwhile_is_not_tried_again() -> None:
    for is_cancelled in (False, True):
        engine, cell, made = an_engine("sparrow"), cell_of(1), endless("a", 1)
        commit = only(submit(engine, cell, made, 0), Commit)
        if is_cancelled:
            engine.handle(JobCancelled(made.job, 0, tasks_of(0, 0)), cell, 0)
        take(cell, 0, 1)
        assert bool(of(answer(engine, cell, commit), WakeMe)) != is_cancelled


def test_tasks_in_line_for_a_machine_that_has_gone_are_told_when_machines_change() -> None:
    engine, cell = an_engine("sparrow"), cell_of(4, 4, m1={"disk": "ssd"})
    made = job("a", 2, requires={"disk": "ssd"})
    tasks, where = tasks_of(0, 0, 1), np.ones(2, np.int32)
    back = TasksLost(made.job, 0, tasks, where, Why.QUEUE_FULL)
    assert only(engine.handle(back, cell, 0), AskQueues).until_room.tolist() == [1]
    cell.commit(Transaction(OPERATOR, machines=(RemoveMachine(1),)))
    engine.handle(MachineLost(1), cell, 0)
    effects = engine.handle(MachineChanged(0), cell, 0)
    assert not of(effects, AskQueues)
    assert {task for each in of(effects, Explain) for task in each.tasks.tolist()} == {
        *tasks.tolist()
    }


def test_a_backlog_answers_only_open_questions_of_lines_that_have_tasks() -> None:
    backlog, work = Backlog(), (job("a", 2).job, 0, tasks_of(0, 0, 1))
    assert backlog.add(("kind",), work)
    assert not backlog.add(("kind",), work)
    backlog.asks(1, ("kind",))
    assert backlog.forget_questions() == [("kind",)]
    assert backlog.answered(1) is None
    backlog.asks(2, ("kind",))
    backlog.sent(("kind",), 1)
    head = backlog.head(("kind",))
    assert head is not None
    assert head[2].tolist() == tasks_of(0, 1).tolist()
    backlog.sent(("kind",), 1)
    backlog.sent(("kind",), 2)
    assert backlog.answered(2) is None
    assert not backlog
    assert ("kind",) not in backlog


def test_among_equal_queues_with_room_chance_decides() -> None:
    machines, room = np.arange(4, dtype=np.int32), np.ones(4, np.int64)
    chosen = {int(with_room(machines, room, 1, Random(seed))[0]) for seed in range(16)}
    assert len(chosen) > 1
    waits = np.array([5, 1, 1, 9], np.int64)
    chosen = {int(with_room(machines, room, 1, Random(seed), waits)[0]) for seed in range(16)}
    assert chosen == {1, 2}
