"""Statistics of the machines at the beginning of a round, one row or number per machine."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.solvers.flow.arrays import Numbers


class ClusterStatistics(msgspec.Struct, frozen=True):
    dimensions: tuple[str, ...]
    #: Machines that are up and accept tasks.
    usable: NDArray[np.bool_]
    capacity: Numbers
    free: Numbers
    #: Resources held by this scheduler's tasks in the network, and the number of these tasks.
    own: Numbers
    own_tasks: Numbers
    #: Tasks of this scheduler that stay where they are, whatever the flow.
    pinned_tasks: Numbers
    #: Per owner number: tasks that are not over, and their total request.
    owner_tasks: Numbers
    demands: Numbers

    @property
    def used(self) -> Numbers:
        return self.capacity - self.free
