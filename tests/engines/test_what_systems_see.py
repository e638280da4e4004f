"""Which parts of constraints each system sees: what it cannot say is left out, or the whole rule."""

from __future__ import annotations

import pytest

from argosy.engines.families.lra import sight
from argosy.model.constraints.text import format_constraint, parse_constraint

SAME = "same"


@pytest.mark.parametrize(
    ("text", "kube", "plus", "modern"),
    [
        # A negation is read as what it means, and that has to be sayable.
        ("a -> not {b, 0, 0} in rack", *["a -> {b, 1, inf} in rack"] * 3),
        (
            "a -> not {b, 3, inf} in rack",
            None,
            "a -> {b, 0, 2} in rack",
            "a -> {b, 0, 2} in rack hard",
        ),
        (
            "a -> not {b, 0, 2} in rack",
            "a -> {b, 1, inf} in rack",
            "a -> {b, 3, inf} in rack",
            "a -> {b, 1, inf} in rack",
        ),
        ("a -> not not {b, 0, 0} in rack", *["a -> {b, 0, 0} in rack"] * 3),
        (
            "a -> not not {b, 0, 2} in rack",
            None,
            "a -> {b, 0, 2} in rack",
            "a -> {b, 0, 2} in rack hard",
        ),
        ("a -> not {b, 1, 2} in rack", None, None, None),
        ("a -> not {b, 0, inf} in rack", None, None, None),
        (
            "a -> not ({b, 1, inf} or {c, 0, 0}) in rack",
            *["a -> {b, 0, 0} and {c, 1, inf} in rack"] * 3,
        ),
        (
            "a -> not ({b, 3, inf} or {c, 0, 0}) in rack",
            "a -> {c, 1, inf} in rack",
            "a -> {b, 0, 2} and {c, 1, inf} in rack",
            "a -> {c, 1, inf} in rack",
        ),
        ("a -> not ({b, 1, inf} and {c, 0, 0}) in rack", None, None, None),
        # Of a conjunction, what can be said remains.
        (
            "a -> {b, 0, 0} and {c, 0, 2} in rack",
            "a -> {b, 0, 0} in rack",
            SAME,
            "a -> {b, 0, 0} in rack",
        ),
        (
            "a -> {b, 0, 3} and {c, 0, 2} in rack",
            None,
            SAME,
            "a -> {b, 0, 3} and {c, 0, 2} in rack hard",
        ),
        ("a -> {b, 0, 0} and {c, 1, inf} in rack", SAME, SAME, SAME),
        (
            "a -> {b, 0, 0} and {c, 5, inf} in rack",
            "a -> {b, 0, 0} and {c, 1, inf} in rack",
            SAME,
            "a -> {b, 0, 0} and {c, 1, inf} in rack",
        ),
        (
            "a -> {b, 0, 0} and ({c, 1, inf} or {d, 1, inf}) in rack",
            *["a -> {b, 0, 0} in rack"] * 3,
        ),
        (
            "a -> {b, 0, 0} and {c, 0, 2} and {d, 1, inf} in rack",
            "a -> {b, 0, 0} and {d, 1, inf} in rack",
            SAME,
            "a -> {b, 0, 0} and {d, 1, inf} in rack",
        ),
        # So it is with rules.
        (
            "a -> {b, 0, 0} in rack and c -> {d, 0, 2} in rack",
            "a -> {b, 0, 0} in rack",
            SAME,
            "a -> {b, 0, 0} in rack",
        ),
        ("a -> {b, 0, 0} in rack and c -> {d, 1, inf} in zone", SAME, SAME, SAME),
        (
            "a -> {b, 0, 3} in rack and c -> {d, 0, 2} in zone",
            None,
            SAME,
            "a -> {b, 0, 3} in rack and c -> {d, 0, 2} in zone hard",
        ),
        (
            "a -> {b, 0, 0} in rack and c -> spread {0, 1} over rack",
            *["a -> {b, 0, 0} in rack"] * 3,
        ),
        ("a -> {b, 0, 0} in rack or c -> {d, 1, inf} in zone", None, None, None),
        (
            "a -> {b, 2, 2} in rack and c -> spread {0, 1} over rack",
            None,
            "a -> {b, 2, 2} in rack",
            None,
        ),
        # Weights and hardness are kept.
        (
            "a -> {b, 4, inf} in rack weight 3 hard",
            "a -> {b, 1, inf} in rack weight 3 hard",
            SAME,
            "a -> {b, 1, inf} in rack weight 3 hard",
        ),
        ("a -> {b, 0, 2} in rack weight 3", None, SAME, "a -> {b, 0, 2} in rack weight 3 hard"),
    ],
)
def test_each_system_sees_what_it_can_say(
    text: str, kube: str | None, plus: str | None, modern: str | None
) -> None:
    constraint = parse_constraint(text)

    def seen(look: object) -> str | None:
        found = look(constraint)  # type: ignore[operator]
        return None if found is None else format_constraint(found)

    looks = (sight.kube, sight.kube_plus, sight.kube_modern)
    expected = [text if each == SAME else each for each in (kube, plus, modern)]
    assert [seen(look) for look in looks] == expected
    assert seen(sight.everything) == text
    assert seen(sight.nothing) is None
