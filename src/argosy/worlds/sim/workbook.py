"""What the world knows of each submitted job and engines do not: how long its tasks will run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Cell
from argosy.model.jobs import Job
from argosy.model.transactions import TaskArray

_INDEX_MASK = 0xFFFFFFFF
#: A task that runs until it is stopped.
_ENDLESS = -1


class TaskFacts:
    """One job, with each group's shape and running times; a column is kept only where tasks differ."""

    __slots__ = ("_groups", "alike", "job")

    def __init__(self, job: Job, cell: Cell) -> None:
        self.job = job
        self._groups: list[tuple[int, int, int, NDArray[np.int64] | int, int]] = []
        for start, group in zip(job.group_starts(), job.groups, strict=True):
            shape = cell.shape(group.request, group.tags, job.precedence)
            durations: NDArray[np.int64] | int = group.durations[0] if group.durations else _ENDLESS
            if len(group.durations) > 1:
                durations = np.array(group.durations, np.int64)
            end = start + group.count
            self._groups.append((start, end, shape, durations, group.expected or 0))
        #: Duration and estimate, where all tasks have the same.
        self.alike: tuple[int, int] | None = None
        _, _, _, times, estimate = self._groups[0]
        if len(self._groups) == 1 and isinstance(times, int):
            self.alike = (times, estimate)

    def fill(
        self,
        tasks: TaskArray,
        shapes: NDArray[np.int32],
        durations: NDArray[np.int64],
        estimates: NDArray[np.int64],
    ) -> None:
        """Writes what is known of `tasks`, all of this job, into the other arrays."""
        for start, end, shape, times, estimate in self._groups:
            if isinstance(times, int) and len(self._groups) == 1:
                shapes[:], durations[:], estimates[:] = shape, times, estimate
                return
            indices = tasks & _INDEX_MASK
            mine = (indices >= start) & (indices < end)
            shapes[mine], estimates[mine] = shape, estimate
            durations[mine] = times if isinstance(times, int) else times[indices[mine] - start]


class Workbook:
    """All jobs by number, and the rows of any array of tasks."""

    def __init__(self) -> None:
        self._facts: list[TaskFacts] = []
        #: Jobs with tasks that run until they are stopped.
        self.endless_jobs = 0

    def __len__(self) -> int:
        return len(self._facts)

    def add(self, facts: TaskFacts) -> None:
        self._facts.append(facts)
        self.endless_jobs += any(not group.durations for group in facts.job.groups)

    def kinds(self) -> list[str]:
        """The kind of every job, by number."""
        return [facts.job.kind for facts in self._facts]

    def job(self, number: int) -> Job:
        return self._facts[number].job

    def alike(self, number: int) -> tuple[int, int] | None:
        """The duration and estimate that all tasks of a job have in common, if they do."""
        return self._facts[number].alike

    def rows(
        self, tasks: TaskArray
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Shapes, durations and estimates of `tasks`."""
        shapes = np.empty(len(tasks), np.int32)
        durations = np.empty(len(tasks), np.int64)
        estimates = np.empty(len(tasks), np.int64)
        for number, where in by_job(tasks):
            if isinstance(where, slice):
                self._facts[number].fill(tasks, shapes, durations, estimates)
                break
            part = shapes[where], durations[where], estimates[where]
            self._facts[number].fill(tasks[where], *part)
            shapes[where], durations[where], estimates[where] = part
        return shapes, durations, estimates


def by_job(tasks: TaskArray) -> list[tuple[int, slice | NDArray[np.intp]]]:
    """The job numbers among `tasks`, each with the places of its tasks; usually there is just one."""
    if not len(tasks):
        return []
    jobs = tasks >> 32
    first = int(jobs[0])
    if len(tasks) == 1 or (jobs == first).all():
        return [(first, slice(None))]
    return [(int(job), np.flatnonzero(jobs == job)) for job in np.unique(jobs)]
