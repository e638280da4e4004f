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
from argosy.model.explanations import Explanation
from argosy.model.prices import Price
from argosy.solvers.flow.arrays import Numbers

RULE: Final = "cheapest flow"
#: The cost of a place that cannot be reached.
FAR: Final = 2**50


class Priced(msgspec.Struct, frozen=True):
    """The price of a place, if one is reachable, and the number of arcs scanned to find it."""

    price: Price | None
    scans: int


def price_of(graph: Graph, task_class: int, where: Numbers) -> Priced:
    """The price of a place for one more task of the class. The path must not use the job's own
    unscheduled vertex, because more precedence would raise that cost too. `where` is the machine of
    every task, by row."""
    owner = int(graph.classes["owner"][task_class])
    own = graph.owner_cost(owner)
    targets = [(graph.sink, 0)]
    if graph.owner_vertices[owner] != graph.sink:
        # If a task of the same owner is displaced, the owner's share does not change.
        targets.append((graph.owner_vertices[owner], own))
    waiting, is_found, cost, place, first, last, scans = graph.roster.price(task_class, targets)
    if not is_found:
        return Priced(None, scans)
    waiting += own
    rise = cost - waiting + 1
    each = graph.policy.precedence_price()
    # Where the path leaves a pool backwards, it displaces a unit that goes through the pool as well.
    holder = graph.roster.last_task(first, where, place) if first >= 0 else -1
    if place < 0 and holder >= 0:
        place = int(where[holder])
    loser = graph.roster.last_task(last, where, -1) if last >= 0 else -1
    numbers = graph.tasks["number"]
    return Priced(
        Price(
            waiting=waiting,
            place=cost,
            machine=place,
            holder=int(numbers[holder]) if holder >= 0 else -1,
            loser=int(numbers[loser]) if loser >= 0 else -1,
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
    cluster, pools = graph.cluster, graph.pools
    feasible, onward, is_found, way, second, scans = graph.roster.second_best(
        task_class, machine, pools.topology.machines, *pools.tables
    )
    sink_costs, sink_steps = (int(terms[machine]) for terms in graph.sink_terms[1:])
    flow = graph.network.flow(int(graph.sink_arcs[machine]))
    own = cost + onward
    score = own + sink_costs + sink_steps * max(0, flow - 1)
    explanation = Explanation(
        looked_at=int(np.count_nonzero(cluster.usable)),
        feasible=feasible,
        rule=RULE,
        score=score,
        measure="cost",
        second=second if second >= 0 else None,
        second_score=score + way - own if is_found else None,
    )
    return Ranked(explanation, scans + cluster.machines)


def entry_costs(graph: Graph, task_class: int) -> Numbers:
    """The cost of the class's cheapest path to each machine; `FAR` if there is none."""
    pools = graph.pools
    costs = np.full(graph.cluster.machines, FAR, np.int64)
    machines, entries = graph.roster.entries(task_class, pools.topology.machines, *pools.tables)
    costs[machines] = entries
    return costs
