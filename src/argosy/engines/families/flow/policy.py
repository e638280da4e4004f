"""A scheduling policy: which arcs there are, and what flow on them costs.

A round goes over the network twice. In the first pass `gather` sees the statistics of all machines; in
the second the other methods return costs. Costs are whole numbers in the policy's own unit. Tasks go

    task class -> pool -> (rack ->) machine -> sink      or      task class -> job (-> owner) -> sink

with shortcuts to preferred racks and machines. A *pool* aggregates all tasks that ask for the same
resources and attributes, which keeps the number of arcs to machines small; the job's vertex stands for
waiting. Tasks of a class are equal in everything that matters here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.model.jobs import Job, TaskGroup
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
    machine, or to a rack if `is_rack`."""

    tasks: Numbers
    places: Numbers
    is_rack: NDArray[np.bool_]
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


def plain_wishes(groups: Sequence[NewGroup], settings: FlowSettings) -> Wishes:
    """Wishes of tasks without preferences, whose cost of waiting grows with precedence."""
    precedence = np.array([max(0, group.job.precedence) for group in groups], np.int64)
    return Wishes(
        pool=np.zeros(sum(len(group.tasks) for group in groups), np.int64),
        waiting=settings.waiting + settings.per_precedence * precedence,
        each=np.zeros(len(groups), np.bool_),
        preemption=settings.preemption,
    )


class Policy(Protocol):
    name: ClassVar[str]
    #: Whether pools reach machines through racks; whether jobs reach the sink through their owners.
    has_racks: ClassVar[bool]
    has_owners: ClassVar[bool]

    def wishes(self, groups: Sequence[NewGroup]) -> Wishes: ...

    def gather(self, statistics: ClusterStatistics) -> None:
        """First pass: stores what this round's costs depend on."""

    def sink_terms(self, machines: Numbers) -> ArcCosts:
        """Costs of the arcs from these machines to the sink."""

    def pool_terms(self, requests: Numbers, machines: Numbers) -> ArcCosts:
        """Costs of the arcs from pools to machines: one row per request or one for all, one column per
        machine or one for all. A machine's costs change with its own statistics, and when machines join
        or change."""

    def owner_terms(self) -> Sequence[tuple[int, int]]:
        """For each owner, by number: how many of its tasks may be unscheduled at no extra cost, and the
        cost of each further one. Called only if the policy uses owners."""

    def second_price(self) -> int:
        """Added to the unscheduled cost of all tasks of a job, for each second that some of them have
        waited."""

    def precedence_price(self) -> int:
        """Added to the unscheduled cost per unit of precedence; 0: nothing."""
