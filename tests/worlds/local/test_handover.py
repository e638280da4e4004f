"""From one try of a task to the next."""

from __future__ import annotations

import pytest

from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.local.handover import Handover, StoppingTry
from argosy.worlds.local.turn import PlannedLaunch, TryResult

GROUP = TaskGroup(3, Resources(1, 1), execution=Execution(("true",)))
JOB = Job("a", (GROUP,))


def planned(index: int, seq: int = 1) -> PlannedLaunch:
    return PlannedLaunch(seq, JOB, index, Machine("m", Resources(1, 1)))


def ready(handover: Handover) -> list[tuple[int, int, TryResult | None]]:
    return [(number, former, end) for number, _, former, end in handover.ready()]


def test_ends_that_are_taken_over_may_be_asked_for_while_others_are_told() -> None:
    handover = Handover()
    for index in range(3):
        handover.stop(StoppingTry(index + 1, 1, index, True))
        handover.ended(index + 1, TryResult(0))
    handover.hold({10 + index: planned(index) for index in range(3)})
    taken = []
    for number, _, former, end in handover.ready():
        taken.append((number, former, end))
        taken += [(other, before, how) for other, _, before, how in handover.ready()]
    assert taken == [(10 + index, index + 1, TryResult(0)) for index in range(3)]
    assert list(handover.take_gone()) == [1, 2, 3]
    assert list(handover.take_gone()) == []


@pytest.mark.parametrize(
    ("stopping", "waits"),
    [
        (StoppingTry(1, 1, 0, True), True),
        (StoppingTry(1, 1, 0, False), True),
        (StoppingTry(1, 1, 1, True), False),
        (StoppingTry(1, 2, 0, True), False),
    ],
)
def test_a_launch_waits_for_an_earlier_try_of_the_same_task(
    stopping: StoppingTry, waits: bool
) -> None:
    handover = Handover()
    handover.stop(stopping)
    handover.hold({10: planned(0)})
    assert ready(handover) == ([] if waits else [(10, 0, None)])
    handover.ended(1, None)
    assert ready(handover) == ([(10, 0, None)] if waits else [])


@pytest.mark.parametrize(
    ("end", "is_wanted", "is_taken_over"),
    [
        (TryResult(3, "failed"), True, True),
        (TryResult(0), True, True),
        (TryResult(0), False, False),
        (TryResult(-15, "stopped", was_stopped=True), True, False),
        (None, True, False),
    ],
)
def test_only_an_end_by_itself_counts_for_the_next_try(
    end: TryResult | None, is_wanted: bool, is_taken_over: bool
) -> None:
    handover = Handover()
    handover.stop(StoppingTry(1, 1, 0, is_wanted))
    handover.ended(1, end)
    assert list(handover.take_gone()) == ([] if is_taken_over else [1])
    handover.hold({10: planned(0), 11: planned(1)})
    assert ready(handover) == [(10, 1, end) if is_taken_over else (10, 0, None), (11, 0, None)]
    assert list(handover.take_gone()) == ([1] if is_taken_over else [])
    handover.hold({12: planned(0)})
    assert ready(handover) == [(12, 0, None)], "once"


def test_a_try_that_nobody_stopped_leaves_no_trace() -> None:
    handover = Handover()
    handover.ended(1, TryResult(0))
    handover.hold({10: planned(0)})
    assert ready(handover) == [(10, 0, None)]
    assert list(handover.take_gone()) == []


def test_a_launch_can_be_taken_back_until_it_is_made() -> None:
    handover = Handover()
    handover.stop(StoppingTry(1, 1, 0, True))
    handover.hold({10: planned(0)})
    assert (handover.drop(10), handover.drop(10), handover.drop(11)) == (True, False, False)
    handover.ended(1, None)
    assert ready(handover) == []


def test_what_a_smaller_job_has_no_tasks_for_counts_for_nobody() -> None:
    handover = Handover()
    for number, seq, index in ((1, 1, 1), (2, 1, 2), (3, 2, 2), (4, 1, 3), (5, 1, 1)):
        handover.stop(StoppingTry(number, seq, index, True))
    handover.ended(4, TryResult(0))
    handover.ended(5, TryResult(0))
    handover.disown(1, 2)
    assert list(handover.take_gone()) == [4]
    for number in (1, 2, 3):
        handover.ended(number, TryResult(number))
    assert list(handover.take_gone()) == [2]
    handover.hold({11: planned(1), 12: planned(2), 13: planned(2, seq=2), 14: planned(3)})
    assert ready(handover) == [
        (11, 1, TryResult(1)),
        (12, 0, None),
        (13, 3, TryResult(3)),
        (14, 0, None),
    ]
