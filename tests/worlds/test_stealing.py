"""Work stealing and draining: a machine takes only what it could have been sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scripted_engine import NO_LATENCY, Scripted, to_machine, world_of

from argosy.cell import View
from argosy.engines.registry import ENGINES
from argosy.model.effects import AnswerProbe, Effect, Enqueue, Probe
from argosy.model.events import Event, JobSubmitted, ProbeReady, TasksLost
from argosy.model.explanations import Why
from argosy.model.jobs import job_of
from argosy.model.machine_model import MachineModel, Steal
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, ConstantLatency, MachineDrain, Network
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun
from argosy.worlds.sim import SimulatedWorld

QUEUEING = ["murmuration", "sparrow", "hawk", "eagle", "yaq-c", "yaq-d"]
PROBING = ["sparrow", "hawk", "eagle"]
STEALING = MachineModel(steal=Steal(attempts=10))
SIZE = Resources(4_000, 16 * 2**30)
ARM = {"arch": "arm"}


def whole(name: str, tasks: int, seconds: float, submit: float = 0, **fields: Any) -> SimulatedJob:
    """Tasks as large as a machine."""
    return job(name, tasks, cpu=4_000, seconds=seconds, submit=submit, **fields)


def mixed(*names: str) -> CellSpec:
    """Machines of which those called arm have the attribute."""
    return CellSpec(
        machines=tuple(
            Machine(f"{name}{i}", SIZE, attributes=ARM if name == "arm" else {})
            for i, name in enumerate(names)
        )
    )


def runs(world: Any) -> list[tuple[str, int, int]]:
    """Job, machine and start of every task that ended."""
    tasks, machines, _, started, _ = world.host.runtime.task_columns()
    names = [world.host.jobs.name(job_of(task)) for task in tasks.tolist()]
    return list(zip(names, machines.tolist(), started.tolist(), strict=True))


def places(world: Any, name: str) -> set[int]:
    return {machine for owner, machine, _ in runs(world) if owner == name}


@pytest.mark.parametrize("engine", QUEUEING)
def test_a_machine_does_not_steal_tasks_that_require_what_it_lacks(engine: str) -> None:
    jobs = [whole("picky", 4, 10, requires=ARM), whole("other", 1, 1)]
    spec = scenario(
        engine, jobs, replicas=1, cell=mixed("arm", "plain"), machines=STEALING, network=NO_LATENCY
    )
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    assert places(trial.world, "picky") == {0}


@pytest.mark.parametrize("engine", QUEUEING)
def test_a_draining_machine_starts_nothing_that_was_not_queued_there(engine: str) -> None:
    jobs = [whole("a", 2, 5), whole("b", 4, 10, submit=2)]
    spec = scenario(
        engine,
        jobs,
        replicas=1,
        cell=cell(2),
        machines=STEALING,
        faults=(MachineDrain(at=SECOND, machine="m1"),),
    )
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    assert places(trial.world, "b") == {0}
    assert trial.world.host.runtime.stolen == 0


def by_job(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    """The first job's tasks go to the first machine, and so on."""
    if isinstance(event, JobSubmitted):
        return [Enqueue(event.tasks, np.full(len(event.tasks), event.number, np.int32))]
    return ()


def test_a_thief_passes_over_what_it_may_not_run() -> None:
    picky = group_with_truth(2, SIZE, (10 * SECOND,), requires=ARM)
    plain = group_with_truth(2, SIZE, (10 * SECOND,))
    jobs = [simulated_job("a", picky, plain, picky), whole("b", 1, 1)]
    model = MachineModel(steal=Steal(attempts=10, most=100))
    world, _ = world_of(by_job, jobs, cell=mixed("arm", "plain"), machines=model)
    tasks, machines, *_ = world.host.runtime.task_columns()
    first = {int(t): int(m) for t, m in zip(tasks, machines, strict=True) if job_of(int(t)) == 0}
    # Of the queue, the last half is on offer: one plain task, and the two that come last.
    assert [first[task] for task in range(6)] == [0, 0, 0, 1, 0, 0]


def test_a_stolen_probe_keeps_what_its_tasks_require() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        machines = np.full(len(event.tasks), event.number, np.int32)
        return [Probe(event.number, machines, SIZE, 0, event.tasks)]

    jobs = [whole("picky", 3, 10, requires=ARM), whole("b", 1, 1), whole("c", 1, 1)]
    world, _ = world_of(script, jobs, cell=mixed("arm", "plain", "arm"), machines=STEALING)
    assert world.host.runtime.stolen > 0
    assert places(world, "picky") == {0, 2}


