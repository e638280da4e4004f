"""The Firmament paper's simulated cluster and its jobs.

The Google trace is not part of Argosy, so the workload is reconstructed from published descriptions.
Batch tasks run for a median of 420 s, 90 % below an hour, 99 % below 5.1 hours (section 7.4, without
its speed-up of 200): a log-normal distribution with sigma 1.68 matches all three. 1.2 % of jobs have
more than 1,000 tasks and some have 20,000 (4.3): a bounded Pareto distribution with exponent 0.64. Half
of the running tasks belong to services, which do not end. The run starts with a cluster in its steady
state: remaining times are those of tasks observed at a random moment. Of the jobs that arrive, a few
may be services, which do not end either. Local data is estimated by the `quincy` policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec
import numpy as np

from argosy.model.jobs import BATCH, SERVICE
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, GroupSpec
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import MICROS_PER_SECOND

GIB: Final = 2**30
RACK: Final = 48
#: The resources of one slot.
SLOT: Final = Resources(1_000, 4 * GIB)
MEDIAN_SECONDS: Final = 420.0
SIGMA: Final = math.log(3_600 / MEDIAN_SECONDS) / 1.2816
LARGEST_JOB: Final = 20_000
JOB_EXPONENT: Final = 0.64
SERVICE_SHARE: Final = 0.5
#: When the initial tasks are placed, and one more job comes; when arrivals start.
READY: Final = 25.0
BEGIN: Final = 30.0
#: The paper does not give its distribution of input sizes. With this one, the median batch task reads
#: two blocks and none more than eight, which comes close to the paper's locality.
DATA: Final = {"rate": 2**20, "most_blocks": 8, "threshold": 0.14}


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, its utilisation, and how long new jobs arrive."""

    machines: int
    slots: float = 12.0
    utilisation: float = 0.9
    speed_up: float = 1.0
    seconds: float = 30.0
    #: As a share of the slots: tasks that come at once after a quarter of the time and stay for another
    #: quarter.
    surge: float = 0.0
    #: The share of arriving jobs that are services, which do not end: too few to change utilisation.
    services: float = 0.0
    seed: int = 1

    @property
    def total_slots(self) -> int:
        return math.floor(self.machines * self.slots)

    def machine_slots(self, number: int) -> int:
        """If the mean is not a whole number, machines differ by one slot."""
        return math.floor((number + 1) * self.slots) - math.floor(number * self.slots)

    @property
    def largest_job(self) -> int:
        """At most a hundredth of the cluster; otherwise utilisation would not be steady."""
        return max(2, min(LARGEST_JOB, self.total_slots // 100))

    @property
    def live(self) -> int:
        return round(self.total_slots * self.utilisation)


def cluster(load: Load) -> CellSpec:
    racks = [f"rack-{number}" for number in range(-(-load.machines // RACK))]
    machines = []
    for number in range(load.machines):
        slots = load.machine_slots(number)
        capacity = Resources(SLOT.cpu * slots, SLOT.memory * slots)
        machines.append(Machine(f"m{number}", capacity, joins={"rack": (racks[number // RACK],)}))
    return CellSpec(machines=tuple(machines), groups=(GroupSpec(name="rack", sets=tuple(racks)),))


def mean_batch_seconds() -> float:
    return MEDIAN_SECONDS * math.exp(SIGMA**2 / 2)


def _size(random: Random, load: Load) -> int:
    return int(random.bounded_pareto(1.0, float(load.largest_job + 1), JOB_EXPONENT))


def found(load: Load) -> Iterator[SimulatedJob]:
    """The tasks running when the experiment starts: a long-running share, and batch tasks in
    progress."""
    random = Random(load.seed).child("found")
    left, number = load.live, 0
    while left > 0:
        is_service = random.uniform() < SERVICE_SHARE
        count = min(left, _size(random, load))
        # The chance of observing a task is proportional to its length, at any point of it.
        length = MEDIAN_SECONDS * math.exp(SIGMA**2 + SIGMA * random.normal())
        remains = length * random.uniform() / load.speed_up
        durations = () if is_service else (int((BEGIN + remains) * MICROS_PER_SECOND),)
        expected = int(length / load.speed_up * MICROS_PER_SECOND)
        group = group_with_truth(count, SLOT, durations, None if is_service else expected)
        yield simulated_job(f"found-{number}", group, kind=SERVICE if is_service else BATCH)
        left, number = left - count, number + 1


def early() -> SimulatedJob:
    """One job before the start, so that work left over from placing the initial tasks is not counted."""
    group = group_with_truth(1, SLOT, (MICROS_PER_SECOND,))
    return simulated_job("early", group, submit=int(READY * MICROS_PER_SECOND))


def arriving(load: Load) -> Iterator[SimulatedJob]:
    """Jobs arriving at the rate that keeps the cluster's utilisation constant."""
    random, kinds = (Random(load.seed).child(name) for name in ("arriving", "kinds"))
    sizes = np.arange(1, load.largest_job + 1, dtype=np.float64)
    weights = sizes**-JOB_EXPONENT - (sizes + 1.0) ** -JOB_EXPONENT
    mean_size = float((sizes * weights).sum() / weights.sum())
    batch = load.live * (1 - SERVICE_SHARE)
    jobs_a_second = batch / mean_batch_seconds() / mean_size * load.speed_up
    at, number = BEGIN, 0
    yield early()
    surge = _surge(load)
    while True:
        at += random.exponential() / jobs_a_second
        while surge and surge[0].submit <= at * MICROS_PER_SECOND:
            yield surge.pop(0)
        if at > BEGIN + load.seconds:
            return
        seconds = MEDIAN_SECONDS * math.exp(SIGMA * random.normal()) / load.speed_up
        is_service = kinds.uniform() < load.services
        durations = () if is_service else (max(1, int(seconds * MICROS_PER_SECOND)),)
        group = group_with_truth(_size(random, load), SLOT, durations)
        kind = SERVICE if is_service else BATCH
        yield simulated_job(f"job-{number}", group, submit=int(at * MICROS_PER_SECOND), kind=kind)
        number += 1


def _surge(load: Load) -> list[SimulatedJob]:
    """The jobs of the surge, all submitted at once."""
    left, jobs = round(load.surge * load.total_slots), list[SimulatedJob]()
    duration = int(load.seconds / 4 * MICROS_PER_SECOND)
    while left > 0:
        count = min(left, load.largest_job)
        submit = int((BEGIN + load.seconds / 4) * MICROS_PER_SECOND)
        group = group_with_truth(count, SLOT, (duration,))
        jobs.append(simulated_job(f"surge-{len(jobs)}", group, submit=submit))
        left -= count
    return jobs


class ReplayedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of a replay, in order of submission: those found there, submitted at once, and those that
    arrive from `BEGIN` on."""

    load: Load
    jobs: Iterable[SimulatedJob]
    #: When they want more slots than there are, in seconds after the beginning; None: never, or always.
    overload: tuple[float, float] | None = None


def drawn(load: Load) -> ReplayedWorkload:
    # The surge has ended by itself after half of the time.
    overload = (load.seconds / 4, load.seconds / 2) if load.surge else None
    return ReplayedWorkload(load=load, jobs=chain(found(load), arriving(load)), overload=overload)
