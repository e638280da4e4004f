"""How many running tasks may be moved and preempted in any minute."""

from __future__ import annotations

from collections import deque
from typing import Final

MINUTE: Final = 60_000_000


class MoveBudget:
    """Allows `most` moves in any minute; 0: any number."""

    def __init__(self, most: int) -> None:
        self._most = most
        #: When moves of the last minute were made, oldest first, and how many each time.
        self._made: deque[tuple[int, int]] = deque()
        self._total = 0

    def left(self, now: int, at_once: int) -> int:
        """How many may be made now, and not more than `at_once`."""
        if not self._most:
            return at_once
        while self._made and self._made[0][0] + MINUTE <= now:
            self._total -= self._made.popleft()[1]
        return max(0, min(at_once, self._most - self._total))

    def spend(self, moves: int, now: int) -> None:
        if self._most and moves:
            self._made.append((now, moves))
            self._total += moves

    @property
    def more_at(self) -> int | None:
        """When more may be made than now; none if the limit does not bind."""
        return self._made[0][0] + MINUTE if self._made else None