def test_a_stolen_probe_that_is_turned_down_lets_the_queue_of_the_thief_go_on() -> None:
    """Behind a long task at the first machine wait a task, a probe and another task; the second machine
    steals the last two."""

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(made, number) if made.id == "probing":
                return [Probe(number, np.zeros(1, np.int32), SIZE, 0)]
            case JobSubmitted(made, _, tasks):
                return [Enqueue(tasks, np.full(1, made.id == "short", np.int32))]
            case ProbeReady(probe):
                return [AnswerProbe(probe, None)]
        return ()

    jobs = [whole("long", 1, 100), whole("short", 1, 1), whole("stays", 1, 1)]
    jobs += [whole("probing", 1, 1), whole("behind", 1, 1)]
    world, heard = world_of(script, jobs, cell=cell(2), machines=STEALING)
    assert [event.machine for *_, event in heard if isinstance(event, ProbeReady)] == [1]
    assert places(world, "behind") == {1}


def stolen_by(seed: int) -> list[tuple[str, int, int]]:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [Enqueue(event.tasks, np.arange(len(event.tasks), dtype=np.int32) % 8)]
        return ()

    jobs = [whole(f"j{i}", 7, 10) for i in range(4)] + [whole("last", 8, 1)]
    model = MachineModel(steal=Steal(attempts=1))
    world, _ = world_of(script, jobs, cell=cell(8), machines=model, seed=seed)
    return runs(world)


def test_whom_a_machine_steals_from_depends_on_the_seed() -> None:
    outcomes = [stolen_by(seed) for seed in range(1, 7)]
    assert any(outcome != outcomes[0] for outcome in outcomes)
    assert stolen_by(3) == outcomes[2]


def test_a_task_that_reaches_a_draining_machine_goes_back() -> None:
    network = Network(latency=ConstantLatency(delay=SECOND))
    drain = MachineDrain(at=SECOND // 2, machine="m0")
    world, heard = world_of(
        to_machine(0, after_loss=1), [job("a", 2)], cell=cell(2), network=network, faults=(drain,)
    )
    lost = [event for _, _, event in heard if isinstance(event, TasksLost)]
    assert [(event.why, event.machines.tolist()) for event in lost] == [
        (Why.MACHINE_DRAINING, [0, 0])
    ]
    assert places(world, "a") == {1}


@pytest.mark.parametrize("engine", PROBING)
def test_probes_on_a_draining_machine_fetch_nothing(engine: str) -> None:
    # Of the short tasks, which are probed for, all wait behind the first when the drain begins.
    jobs = [whole("a", 2, 10), whole("b", 4, 10, submit=1)]
    drain = MachineDrain(at=2 * SECOND, machine="m1")
    spec = scenario(engine, jobs, replicas=1, cell=cell(2), faults=(drain,))
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    assert places(trial.world, "b") == {0}


@pytest.mark.parametrize("engine", ["murmuration", "yaq-c", "yaq-d"])
def test_a_draining_machine_still_runs_the_tasks_in_its_queue(engine: str) -> None:
    jobs = [whole("a", 2, 10), whole("b", 4, 10, submit=1)]
    drain = MachineDrain(at=2 * SECOND, machine="m1")
    spec = scenario(engine, jobs, replicas=1, cell=cell(2), faults=(drain,))
    trial = ConformanceRun(ENGINES[engine], spec)
    trial.require_all_finished()
    assert places(trial.world, "b") == {0, 1}


def test_tasks_whose_every_machine_drains_wait_until_one_is_back() -> None:
    for engine in PROBING:
        drains = tuple(
            MachineDrain(at=2 * SECOND, machine=f"m{i}", lasts=50 * SECOND) for i in range(2)
        )
        jobs = [whole("a", 2, 10), whole("b", 4, 10, submit=1)]
        spec = scenario(engine, jobs, replicas=1, cell=cell(2), faults=drains)
        world = SimulatedWorld(spec, ENGINES)
        world.run()
        starts = [started for name, _, started in runs(world) if name == "b"]
        assert len(starts) == 4
        assert min(starts) >= 52 * SECOND
