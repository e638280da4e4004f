"""From flow to placements, in one pass from the machines back to the tasks.

Most tasks stay where they run: the flow on their own arcs says so, and nothing else of them is looked
at. For the rest, units of flow carry the machines they lead to from racks to pools to classes. Which of
a class's equal tasks gets which machine does not matter; those that have to leave a machine come first,
for it costs more to have none when one ran.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.flow.columns import Rows
from argosy.engines.flow.graph import Graph
from argosy.engines.flow.pools import NO_ARC, Pool
from argosy.engines.flow.tasks import PENDING, RUNNING

Numbers = NDArray[np.int64]


class Placements(msgspec.Struct, frozen=True):
    """What the flow wants changed."""

    #: Tasks with a new machine, and the cost of the first arc of their way there. Some run elsewhere.
    rows: Rows
    machines: Numbers
    costs: Numbers
    #: Tasks that are to lose their machine.
    leaving: Rows


class _Arrivals:
    """Machines that classes reach, with the cost of the first arc."""

    def __init__(self) -> None:
        self.classes: list[Numbers] = []
        self.machines: list[Numbers] = []
        self.costs: list[Numbers] = []

    def add(self, classes: Numbers, machines: Numbers, costs: Numbers) -> None:
        self.classes.append(classes)
        self.machines.append(machines)
        self.costs.append(costs)

    def sorted(self) -> tuple[Numbers, Numbers, Numbers]:
        empty = np.empty(0, np.int64)
        classes = np.concatenate([empty, *self.classes])
        order = np.argsort(classes, kind="stable")
        machines, costs = (np.concatenate([empty, *x]) for x in (self.machines, self.costs))
        return classes[order], machines[order], costs[order]


def extract(graph: Graph) -> Placements:
    leaving = _leaving(graph)
    active = _active(graph, leaving)
    classes, machines, costs = _arrivals(graph, active).sorted()
    starts = np.searchsorted(classes, active)
    ends = np.searchsorted(classes, active, side="right")
    rows_out: list[Numbers] = []
    machines_out: list[Numbers] = []
    costs_out: list[Numbers] = []
    preempted: list[Numbers] = []
    # A task that is a class of its own and gets a machine is all there is to say of the class.
    lone = (graph.classes["rows"][active] == 1) & (ends - starts == 1)
    lone &= ~np.isin(active, np.array(sorted(leaving), np.int64))
    rows_out.append(graph.classes["first"][active[lone]])
    machines_out.append(machines[starts[lone]])
    costs_out.append(costs[starts[lone]])
    rest = zip(active[~lone].tolist(), starts[~lone].tolist(), ends[~lone].tolist(), strict=True)
    for task_class, start, end in rest:
        going = leaving.get(task_class)
        here, price = machines[start:end], costs[start:end]
        if going is not None:
            going, here, price = _stays(graph, going, here, price)
        candidates = _pending(graph, task_class, len(here) - (0 if going is None else len(going)))
        if going is not None:
            preempted.append(going[len(here) :])
            candidates = np.concatenate([going[: len(here)], candidates])
        rows_out.append(candidates)
        machines_out.append(here)
        costs_out.append(price)
    empty = np.empty(0, np.int64)
    return Placements(
        np.concatenate([empty, *rows_out]),
        np.concatenate([empty, *machines_out]),
        np.concatenate([empty, *costs_out]),
        np.concatenate([empty, *preempted]),
    )


def _leaving(graph: Graph) -> dict[int, Numbers]:
    """Rows of running tasks that the flow does not keep where they are, by class."""
    runs = graph.runs
    if not runs.used:
        return {}
    short = runs["count"] - graph.network.flows(runs["arc"].astype(np.int32))
    leaving: dict[int, list[Numbers]] = {}
    for run in np.flatnonzero(short).tolist():
        task_class, machine = int(runs["task_class"][run]), int(runs["machine"][run])
        rows = _rows_of(graph, task_class)
        there = rows[
            (graph.tasks["state"][rows] == RUNNING) & (graph.tasks["machine"][rows] == machine)
        ]
        # The last to come are the first to go.
        leaving.setdefault(task_class, []).append(there[len(there) - int(short[run]) :])
    return {task_class: np.concatenate(rows) for task_class, rows in leaving.items()}


def _rows_of(graph: Graph, task_class: int) -> Numbers:
    first, count = (int(graph.classes[name][task_class]) for name in ("first", "rows"))
    rows: Numbers = np.arange(first, first + count)
    return np.compress(graph.tasks["task_class"][rows] == task_class, rows)


def _active(graph: Graph, leaving: dict[int, Numbers]) -> Numbers:
    """Classes for which anything changes: some of its tasks wait for a machine and get one, or leave."""
    waiting = np.flatnonzero(graph.classes["pending"] > 0)
    if len(waiting):
        unplaced = graph.network.flows(graph.classes["wait_arc"][waiting])
        waiting = waiting[unplaced < graph.classes["pending"][waiting]]
    return np.union1d(waiting, np.array(sorted(leaving), np.int64))


def _pending(graph: Graph, task_class: int, count: int) -> Numbers:
    if count <= 0:
        return np.empty(0, np.int64)
    rows = _rows_of(graph, task_class)
    pending: Numbers = rows[graph.tasks["state"][rows] == PENDING]
    return pending[:count]


def _stays(
    graph: Graph, going: Numbers, here: Numbers, costs: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """A unit that leaves a machine by one arc and comes back by another stays."""
    where = graph.tasks["machine"][going]
    keep_going, keep_here = np.ones(len(going), np.bool_), np.ones(len(here), np.bool_)
    for machine in np.intersect1d(where, here).tolist():
        out, back = np.flatnonzero(where == machine), np.flatnonzero(here == machine)
        both = min(len(out), len(back))
        keep_going[out[:both]] = False
        keep_here[back[:both]] = False
    return going[keep_going], here[keep_here], costs[keep_here]


def _arrivals(graph: Graph, active: Numbers) -> _Arrivals:
    arrivals = _Arrivals()
    columns, network = graph.classes, graph.network
    by_rack: dict[int, list[tuple[int, int, int]]] = {}
    for task_class in active.tolist():
        if (wanted := graph.preferences.get(task_class)) is None:
            continue
        arcs, places, costs = wanted
        for at in np.flatnonzero(network.flows(arcs)).tolist():
            place, cost = int(places[at]), int(costs[at])
            if place >= 0:
                one = np.array([task_class], np.int64)
                arrivals.add(one, np.array([place], np.int64), np.array([cost], np.int64))
            else:
                pool = int(columns["pool"][task_class])
                by_rack.setdefault(pool, []).append((-1 - place, task_class, cost))
    units = network.flows(columns["pool_arc"][active])
    numbers = columns["pool"][active]
    for number in sorted({*numbers[units > 0].tolist(), *by_rack}):
        reached = _reached(graph, graph.pools.by_number[number], by_rack.get(number, []), arrivals)
        mine = (numbers == number) & (units > 0)
        classes = np.repeat(active[mine], units[mine])
        arrivals.add(classes, reached[: len(classes)], columns["pool_cost"][classes])
    return arrivals


def _reached(
    graph: Graph, pool: Pool, preferring: list[tuple[int, int, int]], arrivals: _Arrivals
) -> Numbers:
    """The machines that flow from the pool leads to, after those that prefer a rack took theirs."""
    arcs = graph.pools.arcs[pool.number]
    having = np.flatnonzero(arcs != NO_ARC)
    flows = graph.network.flows(arcs[having])
    machines = np.repeat(having, flows).astype(np.int64)
    if not preferring:
        return machines
    racks = graph.cluster.racks[machines]
    left = np.ones(len(machines), np.bool_)
    for rack, task_class, cost in preferring:
        at = int(np.flatnonzero((racks == rack) & left)[0])
        left[at] = False
        one = np.array([task_class], np.int64)
        arrivals.add(one, machines[at : at + 1], np.array([cost], np.int64))
    return machines[left]
