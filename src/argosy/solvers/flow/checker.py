"""Proves an answer correct, or says what is wrong with it. Shares no code with the solvers.

A flow is feasible if it keeps to the capacities and each vertex sends its supply. Prices prove that no
flow is cheaper: an arc with room has a reduced cost c - p(tail) + p(head) of at least zero, one with
flow of at most zero (complementary slackness).
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.solvers.flow.problem import FlowProblem

#: Below this, sums of products fit 64 bits for any network that fits in memory.
SAFE: Final = 2**61


class FlowFault(msgspec.Struct, frozen=True):
    """One kind of error, where it is worst, and how often it occurs."""

    what: str
    #: A row of the arcs, or a vertex.
    where: int
    count: int

    def __str__(self) -> str:
        return f"{self.what} at {self.where} ({self.count} in all)"


def faults(
    problem: FlowProblem, flows: NDArray[np.int64], prices: NDArray[np.int64]
) -> list[FlowFault]:
    """Empty if the flow is feasible and the prices prove that its cost is minimal."""
    return [*infeasibilities(problem, flows), *costlier(problem, flows, prices)]


def infeasibilities(problem: FlowProblem, flows: NDArray[np.int64]) -> list[FlowFault]:
    leaving = np.zeros(problem.vertices, np.int64)
    np.add.at(leaving, problem.tails, flows)
    np.subtract.at(leaving, problem.heads, flows)
    return [
        *_fault("a flow below zero", -flows),
        *_fault("a flow above its capacity", flows - problem.capacities),
        *_fault("a vertex that does not send its supply", np.abs(leaving - problem.supplies)),
    ]


def costlier(
    problem: FlowProblem, flows: NDArray[np.int64], prices: NDArray[np.int64]
) -> list[FlowFault]:
    """Arcs on which, at these prices, more or less flow would be cheaper."""
    if problem.vertices and int(np.abs(prices).max()) > SAFE:
        return [FlowFault("a price out of range", int(np.abs(prices).argmax()), 1)]
    reduced = problem.costs - prices[problem.tails] + prices[problem.heads]
    return [
        *_fault(
            "an arc with room and a negative reduced cost", -reduced * (flows < problem.capacities)
        ),
        *_fault("an arc with flow and a positive reduced cost", reduced * (flows > 0)),
    ]


def prices_for(problem: FlowProblem, flows: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Prices that prove a flow to be of minimal cost, found by relaxing all arcs repeatedly.

    None if there are none: the flow can be made cheaper around a cycle. Deliberately slow and simple.
    """
    has_room, has_flow = flows < problem.capacities, flows > 0
    tails = np.concatenate([problem.tails[has_room], problem.heads[has_flow]])
    heads = np.concatenate([problem.heads[has_room], problem.tails[has_flow]])
    costs = np.concatenate([problem.costs[has_room], -problem.costs[has_flow]])
    distances = np.zeros(problem.vertices, np.int64)
    for _ in range(problem.vertices + 1):
        before = distances.copy()
        np.minimum.at(distances, heads, before[tails] + costs)
        if np.array_equal(before, distances):
            return -distances
    return None


def cost_of(problem: FlowProblem, flows: NDArray[np.int64]) -> int:
    """The total cost, in integers of any size."""
    return sum(
        int(flow) * int(cost) for flow, cost in zip(flows, problem.costs, strict=True) if flow
    )


def _fault(what: str, badness: NDArray[np.int64]) -> list[FlowFault]:
    count = int((badness > 0).sum())
    return [FlowFault(what, int(badness.argmax()), count)] if count else []
