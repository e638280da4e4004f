"""Several resources: a task goes where all it asks for fits, as in Borg, and where load is even, or where
it is highest already if tasks are to be packed.

The cost of a machine is the mean of its resources' use with the task on it, in thousandths; another task
costs as much more as it uses. Not being scheduled costs by precedence, and by how far the owner's
dominant share of the cluster is below, or above, an equal share among all owners that have tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from argosy.engines.flow.policy import NewGroup, Terms, Wishes, plain_wishes
from argosy.engines.flow.settings import FlowSettings
from argosy.engines.flow.statistics import Statistics
from argosy.model.jobs import Job
from argosy.model.units import MICROS_PER_SECOND

Numbers = NDArray[np.int64]
_FULL: Final = 1_000
#: Fair shares count in steps of this part of one, so that costs do not change all the time.
_STEPS: Final = 10


class MultiDimensional:
    name: ClassVar[str] = "multi-dimensional"
    has_racks: ClassVar[bool] = False

    def __init__(self, settings: FlowSettings) -> None:
        self._settings = settings
        self._used = np.empty((0, 0), np.int64)
        self._capacity = np.empty((0, 0), np.int64)
        #: By how much the unscheduled costs of each owner's tasks are above or below others'.
        self._fairness: dict[str, int] = {}

    def wishes(self, groups: Sequence[NewGroup]) -> Wishes:
        return plain_wishes(groups, self._settings)

    def gather(self, statistics: Statistics) -> None:
        self._used = statistics.used
        self._capacity = np.maximum(statistics.capacity, 1)
        self._fairness = self._shares(statistics) if self._settings.fairness else {}

    def _shares(self, statistics: Statistics) -> dict[str, int]:
        """Owners below an equal dominant share wait at a higher cost, others at a lower."""
        total = np.maximum(statistics.capacity[statistics.usable].sum(axis=0), 1)
        dominant = (statistics.held / total).max(axis=1)
        active = [
            owner
            for owner, number in statistics.owners.items()
            if owner in statistics.wanting or statistics.held[number].any()
        ]
        if len(active) < 2:
            return {}
        equal = 1.0 / len(active)
        steps = {
            owner: round(_STEPS * (1.0 - float(dominant[statistics.owners[owner]]) / equal))
            for owner in active
        }
        fairness = self._settings.fairness
        return {owner: fairness * max(-_STEPS, at) // _STEPS for owner, at in steps.items()}

    def sink_terms(self) -> Terms:
        return Terms()

    def pool_terms(self, requests: Numbers) -> Terms:
        count = self._capacity.shape[1]
        used = (_FULL * self._used // self._capacity).sum(axis=1)
        if self._settings.prefer == "pack":
            return Terms((_FULL * count - used) // count)
        added = np.zeros((len(requests), len(self._capacity)), np.int64)
        for dimension in range(count):
            added += _FULL * requests[:, dimension, None] // self._capacity[None, :, dimension]
        return Terms((used[None, :] + added) // count, added // count)

    def job_cost(self, job: Job, waited: int) -> int:
        age = self._settings.per_second * (waited // MICROS_PER_SECOND)
        return age + self._fairness.get(job.owner, 0)

    def precedence_price(self) -> int:
        return self._settings.per_precedence
