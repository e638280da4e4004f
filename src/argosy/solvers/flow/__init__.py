"""Min-cost flow: a network that is edited in place, exact solvers, and a checker of their answers."""

from argosy.solvers.flow.network import FlowNetwork, Rooms, Roster, RosterState, Stop
from argosy.solvers.flow.problem import FlowProblem
from argosy.solvers.flow.solution import Algorithm, FlowSolution, Heuristics, Status, Way

__all__ = [
    "Algorithm",
    "FlowNetwork",
    "FlowProblem",
    "FlowSolution",
    "Heuristics",
    "Rooms",
    "Roster",
    "RosterState",
    "Status",
    "Stop",
    "Way",
]
