"""Placement constraints in a pod's annotation, one per line, for engines that act on them.

They concern pods of the pod's own namespace (each subject gets the tag `namespace:NAMESPACE`); what they
count may be anywhere. `appID:self` is all pods of the pod's controller. The annotation of a pod whose
scheduler ignores constraints keeps the pod from being scheduled: running it anywhere would break them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from argosy.kubernetes.objects import Pod
from argosy.model.constraints import (
    AllOf,
    AnyOf,
    Constraint,
    ConstraintRule,
    PlacementConstraint,
    SpreadConstraint,
)
from argosy.model.constraints.kubernetes import TOPOLOGIES
from argosy.model.constraints.parts import APP, SELF, renamed
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ArgosyError, ModelError
from argosy.model.jobs import Job
from argosy.model.machines import MACHINE_GROUP
from argosy.worlds.kubernetes.pod_jobs import PREFIX, controller_of
from argosy.worlds.kubernetes.pod_tags import GENERATED, NAMESPACE, label_tags
from argosy.worlds.kubernetes.rulebook import GROUP_KEYS

CONSTRAINTS: Final = PREFIX + "constraints"
_SHORT: Final = {name: key for name, key in TOPOLOGIES.items() if key in GROUP_KEYS}


def annotation_of(pod: Pod) -> str:
    return pod.metadata.annotations.get(CONSTRAINTS, "")


def constraint_tags(pod: Pod) -> tuple[str, ...]:
    """The pod's labels, its namespace and its controller."""
    labels = (tag for tag, key in label_tags(pod).items() if key not in GENERATED)
    return tuple(sorted({*labels, NAMESPACE + pod.namespace, _application(pod)}))


def _application(pod: Pod) -> str:
    return f"{APP}{pod.namespace}/{controller_of(pod) or f'Pod/{pod.name}'}"


def read_annotation(pod: Pod) -> tuple[Constraint, ...]:
    """Raises a `ModelError` that says in which line and column a mistake is."""
    found = []
    for number, line in enumerate(annotation_of(pod).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            constraint = renamed(parse_constraint(line.strip()), {SELF: _application(pod)})
            rule = _within(constraint.rule, NAMESPACE + pod.namespace)
        except ArgosyError as error:
            expected = f"; expected {error.expected}" if error.expected else ""
            raise ModelError(f"line {number}: {error.problem}{expected}") from None
        found.append(msgspec.structs.replace(constraint, rule=rule))
    return tuple(found)


def _within(rule: ConstraintRule, namespace: str) -> ConstraintRule:
    """The rule for subjects of a namespace, with the node groups of the cluster."""
    match rule:
        case AllOf(parts):
            return AllOf(tuple(_within(part, namespace) for part in parts))
        case AnyOf(parts):
            return AnyOf(tuple(_within(part, namespace) for part in parts))
        case PlacementConstraint(subject, expression, group):
            return PlacementConstraint((*subject, namespace), expression, _group(group))
        case SpreadConstraint(subject, least, most, group):
            return SpreadConstraint((*subject, namespace), least, most, _group(group))


def _group(name: str) -> str:
    full = _SHORT.get(name, name)
    if full != MACHINE_GROUP and full not in GROUP_KEYS:
        raise ModelError(
            f"there is no node group {name!r}",
            expected="one of " + ", ".join((MACHINE_GROUP, *_SHORT, *GROUP_KEYS)),
        )
    return full


class AnnotatedConstraints:
    """`ignoring` names the engine that would decide on a pod and ignores constraints, if it does;
    `matters` says whether any scheduler acts on them."""

    def __init__(
        self,
        ignoring: Callable[[Pod], str] = lambda pod: "",
        matters: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ignoring = ignoring
        self._matters = matters

    def obstacle(self, pod: Pod) -> str:
        """Why the pod's constraints keep it from being scheduled; empty if they do not."""
        if not annotation_of(pod).strip():
            return ""
        try:
            read_annotation(pod)
        except ModelError as error:
            return f"its annotation {CONSTRAINTS} cannot be read: {error.problem}"
        engine = self._ignoring(pod)
        if not engine:
            return ""
        return (
            f"its annotation {CONSTRAINTS} asks for placement constraints, which {engine} ignores:"
            " name a scheduler that acts on them, such as medea, or remove the annotation"
        )

    def applied(self, job: Job, pod: Pod) -> Job:
        """The pod's job with its tags and constraints."""
        if not self._matters():
            return job
        tags = constraint_tags(pod)
        groups = tuple(msgspec.structs.replace(group, tags=tags) for group in job.groups)
        constraints: tuple[Constraint, ...] = ()
        if annotation_of(pod) and not self.obstacle(pod):
            constraints = read_annotation(pod)
        return msgspec.structs.replace(job, groups=groups, constraints=constraints)
