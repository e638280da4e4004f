"""Murmuration as a function from events to effects, without a world around it."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.murmuration import Murmuration, MurmurationSettings
from argosy.model.effects import Effect, Enqueue, Explain, Send, Think, WakeMe
from argosy.model.events import (
    DecisionDue,
    JobSubmitted,
    MachineJoined,
    MachineLost,
    MessageReceived,
    Started,
    TaskFinished,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
from argosy.testing.builders import GIB, SECOND, job, machines

PEERS = ("s-1", "s-2", "s-3")


def a_cell(count: int) -> Cell:
    cell = Cell(("cpu", "memory"), {"rack": ("r0", "r1")})
    changes = tuple(AddMachine(machine) for machine in machines(count))
    cell.commit(Transaction(OPERATOR, machines=changes))
    return cell


def a_murmuration(peers: tuple[str, ...] = PEERS, **settings: Any) -> Murmuration:
    return Murmuration(MurmurationSettings(**settings), Context("s-0", peers, Random(1)))


def submitted(submission: Job, number: int) -> JobSubmitted:
    tasks = np.arange(submission.tasks, dtype=np.int64) | (number << 32)
    return JobSubmitted(submission, number, tasks)


def only(effects: Any, kind: type[Effect]) -> Any:
    found = [effect for effect in effects if isinstance(effect, kind)]
    assert len(found) == 1, effects
    return found[0]


def place(engine: Murmuration, cell: Cell, submission: Job, number: int) -> Any:
    thinking = only(engine.handle(submitted(submission, number), cell, 0), Think)
    return engine.handle(DecisionDue(thinking.token), cell, 0)


def whole(name: str, tasks: int, seconds: float) -> Job:
    """Each task takes a machine of the builders' size for itself."""
    return job(name, tasks, cpu=4_000, seconds=seconds)


def test_every_task_goes_to_a_machine_of_its_own_while_there_are_any() -> None:
    engine, cell = a_murmuration(), a_cell(4)
    placed = only(place(engine, cell, whole("a", 4, 10), 0), Enqueue)
    assert sorted(placed.machines.tolist()) == [0, 1, 2, 3]


def test_a_full_cell_is_filled_where_the_expected_wait_is_smallest() -> None:
    engine, cell = a_murmuration(), a_cell(3)
    first = only(place(engine, cell, whole("long", 2, 100), 0), Enqueue).machines.tolist()
    short = only(place(engine, cell, whole("short", 1, 10), 1), Enqueue).machines.tolist()
    assert sorted(first + short) == [0, 1, 2]
    after = only(place(engine, cell, whole("next", 3, 10), 2), Enqueue).machines.tolist()
    assert after == short * 3


