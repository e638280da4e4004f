"""Shared by all engines: failed tasks, and jobs that are cancelled or resized."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.model.events import (
    JobCancelled,
    JobChanged,
    JobSubmitted,
    TaskFailed,
    TaskFinished,
    TasksLost,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.transactions import Claims, TaskArray

Withdrawal: TypeAlias = JobCancelled | JobChanged
#: Waiting tasks of a job, and the job's number.
WaitingTasks: TypeAlias = tuple[Job, int, TaskArray]


def failed(event: TaskFailed, view: View) -> TasksLost | TaskFinished:
    """Tasks to be retried count as lost, others as finished."""
    if event.again:
        return TasksLost(event.job, event.number, event.tasks, event.machines, Why.FAILED)
    estimates = np.zeros(len(event.tasks), np.int64)
    shapes = np.zeros(len(event.tasks), np.int32)
    for group, mine in event.job.tasks_by_group(event.tasks):
        rows = np.isin(event.tasks, mine)
        estimates[rows] = group.estimate or 0
        shapes[rows] = view.shape(group.request, group.tags, event.job.precedence)
    return TaskFinished(event.tasks, event.machines, estimates, shapes)


def withdrawn(event: Withdrawal) -> TaskArray:
    """The tasks that are no longer wanted."""
    return event.tasks if isinstance(event, JobCancelled) else event.removed


def added(event: Withdrawal) -> JobSubmitted | None:
    """The tasks to be placed from now on."""
    if isinstance(event, JobCancelled) or not len(event.added):
        return None
    return JobSubmitted(event.job, event.number, event.added)


def left(tasks: TaskArray, event: Withdrawal) -> TaskArray:
    """Those of `tasks`, of any job, that are still wanted."""
    return tasks[~np.isin(tasks, withdrawn(event))]


def claims_left(claims: Claims | None, event: Withdrawal) -> Claims | None:
    """The claims of tasks that are still wanted; the same object if all are."""
    return (
        None if claims is None else chosen_claims(claims, ~np.isin(claims.tasks, withdrawn(event)))
    )


def chosen_claims(claims: Claims, kept: NDArray[np.bool_]) -> Claims | None:
    """Some rows of the claims; the same object if all are kept, None if there are none."""
    if kept.all():
        return claims
    if not kept.any():
        return None
    return Claims(
        claims.tasks[kept],
        claims.machines[kept],
        claims.shapes[kept],
        claims.versions[kept],
        None if claims.gangs is None else claims.gangs[kept],
    )


def update(work: WaitingTasks, event: Withdrawal) -> WaitingTasks:
    """The work after the event, possibly without any tasks."""
    _, number, tasks = work
    return (event.job, number, left(tasks, event)) if number == event.number else work
