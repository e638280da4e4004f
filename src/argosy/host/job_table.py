"""Every submitted job by number, with the shapes and estimates of its tasks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Cell
from argosy.model.jobs import Job
from argosy.model.tasks import by_job, indices_of
from argosy.model.transactions import TaskArray


class JobEntry:
    """A job, with the shape and estimate of each of its groups."""

    __slots__ = ("_groups", "common_estimate", "is_endless", "job")

    def __init__(self, job: Job, cell: Cell) -> None:
        self.job = job
        #: Whether some of its tasks run until stopped.
        self.is_endless = any(group.endless for group in job.groups)
        self._groups: list[tuple[int, int, int, int]] = []
        start = 0
        for group in job.groups:
            shape = cell.shape(group.request, group.tags, job.precedence)
            end = start + group.count
            self._groups.append((start, end, shape, group.estimate or 0))
            start = end
        #: The estimate of every task, if there is only one group.
        self.common_estimate = self._groups[0][3] if len(self._groups) == 1 else None

    def fill(
        self, tasks: TaskArray, shapes: NDArray[np.int32], estimates: NDArray[np.int64]
    ) -> None:
        """Writes the shapes and estimates of `tasks`, all of this job, into the other arrays."""
        if len(self._groups) == 1:
            _, _, shapes[:], estimates[:] = self._groups[0]
            return
        indices = indices_of(tasks)
        for start, end, shape, estimate in self._groups:
            mine = (indices >= start) & (indices < end)
            shapes[mine], estimates[mine] = shape, estimate


class JobTable:
    """Jobs by number. For finished jobs, keeps only the columns that reports need."""

    def __init__(self) -> None:
        self._entries: dict[int, JobEntry] = {}
        #: By job number: id, kind and number of tasks.
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.counts: list[int] = []
        #: Jobs with tasks that run until stopped.
        self.endless_jobs = 0

    def __len__(self) -> int:
        return len(self.names)

    def add(self, entry: JobEntry) -> None:
        job = entry.job
        self._entries[len(self.names)] = entry
        self.names.append(job.id)
        self.kinds.append(job.kind)
        self.counts.append(job.tasks)
        self.endless_jobs += entry.is_endless

    def replace(self, number: int, entry: JobEntry) -> None:
        """Replaces the specification of a job that is not finished."""
        self._entries[number] = entry
        self.counts[number] = entry.job.tasks

    def forget(self, numbers: Iterable[int]) -> None:
        """Drops finished jobs, which are not looked up again."""
        for number in numbers:
            del self._entries[number]

    def name(self, number: int) -> str:
        return self.names[number]

    def is_done(self, number: int) -> bool:
        return number not in self._entries

    def job(self, number: int) -> Job:
        """A job that is not finished."""
        return self._entries[number].job

    def common_estimate(self, number: int) -> int | None:
        """The estimate shared by all tasks of a job, or None if they differ. For a finished job, 0: its
        workers have nothing left to do."""
        entry = self._entries.get(number)
        return 0 if entry is None else entry.common_estimate

    def rows(self, tasks: TaskArray) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The shapes and estimates of `tasks`."""
        shapes = np.empty(len(tasks), np.int32)
        estimates = np.empty(len(tasks), np.int64)
        for number, where in by_job(tasks):
            if isinstance(where, slice):
                self._entries[number].fill(tasks, shapes, estimates)
                break
            part = shapes[where], estimates[where]
            self._entries[number].fill(tasks[where], *part)
            shapes[where], estimates[where] = part
        return shapes, estimates
