"""Answers to offers that a framework uses for all of its queued jobs at once."""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.mesos.framework import Framework, HoardedJob
from argosy.engines.shared.withdrawal import Withdrawal, claims_left, left
from argosy.model.effects import Explain
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job
from argosy.model.transactions import Claims, MachineArray, Outcome, TaskArray

#: Shape and required attributes: tasks that are alike fit on the same machines.
TaskLikeness: TypeAlias = tuple[int, tuple[tuple[str, str], ...]]


class ChosenMachines(msgspec.Struct, frozen=True):
    """What a decision on one job found in an offer."""

    claims: Claims | None
    unplaced: TaskArray
    explains: list[Explain]
    #: How the claims were chosen, if all tasks are alike.
    explanation: Explanation | None


class AnswerPart:
    """The claims of one job."""

    def __init__(self, work: HoardedJob, claims: Claims, explanation: Explanation | None) -> None:
        self.job: Job = work.job
        self.number = work.number
        self._attempts = work.attempts
        #: None if all its tasks were withdrawn.
        self.claims: Claims | None = claims
        self.explanation = explanation
        #: Whether the claims are on their way, and what was withdrawn since.
        self.is_committing = False
        self._withdrawals: list[Withdrawal] = []

    def withdraw(self, event: Withdrawal) -> None:
        if self.number != event.number:
            return
        self.job = event.job
        if self.is_committing:
            self._withdrawals.append(event)
        else:
            self.claims = claims_left(self.claims, event)

    def work_left(self, tasks: TaskArray) -> HoardedJob:
        work = HoardedJob(self.job, self.number, tasks)
        work.attempts = self._attempts
        return work

    def refused(self, outcome: Outcome) -> TaskArray:
        """The tasks that still need a machine."""
        assert self.claims is not None
        tasks = self.claims.tasks[~outcome.accepted]
        for event in self._withdrawals:
            tasks = left(tasks, event)
        return tasks


class OfferAnswer:
    """An offer, from its arrival until the cell has answered for every job. All of it is locked until
    then."""

    def __init__(self, framework: Framework, offer: NDArray[np.int64]) -> None:
        self.framework = framework
        self.offer = offer
        self.parts: list[AnswerPart] = []

    def add(self, work: HoardedJob, claims: Claims, explanation: Explanation | None) -> None:
        self.parts.append(AnswerPart(work, claims, explanation))

    def withdraw(self, event: Withdrawal) -> None:
        for part in self.parts:
            part.withdraw(event)

    def machines(self) -> MachineArray:
        """The machines of which something is used."""
        found = [part.claims.machines for part in self.parts if part.claims is not None]
        return np.concatenate(found) if found else np.empty(0, np.int32)
