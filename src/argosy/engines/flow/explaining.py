"""Explanations from prices.

A task that waits is told the cheapest way to a machine through the residual network, which counts all
that others would have to do, and what it costs against waiting: the difference is what its priority
would have to rise by. Its own job's way out is closed in that search, for it rises along. A task that is
placed is told what the second best machine would have cost, with the room it leaves counted in. Both are
exact for the flow as it is, as solving again with changed costs shows.

A search is O(arcs) or more, so there is a budget for each round; who is not explained in one is in a
later one. An explanation that says nothing new is not repeated.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.cell import Rule, View
from argosy.engines.flow.admission import Plan
from argosy.engines.flow.graph import Graph
from argosy.engines.flow.pools import NO_ARC
from argosy.engines.flow.settings import FlowSettings
from argosy.engines.flow.tasks import PENDING
from argosy.model.effects import Explain
from argosy.model.explanations import Explanation, Price
from argosy.model.random import Random
from argosy.solvers.flow.distances import FAR, Residual

Numbers = NDArray[np.int64]
#: A search looks at each arc of the network about so many times.
_STEPS: Final = 8
RULE: Final = "cheapest flow"


class Explainer:
    def __init__(self, settings: FlowSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._last = -settings.explain
        #: What each waiting class was told last, and by when.
        self._told: dict[int, Explanation] = {}
        self._residual: Residual | None = None
        #: What a look at the machines said of each pool and shape, at the last time of looking.
        self._seen: dict[tuple[int, int], Explanation] = {}
        #: The machine of every task when the round under way is done, by row.
        self._where = np.empty(0, np.int64)
        self._left = self._settings.explain_arcs

    def begin(self) -> None:
        """A new flow was found: ways through the last one are void."""
        self._residual = None
        self._left = self._settings.explain_arcs

    def _ways(self, graph: Graph) -> Residual | None:
        """The residual network, if the round can afford another search."""
        if self._left <= 0:
            return None
        if self._residual is None:
            if graph.network.arcs * _STEPS > self._settings.explain_arcs:
                return None
            self._residual = Residual(graph.network)
        self._left -= len(self._residual) * _STEPS
        return self._residual

    def waiting(self, graph: Graph, plan: Plan | None, view: View, now: int) -> list[Explain]:
        """Why those have no machine that the round places nowhere."""
        if now < self._last + self._settings.explain:
            return []
        self._last = now
        self._seen.clear()
        waits = graph.tasks["state"] == PENDING
        self._where = graph.tasks["machine"].copy()
        if plan is not None:
            waits[plan.rows] = False
            self._where[plan.rows] = plan.machines
        rows = np.flatnonzero(waits)
        if not len(rows):
            return []
        classes = graph.tasks["task_class"][rows]
        order = np.argsort(classes, kind="stable")
        rows, classes = rows[order], classes[order]
        effects = []
        unique, starts = np.unique(classes, return_index=True)
        told: dict[int, Explanation] = {}
        for task_class, part in zip(unique.tolist(), np.split(rows, starts[1:]), strict=True):
            explanation = self._why_not(graph, task_class, int(part[0]), view)
            if explanation is None:
                explanation = self._told.get(task_class)
                if explanation is None:
                    explanation = self._search(graph, task_class, view)
            told[task_class] = explanation
            if self._told.get(task_class) != explanation:
                effects.append(Explain(graph.tasks["number"][part], explanation))
        self._told = told
        return effects

    def _search(self, graph: Graph, task_class: int, view: View) -> Explanation:
        """What a look at the machines says, without prices."""
        row = int(graph.classes["first"][task_class])
        pool, shape = int(graph.classes["pool"][task_class]), int(graph.tasks["shape"][row])
        if (pool, shape) in self._seen:
            return self._seen[pool, shape]
        bits = np.zeros((graph.cluster.machines + 63) // 64 * 64, np.uint8)
        bits[: graph.cluster.machines] = graph.pools.allowed[pool]
        within = np.packbits(bits, bitorder="little").view(np.uint64)
        found = view.find(shape, 1, Rule.BEST, self._random, within=within)
        self._seen[pool, shape] = found.explanation()
        return self._seen[pool, shape]

    def _why_not(self, graph: Graph, task_class: int, row: int, view: View) -> Explanation | None:
        residual = self._ways(graph)
        if residual is None:
            return None
        seen = self._search(graph, task_class, view)
        price = price_of(graph, residual, task_class, self._where)
        if price is None:
            return seen
        remedy = f"waiting would have to cost {price.rise:,} more"
        if price.precedence is not None:
            remedy = f"{price.precedence:,} more precedence"
        return msgspec.structs.replace(seen, price=price, remedy=remedy)

    def placed(self, graph: Graph, plan: Plan) -> list[Explain]:
        """Why tasks go where the plan puts them; identical ones are explained together."""
        effects = []
        classes = graph.tasks["task_class"][plan.rows]
        keys = (classes << 32) + plan.machines
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        for at, row in enumerate(first.tolist()):
            residual = self._ways(graph)
            if residual is None:
                break
            cost = int(plan.costs[row])
            explanation = second_best(
                graph, residual, int(classes[row]), int(plan.machines[row]), cost
            )
            effects.append(Explain(graph.tasks["number"][plan.rows[which == at]], explanation))
        return effects


def price_of(graph: Graph, residual: Residual, task_class: int, where: Numbers) -> Price | None:
    """What a place would cost one more task of the class; nothing, if no way leads to any machine.
    `where` holds the machine of every task, by row."""
    columns = graph.classes
    vertex, number = int(columns["vertex"][task_class]), int(columns["job"][task_class])
    job = graph.jobs[number]
    owner = int(columns["owner"][task_class])
    shut, own = (vertex, job.vertex), graph.owner_cost(owner)
    targets = [(graph.sink, 0)]
    if graph.owner_vertices[owner] != graph.sink:
        # In exchange with a task of the same owner, the owner's share stays as it is.
        targets.append((graph.owner_vertices[owner], own))
    heads, costs = residual.out_of(vertex)
    found = []
    for target, beyond in targets:
        ways = residual.to(target, without=shut)
        reach = np.where(heads == job.vertex, FAR, costs + ways.distances[heads] + beyond)
        if len(reach) and int(reach.min()) < FAR // 2:
            path = [*ways.path(int(heads[int(reach.argmin())])), graph.sink]
            found.append((int(reach.min()), path))
    if not found:
        return None
    place_cost, path = min(found)
    waiting = int(columns["wait_cost"][task_class]) + job.cost + own
    rise = place_cost - waiting + 1
    each = graph.policy.precedence_price()
    machine_of, class_of = graph.machine_of_vertex, graph.class_of_vertex
    machines = [machine_of[there] for there in path if there in machine_of]
    classes = [class_of[there] for there in path if there in class_of]
    # Where the way goes back from a pool, it takes the place of a unit that goes through there too.
    place = machines[0] if machines else None
    holder = _task_of(graph, classes[0], where, place) if classes else -1
    loser = _task_of(graph, classes[-1], where, None) if graph.job_vertices & {*path} else -1
    return Price(
        waiting=waiting,
        place=place_cost,
        machine=int(where[holder]) if place is None else place,
        holder=int(graph.tasks["number"][holder]) if holder >= 0 else -1,
        loser=int(graph.tasks["number"][loser]) if loser >= 0 else -1,
        rise=rise,
        precedence=-(-rise // each) if each else None,
    )


def second_best(
    graph: Graph, residual: Residual, task_class: int, machine: int, cost: int
) -> Explanation:
    """What a class's unit on a machine costs, and what it would cost on the next best one."""
    columns, cluster = graph.classes, graph.cluster
    vertex = int(columns["vertex"][task_class])
    job = graph.jobs[int(columns["job"][task_class])]
    here = int(cluster.vertices[machine])
    ways = residual.to(here, without=(vertex,))
    entries = entry_costs(graph, task_class)
    reach = np.where(entries < FAR, entries + ways.distances[cluster.vertices], FAR)
    reach[machine] = FAR
    own = cost + _onward_cost(graph, task_class, machine)
    costs, steps = (int(terms[machine]) for terms in graph.sink_terms[1:])
    flow = int(graph.network.flows(graph.sink_arcs[[machine]])[0])
    score = own + costs + steps * max(0, flow - 1)
    second = int(reach.argmin())
    best = int(reach[second])
    waits = int(columns["wait_cost"][task_class]) + int(ways.distances[job.vertex])
    feasible = int((entries < FAR).sum())
    looked_at = int(cluster.usable.sum())
    if min(best, waits) >= FAR // 2:
        return Explanation(looked_at=looked_at, feasible=feasible, rule=RULE, score=score)
    return Explanation(
        looked_at=looked_at,
        feasible=feasible,
        rule=RULE,
        score=score,
        second=second if best <= waits else None,
        second_score=score + min(best, waits) - own,
    )


