"""Networks shaped like Quincy's policy, and changes to them: to measure, to test, for `argosy flow gen`.

A sink, a cluster aggregator, racks, machines with slots, one vertex per job for what stays unscheduled,
and tasks. A task prefers machines that hold its data, may run anywhere via the cluster aggregator, and
may wait at a price. One that runs keeps its machine nearly for free and is expensive to preempt.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.solvers.flow.arrays import Numbers
from argosy.solvers.flow.problem import FlowProblem


class QuincyShape(msgspec.Struct, frozen=True):
    machines: int
    slots: int = 12
    #: Number of tasks as a share of all slots.
    utilisation: float = 0.9
    #: The share of tasks that are already running.
    running: float = 0.9
    preferences: int = 10
    rack: int = 48
    tasks_per_job: int = 80

    @property
    def tasks(self) -> int:
        return round(self.machines * self.slots * self.utilisation)


class QuincyTasks(msgspec.Struct, frozen=True):
    """Tasks as arcs: each row leads from task number `owners` to vertex `heads`."""

    count: int
    owners: Numbers
    heads: Numbers
    costs: Numbers


class QuincyCluster:
    """The numbered vertices of a cluster, and random tasks for it."""

    def __init__(self, shape: QuincyShape, seed: int) -> None:
        self.shape = shape
        self.random = np.random.default_rng(seed)
        self.racks = -(-shape.machines // shape.rack)
        self.jobs = max(1, shape.tasks // shape.tasks_per_job)
        self.sink = 0
        self.aggregator = 1
        self.first_rack = 2
        self.first_machine = self.first_rack + self.racks
        self.first_job = self.first_machine + shape.machines
        self.first_task = self.first_job + self.jobs

    def frame(self) -> tuple[Numbers, Numbers, Numbers]:
        """Tails, heads and capacities of all arcs that do not belong to a task; they cost nothing."""
        shape = self.shape
        machines = np.arange(shape.machines, dtype=np.int64)
        racks = machines // shape.rack
        jobs = np.arange(self.jobs, dtype=np.int64)
        room = np.bincount(racks, minlength=self.racks) * shape.slots
        tails = [
            np.full(self.racks, self.aggregator),
            self.first_rack + racks,
            self.first_machine + machines,
            self.first_job + jobs,
        ]
        heads = [
            self.first_rack + np.arange(self.racks),
            self.first_machine + machines,
            np.full(shape.machines, self.sink),
            np.full(self.jobs, self.sink),
        ]
        slots = np.full(shape.machines, shape.slots, np.int64)
        unlimited = np.full(self.jobs, 2**31 - 1, np.int64)
        capacities = [room, slots, slots, unlimited]
        return np.concatenate(tails), np.concatenate(heads), np.concatenate(capacities)

    def draw(self, count: int, running: NDArray[np.bool_]) -> QuincyTasks:
        """Tasks with input of heavy-tailed size, in blocks on some machines."""
        random, shape = self.random, self.shape
        size = np.minimum(20 * (1 + random.pareto(1.5, count)), 2_000).astype(np.int64)
        wait = random.integers(0, 500, count)
        wanted = random.integers(1, shape.preferences + 1, count)
        owner = np.repeat(np.arange(count), wanted)
        machine = random.integers(0, shape.machines, len(owner))
        # Blocks that are not on the machine are fetched over the network.
        remote = (size[owner] * random.uniform(0.1, 0.9, len(owner))).astype(np.int64)
        is_rack = random.uniform(size=len(owner)) < 0.2
        head = np.where(
            is_rack, self.first_rack + machine // shape.rack, self.first_machine + machine
        )
        remote = np.where(is_rack, size[owner] - remote // 4, remote)
        tasks = np.arange(count)
        job = self.first_job + random.integers(0, self.jobs, count)
        leave = 2 * size + 100 + wait + np.where(running, 400, 0)
        owners, heads, costs = (
            [owner, tasks, tasks],
            [head, np.full(count, self.aggregator), job],
            [],
        )
        costs = [remote, size + 10, leave]
        if running.any():
            here, where = self._places(running, owner, machine, is_rack)
            owners.append(here)
            heads.append(self.first_machine + where)
            costs.append(size[here] // 10)
        return QuincyTasks(
            count, np.concatenate(owners), np.concatenate(heads), np.concatenate(costs)
        )

    def _places(
        self,
        running: NDArray[np.bool_],
        owner: Numbers,
        machine: Numbers,
        is_rack: NDArray[np.bool_],
    ) -> tuple[Numbers, Numbers]:
        """Where the running tasks are: on their first preference if it has a slot, otherwise
        anywhere."""
        tasks = np.flatnonzero(running)
        _, first = np.unique(owner, return_index=True)
        where = np.where(is_rack[first], -1, machine[first])[tasks]
        # Each machine accepts as many of the tasks that want it as it has slots.
        order = np.argsort(where, kind="stable")
        ranked = where[order]
        rank = np.arange(len(ranked)) - np.searchsorted(ranked, ranked)
        where[order[(rank >= self.shape.slots) | (ranked < 0)]] = -1
        used = np.bincount(where[where >= 0], minlength=self.shape.machines)
        free = np.repeat(np.arange(self.shape.machines), self.shape.slots - used)
        homeless = np.flatnonzero(where < 0)
        where[homeless] = self.random.permutation(free)[: len(homeless)]
        return tasks, where


def quincy(shape: QuincyShape, seed: int) -> tuple[QuincyCluster, FlowProblem]:
    """A cluster and the problem of placing its tasks; vertices have the cluster's numbers."""
    cluster = QuincyCluster(shape, seed)
    running = np.zeros(shape.tasks, bool)
    slots = shape.machines * shape.slots
    running[: min(slots, round(shape.tasks * shape.running))] = True
    tasks = cluster.draw(shape.tasks, cluster.random.permutation(running))
    tails, heads, capacities = cluster.frame()
    supplies = np.zeros(cluster.first_task + tasks.count, np.int64)
    supplies[cluster.first_task :] = 1
    supplies[cluster.sink] = -tasks.count
    return cluster, FlowProblem(
        supplies=supplies,
        tails=np.concatenate([tails, cluster.first_task + tasks.owners]).astype(np.int32),
        heads=np.concatenate([heads, tasks.heads]).astype(np.int32),
        capacities=np.concatenate([capacities, np.ones(len(tasks.owners), np.int64)]),
        costs=np.concatenate([np.zeros(len(tails), np.int64), tasks.costs]),
    )
