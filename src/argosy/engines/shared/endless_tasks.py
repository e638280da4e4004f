"""Tasks that run until they are stopped, for engines that queue at machines.

Such tasks are claimed, not queued, because a task queued behind one would wait forever. Shared by
engines that probe and engines that read queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.cell import Draft, Rule, View
from argosy.engines.api import Context
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, update
from argosy.model.effects import Commit, Effect, Explain, WakeMe
from argosy.model.events import Committed
from argosy.model.jobs import Job
from argosy.model.transactions import Claims, TaskArray, Transaction

TIMER: Final = "standing"
_RETRY: Final = 1_000_000


class EndlessTasks:
    """Places tasks where most room is left; tasks without room, or refused, are retried every
    second."""

    def __init__(self, context: Context) -> None:
        self._context = context
        #: Tasks without a machine, by job number, in the order of their turns. A job keeps its turn,
        #: perhaps without any tasks, while claims of it have not been answered.
        self._waiting: dict[int, tuple[Job, TaskArray]] = {}
        #: Unanswered claims by token, and those of their tasks that are still wanted.
        self._asked: dict[int, tuple[Claims, WaitingTasks]] = {}
        self._token = 0
        self._will_retry = False

    @staticmethod
    def split(job: Job, tasks: TaskArray) -> tuple[TaskArray, TaskArray]:
        """Tasks that run until stopped, and the others. Workers count as the former, because a queued
        worker would leave its work to the others."""
        if not any(group.endless or group.activities for group in job.groups):
            return tasks[:0], tasks
        standing = [
            mine for group, mine in job.tasks_by_group(tasks) if group.endless or group.activities
        ]
        endless = np.concatenate([tasks[:0], *standing])
        return endless, np.setdiff1d(tasks, endless)

    def place(
        self, job: Job, number: int, tasks: TaskArray, view: View, now: int
    ) -> Sequence[Effect]:
        if not len(tasks):
            return ()
        draft, effects = Draft(view), list[Effect]()
        explanation = None
        for group, mine in job.tasks_by_group(tasks):
            shape = view.shape(group.request, group.tags, job.precedence)
            random = self._context.random
            found, left = draft.place(mine, shape, Rule.WORST, random, requires=group.requires)
            if len(job.groups) == 1 and self._context.keeps_explanations:
                explanation = found.explanation()
            if len(left):
                effects.append(Explain(left, found.explanation()))
                effects.extend(self._wait(job, number, left, now))
        if draft.count:
            self._token += 1
            claims = draft.claims()
            self._asked[self._token] = (claims, (job, number, claims.tasks))
            transaction = Transaction(self._context.name, claims)
            effects.append(Commit(self._token, transaction, explanation))
            # Should some be refused, their turn is before that of jobs that come later.
            self._waiting.setdefault(number, (job, tasks[:0]))
        return effects

    def _wait(self, job: Job, number: int, tasks: TaskArray, now: int) -> Sequence[Effect]:
        _, waiting = self._waiting.get(number, (job, tasks[:0]))
        self._waiting[number] = (job, np.union1d(waiting, tasks))
        if self._will_retry:
            return ()
        self._will_retry = True
        return (WakeMe(now + _RETRY, TIMER),)

    def committed(self, event: Committed, now: int) -> Sequence[Effect]:
        claims, (job, number, wanted) = self._asked.pop(event.token)
        refused = np.intersect1d(claims.tasks[~event.outcome.accepted], wanted)
        effects = self._wait(job, number, refused, now) if len(refused) else ()
        self._end_turns()
        return effects

    def _end_turns(self) -> None:
        asked = {number for _, (_, number, _) in self._asked.values()}
        self._waiting = {
            number: (job, tasks)
            for number, (job, tasks) in self._waiting.items()
            if len(tasks) or number in asked
        }

    def withdraw(self, event: Withdrawal) -> None:
        if event.number in self._waiting:
            job, _, tasks = update((event.job, event.number, self._waiting[event.number][1]), event)
            self._waiting[event.number] = (job, tasks)
        self._asked = {
            token: (claims, update(work, event)) for token, (claims, work) in self._asked.items()
        }

    def retry(self, view: View, now: int) -> Sequence[Effect]:
        self._will_retry = False
        waiting = self._waiting
        self._waiting = {number: (job, tasks[:0]) for number, (job, tasks) in waiting.items()}
        effects = [
            effect
            for number, (job, tasks) in waiting.items()
            for effect in self.place(job, number, tasks, view, now)
        ]
        self._end_turns()
        return effects
