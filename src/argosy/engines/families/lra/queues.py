"""Fairness between owners: whose queue is served next."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.shared.serial import JobQueue


class Shares:
    """Resources each owner holds, per dimension, counting what this scheduler has placed since it
    started."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = weights
        self._held: dict[str, NDArray[np.int64]] = {}

    def change(self, owner: str, shape: int, count: int, view: View) -> None:
        request = np.array(view.shape_request(shape), np.int64)
        self._held[owner] = self._held.get(owner, 0) + count * request

    def share(self, owner: str, view: View) -> float:
        """The owner's dominant share of the cell, divided by the weight of its queue."""
        held = self._held.get(owner)
        if held is None:
            return 0.0
        whole = np.maximum(1, np.array(list(view.capacity_total().values())))
        return float((held / whole).max()) / self._weights.get(owner, 1.0)

    def neediest_first(self, queue: JobQueue, view: View) -> JobQueue:
        """The queue, with the first job of the owner with the smallest weighted share moved to the
        front."""
        owners = {work.job.owner for work in queue}
        if len(owners) < 2:
            return queue
        neediest = min(sorted(owners), key=lambda owner: self.share(owner, view))
        first = next(work for work in queue if work.job.owner == neediest)
        return deque([first, *(work for work in queue if work is not first)])
