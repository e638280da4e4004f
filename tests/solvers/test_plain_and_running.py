"""The plainest readings of Medea's heuristics beside containers that run already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError
from argosy.solvers.placement import (
    ContainerKind,
    PlacementCluster,
    PlacementProblem,
    Running,
    problem_of,
)
from argosy.solvers.placement.plain import READINGS, read_plainly

ALL = sorted(READINGS)


def kind(tags: str, count: int = 1, cpu: int = 1, app: int = 0, **fields: Any) -> ContainerKind:
    return ContainerKind(app, frozenset(tags.split()), np.array([cpu]), count, **fields)


def where(name: str, given: PlacementProblem) -> list[tuple[int, int]]:
    answer = read_plainly(given, name)
    return [*zip(answer.kinds.tolist(), answer.machines.tolist(), strict=True)]


def given_with(
    free: Sequence[int],
    kinds: Sequence[ContainerKind],
    running: Sequence[tuple[str, Sequence[int]]],
    *texts: str,
) -> PlacementProblem:
    """Machines with so much free of ten, and what runs there."""
    rows = np.array(free, np.int64)[:, None]
    there = [Running(frozenset(tags.split()), np.array(on, np.int32)) for tags, on in running]
    constraints = [parse_constraint(text) for text in texts]
    cluster = PlacementCluster(rows, np.full_like(rows, 10))
    return problem_of(cluster, list(kinds), there, constraints, smallest=(1,))


class TestBoundsOfOthers:
    """One of the kind on two machines, of which the first has more room."""

    @pytest.mark.parametrize(
        ("text", "running", "machine"),
        [
            # It sees as many as it may; those who run there see no more because of it.
            ("a -> {b, 0, 1} in machine", [("a", [1, 0]), ("b", [1, 0])], 0),
            ("a -> {b, 0, 1} in machine", [("b", [2, 0])], 1),
            # Another that is counted: one that sees as many as it may would see one more.
            ("b -> {a, 0, 1} in machine", [("b", [1, 0]), ("a", [1, 0])], 1),
            ("b -> {a, 0, 2} in machine", [("b", [1, 0]), ("a", [1, 0])], 0),
            # One that is counted itself sees one less.
            ("b -> {a, 0, 1} in machine", [("a b", [1, 0])], 0),
            ("b -> {a, 0, 1} in machine", [("a b", [2, 0])], 1),
            # Nobody who asks is there.
            ("b -> {a, 0, 0} in machine", [("a", [5, 0])], 0),
            # Where too few are, as far as there are any.
            ("a -> {b, 2, inf} in machine", [("b", [1, 2])], 1),
            ("a -> {b, 2, inf} in machine", [("b", [2, 2])], 0),
            ("a -> {b, 3, inf} in machine", [("b", [1, 1])], 0),
            ("a -> {b, 1, inf} in machine", [], 0),
            # Lower bounds of others attract nothing.
            ("b -> {a, 1, inf} in machine", [("b", [0, 1])], 0),
        ],
    )
    def test_where_one_more_breaks_nothing(
        self, text: str, running: list[tuple[str, list[int]]], machine: int
    ) -> None:
        given = given_with([9, 5], [kind("a")], running, text)
        for name in ALL:
            assert where(name, given) == [(0, machine)]
        # What is hard leaves no other choice, and what cannot be kept without one is not placed.
        if machine:
            hard = given_with([9, 5], [kind("a")], running, f"{text} hard")
            assert where("jkube-plain", hard) == [(0, 1)]
            alone = given_with([9, 0], [kind("a")], running, text)
            assert where("jkube-plain", alone) == [(0, 0)]


def test_an_application_that_may_not_be_placed_gives_its_room_to_the_next_at_once() -> None:
    kinds = [kind("a", 3, cpu=3), kind("b", 2, cpu=5, app=1)]
    apart = "a -> {a, 0, 0} in machine hard"
    assert where("serial-plain", given_with([6, 6], kinds, [], apart)) == [(1, 0), (1, 1)]
    assert where("serial-plain", given_with([6, 6], kinds, [], apart.removesuffix(" hard"))) == [
        (0, 0), (0, 1), (0, 0),
    ]  # fmt: skip


def test_every_turn_counts_what_was_placed_before_it() -> None:
    """By candidates, the one with the fewest clean machines goes next, and among equals the first."""
    kinds = [kind("a", 2), kind("b", 2, app=1), kind("c", app=2, precedence=1)]
    texts = ("b -> {b, 0, 0} in machine", "a -> {b, 0, 0} in machine")
    given = given_with([9, 7, 5], kinds, [], *texts)
    assert where("node-candidates-plain", given) == [(2, 0), (0, 0), (1, 1), (1, 2), (0, 0)]
    assert where("serial-plain", given) == [(2, 0), (0, 0), (0, 0), (1, 1), (1, 2)]


def test_what_has_no_plain_reading_says_which_algorithm_to_choose() -> None:
    text = "a -> {a, 1, inf} in machine or a -> {b, 0, 0} in machine"
    with pytest.raises(ModelError) as caught:
        read_plainly(given_with([9], [kind("a")], [], text), "serial-plain")
    assert caught.value.problem == "a constraint with alternatives or a spread has no plain reading"
    assert caught.value.hint == "choose the algorithm without '-plain'"


def test_those_of_higher_precedence_go_first_however_many_machines_they_have() -> None:
    choosy = kind("a", allowed=np.array([True, False]))
    given = given_with([1, 1], [choosy, kind("b", 2, app=1, precedence=3)], [])
    for name in ALL:
        assert where(name, given) == [(1, 0), (1, 1)]


def test_those_that_run_stay_where_they_are_and_are_counted_there() -> None:
    kinds = [kind("a", cpu=6, origin=1), kind("b", cpu=5, app=1), kind("b", app=2)]
    given = given_with([9, 9], kinds, [], "b -> {a, 0, 0} in machine")
    for name in ALL:
        assert where(name, given) == [(0, 1), (1, 0), (2, 0)]
