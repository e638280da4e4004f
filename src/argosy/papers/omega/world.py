"""One point of the Omega paper: the simulated world it describes, and what is measured there.

The world is that of the paper's lightweight simulator (section 4): identical machines, about 60 % full
from the start with tasks that stay, no network delay, no pause before a retry, 1,000 attempts per job.
The fill is placed at time 0 by a separate scheduler whose decisions take no time.
"""

from __future__ import annotations

from heapq import merge
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy.engines.registry import find_engines, find_published
from argosy.measures.measure import summarise
from argosy.model.errors import UnknownName
from argosy.model.random import Random
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    FleetEntry,
    JobSplit,
    Network,
    Output,
    Scenario,
    Takes,
)
from argosy.papers.experiment import ExperimentPoint, Parameter, PointResult
from argosy.papers.omega import traces
from argosy.papers.omega.workload import described
from argosy.workloads import clusters, mapreduce
from argosy.worlds.sim import SimulatedWorld

KINDS: Final = ("batch", "service")
SECOND: Final = 1_000_000
#: The text has jobs dealt by "a simple hashing function".
_HASH: Final[JobSplit] = "hash"
_MACHINES: Final = ("alike", "mixed")
HOUR: Final = 3_600 * SECOND
DAY: Final = 24 * HOUR

#: Default parameters of a point: section 4's values. Times in seconds.
USUAL: Final[dict[str, Parameter]] = {
    "cluster": "B",
    "scheme": "omega",
    "hours": 168.0,
    #: Machines and arrivals as a fraction of the cluster's.
    "cell": 1.0,
    #: Multiplies batch arrivals.
    "rate": 1.0,
    #: Number of batch schedulers.
    "schedulers": 1,
    "batch_t_job": 0.1,
    "batch_t_task": 0.005,
    "service_t_job": 0.1,
    "service_t_task": 0.005,
    "placement": "first-fit",
    #: How the initial fill is placed.
    "fill": "first-fit",
    #: "mixed": machines of several kinds, and some jobs are picky.
    "machines": "alike",
    #: The coefficient of variation of the times between arrivals.
    "burstiness": 1.0,
    #: The mean running time of the fill's tasks; 0: they stay.
    "turnover_hours": 0.0,
    "transaction": "incremental",
    "detection": "fine",
    #: What Argosy adds to the paper's schedulers: see the settings of `omega`.
    "patience": 0,
    "weight": 0.0,
    "regions": 1,
    #: Where a Mesos framework puts a partly placed job.
    "retry": "last",
    #: Policy of the MapReduce scheduler; without one there are no MapReduce jobs.
    "policy": "",
}


_OMEGA: Final = ("placement", "transaction", "detection", "patience", "weight", "regions")


def run_point(point: ExperimentPoint) -> PointResult:
    """Runs the world of the point from start to horizon."""
    told = {**USUAL, **point.parameters}
    if point.figure == "2":
        return described(str(told["cluster"]), float(told["hours"]), point.seed)
    spec = clusters.cluster(str(told["cluster"]))
    span, cell, rate = int(float(told["hours"]) * HOUR), float(told["cell"]), float(told["rate"])
    random = Random(point.seed).child("workload")
    make_jobs = mapreduce.jobs if told["policy"] else clusters.jobs
    trace = Path(str(told["trace"])) if "trace" in told else None
    if told["machines"] not in _MACHINES:
        raise UnknownName("value of machines:", str(told["machines"]), _MACHINES)
    varied, burstiness = told["machines"] == "mixed", float(told["burstiness"])
    turnover = int(float(told["turnover_hours"]) * HOUR) or None
    scenario = Scenario(
        name=f"omega, figure {point.figure}",
        seed=point.seed,
        cell=CellSpec(
            machines=traces.machines(trace)
            if trace
            else clusters.machines(spec, cell, varied=varied)
        ),
        jobs=(),
        fleet=fleet(told),
        network=Network(latency=ConstantLatency(delay=0)),
        horizon=span,
        output=Output(log="none", tasks=False),
    )
    jobs = (
        traces.jobs(trace, span)
        if trace
        else merge(
            clusters.fill(spec, random, scale=cell, turnover=turnover, span=span, varied=varied),
            make_jobs(
                spec,
                span,
                random,
                rate={"batch": rate},
                scale=cell,
                varied=varied,
                burstiness=burstiness,
            ),
            key=attrgetter("submit"),
        )
    )
    world = SimulatedWorld(scenario, find_engines(scenario.engine_names()), None, jobs=jobs)
    world.run()
    if not told["policy"]:
        return PointResult(_measured(world, told))
    values, series = _mapreduce(world)
    return PointResult(_measured(world, told) | values, series)


