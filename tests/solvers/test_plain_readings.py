"""The plainest readings of Medea's heuristics, what an answer is worth, the checker of flows, and terms
of arcs that change one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError
from argosy.solvers.flow import FlowNetwork, FlowProblem
from argosy.solvers.flow.checker import FlowFault, cost_of, costlier, infeasibilities
from argosy.solvers.placement import (
    ContainerKind,
    Family,
    Objective,
    PlacementCluster,
    PlacementProblem,
    PlacementState,
    problem_of,
)
from argosy.solvers.placement.answer import appraise, mean_share
from argosy.solvers.placement.plain import READINGS, read_plainly
from argosy.solvers.placement.problem import importance_of

ALL = sorted(READINGS)


def kind(tags: str, count: int = 1, cpu: int = 1, app: int = 0, **fields: Any) -> ContainerKind:
    return ContainerKind(app, frozenset(tags.split()), np.array([cpu]), count, **fields)


def problem(
    free: Sequence[int], kinds: Sequence[ContainerKind], *texts: str, whole: int = 10
) -> PlacementProblem:
    """Machines with so much free of `whole`, two by two in racks."""
    rows = np.array(free, np.int64)[:, None]
    racks = [[machine // 2] for machine in range(len(free))]
    family = Family.of("rack", racks, (len(free) + 1) // 2)
    cluster = PlacementCluster(rows, np.full_like(rows, whole), {"rack": family})
    constraints = [parse_constraint(text) for text in texts]
    return problem_of(cluster, list(kinds), (), constraints, smallest=(1,))


def where(name: str, given: PlacementProblem) -> list[tuple[int, int]]:
    answer = read_plainly(given, name)
    return [*zip(answer.kinds.tolist(), answer.machines.tolist(), strict=True)]


@pytest.mark.parametrize("name", ALL)
def test_serial_takes_the_first_machine_and_the_others_the_emptiest(name: str) -> None:
    found = where(name, problem([3, 9, 8], [kind("a", 3)]))
    first = [(0, 0), (0, 0), (0, 0)]
    assert found == (first if name == "serial-plain" else [(0, 1), (0, 1), (0, 2)])


@pytest.mark.parametrize("name", ALL)
def test_machines_must_have_room_and_be_allowed(name: str) -> None:
    only = np.array([True, False, True, True])
    asks = [kind("a", cpu=4, allowed=only)]
    assert where(name, problem([3, 9, 4, 2], asks)) == [(0, 2)]


@pytest.mark.parametrize("name", ALL)
def test_upper_bounds_hold_for_new_containers_and_for_those_that_count_them(name: str) -> None:
    apart = problem([5, 5, 9, 9], [kind("a", 2)], "a -> {a, 0, 0} in rack")
    assert len({machine // 2 for _, machine in where(name, apart)}) == 2
    # One other of its kind is allowed, two are not.
    pairs = problem([5, 5, 9, 9], [kind("a", 4)], "a -> {a, 0, 1} in rack")
    assert sorted(machine // 2 for _, machine in where(name, pairs)) == [0, 0, 1, 1]
    shy = [kind("a"), kind("b")]
    away = problem([9, 5, 4, 4], shy, "a -> {b, 0, 0} in rack")
    assert {machine // 2 for _, machine in where(name, away)} == {0, 1}


@pytest.mark.parametrize("name", ALL)
def test_lower_bounds_attract_as_far_as_anything_is_there(name: str) -> None:
    gather = problem([5, 4, 9, 8], [kind("a", 3)], "a -> {a, 2, inf} in rack")
    assert len({machine // 2 for _, machine in where(name, gather)}) == 1


def test_a_constraint_that_cannot_be_kept_is_broken_unless_it_is_hard() -> None:
    crowd = [kind("a", 3)]
    soft = problem([9, 9, 9, 9], crowd, "a -> {a, 0, 0} in rack")
    assert len(where("jkube-plain", soft)) == 3
    hard = problem([9, 9, 9, 9], crowd, "a -> {a, 0, 0} in rack hard")
    assert where("jkube-plain", hard) == []


def test_an_application_that_does_not_fit_gives_its_room_to_the_next() -> None:
    kinds = [kind("a", 3, cpu=4), kind("b", 2, cpu=5, app=1)]
    assert where("serial-plain", problem([5, 5], kinds)) == [(1, 0), (1, 1)]


def test_an_application_that_does_not_fit_keeps_no_other_away() -> None:
    kinds = [kind("a", 2, cpu=4), kind("b", app=1)]
    given = problem([5, 1], kinds, "b -> {a, 0, 0} in machine")
    assert where("serial-plain", given) == [(1, 0)]


def test_running_containers_stay_and_take_their_room() -> None:
    kinds = [kind("a", cpu=6, origin=0), kind("b", 1, cpu=5, app=1)]
    given = problem([9, 5], kinds, "b -> {a, 0, 0} in machine")
    assert where("serial-plain", given) == [(0, 0), (1, 1)]


def test_popular_tags_and_few_candidates_go_first() -> None:
    kinds = [kind("a", app=0), kind("b", app=1)]
    texts = ("b -> {x, 0, 3} in rack", "b -> {y, 0, 3} in rack", "a -> {z, 0, 3} in rack")
    popular = problem([1, 0], kinds, *texts)
    assert where("tag-popularity-plain", popular) == [(1, 0)]
    assert where("serial-plain", popular) == [(0, 0)]
    choosy = [kind("a"), kind("b", app=1, allowed=np.array([True, False]))]
    assert where("node-candidates-plain", problem([2, 1], choosy)) == [(1, 0), (0, 0)]
    high = [kind("a"), kind("b", app=1, precedence=5)]
    for name in ALL:
        assert where(name, problem([1, 0], high)) == [(1, 0)]


def test_alternatives_and_spreads_have_no_plain_reading() -> None:
    for text in (
        "a -> {a, 1, inf} in rack or a -> {b, 0, 0} in rack",
        "a -> spread {2, inf} over rack",
    ):
        with pytest.raises(ModelError, match="has no plain reading"):
            where("serial-plain", problem([9, 9, 9], [kind("a", 2)], text))


class TestWorth:
    def worth(self, machines: Sequence[int], **weights: float) -> float:
        """Two containers of two cores on machines with 10, 4 and 3 of 10 cores free."""
        given = problem([10, 4, 3], [kind("a", 2, cpu=2)], "a -> {a, 0, 0} in machine")
        none = {"placed": 0.0, "first": 0.0, "violation": 0.0, "fragmented": 0.0}
        kinds = np.zeros(len(machines), np.int32)
        rows = np.array(machines, np.int32)
        return appraise(given, Objective(**{**none, **weights}), kinds, rows).value

    @pytest.mark.parametrize(
        ("machines", "weights", "expected"),
        [
            ([0, 1], {"placed": 3.0}, 3.0),
            ([0, 1], {"first": 4.0, "placed": 3.0}, 7.0),
            ([0], {"placed": 3.0}, 0.0),
            # Both see one too many.
            ([0, 0], {"violation": 1.0}, -1.0),
            ([0, 1], {"violation": 1.0}, 0.0),
            # One machine was empty, of two containers.
            ([0, 0], {"used": 1.0}, -0.5),
            ([1, 2], {"used": 1.0}, 0.0),
            # Shares that were in use: 0.6 and 0.7; beside another, a fifth more.
            ([1, 2], {"load": 1.0}, -0.65),
            ([1, 1], {"load": 1.0}, -0.7),
            # The last machine has less than a core left.
            ([0, 2], {"fragmented": 1.0}, 0.0),
        ],
    )
    def test_parts_of_an_answers_value(
        self, machines: list[int], weights: dict[str, float], expected: float
    ) -> None:
        assert self.worth(machines, **weights) == pytest.approx(expected)

    def test_moves_cost_and_staying_does_not(self) -> None:
        given = problem([9, 9], [kind("a", origin=1), kind("a", app=1)])
        aim = Objective(placed=0.0, first=0.0, fragmented=0.0, moved=1.0)
        kinds = np.array([0, 1], np.int32)
        for machine, expected in ((1, 0.0), (0, -0.5)):
            rows = np.array([machine, 0], np.int32)
            assert appraise(given, aim, kinds, rows).value == pytest.approx(expected)

    def test_a_part_of_an_application_is_not_allowed(self) -> None:
        given = problem([9, 9], [kind("a", 2), kind("b", app=1)])
        for kinds, is_allowed, placed in (
            ([0], False, 0),
            ([0, 0], True, 1),
            ([1], True, 1),
            ([], True, 0),
        ):
            rows = np.zeros(len(kinds), np.int32)
            worth = appraise(given, Objective(), np.array(kinds, np.int32), rows)
            assert (worth.is_allowed, worth.placed) == (is_allowed, placed)

    def test_the_mean_share_is_of_a_typical_machine(self) -> None:
        assert mean_share(
            problem([9, 9], [kind("a", 3, cpu=2), kind("b", cpu=6, app=1)])
        ) == pytest.approx(0.3)
        assert mean_share(problem([9], [])) == 0.0


def test_constraints_name_their_subjects_and_what_they_count() -> None:
    state = PlacementState(2, {})
    for text in (
        "a & x -> {b & y, 0, 1} in machine",
        "c -> {d, 0, 0} in machine or c -> {e, 1, inf} in machine",
    ):
        state.add(parse_constraint(text))
    named = {"a x", "b y", "a x z", "c", "d", "e", "e f"}
    for tags in (*named, "a", "x", "b", "f", "z"):
        assert state.names(frozenset(tags.split())) is (tags in named), tags


class TestChecker:
    """Three units from 0 to 2, directly for 5 each or by way of 1 for 1 and 2."""

    PROBLEM = FlowProblem(
        tails=np.array([0, 0, 1], np.int32),
        heads=np.array([2, 1, 2], np.int32),
        capacities=np.array([3, 2, 2]),
        costs=np.array([5, 1, 2]),
        supplies=np.array([3, 0, -3]),
    )

    @pytest.mark.parametrize(
        ("flows", "expected"),
        [
            ([1, 2, 2], []),
            ([3, 0, 0], []),
            ([4, -1, -1], [("a flow below zero", 1, 2), ("a flow above its capacity", 0, 1)]),
            ([0, 3, 3], [("a flow above its capacity", 1, 2)]),
            ([1, 2, 1], [("a vertex that does not send its supply", 1, 2)]),
        ],
    )
    def test_flows_that_are_not_feasible(self, flows: list[int], expected: list[Any]) -> None:
        found = infeasibilities(self.PROBLEM, np.array(flows))
        assert found == [FlowFault(*each) for each in expected]

    @pytest.mark.parametrize(
        ("flows", "prices", "expected"),
        [
            ([1, 2, 2], [5, 2, 0], []),
            ([1, 2, 2], [5, 4, 0], []),
            ([1, 2, 2], [6, 2, 0], [("an arc with room and a negative reduced cost", 0, 1)]),
            ([1, 2, 2], [4, 2, 0], [("an arc with flow and a positive reduced cost", 0, 1)]),
            ([3, 0, 0], [5, 3, 0], [("an arc with room and a negative reduced cost", 1, 2)]),
            ([1, 2, 2], [2**61 + 1, 0, 0], [("a price out of range", 0, 1)]),
            ([1, 2, 2], [5, 2, -(2**61) - 1], [("a price out of range", 2, 1)]),
        ],
    )
    def test_prices_that_prove_nothing(
        self, flows: list[int], prices: list[int], expected: list[Any]
    ) -> None:
        found = costlier(self.PROBLEM, np.array(flows), np.array(prices))
        assert found == [FlowFault(*each) for each in expected]

    def test_the_cost_is_of_any_size(self) -> None:
        assert cost_of(self.PROBLEM, np.array([1, 2, 2])) == 11
        assert cost_of(self.PROBLEM, np.array([2**62, 0, 0])) == 5 * 2**62


def test_terms_of_an_arc_change_one_at_a_time() -> None:
    network = FlowNetwork()
    here, there = network.add_vertices(np.array([3, -3])).tolist()
    [arc] = network.add_arcs([here], [there], 5, 10, 2).tolist()

    def cost() -> int | None:
        return network.solve().cost

    # Units cost 10, 12 and 14.
    assert cost() == 36
    network.set_arcs([arc], costs=[4])
    assert cost() == 4 + 6 + 8
    network.set_arcs([arc], steps=[1])
    assert cost() == 4 + 5 + 6
    network.set_arcs([arc], capacities=[3])
    assert cost() == 4 + 5 + 6
    network.set_arcs([arc], capacities=[2])
    assert cost() is None
    network.set_arcs([arc], [3], [1], [0])
    assert cost() == 3


@pytest.mark.parametrize(
    ("precedences", "expected"),
    [
        ([], ()),
        ([3, 3], (1, 1)),
        ([5, 0], (2, 1)),
        ([0, 5, 0], (1, 3, 1)),
        ([5, 5, 0], (2, 2, 1)),
        # Each is worth more than all below it together.
        ([9, 0, 5], (4, 1, 2)),
    ],
)
def test_an_application_is_worth_more_than_all_of_lower_precedence(
    precedences: list[int], expected: tuple[int, ...]
) -> None:
    kinds = [kind("a", app=app, precedence=each) for app, each in enumerate(precedences)]
    assert importance_of(kinds, len(kinds)) == expected


def test_of_many_precedences_the_lowest_count_as_one() -> None:
    kinds = [kind("a", app=app, precedence=app) for app in range(80)]
    found = importance_of(kinds, 80)
    assert found[0] == found[1] == 1.0
    assert list(found) == sorted(found)
    assert found[79] > found[78] > found[77]
    assert found[79] < 2**40
