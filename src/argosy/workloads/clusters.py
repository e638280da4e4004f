"""Workloads shaped like the Omega paper's clusters A, B, C and D, and the published simulator's.

    cluster     a cluster's parameters by name, from `clusters.toml`
    machines    its machines
    fill        the jobs in the cell when a run begins
    jobs        the jobs that arrive, in order of submission

Jobs are generated lazily, because a week of cluster B has 600,000 of them. Arrivals, task counts,
durations and sizes have separate streams, so they are not correlated, and a higher `rate` submits the
same jobs sooner.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from operator import attrgetter
from typing import Final

import msgspec

from argosy.model.errors import ModelError, UnknownName
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import GroupTruth, SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import LARGEST
from argosy.workloads.cluster_specs import (
    BOUNDS,
    ClusterSpec,
    KindSpec,
    cluster,
    cluster_names,
)
from argosy.workloads.synthetic import WeightedRequest

__all__ = [
    "FILL",
    "ClusterSpec",
    "KindSpec",
    "cluster",
    "cluster_names",
    "fill",
    "jobs",
    "machines",
]

#: The kind of the jobs in the initial fill.
FILL: Final = "fill"


def machines(spec: ClusterSpec, scale: float = 1.0) -> tuple[Machine, ...]:
    """With `scale` 0.1, a tenth of the machines, but at least one."""
    count = max(1, round(spec.machines.count * positive("scale", scale)))
    capacity = spec.machines.capacity
    return tuple(Machine(f"{spec.name}-{index}", capacity) for index in range(count))


def jobs(
    spec: ClusterSpec,
    span: int,
    random: Random,
    *,
    rate: Mapping[str, float] | float = 1.0,
    scale: float = 1.0,
) -> Iterator[SimulatedJob]:
    """The jobs submitted before `span`, in order of submission.

    `rate` multiplies the arrivals of every kind, or of those it names; a rate of 0 leaves a kind out.
    `scale` corresponds to that of `machines`: the arrivals per machine, and so the load on the cell,
    stay the same, while the load on schedulers is scaled.
    """
    if isinstance(rate, Mapping):
        for name in rate:
            if name not in spec.kinds:
                raise UnknownName(f"kind of jobs of cluster {spec.name}:", name, spec.kinds)
    streams = []
    for name, kind in spec.kinds.items():
        multiple = rate.get(name, 1.0) if isinstance(rate, Mapping) else rate
        if multiple:
            factor = positive("rate", multiple) * positive("scale", scale)
            streams.append(_arrivals(name, kind, span, factor, random.child(name)))
    return merge(*streams, key=attrgetter("submit"))


def _arrivals(
    name: str, kind: KindSpec, span: int, factor: float, random: Random
) -> Iterator[SimulatedJob]:
    gap, exponential = kind.interarrival / factor, random.child("arrivals").exponential
    draw_count = kind.tasks.drawer(random.child("tasks"), BOUNDS["tasks"])
    draw_duration = kind.duration.drawer(random.child("durations"), BOUNDS["duration"])
    draw_request = request_drawer(kind.requests, random.child("requests"))
    prefix, precedence = f"{name}-", kind.precedence
    at, number = gap * exponential(), 0
    while at < span:
        # As `group_with_truth` and `simulated_job` would make it: a week has a million jobs.
        count, request, duration = draw_count(), draw_request(), draw_duration()
        group = TaskGroup(count, request, duration)
        job = Job(f"{prefix}{number}", (group,), name, precedence)
        yield SimulatedJob(job, int(at), (GroupTruth((duration,)),))
        number += 1
        at += gap * exponential()


def fill(
    spec: ClusterSpec,
    random: Random,
    *,
    scale: float = 1.0,
    turnover: int | None = None,
    span: int = 0,
) -> Iterator[SimulatedJob]:
    """Jobs of kind ``fill`` that are there at time 0 and take the cluster's initial share of the cell.

    They never end, unless `turnover` is given: then every task runs for an exponential time with that
    mean, and until `span` new jobs arrive at the rate at which tasks end, so that the share stays near
    its initial value.
    """
    if turnover is not None and turnover <= 0:
        raise ModelError(f"a turnover of {turnover} µs", expected="a mean running time above 0")
    random = random.child(FILL)
    draw_request = request_drawer(spec.fill.requests, random.child("requests"))
    draw_time, draw_gap = random.child("durations").exponential, random.child("arrivals")

    def group() -> tuple[TaskGroup, GroupTruth]:
        durations: tuple[int, ...] = ()
        if turnover is not None:
            durations = (min(int(turnover * draw_time()) + 1, LARGEST),)
        return group_with_truth(spec.fill.tasks, draw_request(), durations)

    def job(number: int, group: tuple[TaskGroup, GroupTruth], at: int) -> SimulatedJob:
        precedence = spec.fill.precedence
        return simulated_job(f"{FILL}-{number}", group, submit=at, kind=FILL, precedence=precedence)

    number = 0
    for tasks in _until_full(spec, len(machines(spec, scale)), group):
        yield job(number, tasks, 0)
        number += 1
    if turnover is None or not number:
        return
    gap, at = turnover / number, 0.0
    while (at := at + gap * draw_gap.exponential()) < span:
        yield job(number, group(), int(at))
        number += 1


def _until_full(
    spec: ClusterSpec, machines: int, draw: Callable[[], tuple[TaskGroup, GroupTruth]]
) -> Iterator[tuple[TaskGroup, GroupTruth]]:
    """Groups until the next task would exceed the fill's share of some resource."""
    left = {
        name: int(spec.fill.share * machines * amount)
        for name, amount in spec.machines.capacity.items()
    }
    while True:
        group, truth = draw()
        asked = {name: amount for name, amount in group.request.items() if amount}
        fits = min(left[name] // amount for name, amount in asked.items())
        if fits:
            count = min(group.count, fits)
            yield msgspec.structs.replace(group, count=count), truth
            for name, amount in asked.items():
                left[name] -= count * amount
        if fits <= group.count:
            return


def request_drawer(requests: Sequence[WeightedRequest], random: Random) -> Callable[[], Resources]:
    """Draws share a few resource vectors, which keeps jobs small."""
    vectors = [choice.request for choice in requests]
    if len(vectors) == 1:
        only = vectors[0]
        return lambda: only
    bounds, reached = [], 0.0
    # Not `sum`, which rounds floats differently between versions of Python.
    for choice in requests:
        reached += choice.weight
        bounds.append(reached)
    last, uniform = len(vectors) - 1, random.uniform
    return lambda: vectors[min(bisect_right(bounds, reached * uniform()), last)]


def positive(name: str, value: float) -> float:
    if not 0 < value < float("inf"):
        raise ModelError(f"a {name} of {value}", expected="a number above 0")
    return value
