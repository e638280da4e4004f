"""How much room there really is on nodes: what pods on them take, also those that are leaving."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

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

    def free(self, node: str) -> dict[str, int]:
        used = self._used[node]
        return {name: have - used[name] for name, have in self._capacity.get(node, {}).items()}

    def fits(self, node: str, request: Resources, more: Mapping[str, int] | None = None) -> bool:
        """Whether there is room for it, and for so much `more`."""
        used, have = self._used[node], self._capacity.get(node, {})
        for name, amount in request.items():
            extra = more.get(name, 0) if more else 0
            if amount and used[name] + extra + amount > have.get(name, 0):
                return False
        return True


class SparedRoom:
    """What would be left on nodes if more pods were there."""

    def __init__(self, room: NodeRoom) -> None:
        self._room = room
        self._taken: dict[str, dict[str, int]] = {}

    def take(self, node: str, request: Resources) -> None:
        taken = self._taken.setdefault(node, {})
        for name, amount in request.items():
            taken[name] = taken.get(name, 0) + amount

    def fits(self, node: str, request: Resources) -> bool:
        return self._room.fits(node, request, self._taken.get(node))


def least_of(request: Resources, free: Resources) -> Resources:
    """As much of the request as is free."""
    left = dict(free.items())
    amounts = {name: min(amount, left.get(name, 0)) for name, amount in request.items()}
    cpu, memory = amounts.pop("cpu"), amounts.pop("memory")
    return Resources(cpu, memory, {name: amount for name, amount in amounts.items() if amount})
