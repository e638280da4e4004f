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
    """Per-task columns of one job: shape, duration and estimate."""

    __slots__ = ("durations", "estimates", "job", "number", "shapes")

    def __init__(self, job: Job, number: int, cell: Cell) -> None:
        self.job = job
        self.number = number
        count = job.tasks
        self.shapes = np.empty(count, np.int32)
        self.durations = np.empty(count, np.int64)
        self.estimates = np.empty(count, np.int64)
        for start, group in zip(job.group_starts(), job.groups, strict=True):
            rows = slice(start, start + group.count)
            self.shapes[rows] = cell.shape(group.request, group.tags, job.precedence)
            self.durations[rows] = group.durations or _ENDLESS
            self.estimates[rows] = group.expected or 0


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

    def job(self, number: int) -> Job:
        return self._facts[number].job

    def rows(
        self, tasks: TaskArray
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Shapes, durations and estimates of `tasks`."""
        shapes = np.empty(len(tasks), np.int32)
        durations = np.empty(len(tasks), np.int64)
        estimates = np.empty(len(tasks), np.int64)
        for number, where in by_job(tasks):
            facts = self._facts[number]
            indices = tasks[where] & _INDEX_MASK
            shapes[where] = facts.shapes[indices]
            durations[where] = facts.durations[indices]
            estimates[where] = facts.estimates[indices]
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