def _onward_cost(graph: Graph, task_class: int, machine: int) -> int:
    """What the last unit from the class's pool to the machine cost; nothing, if it went there itself."""
    if (wanted := graph.preferences.get(task_class)) is not None:
        arcs = wanted[0][wanted[1] == machine]
        if len(arcs) and graph.network.flows(arcs).any():
            return 0
    pools, number = graph.pools, int(graph.classes["pool"][task_class])
    arc = pools.arcs[number, machine]
    flow = int(graph.network.flows([arc])[0]) if arc != NO_ARC else 0
    return int(pools.costs[number, machine] + pools.steps[number, machine] * max(0, flow - 1))


def entry_costs(graph: Graph, task_class: int) -> Numbers:
    """What the ways of a class to each machine cost up to there; `FAR` where it has none."""
    pools, number = graph.pools, int(graph.classes["pool"][task_class])
    arcs, rooms = pools.arcs[number], pools.rooms[number]
    costs = np.full(graph.cluster.machines, FAR, np.int64)
    onward = costs.copy()
    having = np.flatnonzero((arcs != NO_ARC) & (rooms > 0))
    flows = graph.network.flows(arcs[having])
    has_room = flows < rooms[having]
    next_unit = pools.costs[number, having] + pools.steps[number, having] * flows
    onward[having[has_room]] = next_unit[has_room]
    is_reached = onward < FAR
    costs[is_reached] = onward[is_reached] + int(graph.classes["pool_cost"][task_class])
    if (wanted := graph.preferences.get(task_class)) is not None:
        for place, cost in zip(wanted[1].tolist(), wanted[2].tolist(), strict=True):
            if place >= 0:
                costs[place] = min(costs[place], cost)
            else:
                there = is_reached & (graph.cluster.racks == -1 - place)
                costs[there] = np.minimum(costs[there], onward[there] + cost)
    return costs


def _task_of(graph: Graph, task_class: int, where: Numbers, machine: int | None) -> int:
    """The row of the last task of a class that has a machine: the given one, or any."""
    first, count = (int(graph.classes[name][task_class]) for name in ("first", "rows"))
    rows = np.arange(first, first + count)
    rows = rows[(graph.tasks["task_class"][rows] == task_class) & (where[rows] >= 0)]
    there = rows if machine is None else rows[where[rows] == machine]
    chosen = there if len(there) else rows
    return int(chosen[-1]) if len(chosen) else -1
