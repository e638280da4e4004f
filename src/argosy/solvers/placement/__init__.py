"""Charter: places containers under placement constraints, over plain arrays.

    placement_state  running containers and active constraints, kept up to date; makes problems
               (constraint_index: what is kept; demands: what constraints share;
               problem_builder: the arrays)
    problem    machines, kinds of containers and constraints as arrays
    heuristics greedy answers, by name
    ilp        the integer program as an algorithm
               (formulation: variables and rows; counting: a tag constraint in one set; splitting:
               alternatives; candidates: which machines; bounds: what no answer exceeds; program: SCIP)
    printed    the integer program as the paper prints it
    violations which containers break which constraints
    answer     the answer of an algorithm, and its value

Nothing here depends on the cell, time or engines.
"""

from argosy.solvers.placement.answer import Objective, PlacementAnswer
from argosy.solvers.placement.cluster import ContainerKind, Family, PlacementCluster, Running
from argosy.solvers.placement.heuristics import HEURISTICS, place
from argosy.solvers.placement.placement_state import PlacementState, problem_of
from argosy.solvers.placement.problem import PlacementProblem

__all__ = [
    "HEURISTICS",
    "ContainerKind",
    "Family",
    "Objective",
    "PlacementAnswer",
    "PlacementCluster",
    "PlacementProblem",
    "PlacementState",
    "Running",
    "place",
    "problem_of",
]
