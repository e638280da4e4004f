"""How many tasks may be moved within a minute, at its edges."""

from __future__ import annotations

from argosy.engines.families.flow.move_budget import MINUTE, MoveBudget


def test_without_a_limit_everything_may_move_at_once_and_again() -> None:
    budget = MoveBudget(0)
    budget.spend(100, 5)
    assert (budget.left(5, 7), budget.left(5, 0), budget.more_at) == (7, 0, None)


def test_moves_count_for_a_minute_from_when_they_were_made() -> None:
    budget = MoveBudget(5)
    assert (budget.left(0, 9), budget.left(0, 3), budget.more_at) == (5, 3, None)
    budget.spend(2, 10)
    budget.spend(3, 30)
    assert (budget.left(30, 9), budget.more_at) == (0, 10 + MINUTE)
    assert budget.left(9 + MINUTE, 9) == 0
    assert (budget.left(10 + MINUTE, 9), budget.more_at) == (2, 30 + MINUTE)
    assert budget.left(29 + MINUTE, 9) == 2
    assert (budget.left(30 + MINUTE, 9), budget.more_at) == (5, None)


def test_several_may_be_over_at_once() -> None:
    budget = MoveBudget(5)
    for at in (10, 20, 30):
        budget.spend(1, at)
    assert budget.left(25 + MINUTE, 9) == 4
    assert budget.more_at == 30 + MINUTE


def test_more_than_allowed_leaves_none_and_no_less_than_none() -> None:
    budget = MoveBudget(5)
    budget.spend(9, 0)
    assert budget.left(1, 3) == 0
    budget.spend(1, 2)
    assert budget.left(MINUTE, 9) == 4


def test_no_moves_are_not_remembered() -> None:
    budget = MoveBudget(5)
    budget.spend(0, 10)
    assert budget.more_at is None
