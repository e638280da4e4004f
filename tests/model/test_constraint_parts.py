"""Parts of constraints: names in all of them, nesting, and what Kubernetes and YARN can say and not."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.constraints import PlacementConstraint, SpreadConstraint, TagConstraint
from argosy.model.constraints.kubernetes import to_kubernetes
from argosy.model.constraints.kubernetes_reader import from_kubernetes
from argosy.model.constraints.parts import conjuncts, names_of, renamed, tags_of
from argosy.model.constraints.tables import read_constraint
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.constraints.yarn import from_yarn
from argosy.model.errors import ArgosyError, MissingExtra

EVERYTHING = (
    "a & b -> ({a, 1, 2} and not ({c, 0, 0} or {a & d, 3, inf})) in rack and a -> spread {1, 2} over "
    "zone or b -> {e, 0, 0} in machine weight 2 hard"
)


def test_tags_are_renamed_wherever_they_stand() -> None:
    constraint = parse_constraint(EVERYTHING)
    same = renamed(constraint, {})
    assert same == constraint
    other = renamed(constraint, {"a": "x", "e": "y"})
    expected = EVERYTHING
    for old, new in (("a ", "x "), ("{a,", "{x,"), ("{e,", "{y,")):
        expected = expected.replace(old, new)
    assert format_constraint(other) == format_constraint(parse_constraint(expected))
    assert tags_of(constraint.rule) == {*"abcde"}
    assert tags_of(other.rule) == {*"xbcdy"}


def test_subjects_and_what_they_count_are_named_apart() -> None:
    names = [*names_of(parse_constraint(EVERYTHING).rule)]
    for tags in ("ab", "a", "c", "ad", "b", "e"):
        assert frozenset(tags) in names
    assert frozenset("abcde") not in names


def test_a_conjunction_is_several_constraints_and_an_alternative_is_one() -> None:
    both = parse_constraint("a -> {a, 0, 0} in rack and b -> {b, 0, 0} in rack weight 3 hard")
    parts = [*conjuncts(both)]
    assert [format_constraint(part) for part in parts] == [
        "a -> {a, 0, 0} in rack weight 3 hard",
        "b -> {b, 0, 0} in rack weight 3 hard",
    ]
    either = parse_constraint("a -> {a, 0, 0} in rack or b -> {b, 0, 0} in rack")
    assert [*conjuncts(either)] == [either]


@pytest.mark.parametrize(
    ("subject", "group"), [(("not a tag!",), "rack"), (("a",), "no group!"), ((), "rack")]
)
def test_names_are_checked_however_a_constraint_is_made(
    subject: tuple[str, ...], group: str
) -> None:
    with pytest.raises(ArgosyError):
        SpreadConstraint(subject, 1, 2, group)
    with pytest.raises(ArgosyError):
        PlacementConstraint(subject, TagConstraint(("a",), 0, 0), group)
    with pytest.raises(ArgosyError):
        SpreadConstraint(("a",), 3, 2, "rack")


def test_groups_beside_each_other_are_not_deeper_than_one() -> None:
    one = "(a -> {a, 0, 0} in rack)"
    many = " and ".join([one] * 200)
    assert len([*conjuncts(parse_constraint(many))]) == 200
    with pytest.raises(ArgosyError, match="too deep"):
        parse_constraint("(" * 200 + one + ")" * 200)


def node_terms(*terms: list[dict[str, Any]], hard: bool = True) -> dict[str, Any]:
    if hard:
        required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
        nodes: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    else:
        preferred = [{"weight": 40, "preference": {"matchExpressions": term}} for term in terms]
        nodes = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    return {"labels": {"w": "true"}, "affinity": {"nodeAffinity": nodes}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("terms", "hard", "expected"),
    [
        ([[expression("disk", "In", "ssd")]], True, "{disk:ssd, 1, inf} in machine hard"),
        (
            [[expression("disk", "In", "ssd", "nvme")]],
            True,
            "{disk:ssd, 1, inf} or {disk:nvme, 1, inf} in machine hard",
        ),
        (
            [[expression("disk", "NotIn", "hdd", "tape")]],
            True,
            "{disk:hdd, 0, 0} and {disk:tape, 0, 0} in machine hard",
        ),
        (
            [[expression("disk", "In", "ssd"), expression("arch", "NotIn", "arm")]],
            True,
            "{disk:ssd, 1, inf} and {arch:arm, 0, 0} in machine hard",
        ),
        (
            [[expression("disk", "In", "ssd")], [expression("arch", "In", "arm")]],
            True,
            "{disk:ssd, 1, inf} or {arch:arm, 1, inf} in machine hard",
        ),
    ],
)
def test_labels_of_nodes_are_read(
    terms: list[list[dict[str, Any]]], hard: bool, expected: str
) -> None:
    [constraint] = from_kubernetes(node_terms(*terms, hard=hard))
    assert format_constraint(constraint) == f"w -> {expected}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("w -> {disk:ssd, 2, inf} in machine hard", "a node has a label or has it not"),
        ("w -> {disk:ssd, 0, 3} in machine hard", "a node has a label or has it not"),
        ("w -> {disk:ssd, 1, inf} in rack hard", "Kubernetes asks for labels of the node itself"),
        ("w -> {disk:ssd & gpu, 0, 0} in machine hard", "a node has a label or has it not"),
    ],
)
def test_what_cannot_be_asked_of_a_node_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ArgosyError, match=problem):
        to_kubernetes([parse_constraint(text)], ["w"], ["disk:ssd", "gpu"])


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("b", "appID:self & b"),
        ("self/b", "appID:self & b"),
        ("all/b", "b"),
        ("app-id/9/b", "appID:9 & b"),
        ("app-tag/t/b", "t & b"),
    ],
)
def test_namespaces_of_yarn_say_whose_containers_count(tag: str, expected: str) -> None:
    [part] = from_yarn(f"a=1,IN,RACK,{tag}")
    assert f"-> {{{expected}, 1, inf}} in rack" in format_constraint(part.constraint)


@pytest.mark.parametrize(
    ("tag", "problem"),
    [
        ("b!", "tag 'b!'"),
        ("self/b c", "tag 'b c'"),
        ("other/b", "namespace 'other'"),
        ("app-id/b/c/d", "namespace 'app-id/b/c'"),
    ],
)
def test_a_tag_that_yarn_does_not_know_is_refused(tag: str, problem: str) -> None:
    with pytest.raises(ArgosyError, match=f"^{problem} at column 5 of"):
        from_yarn(f"a=1,IN,RACK,{tag}")


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a=1,NEAR,NODE,b", 5),
        ("a=1,IN,HALL,b", 8),
        ("a=1,IN,NODE", 12),
        ("a=1,CARDINALITY,NODE,b,1", 25),
        ("a=1,AND(IN,NODE,b:IN,NODE,c)x", 29),
        ("a=1,AND(IN,NODE,b:NEAR,NODE,c)", 19),
        ("a=1,AND(IN,NODE,b)", 5),
    ],
)
def test_a_mistake_in_what_yarn_says_has_its_column(text: str, column: int) -> None:
    with pytest.raises(ArgosyError, match=f" at column {column} of "):
        from_yarn(text)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("hard", "yes", "'yes' does not fit"),
        ("hard", 1, "1 does not fit"),
        ("weight", True, "true is not a weight"),
        ("weight", "heavy", "'heavy' is not a weight"),
    ],
)
def test_weight_and_strength_of_a_table_are_checked(field: str, value: Any, problem: str) -> None:
    table = {"subject": "a", "where": "{a, 0, 0}", "in": "rack"}
    with pytest.raises(ArgosyError) as caught:
        read_constraint({**table, field: value})
    assert caught.value.field == field
    assert problem in caught.value.problem


def test_what_is_not_installed_is_told_with_the_way_around_it() -> None:
    plain = MissingExtra("medea", "ilp")
    assert plain.hint == "pip install 'argosy[ilp]'"
    assert "medea needs the extra 'ilp'" in plain.problem
    around = MissingExtra("medea", "ilp", "choose a heuristic")
    assert around.hint == "pip install 'argosy[ilp]', or choose a heuristic"
