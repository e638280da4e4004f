"""A node as a machine, and the resources that count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.kubernetes.objects import Node
from argosy.model.machines import Machine
from argosy.model.resources import BASE_DIMENSIONS, MOST_DIMENSIONS, Resources
from argosy.worlds.kubernetes.requests import PODS, node_capacity
from argosy.worlds.kubernetes.rulebook import GROUP_KEYS

#: Every node has its own value, which says no more than its name.
_OWN_LABELS: Final = ("kubernetes.io/hostname",)


class AccountedResources:
    """cpu, memory, places for pods, and what pods have asked for: as many as a cell can have."""

    def __init__(self) -> None:
        self._extras: dict[str, None] = {PODS: None}

    def learn(self, request: Resources) -> Sequence[str] | None:
        """The resources that are new; none at all if there would be too many."""
        new = [name for name in request.extras if name not in self._extras]
        if len(self._extras) + len(new) + len(BASE_DIMENSIONS) > MOST_DIMENSIONS:
            return None
        self._extras.update(dict.fromkeys(new))
        return new

    def capacity_of(self, node: Node) -> Resources:
        return node_capacity(node, self._extras)

    def machine_of(self, node: Node) -> Machine:
        labels = node.metadata.labels
        return Machine(
            name=node.name,
            capacity=self.capacity_of(node),
            attributes={key: value for key, value in labels.items() if key not in _OWN_LABELS},
            joins={key: (labels[key],) for key in GROUP_KEYS if labels.get(key)},
        )


def rules_of_node(node: Node) -> tuple[object, ...]:
    """What rules look at."""
    return node.metadata.labels, node.spec.taints, node.spec.unschedulable
