"""The meaning of constraints by numbers, and the tags of containers."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.constraints import (
    Constraint,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)
from argosy.model.constraints.meaning import Container, Meaning, distance, negated
from argosy.model.constraints.parts import (
    apart_tag,
    automatic_tags,
    container_names,
    container_tags,
    is_container_of,
    of_job,
    tags_at,
    with_name,
)
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.errors import ArgosyError, ModelError
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources

ONE = Resources(1, 1)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMES = "letters, digits and any of _ . : / - that is not a word such as 'and'"


def said(error: ArgosyError) -> tuple[str | None, str, str | None, str | None]:
    return error.field, error.problem, error.expected, error.hint


class TestMeaning:
    @pytest.mark.parametrize(
        ("expression", "expected"),
        [
            ("{a, 0, inf}", None),
            ("{a, 2, inf}", "{a, 0, 1}"),
            ("{a, 0, 3}", "{a, 4, inf}"),
            ("{a, 2, 3}", "{a, 0, 1} or {a, 4, inf}"),
            ("not {a, 0, inf}", "{a, 0, inf}"),
            ("{a, 1, inf} and {b, 0, inf}", "{a, 0, 0} or not {b, 0, inf}"),
            ("{a, 1, inf} or {b, 0, inf}", "{a, 0, 0} and not {b, 0, inf}"),
        ],
    )
    def test_a_negation_moves_inwards(self, expression: str, expected: str | None) -> None:
        def read(text: str) -> Any:
            rule = parse_constraint(f"s -> {text} in rack").rule
            assert isinstance(rule, PlacementConstraint)
            return rule.expression

        found = negated(read(expression))
        assert found == (None if expected is None else read(expected))

    @pytest.mark.parametrize(
        ("count", "least", "most", "expected"),
        [
            (0, 0, 0, 0),
            (1, 0, 0, 1),
            (3, 0, 0, 3),
            (3, 0, 2, 0.5),
            (0, 1, None, 1),
            (0, 4, 8, 1),
            (3, 4, 8, 0.25),
            (4, 4, 8, 0),
            (8, 4, 8, 0),
            (10, 4, 8, 0.25),
        ],
    )
    def test_a_distance_is_relative_to_the_bound(
        self, count: int, least: int, most: int | None, expected: float
    ) -> None:
        assert distance(count, least, most) == expected

    def test_a_judgement_lists_who_violates_what_and_by_how_much(self) -> None:
        machines = [Machine(name, ONE, {}, {"rack": (rack,)}) for name, rack in ("ar", "br", "cq")]
        where = [
            Container(frozenset({"s"}), "a"),
            Container(frozenset({"x"}), "b"),
            Container(frozenset({"s"}), "c"),
        ]
        constraints = [
            parse_constraint("s -> {x, 4, inf} in rack weight 2"),
            parse_constraint("x -> {s, 0, 0} in rack weight 0.5"),
            parse_constraint("s -> spread {0, 1} over rack"),
        ]
        judged = Meaning(machines).judge(constraints, where)
        assert [(v.constraint, v.container, v.extent) for v in judged.violations] == [
            (0, 0, 0.75),
            (0, 2, 1.0),
            (1, 1, 1.0),
            (2, 0, 1.0),
            (2, 2, 1.0),
        ]
        assert (judged.total, judged.concerned, judged.containers) == (1.5 + 2 + 0.5 + 2, 5, 3)


class TestTagsOfContainers:
    JOB = Job(
        "a b".replace(" ", ">"),
        (TaskGroup(1, ONE, tags=("w", "w")), TaskGroup(2, ONE), TaskGroup(1, ONE)),
        kind="my kind",
        owner="Ann!",
    )

    def test_job_kind_and_owner_are_tags_of_all_containers(self) -> None:
        assert automatic_tags(self.JOB) == ("appID:a_b", "kind:my_kind", "owner:Ann_")
        assert automatic_tags(Job("x", (TaskGroup(1, ONE),))) == ("appID:x", "kind:batch")

    def test_only_a_group_of_one_names_its_container(self) -> None:
        shared = ("appID:a_b", "kind:my_kind", "owner:Ann_")
        first, second, third = self.JOB.groups
        assert container_tags(self.JOB, first) == tuple(sorted({*shared, "w", "containerID:a_b/0"}))
        assert container_tags(self.JOB, second) == shared
        assert container_tags(self.JOB, third) == tuple(sorted({*shared, "containerID:a_b/3"}))
        assert tags_at(self.JOB, 2) == {*shared, "containerID:a_b/2"}
        # A group of another job has no place in this one.
        assert container_tags(self.JOB, TaskGroup(1, ONE, tags=("q",))) == (*shared, "q")

    def test_names_of_containers_belong_to_one_job(self) -> None:
        assert is_container_of("a>b", "containerID:a_b/3")
        assert not is_container_of("a>b", "containerID:a_bc/3")
        assert not is_container_of("a", "appID:a")
        constraints = [
            parse_constraint("w -> {containerID:x/1, 1, inf} in rack"),
            parse_constraint("containerID:y/2 -> {w, 0, 0} in rack"),
        ]
        names = container_names(constraints)
        assert names == {"containerID:x/1", "containerID:y/2"}
        mine = frozenset({"appID:y", "w"})
        assert with_name(mine, 2, names) == mine | {"containerID:y/2"}
        assert with_name(mine, 1, names) == mine
        alone = mine | {"containerID:y/2"}
        assert with_name(alone, 1, names) == alone

    @pytest.mark.parametrize(
        ("text", "tag"),
        [
            ("a -> {a, 0, 0} in machine hard", "a"),
            ("a -> {a, 0, 0} in machine", None),
            ("a -> {a, 0, 1} in machine hard", None),
            ("a -> {a, 0, 0} in rack hard", None),
            ("a -> {b, 0, 0} in machine hard", None),
            ("a & b -> {a, 0, 0} in machine hard", None),
            ("a -> {a & b, 0, 0} in machine hard", None),
            ("a -> not {a, 1, inf} in machine hard", None),
            ("a -> spread {0, 0} over machine hard", None),
        ],
    )
    def test_what_keeps_containers_apart(self, text: str, tag: str | None) -> None:
        assert apart_tag(parse_constraint(text)) == tag

    def test_self_is_the_job_wherever_it_is_said(self) -> None:
        others = parse_constraint("a -> {b, 0, 0} in rack weight 3 hard")
        own = parse_constraint("a -> {appID:self & b, 0, 1} or {c, 0, 0} in rack weight 2")
        spread = parse_constraint("appID:self -> spread {1, 2} over rack hard")
        first, second, third = of_job("j!", [others, own, spread])
        assert first is others
        assert (
            format_constraint(second) == "a -> {appID:j_ & b, 0, 1} or {c, 0, 0} in rack weight 2"
        )
        assert third.rule == SpreadConstraint(("appID:j_",), 1, 2, "rack")
        assert third.hard


def test_a_weight_is_a_number_above_zero_and_a_count_within_range() -> None:
    rule = parse_constraint("a -> {a, 0, 0} in rack").rule
    for weight in (1e-300, 1e9):
        assert Constraint(rule, weight).weight == weight
    for weight in (0.0, -1.0, 1.0000001e9, float("inf"), float("nan")):
        with pytest.raises(ModelError, match=r"a weight of .*; expected more than 0, at most 1e9"):
            Constraint(rule, weight)
    for least, most in ((0, 0), (0, None), (2**53, 2**53), (0, 2**53)):
        TagConstraint(("a",), least, most)
    for least, most, problem in (
        (-1, None, "at least -1 containers; expected 0 to 2^53"),
        (2**53 + 1, None, "expected 0 to 2^53"),
        (0, 2**53 + 1, "a largest count of at least the smallest"),
        (2, 1, "at least 2 and at most 1 containers; expected a largest count"),
    ):
        with pytest.raises(ModelError) as caught:
            TagConstraint(("a",), least, most)
        assert problem in str(caught.value)
