"""Time spent on decisions, per day of the virtual clock."""

from __future__ import annotations

from collections import Counter
from typing import Final

DAY: Final = 86_400_000_000


class BusyTime:
    """The decision time of one lane. If decisions overlap, each counts."""

    def __init__(self) -> None:
        self._total = 0
        self._until = 0
        #: The ends of decisions that overlap with the one that ends last.
        self._others: list[int] = []
        self._days: Counter[int] = Counter()

    def think(self, now: int, duration: int, before: int = 0) -> None:
        """Adds a decision that takes `duration` from now, and `before` that was spent until now."""
        self._total += before + duration
        until = now + duration
        # Further jobs that a decision is about take no time, but do not end it.
        if now < self._until and duration:
            self._others = [end for end in self._others if end > now]
            self._others.append(min(until, self._until))
        if until > self._until:
            self._until = until
        begin = now - before if before < now else 0
        day = begin // DAY
        if until <= (day + 1) * DAY:
            self._days[day] += until - begin
        else:
            self._book(begin, until, 1)

    def stop(self, now: int) -> None:
        """Aborts current decisions: only the time that has passed counts."""
        self._total = self.total(now)
        for until in (self._until, *self._others):
            self._book(now, until, -1)
        self._until = min(self._until, now)
        self._others.clear()

    def total(self, now: int) -> int:
        return self._total - sum(max(0, until - now) for until in (self._until, *self._others))

    def by_day(self, now: int) -> list[float]:
        """The share of each day spent deciding; the last day counts only up to now."""
        ahead = BusyTime()
        for until in (self._until, *self._others):
            ahead._book(now, until, 1)
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
