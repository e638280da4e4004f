"""From one try of a task to the next."""

from __future__ import annotations

from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.local.handover import Handover, StoppingTry
from argosy.worlds.local.turn import PlannedLaunch, TryResult

GROUP = TaskGroup(3, Resources(1, 1), execution=Execution(("true",)))
JOB = Job("a", (GROUP,))


def planned(index: int) -> PlannedLaunch:
    return PlannedLaunch(1, JOB, index, Machine("m", Resources(1, 1)))


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
