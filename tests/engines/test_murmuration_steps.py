"""Murmuration step by step: what placements say, what is taken off the view, who is tried again, and
what is learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import tasks_of
from test_murmuration import a_cell, a_murmuration, only, place, submitted, whole

from argosy.engines.murmuration.estimates import ENOUGH, Learner
from argosy.model.effects import Enqueue, Explain, Pace, Send, Think, WakeMe
from argosy.model.events import (
    DecisionDue,
    JobChanged,
    JobSubmitted,
    MachineLost,
    Started,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import SHORTEST_WAIT, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.messages import AskWaits
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, RelabelMachine, Transaction
from argosy.testing.builders import GIB, SECOND, job

SMALL = Resources(1_000, GIB)
WHOLE = Resources(4_000, GIB)


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def lost(made: Job, number: int, indices: list[int], machines: list[int], why: Why) -> TasksLost:
    return TasksLost(made, number, tasks_of(number, *indices), np.array(machines, np.int32), why)


def test_a_placement_says_what_it_was_chosen_from() -> None:
    engine, cell = a_murmuration(), a_cell(3)
    told = only(place(engine, cell, whole("a", 3, 50), 0), Enqueue)
    assert told.estimate is None
    assert told.pace is None
    assert (told.explanation.looked_at, told.explanation.feasible) == (3, 3)
    assert (told.explanation.rule, told.explanation.measure) == (SHORTEST_WAIT, "wait")
    assert (told.explanation.score, told.explanation.second_score) == (0, 0)
    busy = only(place(engine, cell, whole("b", 1, 50), 1), Enqueue).explanation
    assert (busy.score, busy.second_score) == (50 * SECOND, 50 * SECOND)
    engine, cell = a_murmuration(), a_cell(1)
    alone = only(place(engine, cell, whole("a", 1, 50), 0), Enqueue).explanation
    assert (alone.feasible, alone.second, alone.second_score) == (1, None, None)


def test_lost_tasks_of_every_group_are_taken_off() -> None:
    engine, cell = a_murmuration(peers=("s-1",)), a_cell(2)
    groups = (TaskGroup(1, WHOLE, estimate=5 * SECOND), TaskGroup(1, SMALL, estimate=SECOND))
    made = Job("a", groups)
    event = JobSubmitted(made, 0, tasks_of(0, 0, 1))
    thinking = only(engine.handle(event, cell, 0), Think)
    placed = of(engine.handle(DecisionDue(thinking.token), cell, 0), Enqueue)
    assert [each.tasks.tolist() for each in placed] == [
        tasks_of(0, 0).tolist(),
        tasks_of(0, 1).tolist(),
    ]
    assert engine.waits.work().any()
    where = [int(each.machines[0]) for each in placed]
    effects = engine.handle(lost(made, 0, [0, 1], where, Why.MACHINE_GONE), cell, 1)
    assert not engine.waits.work().any()
    sent = [each.payload for each in of(effects, Send)]
    assert [each.tasks.tolist() for each in sent] == [
        tasks_of(0, 0).tolist(),
        tasks_of(0, 1).tolist(),
    ]
    assert [each.machines.tolist() for each in sent] == [[-1], [-1]]
    assert [tuple(each.request) for each in sent] == [(4_000, GIB), (1_000, GIB)]
    assert only(effects, Think).job == 0


@pytest.mark.parametrize("why", [Why.QUEUE_FULL, Why.PREEMPTED])
def test_all_machines_with_full_queues_are_left_alone_and_no_others(why: Why) -> None:
    engine, cell = a_murmuration(), a_cell(3)
    made = whole("a", 3, 50)
    where = only(place(engine, cell, made, 0), Enqueue).machines.tolist()
    event = lost(made.job, 0, [0, 1], where[:2], why)
    thinking = only(engine.handle(event, cell, 0), Think)
    again = only(engine.handle(DecisionDue(thinking.token), cell, 0), Enqueue)
    expected = [where[2]] * 2 if why is Why.QUEUE_FULL else sorted(where[:2])
    assert sorted(again.machines.tolist()) == expected


def test_a_lost_machine_is_empty_and_takes_nothing() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    made = whole("a", 2, 50)
    where = only(place(engine, cell, made, 0), Enqueue).machines.tolist()
    assert engine.waits.work().all()
    assert engine.handle(MachineLost(where[0]), cell, 0) == ()
    assert engine.waits.work()[where].tolist() == [0, engine.waits.work()[where[1]]]
    assert engine.waits.work()[where[1]] > 0


def test_equal_jobs_come_in_order_of_arrival_and_shorter_ones_first() -> None:
    for order, expected in (("fcfs", [0, 1, 2, 3, 4]), ("shortest-job", [0, 4, 3, 1, 2])):
        engine, cell = a_murmuration(order=order), a_cell(4)
        jobs = [whole("first", 1, 9), whole("a", 2, 30), whole("b", 2, 30), whole("c", 1, 50)]
        effects: Any = ()
        for number, made in enumerate(jobs):
            effects = [*effects, *engine.handle(submitted(made, number), cell, 0)]
        # Two groups with 45 s of work together.
        groups = (
            TaskGroup(1, SMALL, estimate=5 * SECOND),
            TaskGroup(2, SMALL, estimate=20 * SECOND),
        )
        event = JobSubmitted(Job("d", groups), 4, tasks_of(4, 0, 1, 2))
        assert not of(engine.handle(event, cell, 0), Think)
        found = []
        while thinking := of(effects, Think):
            found.append(thinking[0].job)
            effects = engine.handle(DecisionDue(thinking[0].token), cell, 0)
        assert found == expected


def test_tasks_that_are_added_are_begun_and_removed_ones_are_not() -> None:
    engine, cell = a_murmuration(), a_cell(4)
    made = Job("a", (TaskGroup(2, WHOLE, estimate=SECOND),))
    nothing = tasks_of(0)[:0]
    removed = JobChanged(made, 0, nothing, tasks_of(0, 1))
    assert engine.handle(removed, cell, 0) == ()
    added = JobChanged(made, 0, tasks_of(0, 1), nothing)
    thinking = only(engine.handle(added, cell, 0), Think)
    assert thinking.duration == 100_000 + 5_000
    placed = only(engine.handle(DecisionDue(thinking.token), cell, 0), Enqueue)
    assert placed.tasks.tolist() == tasks_of(0, 1).tolist()


def test_all_that_found_no_machine_is_tried_again_by_one_timer() -> None:
    engine, cell = a_murmuration(retry=SECOND), a_cell(1)
    made = whole("a", 1, 50)
    [machine] = only(place(engine, cell, made, 0), Enqueue).machines.tolist()
    full = lost(made.job, 0, [0], [machine], Why.QUEUE_FULL)
    thinking = only(engine.handle(full, cell, 0), Think)
    effects = engine.handle(DecisionDue(thinking.token), cell, 7)
    assert only(effects, Explain).tasks.tolist() == tasks_of(0, 0).tolist()
    assert of(effects, WakeMe) == [WakeMe(7 + SECOND, "retry")]
    assert not of(place(engine, cell, whole("b", 1, 50), 1), WakeMe)
    thinking = only(engine.handle(TimerFired("retry"), cell, 7 + SECOND), Think)
    effects = engine.handle(DecisionDue(thinking.token), cell, 8 + SECOND)
    assert [thinking.job, only(effects, Think).job] == [0, 1]
    # A new timer for the new attempts.
    assert of(effects, WakeMe) == [WakeMe(8 + 2 * SECOND, "retry")]


def test_a_published_scheduler_lets_tasks_leave_one_by_one() -> None:
    engine, cell = a_murmuration(as_published=True, t_job=100, t_task=10), a_cell(3)
    effects = engine.handle(submitted(whole("a", 2, 50), 0), cell, 0)
    assert only(effects, Think).duration == 120
    placed = only(effects, Enqueue)
    assert placed.pace == Pace(110, 10)
    assert not of(effects, Send)
    told = only(engine.handle(DecisionDue(0), cell, 120), Send)
    assert told.payload.tasks.tolist() == tasks_of(0, 0, 1).tolist()


def test_each_set_of_requirements_has_its_number_until_its_machines_change() -> None:
    engine, cell = a_murmuration(locality=SECOND), a_cell(3)
    for machine, labels in ((0, {"disk": "ssd"}), (1, {"disk": "ssd", "data": "x"})):
        cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(machine, labels),)))
    plain = TaskGroup(1, SMALL)
    picky = TaskGroup(1, SMALL, requires={"disk": "ssd"})
    near = TaskGroup(1, SMALL, prefers={"data": "x"})
    both = TaskGroup(1, SMALL, requires={"disk": "ssd"}, prefers={"data": "x"})

    def seen(group: TaskGroup) -> tuple[int, Any, Any, int]:
        number, members, close, penalty = engine._eligible(group, cell)
        columns = [None if each is None else each.tolist() for each in (members, close)]
        return number, columns[0], columns[1], penalty

    assert seen(plain) == (0, None, None, 0)
    assert seen(picky) == (1, [1, 1, 0], None, 0)
    assert seen(near) == (2, None, [0, 1, 0], SECOND)
    assert seen(both) == (3, [1, 1, 0], [0, 1, 0], SECOND)
    assert seen(picky)[0] == 1
    # Other labels, the same machines; then other machines.
    cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(2, {"other": "1"}),)))
    assert [seen(each)[0] for each in (picky, near, both)] == [1, 2, 3]
    cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(2, {"disk": "ssd"}),)))
    assert seen(near)[0] == 2
    assert seen(picky) == (4, [1, 1, 1], None, 0)
    assert seen(both) == (5, [1, 1, 1], [0, 1, 0], SECOND)
    # Where data does not matter, tasks that only prefer are like any other.
    engine, cell = a_murmuration(), a_cell(3)
    assert seen(near) == (0, None, None, 0)


def test_a_restarted_scheduler_asks_two_peers_and_then_the_third() -> None:
    engine, cell = a_murmuration(ask_timeout=SECOND), a_cell(2)
    asked, wake = engine.handle(Started(again=True), cell, 5)
    assert (len(set(asked.peers)), asked.payload) == (2, AskWaits())
    assert wake == WakeMe(5 + SECOND, "ask 1")
    assert engine.handle(TimerFired("ask 0"), cell, 6) == []
    assert engine.handle(submitted(whole("a", 1, 5), 0), cell, 6) == [
        WakeMe(6 + 60 * SECOND, "compare")
    ]
    last, again = engine.handle(TimerFired("ask 1"), cell, wake.at)
    assert {*asked.peers, *last.peers} == {"s-1", "s-2", "s-3"}
    assert len(last.peers) == 1
    assert again == WakeMe(wake.at + SECOND, "ask 2")
    # Nobody is left: it begins with nothing.
    assert only(engine.handle(TimerFired("ask 2"), cell, again.at), Think).job == 0


class TestLearner:
    def ended(self, learner: Learner, number: int, *times: int) -> None:
        learner.learn(tasks_of(number, *range(len(times))), np.array(times, np.int64))

    def test_enough_runs_of_a_name_are_an_estimate_then_of_the_owner_then_of_all(self) -> None:
        learner = Learner(0.5)
        made = {
            name: job(name, ENOUGH, owner=owner).job
            for name, owner in (("web-1", "ann"), ("web-2", "ann"), ("db-1", "ann"), ("x", "bob"))
        }
        assert learner.estimate(made["web-1"], 0) is None
        self.ended(learner, 0, *range(10, 10 * ENOUGH, 10))
        # One too few.
        assert learner.estimate(made["web-2"], 1) is None
        assert learner.estimate(made["x"], 2) is None
        learner.learn(tasks_of(0, ENOUGH - 1), np.array([10 * ENOUGH], np.int64))
        middle = 10 * (ENOUGH + 1) // 2
        for number, name in enumerate(("web-1", "db-1", "x"), 10):
            assert learner.estimate(made[name], number) == middle
        # A job keeps the estimate that it had.
        assert learner.estimate(made["web-2"], 1) is None
        self.ended(learner, 11, *[1_000] * ENOUGH)
        assert learner.estimate(made["db-1"], 12) == middle
        assert learner.estimate(made["db-1"], 20) == 1_000
        assert learner.estimate(made["web-1"], 21) == middle

    def test_a_job_is_open_until_its_last_task_has_ended(self) -> None:
        learner, made = Learner(0.5), job("a", 2).job
        learner.estimate(made, 3)
        for count, number in ((1, 3), (1, 4), (1, 3), (5, 3)):
            self.ended(learner, number, *[7] * count)
        # Two of job 3 were learnt, and none of a job that nobody asked about or that was over.
        assert [len(times) for times in learner._times.values()] == [2, 2, 2]
        assert learner._open == {}

    @pytest.mark.parametrize(("quantile", "expected"), [(0.0, 1), (0.5, 3), (1.0, 5)])
    def test_errors_are_parts_of_the_time_taken(self, quantile: float, expected: int) -> None:
        learner = Learner(quantile)
        first, second = (job(name, ENOUGH).job for name in ("a1", "a2"))
        learner.estimate(first, 0)
        self.ended(learner, 0, *[5, 1, 2, 4, 3][:ENOUGH])
        assert learner.estimate(second, 1) == expected
        self.ended(learner, 1, 2 * expected)
        nothing = np.zeros(0, np.int64)
        told = {"estimates": 1.0, "estimate_error_p50": 0.5, "estimate_error_p90": 0.5}
        assert learner.figures(nothing, nothing) == told
        later = learner.figures(tasks_of(1, 1), np.array([expected], np.int64))
        assert (later["estimates"], later["estimate_error_p50"]) == (2.0, 0.25)
        assert learner.figures(nothing, nothing) == told
        # Those figures have counted no task as ended.
        self.ended(learner, 1, *[expected] * (ENOUGH - 1))
        assert learner.figures(nothing, nothing)["estimates"] == ENOUGH
