"""Constraints: what their text says, and what it may not say."""

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.constraints import (
    HEAVIEST,
    NAME,
    RESERVED,
    AllOf,
    AllTags,
    AnyOf,
    AnyTags,
    Constraint,
    NotTags,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)
from argosy.model.constraints.tables import read_constraint, write_constraint
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.errors import ConstraintSyntaxError, ModelError, excerpt
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources

A = TagConstraint(("a",), 1, None)
B = TagConstraint(("b",), 0, 0)
C = TagConstraint(("c",), 2, 5)


def expression_of(text):
    return parse_constraint(f"s -> {text} in rack").rule.expression


def rule_of(text):
    return parse_constraint(text).rule


def test_affinity_of_the_paper_reads_as_it_is_written_there():
    assert parse_constraint("storm -> {hb & mem, 1, inf} in machine") == Constraint(
        PlacementConstraint(("storm",), TagConstraint(("hb", "mem"), 1, None), "machine")
    )


def test_tags_may_have_namespaces():
    rule = rule_of("appID:0023 & storm -> {appID:0023 & hb & mem, 1, inf} in machine")
    assert rule.subject == ("appID:0023", "storm")
    assert rule.expression.tags == ("appID:0023", "hb", "mem")


def test_a_constraint_is_soft_with_weight_one_unless_it_says_otherwise():
    soft = parse_constraint("hb -> {hb, 0, 0} in machine")
    assert (soft.weight, soft.hard) == (1.0, False)
    hard = parse_constraint("hb -> {hb, 0, 0} in machine weight 2.5 hard")
    assert (hard.weight, hard.hard) == (2.5, True)


def test_and_binds_tighter_than_or_and_not_tighter_than_and():
    text = "{a, 1, inf} or not {b, 0, 0} and {c, 2, 5}"
    assert expression_of(text) == AnyTags((A, AllTags((NotTags(B), C))))


def test_parentheses_override_precedence():
    text = "not ({a, 1, inf} or {b, 0, 0}) and {c, 2, 5}"
    assert expression_of(text) == AllTags((NotTags(AnyTags((A, B))), C))


def test_compound_constraints_join_whole_placements():
    one, two, three = (PlacementConstraint((tag,), A, "rack") for tag in "xyz")
    x, y, z = (f"{tag} -> {{a, 1, inf}} in rack" for tag in "xyz")
    assert rule_of(f"{x} or {y} and {z}") == AnyOf((one, AllOf((two, three))))
    assert rule_of(f"({x} or {y}) and {z}") == AllOf((AnyOf((one, two)), three))


def test_the_arrow_needs_no_spaces():
    assert parse_constraint("a-b->{c-d,1,2}in rack") == parse_constraint(
        "a-b -> {c-d, 1, 2} in rack"
    )


def test_a_written_constraint_is_normalised_and_has_no_needless_parentheses():
    text = "((a  ->  ( {b,1,inf} )  in rack)) or b -> {c,0,1} in zone  weight 2.0"
    assert (
        format_constraint(parse_constraint(text))
        == "a -> {b, 1, inf} in rack or b -> {c, 0, 1} in zone weight 2"
    )


names = st.text("abinort0129_.:/-", min_size=1, max_size=6).filter(
    lambda name: NAME.fullmatch(name) and name not in RESERVED
)
tags = st.lists(names, min_size=1, max_size=3).map(tuple)
counts = st.integers(0, 2**53)
tag_constraints = st.builds(
    lambda tags, least, extra: TagConstraint(
        tags, least, None if extra is None else min(least + extra, 2**53)
    ),
    tags,
    counts,
    st.none() | counts,
)


def parts(inside):
    return st.lists(inside, min_size=2, max_size=3).map(tuple)


expressions = st.recursive(
    tag_constraints,
    lambda inside: parts(inside).map(AllTags) | parts(inside).map(AnyTags) | inside.map(NotTags),
    max_leaves=6,
)
spreads = st.builds(
    lambda tags, least, extra, group: SpreadConstraint(
        tags, least, None if extra is None else min(least + extra, 2**53), group
    ),
    tags,
    counts,
    st.none() | counts,
    names,
)
rules = st.recursive(
    st.builds(PlacementConstraint, tags, expressions, names) | spreads,
    lambda inside: parts(inside).map(AllOf) | parts(inside).map(AnyOf),
    max_leaves=4,
)
weights = st.floats(0, HEAVIEST, exclude_min=True)
constraints = st.builds(Constraint, rules, weights, st.booleans())


@given(constraints)
@settings(derandomize=True, deadline=None)
def test_every_constraint_survives_being_written_and_read(constraint):
    assert parse_constraint(format_constraint(constraint)) == constraint


@given(constraints)
@settings(derandomize=True, deadline=None, max_examples=50)
def test_every_constraint_survives_json_inside_its_job(constraint):
    job = Job("j", (TaskGroup(1, Resources(1)),), constraints=(constraint,))
    assert msgspec.json.decode(msgspec.json.encode(job), type=Job) == job


@given(constraints)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_every_constraint_survives_being_a_table(constraint) -> None:
    table = json.loads(json.dumps(write_constraint(constraint)))
    assert read_constraint(table) == constraint


@given(st.text(alphabet="ab->{},()& 12infotrd$\n", max_size=30))
@settings(derandomize=True, deadline=None, max_examples=300)
def test_any_text_is_a_constraint_or_a_syntax_error_with_a_column_inside_it(text):
    column = 0
    try:
        parse_constraint(text)
    except ConstraintSyntaxError as error:
        column = error.column
    assert 0 <= column <= len(text)


