"""A pod's rules about other pods, and its wishes about nodes, as placement constraints of its job.

The subject is the job itself (`appID:self`), and other pods are those of the pod's namespace
(`owner:NAMESPACE`), because Kubernetes' terms mean no others unless they say so. Terms are translated
one by one, so that one without a counterpart costs no other; why it has none is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from argosy.kubernetes.objects import Pod
from argosy.model.constraints import Constraint, PlacementConstraint, TagConstraint
from argosy.model.constraints.kubernetes_reader import from_kubernetes
from argosy.model.constraints.parts import OWNER, SELF
from argosy.model.errors import Untranslatable
from argosy.model.machines import MACHINE_GROUP
from argosy.worlds.kubernetes.pod_tags import label_tags

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_PORT: Final = "hostPort:"
#: Stands for the pod's own labels, which the subject replaces.
_SUBJECT: Final = {"pod": "it"}


def tags_of(pod: Pod) -> dict[str, str]:
    """Tags that constraints may name, and the label that each is; and a tag for each host port."""
    return label_tags(pod) | dict.fromkeys(port_tags(pod), "")


def port_tags(pod: Pod) -> list[str]:
    """A tag for each port of the node that the pod takes on all addresses."""
    return sorted(
        {
            f"{_PORT}{port.protocol}-{port.host_port}"
            for container in pod.spec.containers
            for port in container.ports
            if port.host_port and port.host_ip in ("", "0.0.0.0")
        }
    )


def constraints_of(pod: Pod, note: Callable[[str], None]) -> tuple[Constraint, ...]:
    """`note` hears of what has no counterpart."""
    found: dict[Constraint, None] = {}
    own = frozenset(tags_of(pod))
    for what, spec, is_about_nodes in _terms(pod):
        try:
            translated = from_kubernetes({"labels": _SUBJECT, **spec})
        except Untranslatable as error:
            note(f"{what}: {error.problem}")
            continue
        for constraint in translated:
            carried = _of_job(constraint, pod.namespace, is_about_nodes)
            if carried.hard and _awaits_itself(constraint, own):
                note(
                    "pod affinity to pods like itself is only a wish, as the first of them has none"
                    " to go to"
                )
                carried = msgspec.structs.replace(carried, hard=False)
            found[carried] = None
    for tag in port_tags(pod):
        rule = PlacementConstraint((SELF,), TagConstraint((tag,), 0, 0), MACHINE_GROUP)
        found[Constraint(rule, hard=True)] = None
    return tuple(found)


def _terms(pod: Pod) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Each term by itself as a pod's specification, its name, and whether it is about nodes."""
    # As the API server writes it: with lists, not tuples.
    spec: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(pod.spec))
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        for when in (_REQUIRED, _PREFERRED):
            for term in affinity.get(kind, {}).get(when, ()):
                yield kind, {"affinity": {kind: {when: [term]}}}, False
    for term in affinity.get("nodeAffinity", {}).get(_PREFERRED, ()):
        inside = {"nodeAffinity": {_PREFERRED: [term]}}
        yield "preferred nodeAffinity", {"affinity": inside}, True
    for spread in spec.get("topologySpreadConstraints", ()):
        selected = (spread.get("labelSelector") or {}).get("matchLabels", {}).items()
        # The reader takes a pod off the limits that it counts for, so it has to know such labels.
        counts = bool(selected) and selected <= pod.metadata.labels.items()
        labels = dict(selected) if counts else _SUBJECT
        yield (
            "topologySpreadConstraints",
            {"labels": labels, "topologySpreadConstraints": [spread]},
            False,
        )


def _of_job(constraint: Constraint, namespace: str, is_about_nodes: bool) -> Constraint:
    rule = constraint.rule
    assert isinstance(rule, PlacementConstraint)
    expression = rule.expression
    if not is_about_nodes:
        assert isinstance(expression, TagConstraint)
        expression = msgspec.structs.replace(
            expression, tags=(f"{OWNER}{namespace}", *expression.tags)
        )
    return msgspec.structs.replace(
        constraint, rule=PlacementConstraint((SELF,), expression, rule.group)
    )


def _awaits_itself(constraint: Constraint, own: frozenset[str]) -> bool:
    """Whether it asks for pods of which the pod itself is one."""
    rule = constraint.rule
    assert isinstance(rule, PlacementConstraint)
    atom = rule.expression
    return isinstance(atom, TagConstraint) and atom.least > 0 and own.issuperset(atom.tags)
