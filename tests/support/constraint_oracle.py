"""An evaluator and an exhaustive search, written from docs/constraints.md and nothing else.

It uses the constraints' data types, but neither the reference implementation nor any algorithm. A
placement is a list of (tags, machine); all that is asked is answered by listing and counting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, product
from typing import TypeAlias

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
from argosy.model.machines import Machine
from argosy.testing.placements import PlacementInstance

Placed: TypeAlias = tuple[frozenset[str], int]
_EXACT = 1e-9


def outside(count: int, least: int, most: int | None) -> float:
    """The first row of the table of extents."""
    above = 0 if most is None else max(0, count - most) / max(1, most)
    return max(0, least - count) / max(1, least) + above


class ConstraintOracle:
    def __init__(self, machines: Sequence[Machine]) -> None:
        self.machines = machines

    def sets(self, group: str) -> list[set[int]]:
        """The node sets of a group, as the machines in each."""
        if group == "machine":
            return [{number} for number in range(len(self.machines))]
        names = {name for machine in self.machines for name in machine.joins.get(group, ())}
        return [
            {n for n, machine in enumerate(self.machines) if name in machine.joins.get(group, ())}
            for name in sorted(names)
        ]

    def has_tags(self, machine: int, tags: Sequence[str]) -> bool:
        """Whether the machine's own attributes include all of the tags."""
        own = self.machines[machine].attributes
        every = {f"{key}:{value}" for key, value in own.items()}
        every |= {key for key, value in own.items() if value == "true"}
        return set(tags) <= every

    def seen(self, tags: Sequence[str], where: set[int], who: int, placed: list[Placed]) -> int:
        """How many others with the tags, and machines with them, a container sees in a node set."""
        others = [each for number, each in enumerate(placed) if number != who]
        carrying = [tag for tag, machine in others if machine in where and set(tags) <= tag]
        return len(carrying) + sum(self.has_tags(machine, tags) for machine in where)

    def holds_in(
        self, said: Expression, is_so: bool, where: set[int], who: int, placed: list[Placed]
    ) -> float:
        """The extent of an expression, or of its negation, in one node set."""
        match said:
            case NotTags(part):
                return self.holds_in(part, not is_so, where, who, placed)
            case AllTags(parts) | AnyTags(parts):
                extents = [self.holds_in(part, is_so, where, who, placed) for part in parts]
                # Not (E and F) is (not E) or (not F).
                return sum(extents) if isinstance(said, AllTags) == is_so else min(extents)
            case TagConstraint(tags, least, most):
                count = self.seen(tags, where, who, placed)
                if is_so:
                    return outside(count, least, most)
                ways = [outside(count, 0, least - 1)] if least else []
                ways += [] if most is None else [outside(count, most + 1, None)]
                return min(ways, default=1.0)

    def extent(self, rule: ConstraintRule, who: int, placed: list[Placed]) -> float | None:
        """None if the rule does not concern the container."""
        tags, machine = placed[who]
        match rule:
            case AllOf(parts) | AnyOf(parts):
                found = [self.extent(part, who, placed) for part in parts]
                extents = [extent for extent in found if extent is not None]
                if not extents:
                    return None
                return sum(extents) if isinstance(rule, AllOf) else min(extents)
            case PlacementConstraint(subject, said, group):
                if not set(subject) <= tags:
                    return None
                around = [where for where in self.sets(group) if machine in where]
                return min(
                    (self.holds_in(said, True, where, who, placed) for where in around), default=1.0
                )
            case SpreadConstraint(subject, least, most, group):
                if not set(subject) <= tags:
                    return None
                used = {home for carried, home in placed if set(subject) <= carried}
                return outside(sum(bool(s & used) for s in self.sets(group)), least, most)

    def violation(self, constraints: Sequence[Constraint], placed: list[Placed]) -> float:
        return sum(
            each.weight * (self.extent(each.rule, who, placed) or 0.0)
            for each in constraints
            for who in range(len(placed))
        )

    def breaks_hard(
        self, constraints: Sequence[Constraint], before: list[Placed], new: list[Placed]
    ) -> bool:
        """Whether a new container breaks a hard constraint, or a running one is further from one: each
        rule that `and` joins is judged for itself."""
        after = before + new
        for constraint in constraints:
            for rule in joined_by_and(constraint.rule) if constraint.hard else ():
                for who in range(len(after)):
                    extent = self.extent(rule, who, after) or 0.0
                    was = (self.extent(rule, who, before) or 0.0) if who < len(before) else 0.0
                    if extent > was + _EXACT:
                        return True
        return False


def joined_by_and(rule: ConstraintRule) -> Iterator[ConstraintRule]:
    if isinstance(rule, AllOf):
        for part in rule.parts:
            yield from joined_by_and(part)
    else:
        yield rule


class ExhaustiveSearch:
    """Tries every placement of an instance. The value of one is (1), with weights 1, 0.5 and 0.25."""

    def __init__(self, instance: PlacementInstance) -> None:
        self.instance = instance
        self.oracle = ConstraintOracle(instance.machines)
        self.before: list[Placed] = [(tags, machine) for tags, machine, _ in instance.running]
        self.violation_before = self.oracle.violation(instance.constraints, self.before)
        self.pairs = instance.problem().concerned

    def best(self) -> float:
        found = [value for _, value in self.all() if value is not None]
        return max(found)

    def all(self) -> Iterator[tuple[list[tuple[int, int]], float | None]]:
        """Every answer, as (kind, machine) of each container, and its value; None: not allowed."""
        kinds, count = self.instance.kinds, len(self.instance.machines)
        apps = sorted({app for app, *_ in kinds})
        for chosen in product((False, True), repeat=len(apps)):
            placed = {app for app, is_placed in zip(apps, chosen, strict=True) if is_placed}
            mine = [n for n, (app, *_) in enumerate(kinds) if app in placed]
            ways = [combinations_with_replacement(range(count), kinds[n][3]) for n in mine]
            for way in product(*ways):
                answer = [(n, at) for n, spots in zip(mine, way, strict=True) for at in spots]
                yield answer, self.value(answer, len(placed) / len(apps))

    def value(self, answer: list[tuple[int, int]], placed: float) -> float | None:
        instance = self.instance
        free = [machine.capacity.memory for machine in instance.machines]
        for _, machine, memory in instance.running:
            free[machine] -= memory
        left = list(free)
        for kind, machine in answer:
            left[machine] -= instance.kinds[kind][2]
        new = [(instance.kinds[kind][1], machine) for kind, machine in answer]
        if min(left) < 0 or self.oracle.breaks_hard(instance.constraints, self.before, new):
            return None
        after = self.oracle.violation(instance.constraints, self.before + new)
        fragments = sum(was >= instance.smallest > now for was, now in zip(free, left, strict=True))
        containers = sum(count for *_, count in instance.kinds)
        return (
            placed
            - 0.5 * (after - self.violation_before) / max(self.pairs, 1e-12)
            - 0.25 * fragments / containers
        )
