"""A simulated world in which decisions take their real processor time, and what is measured there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import thread_time_ns
from typing import Any

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.engines.api import Engine
from argosy.engines.families.flow.scheduler import FlowScheduler, RoundQuestion
from argosy.engines.firmament import Firmament
from argosy.engines.quincy import Quincy
from argosy.host.host import Host
from argosy.host.job_table import JobTable
from argosy.host.journal import DecisionWriter, Journal
from argosy.host.scheduler import Scheduler
from argosy.model.effects import Question
from argosy.model.events import Decision, Deliberated, Event
from argosy.model.explanations import Explanation
from argosy.model.jobs import SERVICE
from argosy.model.scenario import (
    ConstantLatency,
    FleetEntry,
    Measured,
    Network,
    Output,
    Scenario,
)
from argosy.model.tasks import jobs_of
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.truth import SimulatedJob
from argosy.model.units import MICROS_PER_SECOND
from argosy.papers.firmament.workload import BEGIN, READY, Load, ReplayedWorkload, cluster, drawn
from argosy.solvers.flow import Algorithm
from argosy.worlds.sim import SimulatedWorld


class MeasuredReplay(msgspec.Struct, frozen=True):
    """The results of a run: placement latencies of arriving tasks, in seconds; when the scheduler
    decided and how long it computed; and the share of time it was busy."""

    #: Of each task; those that were not placed count as placed at the end.
    latencies: NDArray[np.float64]
    #: The same, if all tasks of a job count as placed with the last of them.
    with_last: NDArray[np.float64]
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


class PlacementRecorder(DecisionWriter):
    """Keeps what was placed when and where."""

    def __init__(self, journal: Journal | None, jobs: JobTable) -> None:
        super().__init__(journal, jobs)
        self._tasks: list[TaskArray] = []
        self._machines: list[MachineArray] = []
        self._times: list[int] = []

    def placed(
        self,
        now: int,
        tasks: TaskArray,
        machines: MachineArray,
        scheduler: str,
        explanation: Explanation | None,
        *,
        assumed: bool = False,
    ) -> None:
        self._tasks.append(tasks)
        self._machines.append(machines)
        self._times.append(now)

    def first(self) -> FirstPlacements:
        """Of each task; it may have been preempted or moved since."""
        nothing = np.empty(0, np.int64)
        tasks = np.concatenate([nothing, *self._tasks])
        times = np.repeat(np.array(self._times, np.int64), [*map(len, self._tasks)])
        tasks, rows = np.unique(tasks, return_index=True)
        machines = np.concatenate([nothing, *self._machines])
        return FirstPlacements(tasks, times[rows], machines[rows])


class FirstPlacements(msgspec.Struct, frozen=True):
    """Tasks in the order of their numbers."""

    tasks: TaskArray
    times: NDArray[np.int64]
    machines: NDArray[np.int64]


class MeasuredHost(Host):
    """Records when its scheduler decides, and what it places. Until `free_until`, decisions take no
    time."""

    decisions: PlacementRecorder
    writer_type = PlacementRecorder
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


class SoonReady(FlowScheduler):
    """Uses Argosy's default solver while the initial tasks are placed, one job after another. So all
    schedulers begin with the same placements, and a slow solver does not have to find them."""

    def deliberate_in_place(self, question: Question) -> Decision:
        assert isinstance(question, RoundQuestion)
        settings = self._settings
        if question.at < READY * MICROS_PER_SECOND:
            settings = structs.replace(settings, algorithm=Algorithm.AUTO, warm=True)
        self.graph.settings = settings
        return super().deliberate_in_place(question)


class SoonReadyFirmament(SoonReady, Firmament):
    pass


class SoonReadyQuincy(SoonReady, Quincy):
    pass


class MeasuredWorld(SimulatedWorld):
    """Records how long its tasks are expected to run. Until `begin`, decisions take no time, so the
    initial tasks are in place at once and end when they should."""

    host: MeasuredHost
    host_type = MeasuredHost

    def __init__(self, scenario: Scenario, jobs: Iterator[SimulatedJob], begin: int = 0) -> None:
        #: By job number: its expected running time, 0 if it has no input; and whether it is a service.
        self.expected: list[int] = []
        self.is_service: list[bool] = []
        engines: dict[str, type[Engine]] = {
            Firmament.name: SoonReadyFirmament,
            Quincy.name: SoonReadyQuincy,
        }
        super().__init__(scenario, engines, jobs=self._noted(jobs))
        self.host.free_until = begin

    def _noted(self, jobs: Iterator[SimulatedJob]) -> Iterator[SimulatedJob]:
        for job in jobs:
            is_service = job.kind == SERVICE
            self.expected.append(0 if is_service else job.groups[0].estimate or 0)
            self.is_service.append(is_service)
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


def replay(
    load: Load,
    settings: dict[str, Any],
    engine: str = "firmament",
    workload: ReplayedWorkload | None = None,
) -> MeasuredReplay:
    """Replays the workload; without one, jobs are drawn."""
    workload = workload or drawn(load)
    load, begin = workload.load, int(BEGIN * MICROS_PER_SECOND)
    world = measured_world(load, settings, engine, iter(workload.jobs), begin)
    world.run()
    end = begin + int(load.seconds * MICROS_PER_SECOND)
    host = world.host
    submit, _, placed, _ = host.board.job_columns()
    sizes = np.array(host.jobs.counts, np.int64)
    mine = submit >= begin
    arrived = int(sizes[mine].sum())
    until = np.where(placed >= 0, placed, host.runtime.now)
    with_last = np.repeat((until - submit)[mine], sizes[mine]) / MICROS_PER_SECOND
    each = host.decisions.first()
    number = jobs_of(each.tasks)
    times, number = each.times[mine[number]], number[mine[number]]
    unplaced = sizes * mine - np.bincount(number, minlength=len(sizes))
    waited = np.repeat(host.runtime.now - submit, unplaced)
    latencies = np.concatenate([times - submit[number], waited]) / MICROS_PER_SECOND
    spent = [
        ((at - begin) / MICROS_PER_SECOND, took / MICROS_PER_SECOND)
        for at, took in host.decided
        if begin <= at < end
    ]
    busy = sum(took for _, took in spent) / load.seconds
    return MeasuredReplay(latencies, with_last, arrived, len(times), spent, busy, world)
