"""Pools: one aggregator for all tasks that ask for the same resources and attributes, and may or may not
preempt.

A pool has arcs only to machines that can take such a task, directly or through the policy's aggregators:
this is how hard requirements are kept. The number of arcs does not depend on how many jobs share a pool.
Pools are stored as matrices with a row per pool and a column per machine, so that a round takes a few
array operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.cell.bitmaps import to_mask
from argosy.engines.families.flow.cluster import MachineVertices
from argosy.engines.families.flow.policy import ArcCosts, Policy
from argosy.model.resources import Resources
from argosy.solvers.flow import FlowNetwork, Roster
from argosy.solvers.flow.arrays import Numbers

#: What the tasks of a pool ask for: resources, attributes, and whether they may preempt.
PoolRequest: TypeAlias = tuple[Resources, Mapping[str, str], bool]
PoolKey = tuple[tuple[int, ...], tuple[tuple[str, str], ...], bool]
NO_ARC: Final = -1
#: Larger than any flow.
PLENTY: Final = 2**31 - 1
#: Pools that are kept although they have no task.
_KEPT: Final = 64


class Pool:
    """A pool and its vertices."""

    def __init__(self, asked: PoolRequest, key: PoolKey, number: int, vertex: int) -> None:
        self.asked = asked
        self.key = key
        self.number = number
        self.vertex = vertex
        self.request = np.array(key[0], np.int64)
        #: The vertices of its aggregators, and the arcs between them.
        self.aggregators = np.empty(0, np.int32)
        self.links = np.empty(0, np.int32)


def _key(asked: PoolRequest, dimensions: tuple[str, ...]) -> PoolKey:
    request, requires, preempts = asked
    # A resource that no machine has is treated as a required attribute that no machine has.
    apart = {
        f"resource {name}": str(amount)
        for name, amount in request.items()
        if amount and name not in dimensions
    }
    return request.within(dimensions), tuple(sorted({**requires, **apart}.items())), preempts


class Pools:
    def __init__(
        self,
        network: FlowNetwork,
        roster: Roster,
        cluster: MachineVertices,
        view: View,
        policy: Policy,
    ) -> None:
        self._network = network
        self._roster = roster
        self._cluster = cluster
        self._policy = policy
        self.topology = policy.topology()
        self._by_key: dict[PoolKey, Pool] = {}
        self.by_number: dict[int, Pool] = {}
        self._unused: list[int] = []
        width, dimensions = cluster.machines, len(view.dimensions)
        self.requests = np.zeros((0, dimensions), np.int64)
        self.allowed = np.zeros((0, width), np.bool_)
        #: The arc from each pool to each machine, `NO_ARC` where there is none; its room, and what it
        #: costs if there is room.
        self.arcs = np.zeros((0, width), np.int32)
        self.rooms = np.zeros((0, width), np.int64)
        self.costs = np.zeros((0, width), np.int64)
        self.steps = np.zeros((0, width), np.int64)

    def get(
        self, request: Resources, requires: Mapping[str, str], view: View, *, preempts: bool = True
    ) -> Pool:
        asked = request, requires, preempts
        key = _key(asked, view.dimensions)
        return self._by_key.get(key) or self._open(asked, key, view)

    def _open(self, asked: PoolRequest, key: PoolKey, view: View) -> Pool:
        if not self._unused:
            self._grow()
        number = self._unused.pop()
        pool = Pool(asked, key, number, self._network.add_vertex())
        self.requests[number] = pool.request
        self.allowed[number] = self._allowed(key, view)
        for matrix in (self.rooms, self.costs, self.steps):
            matrix[number] = 0
        self.arcs[number] = NO_ARC
        self._roster.open_pool(number, pool.vertex, pool.request, bool(key[1]), key[2])
        self._add_aggregators(pool)
        self._by_key[key] = self.by_number[number] = pool
        return pool

    def _grow(self) -> None:
        old = len(self.arcs)
        count = max(4, old)
        self._unused.extend(range(old + count - 1, old - 1, -1))
        for name in ("requests", "allowed", "arcs", "rooms", "costs", "steps"):
            matrix = getattr(self, name)
            more = np.zeros((count, matrix.shape[1]), matrix.dtype)
            setattr(self, name, np.concatenate([matrix, more]))

    def widen(self, view: View) -> None:
        """Adds columns for new machines of the cluster, and the aggregators that they need."""
        self.topology = self._policy.topology()
        count = self._cluster.machines - self.arcs.shape[1]
        blanks = {"allowed": False, "arcs": NO_ARC, "rooms": 0, "costs": 0, "steps": 0}
        for name, blank in blanks.items():
            matrix = getattr(self, name)
            more = np.full((len(matrix), count), blank, matrix.dtype)
            setattr(self, name, np.concatenate([matrix, more], axis=1))
        self.relabel(view)
        for pool in self.by_number.values():
            self._add_aggregators(pool)

    def relabel(self, view: View) -> None:
        """Updates machine attributes. Aggregators do not change, because they are only preferences."""
        for pool in self.by_number.values():
            self.allowed[pool.number] = self._allowed(pool.key, view)

    def widen_requests(self, view: View) -> None:
        """Makes room for resources that no machine had before: who asks for them may now go there."""
        self.requests = np.zeros((len(self.requests), len(view.dimensions)), np.int64)
        are_choosy = np.zeros(len(self.requests), np.bool_)
        for pool in self.by_number.values():
            pool.key = _key(pool.asked, view.dimensions)
            self.requests[pool.number] = pool.request = np.array(pool.key[0], np.int64)
            are_choosy[pool.number] = bool(pool.key[1])
        self._by_key = {pool.key: pool for pool in self.by_number.values()}
        self._roster.widen(self.requests, are_choosy)
        self.relabel(view)

    def _allowed(self, key: PoolKey, view: View) -> NDArray[np.bool_]:
        width, requires = self._cluster.machines, dict(key[1])
        if not requires:
            return np.ones(width, np.bool_)
        return to_mask(view.where(requires), width)

    def _add_aggregators(self, pool: Pool) -> None:
        """Adds the aggregators and arcs of the topology that the pool lacks."""
        count = self.topology.aggregators - len(pool.aggregators)
        new = self._network.add_vertices(np.zeros(count, np.int64))
        pool.aggregators = np.append(pool.aggregators, new)
        tails, heads = (
            ends[len(pool.links) :] for ends in (self.topology.tails, self.topology.heads)
        )
        if not len(tails):
            return
        # The pool stands last, where its number -1 finds it.
        vertices = np.append(pool.aggregators, np.int32(pool.vertex))
        arcs = self._network.add_arcs(vertices[tails], vertices[heads], PLENTY, 0)
        pool.links = np.append(pool.links, arcs)
        self._roster.add_aggregators(pool.number, new, tails, heads, arcs)

    def set_links(self) -> None:
        """Sets the terms that the policy wants for arcs between aggregators."""
        if not self.topology.aggregators:
            return
        for pool in self.by_number.values():
            terms = self._policy.link_terms(pool.request)
            if terms is not None:
                costs = terms.costs
                self._network.set_arcs(pool.links, terms.capacities, costs.costs, costs.steps)

    def clear(self) -> None:
        """Drops pools without tasks, but only once there are many pools: most are used again."""
        if len(self._by_key) <= _KEPT:
            return
        tasks = self._roster.pool_tasks().tolist()
        for pool in [*self._by_key.values()]:
            if not tasks[pool.number]:
                self._network.remove_vertices([pool.vertex, *pool.aggregators.tolist()])
                del self._by_key[pool.key], self.by_number[pool.number]
                self._roster.close_pool(pool.number)
                self._unused.append(pool.number)

    def __len__(self) -> int:
        return len(self.by_number)

    @property
    def tables(self) -> tuple[NDArray[np.int32], Numbers, Numbers, Numbers]:
        """Arcs from pools to machines with their room and costs, as the core takes them."""
        return self.arcs, self.rooms, self.costs, self.steps

    def thinned(self, numbers: Numbers, rooms: Numbers, terms: ArcCosts, most: int) -> Numbers:
        """Room of pools on machines, restricted to the `most` cheapest machines per pool. This does not
        affect optimality while fewer tasks move in a round, because one of a task's cheapest machines
        is then unchanged."""
        costs = np.broadcast_to(np.asarray(terms.costs, np.int64), rooms.shape)
        rows = zip(numbers.tolist(), rooms, costs, strict=True)
        return np.array([self._thinned(number, room, cost, most) for number, room, cost in rows])

    def _thinned(self, number: int, rooms: Numbers, costs: Numbers, most: int) -> Numbers:
        """Room on the cheapest machines only; among equals, each pool starts at a different machine."""
        count = len(rooms)
        start = number * 7919 % count
        chosen = np.flatnonzero(rooms)
        if len(chosen) > most:
            order = np.lexsort(((chosen - start) % count, costs[chosen]))
            chosen = chosen[order[:most]]
        thinned = np.zeros_like(rooms)
        thinned[chosen] = rooms[chosen]
        gone = np.flatnonzero((self.arcs[number] != NO_ARC) & (thinned == 0))
        if len(gone):
            self._network.remove_arcs(self.arcs[number, gone])
            self.arcs[number, gone], self.rooms[number, gone] = NO_ARC, 0
        return thinned
