"""What lint says of constraints, word for word, and where its bounds are."""

from __future__ import annotations

import pytest

from argosy.model.constraints.lint import LintFinding, Surroundings, lint, unsound
from argosy.model.constraints.text import parse_constraint

AROUND = Surroundings(
    groups={"rack": 3, "zone": 2},
    containers=(
        (frozenset({"web", "front", "appID:shop"}), 2),
        (frozenset({"web", "back"}), 3),
        (frozenset({"db"}), 1),
    ),
    machines=(frozenset({"gpu"}), frozenset({"disk:ssd"})),
)


def findings(*texts: str, around: Surroundings | None = AROUND) -> list[LintFinding]:
    return lint([parse_constraint(text) for text in texts], around)


def told(*texts: str, around: Surroundings | None = AROUND) -> list[tuple[str, str, str]]:
    return [(each.severity, each.code, each.problem) for each in findings(*texts, around=around)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("web -> {db, 1, inf} in rack", []),
        ("web -> {gpu, 1, inf} and {disk:ssd, 0, 0} in machine", []),
        ("appID:self & web -> {appID:self, 0, 0} in zone", []),
        ("appID:self & back -> spread {3, inf} over rack", []),
        (
            "appID:self & gone -> {appID:self, 0, 0} in zone",
            [
                ("warning", "nobody", "no container carries appID:self & gone"),
                ("warning", "nobody", "nobody carries the tag 'gone'"),
            ],
        ),
        (
            "web -> {db, 1, inf} in racks",
            [
                (
                    "error",
                    "unknown-group",
                    "there is no node group 'racks'; did you mean 'rack'?",
                )
            ],
        ),
        (
            "web -> {db, 1, inf} in hall",
            [("error", "unknown-group", "there is no node group 'hall'")],
        ),
        (
            "web -> spread {1, 2} over hall",
            [("error", "unknown-group", "there is no node group 'hall'")],
        ),
        ("web -> spread {3, inf} over rack", []),
        (
            "web -> spread {4, inf} over rack",
            [("error", "spread", "spread over 4 sets, but rack has 3")],
        ),
        ("front -> spread {2, inf} over zone", []),
        ("web & back -> spread {3, inf} over rack", []),
        (
            "front -> spread {3, inf} over rack",
            [("warning", "spread", "spread over 3 sets, but there are 2 such containers")],
        ),
        ("web -> spread {6, inf} over machine", [
            ("warning", "spread", "spread over 6 sets, but there are 5 such containers")
        ]),
        ("web -> spread {5, inf} over machine", []),
        (
            "front & back -> {db, 1, inf} in rack",
            [("warning", "nobody", "no container carries front & back")],
        ),
        (
            "web -> {dbb, 1, inf} and {zz, 0, 0} in rack",
            [
                ("warning", "nobody", "nobody carries the tag 'dbb'; did you mean 'db'?"),
                ("warning", "nobody", "nobody carries the tag 'zz'"),
            ],
        ),
        (
            "gone -> {db, 1, inf} in rack",
            [
                ("warning", "nobody", "no container carries gone"),
                ("warning", "nobody", "nobody carries the tag 'gone'"),
            ],
        ),
        (
            "web -> {containerID:shop/7, 1, inf} in rack",
            [
                (
                    "warning",
                    "nobody",
                    "nobody carries the tag 'containerID:shop/7'; shop has no container 7",
                )
            ],
        ),
        (
            "web -> {containerID:mall/7, 1, inf} in rack",
            [("warning", "nobody", "nobody carries the tag 'containerID:mall/7'")],
        ),
        (
            "web -> {db, 0, 0} in rack or db -> {web, 0, 0} in rack or web -> {web, 0, 1} in rack",
            [
                (
                    "warning",
                    "subjects",
                    "parts of an 'or' speak of db and of web: each container is judged by the parts"
                    " that concern it",
                )
            ],
        ),
        ("web -> {db, 0, 0} in rack or web -> {db, 0, 1} in zone", []),
        ("back & web -> {db, 0, 0} in rack or web & back -> {db, 0, 1} in zone", []),
        ("web -> {db, 0, 0} in rack and db -> {web, 0, 0} in rack", []),
        (
            "db -> {web, 1, 9} in rack and (web -> {db, 0, 0} in rack or db -> {web, 0, 0} in rack)",
            [
                (
                    "warning",
                    "subjects",
                    "parts of an 'or' speak of db and of web: each container is judged by the parts"
                    " that concern it",
                )
            ],
        ),
    ],
)  # fmt: skip
def test_a_constraint_alone(text: str, expected: list[tuple[str, str, str]]) -> None:
    assert told(text) == expected


