"""Greedy answers, by name.

An algorithm is an order of containers and a rule that chooses a machine for each. The *scored* rule
takes the machine that costs least of the objective and then has the most room left; *first fit* is what
the Medea paper describes: the first machine that breaks nothing, else the first with room.
"""

from __future__ import annotations

from typing import Final

import msgspec

from argosy._core import PlacementOrder, PlacementRule, Placer
from argosy.model.budgets import Budget
from argosy.model.random import Random
from argosy.solvers.placement.answer import Objective, PlacementAnswer, appraise
from argosy.solvers.placement.problem import PlacementProblem

_GIVEN, _CANDIDATES = PlacementOrder
_SCORED, _FIRST_FIT, _KUBE, _HEARTBEAT = PlacementRule


class Heuristic(msgspec.Struct, frozen=True):
    order: PlacementOrder
    rule: PlacementRule
    #: Whether kinds whose tags occur in more constraints come first.
    by_popularity: bool = False


HEURISTICS: Final = {
    "tag-popularity": Heuristic(_GIVEN, _SCORED, by_popularity=True),
    "node-candidates": Heuristic(_CANDIDATES, _SCORED),
    "serial": Heuristic(_GIVEN, _SCORED),
    "tag-popularity-first-fit": Heuristic(_GIVEN, _FIRST_FIT, by_popularity=True),
    "node-candidates-first-fit": Heuristic(_CANDIDATES, _FIRST_FIT),
    "serial-first-fit": Heuristic(_GIVEN, _FIRST_FIT),
    "kube": Heuristic(_GIVEN, _KUBE),
    "heartbeat": Heuristic(_GIVEN, _HEARTBEAT),
}


def place(
    problem: PlacementProblem,
    name: str,
    random: Random,
    objective: Objective | None = None,
    placer: Placer | None = None,
    budget: Budget | None = None,
) -> PlacementAnswer:
    """The answer of one of `HEURISTICS`. Running containers that may move stay where they are. The
    budget is charged for machines scanned, but never stops the heuristic, because some answer is
    needed."""
    aim = objective or Objective()
    native = placer or problem.placer()
    how = HEURISTICS[name]
    containers = max(1, problem.containers)
    kinds, machines = native.run(
        ranked(problem, how),
        how.order,
        how.rule,
        (
            aim.violation / max(problem.concerned, 1e-12),
            aim.fragmented / containers,
            aim.used / containers,
            aim.load / containers,
        ),
        random,
        budget,
    )
    return PlacementAnswer(kinds, machines, appraise(problem, aim, kinds, machines, native), name)


def ranked(problem: PlacementProblem, how: Heuristic) -> list[int]:
    """The order in which kinds are placed: by precedence, then as the heuristic says."""
    order = popularity_order(problem) if how.by_popularity else list(range(len(problem.kinds)))
    tiers = problem.tiers
    return sorted(order, key=tiers.__getitem__) if any(tiers) else order


def popularity_order(problem: PlacementProblem) -> list[int]:
    """Kinds by the number of constraints that name their tags, most first."""
    named = problem.popularity
    popularity = [sum(named.get(tag, 0) for tag in kind.tags) for kind in problem.kinds]
    return sorted(range(len(popularity)), key=lambda kind: -popularity[kind])
