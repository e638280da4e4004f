"""Charter: where containers go under placement constraints, decided over plain arrays.

    problem    machines, kinds of containers and constraints as arrays; `Problem.of` compiles them
    heuristics greedy answers, by name
    ilp        the integer program, on SCIP
    answer     what an algorithm found, and what that is worth

Nothing here knows the cell, time or engines.
"""

from argosy.solvers.placement.answer import Answer, Objective
from argosy.solvers.placement.cluster import Cluster, Family, Kind, Running
from argosy.solvers.placement.heuristics import HEURISTICS, place
from argosy.solvers.placement.problem import Problem

__all__ = [
    "HEURISTICS",
    "Answer",
    "Cluster",
    "Family",
    "Kind",
    "Objective",
    "Problem",
    "Running",
    "place",
]
