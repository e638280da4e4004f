"""Min-cost flow: a network that is edited in place, exact solvers, and a checker of their answers."""

from argosy.solvers.flow.network import Network, Rooms, Roster, RosterState, Stop
from argosy.solvers.flow.problem import Problem
from argosy.solvers.flow.solution import Algorithm, Heuristics, Solution, Status, Way

__all__ = [
    "Algorithm",
    "Heuristics",
    "Network",
    "Problem",
    "Rooms",
    "Roster",
    "RosterState",
    "Solution",
    "Status",
    "Stop",
    "Way",
]
