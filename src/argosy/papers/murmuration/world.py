"""One run of the Murmuration paper's experiments.

Simulations are as published: one slot per machine, a hop of 0.5 ms, ten schedulers, a speed-up of
1,000. The cluster has machines of 8, 16 and 32 cores, at most 110 pods each, and pods of 0.1 core.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.engines.registry import ENGINES, built_in_forms, find_published
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    Fault,
    FleetEntry,
    JobSplit,
    Network,
    Output,
    Scenario,
    SchedulerCrash,
)
from argosy.model.truth import SimulatedJob
from argosy.papers.experiment import ExperimentPoint, PointResult
from argosy.papers.murmuration.jobs import is_one_by_one, jobs_of, machines_for
from argosy.papers.murmuration.measures import measured
from argosy.worlds.sim import SimulatedWorld

HOP: Final = 500
SECOND: Final = 1_000_000
_MOST_PODS: Final = 110
#: The paper names three kinds of machines, but not how many there are of each.
_CORES: Final = (8, 16, 32)
#: Kubernetes never gives up; tasks go by when they were created.
_KUBE: Final[dict[str, Any]] = {"preempt": False, "attempts": 1_000_000_000, "order": "created"}
#: The prototype decides on one pod at a time, and tells of each.
_PROTOTYPE: Final[dict[str, Any]] = {"t_job": 0, "decide": "task", "gossip": "task"}
#: Systems of the cluster experiments; simulated systems use their engines' published configurations.
_SYSTEMS: Final[dict[str, tuple[str, dict[str, Any], MachineModel, int]]] = {
    "kube-30s": ("kube", {"retry": 30 * SECOND, **_KUBE}, MachineModel(), 1),
    "kube-1s": ("kube", {"retry": SECOND, **_KUBE}, MachineModel(), 1),
    "kube-none": ("kube", {"retry": 0, **_KUBE}, MachineModel(), 1),
    "kube-1s-ready": ("kube", {"retry": SECOND, **_KUBE, "order": "ready"}, MachineModel(), 1),
    "kube-1s-costly": ("kube", {"retry": SECOND, **_KUBE, "t_failed": 20_000}, MachineModel(), 1),
    "murmuration": ("murmuration", {"t_task": 5_000, **_PROTOTYPE}, MachineModel(), 10),
    "murmuration-sum": (
        "murmuration",
        {"t_task": 5_000, "expected_wait": "sum", **_PROTOTYPE},
        MachineModel(),
        10,
    ),
    "flood": ("murmuration", {"t_task": 5_000, **_PROTOTYPE}, MachineModel(), 10),
}
#: How schedulers of the simulations tell of placements. They decide on one task at a time: a whole job's
#: placements would be known at the same instant, in however many messages.
_TOLD: Final[dict[str, dict[str, Any]]] = {
    "task": {"gossip": "task"},
    "job": {"gossip": "job"},
    "1 s": {"gossip": "batch", "batch_time": SECOND},
    "100 placements": {"gossip": "batch", "batch_size": 100, "batch_time": 10 * SECOND},
}


def run_point(point: ExperimentPoint) -> PointResult:
    world = SimulatedWorld(_scenario(point, jobs_of(point)), ENGINES)
    world.run()
    return measured(world, point)


def _scenario(point: ExperimentPoint, jobs: tuple[SimulatedJob, ...]) -> Scenario:
    told = point.parameters
    engine, settings, model, schedulers = _system(
        str(told["system"]), str(told.get("workload", ""))
    )
    if "delay" in told:
        settings["update_delay"] = int(float(told["delay"]) * SECOND)
    if "schedulers" in told:
        schedulers = max(2, int(float(told["schedulers"]) * int(told["machines"])))
    if "told" in told:
        settings |= {"decide": "task", **_TOLD[str(told["told"])]}
        settings["t_update"] = int(float(told["reading"]) * SECOND)
    hop, faults = HOP, tuple[Fault, ...]()
    if "restart" in told:
        hop = 10 * HOP
        settings["answer_delay"] = 3 * SECOND
        down = int(float(told["restart"]) * SECOND)
        faults = (SchedulerCrash(at=0, scheduler="s-0", down=down),)
    return Scenario(
        name="murmuration",
        seed=point.seed,
        cell=CellSpec(machines=_machines(point, jobs)),
        jobs=jobs,
        fleet=(
            FleetEntry(
                name="s", engine=engine, replicas=schedulers, split=_split(point), settings=settings
            ),
        ),
        network=Network(latency=ConstantLatency(delay=hop)),
        machines=model,
        faults=faults,
        output=Output(log="none"),
    )


def _system(name: str, workload: str) -> tuple[str, dict[str, Any], MachineModel, int]:
    """Engine, settings, machines and number of schedulers, in the workload's configuration if there is
    one."""
    if name in _SYSTEMS:
        engine, settings, machines, schedulers = _SYSTEMS[name]
        return engine, dict(settings), machines, schedulers
    own = f"{name}-{workload}"
    engine, form = find_published(own if own in built_in_forms() else name)
    return engine, dict(form.settings), form.machines, form.schedulers


def _split(point: ExperimentPoint) -> JobSplit:
    """All tasks of a job go to one scheduler, also if they come one by one."""
    return "owner" if is_one_by_one(point) else "random"


def _machines(point: ExperimentPoint, jobs: tuple[SimulatedJob, ...]) -> tuple[Machine, ...]:
    told = point.parameters
    if "pattern" not in told:
        return tuple(Machine(f"m{i}", Resources(cpu=1000)) for i in range(int(told["machines"])))
    count = (
        int(told["machines"]) if "machines" in told else machines_for(jobs, str(told["pattern"]))
    )
    return tuple(
        Machine(f"m{i}", Resources(cpu=1000 * _CORES[i % 3], extras={"pods": _MOST_PODS}))
        for i in range(count)
    )
