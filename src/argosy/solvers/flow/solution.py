"""How a solve ended."""

from __future__ import annotations

import enum

import msgspec
import numpy as np
from numpy.typing import NDArray


class Algorithm(enum.StrEnum):
    """Every one is exact, and starts from the flow and prices that the last solve left."""

    #: Whichever suits what changed.
    AUTO = "auto"
    #: Shortest paths from what changed, and nothing else.
    LOCAL = "local"
    #: Successive shortest paths over a network of which nothing is taken for granted.
    SHORTEST_PATHS = "shortest-paths"
    #: Dual ascent over sets of vertices.
    RELAXATION = "relaxation"
    #: Push and relabel with costs in ever finer approximation.
    COST_SCALING = "cost-scaling"
    #: A feasible flow, then less cost around negative cycles. For small networks.
    CYCLE_CANCELLING = "cycle-cancelling"
    #: Relaxation and cost scaling on two threads; the first to answer stops the other.
    RACE = "race"


class Status(enum.StrEnum):
    #: Feasible and of least cost; the prices prove it.
    OPTIMAL = "optimal"
    #: The supplies cannot all reach demands.
    INFEASIBLE = "infeasible"
    #: Supplies and demands differ in sum.
    UNBALANCED = "unbalanced"
    #: Costs times vertices leave the range of prices.
    OVERFLOW = "overflow"
    #: Told to stop, or out of budget. The next solve goes on from there.
    STOPPED = "stopped"


class Heuristics(msgspec.Struct, frozen=True):
    """What can be left out of a solver, to see what it is worth."""

    #: Relaxation takes an arc to a deficit at once, and others depth-first.
    arc_prioritisation: bool = True
    #: Cost scaling tries, before each phase, to mend prices without moving flow.
    price_refine: bool = True
    #: Cost scaling gives new vertices prices that fit their neighbours', instead of zero.
    fresh_prices: bool = True
    #: Shortest paths begin at distances to the sink, and each search ends where it arrives. Without,
    #: they are the textbook's.
    short_searches: bool = True


class Way(msgspec.Struct, frozen=True):
    """The cheapest way of one more unit of flow."""

    #: Nothing, if no way leads there.
    cost: int | None
    #: From where it begins to the target.
    vertices: NDArray[np.int32]
    #: Arcs looked at.
    scans: int


class FlowSolution(msgspec.Struct, frozen=True):
    status: Status
    #: Of the flow, when it is optimal.
    cost: int | None
    #: Of the solve alone, by the clock of the budget that was handed in, if it had one.
    seconds: float | None
    #: The one that found the answer.
    algorithm: Algorithm
    #: Arcs looked at: a measure of work that does not depend on the machine.
    scans: int

    @property
    def is_optimal(self) -> bool:
        return self.status is Status.OPTIMAL
