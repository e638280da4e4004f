"""Settings of Medea's two schedulers."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from argosy.engines.shared.serial import SerialSettings
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import kind_tag
from argosy.model.jobs import Job
from argosy.model.machines import GroupName
from argosy.model.resources import Resources
from argosy.model.units import Micros
from argosy.solvers.placement import Objective

GIB: Final = 2**30
_EVERY: Final = "*"


class LraSettings(SerialSettings, frozen=True):
    """How long-running applications and tasks are placed beside each other."""

    #: Kinds of jobs that are long-running applications; "*" means all.
    long_running: tuple[str, ...] = ("service",)
    #: Applications submitted within one interval are placed together.
    interval: Micros = Micros(10_000_000)
    #: Decision time is t_lra per application plus t_container per container.
    t_lra: Micros = Micros(100_000)
    t_container: Micros = Micros(5_000)
    #: Operator's constraints, in addition to those of the cell.
    operator: tuple[Constraint, ...] = ()
    #: When tasks have taken an application's room: place it again in the next interval; kill tasks of
    #: lower precedence; move at once to another machine of the same sets; or reserve the room, which
    #: requires that the decision is made at once, not in the background.
    conflict: Literal["resubmit", "kill", "relax", "reserve"] = "resubmit"
    #: With `relax`: the node group within which a container may move.
    relax_within: GroupName = "rack"
    #: Weights of owners' queues; 1 by default.
    queues: dict[str, Annotated[float, Meta(gt=0)]] = msgspec.field(default_factory=dict)
    #: A machine with less free room than this counts as fragmented.
    smallest: Resources = Resources(1_000, 2 * GIB)
    objective: Objective = Objective()
    #: At most this many running containers that break constraints are moved per interval.
    migrate: Annotated[int, Meta(ge=0, le=1_000)] = 0

    def is_lra(self, job: Job) -> bool:
        return job.kind in self.long_running or _EVERY in self.long_running

    def are_of_lra(self, tags: frozenset[str]) -> bool:
        """Whether a container with these tags, including automatic ones, belongs to an LRA."""
        return _EVERY in self.long_running or any(kind_tag(k) in tags for k in self.long_running)
