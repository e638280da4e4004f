"""The check of an agent's commit pipeline: whether a machine, as it is now, takes a task (Algorithm 2).

The host runs the pipeline itself: it reserves, locks, waits and writes.
"""

from __future__ import annotations

import numpy as np

from argosy.agents.api import Binding, ClaimCheck, Requirements
from argosy.agents.cache import NodesCache, Reservation
from argosy.agents.registry import make_binding, make_checks
from argosy.model.effects import CommitPipeline
from argosy.model.explanations import Refusal
from argosy.model.transactions import Outcome, Transaction


class ConflictCheck:
    """The plug-ins of one agent's commit pipelines, made when a request first names them."""

    def __init__(self, cache: NodesCache) -> None:
        self._cache = cache
        self._checks: dict[tuple[str, ...], list[ClaimCheck]] = {}
        self._bindings: dict[str, Binding] = {}

    def conflict(
        self, task: Requirements, own: Reservation, pipeline: CommitPipeline
    ) -> Refusal | None:
        """Why the machine reserved does not take the task. The task's own reservation does not
        count."""
        before = own.number if pipeline.reservations == "earlier" else None
        node = self._cache.fresh(own.machine, before, own)
        if (checks := self._checks.get(pipeline.checks)) is None:
            checks = make_checks(pipeline.checks)
            self._checks[pipeline.checks] = checks
        refusals = (plugin.conflict(task, node) for plugin in checks)
        return next((refusal for refusal in refusals if refusal is not None), None)

    def bound(self, transaction: Transaction, pipeline: CommitPipeline) -> Transaction:
        if (binding := self._bindings.get(pipeline.commit)) is None:
            binding = self._bindings[pipeline.commit] = make_binding(pipeline.commit)
        return binding.bind(transaction)


def refused(refusal: Refusal, dimensions: tuple[str, ...]) -> Outcome:
    """The outcome of a transaction whose only claim is refused."""
    detail = -1
    if refusal.dimension:
        if refusal.dimension not in dimensions:
            dimensions = (*dimensions, refusal.dimension)
        detail = dimensions.index(refusal.dimension)
    return Outcome(
        accepted=np.zeros(1, np.bool_),
        whys=np.array([int(refusal.why)], np.uint8),
        details=np.array([detail], np.int8),
        amounts=np.array([refusal.lacking], np.int64),
        evicted=np.empty(0, np.int64),
        evicted_from=np.empty(0, np.int32),
        unreleased=(),
        dimensions=dimensions,
        all_accepted=False,
        machines=np.array([refusal.machine], np.int32),
    )
