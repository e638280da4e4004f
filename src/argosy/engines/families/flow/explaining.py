"""Explanations from prices: which tasks get one in a round.

A waiting task gets the price of a place (`pricing`), the task that holds it, and how much more
precedence it would need; a placed task, what the second-best machine would have cost. A search scans
part of the network, and a round may scan only a limited number of arcs; tasks that have waited longest
for an explanation are next in a later round. Half of a round's limit is reserved for waiting tasks. An
unchanged explanation is not repeated.
"""

from __future__ import annotations

import msgspec
import numpy as np

from argosy.cell import Rule, View
from argosy.cell.bitmaps import to_bitmap
from argosy.engines.families.flow.admission import FlowPlan
from argosy.engines.families.flow.graph import Graph
from argosy.engines.families.flow.pricing import price_of, second_best
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.tasks import PENDING
from argosy.model.effects import Explain
from argosy.model.explanations import Explanation
from argosy.model.random import Random
from argosy.solvers.flow.arrays import Numbers


class Explainer:
    def __init__(self, settings: FlowSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._last = -settings.explain
        self._round = 0
        #: The last explanation of each waiting class and the tasks that have it, and the round in which
        #: its price was last computed.
        self._told: dict[int, Explanation] = {}
        self._told_to: dict[int, Numbers] = {}
        self._priced: dict[int, int] = {}
        #: Result of the last search for each pool and shape.
        self._seen: dict[tuple[int, int], Explanation] = {}
        #: Each task's machine at the end of this round, by row.
        self._where = np.empty(0, np.int64)
        self._left = 0

    def begin(self) -> None:
        """Starts a round with a new flow: everything known about the previous flow is void."""
        self._round += 1
        self._left = self._settings.explain_arcs

    def placed(self, graph: Graph, plan: FlowPlan) -> list[Explain]:
        """Why tasks go where the plan puts them; identical ones are explained together."""
        effects: list[Explain] = []
        if self._left <= self._settings.explain_arcs // 2:
            return effects
        classes = graph.tasks["task_class"][plan.rows]
        keys = (classes << 32) + plan.machines
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        for at, row in enumerate(first.tolist()):
            if self._left <= self._settings.explain_arcs // 2:
                break
            task_class, machine = int(classes[row]), int(plan.machines[row])
            found = second_best(graph, task_class, machine, int(plan.costs[row]))
            self._left -= found.scans
            effects.append(
                Explain(graph.tasks["number"][plan.rows[which == at]], found.explanation)
            )
        return effects

    def waiting(self, graph: Graph, plan: FlowPlan | None, view: View, now: int) -> list[Explain]:
        """Why tasks that the round does not place have no machine."""
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
        unique, starts = np.unique(classes, return_index=True)
        parts = dict(zip(unique.tolist(), np.split(rows, starts[1:]), strict=True))
        self._priced = {each: self._priced.get(each, 0) for each in parts}
        # Prices may be of an earlier round; without prices, every round searches anew.
        has_prices = self._settings.explain_arcs > 0
        told = {each: self._told.get(each) if has_prices else None for each in parts}
        for task_class in sorted(parts, key=lambda each: self._priced[each]):
            if self._left > 0:
                told[task_class] = self._why_not(graph, task_class, view)
                self._priced[task_class] = self._round
        effects, known, known_to = [], {}, {}
        for task_class, part in parts.items():
            explanation = told[task_class] or self._search(graph, task_class, view)
            numbers = graph.tasks["number"][part]
            known[task_class], known_to[task_class] = explanation, numbers
            if self._told.get(task_class) == explanation:
                numbers = _others(numbers, self._told_to[task_class])
            if len(numbers):
                effects.append(Explain(numbers, explanation))
        self._told, self._told_to = known, known_to
        return effects

    def _search(self, graph: Graph, task_class: int, view: View) -> Explanation:
        """The result of a search over the machines, without prices."""
        row = int(graph.classes["first"][task_class])
        pool, shape = int(graph.classes["pool"][task_class]), int(graph.tasks["shape"][row])
        if (pool, shape) in self._seen:
            return self._seen[pool, shape]
        within = to_bitmap(graph.pools.allowed[pool])
        found = view.find(shape, 1, Rule.BEST, self._random, within=within)
        self._seen[pool, shape] = found.explanation()
        return self._seen[pool, shape]

    def _why_not(self, graph: Graph, task_class: int, view: View) -> Explanation:
        seen = self._search(graph, task_class, view)
        job = int(graph.classes["job"][task_class])
        if job in graph.parked:
            room, wanted = graph.parked[job]
            remedy = f"room for all {wanted:,} tasks at once; {room:,} had room"
            return msgspec.structs.replace(seen, remedy=remedy, gang_room=room)
        found = price_of(graph, task_class, self._where)
        self._left -= found.scans
        price = found.price
        if price is None:
            return seen
        if price.rise <= 0:
            # The flow has a place for it, but other tasks were admitted first in this round.
            return msgspec.structs.replace(
                seen, remedy="another round: other tasks went first in this one"
            )
        remedy = f"waiting would have to cost {price.rise:,} more"
        if price.precedence is not None:
            remedy = f"{price.precedence:,} more precedence"
        return msgspec.structs.replace(seen, price=price, remedy=remedy)


def _others(numbers: Numbers, told: Numbers) -> Numbers:
    """Tasks that have come to wait since the others were told."""
    if np.array_equal(numbers, told):
        return numbers[:0]
    return numbers[~np.isin(numbers, told)]
