"""Arrival processes: when a given number of jobs is submitted within a span of time.

Both processes are conditioned on the number of jobs, which follows from the target utilisation. Given
that number, the times of a Poisson process are sorted uniform draws; those of a modulated process are
the same draws, stretched by its rate.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, TypeAlias

import msgspec

from argosy.model.errors import ModelError
from argosy.model.random import Random
from argosy.model.scenario import Factor
from argosy.model.units import Time, format_duration

#: Limit against bursts of microseconds in a span of days.
MOST_PERIODS: Final = 1_000_000


class Poisson(msgspec.Struct, frozen=True, tag="poisson", tag_field="process"):
    """A constant rate over the span."""

    def times(self, count: int, span: int, random: Random) -> Iterator[int]:
        return (int(position * span) for position in _positions(count, random))


class Bursty(msgspec.Struct, frozen=True, kw_only=True, tag="bursty", tag_field="process"):
    """On-off process: calm periods of mean length `every`, then bursts of mean length `burst` in which
    the rate is `factor` times the calm one. Both lengths are exponential."""

    factor: Factor
    burst: Time
    every: Time

    def times(self, count: int, span: int, random: Random) -> Iterator[int]:
        starts, sums, rates = self._periods(span, random.child("periods"))
        total = sums[-1] + (span - starts[-1]) * rates[-1]

        def stretched(position: float) -> int:
            period = bisect_right(sums, position * total) - 1
            inside = (position * total - sums[period]) / rates[period]
            return min(int(starts[period] + inside), span - 1)

        # In order even where rounding at the edge of a period would exceed a microsecond.
        return accumulate(map(stretched, _positions(count, random)), max)

    def _periods(self, span: int, random: Random) -> tuple[list[int], list[float], list[float]]:
        """The start of each period, the accumulated rate up to there, and its rate."""
        starts, sums, rates = [0], [0.0], [1.0]
        while len(starts) <= MOST_PERIODS:
            mean = self.every if len(starts) % 2 else self.burst
            end = starts[-1] + 1 + int(mean * random.exponential())
            if end >= span:
                return starts, sums, rates
            sums.append(sums[-1] + (end - starts[-1]) * rates[-1])
            starts.append(end)
            rates.append(1.0 if len(starts) % 2 else self.factor)
        raise ModelError(
            f"more than {MOST_PERIODS:,} bursts and calms in a span of {format_duration(span)}",
            expected="a longer burst and every, or a shorter span",
        )


Arrivals: TypeAlias = Poisson | Bursty


def _positions(count: int, random: Random) -> Iterator[float]:
    """`count` sorted uniform draws from [0, 1), as partial sums of exponential gaps divided by their
    total."""
    reached, sums = 0.0, array("d")
    for _ in range(count):
        reached += random.exponential()
        sums.append(reached)
    total = reached + random.exponential()
    return (partial / total for partial in sums)
