"""The flow network of a scheduler, kept in step with its tasks and machines.

Events change rows here; `refresh` brings the network up to date in bulk, at the beginning of a round.
Tasks of a class that run on a machine have an arc of their own to it, at the price of their way there
without that of starting, and as wide as they are many. So equal tasks are one vertex also when some run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.flow.adding import Submission, add_jobs
from argosy.engines.flow.cluster import Cluster
from argosy.engines.flow.columns import Columns, Rows
from argosy.engines.flow.policies import make_policy
from argosy.engines.flow.policy import Terms
from argosy.engines.flow.pools import PLENTY, Pools
from argosy.engines.flow.rooms import set_rooms
from argosy.engines.flow.settings import FlowSettings
from argosy.engines.flow.statistics import Statistics
from argosy.engines.flow.tasks import GONE, NOWHERE, PENDING, RUNNING, TaskTable
from argosy.model.jobs import Job
from argosy.model.transactions import TaskArray
from argosy.solvers.flow import Network, Solution

Numbers = NDArray[np.int64]
_MACHINE_BITS: Final = 32


class JobEntry:
    """A job with tasks that are not over: its vertex stands for not being scheduled."""

    __slots__ = ("arc", "cost", "job", "living", "pending", "since", "vertex")

    def __init__(self, job: Job, vertex: int, arc: int) -> None:
        self.job = job
        self.vertex = vertex
        self.arc = arc
        self.cost = 0
        self.living = 0
        self.pending = 0
        #: Since when some of its tasks wait.
        self.since = 0


class Graph:
    def __init__(self, settings: FlowSettings, view: View) -> None:
        self.settings = settings
        self.network = Network()
        self.cluster = Cluster(view)
        self.sink = self.network.add_vertex()
        dimensions = len(view.dimensions)
        self.sink_arcs = np.empty(0, np.int32)
        self.sink_terms = (np.zeros(0, np.int64),) * 3
        self.own = np.zeros((0, dimensions), np.int64)
        self._nothing = np.zeros((0, dimensions), np.int64)
        self.own_tasks = np.zeros(0, np.int64)
        self._add_machines()
        self.policy = make_policy(settings, self.cluster, view.dimensions)
        self.pools = Pools(
            self.network, self.cluster, len(view.dimensions), has_racks=self.policy.has_racks
        )
        self.tasks = TaskTable()
        self.jobs: dict[int, JobEntry] = {}
        #: Jobs of which tasks wait.
        self.waiting: dict[int, JobEntry] = {}
        self.classes = Columns(
            vertex=-1,
            job=-1,
            pool=-1,
            owner=0,
            pool_arc=-1,
            pool_cost=0,
            wait_arc=-1,
            wait_cost=0,
            preemption=0,
            first=0,
            rows=0,
            pending=0,
            running=0,
            parked=0,
        )
        #: Jobs that wait no longer since the last round.
        self._settled: list[JobEntry] = []
        #: Arcs that a class has for itself: to machines, or to racks where the place is below zero.
        self.preferences: dict[int, tuple[NDArray[np.int32], Numbers, Numbers]] = {}
        #: Rows that stand for nobody have an arc that never carries flow: all can be read at once.
        self.no_run = self.network.add_arc(self.sink, self.network.add_vertex(), 0, 0)
        self.runs = Columns(arc=self.no_run, task_class=-1, machine=-1, count=0, cost=0)
        self._run_of: dict[int, int] = {}
        self._dirty_classes: set[int] = set()
        self._dirty_runs: set[int] = set()
        #: Gangs with tasks that are not over, and those that the round under way leaves out because not
        #: all of their waiting tasks have room: for how many there was, and of how many.
        self.gangs: set[int] = set()
        self.parked: dict[int, tuple[int, int]] = {}
        #: Owners of jobs by number: tasks that are not over, what these ask for, the owner's vertex
        #: and arc to the sink with its terms, where the policy has such.
        self.owners: dict[str, int] = {}
        self.owner_tasks = np.zeros(0, np.int64)
        self.demands = np.zeros((0, dimensions), np.int64)
        self.owner_vertices: list[int] = []
        self.owner_arcs: list[int] = []
        self._owner_terms: list[tuple[int, int]] = []
        self.statistics: Statistics | None = None

    # Machines come; those that go are still known.

    def grow(self, view: View) -> None:
        """Take in machines that joined since the last time."""
        if view.machines == self.cluster.machines:
            return
        self.cluster.grow(view)
        self._add_machines()
        self.pools.widen(view)

    def _add_machines(self) -> None:
        """Vertices, arcs and rows for machines of the cluster that have none."""
        cluster = self.cluster
        count = cluster.machines - len(cluster.vertices)
        new = self.network.add_vertices(np.zeros(count, np.int64))
        cluster.vertices = np.append(cluster.vertices, new)
        self.sink_arcs = np.append(self.sink_arcs, self.network.add_arcs(new, self.sink, 0, 0))
        rooms, costs, steps = (np.pad(terms, (0, count)) for terms in self.sink_terms)
        self.sink_terms = rooms, costs, steps
        self.own = np.pad(self.own, ((0, count), (0, 0)))
        self._nothing = np.zeros_like(self.own)
        self.own_tasks = np.pad(self.own_tasks, (0, count))

    # Tasks come and go.

    def add(self, submissions: Sequence[Submission], view: View, now: int) -> None:
        """These tasks have no machine, whether they are new or came back."""
        add_jobs(self, submissions, view, now)

    def add_entries(
        self, jobs: Mapping[int, Job], vertices: NDArray[np.int32], arcs: NDArray[np.int32]
    ) -> None:
        for (number, job), vertex, arc in zip(
            jobs.items(), vertices.tolist(), arcs.tolist(), strict=True
        ):
            self.jobs[number] = JobEntry(job, vertex, arc)
            if job.gang:
                self.gangs.add(number)

    def owner_number(self, owner: str) -> int:
        number = self.owners.setdefault(owner, len(self.owners))
        if number == len(self.owner_tasks):
            self.owner_tasks = np.append(self.owner_tasks, 0)
            self.demands = np.pad(self.demands, ((0, 1), (0, 0)))
            vertex, arc = self.sink, -1
            if self.policy.has_owners:
                vertex = self.network.add_vertex()
                arc = self.network.add_arc(vertex, self.sink, PLENTY, 0)
            self.owner_vertices.append(vertex)
            self.owner_arcs.append(arc)
            self._owner_terms.append((0, 0))
        return number

    def demand(self, classes: Numbers, counts: int | Numbers) -> None:
        """So many more, or fewer, tasks of classes that are not over."""
        owners, pools = self.classes["owner"][classes], self.classes["pool"][classes]
        many = np.broadcast_to(np.asarray(counts, np.int64), owners.shape)
        np.add.at(self.owner_tasks, owners, many)
        np.add.at(self.demands, owners, many[:, None] * self.pools.requests[pools])

    def start(self, rows: Rows, machines: Numbers, costs: Numbers, now: int) -> None:
        """Pending tasks run now, at the end of a way whose first arc costs so much."""
        tasks, classes = self.tasks, self.tasks["task_class"][rows]
        tasks["state"][rows] = RUNNING
        tasks["machine"][rows] = machines
        self._hold(classes, machines, 1)
        np.subtract.at(self.classes["pending"], classes, 1)
        np.add.at(self.classes["running"], classes, 1)
        self._dirty_classes.update(classes.tolist())
        self._count_waiting(classes, -1, now)
        if not self.settings.reschedule:
            return
        keys = (classes << _MACHINE_BITS) + machines
        unique, first, counts = np.unique(keys, return_index=True, return_counts=True)
        runs = np.array([self._run_of.get(key, -1) for key in unique.tolist()], np.int64)
        new = np.flatnonzero(runs < 0)
        if len(new):
            runs[new] = self.runs.take(len(new))
            self._run_of.update(zip(unique[new].tolist(), runs[new].tolist(), strict=True))
            self.runs["task_class"][runs[new]] = unique[new] >> _MACHINE_BITS
            self.runs["machine"][runs[new]] = machines[first[new]]
            self.runs["cost"][runs[new]] = costs[first[new]] - self.settings.migration
        self.runs["count"][runs] += counts
        self._dirty_runs.update(runs.tolist())

    def stop(self, rows: Rows, now: int) -> None:
        """Running tasks are pending again."""
        if not len(rows):
            return
        classes = self._leave(rows)
        self.tasks["state"][rows] = PENDING
        np.add.at(self.classes["pending"], classes, 1)
        self._count_waiting(classes, 1, now)

    def finish(self, tasks: TaskArray) -> None:
        """These ended, wherever they were."""
        rows = self.tasks.rows(self.tasks.known(tasks))
        rows = np.unique(rows[self.tasks["state"][rows] == RUNNING])
        if not len(rows):
            return
        classes = self._leave(rows)
        self.tasks["state"][rows] = GONE
        self.demand(classes, -1)
        pools, counts = np.unique(self.classes["pool"][classes], return_counts=True)
        for pool, count in zip(pools.tolist(), counts.tolist(), strict=True):
            self.pools.by_number[pool].tasks -= count
        jobs, counts = np.unique(self.classes["job"][classes], return_counts=True)
        for number, count in zip(jobs.tolist(), counts.tolist(), strict=True):
            self.jobs[number].living -= count
        self._close(np.unique(classes))
        self._drop_jobs(jobs.tolist())

    def _leave(self, rows: Rows) -> Numbers:
        """Take running tasks off their machines; returns their classes."""
        classes, machines = self.tasks["task_class"][rows], self.tasks["machine"][rows]
        self.tasks["machine"][rows] = NOWHERE
        self._hold(classes, machines, -1)
        np.subtract.at(self.classes["running"], classes, 1)
        self._dirty_classes.update(classes.tolist())
        if self.settings.reschedule:
            for key in ((classes << _MACHINE_BITS) + machines).tolist():
                run = self._run_of[key]
                self.runs["count"][run] -= 1
                self._dirty_runs.add(run)
        return classes

    def _hold(self, classes: Numbers, machines: Numbers, sign: int) -> None:
        """What own tasks hold on their machines."""
        pools = self.classes["pool"][classes]
        amounts = sign * self.pools.requests[pools]
        np.add.at(self.pools.running, (pools, machines), sign)
        np.add.at(self.own, machines, amounts)
        np.add.at(self.own_tasks, machines, sign)

    def _count_waiting(self, classes: Numbers, sign: int, now: int) -> None:
        jobs, counts = np.unique(self.classes["job"][classes], return_counts=True)
        for number, count in zip(jobs.tolist(), counts.tolist(), strict=True):
            self.count_pending(number, self.jobs[number], sign * count, now)
        pools, counts = np.unique(self.classes["pool"][classes], return_counts=True)
        for pool, count in zip(pools.tolist(), counts.tolist(), strict=True):
            self.pools.by_number[pool].pending += sign * count

    def count_pending(self, number: int, entry: JobEntry, change: int, now: int) -> None:
        if not entry.pending and change:
            entry.since = now
            self.waiting[number] = entry
        entry.pending += change
        if not entry.pending and self.waiting.pop(number, None) is not None:
            self._settled.append(entry)

    def _close(self, classes: Numbers) -> None:
        """Remove classes of which no task is left, with their arcs."""
        over = classes[(self.classes["pending"][classes] + self.classes["running"][classes]) == 0]
        if not len(over):
            return
        self._sync_runs()
        self.network.remove_vertices(self.classes["vertex"][over])
        for task_class in over.tolist():
            self.preferences.pop(task_class, None)
        self._dirty_classes.difference_update(over.tolist())
        self.classes.give(over)

    def _drop_jobs(self, numbers: list[int]) -> None:
        over = [number for number in numbers if not self.jobs[number].living]
        if not over:
            return
        vertices = [self.jobs.pop(number).vertex for number in over]
        self.network.remove_vertices(np.array(vertices, np.int32))
        for number in over:
            self.waiting.pop(number, None)
            self.gangs.discard(number)
            self.tasks.drop_job(number)
        if self.tasks.should_shrink:
            moved = self.tasks.shrink()
            living = (self.classes["pending"] + self.classes["running"]) > 0
            self.classes["first"][living] = moved[self.classes["first"][living]]

    # Rounds.

    def refresh(self, view: View, now: int) -> None:
        """Bring the network up to date: statistics first, then what they change."""
        self.pools.clear()
        self._sync_runs()
        self._sync_classes()
        nothing = self._nothing
        moves = self.settings.reschedule
        self.statistics = Statistics(
            view.dimensions,
            self.cluster.usable,
            self.cluster.capacity,
            view.free(),
            self.own if moves else nothing,
            self.own_tasks if moves else nothing[:, 0],
            nothing[:, 0] if moves else self.own_tasks,
            self.owner_tasks,
            self.demands,
        )
        self.policy.gather(self.statistics)
        set_rooms(self, self.statistics)
        self._set_owners()
        self._age(now)
        self.network.balance(self.sink)

    def park(self, gangs: Mapping[int, tuple[int, int]]) -> None:
        """Leave the waiting tasks of gangs out of the flow until `unpark`, for so many of them have
        room and so many wait."""
        self.parked.update(gangs)
        self._set_parked(gangs, 1)

    def unpark(self, gangs: Sequence[int]) -> None:
        for number in gangs:
            del self.parked[number]
        self._set_parked([number for number in gangs if number in self.gangs], 0)

    def _set_parked(self, gangs: Iterable[int], parked: int) -> None:
        mine = np.isin(self.classes["job"], np.array(sorted(gangs), np.int64))
        mine &= self.classes["pending"] + self.classes["running"] > 0
        classes = np.flatnonzero(mine)
        self.classes["parked"][classes] = parked
        self._dirty_classes.update(classes.tolist())

    def resync(self) -> None:
        """Bring only what `park` and `unpark` did into the network."""
        self._sync_classes()
        self.network.balance(self.sink)

    def solve(self) -> Solution:
        return self.network.solve(self.settings.algorithm, warm=self.settings.warm)

    def supplies(self, classes: Numbers) -> Numbers:
        """How many tasks of each class the flow is to place."""
        pending = self.classes["pending"][classes] * (1 - self.classes["parked"][classes])
        return pending + self.classes["running"][classes] if self.settings.reschedule else pending

    def set_sink_terms(self, rooms: Numbers, terms: Terms) -> None:
        costs = np.broadcast_to(np.asarray(terms.costs, np.int64), rooms.shape)
        steps = np.broadcast_to(np.asarray(terms.steps, np.int64), rooms.shape)
        old = self.sink_terms
        changed = np.flatnonzero((rooms != old[0]) | (costs != old[1]) | (steps != old[2]))
        if len(changed):
            self.network.set_arcs(
                self.sink_arcs[changed], rooms[changed], costs[changed], steps[changed]
            )
            self.sink_terms = (rooms.copy(), costs.copy(), steps.copy())

    def _set_owners(self) -> None:
        for number, terms in enumerate(self.policy.owner_terms()):
            if terms != self._owner_terms[number]:
                self._owner_terms[number] = terms
                spare, cost = terms
                parts = [(spare, 0), (PLENTY - spare, cost)]
                self.network.set_segments(
                    self.owner_arcs[number], [part for part in parts if part[0]]
                )

    def owner_cost(self, number: int) -> int:
        """What the last unscheduled task of an owner costs for its owner's share."""
        spare, cost = self._owner_terms[number]
        arc = self.owner_arcs[number]
        return cost if arc >= 0 and int(self.network.flows([arc])[0]) > spare else 0

    def _age(self, now: int) -> None:
        """Waiting costs more the longer it lasts."""
        arcs, costs = [], []
        for entry in (*self._settled, *self.waiting.values()):
            waited = now - entry.since if entry.pending else 0
            cost = self.policy.job_cost(entry.job, waited)
            if cost != entry.cost and entry.living:
                entry.cost = cost
                arcs.append(entry.arc)
                costs.append(cost)
        self._settled.clear()
        if arcs:
            self.network.set_arcs(np.array(arcs, np.int32), costs=np.array(costs, np.int64))

    def _sync_runs(self) -> None:
        if not self._dirty_runs:
            return
        runs = np.array(sorted(self._dirty_runs), np.int64)
        self._dirty_runs.clear()
        count, arcs = self.runs["count"][runs], self.runs["arc"][runs]
        new = runs[(count > 0) & (arcs == self.no_run)]
        if len(new):
            self.runs["arc"][new] = self.network.add_arcs(
                self.classes["vertex"][self.runs["task_class"][new]],
                self.cluster.vertices[self.runs["machine"][new]],
                self.runs["count"][new],
                self.runs["cost"][new],
            )
        kept = runs[(count > 0) & (arcs != self.no_run)]
        if len(kept):
            self.network.set_arcs(self.runs["arc"][kept], self.runs["count"][kept])
        over = runs[count == 0]
        if len(over):
            with_arc = over[self.runs["arc"][over] != self.no_run]
            self.network.remove_arcs(self.runs["arc"][with_arc])
            keys = (self.runs["task_class"][over] << _MACHINE_BITS) + self.runs["machine"][over]
            for key in keys.tolist():
                del self._run_of[key]
            self.runs["arc"][over] = self.no_run
            self.runs.give(over)

    def _sync_classes(self) -> None:
        if not self._dirty_classes:
            return
        classes = np.array(sorted(self._dirty_classes), np.int64)
        self._dirty_classes.clear()
        columns, network = self.classes, self.network
        supplies = self.supplies(classes)
        network.set_supplies(columns["vertex"][classes], supplies)
        many = columns["rows"][classes] > 1
        # A lone task's way into the pool is as wide as before.
        network.set_arcs(columns["pool_arc"][classes[many]], supplies[many])
        costs = columns["wait_cost"][classes] + np.where(
            columns["running"][classes] > 0, columns["preemption"][classes], 0
        )
        alone = classes[~many]
        network.set_arcs(columns["wait_arc"][alone], costs=costs[~many])
        for task_class in classes[many].tolist():
            cost, extra = (int(columns[name][task_class]) for name in ("wait_cost", "preemption"))
            pending, running = (int(columns[name][task_class]) for name in ("pending", "running"))
            if not self.settings.reschedule:
                running = 0
            parts = [(pending, cost), (running, cost + extra)]
            arc = int(columns["wait_arc"][task_class])
            if pending or running:
                network.set_segments(arc, [part for part in parts if part[0]])
            else:
                network.set_arcs([arc], 0, cost, 0)
