"""Distances between the parties of a federation, by their places."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.host.protocols import CELL, MACHINES, agent_of
from argosy.host.setup import HostSetup
from argosy.model.scenario import BOTH_WAYS, Places


class Distances:
    @staticmethod
    def of(setup: HostSetup) -> Distances | None:
        """None if all hops have the ordinary latency."""
        if setup.federation is None or setup.federation.places is None:
            return None
        clusters, places = setup.federation.clusters, setup.federation.schedulers
        everywhere = tuple(dict.fromkeys(cluster.place for cluster in clusters))
        where: dict[str, tuple[str, ...]] = {
            agent_of(cluster.name): (cluster.place,) for cluster in clusters
        }
        schedulers: dict[str, tuple[str, ...]] = {
            name: (places[name],) if name in places else ()
            for entry in setup.fleet
            for name in entry.scheduler_names()
        }
        # A message to the whole federation, or to its machines, has arrived when all have it.
        where |= {CELL: everywhere, MACHINES: everywhere}
        return Distances(setup.federation.places, where, schedulers)

    def __init__(
        self,
        places: Places,
        where: Mapping[str, tuple[str, ...]],
        schedulers: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._default = places.default
        self._within = places.within
        self._pairs: dict[tuple[str, str], int] = {}
        for pair, delay in places.delays.items():
            one, other = pair.split(BOTH_WAYS)
            self._pairs[one, other] = self._pairs[other, one] = delay
        self._where = {**where, **schedulers}
        self._agents = [party for party in where if party not in (CELL, MACHINES)]
        self._schedulers = list(schedulers)
        self._known: dict[tuple[str, str], int | None] = {}

    def between(self, sender: str, receiver: str) -> int | None:
        """The delay of a hop, to the farthest place of either party; None if one has no place."""
        pair = sender, receiver
        if pair not in self._known:
            ways = [
                self._delay(one, other)
                for one in self._where.get(sender, ())
                for other in self._where.get(receiver, ())
            ]
            self._known[pair] = max(ways) if ways else None
        return self._known[pair]

    def round_trip(self, ordinary: int) -> int:
        """The mean round-trip time between schedulers and clusters."""
        trips = []
        for scheduler in self._schedulers:
            for agent in self._agents:
                delay = self.between(scheduler, agent)
                trips.append(ordinary if delay is None else 2 * delay)
        return sum(trips) // len(trips)

    def _delay(self, one: str, other: str) -> int:
        if one == other:
            return self._within
        return self._pairs.get((one, other), self._default)
