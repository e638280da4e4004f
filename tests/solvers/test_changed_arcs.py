"""Which changes of an arc need a new solve: table 3 of the Firmament paper."""

from __future__ import annotations

from typing import Final

import numpy as np
import pytest

from argosy.solvers.flow import FlowNetwork, FlowProblem
from argosy.solvers.flow.checker import costlier, infeasibilities
from argosy.solvers.flow.quincy import QuincyShape, quincy

MOST: Final = 2**30


class Solved:
    def __init__(self) -> None:
        _, problem = quincy(QuincyShape(20, utilisation=0.97, running=0.9), 1)
        network = FlowNetwork.of(problem)
        assert network.solve(warm=False).is_optimal
        self.problem, self.flows = network.problem(), network.segment_flows()
        prices = network.prices()
        self.prices = prices
        self.reduced = self.problem.costs - prices[self.problem.tails] + prices[self.problem.heads]

    def rows(self, sign: str) -> list[int]:
        chosen = {"<": self.reduced < 0, "=": self.reduced == 0, ">": self.reduced > 0}[sign]
        return np.flatnonzero(chosen)[:40].tolist()

    def proves(self, row: int, capacity: int, cost: int) -> bool:
        """Whether flow and prices still prove the optimum if the arc changes by so much."""
        capacities, costs = self.problem.capacities.copy(), self.problem.costs.copy()
        capacities[row] = max(0, capacities[row] + capacity)
        costs[row] += cost
        changed = FlowProblem(
            self.problem.supplies, self.problem.tails, self.problem.heads, capacities, costs
        )
        return not infeasibilities(changed, self.flows) and not costlier(
            changed, self.flows, self.prices
        )


@pytest.fixture(scope="module")
def solved() -> Solved:
    return Solved()


@pytest.mark.parametrize(
    ("capacity", "cost", "sign", "stays"),
    [
        (5, 0, "<", False), (5, 0, "=", True), (5, 0, ">", True),
        (-MOST, 0, "<", False), (-MOST, 0, ">", True),
        (0, MOST, "<", False), (0, MOST, ">", True),
        (0, -MOST, "<", True), (0, -MOST, ">", False),
    ],
)  # fmt: skip
def test_the_sign_of_the_reduced_cost_says_whether_a_change_needs_a_solve(
    solved: Solved, capacity: int, cost: int, sign: str, stays: bool
) -> None:
    rows = solved.rows(sign)
    assert rows
    assert {solved.proves(row, capacity, cost) for row in rows} == {stays}


@pytest.mark.parametrize(("capacity", "cost"), [(-MOST, 0), (0, 1), (0, -1)])
def test_at_a_reduced_cost_of_zero_the_flow_of_the_arc_says_it(
    solved: Solved, capacity: int, cost: int
) -> None:
    """Less capacity and a higher cost matter if there is flow; a lower cost, if there is room."""
    for row in solved.rows("="):
        flow = int(solved.flows[row])
        stays = flow == solved.problem.capacities[row] if cost < 0 else flow == 0
        assert solved.proves(row, capacity, cost) is bool(stays)


@pytest.mark.parametrize("sign", "<>")
def test_a_cost_that_changes_by_less_than_the_reduced_cost_needs_no_solve(
    solved: Solved, sign: str
) -> None:
    for row in solved.rows(sign):
        reduced = int(solved.reduced[row])
        assert solved.proves(row, 0, -reduced)
        assert not solved.proves(row, 0, -reduced + (1 if sign == "<" else -1))
