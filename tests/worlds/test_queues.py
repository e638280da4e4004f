"""Queues at machines: their orders, the bound on overtaking, their limits, and tasks that leave in
turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.murmuration import Murmuration
from argosy.model.effects import Effect, Enqueue, Pace, Probe
from argosy.model.events import Event, JobSubmitted, TasksLost
from argosy.model.jobs import job_of
from argosy.model.machine_model import MachineModel, Steal
from argosy.model.scenario import (
    ConstantLatency,
    FleetEntry,
    MachineCrash,
    Network,
    Partition,
    SchedulerCrash,
)
from argosy.model.tasks import jobs_of
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.worlds.sim import SimulatedWorld


class Filler:
    """Everything goes to the first machine at once; what comes back goes to the next one."""

    name: ClassVar[str] = "filler"
    summary: ClassVar[str] = "For tests."
    settings_type: ClassVar[type[Settings]] = Settings
    capabilities: ClassVar[Capabilities] = Capabilities(queues=True)
    first: ClassVar[int] = 0
    spacing: ClassVar[int] = 0

    def __init__(self, settings: Settings, context: Context) -> None:
        self.lost: list[TasksLost] = []

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(_, _, tasks):
                machines = np.zeros(len(tasks), np.int32)
                return [Enqueue(tasks, machines, pace=Pace(self.first, self.spacing))]
            case TasksLost(_, _, tasks, machines):
                return [Enqueue(tasks, machines + 1)]
        return ()


def run(
    jobs: list[SimulatedJob],
    model: MachineModel,
    machines: int = 1,
    engine: Any = Filler,
    **fields: Any,
) -> SimulatedWorld:
    spec = scenario(
        engine.name,
        jobs,
        replicas=1,
        cell=cell(machines),
        machines=model,
        network=Network(latency=ConstantLatency(delay=0)),
        **fields,
    )
    world = SimulatedWorld(spec, {engine.name: engine})
    world.run()
    return world


def whole(name: str, seconds: float, tasks: int = 1, submit: float = 0) -> SimulatedJob:
    return job(name, tasks, cpu=4_000, seconds=seconds, submit=submit)


def order_of(world: SimulatedWorld) -> list[int]:
    """Job numbers in the order in which their tasks ended."""
    tasks: list[int] = jobs_of(world.host.runtime.task_columns()[0]).tolist()
    return tasks


JOBS = [whole("a", 5), whole("b", 9), whole("c", 2), whole("d", 4, tasks=3), whole("e", 6)]


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("fcfs", [0, 1, 2, 3, 3, 3, 4]),
        ("shortest-first", [0, 2, 3, 3, 3, 4, 1]),
        # Of d's three tasks 12 s remain, then 8 and 4.
        ("shortest-remaining", [0, 2, 4, 1, 3, 3, 3]),
    ],
)
def test_queues_have_their_order(queue: Any, expected: list[int]) -> None:
    assert order_of(run(JOBS, MachineModel(queue=queue))) == expected


def test_with_a_slack_of_one_a_task_is_overtaken_for_less_than_its_own_time() -> None:
    jobs = [whole("first", 1), whole("long", 10), *(whole(f"s{i}", 4) for i in range(5))]
    without = order_of(run(jobs, MachineModel(queue="shortest-first")))
    assert without == [0, 2, 3, 4, 5, 6, 1]
    # 4 + 4 fit into 10 with something left; a third time 4 does not.
    assert order_of(run(jobs, MachineModel(queue="shortest-first", slack=1))) == [
        0, 2, 3, 1, 4, 5, 6,
    ]  # fmt: skip


def test_long_tasks_use_up_no_slack_of_short_ones() -> None:
    """20 s of the short job remain, more than of either long one; 11 s twice would exceed a slack of
    20 s, if they counted."""
    jobs = [whole("first", 1), whole("short", 10, tasks=2), whole("l0", 11), whole("l1", 11)]
    model = MachineModel(queue="shortest-remaining", slack=2, long_above=10 * SECOND)
    assert order_of(run(jobs, model)) == [0, 2, 3, 1, 1]


def test_a_short_task_is_found_before_a_long_one_that_came_last() -> None:
    jobs = [whole("first", 1), whole("middle", 10), whole("short", 2), whole("last", 50)]
    model = MachineModel(queue="shortest-first", slack=1)
    assert order_of(run(jobs, model)) == [0, 2, 1, 3]


def test_where_long_tasks_stand_apart_the_slack_may_be_used_up() -> None:
    jobs = [whole("first", 1), whole("middle", 10), *(whole(f"s{i}", 5) for i in range(3))]
    model = MachineModel(queue="shortest-first", slack=1)
    assert order_of(run(jobs, model)) == [0, 2, 1, 3, 4]
    eagle = MachineModel(queue="shortest-first", slack=1, long_above=60 * SECOND)
    assert order_of(run(jobs, eagle)) == [0, 2, 3, 1, 4]


def test_a_long_task_that_is_better_than_all_before_it_is_next() -> None:
    """Whatever stands behind it."""
    jobs = [whole("first", 1), whole("many", 10, tasks=2), whole("long", 11), whole("tiny", 5)]
    model = MachineModel(queue="shortest-remaining", slack=2, long_above=10 * SECOND)
    assert order_of(run(jobs, model)) == [0, 2, 3, 1, 1]


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 40)), min_size=1, max_size=25),
    st.integers(1, 4),
    st.sampled_from(["shortest-first", "shortest-remaining"]),
)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_no_task_waits_for_more_than_what_was_ahead_and_its_slack(
    times: list[tuple[int, int]], slack: int, queue: Any
) -> None:
    """The bound that core/host/machine_queue.hpp proves, for whatever arrives."""
    jobs = [whole(f"j{i}", seconds, submit=at) for i, (seconds, at) in enumerate(times)]
    jobs.sort(key=lambda one: one.submit)
    world = run(jobs, MachineModel(queue=queue, slack=slack))
    tasks, _, placed, started, finished = world.host.runtime.task_columns()
    rows = {
        job_of(int(task)): (int(came), int(began), int(over))
        for task, came, began, over in zip(tasks, placed, started, finished, strict=True)
    }
    for number, (came, began, over) in rows.items():
        ahead = sum(
            min(end, began) - max(start, came)
            for other, (arrived, start, end) in rows.items()
            if (arrived, other) < (came, number) and end > came and start < began
        )
        assert began - came <= ahead + slack * (over - began)


def test_a_full_queue_hands_tasks_back_and_their_scheduler_places_them_elsewhere() -> None:
    world = run([whole("a", 5, tasks=5)], MachineModel(limit=1), machines=3)
    machines = world.host.runtime.task_columns()[1]
    # One runs and one waits at each of the first two; the fifth is the third machine's.
    assert sorted(machines.tolist()) == [0, 0, 1, 1, 2]
    assert world.host.membership.losses == 4


def test_murmuration_finishes_with_queues_of_one() -> None:
    jobs = [whole(f"j{i}", 1 + i % 3, tasks=4, submit=i * 0.2) for i in range(12)]
    world = run(jobs, MachineModel(limit=1), machines=3, engine=Murmuration)
    assert world.host.board.counts().tolist() == [0, 0, 0, 48, 0, 0, 0]
    assert world.host.membership.losses > 0


def test_a_started_task_pays_the_start_delay() -> None:
    world = run([whole("a", 5, tasks=2)], MachineModel(start_delay=SECOND))
    _, _, _, started, finished = world.host.runtime.task_columns()
    assert started.tolist() == [SECOND, 7 * SECOND]
    assert finished.tolist() == [6 * SECOND, 12 * SECOND]


def test_tasks_may_leave_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Filler, "first", 2 * SECOND)
    monkeypatch.setattr(Filler, "spacing", SECOND)
    world = run([job("a", 3, cpu=1_000, seconds=1)], MachineModel())
    _, _, placed, started, _ = world.host.runtime.task_columns()
    assert placed.tolist() == started.tolist() == [2 * SECOND, 3 * SECOND, 4 * SECOND]


def test_an_idle_machine_steals_half_of_a_queue() -> None:
    jobs = [whole("a", 10, tasks=8), whole("b", 1, submit=0.5)]

    class Two(Filler):
        """The second job goes to the second machine."""

        name: ClassVar[str] = "two"

        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            match event:
                case JobSubmitted(_, number, tasks):
                    return [Enqueue(tasks, np.full(len(tasks), number, np.int32))]
            return ()

    alone = run(jobs, MachineModel(), machines=2, engine=Two)
    helped = run(jobs, MachineModel(steal=Steal(attempts=10, most=100)), machines=2, engine=Two)
    assert alone.host.runtime.stolen == 0
    # Half of the seven that wait, at first.
    assert helped.host.runtime.stolen >= 4
    assert helped.host.runtime.now < 0.7 * alone.host.runtime.now
    assert helped.host.cell.audit() == []


def test_a_thief_leaves_the_task_that_is_next() -> None:
    # The second machine runs dry at 1.5 s; of b and c, which wait in order of their length, it takes c.
    jobs = [whole("a", 4), whole("b", 1), whole("c", 9), whole("d", 1, submit=0.5)]

    class LastElsewhere(Filler):
        name: ClassVar[str] = "last"

        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            match event:
                case JobSubmitted(_, number, tasks):
                    return [Enqueue(tasks, np.full(len(tasks), number == 3, np.int32))]
            return ()

    model = MachineModel(queue="shortest-first", steal=Steal(attempts=10, most=1))
    world = run(jobs, model, machines=2, engine=LastElsewhere)
    tasks, machines, _, _, _ = world.host.runtime.task_columns()
    where = dict(zip(jobs_of(tasks).tolist(), machines.tolist(), strict=True))
    assert world.host.runtime.stolen == 1
    assert where == {0: 0, 1: 0, 2: 1, 3: 1}


def test_only_short_tasks_behind_long_ones_are_stolen() -> None:
    # The second machine runs dry at 1.5 s: b waits behind the long a's second task, c behind b.
    jobs = [whole("a", 30, tasks=2), whole("b", 2), whole("c", 2), whole("d", 1, submit=0.5)]

    class LastElsewhere(Filler):
        name: ClassVar[str] = "last"

        def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
            match event:
                case JobSubmitted(_, number, tasks):
                    return [Enqueue(tasks, np.full(len(tasks), number == 3, np.int32))]
            return ()

    model = MachineModel(long_above=10 * SECOND, steal=Steal(attempts=20, most=100))
    world = run(jobs, model, machines=2, engine=LastElsewhere)
    tasks, machines, *_ = world.host.runtime.task_columns()
    where = {job_of(int(task)): int(machine) for task, machine in zip(tasks, machines, strict=True)}
    assert where == {0: 0, 1: 1, 2: 1, 3: 1}


class Dealer(Filler):
    """Two probes for each task, and the tasks with them."""

    name: ClassVar[str] = "dealer"

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(one, number, tasks) | TasksLost(one, number, tasks):
                machines = np.arange(2 * len(tasks), dtype=np.int32) % view.machines
                return [Probe(number, machines, one.groups[0].request, 0, tasks, cancel=True)]
        return ()


def test_tasks_whose_probes_went_with_a_machine_come_back() -> None:
    crash = MachineCrash(at=2 * SECOND, machine="m0", down=SECOND)
    world = run(
        [whole("a", 5, tasks=3)], MachineModel(), machines=2, engine=Dealer, faults=(crash,)
    )
    assert world.host.board.counts().tolist() == [0, 0, 0, 3, 0, 0, 0]
    assert world.host.cell.claims() == 0


def test_a_dealt_job_survives_its_scheduler() -> None:
    crash = SchedulerCrash(at=SECOND, scheduler="s", down=SECOND)
    world = run(
        [whole("a", 5, tasks=4)], MachineModel(), machines=2, engine=Dealer, faults=(crash,)
    )
    assert world.host.board.counts().tolist() == [0, 0, 0, 4, 0, 0, 0]


def test_a_probe_waits_for_its_scheduler_while_a_partition_holds() -> None:
    cut = Partition(at=4 * SECOND, lasts=4 * SECOND, isolated=("s",))
    world = run([whole("a", 5, tasks=4)], MachineModel(), machines=2, engine=Dealer, faults=(cut,))
    _, _, _, done = world.host.board.job_columns()
    # The first two tasks end after 5 s; the machines learn at 8 s what they run next.
    assert done.tolist() == [13 * SECOND]


class Wasteful(Dealer):
    """As `Dealer`, without taking back what turns out to be too many probes."""

    name: ClassVar[str] = "wasteful"

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        return [replace(effect, cancel=False) for effect in super().handle(event, view, now)]


def test_a_slot_is_held_until_its_isolated_scheduler_has_said_that_nothing_is_left() -> None:
    cut = Partition(at=SECOND // 2, lasts=4 * SECOND, isolated=("s-0",))
    spec = scenario(
        "wasteful",
        [whole("a", 1), whole("b", 2, submit=0.25)],
        fleet=(FleetEntry(name="s", engine="wasteful", replicas=2, split="round-robin"),),
        cell=cell(1),
        network=Network(latency=ConstantLatency(delay=0)),
        faults=(cut,),
    )
    world = SimulatedWorld(spec, {"wasteful": Wasteful})
    world.run()
    # The second probe of a is ready at 1 s, and a's scheduler answers at 4.5 s; b is another's.
    assert world.host.board.job_columns()[3].tolist() == [SECOND, int(6.5 * SECOND)]
