"""How long pods wait in the queue of a node, as far as that can be said."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from argosy.model.resources import Resources


class QueuePlace(msgspec.Struct, frozen=True):
    """In the queues of these nodes (several, if it goes to the first that is ready), as number
    `position` of one of them, and for how many microseconds still; none if that is unknown."""

    nodes: tuple[str, ...]
    position: int
    wait: int | None

    def joined(self, other: QueuePlace) -> QueuePlace:
        """The same pod waits elsewhere as well."""
        waits = [each.wait for each in (self, other) if each.wait is not None]
        return QueuePlace(
            tuple(sorted({*self.nodes, *other.nodes})),
            min(self.position, other.position),
            min(waits, default=None),
        )


def expected_waits(
    free: Mapping[str, int],
    running: Iterable[tuple[int | None, Resources]],
    queue: Sequence[tuple[int | None, Resources]],
) -> list[int | None]:
    """For each pod of a queue, in the order of starting, how long until there is room for it. Pods that
    run are given with the time that is left to them, and pods that wait with the time that they take;
    none if that is unknown. Nobody starts before those ahead of it."""
    left = dict(free)
    # The numbers only keep requests from being compared.
    ends = [(rest, at, request) for at, (rest, request) in enumerate(running) if rest is not None]
    heapq.heapify(ends)
    number, now = len(ends), 0
    waits: list[int | None] = []
    for takes, request in queue:
        while not _fits(request, left):
            if not ends:
                return waits + [None] * (len(queue) - len(waits))
            now, _, ended = heapq.heappop(ends)
            for name, amount in ended.items():
                left[name] = left.get(name, 0) + amount
        waits.append(now)
        for name, amount in request.items():
            left[name] = left.get(name, 0) - amount
        if takes is not None:
            number += 1
            heapq.heappush(ends, (now + takes, number, request))
    return waits


def _fits(request: Resources, left: Mapping[str, int]) -> bool:
    return all(amount <= left.get(name, 0) for name, amount in request.items() if amount)
