"""How fast requests follow each other: back-off after failures, and a limit that heeds the server."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random


def loop_time() -> float:
    """Seconds on the clock of the running loop: the one by which it waits, whatever that is."""
    return asyncio.get_running_loop().time()


class JitteredBackoff:
    """Delays drawn between nothing and a bound that doubles ("full jitter"), so that many clients that
    lost a server at the same time do not come back at the same time."""

    def __init__(self, first: float, longest: float, random: Random) -> None:
        self._first = first
        self._longest = longest
        self._random = random
        self._failures = 0

    def next(self) -> float:
        # The exponent is bounded, because 2.0**1024 overflows.
        bound = min(self._longest, self._first * 2.0 ** min(self._failures, 64))
        self._failures += 1
        return self._random.uniform(0, bound)

    def spread(self, seconds: float) -> float:
        """A time that the server asked for, and some more."""
        return seconds + self._random.uniform(0, self._first)

    def reset(self) -> None:
        self._failures = 0


class RequestLimiter:
    """Lets at most `most` requests be under way, in the order in which they asked.

    It narrows to half when the server throttles, and widens by one with each round of answers: a server
    that is shared by many such clients serves all of them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._width = float(most)
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        #: Answers to requests that were sent before the last narrowing say nothing about it.
        self._until_narrower = 0

    @property
    def width(self) -> int:
        return int(self._width)

    @property
    def under_way(self) -> int:
        return self._under_way

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        await self.enter()
        try:
            yield
        finally:
            self.leave()

    async def enter(self) -> None:
        if self._under_way < self.width and not self._waiting:
            self._under_way += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        self._under_way -= 1
        self._admit()

    def answered(self) -> None:
        self._until_narrower = max(0, self._until_narrower - 1)
        if self._width < self._most:
            self._width = min(float(self._most), self._width + 1 / self._width)
            self._admit()

    def throttled(self) -> None:
        if self._until_narrower == 0:
            self._width = max(1.0, self._width / 2)
            self._until_narrower = self._under_way
        else:
            self._until_narrower -= 1

    def _admit(self) -> None:
        while self._waiting and self._under_way < self.width:
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                turn.set_result(None)
