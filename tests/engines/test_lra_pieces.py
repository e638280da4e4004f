"""Pieces of Medea's schedulers by themselves: whose job is next, limits of queues, settings, and bounds
of the operator that an application's constraints run into."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, tasks_of

from argosy.cell import Cell
from argosy.engines.families.lra import relaxing
from argosy.engines.families.lra.overrides import Overrides
from argosy.engines.families.lra.plans import BatchDecision
from argosy.engines.families.lra.queues import Shares
from argosy.engines.families.lra.settings import LraSettings, QueueCapacity, TaskQueueSettings
from argosy.engines.families.lra.statistics import SolverStatistics
from argosy.engines.shared.serial import PendingJob
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.explanations import Explanation, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.solvers.placement import ContainerKind, Family
from argosy.testing.builders import GIB, job


def of_owner(owner: str, tasks: int = 1, **fields: Any) -> Job:
    """Tasks of a core and a GiB each."""
    return job(f"{owner}-{tasks}", tasks, owner=owner, **fields).job


def capacities(**shares: tuple[float, float]) -> TaskQueueSettings:
    queues = {name: QueueCapacity(*share) for name, share in shares.items()}
    return TaskQueueSettings(policy="capacity", capacities=queues)


def holding(settings: TaskQueueSettings, cell: Cell, **tasks: int) -> Shares:
    """Owners that hold so many tasks of two cores and a GiB."""
    shares = Shares(settings)
    shape = cell.shape(Resources(2_000, GIB))
    for number, (owner, count) in enumerate(tasks.items()):
        shares.change(of_owner(owner), number, shape, count, cell)
    return shares


class TestShares:
    """Of a cell with 16 cores and 128 GiB."""

    @pytest.mark.parametrize(
        ("settings", "expected"),
        [
            (TaskQueueSettings(), {"ann": 0.25, "bob": 0.125, "eve": 0.0}),
            (TaskQueueSettings(queues={"ann": 4.0}), {"ann": 0.0625, "bob": 0.125}),
            (TaskQueueSettings(policy="fair"), {"ann": 2 / 128, "bob": 1 / 128}),
            (TaskQueueSettings(policy="fair", queues={"ann": 4.0}), {"ann": 0.5 / 128}),
            (capacities(ann=(0.5, 1.0)), {"ann": 0.5, "bob": 0.25, "eve": 0.25}),
            (capacities(ann=(1.0, 1.0)), {"ann": 0.25, "bob": 125_000.0}),
        ],
    )
    def test_the_policy_weighs_what_a_queue_holds(
        self, settings: TaskQueueSettings, expected: dict[str, float]
    ) -> None:
        cell = cell_of(8, 8)
        shares = holding(settings, cell, ann=2, bob=1)
        found = {owner: shares.share(owner, cell) for owner in expected}
        assert found == pytest.approx(expected)

    def test_what_ends_is_held_no_longer(self) -> None:
        cell = cell_of(8, 8)
        shares = holding(TaskQueueSettings(), cell, ann=2)
        shares.change(of_owner("ann"), 0, cell.shape(Resources(2_000, GIB)), -1, cell)
        assert shares.share("ann", cell) == 0.125

    @pytest.mark.parametrize("policy", ["share", "fair"])
    def test_the_queue_with_least_is_next_then_precedence_then_the_job_with_least(
        self, policy: Any
    ) -> None:
        cell = cell_of(8, 8)
        shares = holding(TaskQueueSettings(policy=policy), cell, ann=2, bob=1)

        def following(*works: tuple[str, int, int]) -> int:
            queue = deque(
                PendingJob(of_owner(owner, precedence=precedence), number, tasks_of(number, 0))
                for owner, precedence, number in works
            )
            found = shares.next(queue, cell)
            assert found is not None
            return found.number

        assert following(("ann", 9, 5), ("bob", 0, 6)) == 6
        assert following(("bob", 0, 5), ("bob", 3, 6), ("bob", 3, 7)) == 6
        # Of one owner and precedence, the oldest is next; with `fair`, the one that holds least.
        assert following(("bob", 0, 1), ("bob", 0, 6)) == (6 if policy == "fair" else 1)
        assert following(("bob", 0, 7), ("bob", 0, 6)) == 7
        shares.forget(1)
        assert following(("bob", 0, 1), ("bob", 0, 6)) == 1
        assert shares.next(deque(), cell) is None

    def test_an_application_is_ahead_of_others_that_have_less(self) -> None:
        cell = cell_of(8, 8)
        shares = holding(TaskQueueSettings(), cell, ann=2, bob=1, tom=2)
        ann, bob, tom = map(of_owner, ("ann", "bob", "tom"))
        assert shares.is_ahead(ann, [tom, bob], cell)
        assert not shares.is_ahead(ann, [tom, ann], cell)
        assert not shares.is_ahead(bob, [ann, tom], cell)
        assert not shares.is_ahead(ann, [], cell)


class TestLimits:
    """`ann` may have half of 16 cores, and the others all of them."""

    def bench(self, held: int) -> tuple[Shares, Cell]:
        cell = cell_of(8, 8)
        return holding(capacities(ann=(0.5, 0.5)), cell, ann=held), cell

    @pytest.mark.parametrize(
        ("held", "gang", "allowed"),
        [(0, False, 4), (2, False, 4), (3, False, 2), (4, False, 0), (3, True, 0), (2, True, 4)],
    )
    def test_tasks_up_to_the_limit_are_allowed(self, held: int, gang: bool, allowed: int) -> None:
        shares, cell = self.bench(held)
        made = of_owner("ann", 4, gang=gang)
        assert shares.has_limits
        assert shares.allowance(made, tasks_of(9, 0, 1, 2, 3), cell) == allowed
        assert shares.allowance(of_owner("bob", 30), tasks_of(9, *range(30)), cell) == 30
        work = PendingJob(made, 9, tasks_of(9, 0, 1, 2, 3))
        assert (shares.next(deque([work]), cell) is work) is (allowed > 0)

    def test_what_is_under_way_counts_until_it_is_decided(self) -> None:
        shares, cell = self.bench(0)
        made, tasks = of_owner("ann", 9), tasks_of(9, *range(9))
        shares.promise("first", [(made, tasks[:3])], cell)
        shares.promise("second", [(made, tasks[:1]), (of_owner("bob", 9), tasks)], cell)
        assert shares.allowance(made, tasks, cell) == 4
        shares.promise("first", [(made, tasks[:1])], cell)
        assert shares.allowance(made, tasks, cell) == 6
        shares.promise("first", [], cell)
        shares.promise("second", [], cell)
        assert shares.allowance(made, tasks, cell) == 8

    def test_groups_of_a_job_are_counted_one_after_the_other(self) -> None:
        shares, cell = self.bench(0)
        groups = (TaskGroup(2, Resources(3_000, GIB)), TaskGroup(5, Resources(1_000, GIB)))
        mixed = Job("mixed", groups, owner="ann")
        assert shares.allowance(mixed, tasks_of(0, *range(7)), cell) == 4
        nothing = Job("free", (TaskGroup(3, Resources(0, 0)),), owner="ann")
        assert shares.allowance(nothing, tasks_of(0, 0, 1, 2), cell) == 3

    def test_the_reason_says_how_much_is_lacking(self) -> None:
        shares, cell = self.bench(3)
        why = shares.limited(of_owner("ann", 4), tasks_of(9, 0, 1, 2, 3), cell)
        assert why.refused is not None
        assert why.refused.why is Why.RESOURCE_LIMIT
        assert (why.refused.dimension, why.refused.lacking) == ("cpu", 2_000)
        assert why.remedy == (
            "a higher limit than 50 % of the cell for the queue 'ann', or ends of tasks of its own"
        )

    def test_without_limits_everything_is_allowed(self) -> None:
        cell = cell_of(8, 8)
        shares = holding(capacities(ann=(0.5, 1.0)), cell, ann=8)
        assert not shares.has_limits
        assert shares.allowance(of_owner("ann", 3), tasks_of(9, 0, 1, 2), cell) == 3


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "problem"),
        [
            (TaskQueueSettings(), None),
            (TaskQueueSettings(queues={"ann": 1.0}), None),
            (TaskQueueSettings(policy="fair", queues={"ann": 1.0}), None),
            (capacities(ann=(0.5, 0.5), bob=(0.5, 1.0)), None),
            (
                TaskQueueSettings(policy="capacity", queues={"ann": 1.0}),
                "weights of queues with the policy capacity",
            ),
            (
                TaskQueueSettings(policy="fair", capacities={"ann": QueueCapacity(0.5)}),
                "capacities of queues with the policy fair",
            ),
            (
                capacities(ann=(0.5, 1.0), bob=(0.6, 1.0)),
                "queues are guaranteed 110 % of the cell together",
            ),
            (capacities(ann=(0.5, 0.4)), "queue ann is guaranteed 0.5, but may hold 0.4"),
        ],
    )
    def test_settings_that_contradict_each_other_are_named(
        self, settings: TaskQueueSettings, problem: str | None
    ) -> None:
        found = settings.queue_mismatch()
        assert (found and found.problem) == problem

    def test_owners_without_a_queue_share_one_that_has_the_rest(self) -> None:
        settings = capacities(ann=(0.5, 0.75), bob=(0.2, 1.0))
        assert [settings.queue_of(owner) for owner in ("ann", "eve", "")] == [
            "ann",
            "default",
            "default",
        ]
        assert settings.capacity_of("ann") == QueueCapacity(0.5, 0.75)
        rest = settings.capacity_of("default")
        assert (rest.guaranteed, rest.most) == (pytest.approx(0.3), 1.0)
        assert TaskQueueSettings().queue_of("eve") == "eve"

    @pytest.mark.parametrize(
        ("routing", "kinds", "expected"),
        [
            ("kind", ("service",), [True, True, False, False]),
            ("constraints", ("service",), [False, True, True, False]),
            ("either", ("service",), [True, True, True, False]),
            ("kind", ("*",), [True, True, True, True]),
            ("kind", (), [False, False, False, False]),
        ],
    )
    def test_what_is_an_application(
        self, routing: Any, kinds: tuple[str, ...], expected: list[bool]
    ) -> None:
        settings = LraSettings(routing=routing, long_running=kinds)
        apart = (parse_constraint("x -> {x, 0, 0} in machine"),)
        jobs = [
            of_owner("ann", kind=kind, constraints=constraints, tags=("x",))
            for kind, constraints in (
                ("service", ()),
                ("service", apart),
                ("batch", apart),
                ("batch", ()),
            )
        ]
        assert [settings.is_lra(each) for each in jobs] == expected


#: Eight machines: two racks in each of two zones; rows lie across racks, the last two machines in none.
FAMILIES = {
    "rack": Family.of("rack", [[0], [0], [1], [1], [2], [2], [3], [3]], 4),
    "zone": Family.of("zone", [[0], [0], [0], [0], [1], [1], [1], [1]], 2),
    "row": Family.of("row", [[0], [1], [0], [1], [0], [1], [], []], 2),
    "domain": Family.of("domain", [[0, 1], [0], [1], [1], [0], [1], [0], [1]], 2),
}


@pytest.mark.parametrize(
    ("operator", "asked", "settled"),
    [
        # At the bound, and one beyond it.
        ("w -> {w, 0, 3} in rack", "w -> {w, 3, inf} in rack", "same"),
        ("w -> {w, 0, 3} in rack", "w -> {w, 4, inf} in rack", "w -> {w, 3, inf} in rack"),
        ("w -> {w, 2, inf} in rack", "w -> {w, 0, 2} in rack", "same"),
        ("w -> {w, 2, inf} in rack", "w -> {w, 0, 1} in rack", "w -> {w, 0, 2} in rack"),
        ("w -> {w, 0, 3} in rack", "w -> {w, 4, 5} in rack", "w -> {w, 3, 5} in rack"),
        # Within what the operator bounds, and around what it asks for.
        ("w -> {w, 0, 3} in zone", "w -> {w, 4, inf} in rack", "w -> {w, 3, inf} in rack"),
        ("w -> {w, 0, 3} in zone", "w -> {w, 4, inf} in machine", "w -> {w, 3, inf} in machine"),
        ("w -> {w, 0, 3} in rack", "w -> {w, 4, inf} in zone", "same"),
        ("w -> {w, 0, 3} in row", "w -> {w, 4, inf} in rack", "same"),
        ("w -> {w, 0, 3} in domain", "w -> {w, 4, inf} in rack", "same"),
        ("w -> {w, 2, inf} in rack", "w -> {w, 0, 1} in zone", "w -> {w, 0, 2} in zone"),
        ("w -> {w, 2, inf} in zone", "w -> {w, 0, 1} in rack", "same"),
        # Of some of the operator's subjects, and of containers that it counts.
        ("w -> {w, 0, 3} in rack", "w & x -> {w, 4, inf} in rack", "w & x -> {w, 3, inf} in rack"),
        ("w & x -> {w, 0, 3} in rack", "w -> {w, 4, inf} in rack", "same"),
        ("w -> {w, 0, 3} in rack", "w -> {w & x, 4, inf} in rack", "w -> {w & x, 3, inf} in rack"),
        ("w -> {w & x, 0, 3} in rack", "w -> {w, 4, inf} in rack", "same"),
        ("w -> {w & x, 2, inf} in rack", "w -> {w, 0, 1} in rack", "w -> {w, 0, 2} in rack"),
        ("w -> {w, 2, inf} in rack", "w -> {w & x, 0, 1} in rack", "same"),
        # A bound of several is one; one of alternatives is none.
        (
            "w -> {w, 0, 3} in rack and x -> {x, 0, 1} in rack",
            "x -> {x, 2, inf} in rack",
            "x -> {x, 1, inf} in rack",
        ),
        (
            "w -> {x, 0, 9} and {w, 0, 3} in rack",
            "w -> {w, 4, inf} in rack",
            "w -> {w, 3, inf} in rack",
        ),
        ("w -> {w, 0, 3} in rack or x -> {x, 0, 1} in rack", "w -> {w, 4, inf} in rack", "same"),
        (
            "w -> {w, 0, 3} in rack",
            "w -> {w, 4, inf} or {x, 1, inf} in rack",
            "w -> {w, 3, inf} or {x, 1, inf} in rack",
        ),
        ("w -> {w, 0, 3} in rack", "w -> not {w, 0, 3} in rack", "same"),
        # It is soft then, and weighs no more than the operator's.
        ("w -> {w, 0, 3} in rack", "w -> {w, 4, inf} in rack hard", "w -> {w, 3, inf} in rack"),
        ("w -> {w, 0, 3} in rack", "w -> {w, 4, inf} in rack weight 5", "w -> {w, 3, inf} in rack"),
        (
            "w -> {w, 0, 3} in rack weight 3",
            "w -> {w, 4, inf} in rack weight 2",
            "w -> {w, 3, inf} in rack weight 2",
        ),
    ],
)
def test_a_constraint_gives_way_to_the_operators_bound_if_they_are_about_the_same(
    operator: str, asked: str, settled: str
) -> None:
    overrides = Overrides([parse_constraint(operator)], FAMILIES)
    [found] = overrides.settled([parse_constraint(asked)])
    assert format_constraint(found) == (asked if settled == "same" else settled)


def test_constraints_against_the_same_bound_share_its_weight() -> None:
    overrides = Overrides([parse_constraint("w -> {w, 0, 3} in rack weight 4")], FAMILIES)
    asked = [parse_constraint(f"w -> {{w, {n}, inf}} in rack weight 9") for n in (2, 4, 5)]
    weights = [each.weight for each in overrides.settled(asked)]
    assert weights == [9, 2, 2]


def test_batches_are_counted_with_the_largest_gap() -> None:
    counted = SolverStatistics()
    for is_optimal, gap, candidates in (
        (True, 0.0, 5),
        (False, 0.7, 3),
        (False, 0.2, 0),
        (False, None, 0),
    ):
        counted.add(BatchDecision((), (), (), Explanation(), is_optimal, gap, candidates))
    assert counted.figures() == {"batches": 4, "optimal": 1, "solved": 2, "largest_gap": 0.7}


class Removable:
    """An application that has a place once all the constraints in `needed` are out of the way."""

    def __init__(self, *needed: int) -> None:
        self.needed = set(needed)
        self.out: list[int] = []
        self.asked = 0

    def has_place(self) -> bool:
        self.asked += 1
        return self.needed <= set(self.out)

    @contextmanager
    def without(self, constraints: Sequence[Any]) -> Iterator[None]:
        before, self.out = self.out, list(constraints)
        yield
        self.out = before


@pytest.mark.parametrize(
    ("needed", "count", "near", "expected"),
    [
        ((1, 3), 5, 2, [1, 3]),
        ((0,), 3, 1, [0]),
        ((2,), 3, 1, [2]),
        ((), 3, 1, []),
        ((), 0, 0, []),
        ((9,), 3, 3, None),
    ],
)
def test_only_constraints_that_stand_in_the_way_are_to_be_relaxed(
    needed: tuple[int, ...], count: int, near: int, expected: list[int] | None
) -> None:
    asked: Any = Removable(*needed)
    numbers: Any = list(range(count))
    assert relaxing._smallest(asked, numbers, near) == expected


def test_of_many_constraints_the_nearest_are_enough_if_they_help() -> None:
    many: Any = list(range(relaxing._MOST + 3))
    asked: Any = Removable(1)
    assert relaxing._smallest(asked, many, 2) == [1]
    # Of the others only so many are put back one by one, the last first.
    last = len(many) - 1
    asked = Removable(last)
    assert relaxing._smallest(asked, many, 2) == [0, 1, 2, last]
    assert asked.asked == relaxing._MOST + 2


@pytest.mark.parametrize(
    ("tags", "is_concerned"),
    [("a b", True), ("a b c", True), ("a", False), ("d", True), ("e", False), ("", False)],
)
def test_a_constraint_concerns_its_subjects_and_what_it_counts(
    tags: str, is_concerned: bool
) -> None:
    constraint = parse_constraint("a & b -> {d, 0, 1} in rack")
    kind = ContainerKind(0, frozenset(tags.split()), np.array([1, 1]), 1)
    assert relaxing.concerns(constraint, [kind]) is is_concerned
    assert not relaxing.concerns(constraint, [])
