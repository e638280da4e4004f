"""Running containers and active constraints, kept up to date, and problems made from them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argosy.model.constraints import Constraint
from argosy.solvers.placement.cluster import ContainerKind, PlacementCluster, Running
from argosy.solvers.placement.constraint_index import ConstraintIndex
from argosy.solvers.placement.problem import PlacementProblem
from argosy.solvers.placement.problem_builder import ProblemBuilder


class PlacementState(ConstraintIndex):
    """A `ConstraintIndex` that makes problems."""

    def problem(
        self,
        free: NDArray[np.int64],
        capacity: NDArray[np.int64],
        kinds: Sequence[ContainerKind],
        smallest: Sequence[int] | None = None,
    ) -> PlacementProblem:
        """The problem of placing `kinds`, given active constraints and running containers."""
        cluster = PlacementCluster(free, capacity, self.families, self.static)
        return ProblemBuilder(self, cluster, tuple(kinds)).problem(smallest)


def problem_of(
    cluster: PlacementCluster,
    kinds: Sequence[ContainerKind],
    running: Sequence[Running] = (),
    constraints: Sequence[Constraint] = (),
    smallest: Sequence[int] | None = None,
) -> PlacementProblem:
    """A single problem, without a state to maintain."""
    ledger = PlacementState(cluster.machines, cluster.families, cluster.static)
    for constraint in constraints:
        ledger.add(constraint)
    for kind in running:
        for machine in np.flatnonzero(kind.counts).tolist():
            ledger.start(kind.tags, machine, int(kind.counts[machine]))
    return ledger.problem(cluster.free, cluster.capacity, kinds, smallest)
