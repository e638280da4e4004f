"""What becomes of an application's constraints that contradict the operator's.

An operator's constraint bounds how many containers its subjects see in a set. An application's
contradicts it if it has the same subjects, or some of them, and

- asks for more than the operator allows, of containers that the operator counts, in the same set or in
  one that lies within it; or
- allows fewer than the operator asks for, of containers that include those the operator counts, in the
  same set or in one that encloses it.

Then its bound becomes the nearest count that the operator allows, it is soft, and all constraints of an
application that contradict the same bound together weigh no more than the operator's. So if containers
want to gather in sets that are too small for them, leaving some apart is cheaper than exceeding the
operator's limit: with at most c others, r containers apart cost at most r, and r too many at least
r (c + 2) / c.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from argosy.model.constraints import (
    AllOf,
    AllTags,
    AnyOf,
    AnyTags,
    Constraint,
    ConstraintRule,
    Expression,
    PlacementConstraint,
    TagConstraint,
)
from argosy.model.constraints.parts import conjuncts
from argosy.model.machines import MACHINE_GROUP
from argosy.solvers.placement import Family


class OperatorBound(msgspec.Struct, frozen=True):
    """A bound that holds unconditionally, and the weight of the operator's constraint it is part of."""

    weight: float
    subject: frozenset[str]
    atom: TagConstraint
    group: str


class Overrides:
    """The operator's bounds on a cell with certain node groups."""

    def __init__(self, operator: Sequence[Constraint], families: Mapping[str, Family]) -> None:
        self._bounds = [bound for each in operator for bound in _bounds(each.weight, each.rule)]
        self._within = {
            (inner, outer)
            for inner in families
            for outer in families
            if inner == outer or _lies_within(families[inner], families[outer])
        }

    def settled(self, constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
        """An application's constraints, changed where they contradict the operator's."""
        if not self._bounds:
            return tuple(constraints)
        rows: list[tuple[Constraint, Constraint, set[int]]] = []
        for constraint in constraints:
            parts = [(part, *self._changed(part)) for part in conjuncts(constraint)]
            if any(against for _, _, against in parts):
                rows += parts
            else:
                rows.append((constraint, constraint, set()))
        times = Counter(number for _, _, against in rows for number in against)
        return tuple(self._weakened(new, against, times) for _, new, against in rows)

    def _weakened(
        self, constraint: Constraint, against: set[int], times: Mapping[int, int]
    ) -> Constraint:
        if not against:
            return constraint
        most = min(self._bounds[number].weight / times[number] for number in against)
        weight = min(constraint.weight, most)
        return msgspec.structs.replace(constraint, weight=weight, hard=False)

    def _changed(self, constraint: Constraint) -> tuple[Constraint, set[int]]:
        """The constraint within the operator's bounds, and the indices of those it contradicted."""
        against: set[int] = set()
        rule = self._rule(constraint.rule, against)
        return msgspec.structs.replace(constraint, rule=rule), against

    def _rule(self, rule: ConstraintRule, against: set[int]) -> ConstraintRule:
        match rule:
            case AllOf(parts):
                return AllOf(tuple(self._rule(part, against) for part in parts))
            case AnyOf(parts):
                return AnyOf(tuple(self._rule(part, against) for part in parts))
            case PlacementConstraint(subject, expression, group):
                bounds = [
                    number
                    for number, bound in enumerate(self._bounds)
                    if bound.subject <= set(subject)
                ]
                inside = self._expression(expression, group, bounds, against)
                return PlacementConstraint(subject, inside, group)
        return rule

    def _expression(
        self,
        expression: Expression,
        group: str,
        bounds: Sequence[int],
        against: set[int],
    ) -> Expression:
        """Negated constraints are left alone."""
        match expression:
            case TagConstraint():
                return self._atom(expression, group, bounds, against)
            case AllTags(parts):
                return AllTags(tuple(self._expression(p, group, bounds, against) for p in parts))
            case AnyTags(parts):
                return AnyTags(tuple(self._expression(p, group, bounds, against) for p in parts))
        return expression

    def _atom(
        self, atom: TagConstraint, group: str, bounds: Sequence[int], against: set[int]
    ) -> TagConstraint:
        tags, least, most = set(atom.tags), atom.least, atom.most
        for number in bounds:
            bound = self._bounds[number]
            named, limit = set(bound.atom.tags), bound.atom.most
            if (
                limit is not None
                and least > limit
                and tags >= named
                and self._is_within(group, bound.group)
            ):
                least = limit
                against.add(number)
            if (
                most is not None
                and most < bound.atom.least
                and tags <= named
                and self._is_within(bound.group, group)
            ):
                most = bound.atom.least
                against.add(number)
        return TagConstraint(atom.tags, least, most if most is None else max(least, most))

    def _is_within(self, inner: str, outer: str) -> bool:
        """Whether every set of the inner group lies within the sets of the outer one that it meets."""
        return inner in (outer, MACHINE_GROUP) or (inner, outer) in self._within


def _lies_within(inner: Family, outer: Family) -> bool:
    if inner.overlaps or outer.overlaps:
        return False
    pairs = {
        (a, b)
        for a, b in zip(inner.set_of.tolist(), outer.set_of.tolist(), strict=True)
        if a < inner.sets
    }
    return len(pairs) == len({a for a, _ in pairs}) and all(b < outer.sets for _, b in pairs)


def _bounds(weight: float, rule: ConstraintRule) -> Iterator[OperatorBound]:
    match rule:
        case AllOf(parts):
            for part in parts:
                yield from _bounds(weight, part)
        case PlacementConstraint(subject, TagConstraint() as atom, group):
            yield OperatorBound(weight, frozenset(subject), atom, group)
        case PlacementConstraint(subject, AllTags(inside), group):
            for each in inside:
                yield from _bounds(weight, PlacementConstraint(subject, each, group))
