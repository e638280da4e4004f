"""Time spent on decisions, per day of the virtual clock."""

from __future__ import annotations

from collections import Counter
from typing import Final

DAY: Final = 86_400_000_000


class BusyTime:
    """The decision time of one lane, whose decisions do not overlap."""

    def __init__(self) -> None:
        self._total = 0
        self._until = 0
        self._days: Counter[int] = Counter()

    def think(self, now: int, duration: int, before: int = 0) -> None:
        """Adds a decision that takes `duration` from now, and `before` that was spent until now."""
        self._total += before + duration
        until = now + duration
        if until > self._until:
            # Further jobs that a decision is about take no time, but do not end it.
            self._until = until
        begin = now - before if before < now else 0
        day = begin // DAY
        if until <= (day + 1) * DAY:
            self._days[day] += until - begin
        else:
            self._book(begin, until, 1)

    def stop(self, now: int) -> None:
        """Aborts the current decision: only the time that has passed counts."""
        self._total -= max(0, self._until - now)
        self._book(now, self._until, -1)
        self._until = min(self._until, now)

    def total(self, now: int) -> int:
        return self._total - max(0, self._until - now)

    def by_day(self, now: int) -> list[float]:
        """The share of each day spent deciding; the last day counts only up to now."""
        ahead = BusyTime()
        ahead._book(now, self._until, 1)
        days = max(1, -(-now // DAY))
        return [
            (self._days[day] - ahead._days[day]) / max(1, min(DAY, now - day * DAY))
            for day in range(days)
        ]

    def _book(self, begin: int, end: int, sign: int) -> None:
        while begin < end:
            day = begin // DAY
            stop = min(end, (day + 1) * DAY)
            self._days[day] += sign * (stop - begin)
            begin = stop
