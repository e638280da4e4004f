"""The task scheduler: jobs are decided on one by one, from queues that share the cell.

Tasks that prefer machines (`TaskGroup.prefers`, such as those that store their input) are placed there
if possible, next in the same racks, and anywhere after that: see `TaskQueueSettings.locality_delay`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.cell.bitmaps import Bitmap
from argosy.engines.api import Context
from argosy.engines.families.lra.queues import Shares
from argosy.engines.families.lra.settings import TaskQueueSettings
from argosy.engines.shared.serial import CommitTerms, PendingJob, SerialScheduler
from argosy.model.effects import Effect, Explain
from argosy.model.events import (
    Committed,
    Event,
    JobChanged,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    TaskFinished,
    TasksLost,
)
from argosy.model.jobs import Job, TaskGroup, job_of
from argosy.model.transactions import Claims, ShapeArray, TaskArray

_RACK: Final = "rack"
#: The decision under way about tasks, in `Shares.promise`.
_TASKS: Final = "tasks"


class QueueScheduler(SerialScheduler):
    """A serial scheduler whose next job is that of the queue with the least."""

    def __init__(self, settings: TaskQueueSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._queueing = settings
        self._shares = Shares(settings)
        #: Jobs that have not ended, and the number of their open tasks.
        self._jobs: dict[int, Job] = {}
        self._open: dict[int, int] = {}
        #: Jobs that were told that their queue is at its limit, and have not been decided on since.
        self._told: set[int] = set()
        #: How many tasks of the job being decided on its queue may take, if queues have limits.
        self._allowed = 0

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(job, number, _):
                self._register(job, number)
            case TasksLost(job, number, tasks):
                self._lose(job, number, tasks, view)
            case TaskFinished(tasks, _, _, shapes):
                self._ended(tasks, shapes, view)
                return self._resume(view)
            case MachineJoined() | MachineChanged():
                return self._resume(view)
            case Committed(token, outcome) if (claims := self._claims_of(token)) is not None:
                self._shares.promise(_TASKS, (), view)
                self._hold(claims, outcome.accepted, view)
            case JobChanged(job, number, new) if number in self._jobs:
                self._jobs[number] = job
                self._open[number] += len(new)
        return super().handle(event, view, now)

    def _register(self, job: Job, number: int) -> None:
        self._open.setdefault(number, job.tasks)
        self._jobs[number] = job

    def _lose(self, job: Job, number: int, tasks: TaskArray, view: View) -> None:
        for group, mine in job.tasks_by_group(tasks):
            self._shares.change(job, number, view.shape(group.request), -len(mine), view)

    def _ended(self, tasks: TaskArray, shapes: ShapeArray, view: View) -> None:
        for task, shape in zip(tasks.tolist(), shapes.tolist(), strict=True):
            number = job_of(task)
            job = self._jobs.get(number)
            if job is None:
                continue
            self._shares.change(job, number, shape, -1, view)
            self._one_less(number)

    def _hold(self, claims: Claims, accepted: NDArray[np.bool_], view: View) -> None:
        """Adds placed containers to what their queues hold."""
        for row in np.flatnonzero(accepted).tolist():
            number = job_of(int(claims.tasks[row]))
            job = self._jobs.get(number)
            if job is not None:
                self._shares.change(job, number, int(claims.shapes[row]), 1, view)

    def withdrawn(self, job: Job, tasks: TaskArray) -> None:
        for task in tasks.tolist():
            self._one_less(job_of(task))

    def _one_less(self, number: int) -> None:
        """Counts a task of the job as over."""
        if number in self._open:
            self._open[number] -= 1
            if not self._open[number]:
                del self._open[number], self._jobs[number]
                self._shares.forget(number)

    def terms(self, work: PendingJob) -> CommitTerms:
        return CommitTerms(atomic=work.job.gang)

    def _resume(self, view: View) -> Sequence[Effect]:
        """Goes on with jobs that waited for their queue's limit."""
        return self._begin(view) if self._deciding is None and self._queue else ()

    def _begin(self, view: View) -> Sequence[Effect]:
        if not self._shares.has_limits and len(self._queue) < 2:
            return super()._begin(view)
        self._shares.promise(_TASKS, (), view)
        first = self._shares.next(self._queue, view)
        if first is None:
            self._deciding = None
            return self._tell_limits(view)
        self._queue = deque([first, *(work for work in self._queue if work is not first)])
        self._told.discard(first.number)
        self._allowed = self._shares.allowance(first.job, first.tasks, view)
        self._shares.promise(_TASKS, [(first.job, self.part(first, view))], view)
        return super()._begin(view)

    def _tell_limits(self, view: View) -> Sequence[Effect]:
        """Tells jobs, once each, that they wait until their queue may take more."""
        effects: list[Effect] = []
        for work in self._queue:
            if work.number not in self._told:
                self._told.add(work.number)
                why = self._shares.limited(work.job, work.tasks, view)
                effects.append(Explain(work.tasks, why))
        return effects

    def part(self, work: PendingJob, view: View) -> TaskArray:
        """As many tasks as the job's queue may take."""
        if not self._shares.has_limits or self._allowed == len(work.tasks):
            return work.tasks
        return work.tasks[: self._allowed]

    def near(
        self, work: PendingJob, group: TaskGroup, view: View
    ) -> tuple[Bitmap | None, tuple[Bitmap, ...]]:
        if not group.prefers:
            return None, ()
        there = view.where(group.prefers)
        if not there.any():
            return None, ()
        around = there.copy()
        if _RACK in view.groups:
            for name in view.sets_in(_RACK):
                members = view.members(_RACK, name)
                if (members & there).any():
                    around |= members
        delay = self._queueing.locality_delay
        if work.attempts <= delay:
            return there, ()
        if work.attempts <= 2 * delay:
            return around, (there,)
        return None, (there, around)
