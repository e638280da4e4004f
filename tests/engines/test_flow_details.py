"""Pieces of the flow schedulers by themselves: moves in a minute, and costs of what is stored near."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from argosy.engines.families.flow.explaining import _is_among, _overused
from argosy.engines.families.flow.local_data import StoredInput
from argosy.engines.families.flow.move_budget import MINUTE, MoveBudget
from argosy.engines.families.flow.policies.quincy import QuincyPolicy
from argosy.engines.families.flow.policy import POOL, flat, grouped
from argosy.engines.families.flow.settings import DataSettings, FlowSettings
from argosy.model.explanations import Explanation


class TestMoveBudget:
    def test_without_a_limit_only_what_may_be_made_at_once_counts(self) -> None:
        budget = MoveBudget(0)
        budget.spend(100, 0)
        assert budget.left(0, 7) == 7
        assert budget.more_at is None

    def test_moves_count_for_a_minute(self) -> None:
        budget = MoveBudget(10)
        assert budget.left(5, 99) == 10
        assert budget.left(5, 3) == 3
        budget.spend(4, 5)
        budget.spend(5, 9)
        assert (budget.left(9, 99), budget.left(9, 1), budget.left(9, 0)) == (1, 1, 0)
        budget.spend(1, 20)
        assert budget.left(20, 99) == 0
        assert budget.more_at == 5 + MINUTE
        # Each comes back when its minute is over, and no earlier.
        assert budget.left(4 + MINUTE, 99) == 0
        assert budget.left(5 + MINUTE, 99) == 4
        assert budget.more_at == 9 + MINUTE
        assert budget.left(19 + MINUTE, 99) == 9
        assert budget.left(20 + MINUTE, 99) == 10
        assert budget.more_at is None

    def test_several_minutes_end_at_once_if_nobody_asked_meanwhile(self) -> None:
        budget = MoveBudget(10)
        for now in (0, 1, 2):
            budget.spend(3, now)
        assert budget.left(1 + MINUTE, 99) == 7
        assert budget.more_at == 2 + MINUTE

    def test_more_than_is_allowed_leaves_nothing_until_enough_is_over(self) -> None:
        budget = MoveBudget(2)
        budget.spend(5, 0)
        budget.spend(1, 10)
        assert budget.left(10, 99) == 0
        assert budget.left(MINUTE, 99) == 1

    def test_a_round_without_moves_is_not_remembered(self) -> None:
        budget = MoveBudget(2)
        budget.spend(0, 0)
        assert budget.more_at is None


def numbers(*values: Any) -> Any:
    return np.array(values, np.int64)


#: Two tasks on four machines in two racks. The first reads 8 GiB in four blocks: machine 0 has three of
#: them, machine 1 one and machine 2 two. The second reads 1 GiB in two blocks, both on machine 3.
STORED = StoredInput(
    bytes=numbers(8 * 2**30, 2**30),
    blocks=numbers(4, 2),
    machine_tasks=numbers(0, 0, 0, 1),
    machines=numbers(0, 1, 2, 3),
    machine_blocks=numbers(3, 1, 2, 2),
    rack_tasks=numbers(0, 0, 1),
    racks=numbers(0, 1, 1),
    rack_blocks=numbers(4, 2, 2),
)


class Racks:
    racks = numbers(0, 0, 1, 1)


def preferences(**data: Any) -> list[tuple[int, int, bool, int]]:
    """Task, place, whether it is a rack, and what it costs."""
    usual = {"in_rack": 10, "cross_rack": 100, "threshold": 0.5}
    settings = FlowSettings(policy="quincy", data=DataSettings(**{**usual, **data}))
    cluster: Any = Racks()
    found = QuincyPolicy(settings, cluster, ("cpu", "memory"))._preferences(STORED)
    columns = (found.tasks, found.places, found.is_aggregator, found.costs)
    return [*zip(*(column.tolist() for column in columns), strict=True)]


class TestPreferences:
    def test_machines_and_racks_with_enough_of_the_input_are_preferred_at_what_is_missing(
        self,
    ) -> None:
        assert preferences() == [
            # One block of 2 GiB from the same rack.
            (0, 0, False, 20),
            # Two blocks from the other rack.
            (0, 2, False, 400),
            (1, 3, False, 0),
            # Within a rack, its blocks come from somewhere in the rack.
            (0, 0, True, 80),
            (0, 1, True, 40 + 400),
            (1, 1, True, 10),
        ]

    @pytest.mark.parametrize(
        ("threshold", "machines", "racks"),
        [
            (0.25, [0, 2, 1, 3], [0, 1, 1]),
            (0.26, [0, 2, 3], [0, 1, 1]),
            (0.51, [0, 3], [0, 1]),
            (0.75, [0, 3], [0, 1]),
            (0.76, [3], [0, 1]),
            (1.0, [3], [0, 1]),
        ],
    )
    def test_enough_is_the_threshold_or_more(
        self, threshold: float, machines: list[int], racks: list[int]
    ) -> None:
        found = preferences(threshold=threshold)
        assert [place for _, place, is_rack, _ in found if not is_rack] == machines
        assert [place for _, place, is_rack, _ in found if is_rack] == racks

    def test_only_so_many_machines_and_as_many_racks_are_preferred(self) -> None:
        found = preferences(threshold=0.0, most_preferences=1)
        assert [row[:3] for row in found] == [
            (0, 0, False),
            (1, 3, False),
            (0, 0, True),
            (1, 1, True),
        ]
        found = preferences(threshold=0.0, most_preferences=2)
        assert [place for task, place, is_rack, _ in found if not is_rack] == [0, 2, 3]


def test_a_pool_reaches_machines_directly_or_by_way_of_their_groups() -> None:
    alone = flat(3)
    assert (alone.aggregators, alone.tails.tolist(), alone.heads.tolist()) == (0, [], [])
    assert alone.machines.tolist() == [POOL] * 3
    racks = grouped(numbers(0, 2, 1, 2))
    assert (racks.aggregators, racks.tails.tolist()) == (3, [POOL] * 3)
    assert (racks.heads.tolist(), racks.machines.tolist()) == ([0, 1, 2], [0, 2, 1, 2])
    none = grouped(numbers())
    assert (none.aggregators, none.tails.tolist()) == (0, [])


@pytest.mark.parametrize(
    ("feasible", "overused", "told"),
    [
        (2, 0, "add a machine"),
        (0, 5, "add a machine"),
        (2, 1, "less net in use: on 1 machine it is more than is reserved"),
        (2, 1_234, "less net in use: on 1,234 machines it is more than is reserved"),
    ],
)
def test_what_is_in_use_without_being_reserved_is_told_where_a_search_finds_room(
    feasible: int, overused: int, told: str
) -> None:
    policy = SimpleNamespace(observed=lambda settings: settings)
    graph: Any = SimpleNamespace(overused=overused, policy=policy, settings="net")
    seen = Explanation(feasible=feasible, looked_at=7, remedy="add a machine")
    found = _overused(graph, seen)
    assert (found.remedy, found.feasible, found.looked_at) == (told, feasible, 7)


@pytest.mark.parametrize(
    ("asked", "known", "expected"),
    [
        ([1, 2, 3], [], [False, False, False]),
        ([3, 1, 9], [1, 3, 5], [True, True, False]),
        ([0, 5, 4], [5], [False, True, False]),
    ],
)
def test_who_was_told_before(asked: list[int], known: list[int], expected: list[bool]) -> None:
    assert _is_among(numbers(*asked), numbers(*known)).tolist() == expected
