"""Load spreading: a machine gets another task only when all others have as many (the paper's figure 6a).

All tasks go through their pool. They are spread by the arc from each machine to the sink, whose
k-th unit costs k: the paper's parallel arcs as one convex arc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from argosy.engines.families.flow.policy import ArcCosts, NewGroup, Wishes, plain_wishes
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.solvers.flow.arrays import Numbers


class LoadSpreading:
    name: ClassVar[str] = "load-spreading"
    has_racks: ClassVar[bool] = False
    has_owners: ClassVar[bool] = False

    def __init__(self, settings: FlowSettings) -> None:
        self._settings = settings
        self._others = np.empty(0, np.int64)

    def wishes(self, groups: Sequence[NewGroup]) -> Wishes:
        return plain_wishes(groups, self._settings)

    def gather(self, statistics: ClusterStatistics) -> None:
        self._others = statistics.pinned_tasks

    def sink_terms(self, machines: Numbers) -> ArcCosts:
        step = self._settings.per_task
        return ArcCosts(step * self._others[machines], step)

    def pool_terms(self, requests: Numbers, machines: Numbers) -> ArcCosts:
        return ArcCosts()

    def owner_terms(self) -> Sequence[tuple[int, int]]:
        return ()

    def second_price(self) -> int:
        return self._settings.per_second

    def precedence_price(self) -> int:
        return self._settings.per_precedence
