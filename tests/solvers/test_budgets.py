"""Budgets: what they count, when they are over, and that solvers keep to them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from argosy._core import seconds_until, spent_share
from argosy.model.budgets import UNTIMED, WorkBudget, WorkBudgets
from argosy.model.random import Random
from argosy.solvers.flow import Algorithm, FlowNetwork, Status
from argosy.solvers.flow.quincy import QuincyShape, quincy
from argosy.solvers.placement import ContainerKind, PlacementProblem, PlacementState, place
from argosy.solvers.placement.ilp import SolverLimits, solve
from argosy.worlds.clocks import ClockBudget, ClockBudgets


def test_a_work_budget_is_over_once_more_was_done_than_allowed() -> None:
    budget = WorkBudget(10)
    budget.charge(10)
    assert (budget.steps, budget.limit, budget.is_over()) == (10, 10, False)
    assert spent_share(budget) == 1.0
    budget.charge(1)
    assert budget.is_over()


def test_a_budget_without_a_limit_is_never_over() -> None:
    for budget in (WorkBudget(), UNTIMED.start(1), WorkBudgets(rate=5).start(0)):
        budget.charge(2**61)
        assert not budget.is_over()
        assert spent_share(budget) == 0.0
        assert math.isinf(seconds_until(budget, 1.0))


def test_steps_stand_for_time_where_nobody_measures_it() -> None:
    budget = WorkBudgets(rate=3).start(1_000)
    assert isinstance(budget, WorkBudget)
    assert budget.limit == 3_000
    assert math.isinf(seconds_until(budget, 1.0))


def test_a_clock_goes_on_by_itself_and_steps_do_not_count() -> None:
    budget = ClockBudgets().start(3_600_000_000)
    budget.charge(2**61)
    assert 0 <= spent_share(budget) < 1
    assert not budget.is_over()
    assert 0 < seconds_until(budget, 0.5) <= 1_800
    late = ClockBudget(0)
    while not late.is_over():
        pass
    assert seconds_until(late, 1.0) == 0.0


@pytest.mark.parametrize("limit", [0, 3_600_000_000])
def test_an_engine_learns_no_more_of_a_budget_than_whether_it_is_over(limit: int) -> None:
    budgets = (ClockBudgets().start(limit), UNTIMED.start(limit))
    shown = [{name for name in dir(budget) if not name.startswith("_")} for budget in budgets]
    assert shown == [{"charge", "is_over", "steps"}, {"charge", "is_over", "steps", "limit"}]
    assert ClockBudgets().start(limit).steps == 0
    assert network().solve(budget=ClockBudgets().start(limit)).seconds is None


def network() -> FlowNetwork:
    return FlowNetwork.of(quincy(QuincyShape(40, utilisation=1.05), seed=3)[1])


@pytest.mark.parametrize("algorithm", [a for a in Algorithm if "race" not in a])
def test_what_a_solve_looked_at_is_what_its_budget_is_charged_with(algorithm: Algorithm) -> None:
    budget = WorkBudget()
    solution = network().solve(algorithm, warm=False, budget=budget)
    assert solution.is_optimal
    assert budget.steps == solution.scans


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_a_solve_stops_when_its_budget_is_over_and_the_next_one_goes_on(
    algorithm: Algorithm,
) -> None:
    flow = network()
    assert flow.solve(algorithm, warm=False, budget=WorkBudget(500)).status is Status.STOPPED
    assert flow.solve(algorithm).cost == network().solve().cost


def test_one_budget_bounds_several_solves_together() -> None:
    scans = network().solve("cost-scaling", warm=False).scans
    budget = WorkBudget(scans + scans // 2)
    assert network().solve("cost-scaling", warm=False, budget=budget).is_optimal
    stopped = network().solve("cost-scaling", warm=False, budget=budget)
    assert stopped.status is Status.STOPPED


def test_only_a_clock_tells_seconds() -> None:
    assert network().solve().seconds is None
    assert network().solve(budget=WorkBudget()).seconds is None
    seconds = network().solve(budget=ClockBudget()).seconds
    assert seconds is not None
    assert seconds >= 0


def crowded() -> PlacementProblem:
    """Large applications that compete: heuristics do not find what a bound allows."""
    random = np.random.default_rng(5)
    free = random.integers(2, 9, (30, 1)).astype(np.int64)
    kinds = [ContainerKind(app, frozenset({"w"}), np.array([3]), 9) for app in range(5)]
    return PlacementState(30).problem(free, np.full_like(free, 9), kinds, (1,))


def test_a_program_within_a_budget_of_work_is_the_same_on_every_computer() -> None:
    limits, spent = SolverLimits(nodes=50), set()
    for _ in range(2):
        budget = WorkBudget(20_000)
        answer = solve(crowded(), Random(1), limits=limits, budget=budget)
        spent.add((budget.steps, answer.algorithm, tuple(answer.machines.tolist())))
    assert len(spent) == 1


def test_a_budget_is_charged_with_machines_that_heuristics_look_at() -> None:
    problem, budget = crowded(), WorkBudget()
    place(problem, "serial", Random(1), budget=budget)
    assert budget.steps >= 30


def test_a_budget_that_is_over_leaves_the_first_heuristic() -> None:
    answer = solve(crowded(), Random(1), budget=WorkBudget(0))
    first = place(crowded(), "tag-popularity", Random(1))
    assert answer.candidates == 0
    assert answer.machines.tolist() == first.machines.tolist()
