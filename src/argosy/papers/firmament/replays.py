"""Whole schedulers on a replayed workload: figures 14 to 18. Decisions take their real processor time;
everything else in the simulation is modelled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import structs

from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.graph import Graph
from argosy.engines.families.flow.local_data import LocalData
from argosy.engines.families.flow.scheduler import FlowScheduler
from argosy.engines.families.flow.settings import DataSettings
from argosy.engines.families.flow.tasks import PENDING, RUNNING
from argosy.model.random import Random
from argosy.model.tasks import jobs_of
from argosy.model.transactions import TaskArray
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import MICROS_PER_SECOND
from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.papers.firmament.traces import recorded
from argosy.papers.firmament.workload import DATA, SLOT, Load, ReplayedWorkload, drawn
from argosy.papers.firmament.world import MeasuredReplay, MeasuredWorld, measured_world, replay
from argosy.solvers.flow.arrays import Numbers

#: Engine and solver of each of the paper's schedulers.
SCHEDULERS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "firmament": ("firmament", {}),
    "race": ("firmament", {"algorithm": "race"}),
    "relaxation": ("firmament", {"algorithm": "relaxation", "warm": False}),
    "cost-scaling": ("quincy", {}),
}
#: Services go before batch jobs, however long those have waited in these experiments.
SERVICES: Final = 100_000
SERVICE_ARRIVALS: Final = 0.02
#: A round is slow if it takes so many times as long as those before the surge.
_SLOW: Final = 5
_SHARES: Final = tuple(range(1, 101))


def load_of(point: ExperimentPoint) -> Load:
    told = point.parameters
    return Load(
        machines=int(told["machines"]),
        utilisation=float(told.get("utilisation", 0.9)),
        speed_up=float(told.get("speed_up", 1.0)),
        seconds=float(told["seconds"]),
        surge=float(told.get("surge", 0.0)),
        services=SERVICE_ARRIVALS,
        seed=point.seed,
    )


def workload_of(point: ExperimentPoint) -> ReplayedWorkload:
    """The jobs of a point. A trace has its own times of overload, and needs no surge."""
    load, told = load_of(point), point.parameters
    if "trace" not in told:
        return drawn(load)
    workload = recorded(Path(str(told["trace"])), structs.replace(load, surge=0.0))
    return workload if load.surge else structs.replace(workload, overload=None)


def settings_of(point: ExperimentPoint) -> tuple[str, dict[str, Any]]:
    engine, settings = SCHEDULERS[str(point.parameters["scheduler"])]
    data = {**DATA, "threshold": float(point.parameters.get("threshold", 0.14))}
    most = 64 if data["threshold"] < 0.1 else 10
    return engine, {
        "policy": "quincy",
        "data": {**data, "most_preferences": most},
        "explain_arcs": 0,
        "migration": 50,
        "services": SERVICES,
        "retry": 10 * MICROS_PER_SECOND,
        **settings,
    }


def latency(point: ExperimentPoint) -> PointResult:
    """Placement latencies, rounds, and the share of their input that tasks find on their machines."""
    engine, settings = settings_of(point)
    workload = workload_of(point)
    load = workload.load
    done = replay(load, settings, engine, workload)
    graph = _graph(done.world)
    read, fetched = _traffic(done.world, settings["data"])
    hours = load.seconds / 3_600
    services, others = _waiting(done.world)
    values = {
        **{f"p{share}": done.percentile(share) for share in (25, 50, 75, 99)},
        "largest": done.percentile(100),
        "with_last.p50": float(np.median(done.with_last)) if len(done.with_last) else 0.0,
        "busy": done.busy,
        "round": done.busy * load.seconds / max(1, done.rounds),
        "placed": done.placed / max(1, done.arrived),
        "arcs": float(graph.network.arcs),
        "locality": _locality(done.world, settings["data"]),
        # In bytes of input of the jobs that arrive: all of it, and from other machines.
        "read_an_hour": read / hours,
        "fetched_an_hour": fetched / hours,
        "machines": float(load.machines),
        # Tasks without a machine at the end.
        "waiting.services": float(services),
        "waiting.others": float(others),
    }
    if load.utilisation < 1 and workload.overload is None:
        values[DONE] = values["placed"]
    if workload.overload is not None:
        values.update(_coping(done, *workload.overload))
    curve = [done.percentile(share) for share in _SHARES]
    rounds = [done.round_percentile(share) for share in _SHARES]
    series = {"latency": curve, "round": rounds, "share": [*map(float, _SHARES)]}
    if load_of(point).surge:
        series["at"] = [at for at, _ in done.spent]
        series["spent"] = [seconds for _, seconds in done.spent]
    return PointResult(values, series)


def _coping(done: MeasuredReplay, begin: float, end: float) -> dict[str, float]:
    """Rounds before and during a time of overload, and how long after it the last slow one ended."""
    calm = done.mean_round(0, begin)
    late = done.last_slow_round(end, _SLOW * calm)
    return {"calm": calm, "surge": done.mean_round(begin, end), "recovery": late - end}


def _waiting(world: MeasuredWorld) -> tuple[int, int]:
    """Tasks of services, and other tasks, that have no machine."""
    tasks = _graph(world).tasks
    waiting = jobs_of(tasks["number"][tasks["state"] == PENDING])
    services = int(np.array(world.is_service)[waiting].sum())
    return services, len(waiting) - services


def _graph(world: MeasuredWorld) -> Graph:
    engine = world.host.schedulers[0].engine
    assert isinstance(engine, FlowScheduler)
    return engine.graph


def _locality(world: MeasuredWorld, data: dict[str, Any]) -> float:
    """The share of input bytes that newly arrived batch tasks which still run find on their machine."""
    graph = _graph(world)
    rows = np.flatnonzero(graph.tasks["state"] == RUNNING)
    read, fetched = _input(world, data, graph.tasks["number"][rows], graph.tasks["machine"][rows])
    return 1 - fetched / read if read else 0.0


def _traffic(world: MeasuredWorld, data: dict[str, Any]) -> tuple[int, float]:
    """The input of newly arrived batch tasks in bytes, and how much of it was not on the machine that
    they were first placed on."""
    each = world.host.decisions.first()
    return _input(world, data, each.tasks, each.machines)


def _input(
    world: MeasuredWorld, data: dict[str, Any], tasks: TaskArray, machines: Numbers
) -> tuple[int, float]:
    where = LocalData(DataSettings(**data), MachineVertices(world.host.view).racks)
    submit = world.host.board.job_columns()[0]
    expected = np.array(world.expected, np.int64)[jobs_of(tasks)]
    mine = (submit[jobs_of(tasks)] > 0) & (expected > 0)
    if not mine.any():
        return 0, 0.0
    found = where.of(tasks[mine], expected[mine])
    held = found.machines == machines[mine][found.machine_tasks]
    owners = found.machine_tasks[held]
    local = found.machine_blocks[held] / found.blocks[owners] * found.bytes[owners]
    read = int(found.bytes.sum())
    return read, read - float(local.sum())


def short_tasks(point: ExperimentPoint) -> PointResult:
    """Response times of jobs of ten tasks, arriving so often that 80 % of the slots are in use (figure
    17)."""
    told = point.parameters
    machines, slots = int(told["machines"]), int(told["slots"])
    duration = int(float(told["milliseconds"]) * 1_000)
    count = int(told["jobs"])
    gap = 10 * duration / (0.8 * machines * slots)
    begin = MICROS_PER_SECOND + duration
    # A scheduler that keeps up finishes long before the end; for others, unfinished jobs count as
    # ending then.
    seconds = (1.5 * count * gap + 20 * duration) / MICROS_PER_SECOND
    load = Load(machines=machines, slots=float(slots), seconds=seconds, seed=point.seed)

    def jobs() -> Iterator[SimulatedJob]:
        # One job before the start, because a scheduler's first run is not representative.
        yield simulated_job("early", group_with_truth(10, SLOT, (duration,)))
        random, at = Random(point.seed).child("short"), float(begin)
        for number in range(count):
            at += random.exponential() * gap
            group = group_with_truth(10, SLOT, (duration,))
            yield simulated_job(f"j{number}", group, submit=int(at))

    settings = {
        "policy": "load-spreading",
        "reschedule": False,
        "explain_arcs": 0,
        "explain": 10**12,
    }
    world = measured_world(load, settings, "firmament", jobs(), begin)
    world.run()
    submit, _, _, done = world.host.board.job_columns()
    ended = np.where(done < 0, world.host.runtime.now, done)
    # The first jobs find an empty cluster.
    response = (ended - submit)[count // 4 :] / duration
    return PointResult(
        {"p50": float(np.median(response)), "p99": float(np.percentile(response, 99))}
    )
