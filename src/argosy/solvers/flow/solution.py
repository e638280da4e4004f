"""How a solve ended."""

from __future__ import annotations

import enum
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray


class Algorithm(enum.StrEnum):
    """All are exact, and start from the flow and prices that the last solve left."""

    #: Chosen according to what changed.
    AUTO = "auto"
    #: Only shortest paths from what changed.
    LOCAL = "local"
    #: Successive shortest paths, without assumptions about the network.
    SHORTEST_PATHS = "shortest-paths"
    #: Shortest paths from all excesses at once.
    PRIMAL_DUAL = "primal-dual"
    #: Dual ascent over sets of vertices.
    RELAXATION = "relaxation"
    #: Push-relabel with ever finer approximation of costs.
    COST_SCALING = "cost-scaling"
    #: A feasible flow, then negative cycles are cancelled. For small networks.
    CYCLE_CANCELLING = "cycle-cancelling"
    #: Relaxation from scratch and cost scaling from the last flow on two threads, as in Firmament; the
    #: first to finish stops the other.
    RACE = "race"
    #: The same race with both from the last flow.
    WARM_RACE = "warm-race"


class Status(enum.StrEnum):
    #: Feasible and of minimal cost; the prices prove it.
    OPTIMAL = "optimal"
    #: The supplies cannot all reach demands.
    INFEASIBLE = "infeasible"
    #: Supplies and demands do not add up to zero.
    UNBALANCED = "unbalanced"
    #: Costs times vertices exceed the range of prices.
    OVERFLOW = "overflow"
    #: Stopped, or out of budget. The next solve continues from there.
    STOPPED = "stopped"


class Heuristics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Heuristics of the solvers, which can be changed to measure their effect."""

    #: Relaxation takes an arc to a deficit at once.
    arc_prioritisation: bool = True
    #: Relaxation takes other arcs depth-first. Firmament's takes them breadth-first.
    depth_first: bool = True
    #: Cost scaling tries to repair prices without moving flow before each phase.
    price_refine: bool = True
    #: Cost scaling gives new vertices prices that match their neighbours' instead of zero.
    fresh_prices: bool = True
    #: Shortest paths start from distances to the sink, and each search ends at its target. Without it,
    #: they are as in textbooks.
    short_searches: bool = True
    #: What each phase of cost scaling divides its approximation by. Quincy uses 2, Firmament 9.
    alpha: Annotated[int, Meta(ge=2, le=1_024)] = 16


class Way(msgspec.Struct, frozen=True):
    """The cheapest path of one more unit of flow."""

    #: None if there is no path.
    cost: int | None
    #: From its start to the target.
    vertices: NDArray[np.int32]
    #: Number of arcs scanned.
    scans: int


class FlowSolution(msgspec.Struct, frozen=True):
    status: Status
    #: The cost of the flow, if it is optimal.
    cost: int | None
    #: Time of the solve alone, by the clock of the given budget, if it has one.
    seconds: float | None
    #: The algorithm that found the answer.
    algorithm: Algorithm
    #: Number of arcs scanned: a measure of work that does not depend on the machine.
    scans: int

    @property
    def is_optimal(self) -> bool:
        return self.status is Status.OPTIMAL
