"""A node as a machine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from argosy.kubernetes.objects import Node
from argosy.model.machines import Machine
from argosy.worlds.kubernetes.requests import node_capacity
from argosy.worlds.kubernetes.rulebook import GROUP_KEYS

#: Every node has its own value, which says no more than its name.
_OWN_LABELS: Final = ("kubernetes.io/hostname",)


def machine_of_node(node: Node, wanted: Iterable[str]) -> Machine:
    """`wanted` are the resources that count, besides cpu, memory and places for pods."""
    labels = node.metadata.labels
    return Machine(
        name=node.name,
        capacity=node_capacity(node, wanted),
        attributes={key: value for key, value in labels.items() if key not in _OWN_LABELS},
        joins={key: (labels[key],) for key in GROUP_KEYS if labels.get(key)},
    )


def rules_of_node(node: Node) -> tuple[object, ...]:
    """What rules look at."""
    return node.metadata.labels, node.spec.taints, node.spec.unschedulable
