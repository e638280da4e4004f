"""The processors of a scheduler, shared equally by what it computes.

With n pieces of work on c processors, each goes on at the rate min(1, c / n). Virtual time advances at
that rate, so a piece that begins at virtual time v and takes w is over at v + w, however many others
come and go meanwhile. A heap of these ends is all that is kept: O(log n) for each piece.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import ceil, inf
from typing import TypeAlias

from argosy.cell import View

#: What happens when a piece of work is done.
AfterWork: TypeAlias = Callable[[View, int], None]
#: Ends closer than this count as reached: a wake-up is rounded up to whole microseconds.
_CLOSE = 1e-6


class SharedProcessors:
    def __init__(self, count: int) -> None:
        """Any number of processors, if `count` is 0."""
        self._count = float(count) or inf
        self._virtual = 0.0
        self._now = 0
        self._sequence = 0
        self._work: list[tuple[float, int, AfterWork]] = []
        #: Work done so far, in microseconds.
        self.done = 0

    def begin(self, work: int, after: AfterWork, now: int) -> None:
        self._advance(now)
        self._sequence += 1
        self.done += work
        heapq.heappush(self._work, (self._virtual + work, self._sequence, after))

    def ended(self, now: int) -> list[AfterWork]:
        """What is done by now, in order."""
        self._advance(now)
        over: list[AfterWork] = []
        while self._work and self._work[0][0] <= self._virtual + _CLOSE:
            over.append(heapq.heappop(self._work)[2])
        return over

    def next_end(self) -> int | None:
        """When the next piece is done, if no other comes."""
        if not self._work:
            return None
        left = max(0.0, self._work[0][0] - self._virtual)
        return self._now + ceil(left / self._rate() - _CLOSE)

    def _rate(self) -> float:
        return min(1.0, self._count / len(self._work))

    def _advance(self, now: int) -> None:
        if self._work:
            self._virtual += (now - self._now) * self._rate()
        self._now = now
