"""Mistakes in constraints that parse: conflicts, and unknown names.

Findings are in the order of the constraints. An *error* can never be satisfied, or names something
unknown; a *warning* is legal but probably a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, permutations
from typing import Literal

import msgspec

from argosy.model.constraints import (
    AllOf,
    AllTags,
    AnyOf,
    Constraint,
    ConstraintRule,
    Expression,
    NotTags,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)
from argosy.model.constraints.meaning import negated
from argosy.model.constraints.parts import APP, CONTAINER, SELF, leaves, tags_of
from argosy.model.constraints.text import format_constraint
from argosy.model.errors import did_you_mean
from argosy.model.machines import MACHINE_GROUP


class LintFinding(msgspec.Struct, frozen=True):
    """A problem with one constraint, or with two together, given by index."""

    severity: Literal["error", "warning"]
    code: str
    constraint: int
    problem: str
    other: int | None = None


class Surroundings(msgspec.Struct, frozen=True):
    """What is known about the cell and its containers. Fields that are None are not checked."""

    #: Number of sets per node group.
    groups: Mapping[str, int] | None = None
    #: Each kind of container: its tags and the number of containers.
    containers: Sequence[tuple[frozenset[str], int]] | None = None
    #: Each kind of machine: its static tags.
    machines: Sequence[frozenset[str]] = ()
    #: Pairs (inner, outer) of groups such that each inner set lies within every outer set it meets.
    nested: frozenset[tuple[str, str]] = frozenset()
    #: Groups in which some machine is in several sets, so it may satisfy each constraint in a different
    #: one.
    overlapping: frozenset[str] = frozenset()


def lint(
    constraints: Sequence[Constraint], around: Surroundings | None = None
) -> list[LintFinding]:
    around = around or Surroundings()
    found: list[LintFinding] = []
    for index, constraint in enumerate(constraints):
        found.extend(_alone(index, constraint, around))
    found.extend(_pairs(constraints, around))
    return sorted(found, key=lambda finding: (finding.constraint, finding.other or -1))


def unsound(constraints: Sequence[Constraint], around: Surroundings) -> LintFinding | None:
    """The first constraint that nothing could keep by itself, or that names an unknown group. Two that
    contradict each other are sound: if they are soft, the objective decides between them."""
    for index, constraint in enumerate(constraints):
        for finding in _alone(index, constraint, around):
            if finding.severity == "error":
                return finding
    return None


def _alone(index: int, constraint: Constraint, around: Surroundings) -> Iterator[LintFinding]:
    rule = constraint.rule
    groups = None if around.groups is None else {MACHINE_GROUP, *around.groups}
    for leaf in leaves(rule):
        if groups is not None and leaf.group not in groups:
            hint = did_you_mean(leaf.group, groups)
            yield LintFinding(
                "error",
                "unknown-group",
                index,
                f"there is no node group {leaf.group!r}" + (f"; {hint}" if hint else ""),
            )
        if isinstance(leaf, PlacementConstraint):
            if _never(leaf.expression):
                yield LintFinding("error", "never", index, "the expression can never hold")
        elif around.groups is not None and leaf.least > around.groups.get(leaf.group, 1 << 60):
            sets = around.groups[leaf.group]
            yield LintFinding(
                "error",
                "spread",
                index,
                f"spread over {leaf.least} sets, but {leaf.group} has {sets}",
            )
    yield from _carried(index, constraint, around)
    for subjects in _disjoint_subjects(rule):
        yield LintFinding(
            "warning",
            "subjects",
            index,
            "parts of an 'or' speak of "
            + " and of ".join(subjects)
            + ": each container is judged by the parts that concern it",
        )


def _carried(index: int, constraint: Constraint, around: Surroundings) -> Iterator[LintFinding]:
    if around.containers is None:
        return
    kinds = [tags for tags, _ in around.containers]
    for leaf in leaves(constraint.rule):
        # Which job says it is not known here.
        subject = frozenset(leaf.subject) - {SELF}
        if not any(tags.issuperset(subject) for tags in kinds):
            text = " & ".join(leaf.subject)
            yield LintFinding("warning", "nobody", index, f"no container carries {text}")
        elif isinstance(leaf, SpreadConstraint):
            count = sum(n for tags, n in around.containers if tags.issuperset(subject))
            if count < leaf.least:
                yield LintFinding(
                    "warning",
                    "spread",
                    index,
                    f"spread over {leaf.least} sets, but there are {count} such containers",
                )
    everything = frozenset().union(*kinds, *around.machines)
    for tag in sorted(tags_of(constraint.rule) - everything - {SELF}):
        hint = _no_such_container(tag, everything) or did_you_mean(tag, everything)
        yield LintFinding(
            "warning",
            "nobody",
            index,
            f"nobody carries the tag {tag!r}" + (f"; {hint}" if hint else ""),
        )


def _no_such_container(tag: str, everything: frozenset[str]) -> str:
    job, _, index = tag.removeprefix(CONTAINER).rpartition("/")
    if not tag.startswith(CONTAINER) or APP + job not in everything:
        return ""
    return f"{job} has no container {index}"


def _never(expression: Expression) -> bool:
    match expression:
        case NotTags(part):
            inside = negated(part)
            return inside is None or _never(inside)
        case TagConstraint():
            return False
        case AllTags(parts):
            bounds: dict[frozenset[str], tuple[int, float]] = {}
            for part in parts:
                if isinstance(part, TagConstraint):
                    key = frozenset(part.tags)
                    low, high = bounds.get(key, (0, float("inf")))
                    most = float("inf") if part.most is None else part.most
                    bounds[key] = (max(low, part.least), min(high, most))
            return any(low > high for low, high in bounds.values()) or any(map(_never, parts))
        case _:
            return all(map(_never, expression.parts))


def _disjoint_subjects(rule: ConstraintRule) -> Iterator[tuple[str, ...]]:
    if isinstance(rule, AnyOf):
        subjects = {" & ".join(sorted(leaf.subject)) for leaf in leaves(rule)}
        if len(subjects) > 1:
            yield tuple(sorted(subjects))
    elif isinstance(rule, AllOf):
        for part in rule.parts:
            yield from _disjoint_subjects(part)


def _demands(rule: ConstraintRule) -> Iterator[PlacementConstraint]:
    """Tag constraints that must all hold, each as its own placement constraint."""
    match rule:
        case PlacementConstraint(subject, expression, group):
            parts = expression.parts if isinstance(expression, AllTags) else (expression,)
            for part in parts:
                if isinstance(part, TagConstraint):
                    yield PlacementConstraint(subject, part, group)
        case AllOf(parts):
            for inside in parts:
                yield from _demands(inside)


def _pairs(constraints: Sequence[Constraint], around: Surroundings) -> Iterator[LintFinding]:
    demands = [(index, d) for index, c in enumerate(constraints) for d in _demands(c.rule)]
    seen: set[tuple[int, int]] = set()
    for index, constraint in enumerate(constraints):
        for other in range(index):
            if constraints[other] == constraint:
                yield LintFinding(
                    "warning", "twice", index, "the same constraint stands twice", other
                )
                seen.add((other, index))
                break
    for (i, a), (j, b) in combinations(demands, 2):
        pair = (min(i, j), max(i, j))
        if i == j or pair in seen:
            continue
        why = next((w for x, y in permutations((a, b)) if (w := _clash(x, y, around))), None)
        if why:
            seen.add(pair)
            with_text = format_constraint(constraints[pair[0]])
            yield LintFinding(
                "error", "conflict", pair[1], f"{why} (against '{with_text}')", pair[0]
            )


def _clash(a: PlacementConstraint, b: PlacementConstraint, around: Surroundings) -> str | None:
    """Why no container can satisfy both (`a` asks for more than `b` allows), or None."""
    want, allow = a.expression, b.expression
    assert isinstance(want, TagConstraint)
    assert isinstance(allow, TagConstraint)
    if allow.most is None or want.least == 0:
        return None
    within = (
        (a.group == b.group and a.group not in around.overlapping)
        or (a.group, b.group) in around.nested
        or a.group == MACHINE_GROUP
    )
    asked, allowed = set(want.tags), set(allow.tags)
    # Every subject of `a` is a subject of `b`, and `b` counts everything that `a` counts.
    concerns_same = set(a.subject) >= set(b.subject)
    if concerns_same and asked >= allowed and within and want.least > allow.most:
        return (
            f"at least {want.least} {' & '.join(want.tags)} in a {a.group}, but at most "
            f"{allow.most} {' & '.join(allow.tags)} in a {b.group}"
        )
    # The containers that `a` wants nearby are subjects of `b`, which excludes the subjects of `a`.
    if allow.most == 0 and asked >= set(b.subject) and set(a.subject) >= allowed and within:
        return (
            f"{' & '.join(a.subject)} wants {' & '.join(want.tags)} in its {a.group}, which does"
            f" not want {' & '.join(allow.tags)} in its {b.group}"
        )
    return None
