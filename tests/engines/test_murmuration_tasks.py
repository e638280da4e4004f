"""Murmuration's tasks decided one by one, and how placements are told and read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_murmuration import a_cell, a_murmuration, end, only, place, submitted, whole

from argosy.cell import Cell
from argosy.cell.waits import feed
from argosy.engines.murmuration import Murmuration
from argosy.model.effects import Enqueue, Send, Think, WakeMe
from argosy.model.events import DecisionDue, Started, TimerFired
from argosy.model.machines import Machine
from argosy.model.messages import WaitUpdate
from argosy.model.resources import Resources
from argosy.model.tasks import first_tasks
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
from argosy.testing.builders import GIB, SECOND, job


def decide_all(engine: Murmuration, cell: Cell, effects: Any, now: int = 0) -> list[Any]:
    """Each decision takes its time; returns each instant's effects."""
    found = []
    while thinking := [effect for effect in effects if isinstance(effect, Think)]:
        now += thinking[0].duration
        effects = engine.handle(DecisionDue(thinking[0].token), cell, now)
        found.append((now, effects))
    return found


def test_tasks_can_be_decided_one_by_one_and_leave_one_by_one() -> None:
    engine, cell = a_murmuration(decide="task", gossip="task", t_job=100, t_task=10), a_cell(3)
    first = engine.handle(submitted(whole("a", 3, 50), 0), cell, 0)
    found = decide_all(engine, cell, first)
    assert [now for now, _ in found] == [110, 120, 130]
    assert [only(effects, Enqueue).tasks.tolist() for _, effects in found] == [[0], [1], [2]]
    assert [len(only(effects, Send).payload.tasks) for _, effects in found] == [1, 1, 1]


def test_a_task_is_placed_by_what_is_known_when_its_own_decision_ends() -> None:
    engine, cell = a_murmuration(decide="task"), a_cell(2)
    thinking = only(engine.handle(submitted(whole("a", 2, 50), 0), cell, 0), Think)
    effects = engine.handle(DecisionDue(thinking.token), cell, 0)
    placed = only(effects, Enqueue)
    end(engine, placed, 1, cell.shape(Resources(4_000, GIB)), 50)
    place_elsewhere = place_on_the_other(cell, placed.machines.tolist())
    feed(engine.waits, place_elsewhere, 0, 0)
    second = only(engine.handle(DecisionDue(only(effects, Think).token), cell, 0), Enqueue)
    assert second.machines.tolist() == placed.machines.tolist()


def place_on_the_other(cell: Cell, machines: list[int]) -> WaitUpdate:
    other = np.array([1 - machines[0]], np.int32)
    shape = cell.shape(Resources(4_000, GIB))
    request = cell.shape_request(shape)
    return WaitUpdate(
        first_tasks(9, 1), np.array([2], np.uint8), other, SECOND, shape, request, 1, 0
    )


def test_a_job_decided_task_by_task_may_still_be_one_message() -> None:
    engine, cell = a_murmuration(decide="task", gossip="job"), a_cell(3)
    found = decide_all(engine, cell, engine.handle(submitted(whole("a", 3, 50), 0), cell, 0))
    sends = [[e for e in effects if isinstance(e, Send)] for _, effects in found]
    assert [len(each) for each in sends] == [0, 0, 1]
    assert [len(update.tasks) for update in sends[2][0].payload.updates] == [1, 1, 1]


def test_placements_are_told_together_when_there_are_enough_of_them() -> None:
    engine, cell = a_murmuration(gossip="batch", batch_size=3), a_cell(8)
    assert not [e for e in place(engine, cell, whole("a", 2, 50), 0) if isinstance(e, Send)]
    told = only(place(engine, cell, whole("b", 2, 50), 1), Send).payload
    assert [len(update.tasks) for update in told.updates] == [2, 2]
    assert not [e for e in place(engine, cell, whole("c", 2, 50), 2) if isinstance(e, Send)]