def test_placements_are_told_to_every_peer_in_one_message_and_they_avoid_them() -> None:
    engine, peer, cell = a_murmuration(), a_murmuration(), a_cell(4)
    effects = place(engine, cell, whole("a", 3, 10), 0)
    gossip = only(effects, Send)
    assert gossip.peers == PEERS
    peer.handle(MessageReceived("s-0", gossip.payload), cell, 0)
    taken = set(only(effects, Enqueue).machines.tolist())
    chosen = only(place(peer, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert set(chosen).isdisjoint(taken)


def finished(effect: Enqueue, cell: Cell, shape: int, seconds: int) -> TaskFinished:
    count = len(effect.tasks)
    estimates = np.full(count, seconds * SECOND, np.int64)
    return TaskFinished(effect.tasks, effect.machines, estimates, np.full(count, shape, np.int32))


def test_a_machine_whose_task_ended_is_chosen_again() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    placed = only(place(engine, cell, whole("a", 2, 50), 0), Enqueue)
    shape = cell.shape(Resources(4_000, GIB))
    end = finished(placed, cell, shape, 50)
    one = TaskFinished(end.tasks[:1], end.machines[:1], end.estimates[:1], end.shapes[:1])
    engine.handle(one, cell, 0)
    chosen = only(place(engine, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert chosen == placed.machines[:1].tolist()


def test_notices_that_come_twice_do_not_make_a_machine_look_less_than_empty() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    placed = only(place(engine, cell, whole("a", 1, 50), 0), Enqueue)
    end = finished(placed, cell, cell.shape(Resources(4_000, GIB)), 50)
    for _ in range(3):
        engine.handle(end, cell, 0)
    both = only(place(engine, cell, whole("b", 2, 10), 1), Enqueue).machines.tolist()
    assert sorted(both) == [0, 1]


def test_the_shortest_job_can_come_first() -> None:
    engine, cell = a_murmuration(order="shortest-job"), a_cell(4)
    first = only(engine.handle(submitted(whole("now", 1, 10), 0), cell, 0), Think)
    engine.handle(submitted(whole("long", 3, 100), 1), cell, 0)
    engine.handle(submitted(whole("short", 2, 5), 2), cell, 0)
    following = only(engine.handle(DecisionDue(first.token), cell, 0), Think)
    assert following.job == 2


def test_a_scheduler_that_starts_again_takes_its_view_from_the_first_of_two_peers() -> None:
    peer, engine, cell = a_murmuration(), a_murmuration(), a_cell(2)
    taken = only(place(peer, cell, whole("a", 1, 50), 0), Enqueue).machines.tolist()
    asked = only(engine.handle(Started(again=True), cell, 0), Send)
    assert len(set(asked.peers)) == 2
    answer = only(peer.handle(MessageReceived("s-0", asked.payload), cell, 0), Send)
    assert answer.peers == ("s-0",)
    engine.handle(MessageReceived("s-1", answer.payload), cell, 0)
    chosen = only(place(engine, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert chosen != taken


def test_a_task_larger_than_every_machine_waits_for_one_that_joins() -> None:
    engine, cell = a_murmuration(), a_cell(1)
    explained = only(place(engine, cell, job("giant", 1, cpu=8_000), 0), Explain)
    assert explained.explanation.nearest_miss.lacking == 4_000
    large = machines(2, cpu=16_000)[1]
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(large),)))
    thinking = only(engine.handle(MachineJoined(1), cell, 0), Think)
    placed = only(engine.handle(DecisionDue(thinking.token), cell, 0), Enqueue)
    assert placed.machines.tolist() == [1]


def test_a_lost_machine_holds_nothing_when_it_comes_back() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    place(engine, cell, whole("a", 2, 50), 0)
    engine.handle(MachineLost(1), cell, 0)
    chosen = only(place(engine, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert chosen == [1]


def test_lost_tasks_are_taken_off_everybodys_view() -> None:
    engine, peer, cell = a_murmuration(), a_murmuration(), a_cell(2)
    whole_cell = whole("a", 2, 50)
    effects = place(engine, cell, whole_cell, 0)
    placed = only(effects, Enqueue)
    peer.handle(MessageReceived("s-0", only(effects, Send).payload), cell, 0)
    lost = TasksLost(whole_cell, 0, placed.tasks[:1], placed.machines[:1], Why.NO_ROOM)
    removed = only(engine.handle(lost, cell, 0), Send)
    peer.handle(MessageReceived("s-0", removed.payload), cell, 0)
    chosen = only(place(peer, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist()
    assert chosen == placed.machines[:1].tolist()


def test_a_scheduler_whose_questions_were_lost_goes_on_and_answers_others() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    asked = engine.handle(Started(again=True), cell, 0)
    question = only(asked, Send).payload
    assert engine.handle(MessageReceived("s-1", question), cell, 0) == ()
    wake = only(asked, WakeMe)
    engine.handle(TimerFired(wake.name), cell, wake.at)
    assert only(engine.handle(MessageReceived("s-1", question), cell, wake.at), Send)


def test_an_answer_does_not_wipe_out_what_was_placed_since() -> None:
    peer, engine, cell = a_murmuration(), a_murmuration(), a_cell(2)
    question = only(engine.handle(Started(again=True), cell, 0), Send).payload
    answer = only(peer.handle(MessageReceived("s-0", question), cell, 0), Send).payload
    own = only(place(engine, cell, whole("a", 1, 50), 0), Enqueue).machines.tolist()
    engine.handle(MessageReceived("s-1", answer), cell, 0)
    assert only(place(engine, cell, whole("b", 1, 10), 1), Enqueue).machines.tolist() != own
