"""What can be said to the two schedulers."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from argosy.engines.shared.serial import SerialSettings
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import kind_tag
from argosy.model.jobs import Job
from argosy.model.resources import Resources
from argosy.model.units import Micros
from argosy.solvers.placement import Objective

GIB: Final = 2**30
_EVERY: Final = "*"


class LraSettings(SerialSettings, frozen=True):
    """How long-running applications and tasks are placed beside each other."""

    #: Kinds of jobs that are long-running applications; "*" means all.
    long_running: tuple[str, ...] = ("service",)
    #: Applications that come within one interval are placed together.
    interval: Micros = Micros(10_000_000)
    #: Placing applications takes t_lra for each and t_container for each container.
    t_lra: Micros = Micros(100_000)
    t_container: Micros = Micros(5_000)
    #: The operator's constraints, beside those of the cell.
    operator: tuple[Constraint, ...] = ()
    #: When tasks took what an application was to get: place it anew in the next interval; kill tasks of
    #: lower precedence; place it elsewhere in the same sets at once; or let no task take it meanwhile,
    #: for which the decision has to be known from the beginning: it is made on the loop.
    conflict: Literal["resubmit", "kill", "relax", "reserve"] = "resubmit"
    #: The node group in which a relaxed container stays.
    relax_within: str = "rack"
    #: The weights of owners' queues in the fairness between them; 1 for those not named.
    queues: dict[str, Annotated[float, Meta(gt=0)]] = msgspec.field(default_factory=dict)
    #: Less room than this on a machine is of no use: it is fragmented.
    smallest: Resources = Resources(1_000, 2 * GIB)
    objective: Objective = Objective()
    #: How many running containers that break constraints may be moved in one interval. 0: none.
    migrate: Annotated[int, Meta(ge=0, le=1_000)] = 0

    def is_lra(self, job: Job) -> bool:
        return job.kind in self.long_running or _EVERY in self.long_running

    def are_of_lra(self, tags: frozenset[str]) -> bool:
        """Whether a container with these tags, automatic ones too, is one of an application."""
        return _EVERY in self.long_running or any(kind_tag(k) in tags for k in self.long_running)
