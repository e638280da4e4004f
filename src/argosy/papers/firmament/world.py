"""The Firmament paper's simulated cluster and its workload.

The Google trace is not part of Argosy, so the workload is reconstructed from published descriptions.
Batch tasks run for a median of 420 s, 90 % below an hour, 99 % below 5.1 hours (section 7.4, without
its speed-up of 200): a log-normal distribution with sigma 1.68 matches all three. 1.2 % of jobs have
more than 1,000 tasks and some have 20,000 (4.3): a bounded Pareto distribution with exponent 0.64. Half
of the running tasks belong to services, which do not end. The run starts with a cluster in its steady
state: remaining times are those of tasks observed at a random moment. Local data is estimated by the
`quincy` policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from time import thread_time_ns
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.firmament import Firmament
from argosy.engines.quincy import Quincy
from argosy.host.host import Host
from argosy.host.scheduler import Scheduler
from argosy.model.events import Deliberated, Event
from argosy.model.jobs import BATCH, SERVICE
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    CellSpec,
    ConstantLatency,
    FleetEntry,
    GroupSpec,
    Measured,
    Network,
    Output,
    Scenario,
)
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import MICROS_PER_SECOND
from argosy.worlds.sim import SimulatedWorld

GIB: Final = 2**30
RACK: Final = 48
#: The resources of one slot.
SLOT: Final = Resources(1_000, 4 * GIB)
MEDIAN_SECONDS: Final = 420.0
SIGMA: Final = math.log(3_600 / MEDIAN_SECONDS) / 1.2816
LARGEST_JOB: Final = 20_000
JOB_EXPONENT: Final = 0.64
SERVICE_SHARE: Final = 0.5
#: When the initial tasks are placed; when arrivals start.
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


def arriving(load: Load) -> Iterator[SimulatedJob]:
    """Batch jobs arriving at the rate that keeps the cluster's utilisation constant."""
    random = Random(load.seed).child("arriving")
    sizes = np.arange(1, load.largest_job + 1, dtype=np.float64)
    weights = sizes**-JOB_EXPONENT - (sizes + 1.0) ** -JOB_EXPONENT
    mean_size = float((sizes * weights).sum() / weights.sum())
    batch = load.live * (1 - SERVICE_SHARE)
    jobs_a_second = batch / mean_batch_seconds() / mean_size * load.speed_up
    at, number = BEGIN, 0
    # One job before the start, so that work left over from placing the initial tasks is not counted.
    early = group_with_truth(1, SLOT, (MICROS_PER_SECOND,))
    yield simulated_job("early", early, submit=int((BEGIN - 5) * MICROS_PER_SECOND))
    surge = _surge(load)
    while True:
        at += random.exponential() / jobs_a_second
        while surge and surge[0].submit <= at * MICROS_PER_SECOND:
            yield surge.pop(0)
        if at > BEGIN + load.seconds:
            return
        seconds = MEDIAN_SECONDS * math.exp(SIGMA * random.normal()) / load.speed_up
        duration = max(1, int(seconds * MICROS_PER_SECOND))
        group = group_with_truth(_size(random, load), SLOT, (duration,))
        yield simulated_job(f"job-{number}", group, submit=int(at * MICROS_PER_SECOND))
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


class MeasuredReplay(msgspec.Struct, frozen=True):
    """The results of a run: placement latencies of arriving tasks, in seconds; when the scheduler
    decided and how long it computed; and the share of time it was busy."""

    latencies: NDArray[np.float64]
    arrived: int
    placed: int
    spent: list[tuple[float, float]]
    busy: float
    world: MeasuredWorld

    @property
    def rounds(self) -> int:
        return len(self.spent)

    def percentile(self, share: float) -> float:
        return _percentile(self.latencies, share)

    def mean_round(self, begin: float, end: float) -> float:
        """Of the rounds that began between two times."""
        took = [seconds for at, seconds in self.spent if begin <= at < end]
        return sum(took) / max(1, len(took))

    def last_slow_round(self, after: float, limit: float) -> float:
        """When the last round after a time that took longer than `limit` ended, or that time."""
        return max([after, *(at + s for at, s in self.spent if at >= after and s > limit)])

    def round_percentile(self, share: float) -> float:
        return _percentile([seconds for _, seconds in self.spent], share)


