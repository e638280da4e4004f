"""A min-cost flow problem as plain columns, for files, generators and the checker."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray


class FlowProblem(msgspec.Struct, frozen=True):
    """Vertices 0 to n - 1, and arcs in rows. A convex arc has one row per segment."""

    supplies: NDArray[np.int64]
    tails: NDArray[np.int32]
    heads: NDArray[np.int32]
    capacities: NDArray[np.int64]
    costs: NDArray[np.int64]

    @property
    def vertices(self) -> int:
        return len(self.supplies)

    @property
    def arcs(self) -> int:
        return len(self.tails)
