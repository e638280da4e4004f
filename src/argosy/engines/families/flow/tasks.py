"""A scheduler's tasks, and their vertices and arcs, read from the roster in the core."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping
from typing import Final

import msgspec

from argosy.model.jobs import Job
from argosy.solvers.flow import Roster, RosterState
from argosy.solvers.flow.arrays import Numbers

#: Plain integers, for comparison with whole columns.
PENDING: Final = int(RosterState.PENDING)
RUNNING: Final = int(RosterState.RUNNING)
NOWHERE: Final = -1


class RosterColumns:
    """Columns of the roster by name: read-only, and valid until the roster changes."""

    def __init__(self, read: Callable[[str], Numbers]) -> None:
        self._read = read

    def __getitem__(self, name: str) -> Numbers:
        return self._read(name)


class FlowJob(msgspec.Struct, frozen=True, gc=False):
    """A job with tasks that are not over; its vertex stands for being unscheduled."""

    job: Job
    vertex: int
    arc: int
    #: Cost of its arc: the part of the waiting cost that depends on time.
    cost: int
    living: int
    pending: int


class Jobs(Mapping[int, FlowJob]):
    """Jobs by number, with their data in the roster."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._jobs: dict[int, Job] = {}

    def __getitem__(self, number: int) -> FlowJob:
        return FlowJob(self._jobs[number], *self._roster.job(number))

    def __contains__(self, number: object) -> bool:
        return number in self._jobs

    def __iter__(self) -> Iterator[int]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def items(self) -> ItemsView[int, FlowJob]:
        return {number: self[number] for number in self._jobs}.items()

    def job(self, number: int) -> Job:
        return self._jobs[number]

    def add(self, number: int, job: Job) -> None:
        self._jobs[number] = job

    def drop(self, number: int) -> None:
        del self._jobs[number]
