"""Late binding: probes in machines' queues, slots that are held for an answer, and asking for queues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, Settings
from argosy.model.effects import AnswerProbe, AskQueues, Effect, Enqueue, Probe, WakeMe
from argosy.model.errors import EngineFault
from argosy.model.events import (
    Event,
    JobSubmitted,
    ProbeReady,
    QueuesReported,
    TasksLost,
    TimerFired,
)
from argosy.model.scenario import (
    ConstantLatency,
    Fault,
    MachineCrash,
    MachineModel,
    Network,
    SchedulerCrash,
)
from argosy.testing import conformance
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.worlds.sim import SimulatedWorld


class LateBinder:
    """Batch sampling in miniature: two probes a task, and the first slots that come up get the tasks."""

    name: ClassVar[str] = "late"
    summary: ClassVar[str] = "For tests."
    settings_type: ClassVar[type[Settings]] = Settings
    capabilities: ClassVar[Capabilities] = Capabilities(queues=True)

    def __init__(self, settings: Settings, context: Context) -> None:
        self.context = context
        self.pending: dict[int, list[int]] = {}

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(submission, number, tasks) | TasksLost(submission, number, tasks):
                self.pending.setdefault(number, []).extend(tasks.tolist())
                random = self.context.random
                machines = [random.below(view.machines) for _ in range(2 * len(tasks))]
                group = submission.groups[0]
                return [
                    Probe(number, np.array(machines, np.int32), group.request, group.estimate or 0),
                    WakeMe(now + 30 * SECOND, str(number)),
                ]
            case ProbeReady(probe, number):
                waiting = self.pending.get(number)
                return [AnswerProbe(probe, waiting.pop(0) if waiting else None)]
        return ()


def run(jobs: list, *faults: Fault, delay: int = 0, **fields: object) -> SimulatedWorld:
    network = Network(latency=ConstantLatency(delay=delay))
    spec = scenario("late", jobs, faults=faults, network=network, **{"replicas": 1, **fields})
    world = SimulatedWorld(spec, {"late": LateBinder})
    world.run()
    return world


def test_every_task_is_bound_to_a_slot_that_came_up() -> None:
    world = run(conformance.workload(60, spacing=0.05), replicas=3, delay=500)
    counts = world.host.board.counts().tolist()
    assert counts[3] == sum(counts)
    assert world.host.cell.claims() == 0
    assert world.host.cell.audit() == []


def test_a_slot_is_held_while_its_scheduler_is_asked() -> None:
    jobs = [job("a", 1, cpu=4_000, seconds=1), job("b", 1, cpu=4_000, seconds=1)]
    world = run(jobs, delay=SECOND, cell=cell(1))
    # Probes arrive at 1 s and are asked about one by one: two hops, then a second of running, or none.
    assert world.host.runtime.task_columns()[3].tolist() == [3 * SECOND, 8 * SECOND]


def test_a_crashed_scheduler_leaves_no_slot_held() -> None:
    jobs = [job(f"j{i}", 2, cpu=4_000, seconds=3) for i in range(6)]
    crash = SchedulerCrash(at=SECOND + 1, scheduler="s", down=5 * SECOND)
    world = run(jobs, crash, delay=SECOND, cell=cell(2))
    # Tasks as large as the machines: a slot that stayed held would have stopped a machine for good.
    assert world.host.board.counts().tolist() == [0, 0, 0, 12, 0, 0, 0]


def test_probes_that_arrive_after_their_scheduler_crashed_hold_no_slot() -> None:
    for at in (SECOND // 2, SECOND + 1, 2 * SECOND - 1):
        crash = SchedulerCrash(at=at, scheduler="s")
        world = run([job("a", 2, cpu=4_000, seconds=3)], crash, delay=SECOND, cell=cell(2))
        assert world.host.cell.claims() == 0


def test_a_task_bound_to_a_slot_on_a_lost_machine_comes_back() -> None:
    jobs = [job("a", 1, cpu=4_000, seconds=3)]
    crash = MachineCrash(at=int(2.5 * SECOND), machine="m0", down=2 * SECOND)
    world = run(jobs, crash, delay=SECOND, cell=cell(1))
    assert world.host.membership.losses == 1
    assert world.host.board.counts().tolist() == [0, 0, 0, 1, 0, 0, 0]


class Asker(LateBinder):
    name: ClassVar[str] = "late"
    heard: ClassVar[list[QueuesReported]]

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(_, _, tasks):
                placed = Enqueue(tasks, np.zeros(len(tasks), np.int32))
                return [placed, WakeMe(4 * SECOND, "ask")]
            case TimerFired():
                return [AskQueues(token=7)]
            case QueuesReported():
                type(self).heard.append(event)
        return ()


def test_machines_say_how_long_their_queues_are() -> None:
    Asker.heard = []
    spec = scenario(
        "late",
        [job("a", 3, cpu=4_000, seconds=10)],
        replicas=1,
        cell=cell(2),
        network=Network(latency=ConstantLatency(delay=0)),
    )
    SimulatedWorld(spec, {"late": Asker}).run()
    report = Asker.heard[0]
    assert report.token == 7
    assert report.lengths.tolist() == [2, 0]
    # One has run 4 of its 10 seconds, two wait.
    assert report.waits.tolist() == [26 * SECOND, 0]


class Latecomer(Asker):
    """Asks for the machines' last reports."""

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(_, _, tasks):
                # Machines report from the first time on that somebody looks.
                placed = Enqueue(tasks, np.zeros(len(tasks), np.int32))
                return [AskQueues(1, latest=True), placed, WakeMe(4 * SECOND, "ask")]
            case TimerFired():
                return [AskQueues(2, latest=True), AskQueues(3, latest=True, which="long")]
        return super().handle(event, view, now)


@pytest.mark.parametrize(("heartbeat", "known"), [(10, 0), (3, 26), (0, 26)])
def test_the_latest_reports_are_as_old_as_the_machines_heartbeat(
    heartbeat: int, known: int
) -> None:
    Latecomer.heard = []
    spec = scenario(
        "late",
        [job("a", 3, cpu=4_000, seconds=10)],
        replicas=1,
        cell=cell(2),
        network=Network(latency=ConstantLatency(delay=0)),
        machines=MachineModel(heartbeat=heartbeat * SECOND, long_above=10 * SECOND),
    )
    SimulatedWorld(spec, {"late": Latecomer}).run()
    _, everything, long = Latecomer.heard
    assert everything.waits.tolist() == [known * SECOND, 0]
    assert long.waits.tolist() == long.lengths.tolist() == [0, 0]


class Liar(LateBinder):
    name: ClassVar[str] = "late"

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        return [AnswerProbe(99)] if isinstance(event, JobSubmitted) else ()


def test_an_answer_to_a_probe_that_holds_nothing_is_a_fault() -> None:
    with pytest.raises(EngineFault, match="probe 99, which holds no slot"):
        SimulatedWorld(scenario("late", [job("a")], replicas=1), {"late": Liar}).run()