def test_placements_are_told_together_when_their_time_has_come() -> None:
    engine, cell = a_murmuration(gossip="batch", batch_time=SECOND, anti_entropy=0), a_cell(8)
    wake = only(place(engine, cell, whole("a", 1, 50), 0), WakeMe)
    assert wake.at == SECOND
    assert not [e for e in place(engine, cell, whole("b", 1, 50), 1) if isinstance(e, WakeMe)]
    told = only(engine.handle(TimerFired(wake.name), cell, SECOND), Send).payload
    assert len(told.updates) == 2
    assert engine.handle(TimerFired(wake.name), cell, 2 * SECOND) == ()


def test_in_the_published_form_nothing_is_told_before_its_decision_ends() -> None:
    told = {
        "as_published": True,
        "gossip": "batch",
        "batch_time": SECOND,
        "t_job": 100,
        "t_task": 10,
    }
    engine, cell = a_murmuration(**told), a_cell(8)
    begun = engine.handle(submitted(whole("a", 2, 50), 0), cell, 0)
    assert only(begun, Enqueue).tasks.tolist() == [0, 1]
    assert not [effect for effect in begun if isinstance(effect, Send | WakeMe)]
    decided = engine.handle(DecisionDue(only(begun, Think).token), cell, 120)
    assert only(decided, WakeMe).at == 120 + SECOND
    told_now = only(engine.handle(TimerFired(only(decided, WakeMe).name), cell, 120 + SECOND), Send)
    assert [len(update.tasks) for update in told_now.payload.updates] == [2]


def test_a_scheduler_reads_messages_only_while_it_does_not_decide() -> None:
    """Reading takes 10; the scheduler is idle for 25, decides for 100, and is idle again."""
    engine, cell = a_murmuration(t_job=90, t_task=10, t_update=10), a_cell(4)
    engine.handle(Started(), cell, 0)
    peer = a_murmuration(gossip="task")
    gossip = only(place(peer, cell, whole("a", 4, 50), 0), Send).payload
    feed(engine.waits, gossip, 0, 0)
    thinking = only(engine.handle(submitted(whole("b", 1, 7), 1), cell, 25), Think)
    assert sum(engine.waits.work().tolist()) == 2 * 50 * SECOND
    engine.handle(DecisionDue(thinking.token), cell, 125)
    assert sum(engine.waits.work().tolist()) == (2 * 50 + 7) * SECOND
    engine.waits.settle(145)
    assert sum(engine.waits.work().tolist()) == (4 * 50 + 7) * SECOND


def test_a_message_takes_its_time_to_be_read_whatever_its_length() -> None:
    engine, cell = a_murmuration(t_update=10), a_cell(4)
    engine.handle(Started(), cell, 0)
    gossip = only(place(a_murmuration(), cell, whole("a", 4, 50), 0), Send).payload
    feed(engine.waits, gossip, 0, 0)
    engine.waits.settle(10)
    assert sum(engine.waits.work().tolist()) == 4 * 50 * SECOND


@pytest.mark.parametrize(("rule", "chosen"), [("share", 0), ("sum", 1)])
def test_the_expected_wait_may_be_the_plain_sum_of_estimates(rule: str, chosen: int) -> None:
    """Machine 0 has four slots and three long tasks, machine 1 one slot and one short one."""
    engine, cell = a_murmuration(expected_wait=rule), Cell(("cpu", "memory"))
    for at, cpu in enumerate((4_000, 1_000)):
        machine = Machine(f"m{at}", Resources(cpu, 64 * GIB))
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    small = job("small", 1, cpu=1_000, seconds=10)
    engine.handle(Started(), cell, 0)
    shape = cell.shape(Resources(1_000, small.groups[0].request.memory))
    for number, (where, seconds) in enumerate(((0, 40), (0, 40), (0, 40), (1, 100))):
        update = WaitUpdate(
            first_tasks(number + 5, 1),
            np.array([2], np.uint8),
            np.array([where], np.int32),
            seconds * SECOND,
            shape,
            cell.shape_request(shape),
            1,
            0,
        )
        feed(engine.waits, update, 0, 0)
    assert only(place(engine, cell, small, 0), Enqueue).machines.tolist() == [chosen]
