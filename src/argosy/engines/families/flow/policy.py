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

Numbers = NDArray[np.int64]


class NewGroup(msgspec.Struct, frozen=True, gc=False):
    """Tasks of one group of a job that came in since the last round, with their rows, pool, shape
    and owner."""

    job: Job
    number: int
    group: TaskGroup
    tasks: TaskArray
    rows: Numbers
    pool: int
    shape: int
    owner: int


class Preferences(msgspec.Struct, frozen=True):
    """Arcs that tasks have for themselves, in rows: from task number `tasks` (its place among all that
    were asked about) to a machine, or to a rack where `is_rack`."""

    tasks: Numbers
    places: Numbers
    is_rack: NDArray[np.bool_]
    costs: Numbers


class Wishes(msgspec.Struct, frozen=True):
    """What new tasks want: `pool` is the cost of the way via the pool of each task; `waiting`, of not
    being scheduled, of each group. Tasks of a group are one class unless it is to be `each` its own."""

    pool: Numbers
    waiting: Numbers
    each: NDArray[np.bool_]
    #: What more it costs to preempt a task that runs.
    preemption: int
    preferences: Preferences | None = None


class ArcCosts(msgspec.Struct, frozen=True):
    """Of arcs: unit number k costs costs + steps x k. One number for all, or an array."""

    costs: int | Numbers = 0
    steps: int | Numbers = 0


def plain_wishes(groups: Sequence[NewGroup], settings: FlowSettings) -> Wishes:
    """Of tasks without preferences, of which those of higher precedence wait at a higher cost."""
    precedence = np.array([max(0, group.job.precedence) for group in groups], np.int64)
    return Wishes(
        pool=np.zeros(sum(len(group.tasks) for group in groups), np.int64),
        waiting=settings.waiting + settings.per_precedence * precedence,
        each=np.zeros(len(groups), np.bool_),
        preemption=settings.preemption,
    )


class Policy(Protocol):
    name: ClassVar[str]
    #: Whether pools reach machines by way of racks, and jobs the sink by way of their owners.
    has_racks: ClassVar[bool]
    has_owners: ClassVar[bool]

    def wishes(self, groups: Sequence[NewGroup]) -> Wishes: ...

    def gather(self, statistics: ClusterStatistics) -> None:
        """The first pass: keep what the costs of this round depend on."""

    def sink_terms(self, machines: Numbers) -> ArcCosts:
        """Of the arc from each of some machines to the sink."""

    def pool_terms(self, requests: Numbers, machines: Numbers) -> ArcCosts:
        """Of the arcs from pools to some machines: a row for each request or one for all, a column for
        each machine or one for all.
        A machine's terms change with its own statistics, and with machines that come or change."""

    def owner_terms(self) -> Sequence[tuple[int, int]]:
        """For each owner, by number: how many of its tasks may be unscheduled at no extra cost, and
        what each beyond them costs. Asked only where there are owners."""

    def second_price(self) -> int:
        """What each second that some of a job's tasks have waited adds to the cost of not being
        scheduled of all of them."""

    def precedence_price(self) -> int:
        """What one more of precedence adds to the cost of not being scheduled; 0: nothing."""
