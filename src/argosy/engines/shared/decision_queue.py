"""Shared by `sparrow`, `hawk` and `eagle`: jobs that a scheduler decides on one at a time."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, update
from argosy.model.effects import Effect, Think
from argosy.model.jobs import Job


class DecisionQueue:
    """A decision takes t_job + t_task x tasks. Next is the job that came first or, `by_work`, the one
    whose tasks are estimated to take the least time in total."""

    def __init__(self, t_job: int, t_task: int, *, by_work: bool = False) -> None:
        self._t_job = t_job
        self._t_task = t_task
        self._by_work = by_work
        self._waiting: list[WaitingTasks] = []
        #: The job whose decision is under way; without tasks if they were withdrawn.
        self._deciding: WaitingTasks | None = None

    @property
    def takes_time(self) -> bool:
        return bool(self._t_job or self._t_task)

    def add(self, work: WaitingTasks) -> Sequence[Effect]:
        self._waiting.append(work)
        return self.next() if self._deciding is None else ()

    def next(self) -> Sequence[Effect]:
        """Begins to decide on the next job, if there is one."""
        if not self._waiting:
            return ()
        at = 0
        if self._by_work:
            at = min(range(len(self._waiting)), key=lambda index: _work(self._waiting[index][0]))
        self._deciding = self._waiting.pop(at)
        _, number, tasks = self._deciding
        return (Think(self._t_job + self._t_task * len(tasks), number, number),)

    def decided(self) -> WaitingTasks:
        """The job whose decision is due."""
        work, self._deciding = self._deciding, None
        assert work is not None
        return work

    def withdraw(self, event: Withdrawal) -> None:
        self._waiting = [update(work, event) for work in self._waiting]
        if self._deciding is not None:
            self._deciding = update(self._deciding, event)


def _work(job: Job) -> int:
    return sum((group.estimate or 0) * group.count for group in job.groups)
