"""Clusters of many kinds as flow problems: to measure solvers on more than one shape.

A task has arcs to the machines and racks it prefers, to a cluster aggregator, to a vertex of its job
where it waits, and to its machine if it runs. Shapes differ in what makes such problems easy or hard:
how costs spread, how much machines are contended for, and how often costs tie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from argosy.solvers.flow.arrays import Numbers
from argosy.solvers.flow.problem import FlowProblem

Draw = Callable[[np.random.Generator, int], Numbers]


def uniform(random: np.random.Generator, count: int) -> Numbers:
    """Any cost from 0 to 1,000."""
    return random.integers(0, 1_001, count)


def lognormal(random: np.random.Generator, count: int) -> Numbers:
    """Mostly around 50, at most 1,000."""
    return np.minimum(50 * random.lognormal(0, 1.2, count), 1_000).astype(np.int64)


def pareto(random: np.random.Generator, count: int) -> Numbers:
    """Half of them below 20, a few near 100,000."""
    return np.minimum(10 * (1 + random.pareto(1.0, count)), 100_000).astype(np.int64)


def few_values(random: np.random.Generator, count: int) -> Numbers:
    """Only 40, 80 or 160, so that most costs tie."""
    return 40 * 2 ** random.integers(0, 3, count)


class ClusterShape(msgspec.Struct, frozen=True):
    """What a cluster and its tasks look like, apart from their number."""

    slots: int = 12
    rack: int = 40
    #: Most machines and racks that a task prefers.
    preferences: int = 10
    preferred_racks: int = 3
    #: The size of a task's data, which is what its costs are shares of.
    sizes: Draw = lognormal
    #: Share of the size that is read over the network: the least and largest at preferred machines.
    remote: tuple[float, float] = (0.0, 1.0)
    #: Preferred machines are popular: machine number n has weight (n + 1) to the power of -popularity.
    popularity: float = 0.0
    #: Mean tasks per job; with `huge_jobs`, sizes are Pareto distributed: many of one task, few huge.
    job: int = 80
    huge_jobs: bool = True
    #: Share of the tasks that run, and share of those that run where they prefer to.
    running: float = 0.9
    well_placed: float = 0.6
    #: Waiting costs this much more for each unit of a task's age, which is 0 to 100.
    ageing: int = 5
    #: Without aggregators, tasks run where they prefer to, or wait.
    has_aggregators: bool = True
    #: Most equal tasks that share a vertex.
    units: int = 1


#: Each differs from the others in what could mislead a solver.
CLUSTERS: Final[dict[str, ClusterShape]] = {
    "locality": ClusterShape(),
    "uniform-costs": ClusterShape(sizes=uniform, preferences=6, rack=20, huge_jobs=False),
    "pareto-costs": ClusterShape(sizes=pareto, preferences=8, preferred_racks=1, well_placed=0.9),
    "ties": ClusterShape(sizes=few_values, remote=(0.5, 0.5), ageing=0, rack=100),
    "few-preferences": ClusterShape(preferences=2, preferred_racks=1, slots=20, running=0.5),
    "many-preferences": ClusterShape(preferences=40, preferred_racks=0, slots=5, well_placed=0.3),
    "hot-spots": ClusterShape(popularity=0.5, sizes=pareto, job=400),
    "all-new": ClusterShape(running=0.0, preferences=8, sizes=uniform),
    "no-aggregators": ClusterShape(has_aggregators=False, preferred_racks=0, preferences=12),
    "groups": ClusterShape(units=20, slots=40, preferences=12, huge_jobs=False, running=0.7),
}


def cluster(shape: ClusterShape, machines: int, utilisation: float, seed: int) -> FlowProblem:
    """The problem of placing as many tasks as `utilisation` of all slots."""
    return _Maker(shape, machines, utilisation, seed).problem()


class _Maker:
    def __init__(self, shape: ClusterShape, machines: int, utilisation: float, seed: int) -> None:
        self.shape = shape
        self.random = np.random.default_rng(seed)
        self.machines = machines
        self.racks = -(-machines // shape.rack)
        units = max(1, round(machines * shape.slots * utilisation))
        self.units = self._split(units)
        self.tasks = len(self.units)
        self.jobs = max(1, self.tasks // shape.job)
        self.first_rack = 2
        self.first_machine = self.first_rack + self.racks
        self.first_job = self.first_machine + machines
        self.first_task = self.first_job + self.jobs
        self.columns: list[tuple[Numbers, Numbers, Numbers, Numbers]] = []

    def _split(self, units: int) -> Numbers:
        """Units of each task vertex."""
        most = self.shape.units
        if most == 1:
            return np.ones(units, np.int64)
        sizes = self.random.integers(1, most + 1, 1 + 4 * units // most)
        ends = np.minimum(np.cumsum(sizes), units)
        parts = np.diff(ends, prepend=0)
        return parts[parts > 0]

    def _arcs(self, tails: Numbers, heads: Numbers, capacities: Numbers, costs: Numbers) -> None:
        rows = np.broadcast_arrays(tails, heads, capacities, costs)
        self.columns.append((rows[0], rows[1], rows[2], rows[3]))

    def problem(self) -> FlowProblem:
        self._frame()
        self._tasks()
        supplies = np.zeros(self.first_task + self.tasks, np.int64)
        supplies[self.first_task :] = self.units
        supplies[0] = -self.units.sum()
        tails, heads, capacities, costs = (
            np.concatenate([rows[i] for rows in self.columns]) for i in range(4)
        )
        return FlowProblem(
            supplies=supplies,
            tails=tails.astype(np.int32),
            heads=heads.astype(np.int32),
            capacities=capacities.astype(np.int64),
            costs=costs.astype(np.int64),
        )

    def _frame(self) -> None:
        """Machines, aggregators and jobs, whose arcs cost nothing."""
        shape, zero = self.shape, np.zeros(1, np.int64)
        machine = np.arange(self.machines)
        rack = machine // shape.rack
        slots = np.full(self.machines, shape.slots)
        if shape.has_aggregators:
            room = np.bincount(rack, minlength=self.racks) * shape.slots
            self._arcs(zero + 1, self.first_rack + np.arange(self.racks), room, zero)
        if shape.has_aggregators or shape.preferred_racks:
            self._arcs(self.first_rack + rack, self.first_machine + machine, slots, zero)
        self._arcs(self.first_machine + machine, zero, slots, zero)
        everyone = np.full(self.jobs, self.units.sum())
        self._arcs(self.first_job + np.arange(self.jobs), zero, everyone, zero)

    def _tasks(self) -> None:
        shape, random, count = self.shape, self.random, self.tasks
        first, task = self.first_task, np.arange(count)
        size = shape.sizes(random, count)
        wanted = random.integers(1, shape.preferences + 1, count)
        owner = np.repeat(task, wanted)
        machine = self._popular(len(owner))
        share = random.uniform(*shape.remote, len(owner))
        # A few preferences are much cheaper than the rest.
        share *= np.where(random.uniform(size=len(owner)) < 0.3, 0.2, 1.0)
        here = (size[owner] * share).astype(np.int64)
        self._arcs(first + owner, self.first_machine + machine, self.units[owner], here)
        if shape.preferred_racks:
            near = random.integers(0, shape.preferred_racks + 1, count)
            owner_near = np.repeat(task, near)
            rack = random.integers(0, self.racks, len(owner_near))
            share = random.uniform(0.6, 1.0, len(owner_near))
            cost = (size[owner_near] * share).astype(np.int64)
            self._arcs(first + owner_near, self.first_rack + rack, self.units[owner_near], cost)
        if shape.has_aggregators:
            self._arcs(first + task, np.ones(1, np.int64), self.units, size + 1)
        is_running = random.uniform(size=count) < shape.running
        age = random.integers(0, 101, count)
        waiting = 2 * size + 50 + shape.ageing * age + np.where(is_running, 300, 0)
        job = self.first_job + self._members()
        self._arcs(first + task, job, self.units, waiting)
        runners = self._places(is_running, owner, machine)
        places = np.flatnonzero(runners >= 0)
        self._arcs(
            first + places,
            self.first_machine + runners[places],
            self.units[places],
            size[places] // 20,
        )

    def _popular(self, count: int) -> Numbers:
        """Machines, drawn by their popularity."""
        if self.shape.popularity == 0:
            return self.random.integers(0, self.machines, count)
        weights = np.cumsum((1.0 + np.arange(self.machines)) ** -self.shape.popularity)
        drawn = np.searchsorted(weights, self.random.uniform(0, weights[-1], count))
        # Neighbours in a rack are not equally popular.
        return (drawn * 7_919) % self.machines

    def _members(self) -> Numbers:
        """The job of each task."""
        if not self.shape.huge_jobs:
            return self.random.integers(0, self.jobs, self.tasks)
        weights = np.cumsum(1 + self.random.pareto(1.1, self.jobs))
        return np.searchsorted(weights, self.random.uniform(0, weights[-1], self.tasks))

    def _places(
        self,
        is_running: np.ndarray[tuple[int], np.dtype[np.bool_]],
        owner: Numbers,
        machine: Numbers,
    ) -> Numbers:
        """The machine of each task; -1 if it does not run. No machine runs more than fits."""
        shape, random = self.shape, self.random
        places = np.full(self.tasks, -1)
        first = np.searchsorted(owner, np.arange(self.tasks))
        well = is_running & (random.uniform(size=self.tasks) < shape.well_placed)
        places[well] = machine[first[well]]
        elsewhere = is_running & ~well
        places[elsewhere] = random.integers(0, self.machines, int(elsewhere.sum()))
        # The first tasks at a machine get its slots.
        order = np.argsort(places, kind="stable")
        used = np.cumsum(np.where(places[order] >= 0, self.units[order], 0))
        starts = np.searchsorted(places[order], places[order])
        before = used[starts] - self.units[order][starts]
        places[order[used - before > shape.slots]] = -1
        return places
