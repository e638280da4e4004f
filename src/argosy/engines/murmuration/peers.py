"""Requests to peers: their views after a restart, and repairs of the own view.

A restarted scheduler asks two peers for their views and starts with the first answer. After a
time-out it asks two others, until all were asked; then it starts with an empty view. Only
schedulers that have started answer.

From time to time a scheduler sends a digest of its view to a random peer. If the peer's digest differs,
the two compare digests per job to find the jobs that differ, and exchange their entries for these. Both
merge what they receive (core/waits/ledger.hpp), so lost, late and doubled messages do no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argosy.cell.waits import WaitView, columns_of, state_of
from argosy.engines.api import Context
from argosy.engines.murmuration.settings import MurmurationSettings
from argosy.model.effects import Effect, Send, WakeMe
from argosy.model.messages import AskWaits, Digest, Digests, Message, Repair, WaitColumns, Waits

ASK = "ask"
ANSWER = "answer to "
COMPARE = "compare"


class Peers:
    def __init__(self, settings: MurmurationSettings, context: Context, waits: WaitView) -> None:
        self._settings = settings
        self._context = context
        self._waits = waits
        self.is_asking = False
        self._unasked: list[str] = []
        self._round = 0
        #: Whether a comparison is scheduled, and the digest at the last one.
        self._will_compare = False
        self._compared = 0

    def ask(self, now: int) -> Sequence[Effect]:
        self.is_asking = True
        self._unasked = list(self._context.peers)
        return self._ask_two(now)

    def _ask_two(self, now: int) -> Sequence[Effect]:
        if not self._unasked:
            self.is_asking = False
            return ()
        chosen = [self._draw() for _ in range(min(2, len(self._unasked)))]
        self._round += 1
        due = now + self._settings.ask_timeout
        return (Send(tuple(chosen), AskWaits()), WakeMe(due, f"{ASK} {self._round}"))

    def _draw(self) -> str:
        return self._unasked.pop(self._context.random.below(len(self._unasked)))

    def hear(self, sender: str, payload: Message, now: int) -> Sequence[Effect]:
        match payload:
            case AskWaits():
                return self._be_asked(sender, now)
            case Waits(state) if self.is_asking:
                self.is_asking = False
                # The peer's view may include what was heard here while asking. A view of busy-until
                # times would add that to the joined times once more.
                self._waits.settle(now)
                self._waits.join(state_of(state))
            case Digest(digest) if not self.is_asking:
                self._waits.settle(now)
                if digest != self._waits.digest:
                    return (Send((sender,), Digests(*self._waits.digests())),)
            case Digests(jobs, digests) if not self.is_asking:
                return self._compare(sender, jobs, digests, now)
            case Repair(jobs, state, is_answer):
                self._waits.settle(now)
                self._waits.join(state_of(state))
                if not is_answer:
                    mine = self._state(jobs)
                    return (Send((sender,), Repair(jobs, mine, is_answer=True)),)
        return ()

    def _be_asked(self, sender: str, now: int) -> Sequence[Effect]:
        if self.is_asking:
            return ()
        if self._settings.answer_delay:
            delay = self._context.random.below(self._settings.answer_delay + 1)
            return (WakeMe(now + delay, f"{ANSWER}{sender}"),)
        return self._answer(sender, now)

    def _answer(self, sender: str, now: int) -> Sequence[Effect]:
        self._waits.settle(now)
        return (Send((sender,), Waits(self._state())),)

    def _state(self, jobs: NDArray[np.int64] | None = None) -> WaitColumns:
        """The contents of the view, or its entries for some jobs."""
        return columns_of(self._waits.state(jobs))

    def fire(self, name: str, now: int) -> Sequence[Effect]:
        if name == f"{ASK} {self._round}" and self.is_asking:
            return self._ask_two(now)
        if name.startswith(ANSWER):
            return self._answer(name.removeprefix(ANSWER), now)
        if name == COMPARE:
            return self._begin_compare(now)
        return ()

    def keep_comparing(self, now: int) -> Sequence[Effect]:
        """Schedules the next comparison, unless one is scheduled."""
        period = self._settings.anti_entropy
        if not period or self._will_compare or self._settings.as_published:
            return ()
        if not self._context.peers:
            return ()
        self._will_compare = True
        return (WakeMe(now + period, COMPARE),)

    def _begin_compare(self, now: int) -> Sequence[Effect]:
        self._will_compare = False
        self._waits.settle(now)
        digest = self._waits.digest
        peer = self._context.peers[self._context.random.below(len(self._context.peers))]
        effects: list[Effect] = [Send((peer,), Digest(digest))]
        # If nothing has changed since, one comparison is enough.
        if digest != self._compared:
            effects.extend(self.keep_comparing(now))
        self._compared = digest
        return effects

    def _compare(
        self, sender: str, jobs: NDArray[np.int64], digests: NDArray[np.uint64], now: int
    ) -> Sequence[Effect]:
        self._waits.settle(now)
        differing = self._waits.differing(jobs, digests)
        if not len(differing):
            return ()
        mine = self._state(differing)
        return (Send((sender,), Repair(differing, mine, is_answer=False)),)