@pytest.mark.parametrize(
    ("text", "column", "problem", "expected"),
    [
        ("", 0, "unexpected the end", "a subject tag or '('"),
        ("-> {a, 1, 2} in r", 0, "unexpected '->'", "a subject tag or '('"),
        ("a & -> {b, 1, 2} in r", 4, "unexpected '->'", "a tag"),
        ("a b -> {b, 1, 2} in r", 2, "unexpected 'b'", "'&' or '->'"),
        ("a ->", 4, "unexpected the end", "'{', '(', 'not' or 'spread'"),
        ("a -> b in r", 5, "unexpected 'b'", "'{', '(', 'not' or 'spread'"),
        ("a -> {b, 1, 2} and c in r", 19, "unexpected 'c'", "'{', '(' or 'not'"),
        ("a -> spread 3 over r", 12, "unexpected '3'", "'{'"),
        ("a -> spread {3} over r", 14, "unexpected '}'", "','"),
        ("a -> spread {3, 2} over r", 16, "largest count 2", "at least 3, the least count"),
        ("a -> spread {3, inf} in r", 21, "unexpected 'in'", "'over'"),
        (
            "a -> spread {3, inf} over",
            25,
            "unexpected the end",
            "a node group such as machine or rack",
        ),
        ("a -> {, 1, 2} in r", 6, "unexpected ','", "a tag"),
        ("a -> {in, 1, 2} in r", 6, "unexpected 'in'", "a tag"),
        ("a -> {b 1, 2} in r", 8, "unexpected '1'", "'&' or ','"),
        ("a -> {b, x, 2} in r", 9, "unexpected 'x'", "the least count, a whole number"),
        ("a -> {b, 1.5, 2} in r", 9, "unexpected '1.5'", "the least count, a whole number"),
        ("a -> {b, inf, 2} in r", 9, "unexpected 'inf'", "the least count, a whole number"),
        ("a -> {b, 1} in r", 10, "unexpected '}'", "','"),
        ("a -> {b, 1, x} in r", 12, "unexpected 'x'", "the largest count, a whole number or 'inf'"),
        ("a -> {b, 3, 2} in r", 12, "largest count 2", "at least 3, the least count"),
        ("a -> {b, 1, 9007199254740993} in r", 12, "unexpected '9007199254740993'", "at most 2^53"),
        ("a -> {b, 1, 2 in r", 14, "unexpected 'in'", "'}'"),
        ("a -> ({b, 1, 2} in r", 16, "unexpected 'in'", "'and', 'or' or ')'"),
        ("a -> {b, 1, 2}", 14, "unexpected the end", "'and', 'or' or 'in'"),
        ("a -> {b, 1, 2} in", 17, "unexpected the end", "a node group such as machine or rack"),
        ("(a -> {b, 1, 2} in r", 20, "unexpected the end", "'and', 'or' or ')'"),
        (
            "a -> {b, 1, 2} in r weight",
            26,
            "unexpected the end",
            "a weight above 0 and at most 1e9",
        ),
        ("a -> {b, 1, 2} in r weight 0", 27, "unexpected '0'", "a weight above 0 and at most 1e9"),
        ("a -> {b, 1, 2} in r b", 20, "unexpected 'b'", "'and', 'or', 'weight', 'hard' or the end"),
        ("a -> {b, 1, 2} in r weight 2 b", 29, "unexpected 'b'", "'hard' or the end"),
        ("a -> {b, 1, 2} in r hard weight 2", 25, "unexpected 'weight'", "the end"),
        (
            "a $ b",
            2,
            "unknown character '$'",
            "a tag, a keyword or one of -> { } ( ) , &",
        ),
        ("(" * 200, 101, "too deep", "at most 100 levels of nesting"),
    ],
)
def test_a_syntax_error_names_its_column_and_what_was_expected(text, column, problem, expected):
    with pytest.raises(ConstraintSyntaxError) as caught:
        parse_constraint(text)
    assert (caught.value.column, caught.value.expected) == (column, expected)
    assert caught.value.problem == f"{problem} at column {column + 1} of {excerpt(text, column)}"


@pytest.mark.parametrize("text", ["(" * 40_000, "a -> {" + "b" * 40_000 + " }", "x " * 20_000])
def test_a_long_constraint_is_echoed_only_around_the_mistake(text):
    with pytest.raises(ConstraintSyntaxError) as caught:
        parse_constraint(text)
    assert len(str(caught.value)) < 300
    near = text[max(0, caught.value.column - 20) : caught.value.column]
    assert near in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TagConstraint((), 0, 1),
        lambda: TagConstraint(("and",), 0, 1),
        lambda: TagConstraint(("a b",), 0, 1),
        lambda: TagConstraint(("a",), -1, 1),
        lambda: TagConstraint(("a",), 2, 1),
        lambda: AllTags((A,)),
        lambda: AnyTags(()),
        lambda: AllOf(()),
        lambda: AnyOf(()),
        lambda: PlacementConstraint(("a",), A, "in"),
        lambda: Constraint(PlacementConstraint(("a",), A, "rack"), 0.0),
        lambda: Constraint(PlacementConstraint(("a",), A, "rack"), float("nan")),
    ],
)
def test_a_value_that_has_no_text_cannot_be_made(make):
    with pytest.raises(ModelError):
        make()


def test_every_constraint_of_the_documentation_parses():
    page = (Path(__file__).parents[2] / "docs" / "constraints.md").read_text()
    texts = re.findall(r"^    (\w+ -> .*)$", page, re.MULTILINE)
    texts += re.findall(r"^\| `([^`]* -> [^`]*)` \|", page, re.MULTILINE)
    assert len(texts) == 10
    for text in texts:
        assert format_constraint(parse_constraint(text)) == text


def test_constraints_need_no_arrays():
    code = "import sys, argosy.model.constraints.text; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
