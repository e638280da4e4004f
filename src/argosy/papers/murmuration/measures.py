"""Measurements of a run: medians, and distributions as quantiles from 0 to 1 in steps of 0.01."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.measures.measure import summarise
from argosy.measures.timeline import TaskTimes, Times, task_times
from argosy.model.tasks import jobs_of
from argosy.papers.experiment import ExperimentPoint, PointResult
from argosy.papers.murmuration.jobs import is_one_by_one
from argosy.worlds.sim import SimulatedWorld

_SECOND: Final = 1_000_000
#: A cluster that runs this share of its possible pods is full.
_FULL: Final = 0.95
STAGES: Final = ("added", "scheduled", "started", "finished")
#: Bytes of an update about one task: a machine and an estimate of four bytes each.
_ENTRY: Final = 8
Floats = NDArray[np.float64]


def measured(world: SimulatedWorld, point: ExperimentPoint) -> PointResult:
    simulator, told = world.host.runtime, point.parameters
    submit, first_attempt, _, done = simulator.board.job_columns()
    tasks, _, placed, started, finished = simulator.task_columns()
    times = task_times(
        tasks, placed, started, finished, submit, first_attempt, simulator.board.thought_by_job()
    )
    jobs = _jobs(world, point)
    arrived, done = _first_and_last(submit, done, jobs)
    jct = (done - arrived) / _SECOND
    counted = np.ones(len(arrived), bool)
    summary = summarise(world, "")
    values = {
        "machines": float(world.host.view.machines),
        "tasks": float(len(tasks)),
        "utilisation": max(summary.utilisation.values()),
        "schedulers": float(len(world.host.schedulers)),
        "messages": float(world.host.links.counts["sent"]),
        # Reports of ends, one to each scheduler that keeps a view.
        "notices": float(simulator.ends_told),
        "bytes": float(_ENTRY * (_placements_told(world) + simulator.ends_told)),
    }
    if "pattern" in told:
        since, values["full"] = _steady(world, started, finished, submit)
        counted = arrived >= since
    by_task = jobs[jobs_of(times.tasks)]
    rows = counted[by_task]
    by_job = _of_jobs(times, by_task, rows)
    series = {name: _quantiles(found) for name, found in by_job.items()}
    series["jct"] = _quantiles(jct[counted])
    series["wait"] = _quantiles((times.tst + times.w2x)[rows] / _SECOND)
    values["jobs"] = float(counted.sum())
    values["w2x.mean"] = float(times.w2x[rows].mean()) / _SECOND
    values["tct.mean"] = float(times.tct[rows].mean()) / _SECOND
    values["tst.p50"] = float(np.median(times.tst[rows])) / _SECOND
    values["jct"] = float(np.median(jct[counted]))
    for part in (*STAGES, "wait"):
        values[f"spread.{part}"] = float(by_job[f"spread_{part}"].mean())
    if is_one_by_one(point):
        arrivals = np.bincount(submit // _SECOND).astype(float)
        values["arrivals.p50"], values["arrivals.peak"] = (
            float(np.median(arrivals)),
            float(arrivals.max()),
        )
        series["arrivals"] = _quantiles(arrivals)
    if "restart" in told:
        is_new = np.array([simulator.board.owner(job) == 0 for job in range(len(submit))])
        later = submit >= int(float(told["restart"]) * _SECOND)
        series["new"] = _quantiles(jct[is_new & later])
        series["others"] = _quantiles(jct[~is_new & later])
    if told["system"] == "flood":
        per_second = np.bincount(placed // _SECOND)
        values["peak"] = float(per_second.max())
        values["placed_in"] = float(placed.max() / _SECOND)
        series["decisions"] = per_second.astype(float).tolist()
    return PointResult(values, series)


def _jobs(world: SimulatedWorld, point: ExperimentPoint) -> NDArray[np.int64]:
    """The number of the paper's job for each job of the run."""
    count = len(world.scenario.jobs)
    if not is_one_by_one(point):
        return np.arange(count)
    owners = [job.job.owner for job in world.scenario.jobs]
    is_next = [one != other for one, other in pairwise(owners)]
    return np.concatenate([[0], np.cumsum(is_next)]).astype(np.int64)


def _first_and_last(submit: Times, done: Times, jobs: NDArray[np.int64]) -> tuple[Times, Times]:
    """When each job's first task came, and when its last one ended."""
    count = int(jobs[-1]) + 1
    arrived, ended = np.full(count, submit.max()), np.zeros(count, np.int64)
    np.minimum.at(arrived, jobs, submit)
    np.maximum.at(ended, jobs, done)
    return arrived, ended


def _placements_told(world: SimulatedWorld) -> int:
    return sum(scheduler.placements_told for scheduler in world.host.schedulers)


def _steady(
    world: SimulatedWorld, started: Times, finished: Times, submit: Times
) -> tuple[int, float]:
    """When the cluster is first full, and the share of time that it is full from then until the last
    job arrives. If it never is, time counts from the start."""
    slots = int(_slots(world).sum())
    times = np.concatenate([started, finished])
    changes = np.repeat([1, -1], len(started))
    # At the same instant, ends come before starts.
    order = np.lexsort((changes, times))
    running = np.cumsum(changes[order])
    at = times[order]
    is_full = running >= _FULL * slots
    if not is_full.any():
        return 0, 0.0
    since, last = int(at[is_full.argmax()]), int(submit[-1])
    if since >= last:
        return 0, 0.0
    lasts = np.diff(np.clip(at, since, last), append=last)
    return since, float(lasts[is_full].sum() / (last - since))


def _slots(world: SimulatedWorld) -> NDArray[np.int64]:
    """The maximum number of pods on each machine."""
    asked = np.array(world.scenario.jobs[0].groups[0].request.vector(world.host.view.dimensions))
    is_asked = asked > 0
    slots: NDArray[np.int64] = (world.host.view.capacity()[:, is_asked] // asked[is_asked]).min(
        axis=1
    )
    return slots


def _of_jobs(
    times: TaskTimes, by_task: NDArray[np.int64], rows: NDArray[np.bool_]
) -> dict[str, Floats]:
    """Per job: mean and largest parts of its tasks' lives, and how far they drift apart."""
    _, jobs = np.unique(by_task[rows], return_inverse=True)
    counts = np.bincount(jobs)
    tst, w2x, x, tct = (part[rows] / _SECOND for part in (times.tst, times.w2x, times.x, times.tct))
    found = {"mean_w2x": np.bincount(jobs, w2x) / counts, "mean_x": np.bincount(jobs, x) / counts}
    for name, time in (("tst", tst), ("tct", tct)):
        found[f"mean_{name}"] = np.bincount(jobs, time) / counts
        found[f"tail_{name}"] = np.zeros(len(counts))
        np.maximum.at(found[f"tail_{name}"], jobs, time)
    # Seconds since the first submission, which are small enough to be squared.
    added = (times.submitted[rows] - times.submitted.min()) / _SECOND
    waits = tst + w2x
    ends = (added, added + tst, added + waits, added + tct, waits)
    for part, reached in zip((*STAGES, "wait"), ends, strict=True):
        mean = np.bincount(jobs, reached) / counts
        found[f"spread_{part}"] = np.sqrt(np.bincount(jobs, (reached - mean[jobs]) ** 2) / counts)
    return found


def _quantiles(values: Floats) -> list[float]:
    if not len(values):
        return []
    quantiles: list[float] = np.quantile(values, np.linspace(0, 1, 101)).tolist()
    return quantiles
