"""OR-Tools' min-cost flow: the peer that anyone can install."""

from __future__ import annotations

import numpy as np
from ortools.graph.python import min_cost_flow

from argosy.model.budgets import WorkBudget
from argosy.solvers.flow import FlowNetwork, FlowProblem, Status
from argosy.solvers.flow.checker import faults


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


def require_slices(problem: FlowProblem, scans: int) -> None:
    """Stopped after so many scans each time, the solver goes on where it was and finds the optimum."""
    network, slices = FlowNetwork.of(problem), 0
    solution = network.solve(warm=False, budget=WorkBudget(scans))
    while solution.status is Status.STOPPED:
        slices += 1
        assert slices < 200
        solution = network.solve(budget=WorkBudget(scans))
    assert slices > 0
    assert solution.cost == peer(problem)
    assert faults(problem, network.flows(), network.prices()) == []


def require_repair(problem: FlowProblem) -> None:
    """Where too few units may wait, the solver says so, and finds the optimum once more may."""
    network = FlowNetwork.of(problem)
    waiting = int(network.all_arcs()[0])
    network.set_arcs([waiting], capacities=2)
    assert network.solve(warm=False).status is Status.INFEASIBLE
    network.set_arcs([waiting], capacities=10_000)
    assert network.solve().cost == peer(problem)
    assert faults(problem, network.flows(), network.prices()) == []
