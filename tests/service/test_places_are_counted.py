"""Every place that a task got is counted once, also if it lost the one before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from test_service_parts import Turns, task

from argosy.service.event_log import EventLog, Position
from argosy.service.metrics import Metrics


@pytest.mark.parametrize(
    ("states", "scheduled", "unschedulable"),
    [
        (["queued", "running"], 1, 0),
        (["running", "pending", "running"], 2, 0),
        (["queued", "queued", "running"], 2, 0),
        # Its machine has left, and it starts at once on another one.
        (["queued", "pending", "running"], 2, 0),
        (["queued", "pending", "queued", "running", "pending", "running"], 3, 0),
        (["queued", "abandoned"], 1, 1),
    ],
)
def test_a_place_that_was_lost_does_not_count_for_the_next(
    states: list[str], scheduled: int, unschedulable: int
) -> None:
    changes = [task(0, "a", state) for state in states]
    events = SimpleNamespace(now=0, changes_after=lambda position: changes)
    world = SimpleNamespace(projection=SimpleNamespace(by_id={}))
    metrics = Metrics(SimpleNamespace(world=world), events, None)  # type: ignore[arg-type]
    metrics.turn_ended(0.5)
    assert (metrics.placed, metrics._attempts["unschedulable"]) == (scheduled, unschedulable)


@pytest.mark.parametrize("end", ["finished", "failed", "cancelled", "abandoned", "pending"])
def test_tasks_that_have_left_a_queue_are_not_remembered(end: str) -> None:
    changes = [task(0, "a", "queued", 0), task(0, "a", "queued", 1), task(0, "a", end, 1)]
    events = SimpleNamespace(now=0, changes_after=lambda position: changes)
    world = SimpleNamespace(projection=SimpleNamespace(by_id={}))
    metrics = Metrics(SimpleNamespace(world=world), events, None)  # type: ignore[arg-type]
    metrics.turn_ended(0.5)
    assert metrics._queued == {("a", 0)}


def test_a_log_without_turns_is_at_the_begin() -> None:
    store: Any = Turns()
    log = EventLog(store)
    assert str(log.now) == "0"
    assert log.position("0") == log.now == Position.parse("0")
    store.turns[1] = [task(0, "a", "running")]
    log.turn_ended()
    assert str(log.now) == "1"
    assert [str(place) for place, _ in log.after(Position.parse("0"), None)] == ["1.0", "1"]
