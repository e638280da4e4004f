"""Rows in growing NumPy columns, with rows that were given back used again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


class Columns:
    """Named int64 columns of one length. Rows are handed out by `take` and come back by `give`."""

    def __init__(self, **defaults: int) -> None:
        self._defaults = defaults
        self._columns = {name: np.empty(0, np.int64) for name in defaults}
        self._free: list[int] = []
        #: Rows ever used; those given back are among them.
        self.used = 0

    def __getitem__(self, name: str) -> NDArray[np.int64]:
        """A view of a column, good until the next `take`."""
        return self._columns[name][: self.used]

    def take(self, count: int) -> Rows:
        """Rows with their default values, not necessarily neighbours."""
        again = min(count, len(self._free))
        old = self._free[len(self._free) - again :]
        del self._free[len(self._free) - again :]
        new = self.take_together(count - again)
        rows = np.concatenate([np.array(old, np.int64), new])
        for name, default in self._defaults.items():
            self._columns[name][rows] = default
        return rows

    def take_together(self, count: int) -> Rows:
        """Rows that are neighbours."""
        first, self.used = self.used, self.used + count
        for name, column in self._columns.items():
            if self.used > len(column):
                grown = np.empty(max(self.used, 2 * len(column), 64), np.int64)
                grown[: len(column)] = column
                self._columns[name] = grown
            self._columns[name][first : self.used] = self._defaults[name]
        return np.arange(first, self.used, dtype=np.int64)

    def give(self, rows: Rows) -> None:
        self._free.extend(rows.tolist())

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop all other rows; those kept move together. For columns that never `give`."""
        assert not self._free
        count = int(kept.sum())
        for column in self._columns.values():
            column[:count] = column[: self.used][kept]
        self.used = count
