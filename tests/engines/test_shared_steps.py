"""Serial and queueing schedulers step by step: times of decisions, what several withdrawals leave, and
answers that come twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from queue_reports import PLENTY, of, report
from queue_reports import an_engine as by_name
from serial_attempts import cell_of, end, only, submit, take, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.omega import Omega, OmegaSettings
from argosy.engines.shared.failure_domains import over_domains
from argosy.engines.shared.precedence_queue import PrecedenceQueue
from argosy.engines.shared.serial import PendingJob
from argosy.engines.yaq_d import YaqD
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import AskQueues, Commit, Enqueue, Explain, Probe, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
from argosy.testing.builders import GIB, SECOND, job, machines

NOTHING = np.empty(0, np.int64)
SMALL = Resources(1_000, GIB)


def an_omega(*, keeps: bool = True, **settings: Any) -> Omega:
    context = Context("s", (), Random(1), keeps_explanations=keeps)
    return Omega(OmegaSettings(**settings), context)


def decide(engine: Any, cell: Cell, thinking: Think, now: int = 0) -> Any:
    return engine.handle(DecisionDue(thinking.token), cell, now)


@pytest.mark.parametrize("gang", [False, True])
@pytest.mark.parametrize("name", ["omega", "monolithic", "partitioned", "yarn", "mapreduce"])
def test_a_decision_takes_its_time_for_the_job_and_for_each_task(name: str, gang: bool) -> None:
    engine, cell = by_name(name, t_job=7, t_task=3), cell_of(4)
    assert submit(engine, cell, job("a", 3, gang=gang).job, 4) == (Think(16, 1, 4),)


@pytest.mark.parametrize("keeps", [False, True])
def test_what_finds_no_machine_is_told_whether_explanations_are_kept_or_not(keeps: bool) -> None:
    engine, cell = an_omega(keeps=keeps), cell_of(2)
    thinking = only(submit(engine, cell, job("a", 3).job, 0), Think)
    commit = only(decide(engine, cell, thinking), Commit)
    assert (commit.explanation is not None) is keeps
    assert commit.transaction.claims.tasks.tolist() == tasks_of(0, 0, 1).tolist()
    outcome = cell.commit(commit.transaction)
    effects = engine.handle(Committed(1, outcome), cell, 0)
    told, thinking = only(effects, Explain), only(effects, Think)
    waits = only(decide(engine, cell, thinking), WakeMe)
    assert waits == WakeMe(SECOND, "2")
    assert told.tasks.tolist() == tasks_of(0, 2).tolist()
    # The rest waits: nothing is left of the decision that the answer was to.
    assert engine.handle(Committed(1, outcome), cell, 0) == ()
    seen = told.explanation
    assert (seen.looked_at, seen.feasible, seen.rule) == (1, 1, "first fit")


def test_an_answer_that_comes_twice_counts_once() -> None:
    engine, cell = an_omega(), cell_of(4)
    thinking = only(submit(engine, cell, job("a").job, 0), Think)
    commit = only(decide(engine, cell, thinking), Commit)
    answer = Committed(commit.token, cell.commit(commit.transaction))
    assert engine.handle(answer, cell, 0) == ()
    assert engine.handle(answer, cell, 0) == ()
    thinking = only(submit(engine, cell, job("giant", cpu=64_000).job, 1), Think)
    effects = decide(engine, cell, thinking, 5)
    assert only(effects, WakeMe) == WakeMe(5 + SECOND, "2")
    assert engine.handle(Committed(thinking.token, answer.outcome), cell, 5) == ()


def test_several_withdrawals_during_a_commit_all_count() -> None:
    engine, cell = an_omega(), cell_of(4)
    thinking = only(submit(engine, cell, job("a", 4).job, 0), Think)
    commit = only(decide(engine, cell, thinking), Commit)
    for left in (3, 2):
        change = JobChanged(Job("a", (TaskGroup(left, SMALL),)), 0, NOTHING, tasks_of(0, left))
        assert engine.handle(change, cell, 0) == ()
    take(cell, 0, 4)
    outcome = cell.commit(commit.transaction)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    thinking = only(engine.handle(Committed(1, outcome), cell, 0), Think)
    assert thinking == Think(100_000 + 2 * 5_000, 2, 0)
    claims, effects = end(engine, cell, thinking)
    assert (claims.tasks.tolist(), effects) == (tasks_of(0, 0, 1).tolist(), ())


def test_a_job_that_shrinks_during_a_decision_in_vain_waits_with_what_is_left() -> None:
    engine, cell = an_omega(), cell_of(1)
    take(cell, 0, 1)
    thinking = only(submit(engine, cell, job("a", 3).job, 0), Think)
    smaller = Job("a", (TaskGroup(1, Resources(500, GIB)),))
    engine.handle(JobChanged(smaller, 0, NOTHING, tasks_of(0, 1, 2)), cell, 0)
    told, wake = decide(engine, cell, thinking)
    assert told.tasks.tolist() == tasks_of(0, 0).tolist()
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
    thinking = only(engine.handle(TimerFired(wake.name), cell, SECOND), Think)
    assert thinking.duration == 105_000
    claims, _ = end(engine, cell, thinking)
    # It is placed as it is by now.
    assert cell.shape_request(int(claims.shapes[0])) == (500, GIB)


def test_waits_double_until_something_is_placed() -> None:
    engine, cell = an_omega(backoff=10, t_job=0, t_task=0), cell_of(1)
    take(cell, 0, 1)
    thinking, waits = only(submit(engine, cell, job("a", 2).job, 0), Think), []
    for _ in range(8):
        _, effects = end(engine, cell, thinking)
        wake = only(effects, WakeMe)
        waits.append(wake.at)
        if len(waits) == 8:
            cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
        thinking = only(engine.handle(TimerFired(wake.name), cell, 0), Think)
    assert waits == [10, 20, 40, 80, 160, 320, 640, 640]
    # One of its tasks is placed: it is tried again at once, and waits for as long as at first.
    _, effects = end(engine, cell, thinking)
    _, effects = end(engine, cell, only(effects, Think))
    assert only(effects, WakeMe).at == 10


def test_conflicts_add_up_until_a_job_pushes_its_way() -> None:
    engine, cell = an_omega(patience=3), cell_of(1)
    effects, pushes = submit(engine, cell, job("a").job, 0), []
    for _ in range(4):
        commit = only(decide(engine, cell, only(effects, Think)), Commit)
        pushes.append(commit.transaction.preempt)
        take(cell, 0, 1)
        outcome = cell.commit(Transaction("s", commit.transaction.claims))
        assert not outcome.all_accepted
        cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
        effects = engine.handle(Committed(commit.token, outcome), cell, 0)
    assert pushes == [False, False, False, True]


@pytest.mark.parametrize(("cores", "is_claimed"), [(2, False), (3, True)])
def test_a_gang_without_room_for_all_claims_nothing(cores: int, is_claimed: bool) -> None:
    engine, cell = an_omega(), cell_of(cores)
    thinking = only(submit(engine, cell, job("a", 3, gang=True).job, 0), Think)
    effects = decide(engine, cell, thinking)
    assert bool(of(effects, Commit)) is is_claimed
    told = [each.tasks.tolist() for each in of(effects, Explain)]
    assert told == ([] if is_claimed else [tasks_of(0, 0, 1, 2).tolist()])


def test_tasks_kept_apart_stay_apart_in_later_attempts() -> None:
    rule = parse_constraint("appID:self -> {appID:self, 0, 0} in machine hard")
    engine, cell = an_omega(), cell_of(8)
    made = job("a", 2, constraints=(rule,)).job
    claims, effects = end(engine, cell, only(submit(engine, cell, made, 0), Think))
    assert claims.tasks.tolist() == tasks_of(0, 0).tolist()
    # There is room where the first one is, and still none for the second.
    claims, effects = end(engine, cell, only(effects, Think))
    assert claims is None
    machine = Machine("late", Resources(1_000, GIB))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    again = engine.handle(TimerFired(only(effects, WakeMe).name), cell, SECOND)
    claims, _ = end(engine, cell, only(again, Think))
    assert claims.machines.tolist() == [1]


def test_plain_tasks_are_spread_where_that_is_set() -> None:
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1")})
    joins = tuple(AddMachine(machine) for machine in machines(8))
    cell.commit(Transaction(OPERATOR, machines=joins))
    racks = {}
    for spread in ("", "rack"):
        engine = by_name("monolithic", spread=spread)
        commit = only(
            decide(engine, cell, only(submit(engine, cell, job("a", 4).job, 0), Think)), Commit
        )
        found = commit.transaction.claims.machines // 4
        racks[spread] = sorted(np.bincount(found, minlength=2).tolist())
    assert racks == {"": [0, 4], "rack": [2, 2]}
    # Groups without any sets are no reason to go anywhere.
    bare = Cell(("cpu", "memory"), {"rack": (), "feed": ()})
    for groups in ("", "rack", (), ("rack", "feed")):
        assert list(over_domains(groups, 3, bare, Random(1))) == []


class TestQueues:
    def test_a_short_job_does_not_wait_for_the_central_scheduler(self) -> None:
        engine, cell = by_name("hawk", t_job=100, cutoff=10 * SECOND), cell_of(4, 4)
        made = job("short", 1, seconds=5).job
        [probe] = engine.handle(JobSubmitted(made, 3, tasks_of(3, 0)), cell, 0)
        assert sorted(probe.machines.tolist()) == [0, 1]
        assert (probe.job, probe.request, probe.tasks.tolist()) == (
            3,
            SMALL,
            tasks_of(3, 0).tolist(),
        )
        assert (probe.sticky, probe.cancel) == (False, True)
        long = Job("long", (TaskGroup(1, SMALL, estimate=10 * SECOND + 1),))
        [thinking] = engine.handle(JobSubmitted(long, 4, tasks_of(4, 0)), cell, 0)
        assert thinking == Think(100, 4, 4)
        assert decide(engine, cell, thinking) == [AskQueues(1, False, "long")]

    @pytest.mark.parametrize("estimate", [None, 5])
    def test_a_probe_says_how_long_its_tasks_should_take_if_that_is_known(
        self, estimate: int | None
    ) -> None:
        cell = cell_of(4, 4)
        made = Job("a", (TaskGroup(1, SMALL, estimate=estimate),))
        for name, sticky in (("hawk", False), ("eagle", True), ("sparrow", False)):
            engine = by_name(name)
            effects = engine.handle(JobSubmitted(made, 0, tasks_of(0, 0)), cell, 0)
            if name == "eagle":
                effects = report(engine, cell, only(effects, AskQueues))
            probe = only(effects, Probe)
            assert (probe.estimate, probe.sticky, probe.cancel) == (estimate or 0, sticky, True)

    @pytest.mark.parametrize("name", ["yaq-c", "yaq-d"])
    def test_room_is_asked_for_only_where_tasks_may_go(self, name: str) -> None:
        engine, cell = by_name(name, share=0.5), cell_of(4, 4, 4, 4)
        made = job("a", 2).job
        where = np.zeros(2, np.int32)
        lost = TasksLost(made, 0, tasks_of(0, 0, 1), where, Why.QUEUE_FULL)
        told, asked = engine.handle(lost, cell, 0)
        assert isinstance(told, Explain)
        assert (asked.latest, asked.which, asked.until_room.tolist()) == (False, "all", [2, 3])
        # One of these two has room, for one task; the other asks again.
        sent, again = report(engine, cell, asked, room=[9, 9, 0, 1])
        assert (sent.tasks.tolist(), sent.machines.tolist()) == (tasks_of(0, 0).tolist(), [3])
        assert (again.token, again.until_room.tolist()) == (asked.token + 1, [2, 3])
        # An answer to the first question is old.
        assert report(engine, cell, asked, room=[9, 9, 9, 9]) == ()

    def test_what_machines_report_is_compared_with_its_noise(self) -> None:
        class Noisy(YaqD):
            def noise(self, machines: int) -> Any:
                return np.array([30, 0, 30], np.int64)

        engine = Noisy(by_name("yaq-d")._settings, Context("s", (), Random(1)))
        cell = cell_of(4, 4, 4)
        for number, (waits, machine) in enumerate((([5, 20, 5], 1), ([5, 40, 6], 0))):
            asked = only(submit_tasks(engine, cell, 1, number), AskQueues)
            assert asked.latest
            sent = only(report(engine, cell, asked, waits=waits), Enqueue)
            assert sent.machines.tolist() == [machine]

    def test_tasks_that_require_the_same_stand_in_one_line(self) -> None:
        engine, cell = by_name("sparrow"), cell_of(4, m0={"a": "1", "b": "2"})
        kinds = set()
        for requires in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "1"}, {}):
            group = TaskGroup(1, SMALL, requires=requires)
            kinds.add(engine.kind_of(Job("j", (group,)), group, cell))
        assert len(kinds) == 3

    def test_a_task_that_no_machine_can_take_is_told_what_the_largest_lacks(self) -> None:
        engine, cell = by_name("sparrow"), cell_of(4, 2)
        take(cell, 0, 4)
        [told] = engine.handle(
            JobSubmitted(job("giant", cpu=8_000).job, 0, tasks_of(0, 0)), cell, 0
        )
        miss = told.explanation.nearest_miss
        assert (miss.machine, miss.dimension, miss.lacking) == (0, "cpu", 4_000)

    def test_every_endless_group_of_a_job_is_claimed_and_the_others_are_queued(self) -> None:
        engine, cell = by_name("sparrow"), cell_of(4, 4)
        groups = (
            TaskGroup(1, SMALL, endless=True),
            TaskGroup(1, SMALL, estimate=5),
            TaskGroup(1, Resources(9_000, GIB), endless=True),
            TaskGroup(2, Resources(2_000, GIB), endless=True),
        )
        made = Job("a", groups)
        effects = engine.handle(JobSubmitted(made, 0, tasks_of(0, *range(5))), cell, 3)
        told, wake, commit, probe = effects
        assert told.tasks.tolist() == tasks_of(0, 2).tolist()
        assert wake.at == 3 + SECOND
        assert sorted(commit.transaction.claims.tasks.tolist()) == tasks_of(0, 0, 3, 4).tolist()
        assert probe.tasks.tolist() == tasks_of(0, 1).tolist()
        engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 3)
        # The one without room is cancelled with the others: there is nothing to try again.
        engine.handle(JobCancelled(made, 0, tasks_of(0, *range(5))), cell, 4)
        assert engine.handle(TimerFired(wake.name), cell, wake.at) == []

    def test_room_for_some_of_a_job_is_used_in_order_of_arrival(self) -> None:
        engine, cell = by_name("yaq-c"), cell_of(4, 4)
        asked = only(submit_tasks(engine, cell, 3, 0), AskQueues)
        sent, told, again = report(engine, cell, asked, room=[1, 1])
        assert sent.tasks.tolist() == tasks_of(0, 0, 1).tolist()
        assert sorted(sent.machines.tolist()) == [0, 1]
        assert told.tasks.tolist() == tasks_of(0, 2).tolist()
        assert again.until_room.tolist() == [0, 1]
        [last] = report(engine, cell, again, room=[0, PLENTY])
        assert (last.tasks.tolist(), last.machines.tolist()) == (tasks_of(0, 2).tolist(), [1])


def submit_tasks(engine: Any, cell: Cell, count: int, number: int) -> Any:
    made = job(f"j{number}", count).job
    return engine.handle(JobSubmitted(made, number, tasks_of(number, *range(count))), cell, 0)


def test_a_queue_by_precedence_keeps_the_order_of_arrival_among_equals() -> None:
    def work(number: int, precedence: int) -> PendingJob:
        made = Job(f"j{number}", (TaskGroup(1, SMALL),), precedence=precedence)
        return PendingJob(made, number, tasks_of(number, 0))

    works = [work(number, precedence) for number, precedence in enumerate((0, 5, 0, -3, 5))]
    queue = PrecedenceQueue(works[:3])
    for each in works[3:]:
        queue.append(each)
    assert (len(queue), [each.number for each in queue]) == (5, [1, 4, 0, 2, 3])
    assert [queue.popleft().number for _ in range(3)] == [1, 4, 0]
    queue.append(work(5, 5))
    assert [queue.popleft().number for _ in range(3)] == [5, 2, 3]
    assert (len(queue), list(queue)) == (0, [])


def test_spread_tells_each_group_what_it_lacks_and_a_gang_who_waits_for_whom() -> None:
    for gang in (False, True):
        engine, cell = by_name("spread"), cell_of(2, 3)
        groups = (TaskGroup(2, SMALL), TaskGroup(2, Resources(2_000, GIB)))
        thinking = only(submit(engine, cell, Job("a", groups, gang=gang), 0), Think)
        assert thinking.duration == 1_000 + 4 * 100
        claims, effects = end(engine, cell, thinking)
        told = {}
        for each in of(effects, Explain):
            told[tuple(each.tasks.tolist())] = each.explanation.rule
        if gang:
            assert claims is None
            assert sorted(task for tasks in told for task in tasks) == (
                tasks_of(0, 0, 1, 2, 3).tolist()
            )
        else:
            assert claims.tasks.tolist() == tasks_of(0, 0, 1, 2).tolist()
            assert sorted(claims.machines.tolist()) == [0, 1, 1]
            assert told == {tuple(tasks_of(0, 3).tolist()): "fewest tasks"}
