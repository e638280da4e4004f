"""Rules about nodes that do not depend on what runs there: selectors, affinity, taints, volumes.

Many pods share the same rules. Each distinct set of rules becomes a mark of the nodes that it admits
(`Host.mark`), so that every engine respects it by requiring one attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from argosy.kubernetes.objects import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    Pod,
    Taint,
    Toleration,
)
from argosy.worlds.kubernetes.selectors import as_integer, described_requirement, selects_node

UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_REPELLING: Final = ("NoSchedule", "NoExecute")
_KEY: Final = msgspec.json.Encoder()


class NodeRules(msgspec.Struct, frozen=True):
    """`volumes` are the node selectors of the pod's bound volumes."""

    selector: dict[str, str] = {}
    affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[NodeSelector, ...] = ()

    @staticmethod
    def of(pod: Pod, volumes: Sequence[NodeSelector] = ()) -> NodeRules:
        spec = pod.spec
        wanted = (spec.affinity or Affinity()).node_affinity or NodeAffinity()
        return NodeRules(
            selector=dict(sorted(spec.node_selector.items())),
            affinity=wanted.required_during_scheduling_ignored_during_execution,
            tolerations=tuple(
                # Tolerations that allow a preference to be ignored change nothing here.
                each
                for each in spec.tolerations
                if each.effect in ("", *_REPELLING)
            ),
            volumes=tuple(volumes),
        )

    def key(self) -> bytes:
        """Equal rules have equal keys."""
        return _KEY.encode(self)

    def admits(self, node: Node) -> bool:
        return not self.repelled_by(node) and self.selects(node)

    def selects(self, node: Node) -> bool:
        """Whether selectors, affinity and volumes allow the node, taints aside."""
        labels = node.metadata.labels
        return (
            all(labels.get(key) == value for key, value in self.selector.items())
            and selects_node(self.affinity, node)
            and all(selects_node(volume, node) for volume in self.volumes)
        )

    def repelled_by(self, node: Node) -> Taint | None:
        """The first taint that is not tolerated; being cordoned is one."""
        if node.spec.unschedulable and not tolerates(self.tolerations, UNSCHEDULABLE):
            return UNSCHEDULABLE
        return self.tainted_by(node)

    def tainted_by(self, node: Node) -> Taint | None:
        """The same, but a node that is only cordoned repels nobody."""
        for taint in node.spec.taints:
            if taint.effect in _REPELLING and not tolerates(self.tolerations, taint):
                return taint
        return None

    def reason(self, node: Node) -> str:
        """Why it does not admit a node, as kube-scheduler says it."""
        taint = self.repelled_by(node)
        if taint is UNSCHEDULABLE:
            return "node(s) were unschedulable"
        if taint is not None:
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
        without = msgspec.structs.replace(self, volumes=())
        if without.selects(node):
            return "node(s) had volume node affinity conflict"
        return "node(s) didn't match Pod's node affinity/selector"

    def describe(self) -> str:
        """In words that pods' authors know."""
        parts = [f"{key}={value}" for key, value in self.selector.items()]
        if self.affinity is not None:
            terms = [
                " and ".join(
                    described_requirement(each)
                    for each in (*term.match_expressions, *term.match_fields)
                )
                for term in self.affinity.node_selector_terms
            ]
            parts.append("node affinity " + " or ".join(term or "nothing" for term in terms))
        if self.tolerations:
            parts.append("tolerates " + ", ".join(map(_describe, self.tolerations)))
        if self.volumes:
            parts.append("its volumes")
        return "; ".join(parts) or "no taints"


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Exists":
            return True
        case "Equal":
            # Without a key, only `Exists` tolerates anything.
            return bool(toleration.key) and toleration.value == taint.value
        case "Gt" | "Lt":
            return _compares(toleration, taint)
    return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    have, bound = as_integer(taint.value), as_integer(toleration.value)
    if have is None or bound is None:
        return False
    return have > bound if toleration.operator == "Gt" else have < bound


def _describe(toleration: Toleration) -> str:
    key = toleration.key or "everything"
    if toleration.operator == "Exists" or not toleration.key:
        return key
    return f"{key}={toleration.value}"
