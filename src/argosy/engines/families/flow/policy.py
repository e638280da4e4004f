"""A scheduling policy: which arcs there are, and what flow on them costs.

A round goes over the network twice. In the first pass `gather` sees the statistics of all machines; in
the second the other methods return costs. Costs are whole numbers in the policy's own unit. Tasks go

    task class -> pool -> (aggregators ->) machine -> sink   or   task class -> job (-> owner) -> sink

with shortcuts to preferred aggregators and machines. A *pool* aggregates all tasks that ask for the same
resources and attributes, which keeps the number of arcs to machines small; the job's vertex stands for
waiting. Between a pool and the machines, a policy may have any aggregators, with any arcs between them:
racks, zones, kinds of machines, whatever it has costs or limits for. Tasks of a class are equal in
everything that matters here.

To add a policy, derive a class from `Policy` and install it as an entry point of the group
``argosy.flow_policies``; the setting `policy` then takes its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.api import RunFacts, SettingMismatch
from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.model.jobs import SERVICE, Job, TaskGroup
from argosy.model.transactions import TaskArray
from argosy.solvers.flow.arrays import Numbers


class NewGroup(msgspec.Struct, frozen=True, gc=False):
    """New tasks of one group since the last round, with their rows, pool, shape and owner."""

    job: Job
    number: int
    group: TaskGroup
    tasks: TaskArray
    rows: Numbers
    pool: int
    shape: int
    owner: int


class Preferences(msgspec.Struct, frozen=True):
    """Arcs of individual tasks, one per row: from `tasks` (a position among the tasks asked about) to a
    machine, or to an aggregator of the topology if `is_aggregator`."""

    tasks: Numbers
    places: Numbers
    is_aggregator: NDArray[np.bool_]
    costs: Numbers


class Wishes(msgspec.Struct, frozen=True):
    """Costs of new tasks: `pool` is the cost of each task's path through its pool, `waiting` each
    group's cost of not being scheduled. The tasks of a group form one class, unless `each` gives every
    task its own."""

    pool: Numbers
    waiting: Numbers
    each: NDArray[np.bool_]
    #: Extra cost of preempting a running task.
    preemption: int
    preferences: Preferences | None = None


class ArcCosts(msgspec.Struct, frozen=True):
    """Costs of arcs: unit number k costs `costs` + `steps` x k. One number for all arcs, or an
    array."""

    costs: int | Numbers = 0
    steps: int | Numbers = 0


#: Stands for the pool itself, where a topology has the numbers of aggregators.
POOL: Final = -1


class Topology(msgspec.Struct, frozen=True):
    """Aggregators between each pool and the machines, numbered from 0. Arcs between them lead from the
    pool or an aggregator to an aggregator of a higher number, so there are no cycles."""

    aggregators: int
    #: The ends of each arc; a tail may be `POOL`.
    tails: Numbers
    heads: Numbers
    #: For each machine, the aggregator with an arc to it, or `POOL`. To reach a machine in several ways,
    #: give it an aggregator of its own, with several arcs to that.
    machines: Numbers


def flat(machines: int) -> Topology:
    """Pools have arcs to machines, and there are no aggregators."""
    nothing = np.empty(0, np.int64)
    return Topology(0, nothing, nothing, np.full(machines, POOL, np.int64))


def grouped(groups: Numbers) -> Topology:
    """One aggregator for each group of machines, such as a rack; `groups` has each machine's."""
    count = int(groups.max(initial=-1)) + 1
    return Topology(count, np.full(count, POOL, np.int64), np.arange(count), groups)


class LinkTerms(msgspec.Struct, frozen=True):
    """Terms of the arcs of a topology, in its order: how many units fit, and what they cost. One number
    for all arcs, or an array. They are for tasks that start or move: running ones have arcs of their own
    to their machines."""

    capacities: int | Numbers
    costs: ArcCosts = ArcCosts()


def plain_wishes(groups: Sequence[NewGroup], settings: FlowSettings) -> Wishes:
    """Wishes of tasks without preferences, whose cost of waiting grows with precedence and is higher for
    services. A running task that is preempted costs as much, and `preemption` more."""
    precedence = np.array([max(0, group.job.precedence) for group in groups], np.int64)
    is_service = np.array([group.job.kind == SERVICE for group in groups], np.int64)
    return Wishes(
        pool=np.zeros(sum(len(group.tasks) for group in groups), np.int64),
        waiting=settings.waiting
        + settings.per_precedence * precedence
        + settings.services * is_service,
        each=np.zeros(len(groups), np.bool_),
        preemption=settings.preemption,
    )


def rank(job: Job, settings: FlowSettings) -> int:
    """A job's place in the order in which tasks of different sizes are admitted and preempted: that of
    precedence, unless services cost more."""
    if not settings.services:
        return job.precedence
    is_service = job.kind == SERVICE
    return max(1, settings.per_precedence) * job.precedence + settings.services * is_service


class Policy:
    """By default, all machines are equal, and waiting costs more with precedence and time."""

    name: ClassVar[str]
    #: Whether jobs reach the sink through their owners.
    has_owners: ClassVar[bool] = False

    def __init__(
        self, settings: FlowSettings, cluster: MachineVertices, dimensions: tuple[str, ...]
    ) -> None:
        self.settings = settings
        self.cluster = cluster
        self.dimensions = dimensions

    @classmethod
    def mismatch(cls, settings: FlowSettings, facts: RunFacts) -> SettingMismatch | None:
        """What the policy needs and the run has not."""
        return None

    @classmethod
    def observed(cls, settings: FlowSettings) -> str | None:
        """The resource of which the observed use counts, if that is more than what is reserved; None: no
        observation counts."""
        return None

    def widen(self, dimensions: tuple[str, ...]) -> None:
        """There are resources that no machine had before; they come after those that were known."""
        self.dimensions = dimensions

    def topology(self) -> Topology:
        """Aggregators between pools and machines. Asked again when machines have joined: then there may
        be more aggregators and arcs, after those that were there."""
        return flat(self.cluster.machines)

    def link_terms(self, request: Numbers) -> LinkTerms | None:
        """Terms of the topology's arcs for the pool of a request. None: as before; at first, any number
        of units at no cost. Asked in every round."""
        return None

    def wishes(self, groups: Sequence[NewGroup]) -> Wishes:
        """Costs and preferences of new tasks."""
        return plain_wishes(groups, self.settings)

    def gather(self, statistics: ClusterStatistics) -> None:
        """First pass: stores what this round's costs depend on."""
        return

    def sink_terms(self, machines: Numbers) -> ArcCosts:
        """Costs of the arcs from these machines to the sink."""
        return ArcCosts()

    def pool_terms(self, requests: Numbers, machines: Numbers) -> ArcCosts:
        """Costs of the arcs that lead to machines: one row per request or one for all, one column per
        machine or one for all. A machine's costs change with its own statistics, and when machines join
        or change. Steps of different requests must measure the same, because the tasks that run on a
        machine are priced one after another."""
        return ArcCosts()

    def owner_terms(self) -> Sequence[tuple[int, int]]:
        """For each owner, by number: how many of its tasks may be unscheduled at no extra cost, and the
        cost of each further one. Called only if the policy uses owners."""
        return ()

    def second_price(self) -> int:
        """Added to the unscheduled cost of all tasks of a job, for each second that some of them have
        waited."""
        return self.settings.per_second

    def precedence_price(self) -> int:
        """Added to the unscheduled cost per unit of precedence; 0: nothing."""
        return self.settings.per_precedence
