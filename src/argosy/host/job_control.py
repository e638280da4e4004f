"""Changes to running jobs: cancelling, scaling, and failed tasks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from argosy._core import TaskState
from argosy.host import records
from argosy.host.protocols import CELL, MACHINES
from argosy.host.scheduler import Scheduler
from argosy.model.errors import ModelError
from argosy.model.events import Event, JobCancelled, JobChanged, TaskFailed
from argosy.model.explanations import Why
from argosy.model.jobs import LONGEST_BACKOFF, Job, TaskGroup, index_of, job_of
from argosy.model.tasks import indices_of, task_numbers
from argosy.model.transactions import TaskArray

if TYPE_CHECKING:
    from argosy.host.host import Host

_OPEN = (TaskState.PENDING, TaskState.QUEUED, TaskState.RUNNING)


class JobControl:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._runtime = host.runtime
        self._board = host.board
        #: Number of failures per task, for tasks that are retried.
        self._failures: Counter[int] = Counter()
        #: Failed tasks of which their scheduler will hear when their wait is over.
        self._waiting: dict[int, TaskFailed] = {}

    def cancel(self, number: int, tasks: TaskArray | None = None) -> TaskArray:
        """Cancels the job, or some of its tasks. Tasks that are over are left alone; returns the
        others."""
        host, now = self._host, self._runtime.now
        job = self._job(number)
        wanted = np.sort(self._open(number))
        if tasks is not None:
            wanted = np.intersect1d(wanted, tasks)
        indices: list[int] = indices_of(wanted).tolist()
        host.decisions.input(records.CancelledRecord(now, number, indices))
        self._stop(wanted)
        self._tell(number, JobCancelled(job, number, wanted), CELL)
        return wanted

    def scale(self, number: int, job: Job) -> None:
        """Changes the number of the job's tasks. An index always means the same task: tasks are added
        and removed at the end."""
        host, now = self._host, self._runtime.now
        before = self._job(number)
        self._check_scaled(before, job)
        host.decisions.input(records.ScaledRecord(now, number, job))
        host.jobs.replace(number, job)
        self._runtime.set_groups(number, host.groups_of(job))
        added, removed = range(before.tasks, job.tasks), range(job.tasks, before.tasks)
        if job.tasks > self._board.tasks(number):
            self._board.grow_job(number, job.tasks)
        # An index that was removed earlier means the same task again, unless that was over before.
        self._runtime.set_pending(self._cancelled(number, list(added)))
        pending = self._board.tasks_in(number, TaskState.PENDING)
        fresh = np.intersect1d(task_numbers(number, list(added)), pending)
        gone = np.intersect1d(task_numbers(number, list(removed)), self._open(number))
        self._stop(gone)
        if job.constraints:
            host.cell.admit(number, job)
        self._tell(number, JobChanged(job, number, fresh, gone), CELL)

    def fail(self, task: int, incarnation: int, exit_status: int, reason: str) -> bool:
        """Handles a failed attempt; returns false if it is not the current one."""
        host, now = self._host, self._runtime.now
        number, machine = job_of(task), host.cell.machine_of(task)
        if machine is None or self._runtime.incarnation(task) != incarnation:
            return False
        job = self._job(number)
        tries = self._failures[task] + 1
        group = _group(job, index_of(task))
        will_retry = group is not None and tries <= group.retries
        host.decisions.input(records.FailedRecord(now, task, incarnation, exit_status, reason))
        state = TaskState.PENDING if will_retry else TaskState.FAILED
        self._runtime.stop_task(task, incarnation, state)
        tasks = np.array([task], np.int64)
        if will_retry:
            self._failures[task] = tries
        else:
            self._failures.pop(task, None)
            host.note_given_up(tasks)
        host.decisions.tasks(
            now,
            records.RetriedRecord,
            tasks,
            exit_status=exit_status,
            reason=reason,
            for_good=not will_retry,
        )
        event = TaskFailed(
            job,
            number,
            tasks,
            np.array([machine], np.int32),
            np.array([incarnation], np.int64),
            exit_status,
            reason,
            will_retry,
        )
        wait = 0
        if will_retry and group is not None and group.backoff:
            wait = min(group.backoff << min(tries - 1, 32), max(group.backoff, LONGEST_BACKOFF))
            self._waiting[task] = event
        self._tell(number, event, MACHINES, will_retry=will_retry, wait=wait)
        return True

    def count_failures(self, task: int, times: int) -> None:
        """The task has failed that often before."""
        self._failures[task] = times

    def _stop(self, tasks: TaskArray) -> None:
        """Stops or dequeues tasks that are not over."""
        self._host.stop(tasks, Why.CANCELLED)
        for task in tasks.tolist():
            if self._board.state(task) == TaskState.RUNNING:
                incarnation = self._runtime.incarnation(task)
                self._runtime.stop_task(task, incarnation, TaskState.CANCELLED)
            else:
                self._runtime.cancel_task(task)
            self._failures.pop(task, None)
            self._waiting.pop(task, None)
        self._host.note_given_up(tasks)

    def _tell(
        self, number: int, event: Event, sender: str, *, will_retry: bool = False, wait: int = 0
    ) -> None:
        host, now = self._host, self._runtime.now
        owner = host.schedulers[self._board.owner(number)]
        if owner.is_alive:
            at = now + wait + host.links.reliable_delay(sender, owner.name, now)
            host.request(at, owner, self._retry if wait else host.handle, event)
        elif owner.is_given_up and will_retry:
            host.inherit(number, now)

    def _retry(self, owner: Scheduler, event: TaskFailed, now: int) -> None:
        """The wait is over, unless the task was cancelled meanwhile: if it was added again, its
        scheduler knows of it already."""
        task = int(event.tasks[0])
        if self._waiting.get(task) is event:
            del self._waiting[task]
            self._host.handle(owner, event, now)

    def _cancelled(self, number: int, indices: list[int]) -> TaskArray:
        cancelled = self._board.tasks_in(number, TaskState.CANCELLED)
        return np.intersect1d(cancelled, task_numbers(number, indices))

    def _open(self, number: int) -> TaskArray:
        return np.concatenate([self._board.tasks_in(number, state) for state in _OPEN])

    def _job(self, number: int) -> Job:
        if not 0 <= number < len(self._host.jobs) or self._host.jobs.is_done(number):
            raise ModelError(f"job {number}", expected="the number of a job that is not over")
        return self._host.jobs.job(number)

    def _check_scaled(self, before: Job, job: Job) -> None:
        if job.id != before.id:
            raise ModelError(f"job {before.id} becomes {job.id}", field="id", expected=before.id)
        if before.activities or job.activities:
            raise ModelError(
                f"job {job.id} shares work among its workers",
                field="groups",
                hint="its scheduler adds and releases workers",
            )
        same, last = before.groups[:-1], before.groups[-1]
        if job.groups[: len(same)] != same or len(job.groups) < len(before.groups):
            raise ModelError(
                f"job {job.id} changes a group that others follow",
                field="groups",
                expected="another count in the last group, or new groups after it",
            )
        if job.groups[len(same)].request != last.request:
            raise ModelError(
                f"job {job.id} asks for something else",
                field="request",
                expected="the same request",
            )
        if len(job.groups) > len(before.groups) and job.groups[len(same)].count != last.count:
            raise ModelError(
                f"job {job.id} changes a group that others follow",
                field="count",
                expected="new groups, or another count in the last one",
            )


def _group(job: Job, index: int) -> TaskGroup | None:
    """The group of a task; none for a worker that the job did not ask for."""
    for start, group in zip(job.group_starts(), job.groups, strict=True):
        if start <= index < start + group.count:
            return group
    return None
