"""Takes over the jobs of an earlier host over the same machines.

A host that resumes is a fleet whose schedulers have all crashed and come back: the cell still holds
every claim, running tasks go on, and each scheduler is told of the pending tasks of its jobs. Tasks
that waited in machines' queues or were on their way are pending. A claim that no longer fits, because
its machine has left or become smaller, is not restored: its task is pending, and whoever runs it has to
stop it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from argosy._core import TaskState
from argosy.host import records
from argosy.host.job_state import JobState
from argosy.host.scheduler import Scheduler
from argosy.model.errors import ScenarioError
from argosy.model.events import JobSubmitted
from argosy.model.jobs import Job, index_of, task_number
from argosy.model.tasks import task_numbers
from argosy.model.transactions import Claims, Transaction

if TYPE_CHECKING:
    from argosy.host.host import Host


class Restored(msgspec.Struct, frozen=True):
    """The job's new number, and for each task that still runs its new incarnation."""

    number: int
    incarnations: dict[int, int]


def restore(host: Host, job: Job, state: JobState) -> Restored:
    now, owner = host.runtime.now, _owner(host, job, state)
    number = host.add(job, owner, state.submitted)
    host.decisions.input(records.RestoredRecord(now, number, job, owner.name, state))
    for indices, over in (
        (state.finished, TaskState.FINISHED),
        (state.failed, TaskState.FAILED),
        (state.cancelled, TaskState.CANCELLED),
        (state.abandoned, TaskState.ABANDONED),
    ):
        tasks = task_numbers(number, list(indices))
        host.runtime.set_over(tasks, over)
        if over != TaskState.FINISHED:
            host.note_given_up(tasks)
    for index, times in state.failures.items():
        host.job_control.count_failures(task_number(number, index), times)
    kept = _claim(host, owner, number, state)
    pending = host.board.tasks_in(number, TaskState.PENDING)
    if len(pending):
        host.post(now, owner, JobSubmitted(job, number, pending))
    return Restored(number, {index_of(task): host.runtime.incarnation(task) for task in kept})


def _owner(host: Host, job: Job, state: JobState) -> Scheduler:
    """The scheduler it belonged to, if it still takes such jobs."""
    former = host.scheduler(state.scheduler)
    if former is not None and former in host.router.takers(job.kind):
        return former
    other = host.router.route(job)
    if other is None:
        raise ScenarioError(
            f"no scheduler takes jobs of kind {job.kind!r}, and job {job.id} is not over",
            hint="add the kind to a fleet entry's `takes`",
        )
    return other


def _claim(host: Host, owner: Scheduler, number: int, state: JobState) -> list[int]:
    """Claims what runs; returns the tasks that go on running."""
    if not state.running:
        return []
    tasks = task_numbers(number, list(state.running))
    machines = np.array(state.machines, np.int32)
    shapes = np.array([host.runtime.facts(task)[0] for task in tasks.tolist()], np.int32)
    claims = Claims(tasks, machines, shapes, host.view.versions(machines))
    # Agents elsewhere have the last word on what they run.
    is_assumed = host.setup.has_remote_agents
    # Limits are for new claims. They may have been lowered, and tasks from queues have none.
    with host.cell.unlimited(owner.name):
        outcome = host.cell.commit(Transaction(owner.name, claims, assume=is_assumed))
    kept = outcome.accepted
    host.runtime.launch(tasks[kept])
    host.adopt_starts()
    return [int(task) for task in tasks[kept]]
