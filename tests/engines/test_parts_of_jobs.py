"""Jobs of which a part may be placed at once: what is left is tried next, with what found no room."""

from __future__ import annotations

from typing import Any

from serial_attempts import cell_of, end, only, submit, tasks_of
from test_serial_details import an_omega

from argosy.cell import View
from argosy.model.effects import Abandon, Explain, Think
from argosy.model.jobs import Job, index_of
from argosy.model.resources import Resources
from argosy.model.transactions import TaskArray
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND

CORE = Resources(1_000, GIB)


def grouped() -> Job:
    groups = [group_with_truth(count, CORE, (SECOND,), tags=(f"t{count}",)) for count in (1, 4)]
    return simulated_job("a", *groups).job


def first(count: int) -> Any:
    def part(work: Any, view: View) -> TaskArray:
        return work.tasks[:count]

    return part


def indices(claims: Any) -> list[int]:
    return [] if claims is None else [index_of(task) for task in claims.tasks.tolist()]


def test_the_next_part_follows_at_once() -> None:
    engine, cell = an_omega(attempts=1), cell_of(8)
    engine.part = first(2)  # type: ignore[method-assign]
    thinking, found = only(submit(engine, cell, grouped(), 0), Think), []
    for _ in range(3):
        claims, effects = end(engine, cell, thinking)
        found.append(indices(claims))
        thinking = next((each for each in effects if isinstance(each, Think)), thinking)
        # A part that is placed whole is no attempt that failed.
        assert not [each for each in effects if isinstance(each, Abandon | Explain)]
    assert found == [[0, 1], [2, 3], [4]]


def test_what_found_no_room_is_tried_before_the_rest() -> None:
    engine, cell = an_omega(), cell_of(2)
    engine.part = first(3)  # type: ignore[method-assign]
    claims, effects = end(engine, cell, only(submit(engine, cell, grouped(), 0), Think))
    assert indices(claims) == [0, 1]
    told = [each.tasks.tolist() for each in effects if isinstance(each, Explain)]
    assert told == [tasks_of(0, 2).tolist()]
    # It is tried again at once.
    work = engine._deciding
    assert work is not None
    assert [index_of(task) for task in work.tasks.tolist()] == [2, 3, 4]


def test_a_part_that_is_all_leaves_nothing() -> None:
    engine, cell = an_omega(), cell_of(8)
    engine.part = first(5)  # type: ignore[method-assign]
    claims, effects = end(engine, cell, only(submit(engine, cell, grouped(), 0), Think))
    assert indices(claims) == [0, 1, 2, 3, 4]
    assert not effects
    assert not [*engine._queue, *engine._waiting.values()]
