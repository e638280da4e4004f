"""Constraints in disjunctive normal form, for one kind of container.

`alternatives` returns the ways in which containers with certain tags can satisfy a rule: each is a list
of terms that must all hold, and each term is a list of tag constraints about one node set. Since
extents add up over `and` and `or` takes the smallest, the smallest sum over the alternatives is the
extent of the rule.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from itertools import product
from typing import Final, TypeAlias, TypeVar

import msgspec

from argosy.model.constraints import (
    AllOf,
    AllTags,
    AnyOf,
    AnyTags,
    Constraint,
    ConstraintRule,
    Expression,
    NotTags,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)
from argosy.model.constraints.meaning import negated
from argosy.model.constraints.parts import leaves
from argosy.model.errors import ModelError

#: Rules with more alternatives are refused, because each is evaluated for each container.
MOST_ALTERNATIVES: Final = 256


class Term(msgspec.Struct, frozen=True):
    """Tag constraints about the same set of a group. A spread is a single tag constraint whose count is
    the number of sets in use."""

    group: str
    atoms: tuple[TagConstraint, ...]
    is_spread: bool = False
    #: Number of further tag constraints that can never hold; each costs 1.
    never: int = 0


def without_choice(
    constraint: Constraint, overlapping: Collection[str]
) -> list[tuple[frozenset[str], Term]] | None:
    """The terms of all leaves with their subjects, if nobody has alternatives and none is about a group
    with overlapping sets. The expression of a hard one is judged as a whole, so it must not have several
    tag constraints either."""
    found: list[tuple[frozenset[str], Term]] = []
    for leaf in leaves(constraint.rule):
        subject = frozenset(leaf.subject)
        ways = alternatives(leaf, subject)
        if len(ways) > 1 or any(term.never for term in ways[0]):
            return None
        if constraint.hard and any(len(term.atoms) > 1 for term in ways[0]):
            return None
        if leaf.group in overlapping and not isinstance(leaf, SpreadConstraint):
            return None
        found.extend((subject, term) for term in ways[0])
    everyone = frozenset().union(*(subject for subject, _ in found))
    return found if len(alternatives(constraint.rule, everyone)) == 1 else None


def alternatives(rule: ConstraintRule, tags: frozenset[str]) -> list[tuple[Term, ...]]:
    """Empty if the rule does not concern a container with these tags."""
    match rule:
        case PlacementConstraint(subject, expression, group):
            if not tags.issuperset(subject):
                return []
            return [
                (Term(group, tuple(a for a in way if a is not None), never=way.count(None)),)
                for way in _expression(expression)
            ]
        case SpreadConstraint(subject, least, most, group):
            if not tags.issuperset(subject):
                return []
            return [(Term(group, (TagConstraint(subject, least, most),), is_spread=True),)]
        case AllOf(parts):
            concerned = [found for part in parts if (found := alternatives(part, tags))]
            if not concerned:
                return []
            return _product(concerned)
        case AnyOf(parts):
            return _bounded([way for part in parts for way in alternatives(part, tags)])


_Way: TypeAlias = tuple[TagConstraint | None, ...]


def _expression(expression: Expression) -> list[_Way]:
    """None stands for a constraint that can never hold."""
    match expression:
        case TagConstraint():
            return [(expression,)]
        case NotTags(part):
            inside = negated(part)
            return [(None,)] if inside is None else _expression(inside)
        case AnyTags(parts):
            return _bounded([way for part in parts for way in _expression(part)])
        case AllTags(parts):
            return _product([_expression(part) for part in parts])


_Part = TypeVar("_Part")


def _product(parts: list[list[tuple[_Part, ...]]]) -> list[tuple[_Part, ...]]:
    """All combinations of one way from each part."""
    total = math.prod(map(len, parts))
    if total > MOST_ALTERNATIVES:
        _refuse(total)
    return [tuple(each for way in ways for each in way) for ways in product(*parts)]


def _bounded(ways: list[tuple[_Part, ...]]) -> list[tuple[_Part, ...]]:
    if len(ways) > MOST_ALTERNATIVES:
        _refuse(len(ways))
    return ways


def _refuse(count: int) -> None:
    raise ModelError(
        f"a constraint with {count} alternatives",
        expected=f"at most {MOST_ALTERNATIVES}",
        hint="split it into several constraints",
    )
