"""Statistics of the machines at the beginning of a round, one row or number per machine."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


class ClusterStatistics(msgspec.Struct, frozen=True):
    dimensions: tuple[str, ...]
    #: Machines that are there and take tasks.
    usable: NDArray[np.bool_]
    capacity: Numbers
    free: Numbers
    #: What tasks of this scheduler hold that are part of the network, and how many they are.
    own: Numbers
    own_tasks: Numbers
    #: Tasks of this scheduler that run where they are whatever the flow.
    pinned_tasks: Numbers
    #: By number of owner: tasks that are not over, and what they ask for in all.
    owner_tasks: Numbers
    demands: Numbers

    @property
    def used(self) -> Numbers:
        return self.capacity - self.free
