"""Shared by `yaq-c` and `yaq-d`: placement by the reported queues of machines.

Every task goes to the machine with the shortest expected queue; the tasks of a job count each other. If
queues are limited, machines with full queues are not chosen, and tasks wait if all are full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.cell import View
from argosy.cell.bitmaps import to_bitmap
from argosy.engines.api import Context, Settings
from argosy.engines.shared.machine_queues import MachineQueueScheduler
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, update
from argosy.model.effects import Effect, Enqueue, Explain, WakeMe
from argosy.model.events import Event, MachineChanged, MachineJoined, TimerFired
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import TaskArray
from argosy.model.units import Micros

_RETRY = "retry"


class QueueingSettings(Settings, frozen=True):
    """Settings of every scheduler that reads queues."""

    #: Machines with this many queued entries are not chosen; 0: no limit.
    limit: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: How long tasks wait if every queue is full.
    retry: Annotated[Micros, Meta(ge=1)] = Micros(1_000_000)
    #: The share of the machines, counted from the last, that may be chosen.
    share: Annotated[float, Meta(gt=0, le=1)] = 1.0


class QueueingScheduler(MachineQueueScheduler):
    """Engines define `asks_latest` and `noise`."""

    #: Whether to use the machines' last reports instead of asking them.
    asks_latest = False

    def __init__(self, settings: QueueingSettings, context: Context) -> None:
        super().__init__(context)
        self._queueing = settings
        self._waiting: list[WaitingTasks] = []
        self._will_retry = False

    def noise(self, machines: int) -> NDArray[np.int64] | None:
        """Added to the known waits."""
        return None

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case TimerFired(name) if name == _RETRY:
                self._will_retry = False
                return self._retry(view)
            case MachineJoined() | MachineChanged():
                return self._retry(view)
        return super().handle(event, view, now)

    def withdraw(self, event: Withdrawal) -> None:
        super().withdraw(event)
        self._waiting = [update(work, event) for work in self._waiting]

    def begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        return self.ask(job, number, tasks, latest=self.asks_latest)

    def _retry(self, view: View) -> Sequence[Effect]:
        waiting, self._waiting = self._waiting, []
        return [effect for again in waiting for effect in self.begin(*again, view)]

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
        short = to_bitmap(lengths < settings.limit) if settings.limit else None
        found = self.least_busy(job, group, len(tasks), keys, settings.share, view, short)
        if len(found.machines):
            return (Enqueue(tasks, found.machines, found.explanation()),)
        self._waiting.append((job, number, tasks))
        effects: list[Effect] = [Explain(tasks, found.explanation())]
        if settings.limit and not self._will_retry:
            self._will_retry = True
            effects.append(WakeMe(now + settings.retry, _RETRY))
        return effects
