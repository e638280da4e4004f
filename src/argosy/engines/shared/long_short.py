"""Two kinds of jobs, two ways: the loop that hybrid schedulers share.

Jobs whose estimate is above a cut-off are long. They go, one task at a time, to the machine that long
tasks will keep busy for the least time, among the machines of the long partition. Short jobs probe. Both
begin by asking machines about their long tasks. Engines differ in where short jobs probe, and in whether
probes stick. This module is no engine; it is what several are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.cell import Rule, View
from argosy.engines.api import Context, Settings
from argosy.engines.shared.endless_tasks import EndlessTasks
from argosy.engines.shared.probing import Candidates, Stuck, draw, share_of
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, added, failed, update
from argosy.model.effects import AskQueues, Effect, Enqueue, Probe
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
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.units import Micros


class HybridSettings(Settings, frozen=True):
    """What every hybrid scheduler can be told."""

    #: Jobs with a larger estimate are long. Machines need the same as `long_above`.
    cutoff: Annotated[Micros, Meta(ge=1)] = Micros(90_581_100)
    #: The share of the machines, from the end, that long jobs may use; short ones may use all.
    long_share: Annotated[float, Meta(gt=0, le=1)] = 0.98
    #: Probes per task of a short job, and per job at least.
    ratio: Annotated[int, Meta(ge=1, le=100)] = 2
    least: Annotated[int, Meta(ge=1, le=1_000)] = 2


class HybridScheduler:
    """Engines have their own `probed` and `is_sticky`."""

    is_sticky = False
    #: Whether short jobs need to know where long tasks are.
    asks_for_short = False

    def __init__(self, settings: HybridSettings, context: Context) -> None:
        self._hybrid = settings
        self._context = context
        self._everywhere = Candidates()
        self._apart = Candidates(but_last=settings.long_share)
        self._stuck = Stuck()
        self._standing = EndlessTasks(context)
        #: Jobs that wait for machines to say where long tasks are, by token.
        self._asking: dict[int, WaitingTasks] = {}
        self._asked = 0

    def probed(
        self, machines: MachineArray, apart: MachineArray, count: int, lengths: NDArray[np.int64]
    ) -> MachineArray:
        """Where a short job probes. `lengths` are of long tasks, where they were asked for; `apart` are
        the machines that have none."""
        return draw(machines, count, self._context.random, repeated=False)

    def placed_long(self, machines: MachineArray, lengths: NDArray[np.int64]) -> None:
        """Long tasks were placed; `lengths` are from before."""

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(job, number, tasks) | TasksLost(job, number, tasks):
                endless, rest = self._standing.split(job, tasks)
                standing = self._standing.place(job, number, endless, view, now)
                return [*standing, *self._begin(job, number, rest, view)]
            case Committed():
                return self._standing.committed(event, now)
            case TimerFired():
                return self._standing.retry(view, now)
            case QueuesReported(token, lengths, waits) if token in self._asking:
                return self._place(*self._asking.pop(token), view, lengths, waits)
            case MachineLost():
                self._forget_machines()
            case MachineJoined() | MachineChanged():
                self._forget_machines()
                again = self._stuck.take()
                return [effect for stuck in again for effect in self._begin(*stuck, view)]
            case JobCancelled() | JobChanged():
                self._withdraw(event)
                more = added(event)
                return () if more is None else self.handle(more, view, now)
            case TaskFailed():
                return self.handle(failed(event, view), view, now)
        return ()

    def _withdraw(self, event: Withdrawal) -> None:
        self._standing.withdraw(event)
        self._stuck.withdraw(event)
        self._asking = {token: update(work, event) for token, work in self._asking.items()}

    def _forget_machines(self) -> None:
        self._everywhere.forget()
        self._apart.forget()

    def _is_long(self, group: TaskGroup) -> bool:
        return (group.estimate or 0) > self._hybrid.cutoff

    def _begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        if not len(tasks):
            return ()
        if self.asks_for_short or any(map(self._is_long, job.groups)):
            self._asked += 1
            self._asking[self._asked] = (job, number, tasks)
            return (AskQueues(self._asked, only_long=True),)
        nothing = np.zeros(view.machines, np.int64)
        return self._place(job, number, tasks, view, nothing, nothing)

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
                count = max(self._hybrid.ratio * len(mine), self._hybrid.least)
                apart = self._apart.of(job, group, view)
                probed = self.probed(machines, apart, count, lengths)
                effects.append(
                    Probe(
                        number,
                        probed,
                        group.request,
                        group.estimate or 0,
                        mine,
                        sticky=self.is_sticky,
                        cancel=True,
                    )
                )
        return effects

    def _enqueue(
        self,
        job: Job,
        group: TaskGroup,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        waits: NDArray[np.int64],
    ) -> Enqueue:
        first = view.machines - share_of(self._hybrid.long_share, view.machines)
        within = view.between(first, view.machines)
        if group.requires:
            within &= view.where(group.requires)
        shape = view.shape(group.request, group.tags, job.precedence)
        found = view.find(
            shape,
            len(tasks),
            Rule.SMALLEST_KEY,
            self._context.random,
            within=within,
            keys=waits,
            step=group.estimate or 0,
            needs_room=False,
        )
        if not len(found.machines):
            # Only machines of the other partition would do.
            machines = self._everywhere.of(job, group, view)
            chosen = draw(machines, len(tasks), self._context.random, repeated=False)
            return Enqueue(tasks, chosen)
        self.placed_long(found.machines, lengths)
        return Enqueue(tasks, found.machines, found.explanation())
