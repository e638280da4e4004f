"""Which nodes a pod may go to, straight from the objects: slow, and independent of how marks are kept.

Written down from Kubernetes' documentation of the API, without the project's own code for selectors,
taints or terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.kubernetes.objects import Node

Nodes = Mapping[str, Node]
#: As the API has it.
Document = dict[str, Any]
Placed = Iterable[tuple[Document, str]]
Spaces = Mapping[str, Mapping[str, str]]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def admissible(pod: Document, nodes: Nodes, placed: Placed, spaces: Spaces) -> set[str]:
    """The nodes to which the pod may go with these pods on nodes; `spaces` are labels of namespaces."""
    there = list(placed)
    return {
        name
        for name, node in nodes.items()
        if _tolerates(pod, node, with_cordon=True)
        and _chosen(pod, node)
        and _near(pod, nodes, there, spaces, node)
        and _apart(pod, nodes, there, spaces, node)
        and _spread(pod, nodes, there, node)
        and not any(
            _collide(mine, theirs)
            for other, where in there
            if where == name
            for mine in _ports(pod)
            for theirs in _ports(other)
        )
    }


def _labels(node: Node) -> dict[str, str]:
    return node.metadata.labels


def _matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    for each in selector.get("matchExpressions") or ():
        has, values = each["key"] in labels, each.get("values") or ()
        holds = {
            "In": has and labels.get(each["key"]) in values,
            "NotIn": not has or labels[each["key"]] not in values,
            "Exists": has,
            "DoesNotExist": not has,
        }[each["operator"]]
        if not holds:
            return False
    return True


def _tolerates(pod: Document, node: Node, *, with_cordon: bool) -> bool:
    taints = [(taint.key, taint.value, taint.effect) for taint in node.spec.taints]
    if with_cordon and node.spec.unschedulable:
        taints.append(("node.kubernetes.io/unschedulable", "", "NoSchedule"))
    return all(
        any(
            each.get("effect", "") in ("", effect)
            and (
                each.get("key", "") in ("", key)
                if each.get("operator") == "Exists"
                else each.get("key") == key and each.get("value", "") == value
            )
            for each in pod["spec"].get("tolerations", ())
        )
        for key, value, effect in taints
        if effect in ("NoSchedule", "NoExecute")
    )


def _chosen(pod: Document, node: Node) -> bool:
    wanted = pod["spec"].get("nodeSelector") or {}
    return all(_labels(node).get(key) == value for key, value in wanted.items())


def _terms(pod: Document, kind: str) -> list[Document]:
    affinity = pod["spec"].get("affinity") or {}
    return list((affinity.get(kind) or {}).get(_REQUIRED) or ())


def _is_meant(term: Document, owner: Document, other: Document, spaces: Spaces) -> bool:
    """Whether a term of `owner` is about `other`."""
    space = other["metadata"]["namespace"]
    named, chosen = term.get("namespaces") or [], term.get("namespaceSelector")
    if not named and chosen is None:
        named = [owner["metadata"]["namespace"]]
    if space not in named and not _matches(chosen, spaces.get(space, {})):
        return False
    mine = owner["metadata"].get("labels") or {}
    theirs = other["metadata"].get("labels") or {}
    same = [key for key in term.get("matchLabelKeys") or () if key in mine]
    return _matches(term.get("labelSelector"), theirs) and all(
        theirs.get(key) == mine[key] for key in same
    )


def _near(
    pod: Document,
    nodes: Nodes,
    there: list[tuple[Document, str]],
    spaces: Spaces,
    node: Node,
) -> bool:
    terms = _terms(pod, "podAffinity")
    keys = [term["topologyKey"] for term in terms]
    if not all(key in _labels(node) for key in keys):
        return False
    meant = [
        nodes[where]
        for other, where in there
        if all(_is_meant(term, pod, other, spaces) for term in terms)
    ]
    if all(any(_labels(each).get(key) == _labels(node)[key] for each in meant) for key in keys):
        return True
    is_first = not any(key in _labels(each) for each in meant for key in keys)
    return is_first and all(_is_meant(term, pod, pod, spaces) for term in terms)


def _apart(
    pod: Document,
    nodes: Nodes,
    there: list[tuple[Document, str]],
    spaces: Spaces,
    node: Node,
) -> bool:
    for other, where in there:
        for owner, about in ((pod, other), (other, pod)):
            for term in _terms(owner, "podAntiAffinity"):
                key = term["topologyKey"]
                is_same = key in _labels(node) and _labels(node)[key] == _labels(nodes[where]).get(
                    key
                )
                if is_same and _is_meant(term, owner, about, spaces):
                    return False
    return True


def _spread(pod: Document, nodes: Nodes, there: list[tuple[Document, str]], node: Node) -> bool:
    constraints = pod["spec"].get("topologySpreadConstraints") or ()
    keys = [each["topologyKey"] for each in constraints]
    for constraint in constraints:
        key, selector = constraint["topologyKey"], constraint.get("labelSelector")
        if key not in _labels(node):
            return False
        counts: dict[str, int] = {}
        for name, each in nodes.items():
            if not all(other in _labels(each) for other in keys):
                continue
            if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not _chosen(pod, each):
                continue
            honours = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
            if honours and not _tolerates(pod, each, with_cordon=False):
                continue
            counts.setdefault(_labels(each)[key], 0)
            counts[_labels(each)[key]] += sum(
                where == name
                and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and other["metadata"].get("deletionTimestamp") is None
                and _matches(selector, other["metadata"].get("labels") or {})
                for other, where in there
            )
        least = min(counts.values(), default=0)
        if len(counts) < (constraint.get("minDomains") or 1):
            least = 0
        itself = int(_matches(selector, pod["metadata"].get("labels") or {}))
        if counts.get(_labels(node)[key], 0) + itself - least > constraint["maxSkew"]:
            return False
    return True


def _ports(pod: Document) -> list[tuple[int, str, str]]:
    return [
        (port["hostPort"], port.get("protocol", "TCP"), port.get("hostIP", "") or "0.0.0.0")
        for container in pod["spec"].get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def _collide(mine: tuple[int, str, str], theirs: tuple[int, str, str]) -> bool:
    is_same = mine[:2] == theirs[:2]
    return is_same and (mine[2] == theirs[2] or "0.0.0.0" in (mine[2], theirs[2]))
