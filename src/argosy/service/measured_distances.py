"""Distances between places, as far as a scheduler knows them: what it was told, and what it measures.

It measures the round trips between itself and its agents. Between two of their places it assumes the way
over the scheduler. A message does not take longer than that, so a bound on a latency that is found to be
kept is kept.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from argosy.api.agent_values import ClusterPlace
from argosy.client.agent_connection import AgentLink, AgentUnreached
from argosy.model.scenario import BOTH_WAYS

#: Microseconds: a message within one place, as in scenarios.
WITHIN: Final = 500
#: Of so many round trips, the shortest counts: others may have waited for a processor.
_MEASURED: Final = 8
_PLACE: Final = msgspec.json.Decoder(ClusterPlace)


class MeasuredDistances:
    """`place` is the scheduler's; `given` has microseconds by "one<>other"."""

    def __init__(self, place: str = "", given: Mapping[str, int] | None = None) -> None:
        self._here = place
        self._given = dict(given or {})
        self._clusters: dict[str, ClusterPlace] = {}
        #: Round trips in microseconds, by cluster.
        self._trips: dict[str, deque[int]] = {}
        #: Microseconds from the scheduler to every place; None: to be computed again.
        self._ways: dict[str, int] | None = None

    async def measure(self, cluster: str, link: AgentLink) -> None:
        """Asks an agent where it is, and takes the time."""
        began = time.perf_counter_ns()
        reply = await link.ask("GET", "/v1/place")
        took = time.perf_counter_ns() - began
        try:
            said = _PLACE.decode(reply.body)
        except msgspec.MsgspecError:
            raise AgentUnreached(f"{cluster} does not say where it is") from None
        self.learn(cluster, said, took // 1_000)

    def learn(self, cluster: str, said: ClusterPlace, round_trip: int) -> None:
        if self._clusters.get(cluster) != said:
            self._clusters[cluster] = said
            self._trips[cluster] = deque(maxlen=_MEASURED)
        self._trips[cluster].append(round_trip)
        self._ways = None

    def place_of(self, cluster: str) -> str:
        """The cluster's own name until it has said more."""
        said = self._clusters.get(cluster)
        return cluster if said is None else said.place

    def location_of(self, cluster: str) -> str:
        said = self._clusters.get(cluster)
        return "" if said is None else said.location

    def measured(self) -> Iterator[tuple[str, str, int]]:
        """Cluster, place and round trip of each agent that has answered."""
        for cluster, trips in self._trips.items():
            yield cluster, self.place_of(cluster), min(trips)

    def between(self, one: str, other: str) -> int | None:
        """Microseconds for a message from place to place; None if nothing is known."""
        for pair in (f"{one}{BOTH_WAYS}{other}", f"{other}{BOTH_WAYS}{one}"):
            if pair in self._given:
                return self._given[pair]
        if one == other:
            return WITHIN
        ways = self._from_here()
        return ways[one] + ways[other] if one in ways and other in ways else None

    def around(self, cluster: str) -> dict[str, int]:
        """How far every place is from the cluster's that is known to be at any distance."""
        own = self.place_of(cluster)
        named = (place for pair in self._given for place in pair.split(BOTH_WAYS))
        places = dict.fromkeys((own, *self._from_here(), *named))
        found = ((place, self.between(own, place)) for place in places)
        return {place: delay for place, delay in found if delay is not None}

    def _from_here(self) -> dict[str, int]:
        if self._ways is None:
            ways: dict[str, int] = {}
            for _, place, trip in self.measured():
                ways[place] = min(trip // 2, ways.get(place, trip))
            if self._here:
                ways[self._here] = 0
            self._ways = ways
        return self._ways
