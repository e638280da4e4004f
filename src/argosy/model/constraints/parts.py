"""Parts of constraints: leaves, atoms and tags; and renaming tags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from argosy.model.constraints import (
    AllOf,
    AllTags,
    AnyOf,
    AnyTags,
    Constraint,
    ConstraintRule,
    Expression,
    Leaf,
    NotTags,
    PlacementConstraint,
    SpreadConstraint,
    TagConstraint,
)
from argosy.model.jobs import Job, TaskGroup, task_name

#: Namespaces of the tags that every container gets from its job's id, kind and owner.
APP: Final = "appID:"
KIND: Final = "kind:"
OWNER: Final = "owner:"
#: Namespace of the tag of a single container, from its job's id and its index.
CONTAINER: Final = "containerID:"
#: In a job's own constraints: the job itself.
SELF: Final = "appID:self"
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9_.:/-]|-(?=>)")


def leaves(rule: ConstraintRule) -> Iterator[Leaf]:
    """The placement and spread constraints in a rule, from left to right."""
    match rule:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)
        case _:
            yield rule


def conjuncts(constraint: Constraint) -> Iterator[Constraint]:
    """The rules that `and` joins, each as a constraint: together they mean the same."""
    if isinstance(constraint.rule, AllOf):
        for part in constraint.rule.parts:
            yield from conjuncts(msgspec.structs.replace(constraint, rule=part))
    else:
        yield constraint


def atoms(expression: Expression) -> Iterator[TagConstraint]:
    match expression:
        case AllTags(parts) | AnyTags(parts):
            for part in parts:
                yield from atoms(part)
        case NotTags(part):
            yield from atoms(part)
        case _:
            yield expression


def tags_of(rule: ConstraintRule) -> frozenset[str]:
    """Every tag named in the rule."""
    named: set[str] = set()
    for leaf in leaves(rule):
        named.update(leaf.subject)
        if isinstance(leaf, PlacementConstraint):
            named.update(tag for atom in atoms(leaf.expression) for tag in atom.tags)
    return frozenset(named)


def names_of(rule: ConstraintRule) -> Iterator[frozenset[str]]:
    """The tags of each group of containers that the rule names: subjects, and those it counts."""
    for leaf in leaves(rule):
        yield frozenset(leaf.subject)
        if isinstance(leaf, PlacementConstraint):
            yield from (frozenset(atom.tags) for atom in atoms(leaf.expression))


def renamed(constraint: Constraint, rename: Mapping[str, str]) -> Constraint:
    """The constraint with tags renamed."""
    return msgspec.structs.replace(constraint, rule=_renamed_rule(constraint.rule, rename))


def _renamed(tags: tuple[str, ...], rename: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(rename.get(tag, tag) for tag in tags)


def _renamed_rule(rule: ConstraintRule, rename: Mapping[str, str]) -> ConstraintRule:
    match rule:
        case PlacementConstraint(subject, expression, group):
            inside = _renamed_expression(expression, rename)
            return PlacementConstraint(_renamed(subject, rename), inside, group)
        case SpreadConstraint(subject, least, most, group):
            return SpreadConstraint(_renamed(subject, rename), least, most, group)
        case AllOf(parts):
            return AllOf(tuple(_renamed_rule(part, rename) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(_renamed_rule(part, rename) for part in parts))


def _renamed_expression(expression: Expression, rename: Mapping[str, str]) -> Expression:
    match expression:
        case TagConstraint(tags, least, most):
            return TagConstraint(_renamed(tags, rename), least, most)
        case AllTags(parts):
            return AllTags(tuple(_renamed_expression(part, rename) for part in parts))
        case AnyTags(parts):
            return AnyTags(tuple(_renamed_expression(part, rename) for part in parts))
        case NotTags(part):
            return NotTags(_renamed_expression(part, rename))


def _tag(namespace: str, name: str) -> str:
    """Replaces characters that are not allowed in a tag by underscores."""
    return namespace + _UNNAMEABLE.sub("_", name)


def app_tag(job_id: str) -> str:
    return _tag(APP, job_id)


def kind_tag(kind: str) -> str:
    return _tag(KIND, kind)


def automatic_tags(job: Job) -> tuple[str, ...]:
    """Tags that every container of the job has in addition to its group's tags."""
    tags = (app_tag(job.id), kind_tag(job.kind))
    return (*tags, _tag(OWNER, job.owner)) if job.owner else tags


def container_tag(job_id: str, index: int) -> str:
    return _tag(CONTAINER, task_name(job_id, index))


def is_container_of(job_id: str, tag: str) -> bool:
    """Whether the tag is that of a single container of the job."""
    return tag.rpartition("/")[0] == _tag(CONTAINER, job_id)


def container_names(constraints: Iterable[Constraint]) -> frozenset[str]:
    """The tags of single containers that the constraints name."""
    named = (tag for constraint in constraints for tag in tags_of(constraint.rule))
    return frozenset(tag for tag in named if tag.startswith(CONTAINER))


def with_name(tags: frozenset[str], index: int, names: frozenset[str]) -> frozenset[str]:
    """The tags of the container with this index in its job: those that its group shares, and its own if
    that is among `names`. If all had their own, there would be as many kinds of containers as there are
    containers."""
    if not names or any(tag.startswith(CONTAINER) for tag in tags):
        return tags
    own = (tag.removeprefix(APP) for tag in tags if tag.startswith(APP))
    return tags | (names & {CONTAINER + task_name(job, index) for job in own})


def container_tags(job: Job, group: TaskGroup) -> tuple[str, ...]:
    """The tags that all of a group's containers have, without duplicates, in order. They include the own
    tag of a container that is a group of its own; for those of others, see `with_name`."""
    tags = {*group.tags, *automatic_tags(job)}
    if group.count == 1:
        starts = zip(job.group_starts(), job.groups, strict=True)
        index = next((start for start, known in starts if known is group), None)
        if index is not None:
            tags.add(container_tag(job.id, index))
    return tuple(sorted(tags))


def tags_at(job: Job, index: int) -> frozenset[str]:
    """All tags of one container, with its own."""
    return frozenset({*container_tags(job, job.group_at(index)), container_tag(job.id, index)})


def apart_tag(constraint: Constraint) -> str | None:
    """The tag whose containers a hard constraint keeps on different machines; None if that is not what
    it says."""
    match constraint.rule:
        case PlacementConstraint((subject,), TagConstraint((tag,), 0, 0), "machine"):
            return tag if constraint.hard and tag == subject else None
    return None


def of_job(job_id: str, constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """A job's own constraints, with `SELF` replaced by the job's tag."""
    rename = {SELF: app_tag(job_id)}
    return tuple(
        renamed(constraint, rename) if SELF in tags_of(constraint.rule) else constraint
        for constraint in constraints
    )
