"""Pools: one aggregator for all tasks that ask for the same resources and attributes.

A pool has arcs to the machines that can take such a task, directly or by way of racks, and to no other:
this is how hard constraints are kept. Whatever number of jobs share a pool, the arcs are as many. All
pools together are matrices with a row each and a column a machine, so that a round costs a few array
operations however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.flow.cluster import Cluster
from argosy.engines.flow.policy import Terms
from argosy.model.resources import Resources
from argosy.solvers.flow import Network

Numbers = NDArray[np.int64]
PoolKey = tuple[tuple[int, ...], tuple[tuple[str, str], ...]]
NO_ARC: Final = -1
#: More than any flow.
PLENTY: Final = 2**31 - 1
#: Pools that are kept although they have no task.
_KEPT: Final = 64


class Pool:
    """One pool: its vertices and how many tasks it has."""

    def __init__(self, key: PoolKey, number: int, vertex: int) -> None:
        self.key = key
        self.number = number
        self.vertex = vertex
        self.request = np.array(key[0], np.int64)
        #: Its tasks that are not over, and those of them without a machine.
        self.tasks = 0
        self.pending = 0
        #: Vertex of each rack, where there are racks.
        self.racks: NDArray[np.int32] | None = None


class Pools:
    def __init__(
        self, network: Network, cluster: Cluster, dimensions: int, *, has_racks: bool
    ) -> None:
        self._network = network
        self._cluster = cluster
        self._has_racks = has_racks
        self._by_key: dict[PoolKey, Pool] = {}
        self.by_number: dict[int, Pool] = {}
        self._unused: list[int] = []
        width = cluster.machines
        self.requests = np.zeros((0, dimensions), np.int64)
        self.allowed = np.zeros((0, width), np.bool_)
        #: Arc of each pool to each machine, and its terms; `NO_ARC` where there is none.
        self.arcs = np.zeros((0, width), np.int32)
        self.rooms = np.zeros((0, width), np.int64)
        self.costs = np.zeros((0, width), np.int64)
        self.steps = np.zeros((0, width), np.int64)
        #: Tasks of each pool that run on each machine.
        self.running = np.zeros((0, width), np.int64)
        #: How many tasks of each pool fit into what is free on each machine, and what was free then.
        self.fits = np.zeros((0, width), np.int64)
        self._free = np.full((width, dimensions), -1, np.int64)

    def get(self, request: Resources, requires: Mapping[str, str], view: View) -> Pool:
        key = (request.vector(view.dimensions), tuple(sorted(requires.items())))
        return self._by_key.get(key) or self._open(key, requires, view)

    def _open(self, key: PoolKey, requires: Mapping[str, str], view: View) -> Pool:
        if not self._unused:
            self._grow()
        number = self._unused.pop()
        pool = Pool(key, number, self._network.add_vertex())
        self.requests[number] = pool.request
        self.allowed[number] = self._allowed(requires, view)
        for matrix in (self.rooms, self.costs, self.steps, self.running):
            matrix[number] = 0
        self.arcs[number] = NO_ARC
        self.fits[number] = fitting(self.requests[[number]], self._free)[0]
        self._add_racks(pool)
        self._by_key[key] = self.by_number[number] = pool
        return pool

    def _grow(self) -> None:
        old = len(self.arcs)
        count = max(4, old)
        self._unused.extend(range(old + count - 1, old - 1, -1))
        for name in ("requests", "allowed", "arcs", "rooms", "costs", "steps", "running", "fits"):
            matrix = getattr(self, name)
            more = np.zeros((count, matrix.shape[1]), matrix.dtype)
            setattr(self, name, np.concatenate([matrix, more]))

    def widen(self, view: View) -> None:
        """Columns for machines that the cluster has taken in, and vertices for their racks."""
        count = self._cluster.machines - self.arcs.shape[1]
        blanks = {"allowed": False, "arcs": NO_ARC, "rooms": 0, "costs": 0, "steps": 0}
        for name, blank in {**blanks, "running": 0, "fits": 0}.items():
            matrix = getattr(self, name)
            more = np.full((len(matrix), count), blank, matrix.dtype)
            setattr(self, name, np.concatenate([matrix, more], axis=1))
        self._free = np.pad(self._free, ((0, count), (0, 0)), constant_values=-1)
        for pool in self.by_number.values():
            self.allowed[pool.number] = self._allowed(dict(pool.key[1]), view)
            self._add_racks(pool)

    def _allowed(self, requires: Mapping[str, str], view: View) -> NDArray[np.bool_]:
        width = self._cluster.machines
        if not requires:
            return np.ones(width, np.bool_)
        bits = np.unpackbits(view.where(requires).view(np.uint8), bitorder="little")
        return bits[:width].astype(np.bool_)

    def _add_racks(self, pool: Pool) -> None:
        """Vertices for racks that the pool has none for."""
        if not self._has_racks:
            return
        old = np.empty(0, np.int32) if pool.racks is None else pool.racks
        count = len(self._cluster.rack_names) - len(old)
        new = self._network.add_vertices(np.zeros(count, np.int64))
        self._network.add_arcs(pool.vertex, new, PLENTY, 0)
        pool.racks = np.append(old, new)

    def clear(self) -> None:
        """Drop pools of which no task is left, when there are many: most come back."""
        if len(self._by_key) <= _KEPT:
            return
        for pool in [*self._by_key.values()]:
            if not pool.tasks:
                racks = [] if pool.racks is None else pool.racks.tolist()
                self._network.remove_vertices([pool.vertex, *racks])
                del self._by_key[pool.key], self.by_number[pool.number]
                self._unused.append(pool.number)

    def __len__(self) -> int:
        return len(self.by_number)

    def living(self) -> list[Pool]:
        return [pool for pool in self.by_number.values() if pool.tasks]

    def look(self, free: Numbers) -> None:
        """Note what is free; only machines where it changed are computed anew."""
        changed = np.unique(np.nonzero(free != self._free)[0])
        if len(changed):
            self.fits[:, changed] = fitting(self.requests, free[changed])
            self._free = free

    def set(self, numbers: Numbers, rooms: Numbers, terms: Terms, most: int) -> None:
        """New terms for the arcs of some pools; only what changed is touched. Where `most` is less than
        a pool's machines with room, the cheapest so many have arcs. Nothing is lost by that as long as
        fewer tasks move in a round: one of a task's cheapest machines is then as it was."""
        if terms.most is not None:
            rooms = np.minimum(rooms, terms.most)
        costs = np.broadcast_to(np.asarray(terms.costs, np.int64), rooms.shape)
        steps = np.broadcast_to(np.asarray(terms.steps, np.int64), rooms.shape)
        if most < rooms.shape[1]:
            rooms = np.array(
                [
                    self._thinned(int(number), room, cost, most)
                    for number, room, cost in zip(numbers, rooms, costs, strict=True)
                ]
            )
        arcs = self.arcs[numbers]
        has_room, is_there = rooms > 0, arcs != NO_ARC
        terms_differ = (costs != self.costs[numbers]) | (steps != self.steps[numbers])
        differs = (rooms != self.rooms[numbers]) | (terms_differ & has_room)
        self._change(numbers, is_there & differs, rooms, costs, steps)
        self._add(numbers, ~is_there & has_room, rooms, costs, steps)

    def _change(
        self,
        numbers: Numbers,
        which: NDArray[np.bool_],
        rooms: Numbers,
        costs: Numbers,
        steps: Numbers,
    ) -> None:
        at, machines = np.nonzero(which)
        if not len(at):
            return
        pools = numbers[at]
        new = rooms[at, machines], costs[at, machines], steps[at, machines]
        self._network.set_arcs(self.arcs[pools, machines], *new)
        self.rooms[pools, machines], self.costs[pools, machines], self.steps[pools, machines] = new

    def _add(
        self,
        numbers: Numbers,
        which: NDArray[np.bool_],
        rooms: Numbers,
        costs: Numbers,
        steps: Numbers,
    ) -> None:
        at, machines = np.nonzero(which)
        if not len(at):
            return
        pools = numbers[at]
        new = rooms[at, machines], costs[at, machines], steps[at, machines]
        tails = np.empty(len(at), np.int32)
        for row, number in enumerate(numbers.tolist()):
            pool, mine = self.by_number[number], at == row
            if pool.racks is None:
                tails[mine] = pool.vertex
            else:
                tails[mine] = pool.racks[self._cluster.racks[machines[mine]]]
        heads = self._cluster.vertices[machines]
        self.arcs[pools, machines] = self._network.add_arcs(tails, heads, *new)
        self.rooms[pools, machines], self.costs[pools, machines], self.steps[pools, machines] = new

    def _thinned(self, number: int, rooms: Numbers, costs: Numbers, most: int) -> Numbers:
        """Room at the cheapest machines only; among equals each pool begins elsewhere."""
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


def fitting(requests: Numbers, room: Numbers) -> Numbers:
    """How many tasks of each request fit into each row of room."""
    least = np.full((len(requests), len(room)), PLENTY, np.int64)
    for dimension in range(requests.shape[1]):
        asked = requests[:, dimension]
        some = np.flatnonzero(asked)
        if len(some):
            counts = room[None, :, dimension] // asked[some, None]
            least[some] = np.minimum(least[some], counts)
    return np.maximum(least, 0)
