"""How much room there really is on nodes: what pods on them take, also those that are leaving."""

from __future__ import annotations

from collections import Counter, defaultdict

from argosy.model.resources import Resources


class NodeRoom:
    def __init__(self) -> None:
        self._capacity: dict[str, dict[str, int]] = {}
        self._used: dict[str, Counter[str]] = defaultdict(Counter)

    def set_capacity(self, node: str, capacity: Resources) -> None:
        self._capacity[node] = dict(capacity.items())

    def remove(self, node: str) -> None:
        self._capacity.pop(node, None)
        self._used.pop(node, None)

    def take(self, node: str, request: Resources) -> None:
        used = self._used[node]
        for name, amount in request.items():
            used[name] += amount

    def give_back(self, node: str, request: Resources) -> None:
        used = self._used[node]
        for name, amount in request.items():
            used[name] -= amount

    def fits(self, node: str, request: Resources) -> bool:
        used, have = self._used[node], self._capacity.get(node, {})
        for name, amount in request.items():
            if amount and used[name] + amount > have.get(name, 0):
                return False
        return True


def least_of(request: Resources, free: Resources) -> Resources:
    """As much of the request as is free."""
    left = dict(free.items())
    amounts = {name: min(amount, left.get(name, 0)) for name, amount in request.items()}
    cpu, memory = amounts.pop("cpu"), amounts.pop("memory")
    return Resources(cpu, memory, {name: amount for name, amount in amounts.items() if amount})
