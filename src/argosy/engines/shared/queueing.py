"""Shared by `yaq-c` and `yaq-d`: placement by the reported queues of machines.

Every task goes to the machine with the shortest expected queue; the tasks of a job count each other. If
queues are limited, machines with full queues are not chosen, and tasks wait if all are full: in order of
arrival until a machine says that its queue has room, or, under the scheduler's own limit, for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.cell import Found, View
from argosy.cell.bitmaps import to_bitmap
from argosy.engines.api import Context, Settings
from argosy.engines.shared.backlog import room_in_queue, with_room
from argosy.engines.shared.machine_queues import MachineQueueScheduler
from argosy.engines.shared.probing import Candidates
from argosy.engines.shared.withdrawal import WaitingTasks, Withdrawal, update
from argosy.model.effects import Effect, Enqueue, Explain, WakeMe
from argosy.model.events import Event, MachineChanged, MachineJoined, QueuesReported, TimerFired
from argosy.model.explanations import SHORTEST_WAIT
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.units import Micros

_RETRY = "retry"


class QueueingSettings(Settings, frozen=True):
    """Settings of every scheduler that reads queues."""

    #: Machines with this many queued entries are not chosen; 0: no limit.
    limit: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: How long tasks wait if every machine has that many.
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
        self._chosen_from = Candidates(only_last=settings.share)
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
                return [*super().handle(event, view, now), *self._retry(view)]
        return super().handle(event, view, now)

    def forget_machines(self) -> None:
        super().forget_machines()
        self._chosen_from.forget()

    def eligible(self, job: Job, group: TaskGroup, view: View) -> MachineArray:
        return self._chosen_from.of(job, group, view)

    def send(
        self, job: Job, number: int, group: TaskGroup, tasks: TaskArray, machines: MachineArray
    ) -> Effect:
        return Enqueue(tasks, machines, room_in_queue())

    def places(
        self, group: TaskGroup, machines: MachineArray, count: int, report: QueuesReported
    ) -> MachineArray:
        keys, step = self._keys(report), group.estimate or 0
        return with_room(machines, report.room, count, self._context.random, keys, step)

    def _keys(self, report: QueuesReported) -> NDArray[np.int64]:
        """The machines' waits as this scheduler compares them."""
        noise = self.noise(len(report.waits))
        return report.waits if noise is None else report.waits + noise

    def withdraw(self, event: Withdrawal) -> None:
        super().withdraw(event)
        self._waiting = [update(work, event) for work in self._waiting]

    def begin(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        return self.ask(job, number, tasks, latest=self.asks_latest)

    def _retry(self, view: View) -> Sequence[Effect]:
        waiting, self._waiting = self._waiting, []
        return [effect for again in waiting for effect in self.begin(*again, view)]

    def place(
        self, work: WaitingTasks, report: QueuesReported, view: View, now: int
    ) -> Sequence[Effect]:
        job, number, tasks = work
        keys, room = self._keys(report), report.room
        effects: list[Effect] = []
        is_tight = bool(self._backlog) or room.min(initial=len(tasks)) < len(tasks)
        for group, mine in job.tasks_by_group(tasks):
            if is_tight and self._must_wait(job, group, room, view):
                effects.extend(self.wait_for_room(job, number, mine, view))
            else:
                known = room if is_tight else None
                part = (job, number, mine)
                effects.extend(
                    self._place_group(part, group, view, report.lengths, keys, known, now)
                )
        return effects

    def _must_wait(self, job: Job, group: TaskGroup, room: NDArray[np.int64], view: View) -> bool:
        """Whether others came first, or every queue is full."""
        machines = self.eligible(job, group, view)
        if not len(machines):
            return False
        return self.kind_of(job, group, view) in self._backlog or not room[machines].any()

    def _place_group(
        self,
        work: WaitingTasks,
        group: TaskGroup,
        view: View,
        lengths: NDArray[np.int64],
        keys: NDArray[np.int64],
        room: NDArray[np.int64] | None,
        now: int,
    ) -> Sequence[Effect]:
        settings = self._queueing
        job, _, tasks = work
        short = to_bitmap(lengths < settings.limit) if settings.limit else None
        if room is not None:
            short = to_bitmap(room > 0) if short is None else short & to_bitmap(room > 0)
        found = self.least_busy(job, group, len(tasks), keys, settings.share, view, short)
        if len(found.machines):
            return self._enqueue(work, found, room, view)
        self._waiting.append(work)
        effects: list[Effect] = [Explain(tasks, found.explanation())]
        if settings.limit and not self._will_retry:
            self._will_retry = True
            effects.append(WakeMe(now + settings.retry, _RETRY))
        return effects

    def _enqueue(
        self, work: WaitingTasks, found: Found, room: NDArray[np.int64] | None, view: View
    ) -> Sequence[Effect]:
        """Sends as many tasks to each machine as its queue has room for; the others wait."""
        job, number, tasks = work
        machines, explanation = found.machines, found.explanation(SHORTEST_WAIT, "wait")
        if room is None:
            return (Enqueue(tasks, machines, explanation),)
        has_room = np.zeros(len(tasks), np.bool_)
        for row, machine in enumerate(machines.tolist()):
            has_room[row] = room[machine] > 0
            room[machine] -= has_room[row]
        effects: list[Effect] = [Enqueue(tasks[has_room], machines[has_room], explanation)]
        if not has_room.all():
            effects.extend(self.wait_for_room(job, number, tasks[~has_room], view))
        return effects
