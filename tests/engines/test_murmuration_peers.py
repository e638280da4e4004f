"""What Murmuration's schedulers ask of each other, and what they answer."""

from __future__ import annotations

import numpy as np
import pytest
from test_murmuration import a_cell, a_murmuration, only, place, submitted, whole

from argosy.cell import Cell
from argosy.cell.waits import feed
from argosy.model.effects import Enqueue, Send, WakeMe
from argosy.model.events import DecisionDue, MessageReceived, Started, TimerFired
from argosy.model.messages import AskWaits, Digest, Digests, Repair, Waits
from argosy.testing.builders import SECOND


def view_of(cell: Cell, name: str, number: int) -> Waits:
    """The view of a scheduler that has placed one task for 50 s."""
    peer = a_murmuration()
    place(peer, cell, whole(name, 1, 50), number)
    answer = only(peer.handle(MessageReceived("s-0", AskWaits()), cell, 0), Send).payload
    assert isinstance(answer, Waits)
    return answer


def test_a_restarted_scheduler_uses_only_the_first_view_that_comes() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    engine.handle(Started(again=True), cell, 0)
    engine.handle(MessageReceived("s-1", view_of(cell, "a", 0)), cell, 0)
    known = engine.waits.work().tolist()
    engine.handle(MessageReceived("s-2", view_of(cell, "b", 1)), cell, 0)
    assert engine.waits.work().tolist() == known
    assert sum(known) == 50 * SECOND


@pytest.mark.parametrize("as_published", [False, True])
def test_a_restarted_scheduler_counts_once_what_it_heard_while_it_was_asking(
    as_published: bool,
) -> None:
    peer, engine, cell = (
        a_murmuration(as_published=as_published),
        a_murmuration(as_published=as_published),
        a_cell(1),
    )
    engine.handle(Started(again=True), cell, 0)
    placed = [
        *peer.handle(submitted(whole("a", 1, 100), 0), cell, SECOND),
        *peer.handle(DecisionDue(0), cell, SECOND),
    ]
    feed(engine.waits, only(placed, Send).payload, SECOND, SECOND)
    answer = only(peer.handle(MessageReceived("s-0", AskWaits()), cell, 2 * SECOND), Send)
    engine.handle(MessageReceived("s-1", answer.payload), cell, 3 * SECOND)
    engine.waits.settle(3 * SECOND)
    assert engine.waits.work().tolist() == peer.waits.work().tolist()


def test_a_scheduler_with_a_view_asks_nobody_when_the_time_out_comes() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    wake = only(engine.handle(Started(again=True), cell, 0), WakeMe)
    engine.handle(MessageReceived("s-1", view_of(cell, "a", 0)), cell, 0)
    assert engine.handle(TimerFired(wake.name), cell, wake.at) == []


def test_a_scheduler_without_a_view_compares_it_with_nobody() -> None:
    engine, cell = a_murmuration(), a_cell(2)
    engine.handle(Started(again=True), cell, 0)
    jobs, digests = np.array([7], np.int64), np.array([1], np.uint64)
    assert engine.handle(MessageReceived("s-1", Digest(1)), cell, 0) == []
    assert engine.handle(MessageReceived("s-1", Digests(jobs, digests)), cell, 0) == []


def test_answers_are_spread_over_the_whole_delay() -> None:
    engine, cell = a_murmuration(answer_delay=3 * SECOND), a_cell(1)
    asked = (engine.handle(MessageReceived("s-1", AskWaits()), cell, 0) for _ in range(60))
    delays = [only(effects, WakeMe).at for effects in asked]
    assert min(delays) < SECOND
    assert 2 * SECOND < max(delays) <= 3 * SECOND


def test_a_repair_is_answered_with_the_same_jobs_and_no_others() -> None:
    mine, theirs, cell = a_murmuration(), a_murmuration(), a_cell(4)
    for number in range(3):
        place(mine, cell, whole(f"j{number}", 1, 50), number)
    place(theirs, cell, whole("j1", 1, 50), 1)
    jobs = np.array([1], np.int64)
    view = only(theirs.handle(MessageReceived("s-0", AskWaits()), cell, 0), Send).payload
    repair = MessageReceived("s-1", Repair(jobs, view.state, is_answer=False))
    answer = only(mine.handle(repair, cell, 0), Send).payload
    assert isinstance(answer, Repair)
    assert answer.is_answer
    assert answer.state.jobs.tolist() == [1]


def test_only_one_comparison_is_scheduled_at_a_time() -> None:
    engine, cell = a_murmuration(anti_entropy=SECOND), a_cell(2)
    first = engine.handle(submitted(whole("a", 1, 10), 0), cell, 0)
    assert only(first, WakeMe).at == SECOND
    second = engine.handle(submitted(whole("b", 1, 10), 1), cell, 0)
    assert not [effect for effect in second if isinstance(effect, WakeMe)]


def test_the_published_form_never_compares_views() -> None:
    engine, cell = a_murmuration(as_published=True), a_cell(2)
    effects = engine.handle(submitted(whole("a", 1, 10), 0), cell, 0)
    assert only(effects, Enqueue)
    assert not [effect for effect in effects if isinstance(effect, WakeMe)]


def test_a_scheduler_without_peers_neither_asks_nor_compares() -> None:
    engine, cell = a_murmuration(peers=()), a_cell(2)
    assert not engine.handle(Started(again=True), cell, 0)
    effects = place(engine, cell, whole("a", 1, 10), 0)
    assert [type(effect) for effect in effects] == [Enqueue]
