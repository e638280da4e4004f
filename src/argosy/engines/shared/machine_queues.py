"""Shared by the engines that use machines' queues: `sparrow`, `hawk`, `eagle`, `yaq-c` and `yaq-d`.

Tasks that run until stopped are claimed. For other tasks the engine may ask machines first; answers are
matched by token.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Bitmap, Found, Rule, View
from argosy.engines.api import Context
from argosy.engines.shared.endless_tasks import TIMER, EndlessTasks
from argosy.engines.shared.probing import share_of
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, added, failed, update
from argosy.model.effects import AskQueues, Effect
from argosy.model.events import (
    Committed,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    QueuesReported,
    TaskFailed,
    TasksLost,
    TimerFired,
)
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import TaskArray


class MachineQueueScheduler(ABC):
    """Engines define how a job begins, and where its tasks go once machines have answered."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._standing = EndlessTasks(context)
        #: Jobs that wait for an answer, by token.
        self._asking: dict[int, WaitingTasks] = {}
        self._asked = 0

    @abstractmethod
    def begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        """Starts to place tasks of a job; there is at least one."""

    def place(
        self,
        job: Job,
        number: int,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        waits: NDArray[np.int64],
        now: int,
    ) -> Sequence[Effect]:
        """Places tasks after machines have reported their queue lengths."""
        return ()

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(job, number, tasks) | TasksLost(job, number, tasks):
                endless, rest = self._standing.split(job, tasks)
                claimed = self._standing.place(job, number, endless, view, now)
                return [*claimed, *self.begin(job, number, rest, view)] if len(rest) else claimed
            case Committed():
                return self._standing.committed(event, now)
            case TimerFired(name) if name == TIMER:
                return self._standing.retry(view, now)
            case QueuesReported(token, lengths, waits) if token in self._asking:
                return self.place(*self._asking.pop(token), view, lengths, waits, now)
            case JobCancelled() | JobChanged():
                self.withdraw(event)
                more = added(event)
                return () if more is None else self.handle(more, view, now)
            case TaskFailed():
                return self.handle(failed(event, view), view, now)
        return ()

    def withdraw(self, event: Withdrawal) -> None:
        """Forgets withdrawn tasks."""
        self._standing.withdraw(event)
        self._asking = {token: update(work, event) for token, work in self._asking.items()}

    def ask(
        self,
        job: Job,
        number: int,
        tasks: TaskArray,
        *,
        latest: bool = False,
        which: Literal["all", "long"] = "all",
    ) -> Sequence[Effect]:
        self._asked += 1
        self._asking[self._asked] = (job, number, tasks)
        return (AskQueues(self._asked, latest, which),)

    def least_busy(
        self,
        job: Job,
        group: TaskGroup,
        count: int,
        waits: NDArray[np.int64],
        share: float,
        view: View,
        within: Bitmap | None = None,
    ) -> Found:
        """The machines that will be free soonest, one per task, among the last `share` of the cell;
        each task adds to the load that the next one sees."""
        among = view.between(view.machines - share_of(share, view.machines), view.machines)
        if group.requires:
            among &= view.where(group.requires)
        if within is not None:
            among &= within
        return view.find(
            view.shape(group.request, group.tags, job.precedence),
            count,
            Rule.SMALLEST_KEY,
            self._context.random,
            within=among,
            keys=waits,
            step=group.estimate or 0,
            needs_room=False,
        )
