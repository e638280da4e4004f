"""When a world on this computer has something to do next: unsaved things, restarts and events."""

from __future__ import annotations

import heapq
from types import SimpleNamespace
from typing import Any

import pytest

from argosy.worlds.local.world import LocalWorld


def world(
    restarts: list[int], event: int | None, *, unsaved: bool = False, now: int = 50
) -> LocalWorld:
    made = object.__new__(LocalWorld)
    told: Any = made
    told._unsaved = SimpleNamespace(is_empty=not unsaved)
    told._clock = lambda: now
    told._restarts = [(at, number) for number, at in enumerate(restarts)]
    heapq.heapify(told._restarts)
    runtime = SimpleNamespace(has_events=event is not None, next_at=event)
    told.host = SimpleNamespace(runtime=runtime)
    return made


@pytest.mark.parametrize(
    ("restarts", "event", "due"),
    [
        ([], None, None),
        ([], 70, 70),
        ([], 0, 0),
        ([60], None, 60),
        ([90, 60, 80], None, 60),
        ([60], 70, 60),
        ([90, 80], 70, 70),
        ([70], 70, 70),
    ],
)
def test_the_earliest_of_all_is_due(
    restarts: list[int], event: int | None, due: int | None
) -> None:
    assert world(restarts, event).next_due() == due
    # What is not saved is to be saved at once.
    assert world(restarts, event, unsaved=True).next_due() == 50


def test_new_ids_pass_over_those_that_are_taken_or_given_out() -> None:
    made: Any = world([], None)
    made.projection = SimpleNamespace(next_seq=7)
    made._new_ids = {"a", "b"}
    taken = {"job-9", "job-10", "job-12"}
    made.job_seq = lambda name: 1 if name in taken else None
    assert made.new_id() == "job-11"
    made._new_ids = set()
    assert made.new_id() == "job-7"
    # Asking for an id takes none.
    assert made.new_id() == "job-7"
