"""Prices of places: what a place would cost a waiting task, and what the second-best place would
have cost a placed one.

Both are cheapest paths through the residual network, which include what other tasks would have to
do. Dual prices make the search small but are not enough alone, because a price is only a bound on
the cost of a path. The result is exact for the current flow: solving again with changed costs
confirms it.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from argosy.engines.families.flow.graph import Graph
from argosy.engines.families.flow.policy import POOL
from argosy.engines.families.flow.pools import FAR, NO_ARC
from argosy.model.explanations import Explanation
from argosy.model.prices import Price
from argosy.solvers.flow.arrays import Numbers

RULE: Final = "cheapest flow"


class Priced(msgspec.Struct, frozen=True):
    """The price of a place, if one is reachable, and the number of arcs scanned to find it."""

    price: Price | None
    scans: int


def price_of(graph: Graph, task_class: int, where: Numbers) -> Priced:
    """The price of a place for one more task of the class. The path must not use the job's own
    unscheduled vertex, because more precedence would raise that cost too. `where` is the machine of
    every task, by row."""
    columns = graph.classes
    vertex, number = int(columns["vertex"][task_class]), int(columns["job"][task_class])
    job = graph.jobs[number]
    owner = int(columns["owner"][task_class])
    own = graph.owner_cost(owner)
    targets = [(graph.sink, 0)]
    if graph.owner_vertices[owner] != graph.sink:
        # If a task of the same owner is displaced, the owner's share does not change.
        targets.append((graph.owner_vertices[owner], own))
    best, path, scans = FAR, np.empty(0, np.int32), 0
    for target, beyond in targets:
        way = graph.network.cheapest_way([vertex], target, without=[job.vertex])
        scans += way.scans
        if way.cost is not None and way.cost + beyond < best:
            best, path = way.cost + beyond, way.vertices
    if best == FAR:
        return Priced(None, scans)
    waiting = int(columns["wait_cost"][task_class]) + job.cost + own
    if graph.network.flows(columns["wait_arc"][[task_class]])[0] > columns["pending"][task_class]:
        # The flow preempts running tasks of this class, which would get their machines back first.
        waiting += int(columns["preemption"][task_class])
    rise = best - waiting + 1
    each = graph.policy.precedence_price()
    machines, classes, jobs = (column[column >= 0] for column in graph.roster.labels(path[1:]))
    # Where the path leaves a pool backwards, it displaces a unit that goes through the pool as well.
    place = int(machines[0]) if len(machines) else None
    holder = _task_of(graph, int(classes[0]), where, place) if len(classes) else -1
    if place is None:
        place = int(where[holder]) if holder >= 0 else -1
    loser = _task_of(graph, int(classes[-1]), where, None) if len(jobs) and len(classes) else -1
    return Priced(
        Price(
            waiting=waiting,
            place=best,
            machine=place,
            holder=int(graph.tasks["number"][holder]) if holder >= 0 else -1,
            loser=int(graph.tasks["number"][loser]) if loser >= 0 else -1,
            rise=rise,
            precedence=-(-rise // each) if each else None,
        ),
        scans,
    )


class Ranked(msgspec.Struct, frozen=True):
    explanation: Explanation
    scans: int


def second_best(graph: Graph, task_class: int, machine: int, cost: int) -> Ranked:
    """What a unit of the class costs on a machine, and what it would cost on the next best one or
    without a machine: the cheapest path, entering at another machine, to the room that the unit
    leaves."""
    columns, cluster = graph.classes, graph.cluster
    vertex = int(columns["vertex"][task_class])
    job = graph.jobs[int(columns["job"][task_class])]
    here = int(cluster.vertices[machine])
    places, entries = _entries(graph, task_class)
    is_other = places != machine
    starts = np.append(cluster.vertices[places[is_other]], np.int32(job.vertex))
    costs = np.append(entries[is_other], columns["wait_cost"][task_class])
    way = graph.network.cheapest_way(starts, here, entries=costs, without=[vertex])
    own = cost + _onward_cost(graph, task_class, machine)
    sink_costs, sink_steps = (int(terms[machine]) for terms in graph.sink_terms[1:])
    flow = int(graph.network.flows(graph.sink_arcs[[machine]])[0])
    score = own + sink_costs + sink_steps * max(0, flow - 1)
    explanation = Explanation(
        looked_at=int(np.count_nonzero(cluster.usable)),
        feasible=len(places),
        rule=RULE,
        score=score,
        measure="cost",
    )
    if way.cost is not None:
        second = int(graph.roster.labels(way.vertices[:1])[0][0])
        explanation = msgspec.structs.replace(
            explanation,
            second=second if second >= 0 else None,
            second_score=score + way.cost - own,
        )
    return Ranked(explanation, way.scans + cluster.machines)


def _onward_cost(graph: Graph, task_class: int, machine: int) -> int:
    """The cost of the last unit from the class's pool to the machine; 0 if it went there directly."""
    if (wanted := graph.preferences.get(task_class)) is not None:
        arcs = wanted[0][wanted[1] == machine]
        if len(arcs) and graph.network.flows(arcs).any():
            return 0
    pools, number = graph.pools, int(graph.classes["pool"][task_class])
    arc = pools.arcs[number, machine]
    flow = int(graph.network.flows([arc])[0]) if arc != NO_ARC else 0
    return int(pools.costs[number, machine] + pools.steps[number, machine] * max(0, flow - 1))


def entry_costs(graph: Graph, task_class: int) -> Numbers:
    """The cost of the class's cheapest path to each machine; `FAR` if there is none."""
    costs = np.full(graph.cluster.machines, FAR, np.int64)
    machines, entries = _entries(graph, task_class)
    costs[machines] = entries
    return costs


def _entries(graph: Graph, task_class: int) -> tuple[Numbers, Numbers]:
    """The machines that the class has a path to, ascending, and the cost of the cheapest to each."""
    pools, number = graph.pools, int(graph.classes["pool"][task_class])
    arcs, rooms = pools.arcs[number], pools.rooms[number]
    having = np.flatnonzero((arcs != NO_ARC) & (rooms > 0))
    flows = graph.network.flows(arcs[having])
    next_unit = pools.costs[number, having] + pools.steps[number, having] * flows
    has_room = flows < rooms[having]
    reached, onward = having[has_room], next_unit[has_room]
    own = int(graph.classes["pool_cost"][task_class])
    wanted = graph.preferences.get(task_class)
    if wanted is None and not pools.topology.aggregators:
        return reached, onward + own
    last = np.full(graph.cluster.machines, FAR, np.int64)
    last[reached] = onward
    costs = np.minimum(pools.reached_from(number, POOL, last) + own, FAR)
    if wanted is not None:
        for place, cost in zip(wanted[1].tolist(), wanted[2].tolist(), strict=True):
            if place >= 0:
                costs[place] = min(costs[place], cost)
            else:
                through = pools.reached_from(number, -1 - place, last) + cost
                costs = np.minimum(costs, through)
    machines = np.flatnonzero(costs < FAR)
    return machines, costs[machines]


def _task_of(graph: Graph, task_class: int, where: Numbers, machine: int | None) -> int:
    """The row of the last task of the class on `machine`, or on any machine if there is none."""
    first, count = (int(graph.classes[name][task_class]) for name in ("first", "rows"))
    rows = np.arange(first, first + count)
    rows = rows[(graph.tasks["task_class"][rows] == task_class) & (where[rows] >= 0)]
    there = rows if machine is None else rows[where[rows] == machine]
    chosen = there if len(there) else rows
    return int(chosen[-1]) if len(chosen) else -1
