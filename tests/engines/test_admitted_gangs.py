"""Which gangs of claims are admitted if not all may be: in order, and again after those they need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from argosy.engines.families.lra.hard import HardConstraintCheck


def allowed(
    gangs: list[int], breaks: Callable[[set[int]], bool], *, constrained: bool = True
) -> tuple[list[bool], list[set[int]]]:
    """Which claims may be made if some sets of claims break a constraint, and which sets were tried."""
    tried: list[set[int]] = []

    def judge(rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> bool:
        chosen = set(np.flatnonzero(rows).tolist())
        tried.append(chosen)
        return breaks(chosen)

    check = object.__new__(HardConstraintCheck)
    check._constraints = [object()] if constrained else []  # type: ignore[list-item]
    check._breaks = judge  # type: ignore[method-assign]
    return check.allowed(np.array(gangs, np.int32)).tolist(), tried


def test_without_constraints_nothing_is_judged() -> None:
    assert allowed([1, 2], lambda chosen: True, constrained=False) == ([True, True], [])


def test_all_are_admitted_if_they_break_nothing_together() -> None:
    assert allowed([1, 1, 2], lambda chosen: False) == ([True] * 3, [{0, 1, 2}])


def test_a_gang_is_admitted_with_all_its_claims_or_none() -> None:
    found, _ = allowed([7, 3, 7], lambda chosen: 2 in chosen)
    assert found == [False, True, False]


def test_gangs_come_in_the_order_of_their_first_claims() -> None:
    # Only one of the two fits; it is not that of the lower number.
    found, tried = allowed([9, 4, 9], lambda chosen: {0, 1} <= chosen)
    assert found == [True, False, True]
    assert tried[1] == {0, 2}


def test_a_gang_that_needs_a_later_one_is_admitted_after_it() -> None:
    # Claim 0 needs claim 1, which needs claim 2; claim 3 is never allowed.
    def breaks(chosen: set[int]) -> bool:
        needs = {0: 1, 1: 2}
        return 3 in chosen or any(
            one in chosen and other not in chosen for one, other in needs.items()
        )

    found, tried = allowed([0, 1, 2, 3], breaks)
    assert found == [True, True, True, False]
    # All; four, three and two that are left; then only that which stays left.
    assert len(tried) == 1 + 4 + 3 + 2 + 1


@pytest.mark.parametrize("gangs", [[0], [0, 1, 2]])
def test_if_nothing_may_be_made_nothing_is(gangs: list[int]) -> None:
    found, tried = allowed(gangs, lambda chosen: True)
    assert found == [False] * len(gangs)
    assert len(tried) == 1 + len(gangs)
