"""Pods' priorities as precedence.

Kubernetes' priorities are 32-bit numbers, of which a cluster uses a handful; precedence has 16 bits. So
each priority that is seen gets a precedence between those of its neighbours, and keeps it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from argosy.model.jobs import PRECEDENCE_RANGE

#: The priorities of `system-cluster-critical` and `system-node-critical`.
_SYSTEM: Final = {2_000_000_000: 32_000, 2_000_001_000: 32_001}
_LOWEST: Final = PRECEDENCE_RANGE[0]
#: Above that of any pod.
HIGHEST: Final = PRECEDENCE_RANGE[1]


class Precedences:
    """`known` are priorities that are likely to be used, such as those of the priority classes: they are
    spaced evenly, so that others fit between them."""

    def __init__(self, known: Iterable[int] = ()) -> None:
        self._of: dict[int, int] = {0: 0, **_SYSTEM}
        self._sorted = sorted(self._of)
        positive = sorted({value for value in known if 0 < value < min(_SYSTEM)})
        negative = sorted({value for value in known if value < 0}, reverse=True)
        for values, width in ((positive, 32_000), (negative, _LOWEST)):
            for at, value in enumerate(values, 1):
                self._insert(value, width * at // (len(values) + 1))

    def of(self, priority: int) -> int:
        known = self._of.get(priority)
        if known is None:
            at = bisect_left(self._sorted, priority)
            below = self._of[self._sorted[at - 1]] if at else _LOWEST - 1
            above = self._of[self._sorted[at]] if at < len(self._sorted) else HIGHEST
            # Where there is no room between two neighbours, it is worth as much as the lower one.
            known = max((below + above) // 2, _LOWEST)
            self._insert(priority, known)
        return known

    def _insert(self, priority: int, precedence: int) -> None:
        self._of[priority] = precedence
        self._sorted.insert(bisect_left(self._sorted, priority), priority)
