"""From what the flow wants to what is asked of the cell.

Where tasks are of different sizes, the flow may put more on a machine than fits together, or push out a
task that is too small to make room. Then those with the highest precedence come first, tasks of lower
precedence that are in their way go, and the rest waits for another round. A round moves and preempts no
more running tasks than it may.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.flow.columns import Rows
from argosy.engines.flow.extraction import Placements
from argosy.engines.flow.graph import Graph
from argosy.engines.flow.tasks import NOWHERE, RUNNING

Numbers = NDArray[np.int64]


class Plan(msgspec.Struct, frozen=True):
    """One transaction: tasks to place or move, and tasks to take from their machines."""

    rows: Rows
    machines: Numbers
    costs: Numbers
    #: Preempted tasks.
    leaving: Rows
    #: Moving tasks that have to leave before others can come: they are released first.
    early: Rows
    #: Whether the round's budget kept something from being done.
    is_cut: bool

    def __len__(self) -> int:
        return len(self.rows) + len(self.leaving)


def admit(graph: Graph, wanted: Placements, view: View) -> Plan:
    rows, machines, costs, leaving = wanted.rows, wanted.machines, wanted.costs, wanted.leaving
    if len(rows) and not (there := graph.cluster.usable[machines]).all():
        # Preferred machines that take no tasks any more.
        rows, machines, costs = rows[there], machines[there], costs[there]
    is_move = graph.tasks["machine"][rows] != NOWHERE
    allowance = graph.settings.moves
    is_cut = int(is_move.sum()) + len(leaving) > allowance
    if is_cut:
        leaving = leaving[:allowance]
        kept = ~is_move | (np.cumsum(is_move) <= allowance - len(leaving))
        rows, machines, costs, is_move = rows[kept], machines[kept], costs[kept], is_move[kept]
    if not len(rows):
        return Plan(rows, machines, costs, leaving, rows, is_cut)
    there = np.unique(machines)
    free = np.zeros((graph.cluster.machines, len(view.dimensions)), np.int64)
    free[there] = view.free(there.astype(np.int32))
    room = free.copy()
    _give(graph, room, leaving, 1)
    _give(graph, room, rows, -1, machines)
    if (room[there] >= 0).all():
        return Plan(rows, machines, costs, leaving, rows[:0], is_cut)
    # Some machines have room only when tasks have moved away.
    is_short = np.zeros(graph.cluster.machines, np.bool_)
    is_short[there] = np.any(room[there] < 0, axis=1)
    moved = rows[is_move]
    _give(graph, room, moved, 1)
    early = moved[is_short[graph.tasks["machine"][moved]]]
    if (room[there] >= 0).all():
        return Plan(rows, machines, costs, leaving, early, is_cut)
    is_short[there] = np.any(room[there] < 0, axis=1)
    sorting = _Sorting(graph, free, is_short, allowance - len(leaving) - len(moved))
    return sorting.plan(rows, machines, costs, leaving, is_cut)


def _give(
    graph: Graph, room: Numbers, rows: Rows, sign: int, machines: Numbers | None = None
) -> None:
    """Add what tasks ask for to the room of machines: theirs, or those given."""
    if not len(rows):
        return
    where = graph.tasks["machine"][rows] if machines is None else machines
    numbers = graph.classes["pool"][graph.tasks["task_class"][rows]]
    for number in np.unique(numbers).tolist():
        request = graph.pools.by_number[number].request
        np.add.at(room, where[numbers == number], sign * request)


class _Sorting:
    """The slow way, one machine after the other, for machines on which not all fits."""

    def __init__(
        self, graph: Graph, free: Numbers, is_short: NDArray[np.bool_], allowance: int
    ) -> None:
        self._graph = graph
        self._free = free
        self._is_short = is_short
        self._allowance = allowance

    def plan(
        self, rows: Rows, machines: Numbers, costs: Numbers, leaving: Rows, is_cut: bool
    ) -> Plan:
        graph = self._graph
        from_short = self._is_short[graph.tasks["machine"][leaving]]
        gone = [leaving[~from_short]]
        kept = ~self._is_short[machines]
        for machine in np.unique(machines[self._is_short[machines]]).tolist():
            arriving = np.flatnonzero(machines == machine)
            may_go = leaving[from_short & (graph.tasks["machine"][leaving] == machine)]
            taken, evicted = self._sort(machine, rows[arriving], may_go)
            kept[arriving[taken]] = True
            gone.append(np.array(evicted, np.int64))
        # Moves out of these machines were not counted on, and may themselves have been refused.
        return Plan(rows[kept], machines[kept], costs[kept], np.concatenate(gone), rows[:0], is_cut)

    def _sort(self, machine: int, arriving: Rows, may_go: Rows) -> tuple[list[int], list[int]]:
        """Which of those that arrive are let in, and who leaves for them."""
        room = self._free[machine].copy()
        taken: list[int] = []
        evicted: list[int] = []
        precedence = [self._precedence(row) for row in arriving.tolist()]
        for at in sorted(range(len(arriving)), key=lambda at: (-precedence[at], at)):
            request = self._request(int(arriving[at]))
            victims = self._victims(machine, precedence[at], may_go, evicted)
            after, needed = room.copy(), []
            for victim in victims:
                if (after >= request).all() or self._allowance < 1:
                    break
                after += self._request(victim)
                needed.append(victim)
            if (after < request).any():
                continue
            evicted.extend(needed)
            self._allowance -= len(set(needed) - set(may_go.tolist()))
            room = after - request
            taken.append(at)
        return taken, evicted

    def _victims(
        self, machine: int, precedence: int, may_go: Rows, evicted: list[int]
    ) -> list[int]:
        """Those the flow gave up, then others of lower precedence, the least first."""
        graph = self._graph
        state, where = graph.tasks["state"], graph.tasks["machine"]
        here = np.flatnonzero((state == RUNNING) & (where == machine)).tolist()
        given_up = [row for row in may_go.tolist() if row not in evicted]
        if not graph.settings.reschedule:
            return given_up
        others = [
            row
            for row in here
            if row not in evicted and row not in given_up and self._precedence(row) < precedence
        ]
        return given_up + sorted(others, key=lambda row: (self._precedence(row), -row))

    def _precedence(self, row: int) -> int:
        graph = self._graph
        job = int(graph.classes["job"][int(graph.tasks["task_class"][row])])
        return graph.jobs[job].job.precedence

    def _request(self, row: int) -> Numbers:
        graph = self._graph
        pool = int(graph.classes["pool"][int(graph.tasks["task_class"][row])])
        return graph.pools.by_number[pool].request
