"""Shortest paths through the residual network without prices: an oracle for `FlowNetwork.cheapest_way`.

All arcs are relaxed at once until nothing changes (Bellman-Ford): O(arcs) array work for each step of
the longest path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.solvers.flow.arrays import Numbers
from argosy.solvers.flow.network import FlowNetwork

FAR: Final = 2**60


class Residual:
    """The residual arcs of a network with an optimal flow, at the time of creation."""

    def __init__(self, network: FlowNetwork) -> None:
        handles = network.all_vertices()
        problem, flows = network.problem(), network.segment_flows()
        tails, heads = handles[problem.tails], handles[problem.heads]
        forward, backward = np.flatnonzero(flows < problem.capacities), np.flatnonzero(flows > 0)
        self.vertices = int(handles.max(initial=-1)) + 1
        self.tails = np.concatenate([tails[forward], heads[backward]]).astype(np.int64)
        self.heads = np.concatenate([heads[forward], tails[backward]]).astype(np.int64)
        self.costs = np.concatenate([problem.costs[forward], -problem.costs[backward]])

    def __len__(self) -> int:
        return len(self.tails)

    def to(self, target: int, without: Sequence[int] = ()) -> Ways:
        """The cheapest paths to `target` that avoid the vertices in `without`."""
        closed = np.zeros(self.vertices, np.bool_)
        closed[list(without)] = True
        open_arcs = np.flatnonzero(~closed[self.heads] & ~closed[self.tails])
        tails, heads, costs = self.tails[open_arcs], self.heads[open_arcs], self.costs[open_arcs]
        distance = np.full(self.vertices, FAR, np.int64)
        follow = np.full(self.vertices, -1, np.int64)
        distance[target] = 0
        for _ in range(self.vertices):
            reach = np.where(distance[heads] < FAR, distance[heads] + costs, FAR)
            best = distance.copy()
            np.minimum.at(best, tails, reach)
            better = np.flatnonzero((reach == best[tails]) & (reach < distance[tails]))
            if not len(better):
                break
            follow[tails[better]] = heads[better]
            distance = best
        return Ways(target, distance, follow)


class Ways:
    def __init__(self, target: int, distances: Numbers, follow: Numbers) -> None:
        self.target = target
        #: Per vertex; `FAR` if there is no path.
        self.distances = distances
        self._follow = follow

    def path(self, vertex: int) -> list[int]:
        """Vertices from `vertex` to the target."""
        path = [vertex]
        while vertex != self.target:
            vertex = int(self._follow[vertex])
            path.append(vertex)
        return path
