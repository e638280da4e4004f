"""OR-Tools' min-cost flow: the peer that anyone can install."""

from __future__ import annotations

import numpy as np
from ortools.graph.python import min_cost_flow

from argosy.solvers.flow import FlowProblem


def peer(problem: FlowProblem) -> int | None:
    """The least cost by OR-Tools; nothing if it finds the problem infeasible."""
    solver = min_cost_flow.SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(
        problem.tails, problem.heads, problem.capacities, problem.costs
    )
    solver.set_nodes_supplies(np.arange(problem.vertices, dtype=np.int32), problem.supplies)
    if solver.solve() != solver.OPTIMAL:
        return None
    return int(solver.optimal_cost())
