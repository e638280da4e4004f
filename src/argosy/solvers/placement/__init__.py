"""Charter: where containers go under placement constraints, decided over plain arrays.

    ledger     running containers and active constraints, kept up to date; makes problems
               (book: what is kept; demands: what constraints share; making: the arrays)
    problem    machines, kinds of containers and constraints as arrays
    heuristics greedy answers, by name
    ilp        the integer program as an algorithm
               (formulation: variables and rows; counting: a tag constraint in one set; splitting:
               alternatives; candidates: which machines; bounds: what no answer exceeds; program: SCIP)
    printed    the integer program as the paper prints it
    violations who breaks what
    answer     what an algorithm found, and what that is worth

Nothing here knows the cell, time or engines.
"""

from argosy.solvers.placement.answer import Answer, Objective
from argosy.solvers.placement.cluster import Cluster, Family, Kind, Running
from argosy.solvers.placement.heuristics import HEURISTICS, place
from argosy.solvers.placement.ledger import Ledger, problem_of
from argosy.solvers.placement.problem import Problem

__all__ = [
    "HEURISTICS",
    "Answer",
    "Cluster",
    "Family",
    "Kind",
    "Ledger",
    "Objective",
    "Problem",
    "Running",
    "place",
    "problem_of",
]
