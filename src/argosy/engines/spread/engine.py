from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Found, Rule, View
from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.engines.shared.gangs import explain_gang
from argosy.engines.shared.serial import PendingJob, SerialScheduler, SerialSettings
from argosy.model.effects import Effect, Explain
from argosy.model.events import Committed, Event, TaskFinished, TasksLost
from argosy.model.explanations import SAME_JOB
from argosy.model.jobs import job_of
from argosy.model.transactions import Claims
from argosy.model.units import Micros

_FEWEST: Final = "fewest tasks"


class SpreadSettings(SerialSettings, frozen=True):
    """As for other serial schedulers; `placement` has no effect, because the fewest tasks always
    win."""

    t_job: Micros = Micros(1_000)
    t_task: Micros = Micros(100)


class Spread(SerialScheduler):
    name: ClassVar[str] = "spread"
    summary: ClassVar[str] = (
        "SwarmKit: the machine with the fewest tasks of the job, then with the fewest of all."
    )
    settings_type: ClassVar[type[Settings]] = SpreadSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, finishes=Finishes.OWN
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, SpreadSettings)
        super().__init__(settings, context)
        #: Own tasks per machine: in total, and by job.
        self._tasks = np.zeros(0, np.int64)
        self._by_job: dict[int, Counter[int]] = {}

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case Committed(token, outcome) if (claims := self._claims_of(token)) is not None:
                accepted = outcome.accepted
                self._count(claims.tasks[accepted], claims.machines[accepted], 1, view)
            case TaskFinished(tasks, machines):
                self._count(tasks, machines, -1, view)
            case TasksLost(_, _, tasks, machines):
                self._count(tasks, machines, -1, view)
        return super().handle(event, view, now)

    def _count(
        self, tasks: NDArray[np.int64], machines: NDArray[np.int32], change: int, view: View
    ) -> None:
        """Tasks placed before a restart were never counted, so counts stop at 0."""
        if len(self._tasks) < view.machines:
            self._tasks = np.pad(self._tasks, (0, view.machines - len(self._tasks)))
        for task, machine in zip(tasks.tolist(), machines.tolist(), strict=True):
            mine = self._by_job.setdefault(job_of(task), Counter())
            if change > 0 or mine[machine] > 0:
                self._tasks[machine] += change
                mine[machine] += change
            if not mine[machine]:
                del mine[machine]
            if not mine:
                del self._by_job[job_of(task)]

    def _choose(self, work: PendingJob, view: View) -> Claims | None:
        part, precedence = self.part(work, view), self.precedence(work, view)
        keys = np.zeros(view.machines, np.int64)
        keys[: len(self._tasks)] = self._tasks
        for machine, count in self._by_job.get(work.number, Counter()).items():
            keys[machine] += SAME_JOB * count
        taken = np.zeros((view.machines, len(view.dimensions)), np.int64)
        claims: list[Claims] = []
        unplaced: list[NDArray[np.int64]] = []
        seen: list[Found] = []
        self._explains = []
        for group, tasks in work.job.tasks_by_group(part):
            shape = view.shape(group.request, group.tags, precedence)
            found = view.find(
                shape,
                len(tasks),
                Rule.SMALLEST_KEY,
                self._context.random,
                within=view.where(group.requires) if group.requires else None,
                keys=keys,
                step=SAME_JOB + 1,
                adjust=taken,
            )
            seen.append(found)
            machines, count = found.machines, len(found.machines)
            np.add.at(keys, machines, SAME_JOB + 1)
            np.subtract.at(taken, machines, np.array(view.shape_request(shape), np.int64))
            if count:
                shapes = np.full(count, shape, np.int32)
                claims.append(Claims(tasks[:count], machines, shapes, found.versions))
            unplaced.append(tasks[count:])
            if count < len(tasks):
                self._explains.append(Explain(tasks[count:], found.explanation(_FEWEST, "tasks")))
        self._explanation = seen[0].explanation(_FEWEST, "tasks") if len(seen) == 1 else None
        self._unplaced = np.concatenate(unplaced)
        if not claims:
            return None
        if work.job.gang and len(self._unplaced):
            placed = len(part) - len(self._unplaced)
            self._explains = explain_gang(work.job, part, self._explains, placed)
            return None
        return Claims.joined(claims)
