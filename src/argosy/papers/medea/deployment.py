"""Runs an engine in the simulated world, and measures where it put applications.

Applications come at so many per interval, right after it began. Decisions take time, tasks come and go
beside them through the same scheduler, and what meets a conflict is placed again: nothing is decided
outside of the engine. As in the paper's simulator, applications run but do nothing. Violations count for
all constraints, even if an engine does not support them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.jkube import JKube, JKubePlus, KubeModern
from argosy.engines.medea import Medea
from argosy.engines.yarn import Yarn
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import container_tags, of_job
from argosy.model.constraints.text import parse_constraint
from argosy.model.jobs import Job, task_number
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, GroupSpec, Output, Scenario
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import MICROS_PER_SECOND
from argosy.papers.experiment import ExperimentPoint
from argosy.papers.medea.trial import MB, SMALLEST, sized
from argosy.solvers.placement import Family, PlacementState
from argosy.solvers.placement.violations import Judge
from argosy.worlds.sim import SimulatedWorld

INTERVAL: Final = 10 * MICROS_PER_SECOND
KIND: Final = "lra"
#: Bytes in a unit of memory of `trial`.
_UNIT: Final = 2**20
#: When the first application comes: tasks have been placed by then.
_BEGIN: Final = 3 * INTERVAL
_FILL: Final = 2 * INTERVAL
_ENGINES: Final = {each.name: each for each in (Medea, JKube, JKubePlus, KubeModern, Yarn)}
#: An application that found no place is tried again in so many intervals.
_ATTEMPTS: Final = 4
#: The time for a batch of the program as printed.
_PRINTED: Final = 10 * MICROS_PER_SECOND
#: Mean running time of a task, exponentially distributed.
_TASK_SECONDS: Final = 100.0


class WantedApplication(msgspec.Struct, frozen=True):
    #: Tags, memory and number of containers.
    roles: Sequence[tuple[str, int, int]]
    constraints: Sequence[str]


class Site(msgspec.Struct, frozen=True):
    """A cell of equal machines, the group that they are divided by, and the share of it that tasks
    hold."""

    machines: int
    sets: int
    group: str = "rack"
    memory: int = 16 * MB
    tasks: float = 0.0
    #: Memory of a task.
    task: int = MB

    @property
    def running(self) -> float:
        """How many tasks run at any time."""
        return self.tasks * self.machines * self.memory / self.task

    def filled_by(self, wanted: WantedApplication, share: float) -> int:
        """How many such applications it takes to use a share of the memory."""
        memory = sum(amount * count for _, amount, count in wanted.roles)
        return max(1, math.ceil(share * self.machines * self.memory / memory))


def site_of(
    point: ExperimentPoint,
    machines: int = 500,
    sets: int = 10,
    group: str = "rack",
    memory: int = 16 * MB,
    tasks: float = 0.0,
    task: int = MB,
) -> Site:
    """The cell of a point at its scale."""
    sets = max(2, sets // 5) if point.scale == "smoke" else sets
    return Site(sized(point, machines), sets, group, memory, tasks, task)


class Deployed:
    """Applications where they are at the end of a run. Those that found no place are empty."""

    def __init__(
        self,
        site: Site,
        jobs: Sequence[Job],
        machines: Sequence[NDArray[np.int32]],
        moments: Sequence[int],
        free: NDArray[np.int64],
        refused: int,
        task_times: NDArray[np.float64],
    ) -> None:
        """`machines` has a row for each container, -1 if it has no place; `moments` is when the last
        container of each application was placed; `task_times` are seconds from submission to end of the
        tasks that came beside applications, infinite if they found no place."""
        self.site = site
        self.jobs = jobs
        self._machines = machines
        self.moments = moments
        #: Applications in the order in which they were placed.
        self.order = sorted(
            (n for n, rows in enumerate(machines) if (rows >= 0).any()), key=lambda n: moments[n]
        )
        self.free = free
        #: Transactions that met a conflict, of applications and of tasks.
        self.refused = refused
        self.task_times = task_times
        self.set_of = np.arange(site.machines, dtype=np.int32) * site.sets // site.machines

    def machines_of(self, application: int, tag: str = "") -> NDArray[np.int32]:
        """Where the application's containers with the tag are."""
        job, rows = self.jobs[application], self._machines[application]
        groups = zip(job.group_starts(), job.groups, strict=True)
        parts = [
            rows[start : start + group.count]
            for start, group in groups
            if not tag or tag in group.tags
        ]
        found = np.concatenate(parts)
        return found[found >= 0]

    @property
    def placed(self) -> float:
        """The share of containers that have a place."""
        rows = np.concatenate(self._machines)
        return float((rows >= 0).mean())

    def used_after(self, count: int) -> NDArray[np.int64]:
        """Memory per machine that the first so many applications hold."""
        used = np.zeros(self.site.machines, np.int64)
        for number in self.order[:count]:
            job, rows = self.jobs[number], self._machines[number]
            for start, group in zip(job.group_starts(), job.groups, strict=True):
                there = rows[start : start + group.count]
                np.add.at(used, there[there >= 0], group.request.memory // _UNIT)
        return used

    def fragmented(self, used: NDArray[np.int64]) -> float:
        """The share of machines with less than 2 GB free that are not completely full."""
        free = self.site.memory - used
        return float(((free > 0) & (free < SMALLEST)).mean())

    def imbalance(self, used: NDArray[np.int64]) -> float:
        """The coefficient of variation of memory use over machines."""
        return float(used.std() / used.mean()) if used.any() else 0.0

    def violating(self, count: int | None = None) -> tuple[float, float]:
        """The share of containers that violate something, and the mean extent per container, if only
        the first so many applications had come."""
        joins = [[int(number)] for number in self.set_of]
        family = Family.of(self.site.group, joins, self.site.sets)
        ledger = PlacementState(self.site.machines, {self.site.group: family})
        active: list[Constraint] = []
        containers = 0
        for number in self.order[:count]:
            job, rows = self.jobs[number], self._machines[number]
            active += of_job(job.id, job.constraints)
            for start, group in zip(job.group_starts(), job.groups, strict=True):
                tags = frozenset(container_tags(job, group))
                for machine in rows[start : start + group.count].tolist():
                    if machine >= 0:
                        ledger.start(tags, machine)
                        containers += 1
        for constraint in active:
            ledger.add(constraint)
        broken = list(Judge(ledger).broken(active))
        who = {(each.tags, each.machine): each.count for each in broken}
        total = max(1, containers)
        return sum(who.values()) / total, sum(b.count * b.extent for b in broken) / total


def deploy(
    point: ExperimentPoint,
    site: Site,
    wanted: Sequence[WantedApplication],
    algorithm: str = "",
    *,
    period: int = 2,
    interval: int = INTERVAL,
) -> Deployed:
    """Runs the point's algorithm, unless another is given, with `period` applications per interval."""
    name, settings = engine_of(algorithm or str(point.parameters["algorithm"]), interval)
    apps = [_application(number, each, period, interval) for number, each in enumerate(wanted)]
    end = _BEGIN + (len(apps) // period + _ATTEMPTS + 3) * interval
    tasks = merge(
        _running(site, point.seed),
        _arriving(site, point.seed, end),
        key=lambda job: job.submit,
    )
    jobs = list(merge(tasks, apps, key=lambda job: job.submit))
    scenario = Scenario(
        name="deployment",
        seed=point.seed,
        cell=_cell(site),
        jobs=(),
        fleet=(FleetEntry(name="s", engine=name, settings=settings),),
        horizon=end,
        output=Output(log="none"),
    )
    world = SimulatedWorld(scenario, {name: _ENGINES[name]}, jobs=iter(jobs))
    world.run()
    return _deployed(world, site, jobs)


def engine_of(algorithm: str, interval: int = INTERVAL) -> tuple[str, dict[str, Any]]:
    """The engine of an algorithm, and its settings."""
    both: dict[str, Any] = {"t_job": 1_000, "t_task": 100, "attempts": _ATTEMPTS}
    if algorithm == Yarn.name:
        return Yarn.name, {**both, "attempts": 1_000}
    both |= {
        "long_running": [KIND],
        "interval": interval,
        "smallest": {"memory": SMALLEST * _UNIT},
    }
    if algorithm == "jkube-plain":
        return JKube.name, {**both, "reading": "plain"}
    if algorithm in _ENGINES:
        return algorithm, both
    # A time limit that is never reached, because the search tree is limited. The printed program has no
    # other limit.
    budget = _PRINTED if algorithm == "ilp-printed" else 600 * MICROS_PER_SECOND
    return Medea.name, {**both, "algorithm": algorithm, "budget": budget}


def _cell(site: Site) -> CellSpec:
    """Memory is the only resource: with 8 cores per machine, the paper's 90 % could not be reached."""
    names = [f"s{number}" for number in range(site.sets)]
    machines = tuple(
        Machine(
            f"m{number}",
            Resources(1_000, site.memory * _UNIT),
            joins={site.group: (names[number * site.sets // site.machines],)},
        )
        for number in range(site.machines)
    )
    return CellSpec(machines=machines, groups=(GroupSpec(name=site.group, sets=tuple(names)),))


def _application(
    number: int, wanted: WantedApplication, period: int, interval: int
) -> SimulatedJob:
    groups = [
        group_with_truth(count, Resources(0, memory * _UNIT), tags=tuple(tags.split()))
        for tags, memory, count in wanted.roles
    ]
    return simulated_job(
        f"a{number}",
        *groups,
        submit=_BEGIN + number // period * interval + 1_000 * (1 + number % period),
        kind=KIND,
        constraints=tuple(map(parse_constraint, wanted.constraints)),
    )


def _task(site: Site, name: str, at: int, random: Random) -> SimulatedJob:
    duration = max(1, int(_TASK_SECONDS * random.exponential() * MICROS_PER_SECOND))
    group = group_with_truth(1, Resources(0, site.task * _UNIT), (duration,))
    return simulated_job(name, group, submit=at)


def _running(site: Site, seed: int) -> Iterator[SimulatedJob]:
    """Tasks in progress, one after another before everything else. What is left of an exponential time
    is distributed like the whole."""
    random = Random(seed).child("running")
    count = int(site.running)
    for number in range(count):
        yield _task(site, f"r{number}", number * _FILL // count, random)


def _arriving(site: Site, seed: int, end: int) -> Iterator[SimulatedJob]:
    """As many tasks as end, from the middle of the fill on, when half of them are there."""
    if not site.tasks:
        return
    random = Random(seed).child("arriving")
    gap = _TASK_SECONDS * MICROS_PER_SECOND / site.running
    at, number = _FILL / 2, 0
    while (at := at + gap * random.exponential()) < end:
        yield _task(site, f"t{number}", int(at), random)
        number += 1


def _deployed(world: SimulatedWorld, site: Site, jobs: Sequence[SimulatedJob]) -> Deployed:
    cell = world.host.cell
    _, _, placed, _ = world.host.board.job_columns()
    numbers = [n for n, job in enumerate(jobs) if job.kind == KIND]
    numbers.sort(key=lambda n: int(jobs[n].id[1:]))
    machines = []
    for number in numbers:
        where = [cell.machine_of(task_number(number, i)) for i in range(jobs[number].job.tasks)]
        machines.append(np.array([-1 if m is None else m for m in where], np.int32))
    memory = cell.dimensions.index("memory")
    free = cell.free()[:, memory] // _UNIT
    return Deployed(
        site,
        [jobs[number].job for number in numbers],
        machines,
        [int(placed[number]) for number in numbers],
        free,
        _conflicts(world),
        _task_times(world, jobs),
    )


def _task_times(world: SimulatedWorld, jobs: Sequence[SimulatedJob]) -> NDArray[np.float64]:
    """Of tasks that came between the first and the last application."""
    submit, _, placed, _ = world.host.board.job_columns()
    last = max((job.submit for job in jobs if job.kind == KIND), default=0)
    numbers = [n for n, job in enumerate(jobs) if job.kind != KIND and _BEGIN <= job.submit <= last]
    runs = np.array([jobs[n].truth[0].durations[0] for n in numbers], np.int64)
    times = (placed[numbers] - submit[numbers] + runs) / MICROS_PER_SECOND
    times[placed[numbers] < 0] = np.inf
    return times


def _conflicts(world: SimulatedWorld) -> int:
    return sum(scheduler.conflicts for scheduler in world.host.schedulers)
