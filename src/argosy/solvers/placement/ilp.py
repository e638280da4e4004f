"""The integer program as an algorithm: never worse than any heuristic that there was time for.

1. Heuristics give a first answer.
2. If it is worth as much as a bound that no answer exceeds, it is optimal and nothing is solved.
3. Otherwise SCIP looks for a better one among candidate machines, from the first answer on, within
   limits on nodes and within a budget. What it finds is appraised like any other answer; the better of
   the two is given, with the bound.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from argosy._core import Placer, spent_share
from argosy.model.budgets import Budget, WorkBudget
from argosy.model.random import Random
from argosy.solvers.placement.answer import Objective, PlacementAnswer, appraise
from argosy.solvers.placement.bounds import pooled_bound, simple_bound
from argosy.solvers.placement.candidates import chosen, undominated, usable
from argosy.solvers.placement.formulation import Formulation, OutOfTime
from argosy.solvers.placement.heuristics import HEURISTICS, place, ranked
from argosy.solvers.placement.problem import PlacementProblem

_EXACT: Final = 1e-9
#: Heuristics for first answers, tried until a bound certifies one, roughly from cheapest to most
#: expensive.
_FIRST: Final = (
    "tag-popularity",
    "serial",
    "kube",
    "tag-popularity-first-fit",
    "serial-first-fit",
    "node-candidates",
    "node-candidates-first-fit",
)
#: Shares of the budget by which heuristics should end, and by which the program should be built.
_TRIED: Final = 0.3
_MADE: Final = 0.5
#: How much longer than all previous heuristics the next may take; the one by candidates considers all
#: kinds in each step.
_LONGER: Final = 3
#: The share of the remaining budget for the solver, which checks the clock only occasionally.
_SEARCH: Final = 0.6
#: A search with less than this share of the budget is not started.
_SHORTEST: Final = 0.05
#: Choosing between fewer machines is not worth solving.
_FEWEST: Final = 8
#: With this many times the limit, removing dominated machines does not get below the limit.
_WORTH_SIFTING: Final = 10
#: How far a limit may be exceeded in one place if the optimum may be lost anyway.
_DEEPEST: Final = 2


class SolverLimits(msgspec.Struct, frozen=True):
    """Limits on the integer program."""

    #: Machines beyond this number are left out, even if the optimum may be lost.
    machines: int = 64
    #: Limit on machines times kinds of containers; if fewer than eight machines remain, nothing is
    #: solved.
    places: int = 6_000
    #: Nodes of the search tree; the same on every computer.
    nodes: int = 2_000


def solve(
    problem: PlacementProblem,
    random: Random,
    objective: Objective | None = None,
    limits: SolverLimits | None = None,
    budget: Budget | None = None,
    *,
    always: bool = False,
) -> PlacementAnswer:
    """The best answer within the limits. With `always`, the program is solved even if a bound certifies
    the first answer. The budget stops what the limit on nodes does not bound."""
    aim, bounds = objective or Objective(), limits or SolverLimits()
    within = budget or WorkBudget()
    native = problem.placer()
    ceiling = simple_bound(problem, aim)
    tried: list[PlacementAnswer] = []
    best: PlacementAnswer | None = None
    ways: set[object] = set()
    for name in _FIRST:
        if best is not None and best.worth.value >= ceiling - _EXACT:
            break
        if tried and (1 + _LONGER) * spent_share(within) > _TRIED:
            break
        # Without constraints that name tags, orders by popularity are the given order.
        how = HEURISTICS[name]
        way = (how.order, how.rule, *ranked(problem, how))
        if way in ways:
            continue
        ways.add(way)
        answer = place(problem, name, random, aim, native, within)
        if answer.worth.is_allowed:
            tried.append(answer)
            if best is None or answer.worth.value > best.worth.value + _EXACT:
                best = answer
    if best is None:
        nothing = np.empty(0, np.int32)
        best = PlacementAnswer(
            nothing, nothing, appraise(problem, aim, nothing, nothing, native), "none"
        )
    if best.worth.value < ceiling - _EXACT:
        ceiling = min(ceiling, pooled_bound(problem, aim))
    is_certain = best.worth.value >= ceiling - _EXACT
    if is_certain and not always:
        return msgspec.structs.replace(best, status="optimal", bound=ceiling)
    found = _improve(problem, aim, bounds, native, tried, best, ceiling, within)
    return msgspec.structs.replace(found, status="optimal") if found.gap <= 1e-7 else found


def _improve(
    problem: PlacementProblem,
    aim: Objective,
    limits: SolverLimits,
    native: Placer,
    tried: list[PlacementAnswer],
    best: PlacementAnswer,
    ceiling: float,
    budget: Budget,
) -> PlacementAnswer:
    most = min(limits.machines, limits.places // max(1, len(problem.kinds)))
    pool = usable(problem)
    if len(pool) <= _WORTH_SIFTING * most:
        pool = undominated(problem, aim)
    is_whole = len(pool) <= most
    used = len(np.unique(best.machines))
    is_too_large = most < _FEWEST or used * len(problem.kinds) > limits.places
    if (not is_whole and is_too_large) or spent_share(budget) > _MADE:
        return msgspec.structs.replace(best, status="feasible", bound=ceiling)
    machines = pool if is_whole else chosen(problem, pool, tried, most, native)
    if is_whole:
        machines = np.union1d(machines, best.machines).astype(np.int32)

    def is_late() -> bool:
        budget.charge(len(machines))
        return spent_share(budget) > _MADE

    try:
        formulation = Formulation(problem, aim, machines, None if is_whole else _DEEPEST, is_late)
    except OutOfTime:
        return msgspec.structs.replace(best, status="feasible", bound=ceiling)
    if not formulation.program.upper:
        return msgspec.structs.replace(best, bound=ceiling)
    start = formulation.program.completed(_values(formulation, best))
    is_broken = formulation.program.violates(start)
    left = _SEARCH * (1 - spent_share(budget))
    if left < _SHORTEST:
        return msgspec.structs.replace(best, status="feasible", bound=ceiling)
    solution = formulation.program.solve(
        None if is_broken else start, budget, until=spent_share(budget) + left, nodes=limits.nodes
    )
    bound = ceiling
    if is_whole and np.isfinite(solution.bound):
        bound = min(ceiling, max(-solution.bound, best.worth.value))
    if solution.values is not None:
        kinds, where = _read(formulation, solution.values)
        worth = appraise(problem, aim, kinds, where, native)
        if worth.is_allowed and worth.value > best.worth.value + _EXACT:
            best = PlacementAnswer(kinds, where, worth, "ilp")
    return msgspec.structs.replace(
        best, status="feasible", bound=max(bound, best.worth.value), candidates=len(machines)
    )


def _values(formulation: Formulation, answer: PlacementAnswer) -> dict[int, float]:
    at = {machine: number for number, machine in enumerate(formulation.candidates.tolist())}
    values: dict[int, float] = {}
    for kind, machine in zip(answer.kinds.tolist(), answer.machines.tolist(), strict=True):
        column = int(formulation.x[kind, at[machine]])
        values[column] = values.get(column, 0.0) + 1.0
    return values


def _read(formulation: Formulation, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The placed containers, one row each."""
    kinds, places = np.nonzero(formulation.x >= 0)
    counts = np.rint(values[formulation.x[kinds, places]]).astype(np.int64)
    return (
        np.repeat(kinds, counts).astype(np.int32),
        np.repeat(formulation.candidates[places], counts).astype(np.int32),
    )
