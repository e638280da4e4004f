"""Settings of Medea's two schedulers."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from argosy.engines.api import SettingMismatch
from argosy.engines.shared.serial import SerialSettings
from argosy.model.constraints import Constraint
from argosy.model.jobs import Job
from argosy.model.machines import GroupName
from argosy.model.resources import Resources
from argosy.model.units import Micros
from argosy.solvers.placement import Objective

GIB: Final = 2**30
_EVERY: Final = "*"
#: The queue of owners that have none of their own, with the policy `capacity`.
DEFAULT_QUEUE: Final = "default"


class QueueCapacity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a queue gets of the cell, as a share of it."""

    #: The share that it is served for before queues that have theirs.
    guaranteed: Annotated[float, Meta(gt=0, le=1)]
    #: The most that it may hold, even if nobody else wants the rest.
    most: Annotated[float, Meta(gt=0, le=1)] = 1.0


class TaskQueueSettings(SerialSettings, frozen=True):
    """Whose job comes next."""

    #: The next job is of the queue with the smallest weighted dominant share; of the one with the
    #: smallest weighted share of memory, and there of the job that holds least, as in YARN's Fair
    #: Scheduler; or of the one that uses least of its `capacities`, as in its Capacity Scheduler. Within
    #: a queue, jobs go by precedence.
    policy: Literal["share", "fair", "capacity"] = "share"
    #: Weights of owners' queues; 1 by default. Not for the policy `capacity`.
    queues: dict[str, Annotated[float, Meta(gt=0)]] = msgspec.field(default_factory=dict)
    #: Queues of owners, for the policy `capacity`. All other owners share the queue `default`, which by
    #: default is guaranteed what is left.
    capacities: dict[str, QueueCapacity] = msgspec.field(default_factory=dict)
    #: For so many attempts, tasks take only machines that they prefer, and for as many again only
    #: machines in the same racks. After that, the preferred are just tried first.
    locality_delay: Annotated[int, Meta(ge=0, le=1_000_000)] = 0

    def queue_of(self, owner: str) -> str:
        is_shared = self.policy == "capacity" and owner not in self.capacities
        return DEFAULT_QUEUE if is_shared else owner

    def capacity_of(self, queue: str) -> QueueCapacity:
        known = self.capacities.get(queue)
        if known is not None:
            return known
        # A little even if nothing is left, because shares are divided by it.
        rest = 1.0 - sum(each.guaranteed for each in self.capacities.values())
        return QueueCapacity(max(rest, 1e-6))

    def queue_mismatch(self) -> SettingMismatch | None:
        """Settings of queues that contradict each other, or that the policy does not use."""
        if self.policy == "capacity" and self.queues:
            return SettingMismatch(
                ("queues",), "weights of queues with the policy capacity", "capacities instead"
            )
        if self.policy != "capacity" and self.capacities:
            return SettingMismatch(
                ("capacities",),
                f"capacities of queues with the policy {self.policy}",
                'policy = "capacity"',
            )
        whole = sum(each.guaranteed for each in self.capacities.values())
        if whole > 1 + 1e-9:
            return SettingMismatch(
                ("capacities",),
                f"queues are guaranteed {100 * whole:.4g} % of the cell together",
                "at most 100 %",
            )
        for name, each in self.capacities.items():
            if each.guaranteed > each.most:
                return SettingMismatch(
                    ("capacities",),
                    f"queue {name} is guaranteed {each.guaranteed:g}, but may hold {each.most:g}",
                    "guaranteed up to most",
                )
        return None


class LraSettings(TaskQueueSettings, frozen=True):
    """How long-running applications and tasks are placed beside each other."""

    #: Kinds of jobs that are long-running applications; "*" means all.
    long_running: tuple[str, ...] = ("service",)
    #: What makes a job an application: its kind, as above; constraints of its own, as in the paper; or
    #: either of them.
    routing: Literal["kind", "constraints", "either"] = "kind"
    #: Applications submitted within one interval are placed together.
    interval: Micros = Micros(10_000_000)
    #: Decision time is t_lra per application plus t_container per container.
    t_lra: Micros = Micros(100_000)
    t_container: Micros = Micros(5_000)
    #: Operator's constraints, in addition to those of the cell.
    operator: tuple[Constraint, ...] = ()
    #: Constraints of jobs of these owners count as the operator's, as long as the jobs are not over.
    operators: tuple[str, ...] = ()
    #: When tasks have taken an application's room: place it again in the next interval; kill tasks of
    #: the same or lower precedence; move at once to another machine of the same sets; or reserve the
    #: room, which requires that the decision is made at once, not in the background.
    conflict: Literal["resubmit", "kill", "relax", "reserve"] = "resubmit"
    #: With `relax`: the node group within which a container may move.
    relax_within: GroupName = "rack"
    #: For so many intervals, an application waits for work of others whose queues have less than its
    #: own.
    fair_delay: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: A machine with less free room than this counts as fragmented.
    smallest: Resources = Resources(1_000, 2 * GIB)
    objective: Objective = Objective()
    #: At most this many running containers that break constraints are moved per interval.
    migrate: Annotated[int, Meta(ge=0, le=1_000)] = 0

    def is_lra(self, job: Job) -> bool:
        is_of_kind = job.kind in self.long_running or _EVERY in self.long_running
        match self.routing:
            case "kind":
                return is_of_kind
            case "constraints":
                return bool(job.constraints)
            case "either":
                return is_of_kind or bool(job.constraints)
