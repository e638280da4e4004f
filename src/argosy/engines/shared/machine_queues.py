"""Shared by the engines that use machines' queues: `sparrow`, `hawk`, `eagle`, `yaq-c` and `yaq-d`.

Tasks that run until stopped are claimed. For other tasks the engine may ask machines first; answers are
matched by token. Tasks that full queues return wait in a backlog until a queue has room.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from argosy.cell import Bitmap, Found, Rule, View
from argosy.engines.api import Context
from argosy.engines.shared.backlog import Backlog, LineKey, all_full, with_room
from argosy.engines.shared.endless_tasks import TIMER, EndlessTasks
from argosy.engines.shared.probing import Candidates, share_of
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, added, failed, update
from argosy.model.effects import AskQueues, Effect, Explain
from argosy.model.events import (
    Committed,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    QueuesReported,
    TaskFailed,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import MachineArray, TaskArray


class MachineQueueScheduler(ABC):
    """Engines define how a job begins, and where its tasks go once machines have answered."""

    #: Which tasks count when machines are asked.
    asks_about: Literal["all", "long"] = "all"

    def __init__(self, context: Context) -> None:
        self._context = context
        self._everywhere = Candidates()
        self._backlog = Backlog()
        self._endless = EndlessTasks(context)
        #: Jobs that wait for an answer, by token.
        self._asking: dict[int, WaitingTasks] = {}
        self._asked = 0

    @abstractmethod
    def begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        """Starts to place tasks of a job; there is at least one."""

    def place(
        self, work: WaitingTasks, report: QueuesReported, view: View, now: int
    ) -> Sequence[Effect]:
        """Places tasks after machines have reported their queues."""
        return ()

    @abstractmethod
    def send(
        self, job: Job, number: int, group: TaskGroup, tasks: TaskArray, machines: MachineArray
    ) -> Effect:
        """Tasks of a group that go to machines with room in their queues, one each."""

    def eligible(self, job: Job, group: TaskGroup, view: View) -> MachineArray:
        """The machines whose queues tasks of the group may wait in."""
        return self._everywhere.of(job, group, view)

    def places(
        self, group: TaskGroup, machines: MachineArray, count: int, report: QueuesReported
    ) -> MachineArray:
        """Where up to `count` tasks of the group go, now that some queues have room."""
        return with_room(machines, report.room, count, self._context.random)

    def forget_machines(self) -> None:
        """Machines have changed."""
        self._everywhere.forget()

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case TasksLost(job, number, tasks, _, Why.QUEUE_FULL):
                return self.wait_for_room(job, number, tasks, view)
            case JobSubmitted(job, number, tasks) | TasksLost(job, number, tasks):
                endless, rest = self._endless.split(job, tasks)
                claimed = self._endless.place(job, number, endless, view, now)
                return [*claimed, *self.begin(job, number, rest, view)] if len(rest) else claimed
            case Committed():
                return self._endless.committed(event, now)
            case TimerFired(name) if name == TIMER:
                return self._endless.retry(view, now)
            case QueuesReported(token) if token in self._asking:
                report = _of_all(event, view.machines)
                return self.place(self._asking.pop(token), report, view, now)
            case QueuesReported():
                return self._use_room(_of_all(event, view.machines), view)
            case MachineLost():
                self.forget_machines()
            case MachineJoined() | MachineChanged():
                self.forget_machines()
                kinds = self._backlog.forget_questions()
                return [effect for kind in kinds for effect in self._ask_for_room(kind, view)]
            case JobCancelled() | JobChanged():
                self.withdraw(event)
                more = added(event)
                return () if more is None else self.handle(more, view, now)
            case TaskFailed():
                return self.handle(failed(event, view), view, now)
        return ()

    def withdraw(self, event: Withdrawal) -> None:
        """Forgets withdrawn tasks."""
        self._endless.withdraw(event)
        self._backlog.withdraw(event)
        self._asking = {token: update(work, event) for token, work in self._asking.items()}

    def ask(
        self, job: Job, number: int, tasks: TaskArray, *, latest: bool = False
    ) -> Sequence[Effect]:
        self._asked += 1
        self._asking[self._asked] = (job, number, tasks)
        return (AskQueues(self._asked, latest, self.asks_about),)

    def kind_of(self, job: Job, group: TaskGroup, view: View) -> LineKey:
        shape = view.shape(group.request, group.tags, job.precedence)
        return (shape, *sorted(group.requires.items()))

    def wait_for_room(
        self, job: Job, number: int, tasks: TaskArray, view: View
    ) -> Sequence[Effect]:
        """Every queue that the tasks could wait in is full, as far as is known."""
        effects: list[Effect] = []
        for group, mine in job.tasks_by_group(tasks):
            machines = self.eligible(job, group, view)
            if not len(machines):
                effects.extend(self.begin(job, number, mine, view))
                continue
            effects.append(Explain(mine, all_full(machines)))
            kind = self.kind_of(job, group, view)
            if self._backlog.add(kind, (job, number, mine)):
                effects.extend(self._ask_for_room(kind, view))
        return effects

    def _ask_for_room(self, kind: LineKey, view: View) -> Sequence[Effect]:
        effects: list[Effect] = []
        while (work := self._backlog.head(kind)) is not None:
            job, number, tasks = work
            [(group, _)] = job.tasks_by_group(tasks)
            machines = self.eligible(job, group, view)
            if len(machines):
                self._asked += 1
                self._backlog.asks(self._asked, kind)
                effects.append(AskQueues(self._asked, which=self.asks_about, until_room=machines))
                break
            # The last machine that could take them has gone.
            self._backlog.sent(kind, len(tasks))
            effects.extend(self.begin(job, number, tasks, view))
        return effects

    def _use_room(self, report: QueuesReported, view: View) -> Sequence[Effect]:
        kind = self._backlog.answered(report.token)
        if kind is None:
            return ()
        effects: list[Effect] = []
        while (work := self._backlog.head(kind)) is not None:
            job, number, tasks = work
            [(group, _)] = job.tasks_by_group(tasks)
            machines = self.eligible(job, group, view)
            chosen = self.places(group, machines, len(tasks), report)
            if not len(chosen):
                break
            np.subtract.at(report.room, chosen, 1)
            effects.append(self.send(job, number, group, tasks[: len(chosen)], chosen))
            self._backlog.sent(kind, len(chosen))
        return [*effects, *self._ask_for_room(kind, view)]

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


def _of_all(report: QueuesReported, machines: int) -> QueuesReported:
    """The report with a row for each machine: those that joined while it was on its way are idle, and
    have room for a task at least."""
    missing = machines - len(report.lengths)
    if not missing:
        return report
    idle, roomy = np.zeros(missing, np.int64), np.ones(missing, np.int64)
    return QueuesReported(
        report.token,
        np.concatenate([report.lengths, idle]),
        np.concatenate([report.waits, idle]),
        np.concatenate([report.room, roomy]),
    )
