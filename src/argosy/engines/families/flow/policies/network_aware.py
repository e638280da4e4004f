"""Network awareness: no machine's link is oversubscribed (the paper's figure 6c).

A pool stands for a bandwidth request. On each machine it has room for as many tasks as fit into the
spare bandwidth: one convex arc instead of the paper's parallel ones. A unit costs the request plus
the bandwidth already in use, so that links fill evenly. In use is what is reserved, or what is observed
if that is more. Costs are thousandths of the largest link.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from argosy.engines.api import RunFacts, SettingMismatch
from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.policy import ArcCosts, Policy
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.model.errors import ModelError
from argosy.solvers.flow.arrays import Numbers

_FULL = 1_000


class NetworkAware(Policy):
    name: ClassVar[str] = "network-aware"

    def __init__(
        self, settings: FlowSettings, cluster: MachineVertices, dimensions: tuple[str, ...]
    ) -> None:
        super().__init__(settings, cluster, dimensions)
        if settings.bandwidth not in dimensions:
            raise ModelError(
                f"the policy network-aware needs the resource {settings.bandwidth!r}",
                expected="machines that have it; one of " + ", ".join(dimensions),
            )
        self._dimension = dimensions.index(settings.bandwidth)
        self._used = np.empty(0, np.int64)
        self._largest = 1

    @classmethod
    def mismatch(cls, settings: FlowSettings, facts: RunFacts) -> SettingMismatch | None:
        if settings.bandwidth in facts.dimensions:
            return None
        return SettingMismatch(
            ("policy",),
            f"the policy network-aware needs the resource {settings.bandwidth!r}, which no machine has",
            expected="machines that have it, or the setting bandwidth to be one of "
            + ", ".join(facts.dimensions),
            hint=f"add {settings.bandwidth} to the capacity of machines, or choose another policy",
        )

    @classmethod
    def observed(cls, settings: FlowSettings) -> str | None:
        return settings.bandwidth if settings.bandwidth_use == "observed" else None

    def gather(self, statistics: ClusterStatistics) -> None:
        capacity = statistics.capacity[:, self._dimension]
        self._largest = max(1, int(capacity.max(initial=0)))
        self._used = capacity - statistics.free[:, self._dimension]

    def pool_terms(self, requests: Numbers, machines: Numbers) -> ArcCosts:
        used = self._used[None, machines]
        # Where a request does not fit there is no room, whatever it would cost.
        asked = np.minimum(requests[:, self._dimension, None], self._largest)
        return ArcCosts(_FULL * (asked + used) // self._largest, _FULL * asked // self._largest)
