"""What the simulated world writes into the decision log, in the log's words.

One line concerns one job: tasks are given by their indices in it, machines by their numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import Explanation, Why
from argosy.model.jobs import Job
from argosy.model.tasks import by_job, indices_of
from argosy.model.transactions import Claims, MachineArray, Outcome, TaskArray
from argosy.worlds.log import DecisionLog
from argosy.worlds.sim.workbook import JobTable


class Journal:
    """Does nothing without a log."""

    def __init__(self, log: DecisionLog | None, workbook: JobTable) -> None:
        self._log = log
        self._workbook = workbook

    def submitted(self, now: int, job: Job, scheduler: str) -> None:
        if self._log:
            self._log.write(
                now, "submitted", job=job.id, tasks=job.tasks, kind=job.kind, scheduler=scheduler
            )

    def attempt(self, now: int, job: int, scheduler: str, takes: int) -> None:
        if self._log:
            name = self._workbook.name(job)
            self._log.write(now, "attempt", job=name, scheduler=scheduler, takes=takes)

    def tasks(self, now: int, what: str, tasks: TaskArray, **fields: Any) -> None:
        """A line per job for something that happened to `tasks`."""
        if self._log:
            for number, where in by_job(tasks):
                name = self._workbook.name(number)
                self._log.write(
                    now, what, job=name, indices=indices_of(tasks[where]).tolist(), **fields
                )

    def placed(
        self,
        now: int,
        what: str,
        tasks: TaskArray,
        machines: MachineArray,
        scheduler: str,
        explanation: Explanation | None,
    ) -> None:
        if self._log:
            why = {} if explanation is None else {"explanation": explanation}
            for number, where in by_job(tasks):
                self._log.write(
                    now,
                    what,
                    job=self._workbook.name(number),
                    indices=indices_of(tasks[where]).tolist(),
                    machines=machines[where].tolist(),
                    scheduler=scheduler,
                    **why,
                )

    def lost(
        self, now: int, number: int, tasks: TaskArray, machines: MachineArray, why: Why
    ) -> None:
        if self._log:
            self._log.write(
                now,
                "lost",
                job=self._workbook.name(number),
                indices=indices_of(tasks).tolist(),
                machines=machines.tolist(),
                why=why.name.lower(),
            )

    def refused(
        self, now: int, claims: Claims, outcome: Outcome, rows: NDArray[np.intp], scheduler: str
    ) -> None:
        if self._log:
            for number, where in by_job(claims.tasks[rows]):
                mine = rows[where]
                self._log.write(
                    now,
                    "refused",
                    job=self._workbook.name(number),
                    indices=indices_of(claims.tasks[mine]).tolist(),
                    machines=claims.machines[mine].tolist(),
                    scheduler=scheduler,
                    whys=outcome.whys[mine].tolist(),
                    details=outcome.details[mine].tolist(),
                    amounts=outcome.amounts[mine].tolist(),
                )

    def fault(self, now: int, what: str, **fields: Any) -> None:
        if self._log:
            self._log.write(now, what, **fields)

    def detail(self, now: int, what: str, **fields: Any) -> None:
        """Messages and timers, which only a log of everything holds."""
        if self._log and self._log.everything:
            self._log.write(now, what, **fields)
