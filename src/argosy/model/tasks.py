"""Arrays of task numbers.

A task's number combines its job's number (high bits) and its index in the job. Only this module knows
how to split and build arrays of them; `argosy.model.jobs` does so for single numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argosy.model.jobs import INDEX_BITS, INDEX_MASK
from argosy.model.transactions import TaskArray


def jobs_of(tasks: TaskArray) -> NDArray[np.int64]:
    """The job number of each task."""
    return tasks >> INDEX_BITS


def indices_of(tasks: TaskArray) -> NDArray[np.int64]:
    """Each task's index in its job."""
    return tasks & INDEX_MASK


def task_numbers(
    job: int | NDArray[np.int64], indices: NDArray[np.integer] | Sequence[int]
) -> TaskArray:
    """The tasks with these indices: all of one job, or each of its own job."""
    return np.asarray(indices, np.int64) | (job << INDEX_BITS)


def first_tasks(job: int, count: int) -> TaskArray:
    """The tasks of a job with indices 0 to `count` - 1."""
    first = job << INDEX_BITS
    return np.arange(first, first + count, dtype=np.int64)


def by_job(tasks: TaskArray) -> list[tuple[int, slice | NDArray[np.intp]]]:
    """The job numbers among `tasks`, ascending, each with the positions of its tasks. Most arrays
    contain the tasks of one job; then the positions are a slice of everything, and nothing is
    copied."""
    if not len(tasks):
        return []
    jobs = tasks >> INDEX_BITS
    first = int(jobs[0])
    if len(tasks) == 1 or (jobs == first).all():
        return [(first, slice(None))]
    return [(int(job), np.flatnonzero(jobs == job)) for job in np.unique(jobs)]
