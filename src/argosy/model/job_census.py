"""How many jobs of a workload ask for what: enough for the checks and notes that concern all of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from argosy.model.constraints import Constraint
from argosy.model.truth import SimulatedJob


class JobClass(NamedTuple):
    """Jobs between which no check across a workload makes a difference."""

    kind: str
    precedence: int
    gang: bool
    constraints: tuple[Constraint, ...]


class JobCensus:
    """Counts of the jobs taken so far; its size depends on how many differ, not on how many
    there are."""

    def __init__(self, jobs: Iterable[SimulatedJob] = ()) -> None:
        self.counts: dict[JobClass, int] = {}
        #: The id of the first job of each kind, in the order of their appearance.
        self.first_of_kind: dict[str, str] = {}
        #: The id of the first job with tasks that run until stopped.
        self.first_endless: str | None = None
        for made in jobs:
            self.take(made)

    def take(self, made: SimulatedJob) -> None:
        job = made.job
        own = JobClass(job.kind, job.precedence, job.gang, job.constraints)
        self.counts[own] = self.counts.get(own, 0) + 1
        self.first_of_kind.setdefault(job.kind, job.id)
        if self.first_endless is None and made.is_endless:
            self.first_endless = job.id
