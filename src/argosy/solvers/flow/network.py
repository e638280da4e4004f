"""The network as engines use it: edited in place, and solved again from the last flow.

    network = Network()
    tasks = network.add_vertices([1, 1])
    sink = network.add_vertex(-2)
    network.add_arcs(tasks, [sink, sink], capacities=[1, 1], costs=[3, 4])
    network.solve().cost  # 7

Handles of vertices and arcs are small integers that are valid until the vertex or arc is removed; then
they may be reused. Every edit keeps as much of the flow as it can; `solve` repairs the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from argosy._core import FlowAlgorithm, FlowSolver, RosterState
from argosy._core import FlowRooms as Rooms
from argosy._core import FlowRoster as Roster
from argosy._core import FlowStop as Stop
from argosy.model.budgets import Budget
from argosy.solvers.flow.arrays import Handles, Numbers
from argosy.solvers.flow.problem import FlowProblem
from argosy.solvers.flow.solution import Algorithm, FlowSolution, Heuristics, Status, Way

__all__ = ["FlowNetwork", "Rooms", "Roster", "RosterState", "Stop"]


class FlowNetwork:
    """A residual network with its flow and prices."""

    def __init__(self) -> None:
        self._core = FlowSolver()

    @classmethod
    def of(cls, problem: FlowProblem) -> FlowNetwork:
        """A network whose handles are the problem's rows."""
        network = cls()
        network.add_vertices(problem.supplies)
        network.add_arcs(problem.tails, problem.heads, problem.capacities, problem.costs)
        return network

    # Editing.

    def add_vertex(self, supply: int = 0) -> int:
        return int(self.add_vertices([supply])[0])

    def add_vertices(self, supplies: ArrayLike) -> Handles:
        """Adds a vertex for each supply; a demand is a negative supply."""
        return self._core.add_vertices(_numbers(supplies))

    def add_arc(self, tail: int, head: int, capacity: int, cost: int, step: int = 0) -> int:
        """Adds an arc; with a `step` it is convex: unit number k, from 0, costs cost + step k."""
        return int(self.add_arcs([tail], [head], [capacity], [cost], [step])[0])

    def add_arcs(
        self,
        tails: ArrayLike,
        heads: ArrayLike,
        capacities: ArrayLike,
        costs: ArrayLike,
        steps: ArrayLike = 0,
    ) -> Handles:
        """Adds arcs, one per row; a single number applies to all rows."""
        froms, tos = np.broadcast_arrays(_handles(tails), _handles(heads))
        count = len(froms)
        return self._core.add_arcs(
            np.ascontiguousarray(froms),
            np.ascontiguousarray(tos),
            _rows(capacities, count),
            _rows(costs, count),
            _rows(steps, count),
        )

    def add_convex_arc(self, tail: int, head: int, segments: Sequence[tuple[int, int]]) -> int:
        """Adds an arc made of (units, cost per unit) in order of rising cost: equivalent to parallel
        arcs."""
        return self._core.add_segmented_arc(tail, head, *_columns(segments))

    def remove_vertices(self, vertices: ArrayLike, drain: bool = False) -> None:
        """Removes vertices with their arcs and supplies.

        With `drain`, their flow is removed along its whole path to a demand, so that the imbalance
        appears only there and not in between: cost scaling then has less to repair.
        """
        self._core.remove_vertices(_handles(vertices), drain)

    def remove_arcs(self, arcs: ArrayLike) -> None:
        self._core.remove_arcs(_handles(arcs))

    def set_supplies(self, vertices: ArrayLike, supplies: ArrayLike) -> None:
        handles = _handles(vertices)
        self._core.set_supplies(handles, _rows(supplies, len(handles)))

    def set_arcs(
        self,
        arcs: ArrayLike,
        capacities: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        steps: ArrayLike | None = None,
    ) -> None:
        """Sets new terms for arcs; omitted ones do not change. An arc of segments becomes one with
        steps."""
        handles = _handles(arcs)
        count = len(handles)
        self._core.set_arcs(
            handles,
            self._core.capacities(handles) if capacities is None else _rows(capacities, count),
            self._core.costs(handles) if costs is None else _rows(costs, count),
            self._core.steps(handles) if steps is None else _rows(steps, count),
        )

    def set_segments(self, arc: int, segments: Sequence[tuple[int, int]]) -> None:
        """Sets new segments for an arc, which becomes an arc of segments if it was not."""
        self._core.set_segments(arc, *_columns(segments))

    def balance(self, vertex: int) -> None:
        """Sets the vertex's supply so that all supplies add up to zero."""
        self._core.balance(vertex)

    def roster(
        self, dimensions: int, *, reschedules: bool, migration: int, drains: bool = False
    ) -> Roster:
        """A table of tasks that this network places; it edits the network as they come and go. With
        `drains`, the flow of tasks that end is removed as by `remove_vertices`."""
        return Roster(self._core, dimensions, reschedules, migration, drains)

    # Solving.

    def solve(
        self,
        algorithm: Algorithm | str = Algorithm.AUTO,
        *,
        warm: bool = True,
        budget: Budget | None = None,
        stop: Stop | None = None,
        heuristics: Heuristics | None = None,
    ) -> FlowSolution:
        """Finds a flow of minimal cost, starting from the last flow and prices if `warm`.

        `budget` is charged for the arcs scanned; `stop` may be set from another thread. Either ends the
        solve with `Status.STOPPED`, and the next solve continues.
        """
        chosen = heuristics or Heuristics()
        status, winner, scans, took = self._core.solve(
            FlowAlgorithm[Algorithm(algorithm).name],
            warm,
            budget,
            stop,
            chosen.arc_prioritisation,
            chosen.depth_first,
            chosen.price_refine,
            chosen.fresh_prices,
            chosen.short_searches,
            chosen.alpha,
        )
        found = Status[status.name]
        return FlowSolution(
            status=found,
            cost=int(self._core.cost()) if found is Status.OPTIMAL else None,
            seconds=None if took < 0 else took / 1e6,
            algorithm=Algorithm[winner.name],
            scans=scans,
        )

    def forget(self) -> None:
        """Removes all flow and sets all prices to zero."""
        self._core.reset()

    def forget_prices(self) -> None:
        """Sets all prices to zero and keeps the flow."""
        self._core.forget_prices()

    def cheapest_way(
        self,
        starts: ArrayLike,
        target: int,
        *,
        entries: ArrayLike = 0,
        without: ArrayLike = (),
    ) -> Way:
        """The cheapest path of one more unit to `target` through the residual network, avoiding the
        vertices in `without`, from the best of `starts`; starting at a vertex costs its entry in
        `entries`.

        The network must be unchanged since the last solve.
        """
        handles = _handles(starts)
        closed = np.empty(0, np.int32) if not np.size(without) else _handles(without)
        found, cost, scans, vertices = self._core.way(
            handles, _rows(entries, len(handles)), closed, target
        )
        return Way(cost if found else None, vertices, scans)

    # Reading. Without handles: everything, in the order of `all_vertices` and `all_arcs`.

    @property
    def vertices(self) -> int:
        return self._core.vertices

    @property
    def arcs(self) -> int:
        return self._core.arcs

    @property
    def bytes(self) -> int:
        """Memory of the network, including room to grow but not the solvers' work space."""
        return self._core.bytes

    def all_vertices(self) -> Handles:
        return self._core.all_vertices()

    def all_arcs(self) -> Handles:
        return self._core.all_arcs()

    def flows(self, arcs: ArrayLike | None = None) -> Numbers:
        return self._core.flows(_optional(arcs))

    def flow(self, arc: int) -> int:
        return self._core.flow(arc)

    def prices(self, vertices: ArrayLike | None = None) -> Numbers:
        """The dual variables: p(i) - p(j) is the cost of one more unit of supply at i and one less at
        j."""
        return self._core.prices(_optional(vertices))

    def supplies(self, vertices: ArrayLike | None = None) -> Numbers:
        return self._core.supplies(_optional(vertices))

    def tails(self, arcs: ArrayLike | None = None) -> Handles:
        return self._core.tails(_optional(arcs))

    def heads(self, arcs: ArrayLike | None = None) -> Handles:
        return self._core.heads(_optional(arcs))

    def capacities(self, arcs: ArrayLike | None = None) -> Numbers:
        return self._core.capacities(_optional(arcs))

    def costs(self, arcs: ArrayLike | None = None) -> Numbers:
        """The cost of each arc's first unit."""
        return self._core.costs(_optional(arcs))

    def problem(self) -> FlowProblem:
        """The network as columns: vertices renumbered from 0, one row per segment of an arc."""
        handles = self.all_vertices()
        number = np.zeros(int(handles.max(initial=-1)) + 1, np.int32)
        number[handles] = np.arange(len(handles), dtype=np.int32)
        rows, units, costs = self._core.segments(self.all_arcs())
        return FlowProblem(
            supplies=self.supplies(),
            tails=number[self.tails()][rows],
            heads=number[self.heads()][rows],
            capacities=units,
            costs=costs,
        )

    def segment_flows(self) -> Numbers:
        """The flow of each row of `problem()`: segments are filled in order."""
        rows, units, _ = self._core.segments(self.all_arcs())
        before = np.cumsum(units) - units
        starts = np.searchsorted(rows, np.arange(self.arcs))
        offset = before - before[starts[rows]]
        return np.clip(self.flows()[rows] - offset, 0, units)


def _handles(values: ArrayLike) -> Handles:
    return np.ascontiguousarray(_whole(values), np.int32)


def _numbers(values: ArrayLike) -> Numbers:
    return np.ascontiguousarray(_whole(values), np.int64)


def _rows(values: ArrayLike, count: int) -> Numbers:
    whole = _whole(values)
    return np.full(count, whole, np.int64) if whole.ndim == 0 else _numbers(whole)


def _whole(values: ArrayLike) -> NDArray[np.generic]:
    """Rejects fractions, which NumPy would silently truncate."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iub":
        raise ValueError(f"a network takes whole numbers, not {array.dtype}")
    return array


def _optional(values: ArrayLike | None) -> Handles | None:
    return None if values is None else _handles(values)


def _columns(segments: Sequence[tuple[int, int]]) -> tuple[Numbers, Numbers]:
    table = np.array(segments, np.int64).reshape(-1, 2)
    return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])
