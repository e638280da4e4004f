"""Load spreading: a machine gets another task only when all others have as many (the paper's figure 6a).

All tasks go through their pool. They are spread by the arc from each machine to the sink, whose
k-th unit costs k: the paper's parallel arcs as one convex arc.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.policy import ArcCosts, Policy
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.solvers.flow.arrays import Numbers


class LoadSpreading(Policy):
    name: ClassVar[str] = "load-spreading"

    def __init__(
        self, settings: FlowSettings, cluster: MachineVertices, dimensions: tuple[str, ...]
    ) -> None:
        super().__init__(settings, cluster, dimensions)
        self._others = np.empty(0, np.int64)

    def gather(self, statistics: ClusterStatistics) -> None:
        self._others = statistics.pinned_tasks

    def sink_terms(self, machines: Numbers) -> ArcCosts:
        step = self.settings.per_task
        return ArcCosts(step * self._others[machines], step)
