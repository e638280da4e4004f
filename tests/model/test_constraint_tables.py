"""Constraints in tables and in YARN's words: each mistake with its place, and what is written."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.model.constraints.tables import read_constraint, write_constraint
from argosy.model.constraints.text import format_constraint, parse_constraint
from argosy.model.constraints.yarn import from_yarn, to_yarn
from argosy.model.errors import ArgosyError, ModelError, Untranslatable
from argosy.model.resources import Resources

ONE = Resources(1, 1)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMES = "letters, digits and any of _ . : / - that is not a word such as 'and'"


def said(error: ArgosyError) -> tuple[str | None, str, str | None, str | None]:
    return error.field, error.problem, error.expected, error.hint


KEYS = "one of subject, group, tags, min, max, all, any, not, spread, all_of, any_of"


class TestTables:
    @pytest.mark.parametrize(
        ("table", "expected"),
        [
            (
                7,
                (
                    None,
                    "7 is not a constraint",
                    'a table, or text such as "hb -> {hb, 0, 0} in machine"',
                    None,
                ),
            ),
            (
                {"subject": "a", "tags": "b", "group": 5},
                ("group", "5 is not a group", 'a node group such as "machine" or "rack"', None),
            ),
            (
                {"subject": "a", "tags": "b"},
                ("group", "no group", 'a node group such as "machine" or "rack"', None),
            ),
            (
                {"tags": "b", "group": "r"},
                (None, "missing key 'subject'", 'subject = "tag" or "tag & tag"', None),
            ),
            (
                {"subject": "a", "group": "r"},
                (None, "missing key 'tags'", 'tags = "tag" or "tag & tag"', None),
            ),
            (
                {"subject": 3, "tags": "b", "group": "r"},
                ("subject", "3 is no tags", 'text such as "hb & mem", or an array of tags', None),
            ),
            (
                {"subject": "a", "tags": ["b", 4], "group": "r"},
                (
                    "tags",
                    "an array is no tags",
                    'text such as "hb & mem", or an array of tags',
                    None,
                ),
            ),
            (
                {"subject": "a", "tags": "b", "min": True, "group": "r"},
                ("min", "true does not fit", "a whole number", None),
            ),
            (
                {"subject": "a", "tags": "b", "max": "many", "group": "r"},
                ("max", "'many' does not fit", 'a whole number or "inf"', None),
            ),
            (
                {"subject": "a", "tags": "b", "mx": 1, "group": "r"},
                ("mx", "unknown key 'mx'", f"{KEYS}, weight, hard", "did you mean 'max'?"),
            ),
            (
                {"subject": "a", "tags": "b", "all": [], "group": "r"},
                ("tags", "unknown key 'tags'", "one of all", None),
            ),
            (
                {"subject": "a", "not": {"tags": "b"}, "min": 1, "group": "r"},
                ("min", "unknown key 'min'", "one of not", None),
            ),
            (
                {"subject": "a", "spread": {"max": 2}, "tags": "b", "group": "r"},
                ("tags", "unknown key 'tags'", "one of subject, group, spread", None),
            ),
            (
                {"subject": "a", "spread": 2, "group": "r"},
                ("spread", "2 is not a table", "a table", None),
            ),
            (
                {"subject": "a", "spread": {"min": 3, "max": 2}, "group": "r"},
                (
                    "spread",
                    "at least 3 and at most 2 node sets",
                    "a largest count of at least the smallest",
                    None,
                ),
            ),
            (
                {"subject": "a", "any": {"tags": "b"}, "group": "r"},
                ("any", "a table is not an array", "an array of at least two tables", None),
            ),
            (
                {"subject": "a", "any": [{"tags": "b"}], "group": "r"},
                ("any", "1 parts joined", "at least two", None),
            ),
            (
                {
                    "subject": "a",
                    "all": [{"tags": "b"}, {"not": {"any": [{"tags": "c"}, 5]}}],
                    "group": "r",
                },
                ("all[1].not.any[1]", "5 is not a table", "a table", None),
            ),
            (
                {"all_of": ["a -> {b, 0, 0} in r weight 2", "a -> {b, 0, 1} in r"]},
                (
                    "all_of[0]",
                    "a weight inside a compound constraint",
                    "it beside all_of or any_of",
                    None,
                ),
            ),
            (
                {
                    "any_of": [
                        {"subject": "a", "tags": "b", "group": "r", "hard": True},
                        "a -> {b, 0, 1} in r",
                    ]
                },
                ("any_of[0].hard", "unknown key 'hard'", KEYS, None),
            ),
            (
                {"any_of": ["a -> {b, 0, 0} in r", "a -> {b, 0, 1} in r"], "group": "r"},
                ("group", "unknown key 'group'", "one of any_of", None),
            ),
            (
                {"subject": "a", "tags": "b", "group": "r", "weight": 0},
                ("weight", "a weight of 0.0", "more than 0, at most 1e9", None),
            ),
            (
                {"subject": "a", "tags": "b", "group": "in"},
                (None, "'in' as a tag or group of a constraint", NAMES, None),
            ),
        ],
    )
    def test_each_mistake_has_its_words(self, table: Any, expected: tuple[Any, ...]) -> None:
        with pytest.raises(ModelError) as caught:
            read_constraint(table)
        assert said(caught.value) == expected

    def test_bounds_are_none_unless_given(self) -> None:
        plain = {"subject": "a & b", "tags": ["c", "d"], "group": "r"}
        for more, expected in (
            ({}, "{c & d, 0, inf} in r"),
            ({"min": 2}, "{c & d, 2, inf} in r"),
            ({"max": 2}, "{c & d, 0, 2} in r"),
            ({"max": "inf"}, "{c & d, 0, inf} in r"),
            ({"max": float("inf"), "hard": True}, "{c & d, 0, inf} in r hard"),
            ({"min": 2, "max": 2, "weight": 3}, "{c & d, 2, 2} in r weight 3"),
        ):
            read = read_constraint(plain | more)
            assert format_constraint(read) == f"a & b -> {expected}"
        assert format_constraint(read_constraint({"subject": "a", "spread": {}, "group": "r"})) == (
            "a -> spread {0, inf} over r"
        )

    @pytest.mark.parametrize(
        ("text", "table"),
        [
            (
                "a & b -> {c & d, 0, inf} in r",
                {"subject": "a & b", "tags": "c & d", "group": "r"},
            ),
            (
                "a -> {c, 1, 0} in r weight 0.5 hard".replace("1, 0", "0, 0"),
                {"subject": "a", "tags": "c", "max": 0, "group": "r", "weight": 0.5, "hard": True},
            ),
            (
                "a -> {c, 1, 2} and not {d, 3, inf} in r",
                {
                    "subject": "a",
                    "all": [
                        {"tags": "c", "min": 1, "max": 2},
                        {"not": {"tags": "d", "min": 3}},
                    ],
                    "group": "r",
                },
            ),
            (
                "a -> spread {2, 3} over r or a -> {c, 0, 1} or {d, 0, 1} in z weight 2",
                {
                    "any_of": [
                        {"subject": "a", "spread": {"min": 2, "max": 3}, "group": "r"},
                        {
                            "subject": "a",
                            "any": [{"tags": "c", "max": 1}, {"tags": "d", "max": 1}],
                            "group": "z",
                        },
                    ],
                    "weight": 2,
                },
            ),
            (
                "a -> {b, 1, inf} in r and a -> {c, 0, inf} in z hard",
                {
                    "all_of": [
                        {"subject": "a", "tags": "b", "min": 1, "group": "r"},
                        {"subject": "a", "tags": "c", "group": "z"},
                    ],
                    "hard": True,
                },
            ),
        ],
    )
    def test_a_table_is_written_without_defaults(self, text: str, table: dict[str, Any]) -> None:
        constraint = parse_constraint(text)
        assert write_constraint(constraint) == table
        assert read_constraint(table) == constraint

    def test_a_hundred_levels_are_deep_enough(self) -> None:
        def nested(levels: int) -> dict[str, Any]:
            inside: dict[str, Any] = {"tags": "b"}
            for _ in range(levels):
                inside = {"not": inside}
            return {"subject": "a", **inside, "group": "r"}

        read_constraint(nested(100))
        with pytest.raises(ModelError, match="too deep; expected at most 100 levels of nesting"):
            read_constraint(nested(101))


class TestYarn:
    @pytest.mark.parametrize(
        ("text", "problem", "column", "expected"),
        [
            (
                "zk,IN,NODE,a",
                "unexpected text",
                1,
                "a source such as zk=3, and a constraint after it",
            ),
            (
                "zk=1,IN,NODE,a:hb,IN,NODE,b",
                "unexpected text",
                16,
                "a source such as zk=3, and a constraint after it",
            ),
            ("zk=1,IN,NODE,a)", "unexpected ')'", 15, None),
            ("zk=1,AND(IN,NODE,a:IN,NODE,b", "missing ')'", 29, None),
            ("zk=1,AND(IN,NODE,a:IN,NODE,b)c", "unexpected text after ')'", 30, None),
            ("zk=1,OR(IN,NODE,a)", "one part in OR(", 6, "at least two, parted by ':'"),
            ("zk=1,and(IN,NODE,a)", "one part in AND", 6, "at least two, parted by ':'"),
            ("zk=1,NEAR,NODE,a", "unknown kind 'NEAR'", 6, "IN, NOTIN, CARDINALITY, AND or OR"),
            ("zk=1,IN", "unknown scope ''", 9, "NODE or RACK"),
            ("zk=1,IN,HALL,a", "unknown scope 'HALL'", 9, "NODE or RACK"),
            ("zk=1,IN,NODE", "no tags", 13, "at least one tag"),
            ("zk=1,CARDINALITY,NODE,1,2", "no bounds", 26, "tags, the least and the largest count"),
            (
                "zk=1,CARDINALITY,NODE,a,b,1,2",
                "a cardinality of several tags",
                6,
                "one tag: YARN adds them up",
            ),
            ("zk=1,IN,NODE,a b", "tag 'a b'", 6, "letters, digits and _ . -"),
            (
                "zk=1,IN,NODE,not-self/b",
                "namespace 'not-self'",
                6,
                "self, all, app-id/ID or app-tag/TAG",
            ),
        ],
    )
    def test_each_mistake_has_its_place_and_words(
        self, text: str, problem: str, column: int, expected: str | None
    ) -> None:
        with pytest.raises(Untranslatable) as caught:
            from_yarn(text)
        error = caught.value
        assert error.problem.startswith(f"{problem} at column {column} of ")
        assert error.expected == expected

    def test_words_may_be_small_and_tags_have_spaces_around_them(self) -> None:
        small, large = "zk=2,{}(in,node,a: NOTIN,RACK,b)", "zk=2,{}(IN,NODE,a:NOTIN,RACK,b)"
        for word in ("and", "or"):
            with pytest.raises(Untranslatable, match="unknown kind ' NOTIN'"):
                from_yarn(small.format(word))
            assert from_yarn(large.format(word)) == from_yarn(large.format(word.upper()))
        assert from_yarn("zk=2,cardinality,rack, a ,1,2") == from_yarn(
            "zk=2,CARDINALITY,RACK,a,1,2"
        )

    def test_several_tags_are_any_of_them_or_none_of_them(self) -> None:
        own = "appID:self & zk -> "
        for kind, expected in (
            ("IN", "{appID:self & a, 1, inf} or {b, 1, inf} in rack hard"),
            ("NOTIN", "{appID:self & a, 0, 0} and {b, 0, 0} in rack hard"),
        ):
            [part] = from_yarn(f"zk=12,{kind},RACK,a,all/b")
            assert (part.tag, part.count) == ("zk", 12)
            assert format_constraint(part.constraint) == own + expected

    @pytest.mark.parametrize(
        ("text", "problem", "hint"),
        [
            ("{a, 1, inf} in rack", "YARN's constraints are hard", "say `hard`, or leave it out"),
            ("{a, 1, inf} in zone hard", "YARN knows no node group 'zone'", "machine or rack"),
            (
                "not {a, 1, inf} in rack hard",
                "YARN has no negation",
                "write what is meant with NOTIN",
            ),
            ("{a, 2, inf} in rack hard", "YARN's cardinality has a largest count", None),
            ("{x:y, 1, inf} in rack hard", "YARN's tags have no namespaces of their own", None),
            (
                "{a & b & c, 1, inf} in rack hard",
                "YARN counts one tag, of one application or of all",
                None,
            ),
            (
                "{appID:x, 1, inf} in rack hard",
                "YARN counts one tag, of one application or of all",
                None,
            ),
            ("spread {1, 2} over rack hard", "YARN has no spread over node sets", None),
        ],
    )
    def test_what_it_cannot_say_is_told_with_a_way_around(
        self, text: str, problem: str, hint: str | None
    ) -> None:
        constraint = f"appID:self & zk -> {text}"
        with pytest.raises(Untranslatable) as caught:
            to_yarn([parse_constraint(constraint)], {"zk": 1})
        assert (caught.value.problem, caught.value.hint) == (f"'{constraint}': {problem}", hint)

    @pytest.mark.parametrize(
        "subject",
        ["zk", "appID:self", "appID:other & zk", "appID:self & a:b", "appID:self & a & b"],
    )
    def test_a_source_is_one_tag_of_the_own_application(self, subject: str) -> None:
        with pytest.raises(Untranslatable, match="YARN's source is one plain tag"):
            to_yarn([parse_constraint(f"{subject} -> {{a, 1, inf}} in rack hard")], {"zk": 1})

    def test_a_compound_has_one_source(self) -> None:
        both = (
            "appID:self & {} -> {{x, 1, inf}} in rack {} "
            "appID:self & {} -> {{y, 0, 2}} in machine hard"
        )
        for word in ("and", "or"):
            one = parse_constraint(both.format("a", word, "a"))
            written = f"a=4,{word.upper()}(IN,RACK,all/x:CARDINALITY,NODE,all/y,0,2)"
            assert to_yarn([one], {"a": 4, "b": 1}) == written
            with pytest.raises(Untranslatable, match="compound constraints have one source tag"):
                to_yarn([parse_constraint(both.format("a", word, "b"))], {"a": 4, "b": 1})
