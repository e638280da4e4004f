"""The world of shared links: what its engine is told, and what becomes of its effects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.engines.api import Finishes
from argosy.model.effects import Probe, Think, WakeMe
from argosy.model.events import (
    DecisionDue,
    JobSubmitted,
    Started,
    TaskFinished,
    TimerFired,
    UsageObserved,
)
from argosy.model.jobs import task_number
from argosy.model.resources import Resources
from argosy.papers.firmament.links import GIB, LINK, MACHINES, OBSERVED, LinkWorld

SECOND = 1_000_000


class Told:
    """An engine that is told everything and wants nothing."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def handle(self, event: Any, view: Any, now: int) -> list[Any]:
        self.events.append((now, event))
        return []


@pytest.fixture
def observed() -> tuple[LinkWorld, Told]:
    world = LinkWorld(OBSERVED, {0: 100, 2: 200}, 1)
    world.engine = told = Told()  # type: ignore[assignment]
    return world, told


def test_links_are_measured_with_other_traffic_over_the_last_second(
    observed: tuple[LinkWorld, Told],
) -> None:
    world, told = observed
    world._sizes = {1: 1.0}
    world.transfers.received[1] = 70.4
    world.transfers.received[2] = 30.0
    world.now = 5 * SECOND
    world._measure()
    ((now, event),) = told.events
    assert isinstance(event, UsageObserved)
    assert (now, event.resource) == (5 * SECOND, "bandwidth")
    assert event.machines.tolist() == list(range(MACHINES))
    assert event.used.tolist() == [100, 70, 230] + [0] * (MACHINES - 3)
    # The next period begins with nothing.
    assert world.transfers.received == [0.0] * MACHINES
    assert [(at, what) for at, _, what in world._heap] == [(6 * SECOND, None)]
    # After the last task has ended, nobody measures any more.
    world._heap.clear()
    world.responses = [1.0]
    world._measure()
    assert world._heap == []


def test_what_a_transfer_moves_is_measured(observed: tuple[LinkWorld, Told]) -> None:
    world, told = observed
    world._sizes = {7: 2.0 * LINK}
    world._start(7, 3)
    world.transfers.next_end()
    world.now = SECOND
    world._measure()
    assert told.events[0][1].used[3] == LINK
    assert told.events[0][1].used[4] == 0


def test_background_traffic_is_reserved_machine_by_machine() -> None:
    world = LinkWorld("firmament", {0: 100, 2: 200}, 1)
    bandwidth = world.cell.dimensions.index("bandwidth")
    free = world.cell.free()
    assert (LINK - free[:, bandwidth]).tolist() == [100, 0, 200] + [0] * (MACHINES - 3)
    others = [at for at in range(3) if at != bandwidth]
    assert (free[:, others] == [12_000, 60 * GIB]).all()
    for machine in (0, 2):
        assert world.cell.machine_of((1 << 60) + machine) == machine


def test_the_engine_hears_of_ends_only_if_it_wants_to() -> None:
    for hears in (True, False):
        world = LinkWorld("spread", {}, 1)
        world.engine = told = Told()  # type: ignore[assignment]
        world._hears = hears
        world._submitted = [0, 2 * SECOND]
        world.now = 5 * SECOND
        world._end(task_number(1, 0), 3)
        assert world.responses == [3.0]
        if not hears:
            assert told.events == []
            continue
        ((_, event),) = told.events
        assert isinstance(event, TaskFinished)
        assert (event.tasks.tolist(), event.machines.tolist()) == ([task_number(1, 0)], [3])


def test_engines_hear_of_ends_if_they_keep_their_own() -> None:
    from argosy.engines.registry import ENGINES

    for name, engine in (("firmament", "firmament"), ("kube", "kube"), ("sparrow", "sparrow")):
        world = LinkWorld(name, {}, 1)
        assert world._hears is (ENGINES[engine].capabilities.finishes is Finishes.OWN)


def test_effects_come_back_as_events_in_their_time() -> None:
    world = LinkWorld("spread", {}, 1)
    world._sizes = {1: 1.0}
    world.now = 9
    think: Any = Think(1_000, "token")
    world._carry_out([think, WakeMe(50, "later"), WakeMe(3, "past")])
    world._carry_out([WakeMe(50, "also")])
    # Decisions take no time, and nothing comes before now.
    assert [(at, what) for at, _, what in sorted(world._heap, key=lambda item: item[:2])] == [
        (9, DecisionDue("token")),
        (9, TimerFired("past")),
        (50, TimerFired("later")),
        (50, TimerFired("also")),
    ]
    world._heap.clear()
    world.responses = [1.0]
    world._carry_out([WakeMe(50, "later")])
    assert world._heap == [], "no timer keeps a finished world going"


def test_probes_take_the_next_task_where_there_is_room() -> None:
    """Two tasks of six cores fill a machine; probes that find no room wait for an end."""
    world = LinkWorld("sparrow", {}, 1)
    request = Resources(6_000, 4 * GIB)
    tasks = np.array([task_number(0, index) for index in range(3)], np.int64)
    world._sizes = {int(task): 1.0 * LINK for task in tasks}
    world._submitted = [0]
    started: list[tuple[int, int]] = []
    begin = world._start

    def start(task: int, machine: int) -> None:
        started.append((task, machine))
        begin(task, machine)

    world._start = start  # type: ignore[method-assign]

    def probe(machines: list[int], wanted: list[int]) -> Probe:
        given: dict[str, Any] = dict.fromkeys(Probe.__match_args__, 0)
        given |= {"machines": np.array(machines, np.int32), "request": request}
        return Probe(**{**given, "tasks": np.array(wanted, np.int64)})

    world._carry_out([probe([4, 4, 4, 5], tasks.tolist())])
    first, second, third = tasks.tolist()
    assert started == [(first, 4), (second, 4), (third, 5)]
    assert world._probed == []
    last = task_number(0, 3)
    world._sizes[last] = 1.0
    world._carry_out([probe([4, 4], [last])])
    assert len(started) == 3
    assert len(world._probed) == 1
    world._end(second, 4)
    assert started[-1] == (last, 4)
    assert world._probed == []


def test_jobs_are_told_with_their_tasks_after_the_engine_has_started() -> None:
    world = LinkWorld("spread", {}, 1)
    world.engine = told = Told()  # type: ignore[assignment]
    world.run(load=0.5, jobs=2)
    (_, first), *others = told.events
    assert isinstance(first, Started)
    assert [type(event) for _, event in others] == [JobSubmitted] * 2
    assert [event.number for _, event in others] == [0, 1]
    assert [now for now, _ in others] == world._submitted
    assert [event.tasks.tolist() for _, event in others] == [
        [task_number(number, index) for index in range(5)] for number in (0, 1)
    ]
    assert world.responses == []


def test_only_the_world_that_measures_measures() -> None:
    world = LinkWorld("spread", {}, 1)
    world.engine = told = Told()  # type: ignore[assignment]
    world.run(load=0.5, jobs=1)
    assert not any(isinstance(event, UsageObserved) for _, event in told.events)
