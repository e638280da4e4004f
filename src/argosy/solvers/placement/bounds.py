"""Upper bounds on the value of any answer, without solving anything.

`simple_bound`: everything is placed, nothing is fragmented, no violation is added, and new containers
repair every violation of running ones that they could.

`pooled_bound`: as before, but each container pays at least what it costs on the best machine for it
alone. Counts only grow, and an excess grows faster the larger it is; so what a container adds to the
excess of upper bounds is at least what it would add as the first of the batch, wherever it goes.
Applications whose containers cost more than the application is worth are better not placed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argosy.solvers.placement.answer import Objective
from argosy.solvers.placement.problem import Item, PlacementProblem


def _mendable(problem: PlacementProblem) -> float:
    """The violation of running containers that new ones may repair."""
    mendable = 0.0
    for item in problem.items:
        if item.least and item.match.any():
            short = np.maximum(0, item.least - item.gamma[:-1].astype(np.int64))
            short_own = np.maximum(0, item.least - item.gamma[:-1].astype(np.int64) + 1)
            lack = item.both[:-1] * short_own + item.other[:-1] * short
            mendable += item.weight * float(lack.sum()) / item.least
    for spread in problem.spreads:
        used = int((spread.inside > 0).sum())
        if used < spread.least:
            mendable += spread.weight * spread.subjects * (spread.least - used) / spread.least
    if problem.choices:
        # With alternatives it is hard to tell whom new containers could help; all of them is an upper
        # bound.
        nothing = np.empty(0, np.int32)
        mendable += problem.placer().judge(nothing, nothing)[0]
    return mendable


def simple_bound(problem: PlacementProblem, objective: Objective) -> float:
    mendable = _mendable(problem)
    share = mendable / max(problem.concerned, 1e-12) if mendable else 0.0
    placed = sum(problem.importance) / max(1, problem.apps) if problem.apps else 1.0
    return objective.whole * placed + objective.violation * share


def pooled_bound(problem: PlacementProblem, objective: Objective) -> float:
    unit = objective.violation / max(problem.concerned, 1e-12)
    worth = objective.whole * np.array(problem.importance) / max(1, problem.apps)
    for number, (kind, fits) in enumerate(zip(problem.kinds, problem.fitting(), strict=True)):
        if not fits.any():
            worth[kind.app] = 0.0
            continue
        items = [item for item in problem.items if item.subject[number] or item.match[number]]
        if not items:
            continue
        costs = np.zeros(problem.cluster.machines)
        for item in items:
            costs += item.weight * _least_excess(problem, item, number)
        worth[kind.app] -= unit * kind.count * float(costs[fits].min())
    mendable = _mendable(problem)
    return float(np.maximum(0.0, worth).sum()) + (unit * mendable if mendable else 0.0)


def _least_excess(problem: PlacementProblem, item: Item, kind: int) -> NDArray[np.float64]:
    """Per machine, what the first new container there adds to excesses and to the cost of being outside
    all sets."""
    sets = item.gamma.astype(np.int64)
    cost = np.zeros(len(sets))
    if item.most is not None:
        most, scale = item.most, max(1, item.most)
        over = np.maximum(0, sets - most)
        if item.subject[kind]:
            cost += over / scale
        if item.match[kind]:
            more = np.maximum(0, sets + 1 - most) - over
            less = over - np.maximum(0, sets - 1 - most)
            cost += (item.other * more + item.both * less) / scale
    cost[-1] = item.outside if item.subject[kind] else 0.0
    family = problem.families[item.family]
    return cost[family.set_of]