def fleet(told: dict[str, Parameter]) -> tuple[FleetEntry, ...]:
    """The schedulers of a point, and the one that places the initial fill."""
    times = {kind: _times(told, kind) for kind in KINDS}
    retry = {"backoff": 0}
    entries: tuple[FleetEntry, ...]
    match told["scheme"]:
        case "single-path":
            entries = (_entry("monolithic", KINDS, {**times["service"], **retry}),)
        case "multi-path":
            entries = (_entry("monolithic", KINDS, {"paths": times, **retry}),)
        case "mesos":
            # In the paper's model, what was declined is offered again at once.
            settings = {"frameworks": times, "retry": told["retry"], "refuse": 0}
            entries = (_entry("mesos", KINDS, settings),)
        case "mesos-simulator":
            settings = {"frameworks": times, **find_published("mesos-simulator")[1].settings}
            entries = (_entry("mesos", KINDS, settings),)
        case "omega" | "omega-simulator" as scheme:
            how, split = {name: told[name] for name in _OMEGA}, _HASH
            if scheme == "omega-simulator":
                form = find_published(scheme)[1]
                how, split = {**how, **form.settings}, form.split
            entries = tuple(
                _entry(
                    "omega",
                    (kind,),
                    {**times[kind], **retry, **how},
                    replicas=int(told["schedulers"]) if kind == "batch" else 1,
                    split=split,
                )
                for kind in KINDS
            )
        case other:
            raise ValueError(f"no scheme is called {other!r}")
    if told["policy"]:
        settings = {**times["batch"], "policy": told["policy"], **retry}
        entries += (_entry("mapreduce", (mapreduce.MAPREDUCE,), settings),)
    at_once = {"t_job": 0, "t_task": 0, "placement": told["fill"], **retry}
    return (*entries, _entry("omega", (clusters.FILL,), at_once))


def _times(told: dict[str, Parameter], kind: str) -> dict[str, Any]:
    return {name: round(float(told[f"{kind}_{name}"]) * SECOND) for name in ("t_job", "t_task")}


def _entry(
    engine: str,
    kinds: tuple[str, ...],
    settings: dict[str, Any],
    replicas: int = 1,
    split: JobSplit = _HASH,
) -> FleetEntry:
    return FleetEntry(
        name="-".join(kinds),
        engine=engine,
        settings=settings,
        replicas=replicas,
        split=split,
        takes=Takes(kinds=kinds),
    )


def _measured(world: SimulatedWorld, told: dict[str, Parameter]) -> dict[str, float]:
    """Measurements by kind of job, all times in seconds. Busyness and conflicts are medians over days,
    averaged over the schedulers of the kind."""
    summary = summarise(world, "")
    submit, begun, _, _ = world.host.board.job_columns()
    kinds = np.array(world.host.jobs.kinds)
    tasks = np.array(world.host.jobs.counts)
    values: dict[str, float] = {
        "events": summary.events,
        "utilisation": summary.utilisation["cpu"],
        "tasks_pending": summary.counts.tasks_pending,
        "tasks_abandoned": summary.counts.tasks_abandoned,
    }
    for kind in KINDS:
        if kind not in summary.kinds:
            continue
        jobs = summary.kinds[kind]
        first = (kinds == kind) & (begun >= 0)
        # As the scheduler decides it: single-path has one decision time for all jobs.
        path = "service" if told["scheme"] == "single-path" else kind
        t_job, t_task = float(told[f"{path}_t_job"]), float(told[f"{path}_t_task"])
        schedulers = [
            scheduler
            for scheduler, running in zip(summary.schedulers, world.host.schedulers, strict=True)
            if kind in running.entry.takes.kinds
        ]
        # An engine that decides for several kinds at once has a lane for each.
        busy = [s.lanes.get(kind, s.daily_busyness) for s in schedulers]
        values |= {
            f"{kind}.jobs": jobs.jobs,
            f"{kind}.begun": jobs.wait_time.count,
            f"{kind}.abandoned": jobs.jobs_abandoned,
            f"{kind}.unscheduled": 1 - jobs.placement_latency.count / max(1, jobs.jobs),
            f"{kind}.wait": jobs.wait_time.mean / SECOND,
            f"{kind}.wait_mad": _daily_mad(submit[first], (begun - submit)[first] / SECOND),
            f"{kind}.wait_p90": jobs.wait_time.p90 / SECOND,
            f"{kind}.placed_p90": jobs.placement_latency.p90 / SECOND,
            f"{kind}.busyness": _mean([daily.median for daily in busy]),
            f"{kind}.busyness_mad": _mean([daily.mad for daily in busy]),
            f"{kind}.conflicts": _mean([s.daily_conflicts.median for s in schedulers]),
            f"{kind}.conflicts_mad": _mean([s.daily_conflicts.mad for s in schedulers]),
            # The time to decide once on every job that was started.
            f"{kind}.busyness_once": float((t_job + t_task * tasks[first]).sum())
            / (summary.ended_at / SECOND)
            / len(schedulers),
        }
    return values


def _mapreduce(world: SimulatedWorld) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Speed-ups of MapReduce jobs, and the utilisation of the cell over time."""
    summary = summarise(world, "")
    values: dict[str, float] = {}
    # The first sample is from before the cell is filled.
    series: dict[str, list[float]] = {"hours": [at / HOUR for at in summary.series["at"][1:]]}
    if summary.speed_up is not None:
        found = summary.speed_up
        values = {
            "mapreduce.jobs": found.jobs,
            "mapreduce.faster": found.faster,
            "mapreduce.p50": found.p50,
            "mapreduce.p80": found.p80,
        }
        series["speed_up"] = found.quantiles
    for name in ("cpu", "memory"):
        series[name] = summary.series[name][1:]
        # At the start, the cell has none of the arriving jobs.
        settled = series[name][len(series[name]) // 6 :]
        values[f"{name}.deviation"] = float(np.std(settled))
    return values, series


def _daily_mad(submit: NDArray[np.int64], waits: NDArray[np.float64]) -> float:
    """The median absolute deviation of the days' averages from their median."""
    days = submit // DAY
    means = np.array([waits[days == day].mean() for day in np.unique(days)])
    return float(np.median(np.abs(means - np.median(means)))) if len(means) else 0.0


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
