"""What a ledger of constraints and containers knows, and the rows of problems made from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError
from argosy.solvers.placement import ContainerKind, Family, PlacementProblem, PlacementState
from argosy.solvers.placement.forms import alternatives, without_choice
from argosy.solvers.placement.printed import has_printed_form


def tags(text: str) -> frozenset[str]:
    return frozenset(text.split())


def kind(text: str, count: int = 1, app: int = 0) -> ContainerKind:
    return ContainerKind(app, tags(text), np.array([1]), count)


def ledger() -> PlacementState:
    """Four machines, of which two share a rack and the last is in none."""
    racks = Family.of("rack", [[0], [1], [1], []], 2)
    rows = Family.of("row", [[0, 1], [0], [1], [1]], 2)
    return PlacementState(4, {"rack": racks, "row": rows})


def problem(state: PlacementState, *kinds: ContainerKind) -> PlacementProblem:
    room = np.full((4, 1), 9, np.int64)
    return state.problem(room, room, kinds)


def counted(state: PlacementState, text: str) -> list[int]:
    return state.count(tags(text)).tolist()


def test_containers_are_counted_by_all_of_their_tags_as_they_come_and_go() -> None:
    state = ledger()
    state.start(tags("a b"), 0, 2)
    state.start(tags("a"), 1)
    state.start(tags("b"), 0)
    asked = ("a", "b", "a b", "c")
    assert [counted(state, text) for text in asked] == [
        [2, 1, 0, 0], [3, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, 0],
    ]  # fmt: skip
    state.start(tags("a c"), 3, 3)
    state.stop(tags("a b"), 0)
    assert [counted(state, text) for text in asked] == [
        [1, 1, 0, 3], [2, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 3],
    ]  # fmt: skip
    state.stop(tags("a b"), 0)
    state.stop(tags("a c"), 3, 2)
    assert [counted(state, text) for text in asked] == [
        [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    # What was asked for the first time after all that is the same.
    assert counted(state, "a c") == [0, 0, 0, 1]
    state.start(tags("a b"), 2)
    assert counted(state, "a b") == [0, 0, 1, 0]


@pytest.mark.parametrize(("text", "machine", "count"), [("a b", 0, 3), ("a b", 1, 1), ("a", 0, 1)])
def test_a_stop_of_what_is_not_there_changes_nothing(text: str, machine: int, count: int) -> None:
    state = ledger()
    state.start(tags("a b"), 0, 2)
    with pytest.raises(ModelError, match=r"a container with \['a'.* stops that is not there"):
        state.stop(tags(text), machine, count)
    assert counted(state, "a") == [2, 0, 0, 0]
    state.stop(tags("a b"), 0, 2)
    assert counted(state, "a") == [0, 0, 0, 0]


def test_constraints_that_differ_in_their_subjects_share_a_row() -> None:
    state = ledger()
    for text in ("a & x -> {b, 0, 1} in rack weight 2", "c -> {b, 0, 1} in rack weight 2"):
        state.add(parse_constraint(text))
    state.start(tags("c"), 0, 2)
    state.start(tags("b c"), 1)
    state.start(tags("b"), 2, 4)
    state.start(tags("b"), 3)
    given = problem(state, kind("a x", 2), kind("c", 3), kind("b"), kind("a"), kind("b x c", 1))
    [item] = given.items
    assert (item.least, item.most, item.weight, item.hard, item.outside) == (0, 1, 2.0, False, 1.0)
    assert given.families[item.family].name == "rack"
    assert item.subject.tolist() == [1, 1, 0, 0, 1]
    assert item.match.tolist() == [0, 0, 1, 0, 1]
    # By rack, and outside all racks.
    assert item.gamma.tolist() == [0, 5, 1]
    assert item.both.tolist() == [0, 1, 0]
    assert item.other.tolist() == [2, 0, 0]
    assert given.concerned == 2.0 * (2 + 3 + 1)


def test_a_kind_that_two_of_them_concern_is_in_two_rows() -> None:
    state = ledger()
    for text in ("a -> {b, 0, 1} in rack", "c -> {b, 0, 1} in rack"):
        state.add(parse_constraint(text))
    state.start(tags("a c"), 0)
    given = problem(state, kind("a c", 3), kind("c", 2))
    first, second = given.items
    assert (first.subject.tolist(), second.subject.tolist()) == ([1, 1], [1, 0])
    # Running containers are in the first row, once for each constraint.
    assert (first.other.tolist(), second.other.tolist()) == ([2, 0, 0], [0, 0, 0])
    assert given.concerned == 2 * 3 + 2


def test_only_those_that_concern_new_containers_are_part_of_a_problem() -> None:
    state = ledger()
    texts = (
        "a -> {b, 0, 1} in rack",
        "c -> {d, 1, inf} in machine",
        "e -> spread {2, 3} over rack",
    )
    for text in texts:
        state.add(parse_constraint(text))
    named = {"a": (1, 0), "b": (1, 0), "c": (1, 0), "d": (1, 0), "e": (0, 1), "f": (0, 0)}
    for text, expected in named.items():
        given = problem(state, kind(text, 2))
        assert (len(given.items), len(given.spreads)) == expected
        subjects = 2 if text in "ace" else 1 if text in "bd" else 0
        assert given.concerned == subjects
    given = problem(state, kind("a"), kind("d"))
    assert [(item.least, item.most) for item in given.items] == [(0, 1), (1, None)]
    # In the order in which they were made.
    state.remove(parse_constraint(texts[0]))
    state.add(parse_constraint(texts[0]))
    given = problem(state, kind("a"), kind("d"))
    assert [(item.least, item.most) for item in given.items] == [(1, None), (0, 1)]


def test_a_constraint_is_active_as_often_as_it_was_added() -> None:
    state = ledger()
    text = parse_constraint("a -> {b, 0, 1} in rack")
    state.start(tags("a"), 1)
    state.add(text)
    state.add(text)
    given = problem(state, kind("a"))
    assert [item.other.tolist() for item in given.items] == [[0, 2, 0], [0, 0, 0]]
    state.start(tags("a"), 2)
    state.remove(text)
    [item] = problem(state, kind("a")).items
    assert item.other.tolist() == [0, 2, 0]
    assert state.popularity() == {"a": 1, "b": 1}
    state.remove(text)
    assert problem(state, kind("a"), kind("b")).items == ()
    assert not any(state.popularity().values())
    assert not state.names(tags("a"))
    state.add(text)
    [item] = problem(state, kind("a")).items
    assert item.other.tolist() == [0, 2, 0]


def test_what_one_demand_counts_is_still_counted_for_others_when_it_goes() -> None:
    state = ledger()
    limits = [parse_constraint(f"a -> {{b, 0, {most}}} in machine") for most in (1, 2)]
    for limit in limits:
        state.add(limit)
    state.start(tags("b"), 0)
    assert [item.gamma.tolist() for item in problem(state, kind("a")).items] == [
        [1, 0, 0, 0, 0]
    ] * 2
    state.remove(limits[0])
    state.start(tags("b"), 3, 2)
    [item] = problem(state, kind("a")).items
    assert item.gamma.tolist() == [1, 0, 0, 2, 0]
    state.remove(limits[1])
    state.stop(tags("b"), 0)
    assert counted(state, "b") == [0, 0, 0, 2]


def test_spreads_count_the_sets_in_use_and_their_subjects() -> None:
    state = ledger()
    state.add(parse_constraint("a -> spread {2, 3} over rack weight 3 hard"))
    state.start(tags("a"), 1, 2)
    state.start(tags("a b"), 2)
    state.start(tags("b"), 0)
    [spread] = problem(state, kind("b"), kind("a", 4)).spreads
    assert (spread.least, spread.most, spread.weight, spread.hard) == (2, 3, 3.0, True)
    assert spread.subject.tolist() == [0, 1]
    assert (spread.inside.tolist(), spread.subjects) == ([0, 3], 3)


def test_constraints_with_alternatives_weigh_as_often_as_they_were_added() -> None:
    state = ledger()
    text = parse_constraint("a -> {b, 0, 0} in machine or a -> {c, 1, inf} in rack weight 3")
    state.start(tags("a"), 0, 2)
    state.start(tags("b"), 1)
    state.start(tags("z"), 1)
    for times in (1, 2):
        state.add(text)
        given = problem(state, kind("a", 4), kind("c"))
        [choice] = given.choices
        assert choice.weight == 3.0 * times
        # Both alternatives concern four containers.
        assert given.concerned == 3.0 * times * (4 + 4)
        assert [len(ways) for ways in choice.alternatives] == [2, 0, 2]
        assert [here.tolist() for here in choice.here] == [[0] * 4, [0] * 4, [2, 0, 0, 0]]
    # A container that is only counted is one pair; of the other alternative it is no part.
    assert problem(state, kind("c", 5)).concerned == 3.0 * 2
    assert problem(state, kind("z")).choices == ()
    state.remove(text)
    assert [active for _, active in state.choices()] == [1]
    state.remove(text)
    assert [*state.choices()] == []
    assert problem(state, kind("a")).choices == ()


def test_a_rule_over_sets_that_overlap_is_a_choice_between_them() -> None:
    state = ledger()
    state.add(parse_constraint("a -> {b, 1, inf} and {c, 0, 1} in row weight 2"))
    state.add(parse_constraint("a -> spread {2, inf} over row"))
    given = problem(state, kind("a", 3))
    assert (len(given.items), len(given.spreads), len(given.choices)) == (0, 1, 1)
    assert given.concerned == 2.0 * (3 + 3) + 3
    [[[term], *_]] = given.choices[0].alternatives[:1]
    assert [(atom.least, atom.most) for atom in term.atoms] == [(1, None), (0, 1)]


def test_containers_that_a_constraint_concerns_are_told_in_the_order_of_their_tags() -> None:
    state = ledger()
    state.start(tags("b a"), 1, 2)
    state.start(tags("c"), 3)
    state.start(tags("a"), 2)
    state.start(tags("a"), 0, 5)
    text = parse_constraint("a -> {c, 0, 1} in machine")
    assert [*state.concerned(text)] == [
        (tags("a"), 2, 1), (tags("a"), 0, 5), (tags("a b"), 1, 2),
    ]  # fmt: skip
    told = {each.tags: each.counts.tolist() for each in state.running(text)}
    assert told == {tags("a"): [5, 0, 1, 0], tags("a b"): [0, 2, 0, 0]}


class TestForms:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a -> {b, 0, 1} in machine", True),
            ("a -> {b, 0, 1} in row", False),
            ("a -> {b, 0, 1} and {c, 1, 2} in machine", True),
            ("a -> {b, 0, 1} and {c, 1, 2} in machine hard", False),
            ("a -> {b, 0, 1} in machine and c -> {d, 0, 1} in rack", True),
            ("a -> {b, 0, 1} or {c, 1, 2} in machine", False),
            ("a -> {b, 0, 1} in machine or a -> {c, 0, 1} in rack", False),
            ("a -> {b, 0, 1} in machine or c -> {c, 0, 1} in rack", False),
            ("a -> not {b, 0, inf} in machine", False),
            ("a -> not {b, 2, inf} in machine", True),
            ("a -> not {b, 2, 3} in machine", False),
        ],
    )
    def test_what_needs_no_choice(self, text: str, expected: bool) -> None:
        constraint = parse_constraint(text)
        assert (without_choice(constraint, {"row"}) is not None) == expected
        assert has_printed_form(constraint, {"row"}) == expected

    def test_a_spread_needs_no_choice_but_has_no_printed_form(self) -> None:
        spread = parse_constraint("a -> spread {2, inf} over row")
        assert without_choice(spread, {"row"}) is not None
        assert not has_printed_form(spread, {"row"})

    def test_what_has_too_many_alternatives_has_no_printed_form(self) -> None:
        many = " or ".join(f"{{b{number}, 1, inf}}" for number in range(257))
        constraint = parse_constraint(f"a -> {many} in machine")
        with pytest.raises(ModelError, match="257 alternatives"):
            without_choice(constraint, ())
        assert not has_printed_form(constraint, ())

    @pytest.mark.parametrize(
        ("text", "having", "expected"),
        [
            ("a & b -> {c, 0, 1} in rack", "a", []),
            ("a & b -> {c, 0, 1} in rack", "a b", [["rack"]]),
            ("a -> {c, 0, 1} in rack and b -> {c, 0, 1} in row", "a", [["rack"]]),
            ("a -> {c, 0, 1} in rack and b -> {c, 0, 1} in row", "a b", [["rack", "row"]]),
            ("a -> {c, 0, 1} in rack or b -> {c, 0, 1} in row", "b", [["row"]]),
            ("a -> {c, 0, 1} in rack or b -> {c, 0, 1} in row", "a b", [["rack"], ["row"]]),
            ("a -> spread {2, inf} over rack or a -> {c, 0, 1} in row", "b", []),
            ("a -> spread {2, inf} over rack or a -> {c, 0, 1} in row", "a", [["rack"], ["row"]]),
        ],
    )
    def test_the_alternatives_of_a_container(
        self, text: str, having: str, expected: Sequence[Sequence[str]]
    ) -> None:
        found = alternatives(parse_constraint(text).rule, tags(having))
        assert [[term.group for term in way] for way in found] == expected
