"""The tasks a scheduler has: a row each, found by task number without a search."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.engines.flow.columns import Columns, Rows
from argosy.model.transactions import TaskArray

#: Not this scheduler's, or over.
GONE: Final = 0
PENDING: Final = 1
RUNNING: Final = 2
NOWHERE: Final = -1
_INDEX_MASK: Final = 0xFFFFFFFF
#: Rows beyond twice the living ones that are not worth clearing up.
_SLACK: Final = 65_536


class TaskTable:
    """Number, state, machine and class of each task; the tasks of a job are neighbours."""

    def __init__(self) -> None:
        self._columns = Columns(number=-1, state=GONE, machine=NOWHERE, task_class=-1, shape=-1)
        self._first: dict[int, int] = {}
        self._counts: dict[int, int] = {}
        self._living = 0

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        return self._columns[name]

    def knows_job(self, job: int) -> bool:
        return job in self._first

    def add_job(self, job: int, count: int) -> None:
        """Rows for all tasks of a job; they are nobody's until `set` says otherwise."""
        rows = self._columns.take_together(count)
        self._first[job] = int(rows[0])
        self._counts[job] = count
        self._columns["number"][rows] = (job << 32) + np.arange(count)
        self._living += count

    def drop_job(self, job: int) -> None:
        first, count = self._first.pop(job), self._counts.pop(job)
        self._columns["state"][first : first + count] = GONE
        self._columns["number"][first : first + count] = -1
        self._living -= count

    @property
    def should_shrink(self) -> bool:
        return self._columns.used > 2 * self._living + _SLACK

    def shrink(self) -> NDArray[np.int64]:
        """Clear up after dropped jobs; returns the new row of each old one, -1 where it is gone."""
        kept = self._columns["number"] >= 0
        moved = np.where(kept, np.cumsum(kept) - 1, -1)
        self._columns.keep(kept)
        self._first = {job: int(moved[row]) for job, row in self._first.items()}
        return moved

    def rows(self, tasks: TaskArray) -> Rows:
        """Of tasks whose jobs are known."""
        if not len(tasks):
            return np.empty(0, np.int64)
        jobs = tasks >> 32
        first = int(jobs[0])
        if len(tasks) == 1 or (jobs == first).all():
            return self._first[first] + (tasks & _INDEX_MASK)
        different, which = np.unique(jobs, return_inverse=True)
        starts = np.array([self._first[job] for job in different.tolist()], np.int64)
        return starts[which] + (tasks & _INDEX_MASK)

    def known(self, tasks: TaskArray) -> TaskArray:
        """Those whose jobs are known."""
        jobs = tasks >> 32
        strangers = [job for job in np.unique(jobs).tolist() if job not in self._first]
        return tasks[~np.isin(jobs, strangers)] if strangers else tasks
