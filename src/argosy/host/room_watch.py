"""Answers `AskQueues`: at once, or as soon as a queue has room."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy._core import NEVER
from argosy.host.effect_checks import check_questions
from argosy.host.protocols import MACHINES
from argosy.host.scheduler import Scheduler
from argosy.model.effects import AskQueues
from argosy.model.events import QueuesReported
from argosy.model.transactions import MachineArray

if TYPE_CHECKING:
    from argosy.host.host import Host


class PendingQuestion(NamedTuple):
    """A scheduler, as of one epoch, waits for room in the queue of one of these machines."""

    scheduler: Scheduler
    epoch: int
    effect: AskQueues
    machines: MachineArray


class RoomWatch:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._runtime = host.runtime
        self._links = host.links
        self._model = host.setup.machines
        self._questions: list[PendingQuestion] = []

    def ask(self, scheduler: Scheduler, effect: AskQueues, now: int) -> None:
        check_questions(scheduler, effect, self._host.view.machines)
        if effect.latest and effect.until_room is None:
            period = self._model.heartbeat
            if period:
                self._runtime.beat_every(period, self._model.heartbeat_counts_sent)
            state = self._runtime.queue_state(effect.which == "long", as_of_beat=period > 0)
            report = QueuesReported(effect.token, *state, self._room())
            self._host.post(now, scheduler, report)
            return
        delay = self._links.reliable_delay(scheduler.name, MACHINES, now)
        self._host.request(now + delay, scheduler, self._arrive, effect)

    def _room(self) -> NDArray[np.int64]:
        if self._model.limit:
            return self._runtime.queue_room()
        return np.full(self._host.view.machines, NEVER, np.int64)

    def _arrive(self, scheduler: Scheduler, effect: AskQueues, now: int) -> None:
        room, machines = self._room(), effect.until_room
        if machines is None or (room[machines] > 0).any():
            self._answer(scheduler, effect, room, now)
            return
        self._runtime.await_room(machines)
        self._questions.append(PendingQuestion(scheduler, scheduler.epoch, effect, machines))

    def pass_on(self, now: int) -> None:
        """Queues that were waited for have room."""
        roomy = self._runtime.take_roomy()
        asked, self._questions = self._questions, []
        room = self._room()
        for question in asked:
            if question.scheduler.epoch != question.epoch:
                continue
            if np.isin(roomy, question.machines).any():
                self._answer(question.scheduler, question.effect, room.copy(), now)
            else:
                self._questions.append(question)

    def _answer(
        self, scheduler: Scheduler, effect: AskQueues, room: NDArray[np.int64], now: int
    ) -> None:
        state = self._runtime.queue_state(effect.which == "long")
        hop = self._links.reliable_delay(MACHINES, scheduler.name, now)
        self._host.post(now + hop, scheduler, QueuesReported(effect.token, *state, room))
