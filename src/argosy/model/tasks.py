"""Arrays of task numbers.

A task's number combines its job's number (high bits) and its index in the job. Only this module knows
how to split and build arrays of them; `argosy.model.jobs` does so for single numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: The tasks of a job with indices from 0, given its number and how many they are.
from argosy._core import first_tasks
from argosy.model.jobs import INDEX_BITS, INDEX_MASK
from argosy.model.transactions import TaskArray

__all__ = ["by_job", "first_tasks", "indices_of", "jobs_of", "task_numbers"]


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


def by_job(tasks: TaskArray) -> list[tuple[int, slice | NDArray[np.intp]]]:
    """The job numbers among `tasks`, ascending, each with the positions of its tasks. Most arrays
    contain the tasks of one job; then the positions are a slice of everything, and nothing is
    copied."""
    if not len(tasks):
        return []
    first = int(tasks[0]) >> INDEX_BITS
    if len(tasks) == 1:
        return [(first, slice(None))]
    jobs = tasks >> INDEX_BITS
    if np.count_nonzero(jobs == first) == len(jobs):
        return [(first, slice(None))]
    return [(int(job), np.flatnonzero(jobs == job)) for job in np.unique(jobs)]
