"""The flow network of a scheduler, kept in step with its tasks and machines.

Events change rows in the roster; `refresh` updates the network in bulk at the beginning of a round, from
what `observe` saw of the cell: no other part of a round looks at it, so a round can leave the loop. The
running tasks of a class have an arc to their machine, with their number as its capacity, at what their
whole path there would cost now minus the cost of migration. So equal tasks are one vertex even if some
of them run, and a running task moves if another place is better by more than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import structs

from argosy.cell import View
from argosy.engines.families.flow.adding import Submission, add_jobs
from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.policies import make_policy
from argosy.engines.families.flow.pools import PLENTY, Pools
from argosy.engines.families.flow.rooms import set_rooms
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.engines.families.flow.tasks import Jobs, RosterColumns
from argosy.model.jobs import Job
from argosy.model.transactions import MachineArray, TaskArray
from argosy.solvers.flow import FlowNetwork, FlowSolution, Rooms
from argosy.solvers.flow.arrays import Numbers


class Graph:
    def __init__(self, settings: FlowSettings, view: View) -> None:
        self.settings = settings
        self.network = FlowNetwork()
        self.cluster = MachineVertices(view)
        self.sink = self.network.add_vertex()
        dimensions = len(view.dimensions)
        # With a cost of 0, flows of equal cost would move tasks to and fro, round after round.
        self.roster = self.network.roster(
            dimensions,
            reschedules=settings.reschedule,
            migration=max(1, settings.migration),
            drains=settings.task_removal,
        )
        self.rooms = Rooms(self.roster, settings.slots)
        self.sink_arcs = np.empty(0, np.int32)
        self.sink_terms = (np.zeros(0, np.int64),) * 3
        self._nothing = np.zeros((0, dimensions), np.int64)
        self._labels = view.labels_version
        self._add_machines()
        self.policy = make_policy(settings, self.cluster, view.dimensions)
        self.pools = Pools(self.network, self.roster, self.cluster, view, self.policy)
        self.tasks = RosterColumns(self.roster.tasks)
        self.classes = RosterColumns(self.roster.classes)
        self.runs = RosterColumns(self.roster.runs)
        self.jobs = Jobs(self.roster)
        #: Gangs with tasks that are not over; gangs left out of this round because not all of their
        #: waiting tasks have room, each with how many had room and how many wait.
        self.gangs: set[int] = set()
        self.parked: dict[int, tuple[int, int]] = {}
        #: Owners of jobs by number; each owner's vertex, arc to the sink and terms, if the policy uses
        #: owners.
        self.owners: dict[str, int] = {}
        self.owner_vertices: list[int] = []
        self.owner_arcs: list[int] = []
        self._owner_terms: list[tuple[int, int]] = []
        #: Of the cell when the round began.
        self._dimensions, self._free = view.dimensions, np.zeros(0, np.int64)
        self.statistics: ClusterStatistics | None = None
        #: Machines on which more is in use than is reserved.
        self.overused = 0
        #: How many tasks the round may move and preempt.
        self.most_moves = settings.moves
        #: Flows so far, and the work of the last that started from scratch.
        self._flows = 0
        self._scratch_scans = 0

    # Machines. They are added, never removed.

    def grow(self, view: View) -> None:
        """Adds machines and resources that came since the last call, and updates changed labels."""
        self.widen(view)
        if self._labels != view.labels_version:
            self._labels = view.labels_version
            self.pools.relabel(view)
            self.rooms.forget()
        if view.machines == self.cluster.machines:
            return
        self.cluster.grow(view)
        self._add_machines()
        self.pools.widen(view)

    def widen(self, view: View) -> None:
        """Makes room for resources that no machine had before: they come after those that were known."""
        if len(view.dimensions) == self._nothing.shape[1]:
            return
        self._nothing = np.zeros((self.cluster.machines, len(view.dimensions)), np.int64)
        self.cluster.widen(view)
        self.policy.widen(view.dimensions)
        self.pools.widen_requests(view)
        self.rooms.forget()

    def look(self, machine: int, view: View) -> None:
        """Updates a machine after an event; it may be new."""
        self.grow(view)
        self.cluster.look(machine, view)
        self.rooms.forget()

    def _add_machines(self) -> None:
        """Adds vertices, arcs and rows for new machines of the cluster."""
        cluster = self.cluster
        count = cluster.machines - len(cluster.vertices)
        new = self.network.add_vertices(np.zeros(count, np.int64))
        cluster.vertices = np.append(cluster.vertices, new)
        self.sink_arcs = np.append(self.sink_arcs, self.network.add_arcs(new, self.sink, 0, 0))
        rooms, costs, steps = (np.pad(terms, (0, count)) for terms in self.sink_terms)
        self.sink_terms = rooms, costs, steps
        self._nothing = np.zeros((cluster.machines, self._nothing.shape[1]), np.int64)
        self.roster.add_machines(new)

    # Tasks.

    def add(self, submissions: Sequence[Submission], view: View, now: int) -> None:
        """Adds tasks without a machine, new or returning."""
        self.widen(view)
        add_jobs(self, submissions, view, now)

    def owner_number(self, owner: str) -> int:
        number = self.owners.get(owner)
        if number is not None:
            return number
        number = self.owners[owner] = len(self.owners)
        self.roster.add_owner()
        vertex, arc = self.sink, -1
        if self.policy.has_owners:
            vertex = self.network.add_vertex()
            arc = self.network.add_arc(vertex, self.sink, PLENTY, 0)
        self.owner_vertices.append(vertex)
        self.owner_arcs.append(arc)
        self._owner_terms.append((0, 0))
        return number

    def start(self, rows: Numbers, machines: Numbers, costs: Numbers, now: int) -> None:
        """Pending tasks now run on these machines; `costs` are those of the first arc of their
        paths."""
        self.roster.start(rows, machines, costs, now)

    def stop(self, rows: Numbers, now: int) -> None:
        """Running tasks are pending again."""
        self.roster.stop(rows, now)

    def finish(self, tasks: TaskArray) -> None:
        """Tasks ended, wherever they were."""
        self._forget(self.roster.finish(tasks))

    def drop(self, tasks: TaskArray) -> None:
        """Waiting tasks among these must no longer be placed."""
        self._forget(self.roster.drop(tasks))

    def _forget(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            self.jobs.drop(number)
            self.gangs.discard(number)

    def change_job(self, job: Job, number: int) -> None:
        """Replaces a job's specification; it may have more tasks now. Row numbers change."""
        self.jobs.add(number, job)
        self.roster.grow_job(number, job.tasks)

    @property
    def waiting(self) -> int:
        """Number of jobs with waiting tasks."""
        return self.roster.waiting_jobs

    def has_room(self, machines: MachineArray, view: View) -> bool:
        """Whether one of these machines has room for a waiting task as it is, or is new."""
        self.widen(view)
        return self.roster.has_room(machines, view.free(machines), self.pools.allowed)

    @property
    def own(self) -> Numbers:
        """Resources held by this scheduler's own tasks, one row per machine."""
        return self.roster.own()

    @property
    def own_tasks(self) -> Numbers:
        return self.roster.own_tasks()

    # Rounds.

    def observe(self, view: View, used: Mapping[int, int] | None = None) -> None:
        """A round begins: this is the cell that it decides on. `used` is how much of the policy's
        observed resource was in use when machines were last looked at: what is not reserved of it is not
        free either."""
        self._dimensions, self._free = view.dimensions, view.free()
        self.overused = 0
        resource = self.policy.observed(self.settings)
        if not used or resource not in self._dimensions:
            return
        dimension = self._dimensions.index(resource)
        machines = np.fromiter(used, np.int64, len(used))
        amounts = np.fromiter(used.values(), np.int64, len(used))
        left = np.maximum(0, view.capacity()[machines, dimension] - amounts)
        free = self._free[machines, dimension]
        self.overused = int(np.count_nonzero(left < free))
        if self.overused:
            self._free = self._free.copy()
            self._free[machines, dimension] = np.minimum(free, left)

    def refresh(self, now: int) -> None:
        """Bring the network up to date: statistics first, then what they change."""
        self.pools.clear()
        self.roster.sync()
        nothing = self._nothing
        moves = self.settings.reschedule
        own_tasks = self.own_tasks
        self.statistics = ClusterStatistics(
            self._dimensions,
            self.cluster.usable,
            self.cluster.capacity,
            self._free,
            self.own if moves else nothing,
            own_tasks if moves else nothing[:, 0],
            nothing[:, 0] if moves else own_tasks,
            self.roster.owner_tasks(),
            self.roster.demands(),
        )
        self.policy.gather(self.statistics)
        set_rooms(self, self.statistics)
        self.pools.set_links()
        self._set_owners()
        self.roster.age(now, self.policy.second_price())
        self.network.balance(self.sink)

    def park(self, gangs: Mapping[int, tuple[int, int]]) -> None:
        """Leaves the waiting tasks of gangs out of the flow until `unpark`. Each gang comes with how
        many of its tasks have room and how many wait."""
        self.parked.update(gangs)
        self.roster.park(np.fromiter(gangs, np.int64, len(gangs)), True)

    def unpark(self, gangs: Sequence[int]) -> None:
        for number in gangs:
            del self.parked[number]
        self.roster.park(np.array(gangs, np.int64), False)

    def resync(self) -> None:
        """Applies only `park` and `unpark` to the network."""
        self.roster.sync()
        self.network.balance(self.sink)

    def solve(self) -> FlowSolution:
        """A flow of least cost."""
        settings = self.settings
        solve = partial(self.network.solve, heuristics=settings.heuristics)
        if settings.warm:
            return solve(settings.algorithm)
        self._flows += 1
        if (self._flows - 1) % settings.scratch_every == 0:
            solution = solve(settings.algorithm, warm=False)
            self._scratch_scans = solution.scans
            return solution
        return structs.replace(solve(), scans=self._scratch_scans)

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
        """What the last unscheduled task of an owner costs because of the owner's share."""
        spare, cost = self._owner_terms[number]
        arc = self.owner_arcs[number]
        return cost if arc >= 0 and self.network.flow(arc) > spare else 0
