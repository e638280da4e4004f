"""What the world knows of each submitted job and engines do not: how long its tasks will run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Cell
from argosy.model.jobs import Job
from argosy.model.transactions import TaskArray
from argosy.model.truth import SimulatedJob

_INDEX_MASK = 0xFFFFFFFF
#: A task that runs until it is stopped.
_ENDLESS = -1


class GroundTruth:
    """One job, with each group's shape and running times; a column is kept only where tasks differ."""

    __slots__ = ("_groups", "alike", "is_endless", "job", "phases")

    def __init__(self, made: SimulatedJob, cell: Cell) -> None:
        job = self.job = made.job
        #: Whether some of its tasks run until they are stopped.
        self.is_endless = False
        #: What one activity of each phase takes.
        self.phases = made.truth[0].phases
        self._groups: list[tuple[int, int, int, NDArray[np.int64] | int, int]] = []
        start = 0
        for group, truth in zip(job.groups, made.truth, strict=True):
            shape = cell.shape(group.request, group.tags, job.precedence)
            durations: NDArray[np.int64] | int
            if len(truth.durations) > 1:
                durations = np.array(truth.durations, np.int64)
            elif truth.durations:
                durations = truth.durations[0]
            else:
                durations = _ENDLESS
                self.is_endless = self.is_endless or not truth.phases
            end = start + group.count
            self._groups.append((start, end, shape, durations, group.estimate or 0))
            start = end
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


class JobTable:
    """The rows of any array of tasks, and every job by number; of those that are done, only the columns
    that reports need."""

    def __init__(self) -> None:
        self._facts: dict[int, GroundTruth] = {}
        #: By job number: its id, its kind and how many tasks it has.
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.counts: list[int] = []
        #: Jobs with tasks that run until they are stopped.
        self.endless_jobs = 0

    def __len__(self) -> int:
        return len(self.names)

    def add(self, facts: GroundTruth) -> None:
        job = facts.job
        self._facts[len(self.names)] = facts
        self.names.append(job.id)
        self.kinds.append(job.kind)
        self.counts.append(job.tasks)
        self.endless_jobs += facts.is_endless

    def forget(self, numbers: Iterable[int]) -> None:
        """These jobs are done: nobody will ask for them any more."""
        for number in numbers:
            del self._facts[number]

    def name(self, number: int) -> str:
        return self.names[number]

    def is_done(self, number: int) -> bool:
        return number not in self._facts

    def job(self, number: int) -> Job:
        """A job that is not done."""
        return self._facts[number].job

    def phases(self, number: int) -> tuple[int, ...]:
        """What one activity of each phase takes, of a job that is not done."""
        return self._facts[number].phases

    def alike(self, number: int) -> tuple[int, int] | None:
        """The duration and estimate that all tasks of a job have in common, if they do. A job that is
        done has nothing left for a worker to do."""
        facts = self._facts.get(number)
        return (0, 0) if facts is None else facts.alike

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
