"""How long a command will take, told once, as soon as that can be said."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from argosy.model.units import format_duration

#: In seconds: predictions are made from this much work, and told if this much is left.
SEEN: Final = 3.0
LONG: Final = 30.0


class Forecast:
    """Extrapolates from the share that is done."""

    def __init__(self, advice: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._advice = advice
        self._clock = clock
        #: When the first results came, and the share that was done by then: what was before is not
        #: work but starting processes.
        self._first: tuple[float, float] | None = None
        self._is_told = False

    def line(self, share: float) -> str | None:
        """A sentence, the first time that a long rest can be predicted."""
        if self._is_told or not 0 < share < 1:
            return None
        now = self._clock()
        if self._first is None:
            self._first = now, share
        passed, done = now - self._first[0], share - self._first[1]
        if passed < SEEN or done <= 0:
            return None
        self._is_told = True
        left = passed * (1 - share) / done
        if left < LONG:
            return None
        return f"note: about {format_duration(round(left, -1) * 1e6)} left; {self._advice}"
