"""One run of the Murmuration paper's experiments, and what is measured there.

Simulations are as published: one slot a machine, a hop of 0.5 ms, ten schedulers, a speed-up of 1,000,
jobs drawn with the characteristics of the traces. The cluster has machines of 8, 16 and 32 cores, at
most 110 pods each, and pods of 0.1 core.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.engines.registry import ENGINES
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    Fault,
    FleetEntry,
    MachineModel,
    Network,
    Output,
    Scenario,
    SchedulerCrash,
)
from argosy.papers.experiment import Point, Result
from argosy.runs.measure import summarise
from argosy.workloads import fanout
from argosy.workloads.synthetic import Estimates
from argosy.worlds.sim import SimulatedWorld

HOP: Final = 500
CUTOFF: Final = 90_581_100
SECOND: Final = 1_000_000
#: Jobs of the first such share are left out of the cluster's figures: it is not full yet.
WARM_UP: Final = 0.2
_POD: Final = Resources(cpu=100, extras={"pods": 1})
#: The paper names the three kinds of machines and not how many there are of each.
_CORES: Final = (8, 16, 32)
_SRPT: Final = MachineModel(queue="shortest-remaining", slack=5, start_delay=2 * HOP)
_SYSTEMS: Final[dict[str, tuple[str, dict[str, Any], MachineModel, int]]] = {
    "sparrow": ("sparrow", {"cancel": False, "repeated": True}, MachineModel(), 1),
    "yaq-d": ("yaq-d", {"heartbeat": 8_000, "jitter": True, "share": 0.98}, _SRPT, 1),
    "eagle": (
        "eagle",
        {"stale_state": True, "repeated": True},
        MachineModel(queue="shortest-remaining", slack=5, start_delay=2 * HOP, long_above=CUTOFF),
        1,
    ),
    "murmuration-fcfs": (
        "murmuration",
        {"as_published": True},
        MachineModel(start_delay=2 * HOP),
        10,
    ),
    "murmuration-srjf": (
        "murmuration",
        {"as_published": True, "order": "shortest-job"},
        _SRPT,
        10,
    ),
    "kube-30s": ("kube", {"retry": 30 * SECOND, "preempt": False}, MachineModel(), 1),
    "kube-1s": ("kube", {"retry": SECOND, "preempt": False}, MachineModel(), 1),
    "kube-none": ("kube", {"retry": 0, "preempt": False}, MachineModel(), 1),
    "murmuration": (
        "murmuration",
        {"t_job": 0, "t_task": 5_000, "gossip": "task"},
        MachineModel(),
        10,
    ),
    "flood": (
        "murmuration",
        {"t_job": 0, "t_task": 2_564, "gossip": "task"},
        MachineModel(),
        10,
    ),
}


def run_point(point: Point) -> Result:
    world = SimulatedWorld(_scenario(point), ENGINES)
    world.run()
    return _measured(world, point)


def _scenario(point: Point) -> Scenario:
    told = point.parameters
    engine, settings, model, schedulers = _SYSTEMS[str(told["system"])]
    settings = dict(settings)
    if "delay" in told:
        settings["update_delay"] = int(float(told["delay"]) * SECOND)
    if "schedulers" in told:
        schedulers = max(2, int(float(told["schedulers"]) * int(told["machines"])))
    hop, faults = HOP, tuple[Fault, ...]()
    if "restart" in told:
        hop = 10 * HOP
        settings["answer_delay"] = 3 * SECOND
        down = int(float(told["restart"]) * SECOND)
        faults = (SchedulerCrash(at=0, scheduler="s-0", down=down),)
    return Scenario(
        name="murmuration",
        seed=point.seed,
        cell=CellSpec(machines=_machines(point)),
        jobs=_jobs(point),
        fleet=(
            FleetEntry(
                name="s", engine=engine, replicas=schedulers, split="random", settings=settings
            ),
        ),
        network=Network(latency=ConstantLatency(delay=hop)),
        machines=model,
        faults=faults,
        output=Output(log="none"),
    )


def _machines(point: Point) -> tuple[Machine, ...]:
    count = int(point.parameters["machines"])
    if "pattern" not in point.parameters:
        return tuple(Machine(f"m{i}", Resources(cpu=1000)) for i in range(count))
    return tuple(
        Machine(f"m{i}", Resources(cpu=1000 * _CORES[i % 3], extras={"pods": 110}))
        for i in range(count)
    )


def _jobs(point: Point) -> tuple[Job, ...]:
    told, random = point.parameters, Random(point.seed).child("workload")
    count = int(told["jobs"])
    if "pattern" in told:
        is_flood = "scale" in told
        return tuple(
            fanout.generate(
                fanout.shape("yahoo"),
                500 if is_flood else count,
                random,
                pattern=str(told["pattern"]),
                speedup=100.0 if is_flood else 1.0,
                scale=float(told.get("scale", 1.0)),
                request=_POD,
                estimates=Estimates(low=0.85, high=1.15),
            )
        )
    error = float(told.get("error", 0.0))
    wrong = Estimates(low=1 - error, high=1 + error) if error else None
    shape = fanout.shape(str(told["workload"]))
    return tuple(fanout.generate(shape, count, random, speedup=1000.0, estimates=wrong))


def _measured(world: SimulatedWorld, point: Point) -> Result:
    simulator = world.simulator
    submit, _, _, done = simulator.job_columns()
    jct = (done - submit) / SECOND
    summary = summarise(world, "")
    times = summary.timeline
    values = {
        "jct": float(np.median(jct)),
        "utilisation": max(summary.utilisation.values()),
        "tasks": float(summary.counts.tasks),
        "messages": float(world.network.counts["sent"]),
        "spread.scheduled": times.spread["scheduled"].mean / SECOND,
        "spread.started": times.spread["started"].mean / SECOND,
        "spread.finished": times.spread["finished"].mean / SECOND,
    }
    for name in (
        "w2s",
        "s",
        "w2x",
        "x",
        "tst",
        "tct",
        "mean_tst",
        "mean_tct",
        "tail_tst",
        "tail_tct",
    ):
        measured = getattr(times, name)
        values[name] = measured.p50 / SECOND
        values[f"{name}.mean"] = measured.mean / SECOND
    tasks, _, placed, started, _ = simulator.task_columns()
    waits = (started - submit[tasks >> 32]) / SECOND
    if "pattern" in point.parameters:
        steady = submit >= np.quantile(submit, WARM_UP)
        jct = jct[steady]
        values["jct"] = float(np.median(jct))
        waits = waits[steady[tasks >> 32]]
    values["waits"] = float(np.median(waits))
    series = {"jct": _quantiles(jct)}
    if "restart" in point.parameters:
        is_new = np.array([simulator.owner(job) == 0 for job in range(len(submit))])
        later = submit >= int(float(point.parameters["restart"]) * SECOND)
        series["new"] = _quantiles(jct[is_new & later])
        series["others"] = _quantiles(jct[~is_new & later])
    if point.parameters["system"] == "flood":
        per_second = np.bincount(placed // SECOND)
        values["peak"] = float(per_second.max())
        values["placed_in"] = float(placed.max() / SECOND)
        series["decisions"] = per_second.astype(float).tolist()
    return Result(values, series)


def _quantiles(values: NDArray[np.float64]) -> list[float]:
    """From 0 to 1 in steps of a hundredth."""
    if not len(values):
        return []
    quantiles: list[float] = np.quantile(values, np.linspace(0, 1, 101)).tolist()
    return quantiles
