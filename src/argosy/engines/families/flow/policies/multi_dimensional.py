"""Several resources: a task goes where everything it asks for fits, as in Borg, and where the load
is lowest, or highest if tasks are to be packed.

The cost of a machine is the mean use of its resources with the task on it, in thousandths; each
further task costs more by what it uses. The cost of waiting depends on precedence; for tasks within
their owner's equal share of the dominant resource, it is higher by `fairness`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

import numpy as np

from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.policy import ArcCosts, Policy
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.statistics import ClusterStatistics
from argosy.solvers.flow.arrays import Numbers

_FULL: Final = 1_000


class MultiDimensional(Policy):
    name: ClassVar[str] = "multi-dimensional"
    has_owners: ClassVar[bool] = True

    def __init__(
        self, settings: FlowSettings, cluster: MachineVertices, dimensions: tuple[str, ...]
    ) -> None:
        super().__init__(settings, cluster, dimensions)
        self._capacity = self._free = np.empty((0, 0), np.int64)
        self._terms: list[tuple[int, int]] = []
        #: What tasks of some requests add to the use of every machine, with the requests and the
        #: capacity of the machines.
        self._adds = _Added(*(self._free,) * 4)

    def gather(self, statistics: ClusterStatistics) -> None:
        self._capacity, self._free = statistics.capacity, statistics.free
        self._terms = self._shares(statistics)

    def _shares(self, statistics: ClusterStatistics) -> list[tuple[int, int]]:
        """The terms of each owner: leaving tasks within an equal dominant share unscheduled costs
        more."""
        counts, demands = statistics.owner_tasks, statistics.demands
        active = np.flatnonzero(counts)
        terms = [(0, 0)] * len(counts)
        if len(active) < 2 or not self.settings.fairness:
            return terms
        total = np.maximum(statistics.capacity[statistics.usable].sum(axis=0), 1)
        dominant = (demands[active] / total).max(axis=1)
        entitled = np.floor(counts[active] / np.maximum(dominant, 1e-12) / len(active))
        spare = np.maximum(0, counts[active] - np.minimum(entitled, counts[active]))
        for owner, free in zip(active.tolist(), spare.astype(np.int64).tolist(), strict=True):
            terms[owner] = (free, self.settings.fairness)
        return terms

    def owner_terms(self) -> Sequence[tuple[int, int]]:
        return self._terms

    def pool_terms(self, requests: Numbers, machines: Numbers) -> ArcCosts:
        count = self._capacity.shape[1]
        capacity = self._capacity[machines]
        taken = _FULL * (capacity - self._free[machines]) // np.maximum(capacity, 1)
        used = np.add.reduce(taken, axis=1)
        if self.settings.prefer == "pack":
            return ArcCosts(((_FULL * count - used) // count)[None, :])
        known = self._adds
        if not (
            known.requests.shape == requests.shape
            and (known.requests == requests).all()
            and known.capacity.shape == self._capacity.shape
            and (known.capacity == self._capacity).all()
        ):
            known = self._adds = _added(requests, self._capacity.copy())
        if len(machines) == len(self._capacity):
            return ArcCosts((used + known.amounts) // count, known.steps)
        added, steps = known.amounts.take(machines, 1), known.steps.take(machines, 1)
        return ArcCosts((used + added) // count, steps)


class _Added(NamedTuple):
    requests: Numbers
    capacity: Numbers
    #: In thousandths, summed over the resources; one row per request, one column per machine.
    amounts: Numbers
    #: Their mean over the resources.
    steps: Numbers


def _added(requests: Numbers, capacity: Numbers) -> _Added:
    amounts = np.zeros((len(requests), len(capacity)), np.int64)
    for dimension in range(capacity.shape[1]):
        whole = np.maximum(capacity[None, :, dimension], 1)
        # Where a request does not fit there is no room, whatever it would cost.
        amounts += _FULL * np.minimum(requests[:, dimension, None], whole) // whole
    return _Added(requests, capacity, amounts, amounts // capacity.shape[1])
