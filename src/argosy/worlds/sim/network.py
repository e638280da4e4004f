"""The simulated network: how long a hop takes, and what can go wrong.

Messages between schedulers, and machines' notices to them, may be lost, doubled, reordered, or cut
off by a partition. Requests between a scheduler and the cell or machines, and their answers, are
retransmitted: they take longer during a partition, but are never lost.
"""

from __future__ import annotations

from argosy.host.setup import HostSetup
from argosy.model.random import Random
from argosy.model.scenario import ConstantLatency, Network, PairLatency, Partition, UniformLatency
from argosy.worlds.sim.distances import Distances


class SimulatedNetwork:
    @staticmethod
    def of(setup: HostSetup) -> SimulatedNetwork:
        assert setup.network is not None
        random = Random(setup.seed).child("network")
        return SimulatedNetwork(setup.network, setup.partitions, random, Distances.of(setup))

    def __init__(
        self,
        spec: Network,
        partitions: tuple[Partition, ...],
        random: Random,
        distances: Distances | None = None,
    ) -> None:
        self._spec = spec
        self._distances = distances
        self._partitions = sorted(partitions, key=lambda partition: partition.at)
        self._random = random
        self._constant = spec.latency.delay if isinstance(spec.latency, ConstantLatency) else None
        self._is_faultless = not (
            spec.loss or spec.duplication or spec.reordering or spec.extra_delay or partitions
        )
        #: The delay of every hop, if all are equal and no message is lost; otherwise -1.
        self.plain_hop = -1
        if self._constant is not None and self._is_faultless and distances is None:
            self.plain_hop = self._constant
        #: Mean round-trip time.
        self.round_trip = 0
        match spec.latency:
            case ConstantLatency(delay=delay) | PairLatency(default=delay):
                self.round_trip = 2 * delay
            case UniformLatency(low=low, high=high):
                self.round_trip = low + high
        if distances is not None:
            self.round_trip = distances.round_trip(self.round_trip)
        self.counts = {"sent": 0, "lost": 0, "duplicated": 0, "delayed": 0, "cut": 0}

    def hop(self, sender: str, receiver: str) -> int:
        if self._distances is not None:
            delay = self._distances.between(sender, receiver)
            if delay is not None:
                return delay
        if self._constant is not None:
            return self._constant
        match self._spec.latency:
            case UniformLatency(low=low, high=high):
                return low + self._random.below(high - low + 1)
            case PairLatency(default=default, delays=delays):
                return delays.get(f"{sender}>{receiver}", default)
            case ConstantLatency(delay=delay):
                return delay

    def reliable_delay(self, sender: str, receiver: str, now: int) -> int:
        """The delay of a request that is resent until it arrives: one hop, after any partition that
        isolates the scheduler at either end."""
        wait = 0
        for partition in self._partitions:
            ends = partition.at + partition.lasts
            is_isolated = sender in partition.isolated or receiver in partition.isolated
            if is_isolated and partition.at <= now + wait < ends:
                wait = ends - now
        return wait + self.hop(sender, receiver)

    def deliveries(self, sender: str, receiver: str, now: int) -> tuple[int, ...]:
        """The delays of all copies of one message that arrive: none, one or two."""
        self.counts["sent"] += 1
        if self._is_faultless:
            return (self.hop(sender, receiver),)
        if self._is_cut(sender, receiver, now):
            self.counts["cut"] += 1
            return ()
        if self._happens(self._spec.loss):
            self.counts["lost"] += 1
            return ()
        copies = 1
        if self._happens(self._spec.duplication):
            self.counts["duplicated"] += 1
            copies = 2
        return tuple(self._delay(sender, receiver) for _ in range(copies))

    def _delay(self, sender: str, receiver: str) -> int:
        delay = self.hop(sender, receiver)
        if self._spec.extra_delay and self._happens(self._spec.reordering):
            self.counts["delayed"] += 1
            delay += self._random.below(self._spec.extra_delay + 1)
        return delay

    def _happens(self, probability: float) -> bool:
        return probability > 0 and self._random.uniform() < probability

    def _is_cut(self, sender: str, receiver: str, now: int) -> bool:
        return any(
            partition.at <= now < partition.at + partition.lasts
            and (sender in partition.isolated) != (receiver in partition.isolated)
            for partition in self._partitions
        )
