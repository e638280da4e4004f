"""The jobs of a point: drawn with the traces' characteristics, or from the traces themselves.

The cluster experiments submit about 150,000 pods at the rates of a pattern, "starting from a randomly
selected job" of the trace. Pods come one after another, as the paper's control plane creates them, so
each is a job of its own here, owned by the job it is from. The amount of work depends on the starting
point: windows of the trace's first 10,000 jobs have 400 to 920 s per task. The paper says that its
cluster was full; to make it as full here for any draw, the number of machines is proportional to the
work: 50 if tasks run as long as the average over the whole trace.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from msgspec import structs

from argosy.model.errors import TraceError
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob
from argosy.papers.experiment import ExperimentPoint
from argosy.workloads import eagle, fanout
from argosy.workloads.synthetic import Estimates

FILES: Final = {"yahoo": "yahoo-10k.jobs.csv", "cloudera": "cloudera-c-10k.jobs.csv"}
POD: Final = Resources(cpu=100, extras={"pods": 1})
#: Seconds per task over the first 10,000 jobs of the Yahoo trace.
_WORK_PER_TASK: Final = 702.1
_SPEEDUP: Final = 1_000.0
_FLOOD_JOBS: Final = 500
_FLOOD_SPEEDUP: Final = 100.0
#: "Median error of 15 % and 99th percentile error of 50 %": approximately a normal distribution.
_ERROR: Final = 0.21


def traced(point: ExperimentPoint, directory: Path) -> ExperimentPoint:
    """The same point on the trace in `directory`, whose digest becomes part of the point. The flood is
    always generated, because no trace has jobs that large."""
    if point.parameters["system"] == "flood":
        return point
    path = directory / FILES[str(point.parameters.get("workload", "yahoo"))]
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise TraceError(
            f"cannot be read: {error.strerror}",
            file=str(path),
            expected=f"a directory with {FILES['yahoo']} and {FILES['cloudera']}",
        ) from error
    told = {**point.parameters, "trace": str(path), "digest": digest}
    return structs.replace(point, parameters=told)


def is_one_by_one(point: ExperimentPoint) -> bool:
    """Whether each task is a job of its own."""
    return "pattern" in point.parameters and point.parameters["system"] != "flood"


def jobs_of(point: ExperimentPoint) -> tuple[SimulatedJob, ...]:
    told, random = point.parameters, Random(point.seed).child("workload")
    if told["system"] == "flood":
        return _flood(int(told["pods"]), random)
    if "pattern" in told:
        return _of_a_pattern(point, random)
    error = float(told.get("error", 0.0))
    wrong = Estimates(low=1 - error, high=1 + error) if error else None
    count = int(told["jobs"])
    if "trace" in told:
        path = Path(str(told["trace"]))
        return tuple(eagle.read(path, random, speedup=_SPEEDUP, most=count, estimates=wrong))
    shape = fanout.shape(str(told["workload"]))
    return tuple(fanout.generate(shape, count, random, speedup=_SPEEDUP, estimates=wrong))


def _of_a_pattern(point: ExperimentPoint, random: Random) -> tuple[SimulatedJob, ...]:
    told = point.parameters
    pods, pattern = int(told["pods"]), str(told["pattern"])
    source: Iterable[SimulatedJob]
    if "trace" in told:
        known = list(eagle.read(Path(str(told["trace"])), random, request=POD))
        first = random.child("start").below(len(known))
        source = chain(known[first:], known[:first])
    else:
        # More than enough, because every job has at least one task.
        source = fanout.generate(fanout.shape("yahoo"), pods, random, request=POD)
    chosen = list(_mistaken(_until(source, pods), random.child("mistakes")))
    return tuple(fanout.one_by_one(chosen, pattern, random.child("pattern")))


def _until(jobs: Iterable[SimulatedJob], pods: int) -> Iterator[SimulatedJob]:
    """As many jobs as are needed for this many pods."""
    total = 0
    for job in jobs:
        yield job
        total += job.tasks
        if total >= pods:
            return


def _mistaken(jobs: Iterable[SimulatedJob], random: Random) -> Iterator[SimulatedJob]:
    for job in jobs:
        factor = min(max(1 + _ERROR * random.normal(), 0.1), 1.9)
        [group] = job.groups
        told = max(1, int((group.estimate or 0) * factor))
        mistaken = structs.replace(group, estimate=told)
        yield structs.replace(job, job=structs.replace(job.job, groups=(mistaken,)))


def _flood(pods: int, random: Random) -> tuple[SimulatedJob, ...]:
    """500 jobs of pattern C, a hundred times as fast, with `pods` tasks in total."""
    spec = fanout.shape("yahoo")
    plain = sum(job.tasks for job in fanout.generate(spec, _FLOOD_JOBS, random, scale=1.0))
    return tuple(
        fanout.generate(
            spec,
            _FLOOD_JOBS,
            random,
            pattern="C",
            speedup=_FLOOD_SPEEDUP,
            scale=pods / plain,
            request=POD,
        )
    )


def machines_for(jobs: tuple[SimulatedJob, ...], pattern: str) -> int:
    """The number of machines that is to these jobs what 50 is to the trace's tasks at the pattern's
    mean rate."""
    work = sum(sum(job.truth[0].durations) for job in jobs) / 1e6
    span = max(1.0, jobs[-1].submit / 1e6)
    expected = fanout.PATTERNS[pattern].mean * _WORK_PER_TASK
    return max(1, round(50 * (work / span) / expected))
