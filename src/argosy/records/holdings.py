"""What schedulers held over time, computed from the claims in a journal.

Claims are stored as columns, because a run may have millions. A claim lasts from when its task was
placed, or started from a queue, until it is taken away, its task ends or the run ends.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.jobs import Job, task_number
from argosy.model.resources import Resources
from argosy.model.tasks import jobs_of
from argosy.records.state import RunState


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """What one scheduler held, by dimension: amount times microseconds, and the peak. At the same
    instant, ends of claims come before starts."""

    time: list[float]
    peak: list[int]
    claims: int
    jobs: int
    peak_jobs: int
    preempted: int


def vector(resources: Resources, dimensions: tuple[str, ...]) -> tuple[int, ...]:
    """Amounts by dimension; resources that no machine ever had are left out, because nobody can have
    held them."""
    amounts = dict(resources.items())
    return tuple(amounts.get(name, 0) for name in dimensions)


class GroupRequests:
    """The requests of all jobs' tasks, by dimension."""

    def __init__(self, jobs: list[Job], dimensions: tuple[str, ...]) -> None:
        #: Per group of tasks, in order of jobs: its first task and the request.
        first: list[int] = []
        amounts: list[tuple[int, ...]] = []
        for number, job in enumerate(jobs):
            for start, group in zip(job.group_starts(), job.groups, strict=True):
                first.append(task_number(number, start))
                amounts.append(vector(group.request, dimensions))
        self._first = np.array(first, np.int64)
        self._amounts = np.array(amounts, np.int64).reshape(-1, len(dimensions))

    def of(self, tasks: NDArray[np.int64]) -> NDArray[np.int64]:
        """One row per task. Extra workers have the request of their job's last group."""
        found: NDArray[np.int64] = self._amounts[
            np.searchsorted(self._first, tasks, side="right") - 1
        ]
        return found


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """All claims of a run as parallel arrays, each with its start and end."""

    #: Names of schedulers by number.
    names: list[str]
    schedulers: NDArray[np.int64]
    tasks: NDArray[np.int64]
    #: The request of each claim, by dimension.
    amounts: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    was_preempted: NDArray[np.bool_]

    @staticmethod
    def of_state(state: RunState) -> Holdings:
        claims = state.claims
        return Holdings(
            names=list(state.steps.schedulers),
            schedulers=claims.schedulers,
            tasks=claims.tasks,
            amounts=GroupRequests(state.steps.jobs, state.steps.dimensions).of(claims.tasks),
            begin=claims.begin,
            end=claims.end,
            was_preempted=claims.was_preempted,
        )

    def of(self, scheduler: str) -> Holding:
        number = self.names.index(scheduler) if scheduler in self.names else -1
        mine = np.flatnonzero(self.schedulers == number)
        begin, end = self.begin[mine], self.end[mine]
        amounts = self.amounts[mine]
        jobs = jobs_of(self.tasks[mine])
        lasted = (end - begin).astype(np.float64)
        return Holding(
            time=[float(lasted @ amounts[:, d]) for d in range(amounts.shape[1])],
            peak=[_peak(begin, end, amounts[:, d]) for d in range(amounts.shape[1])],
            claims=len(mine),
            jobs=len(np.unique(jobs)),
            peak_jobs=_peak(*_spans(jobs, begin, end), np.ones(1, np.int64)),
            preempted=int(self.was_preempted[mine].sum()),
        )


def _peak(begin: NDArray[np.int64], end: NDArray[np.int64], amounts: NDArray[np.int64]) -> int:
    """The largest sum of amounts over intervals open at one instant."""
    if not len(begin):
        return 0
    amounts = np.broadcast_to(amounts, begin.shape)
    changes = np.concatenate([-amounts, amounts])
    order = np.argsort(np.concatenate([end, begin]), kind="stable")
    return int(np.cumsum(changes[order]).max(initial=0))


def _spans(
    jobs: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The time intervals during which each job holds something."""
    if not len(jobs):
        return begin, end
    times, changes = np.concatenate([begin, end]), np.repeat([1, -1], len(jobs))
    order = np.lexsort((-changes, times, np.concatenate([jobs, jobs])))
    held = np.cumsum(changes[order])
    is_first = (held == 1) & (changes[order] == 1)
    return times[order][is_first], times[order][held == 0]
