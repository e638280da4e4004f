"""Capacities and costs of the arcs into and out of machines.

The roster computes how many tasks fit; policies set the costs. Only what changed is updated: the room of
machines, and the costs of those that are not what they were.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy.engines.families.flow.statistics import ClusterStatistics

if TYPE_CHECKING:
    from argosy.engines.families.flow.graph import Graph


def set_rooms(graph: Graph, statistics: ClusterStatistics) -> None:
    pools, policy = graph.pools, graph.policy
    most = graph.settings.most_arcs // max(1, len(pools))
    is_thin = most < graph.cluster.machines
    if is_thin:
        # Which machines are cheapest depends on all of them.
        graph.rooms.forget()
    numbers, machines, changed = graph.rooms.look(statistics.free, statistics.usable, pools.allowed)
    if not len(numbers) or not len(machines):
        return
    terms = policy.pool_terms(pools.requests[numbers], changed)
    thinned = None
    if is_thin:
        thinned = pools.thinned(numbers, graph.rooms.counted(), terms, max(1, most))
    graph.rooms.set_pool_arcs(
        terms.costs, terms.steps, pools.topology.machines, *pools.tables, thinned
    )
    terms = policy.sink_terms(machines)
    graph.rooms.set_sink_arcs(terms.costs, terms.steps, graph.sink_arcs, *graph.sink_terms)
