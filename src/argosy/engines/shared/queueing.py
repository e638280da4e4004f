"""Placement by what machines say of their queues: the loop that Yaq's two schedulers share.

Every task goes to the machine that is expected to be busy for the least time, as far as is known; the
tasks of one job see each other. Queues may be limited: a machine with as many entries as the limit is
not chosen, and tasks that find none wait. This module is no engine; it is what several are made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.cell import Rule, View
from argosy.cell.bitmaps import to_bitmap
from argosy.engines.api import Context, Settings
from argosy.engines.shared.endless_tasks import TIMER, EndlessTasks
from argosy.engines.shared.probing import share_of
from argosy.model.effects import AskQueues, Effect, Enqueue, Explain, WakeMe
from argosy.model.events import (
    Committed,
    Event,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    QueuesReported,
    TasksLost,
    TimerFired,
)
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import TaskArray
from argosy.model.units import Micros


class QueueingSettings(Settings, frozen=True):
    """What every scheduler that reads queues can be told."""

    #: Machines with so many entries in their queues are not chosen; 0: all may be.
    limit: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: How long tasks wait that found no queue short enough.
    retry: Annotated[Micros, Meta(ge=1)] = Micros(1_000_000)
    #: The share of the machines, from the end, that may be chosen.
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0


class QueueingScheduler:
    """Engines have their own `heartbeat`, `counts_sent` and `noise`."""

    heartbeat = 0
    counts_sent = False

    def __init__(self, settings: QueueingSettings, context: Context) -> None:
        self._queueing = settings
        self._context = context
        #: Jobs that wait for an answer, by token.
        self._asking: dict[int, tuple[Job, int, TaskArray]] = {}
        self._asked = 0
        self._waiting: list[tuple[Job, int, TaskArray]] = []
        self._will_retry = False
        self._standing = EndlessTasks(context)

    def noise(self, machines: int) -> NDArray[np.int64] | None:
        """What is added to the waits as they are known."""
        return None

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(job, number, tasks) | TasksLost(job, number, tasks):
                endless, rest = self._standing.split(job, tasks)
                standing = self._standing.place(job, number, endless, view, now)
                return [*standing, *self._ask(job, number, rest)]
            case Committed():
                return self._standing.committed(event, now)
            case TimerFired(name) if name == TIMER:
                return self._standing.retry(view, now)
            case QueuesReported(token, lengths, waits) if token in self._asking:
                return self._place(*self._asking.pop(token), view, lengths, waits, now)
            case TimerFired():
                self._will_retry = False
                return self._retry()
            case MachineJoined() | MachineChanged():
                return self._retry()
        return ()

    def _ask(self, job: Job, number: int, tasks: TaskArray) -> Sequence[Effect]:
        if not len(tasks):
            return ()
        self._asked += 1
        self._asking[self._asked] = (job, number, tasks)
        return (AskQueues(self._asked, heartbeat=self.heartbeat, sent=self.counts_sent),)

    def _retry(self) -> Sequence[Effect]:
        waiting, self._waiting = self._waiting, []
        return [effect for again in waiting for effect in self._ask(*again)]

    def _place(
        self,
        job: Job,
        number: int,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        waits: NDArray[np.int64],
        now: int,
    ) -> Sequence[Effect]:
        noise = self.noise(view.machines)
        keys = waits if noise is None else waits + noise
        effects: list[Effect] = []
        for group, mine in job.tasks_by_group(tasks):
            effects.extend(self._place_group(job, number, group, mine, view, lengths, keys, now))
        return effects

    def _place_group(
        self,
        job: Job,
        number: int,
        group: TaskGroup,
        tasks: TaskArray,
        view: View,
        lengths: NDArray[np.int64],
        keys: NDArray[np.int64],
        now: int,
    ) -> Sequence[Effect]:
        settings = self._queueing
        first = view.machines - share_of(settings.share, view.machines)
        within = view.between(first, view.machines)
        if group.requires:
            within &= view.where(group.requires)
        if settings.limit:
            within &= to_bitmap(lengths < settings.limit)
        shape = view.shape(group.request, group.tags, job.precedence)
        found = view.find(
            shape,
            len(tasks),
            Rule.SMALLEST_KEY,
            self._context.random,
            within=within,
            keys=keys,
            step=group.expected or 0,
            needs_room=False,
        )
        if len(found.machines):
            return (Enqueue(tasks, found.machines, found.explanation()),)
        self._waiting.append((job, number, tasks))
        effects: list[Effect] = [Explain(tasks, found.explanation())]
        if settings.limit and not self._will_retry:
            self._will_retry = True
            effects.append(WakeMe(now + settings.retry, "retry"))
        return effects
