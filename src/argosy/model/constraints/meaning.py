"""The meaning of constraints: a slow reference implementation, with which all algorithms are compared.

A *placement* says on which machine each container is. For a node set S and tags c, the cardinality
gamma_S(c) is the number of containers on machines of S that carry all of c, and of machines of S whose
static tags hold all of c. A container is judged without itself: where it carries c, it sees one less.

A container with the subject's tags on machine n keeps ``s -> E in G`` if some set S of G that holds n
makes the expression E true. How far it is from that is the *extent*:

    {c, least, most}    max(0, least - g) / max(1, least) + max(0, g - most) / max(1, most)
    E and F             the sum              E or F    the smaller
    not E               the extent of E with the negation moved inwards; what can never hold has 1
    in G                the smallest over the sets of G that hold n; 1 if there is none
    spread {l, m} over G    as the first line, where g is how many sets of G hold a subject
    rule and rule       the sum over those that concern the container
    rule or rule        the smallest of those

So an extent is 0 if and only if the container keeps the constraint, and it grows with the distance.
A placement's *violation* is the sum of weight times extent over all constraints and containers;
containers with an extent above 0 are the *violating* ones.

Nothing here is optimised, and no algorithm shares this code.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from argosy.model.machines import MACHINE_GROUP, Machine, static_tags


class Container(msgspec.Struct, frozen=True):
    """A running container: all its tags, including automatic ones, and the name of its machine."""

    tags: frozenset[str]
    machine: str


class Violation(msgspec.Struct, frozen=True):
    """A container (index) that violates a constraint (index), and by how much."""

    constraint: int
    container: int
    extent: float


class Judgement(msgspec.Struct, frozen=True):
    """The violations of a placement, summed up."""

    violations: tuple[Violation, ...]
    #: Weight times extent, over all violations.
    total: float
    #: Number of pairs of a constraint and a container that it concerns.
    concerned: int

    @property
    def containers(self) -> int:
        """Number of containers that violate something."""
        return len({violation.container for violation in self.violations})


class Meaning:
    """Judges placements on a set of machines."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self.static = {machine.name: static_tags(machine.attributes) for machine in machines}
        #: The machines in each set of each group.
        self.members: dict[str, dict[str, set[str]]] = {
            MACHINE_GROUP: {machine.name: {machine.name} for machine in machines}
        }
        for machine in machines:
            for group, names in machine.joins.items():
                for name in names:
                    self.members.setdefault(group, {}).setdefault(name, set()).add(machine.name)

    def judge(
        self, constraints: Sequence[Constraint], containers: Sequence[Container]
    ) -> Judgement:
        violations = []
        total = 0.0
        concerned = 0
        for number, constraint in enumerate(constraints):
            for index, container in enumerate(containers):
                extent = self.extent(constraint.rule, container, containers)
                if extent is None:
                    continue
                concerned += 1
                if extent > 0:
                    violations.append(Violation(number, index, extent))
                    total += constraint.weight * extent
        return Judgement(tuple(violations), total, concerned)

    def extent(
        self, rule: ConstraintRule, container: Container, containers: Sequence[Container]
    ) -> float | None:
        """How far the container is from satisfying the rule; None if the rule does not concern it."""
        match rule:
            case AllOf(parts) | AnyOf(parts):
                judged = [self.extent(part, container, containers) for part in parts]
                extents = [extent for extent in judged if extent is not None]
                if not extents:
                    return None
                return sum(extents) if isinstance(rule, AllOf) else min(extents)
            case PlacementConstraint(subject, expression, group):
                if not container.tags.issuperset(subject):
                    return None
                around = [
                    members
                    for members in self.members.get(group, {}).values()
                    if container.machine in members
                ]
                return min(
                    (
                        self._expression(expression, members, container, containers)
                        for members in around
                    ),
                    default=1.0,
                )
            case SpreadConstraint(subject, least, most, group):
                if not container.tags.issuperset(subject):
                    return None
                used = {other.machine for other in containers if other.tags.issuperset(subject)}
                sets = self.members.get(group, {}).values()
                return distance(sum(1 for members in sets if members & used), least, most)

    def count(self, tags: Sequence[str], members: set[str], containers: Sequence[Container]) -> int:
        """gamma_S(tags)."""
        running = sum(
            1 for other in containers if other.machine in members and other.tags.issuperset(tags)
        )
        return running + sum(1 for name in members if self.static[name].issuperset(tags))

    def _expression(
        self,
        expression: Expression,
        members: set[str],
        container: Container,
        containers: Sequence[Container],
    ) -> float:
        match expression:
            case TagConstraint(tags, least, most):
                count = self.count(tags, members, containers)
                if container.tags.issuperset(tags):
                    count -= 1
                return distance(count, least, most)
            case AllTags(parts):
                return sum(self._expression(p, members, container, containers) for p in parts)
            case AnyTags(parts):
                return min(self._expression(p, members, container, containers) for p in parts)
            case NotTags(part):
                inside = negated(part)
                if inside is None:
                    return 1.0
                return self._expression(inside, members, container, containers)


def distance(count: int, least: int, most: int | None) -> float:
    """How far a count is outside its bounds, relative to the bound."""
    extent = max(0, least - count) / max(1, least)
    if most is not None:
        extent += max(0, count - most) / max(1, most)
    return extent


def negated(expression: Expression) -> Expression | None:
    """An expression without outer negation that holds exactly where `expression` does not; None if it
    is a tag constraint that always holds. Inside `and` and `or`, the negation of such a one remains."""
    match expression:
        case NotTags(part):
            return part
        case TagConstraint(tags, least, most):
            below = (TagConstraint(tags, 0, least - 1),) if least > 0 else ()
            above = (TagConstraint(tags, most + 1, None),) if most is not None else ()
            if below and above:
                return AnyTags((*below, *above))
            return (*below, *above)[0] if below or above else None
        case AllTags(parts):
            return AnyTags(tuple(negated(part) or NotTags(part) for part in parts))
        case AnyTags(parts):
            return AllTags(tuple(negated(part) or NotTags(part) for part in parts))
