"""Figures 14 to 16 and 18 on the public Google trace (clusterdata-2011-2).

As in the paper, tasks take slots: requests and constraints of the trace are not used, and services are
what Omega's rule by priority says. The trace's machines say how many slots there are jobs for: if a
point has fewer machines, it gets as large a share of the jobs, drawn by the seed. Machines have as many
slots as it takes for the jobs to use the point's share of them on average, if every task is placed at
once; so there may be times at which they want more. What runs when the trace begins is placed first, and
is known by the time that it has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.model.errors import TraceError
from argosy.model.jobs import BATCH
from argosy.model.random import Random
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import MICROS_PER_SECOND
from argosy.papers.experiment import ExperimentPoint
from argosy.papers.firmament.workload import BEGIN, SLOT, Load, ReplayedWorkload, early
from argosy.papers.recorded import on_google_trace
from argosy.workloads import google2011

#: The figures of whole schedulers on the trace; figure 17's jobs are not from it.
TRACED: Final = ("14", "15", "16", "18")
_BEGIN: Final = int(BEGIN * MICROS_PER_SECOND)


def traced(point: ExperimentPoint, directory: Path) -> ExperimentPoint:
    return on_google_trace(point, directory, TRACED)


def recorded(directory: Path, load: Load) -> ReplayedWorkload:
    """The jobs of a trace, on a cluster that is as full as `load` says."""
    there = len(google2011.machines(directory))
    span = int(load.seconds * load.speed_up * MICROS_PER_SECOND)
    random = Random(load.seed).child("subset")
    share = min(1.0, load.machines / there)
    jobs = [
        part
        for job in google2011.jobs(directory, span=span)
        if random.uniform() < share
        for part in _in_slots(job, load.speed_up)
    ]
    until = _BEGIN + int(load.seconds * MICROS_PER_SECOND)
    times, wanted = _demand(jobs)
    inside = np.clip(times, _BEGIN, until)
    used = float((wanted[:-1] * np.diff(inside)).sum()) / (until - _BEGIN)
    if not used:
        raise TraceError(
            f"nothing runs in the first {span / MICROS_PER_SECOND:g} s",
            file=str(directory / "task_events"),
            expected="tasks that run at the trace's beginning or soon after it",
        )
    machines = min(load.machines, there)
    slots = used / load.utilisation / machines
    fitted = structs.replace(load, machines=machines, slots=max(slots, 1 / machines))
    overload = _overload(times, wanted, fitted.total_slots, until)
    there_first = sum(job.submit < _BEGIN for job in jobs)
    jobs.insert(there_first, early())
    return ReplayedWorkload(load=fitted, jobs=jobs, overload=overload)


def _in_slots(job: SimulatedJob, speed_up: float) -> Iterator[SimulatedJob]:
    """The job with a slot for each task, `speed_up` times as fast; tasks that do not end are a job of
    their own."""
    # What runs at the beginning is placed before, and ends as long after it as in the trace.
    submit = _BEGIN + int(job.submit / speed_up) if job.submit else 0
    more = 0 if job.submit else _BEGIN
    ending, endless = list[int](), 0
    for group, truth in zip(job.groups, job.truth, strict=True):
        each = [truth.duration(index) for index in range(group.count)]
        ending += [more + max(1, int(time / speed_up)) for time in each if time is not None]
        endless += each.count(None)
    if ending:
        estimate = sum(ending) // len(ending) - more if job.kind == BATCH else None
        slots = group_with_truth(len(ending), SLOT, tuple(ending), estimate)
        yield simulated_job(job.id, slots, submit=submit, kind=job.kind)
    if endless:
        slots = group_with_truth(endless, SLOT, ())
        yield simulated_job(f"{job.id}-endless", slots, submit=submit, kind=job.kind)


def _demand(jobs: Sequence[SimulatedJob]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """From when on how many slots are wanted, if every task is placed at once."""
    begins, ends = list[int](), list[int]()
    for job in jobs:
        begins += [job.submit] * job.tasks
        ends += [job.submit + time for time in job.truth[0].durations]
    at = np.array([*begins, *ends], np.int64)
    change = np.repeat(np.array([1, -1]), [len(begins), len(ends)])
    order = np.argsort(at, kind="stable")
    # Endless tasks are wanted after the last change, too.
    times = np.append(at[order], np.iinfo(np.int64).max)
    return times, np.append(np.cumsum(change[order]), 0)


def _overload(
    times: NDArray[np.int64], wanted: NDArray[np.int64], slots: int, until: int
) -> tuple[float, float] | None:
    """The longest time for which more slots are wanted than there are, in seconds after the beginning;
    None if there is none, or nothing before it to compare with."""
    longest, began = (0, 0), None
    for at, count in zip(times.tolist(), wanted.tolist(), strict=True):
        at = min(max(at, _BEGIN), until)
        if count > slots and began is None:
            began = at
        elif count <= slots and began is not None:
            longest = max(longest, (began, at), key=lambda pair: pair[1] - pair[0])
            began = None
    begin, end = ((at - _BEGIN) / MICROS_PER_SECOND for at in longest)
    return (begin, end) if 0 < begin < end else None