def _percentile(values: Sequence[float] | NDArray[np.float64], share: float) -> float:
    return float(np.percentile(values, share)) if len(values) else 0.0


class MeasuredHost(Host):
    """Records when its scheduler decides. Until `free_until`, decisions take no time."""

    free_until = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        #: When each decision started, and how long it took.
        self.decided: list[tuple[int, int]] = []

    def post(self, at: int, scheduler: Scheduler, event: Event) -> None:
        if isinstance(event, Deliberated):
            now = self.runtime.now
            self.decided.append((now, at - now))
            at = at if now >= self.free_until else now
        super().post(at, scheduler, event)


class MeasuredWorld(SimulatedWorld):
    """Records how long its tasks are expected to run. Until `begin`, decisions take no time, so the
    initial tasks are in place at once and end when they should."""

    host: MeasuredHost
    host_type = MeasuredHost

    def __init__(self, scenario: Scenario, jobs: Iterator[SimulatedJob], begin: int = 0) -> None:
        #: By job number.
        self.expected: list[int] = []
        super().__init__(
            scenario, {Firmament.name: Firmament, Quincy.name: Quincy}, jobs=self._noted(jobs)
        )
        self.host.free_until = begin

    def _noted(self, jobs: Iterator[SimulatedJob]) -> Iterator[SimulatedJob]:
        for job in jobs:
            self.expected.append(job.groups[0].estimate or 0)
            yield job

    def computing_time(self) -> int:
        """Processor time of the deciding thread only: in a race, the other solver has its own
        processor, as in the paper, and either stops when the other has the answer."""
        return thread_time_ns()


def measured_world(
    load: Load, settings: dict[str, Any], engine: str, jobs: Iterator[SimulatedJob], begin: int = 0
) -> MeasuredWorld:
    """A world in which decisions take their real processor time."""
    scenario = Scenario(
        name="replay",
        seed=load.seed,
        cell=cluster(load),
        jobs=(),
        fleet=(FleetEntry(name="s", engine=engine, settings=settings, decision_time=Measured()),),
        network=Network(latency=ConstantLatency(delay=0)),
        horizon=int((BEGIN + load.seconds + 10) * MICROS_PER_SECOND),
        output=Output(log="none"),
    )
    return MeasuredWorld(scenario, jobs, begin)


def replay(load: Load, settings: dict[str, Any], engine: str = "firmament") -> MeasuredReplay:
    begin = int(BEGIN * MICROS_PER_SECOND)
    world = measured_world(load, settings, engine, chain(found(load), arriving(load)), begin)
    world.run()
    end = begin + int(load.seconds * MICROS_PER_SECOND)
    submit, _, placed, _ = world.host.board.job_columns()
    sizes = np.array(world.host.jobs.counts, np.int64)
    mine = submit >= begin
    arrived = int(sizes[mine].sum())
    # A job's tasks count as placed with the last of them; unplaced ones count as placed at the end.
    until = np.where(placed >= 0, placed, world.host.runtime.now)
    latencies = np.repeat((until - submit)[mine], sizes[mine]) / MICROS_PER_SECOND
    there = int(sizes[mine & (placed >= 0)].sum())
    spent = [
        ((at - begin) / MICROS_PER_SECOND, took / MICROS_PER_SECOND)
        for at, took in world.host.decided
        if begin <= at < end
    ]
    busy = sum(took for _, took in spent) / load.seconds
    return MeasuredReplay(latencies, arrived, there, spent, busy, world)