@pytest.mark.parametrize(
    ("expression", "is_never"),
    [
        ("{db, 1, inf}", False),
        ("not {db, 0, inf}", True),
        ("not {db, 1, inf}", False),
        ("not {db, 0, 5}", False),
        ("not not {db, 0, inf}", False),
        ("not not not {db, 0, inf}", True),
        ("{db, 0, 1} and {db, 2, inf}", True),
        ("{db, 0, 1} and {db, 1, inf}", False),
        ("{db, 0, 1} and {web, 2, inf}", False),
        ("{db, 0, 1} and {web & db, 2, inf}", False),
        ("{db & web, 0, 1} and {web & db, 2, inf}", True),
        ("{db, 3, 5} and {db, 1, 9} and {db, 0, 2}", True),
        ("{db, 0, 2} and {db, 1, 9} and {db, 3, inf}", True),
        ("{db, 1, inf} and not {web, 0, inf}", True),
        ("{db, 1, inf} or not {web, 0, inf}", False),
        ("not {db, 0, inf} or not {web, 0, inf}", True),
        ("not {db, 0, inf} or {db, 0, 1} and {db, 2, 2}", True),
        ("not ({db, 1, inf} or {db, 0, 1})", True),
        ("not ({db, 0, inf} and {web, 0, inf})", True),
        ("not ({db, 0, inf} and {web, 1, inf})", False),
        ("not ({db, 0, inf} or {web, 1, inf})", True),
    ],
)
def test_what_can_never_hold(expression: str, is_never: bool) -> None:
    expected = [("error", "never", "the expression can never hold")] if is_never else []
    assert told(f"web -> {expression} in rack") == expected
    assert told(f"web -> {expression} in rack", around=None) == expected


def test_nothing_is_said_of_what_is_not_known() -> None:
    texts = ("a -> {b, 1, inf} in hall", "a -> spread {9, inf} over hall", "c -> {d, 0, 0} in hall")
    assert told(*texts, around=None) == []
    assert [code for _, code, _ in told(*texts, around=Surroundings(groups={}))] == [
        "unknown-group"
    ] * 3
    containers = Surroundings(containers=((frozenset("abc"), 9),))
    assert told(*texts, around=containers) == [("warning", "nobody", "nobody carries the tag 'd'")]


def test_a_constraint_that_stands_again_is_told_with_the_first_that_says_the_same() -> None:
    one, other = "web -> {db, 1, 2} in rack", "web -> {db, 1, 2} in zone"
    assert findings(one, other, one, one, f"{one} hard") == [
        LintFinding("warning", "twice", 2, "the same constraint stands twice", 0),
        LintFinding("warning", "twice", 3, "the same constraint stands twice", 0),
    ]


def test_two_that_contradict_each_other_are_told_once_and_with_both() -> None:
    more, less = "web -> {db, 3, inf} and {db, 4, inf} in rack", "web -> {db, 0, 2} in rack"
    why = "at least {} db in a rack, but at most 2 db in a rack (against '{}')"
    assert findings(more, less) == [LintFinding("error", "conflict", 1, why.format(3, more), 0)]
    assert findings(less, more) == [LintFinding("error", "conflict", 1, why.format(3, less), 0)]
    # Parts of one constraint are no pair.
    assert findings("web -> {db, 3, inf} in rack and web -> {db, 0, 2} in rack") == []
    # Nor is a choice, or what is negated.
    assert findings(f"{more} or web -> {{db, 9, 9}} in zone", less) == []
    assert findings("web -> not {db, 0, 2} in rack", less) == []


def test_the_demands_of_a_conjunction_count_one_by_one() -> None:
    several = "db -> {web, 1, 9} in zone and web -> {gpu, 0, 9} and {db, 3, inf} in rack"
    [found] = findings("web -> {db, 0, 2} in rack", several)
    assert (found.constraint, found.other, found.code) == (1, 0, "conflict")


def test_findings_are_in_the_order_of_the_constraints() -> None:
    texts = (
        "web -> {db, 0, 2} in rack",
        "web -> {zz, 1, inf} in hall",
        "web -> {db, 0, 1} in rack",
        "web -> {db, 3, inf} in rack",
        "web -> {db, 0, 2} in rack",
    )
    assert [(each.constraint, each.code, each.other) for each in findings(*texts)] == [
        (1, "unknown-group", None),
        (1, "nobody", None),
        (3, "conflict", 0),
        (3, "conflict", 2),
        (4, "twice", 0),
        (4, "conflict", 3),
    ]


def test_only_an_error_of_one_constraint_alone_makes_it_unsound() -> None:
    def first(*texts: str) -> tuple[int, str] | None:
        found = unsound([parse_constraint(text) for text in texts], AROUND)
        return None if found is None else (found.constraint, found.code)

    warned = "gone -> {zz, 1, inf} in rack"
    assert first() is first(warned) is None
    assert first("web -> {db, 3, inf} in rack", "web -> {db, 0, 2} in rack") is None
    assert first(warned, "web -> not {db, 0, inf} in rack", "web -> {db, 1, 2} in hall") == (
        1,
        "never",
    )
    assert first("gone -> spread {7, inf} over rack") == (0, "spread")
