"""Placement constraints after Medea: which containers must, or must not, be near which others.

The one form ``{subject_tag, {c_tag, c_min, c_max}, node_group}`` of the paper's section 4.2 says
that each container with the subject's tags is to be in a node set of the group in which at least
`c_min` and at most `c_max` other containers have the tags `c_tag`. Affinity is (1, none), anti-affinity
(0, 0), and all else cardinality. Beyond the paper, tag constraints may be negated, and a spread bounds
the number of node sets that containers are in.

Values only: `text` and `tables` read and write them, `meaning` says what they mean for a placement.
Values compare by structure: ``a and (b and c)`` is not ``a and b and c``.
"""

from __future__ import annotations

import math
import re
from typing import Final, TypeAlias

import msgspec

from argosy.model.errors import ModelError
from argosy.model.units import LARGEST

#: Keywords of the text form, which cannot be tags or groups.
RESERVED: Final = frozenset({"and", "or", "not", "in", "inf", "weight", "hard", "spread", "over"})
#: A tag or group, possibly with a namespace (``appID:0023``). A hyphen does not match if it begins an
#: arrow.
NAME: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.:/]|-(?!>))*")
HEAVIEST: Final = 1e9


class TagConstraint(msgspec.Struct, frozen=True, tag="tags"):
    """At least `least` and at most `most` containers that have all of `tags`; None: no upper bound."""

    tags: tuple[str, ...]
    least: int
    most: int | None

    def __post_init__(self) -> None:
        _check_names(self.tags)
        _check_bounds(self.least, self.most, "containers")


class AllTags(msgspec.Struct, frozen=True, tag="all"):
    """Every part holds in the same node set."""

    parts: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


class AnyTags(msgspec.Struct, frozen=True, tag="any"):
    """At least one part holds in the node set."""

    parts: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


class NotTags(msgspec.Struct, frozen=True, tag="not"):
    part: Expression


Expression: TypeAlias = TagConstraint | AllTags | AnyTags | NotTags


class PlacementConstraint(msgspec.Struct, frozen=True, tag="placement"):
    """Each container with all tags of `subject` is in a set of `group` where `expression` holds."""

    subject: tuple[str, ...]
    expression: Expression
    group: str

    def __post_init__(self) -> None:
        _check_names(self.subject)
        _check_names((self.group,))


class SpreadConstraint(msgspec.Struct, frozen=True, tag="spread"):
    """The containers with all tags of `subject` are in at least `least` and at most `most` sets of
    `group`, counted over the whole cell."""

    subject: tuple[str, ...]
    least: int
    most: int | None
    group: str

    def __post_init__(self) -> None:
        _check_names(self.subject)
        _check_names((self.group,))
        _check_bounds(self.least, self.most, "node sets")


class AllOf(msgspec.Struct, frozen=True, tag="all-of"):
    """All parts that concern a container hold for it, each possibly in a different node set."""

    parts: tuple[ConstraintRule, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


class AnyOf(msgspec.Struct, frozen=True, tag="any-of"):
    """At least one of the parts that concern a container holds for it: the disjunction of the paper's
    compound constraints."""

    parts: tuple[ConstraintRule, ...]

    def __post_init__(self) -> None:
        _check_parts(self.parts)


Leaf: TypeAlias = PlacementConstraint | SpreadConstraint
ConstraintRule: TypeAlias = Leaf | AllOf | AnyOf


class Constraint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule with its weight relative to other constraints. Violating a soft constraint costs its
    weight; a `hard` one forbids the placement."""

    rule: ConstraintRule
    weight: float = 1.0
    hard: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and 0 < self.weight <= HEAVIEST):
            raise ModelError(f"a weight of {self.weight}", expected="more than 0, at most 1e9")


def _check_bounds(least: int, most: int | None, what: str) -> None:
    if not 0 <= least <= LARGEST:
        raise ModelError(f"at least {least} {what}", expected="0 to 2^53")
    if most is not None and not least <= most <= LARGEST:
        raise ModelError(
            f"at least {least} and at most {most} {what}",
            expected="a largest count of at least the smallest",
        )


def _check_names(names: tuple[str, ...]) -> None:
    if not names:
        raise ModelError("no tags", expected="at least one tag")
    for name in names:
        if name in RESERVED or NAME.fullmatch(name) is None:
            raise ModelError(
                f"{name!r} as a tag or group of a constraint",
                expected="letters, digits and any of _ . : / - that is not a word such as 'and'",
            )


def _check_parts(parts: tuple[object, ...]) -> None:
    if len(parts) < 2:
        raise ModelError(f"{len(parts)} parts joined", expected="at least two")
