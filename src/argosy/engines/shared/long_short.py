"""Shared by `hawk` and `eagle`: long jobs are placed centrally, short jobs by probes.

Jobs whose estimate is above a cut-off are long. Their tasks go, one at a time, to the machine of
the long partition with the least work in long tasks. Short jobs probe. Both first ask machines
about their long tasks. The engines differ in where short jobs probe, and in whether probes are
sticky.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.api import Context, Settings
from argosy.engines.shared.backlog import LineKey, room_in_queue, with_room
from argosy.engines.shared.decision_queue import DecisionQueue
from argosy.engines.shared.machine_queues import MachineQueueScheduler
from argosy.engines.shared.probing import Candidates, Stuck, draw
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal
from argosy.model.effects import Effect, Enqueue, Probe
from argosy.model.events import DecisionDue, Event, MachineChanged, MachineJoined, QueuesReported
from argosy.model.explanations import SHORTEST_WAIT, Explanation
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.units import Micros

#: More than the places that one queue can have.
_APART: Final = 2**40


class HybridSettings(Settings, frozen=True):
    """Settings of every hybrid scheduler."""

    #: Jobs with a larger estimate are long. Set `long_above` of `[machines]` to the same value.
    cutoff: Annotated[Micros, Meta(ge=1)] = Micros(90_581_100)
    #: The share of the machines, counted from the last, for long jobs; short jobs may use all.
    long_share: Annotated[float, Meta(gt=0, le=1)] = 0.98
    #: Probes per task of a short job; smallest number of probes per job.
    ratio: Annotated[int, Meta(ge=1, le=100)] = 2
    least: Annotated[int, Meta(ge=1, le=1_000)] = 2
    #: Decision time of a long job is t_job + t_task x tasks. Long jobs are decided on one at a time: the
    #: earliest first, or the one with the least estimated work.
    t_job: Micros = Micros(0)
    t_task: Micros = Micros(0)
    order: Literal["fcfs", "shortest-job"] = "fcfs"


class HybridScheduler(MachineQueueScheduler):
    """Engines define `probed` and `is_sticky`."""

    asks_about: Literal["all", "long"] = "long"
    is_sticky = False
    #: Whether short jobs ask which machines have long tasks.
    asks_for_short = False

    def __init__(self, settings: HybridSettings, context: Context) -> None:
        super().__init__(context)
        self._long_short = settings
        self._for_long = Candidates(only_last=settings.long_share)
        self._apart = Candidates(but_last=settings.long_share)
        self._stuck = Stuck()
        by_work = settings.order == "shortest-job"
        self._central = DecisionQueue(settings.t_job, settings.t_task, by_work=by_work)

    def probed(
        self, machines: MachineArray, apart: MachineArray, count: int, lengths: NDArray[np.int64]
    ) -> MachineArray:
        """The machines that a short job probes. `lengths` counts long tasks, if machines were asked;
        `apart` are the machines outside the long partition."""
        return draw(machines, count, self._context.random, repeated=False)

    def placed_long(self, machines: MachineArray, lengths: NDArray[np.int64]) -> None:
        """Called after long tasks were placed; `lengths` are from before."""

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case DecisionDue():
                work = self._central.decided()
                decided = self._start(*work, view) if len(work[2]) else ()
                return [*decided, *self._central.next()]
            case MachineJoined() | MachineChanged():
                effects = super().handle(event, view, now)
                again = self._stuck.take()
                return [*effects, *(e for stuck in again for e in self.begin(*stuck, view))]
        return super().handle(event, view, now)

    def withdraw(self, event: Withdrawal) -> None:
        super().withdraw(event)
        self._stuck.withdraw(event)
        self._central.withdraw(event)

    def forget_machines(self) -> None:
        super().forget_machines()
        self._for_long.forget()
        self._apart.forget()

    def _is_long(self, group: TaskGroup) -> bool:
        return (group.estimate or 0) > self._long_short.cutoff

    def begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        if self._central.takes_time and any(map(self._is_long, job.groups)):
            return self._central.add((job, number, tasks))
        return self._start(job, number, tasks, view)

    def _start(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        if self.asks_for_short or any(map(self._is_long, job.groups)):
            return self.ask(job, number, tasks)
        nothing = np.zeros(view.machines, np.int64)
        return self._place(job, number, tasks, view, nothing, nothing)

    def place(
        self, work: WaitingTasks, report: QueuesReported, view: View, now: int
    ) -> Sequence[Effect]:
        return self._place(*work, view, report.lengths, report.waits)

    def _place(
        self,
        job: Job,
        number: int,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        waits: NDArray[np.int64],
    ) -> Sequence[Effect]:
        effects: list[Effect] = []
        for group, mine in job.tasks_by_group(tasks):
            machines = self._everywhere.of(job, group, view)
            if not len(machines):
                random = self._context.random
                effects.append(self._stuck.add(job, number, group, mine, view, random))
            elif self._is_long(group):
                effects.append(self._enqueue(job, group, mine, view, lengths, waits))
            else:
                count = max(self._long_short.ratio * len(mine), self._long_short.least)
                apart = self._apart.of(job, group, view)
                probed = self.probed(machines, apart, count, lengths)
                effects.append(self.send(job, number, group, mine, probed))
        return effects

    def send(
        self, job: Job, number: int, group: TaskGroup, tasks: TaskArray, machines: MachineArray
    ) -> Effect:
        if self._is_long(group):
            return Enqueue(tasks, machines, room_in_queue())
        return Probe(
            number,
            machines,
            group.request,
            group.estimate or 0,
            tasks,
            sticky=self.is_sticky,
            cancel=True,
        )

    def kind_of(self, job: Job, group: TaskGroup, view: View) -> LineKey:
        return (self._is_long(group), *super().kind_of(job, group, view))

    def eligible(self, job: Job, group: TaskGroup, view: View) -> MachineArray:
        if self._is_long(group):
            machines = self._for_long.of(job, group, view)
            if len(machines):
                return machines
        return super().eligible(job, group, view)

    def places(
        self, group: TaskGroup, machines: MachineArray, count: int, report: QueuesReported
    ) -> MachineArray:
        random, room = self._context.random, report.room
        if self._is_long(group):
            return with_room(machines, room, count, random, report.waits, group.estimate or 0)
        if self.asks_for_short:
            # Machines without long tasks first.
            return with_room(machines, room, count, random, (report.lengths > 0) * _APART, step=1)
        return super().places(group, machines, count, report)

    def _enqueue(
        self,
        job: Job,
        group: TaskGroup,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        waits: NDArray[np.int64],
    ) -> Enqueue:
        found = self.least_busy(job, group, len(tasks), waits, self._long_short.long_share, view)
        if not len(found.machines):
            # Only machines outside the partition could take them.
            machines = self._everywhere.of(job, group, view)
            chosen = draw(machines, len(tasks), self._context.random, repeated=False)
            return Enqueue(tasks, chosen, Explanation(rule="random machine"))
        self.placed_long(found.machines, lengths)
        return Enqueue(tasks, found.machines, found.explanation(SHORTEST_WAIT, "wait"))
