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
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import accumulate
from operator import attrgetter
from typing import Final

import msgspec

from argosy.model.errors import ModelError, UnknownName
from argosy.model.jobs import TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import (
    GroupTruth,
    SimulatedJob,
    group_with_truth,
    plain_job_maker,
    simulated_job,
)
from argosy.model.units import LARGEST
from argosy.workloads.cluster_specs import (
    BOUNDS,
    DRAWN_AHEAD,
    ClusterSpec,
    KindSpec,
    MachineKind,
    PickyJobs,
    cluster,
    cluster_names,
)
from argosy.workloads.google_jobs import APART
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
MOST_BURSTY: Final = 100
#: Multiples of it are spread evenly between whole numbers.
_GOLDEN: Final = 0.6180339887498949


def machines(spec: ClusterSpec, scale: float = 1.0, *, varied: bool = False) -> tuple[Machine, ...]:
    """With `scale` 0.1, a tenth of the machines, but at least one. If `varied`, they are of several
    kinds, which are spread evenly over their numbers."""
    count, capacity = _machine_count(spec, scale), spec.machines.capacity
    if not varied:
        return tuple(Machine(f"{spec.name}-{index}", capacity) for index in range(count))
    mix = mix_of(spec)
    bounds = list(accumulate(kind.weight for kind in mix))
    kinds = [
        mix[bisect_right(bounds, bounds[-1] * (index * _GOLDEN % 1))] for index in range(count)
    ]
    return tuple(
        Machine(f"{spec.name}-{index}", kind.capacity, kind.attributes)
        for index, kind in enumerate(kinds)
    )


def _machine_count(spec: ClusterSpec, scale: float) -> int:
    return max(1, round(spec.machines.count * positive("scale", scale)))


def mix_of(spec: ClusterSpec) -> tuple[MachineKind, ...]:
    """The kinds of machines in a varied cluster."""
    if spec.machines.mix is None:
        names = [name for name in cluster_names() if cluster(name).machines.mix]
        raise ModelError(
            f"the machines of cluster {spec.name} are all alike",
            expected="one of " + ", ".join(names),
        )
    return spec.machines.mix


def jobs(
    spec: ClusterSpec,
    span: int,
    random: Random,
    *,
    rate: Mapping[str, float] | float = 1.0,
    scale: float = 1.0,
    varied: bool = False,
    burstiness: float = 1.0,
) -> Iterator[SimulatedJob]:
    """The jobs submitted before `span`, in order of submission.

    `rate` multiplies the arrivals of every kind, or of those it names; a rate of 0 leaves a kind out.
    `scale` corresponds to that of `machines`: the arrivals per machine, and so the load on the cell,
    stay the same, while the load on schedulers is scaled. If `varied`, some jobs are picky.
    `burstiness` is the coefficient of variation of the times between arrivals: exponential with 1,
    otherwise one of two exponential times, a short one that is frequent and a long one that is rare.
    """
    if not 1 <= burstiness <= MOST_BURSTY:
        raise ModelError(f"a burstiness of {burstiness}", expected=f"1 to {MOST_BURSTY}")
    if isinstance(rate, Mapping):
        for name in rate:
            if name not in spec.kinds:
                raise UnknownName(f"kind of jobs of cluster {spec.name}:", name, spec.kinds)
    streams = []
    for name, kind in spec.kinds.items():
        multiple = rate.get(name, 1.0) if isinstance(rate, Mapping) else rate
        if multiple:
            factor = positive("rate", multiple) * positive("scale", scale)
            own = random.child(name)
            arriving = _arrivals(name, kind, span, factor, own, burstiness)
            if varied and kind.picky:
                arriving = _with_picky(arriving, kind.picky, own.child("picky"))
            streams.append(arriving)
    return merge(*streams, key=attrgetter("submit"))


def _arrivals(
    name: str, kind: KindSpec, span: int, factor: float, random: Random, burstiness: float
) -> Iterator[SimulatedJob]:
    gap, exponential = kind.interarrival / factor, gap_drawer(random, burstiness)
    draw_count = kind.tasks.drawer(random.child("tasks"), BOUNDS["tasks"])
    draw_duration = kind.duration.drawer(random.child("durations"), BOUNDS["duration"])
    draw_request = request_drawer(kind.requests, random.child("requests"))
    prefix, make = f"{name}-", plain_job_maker(name, kind.precedence)
    at, number = gap * exponential(), 0
    while at < span:
        yield make(f"{prefix}{number}", int(at), draw_count(), draw_request(), draw_duration())
        number += 1
        at += gap * exponential()


def gap_drawer(random: Random, burstiness: float) -> Callable[[], float]:
    """Times between arrivals with mean 1: exponential, or hyperexponential with balanced means."""
    arrivals = random.child("arrivals")
    if burstiness == 1:
        return _units(arrivals).__next__
    exponential = arrivals.exponential
    square = burstiness * burstiness
    short = (1 + ((square - 1) / (square + 1)) ** 0.5) / 2
    uniform = random.child("bursts").uniform
    return lambda: exponential() / (2 * (short if uniform() < short else 1 - short))


def _units(random: Random) -> Iterator[float]:
    while True:
        yield from random.exponentials(DRAWN_AHEAD)


def _with_picky(
    arriving: Iterator[SimulatedJob], picky: Sequence[PickyJobs], random: Random
) -> Iterator[SimulatedJob]:
    bounds = list(accumulate(each.share for each in picky))
    for made in arriving:
        at = bisect_right(bounds, random.uniform())
        if at == len(picky):
            yield made
            continue
        groups = tuple(
            msgspec.structs.replace(group, requires=picky[at].requires) for group in made.job.groups
        )
        constraints = (APART,) if picky[at].apart else ()
        job = msgspec.structs.replace(made.job, groups=groups, constraints=constraints)
        yield msgspec.structs.replace(made, job=job)


def fill(
    spec: ClusterSpec,
    random: Random,
    *,
    scale: float = 1.0,
    turnover: int | None = None,
    span: int = 0,
    varied: bool = False,
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
    for tasks in _until_full(spec, _room(spec, scale, varied=varied), group):
        yield job(number, tasks, 0)
        number += 1
    if turnover is None or not number:
        return
    gap, at = turnover / number, 0.0
    while (at := at + gap * draw_gap.exponential()) < span:
        yield job(number, group(), int(at))
        number += 1


def _room(spec: ClusterSpec, scale: float, *, varied: bool) -> dict[str, int]:
    """What all of the machines have together."""
    if not varied:
        count = _machine_count(spec, scale)
        return {name: count * amount for name, amount in spec.machines.capacity.items()}
    there: Counter[str] = Counter()
    for machine in machines(spec, scale, varied=varied):
        there.update(dict(machine.capacity.items()))
    return there


def _until_full(
    spec: ClusterSpec,
    there: Mapping[str, int],
    draw: Callable[[], tuple[TaskGroup, GroupTruth]],
) -> Iterator[tuple[TaskGroup, GroupTruth]]:
    """Groups until the next task would exceed the fill's share of some resource."""
    left = {name: int(spec.fill.share * amount) for name, amount in there.items()}
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
