"""Which of very many names have come before, in a few bytes each."""

from __future__ import annotations

from array import array
from typing import Final

_SMALLEST: Final = 1 << 10


class SeenNames:
    """A hash table of the names' hashes alone. Two names may share one, so a name that seems to be there
    already has to be looked for where it was read; one that does not seem so is certainly new."""

    def __init__(self) -> None:
        #: At most two of three are used; 0 is free.
        self._slots = array("q", bytes(8 * _SMALLEST))
        self._used = 0

    def add(self, name: str) -> bool:
        """Whether the name is certainly new."""
        if not self._insert(hash(name) or 1):
            return False
        self._used += 1
        if 3 * self._used > 2 * len(self._slots):
            self._grow()
        return True

    def _insert(self, key: int) -> bool:
        slots = self._slots
        mask = len(slots) - 1
        at = key & mask
        while found := slots[at]:
            if found == key:
                return False
            at = (at + 1) & mask
        slots[at] = key
        return True

    def _grow(self) -> None:
        old, self._slots = self._slots, array("q", bytes(16 * len(self._slots)))
        for key in old:
            if key:
                self._insert(key)
