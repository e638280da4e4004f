"""Explanations from prices: which tasks get one in a round.

A waiting task gets the price of a place (`pricing`), the task that holds it, and how much more
precedence it would need; a placed task, what the second-best machine would have cost. A search scans
part of the network, so they are rationed. A round may scan only a limited number of arcs, half of which
are reserved for waiting tasks; those whose price is oldest come first, and the longer tasks wait, the
less often their price is looked up. The tasks of a class placed in one round share an explanation, and
if a class is placed in many rounds, a second best is looked up in the first, second, fourth, eighth and
so on. An unchanged explanation is not repeated.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.cell import Rule, View
from argosy.cell.bitmaps import to_bitmap
from argosy.engines.families.flow.admission import FlowPlan
from argosy.engines.families.flow.graph import Graph
from argosy.engines.families.flow.pricing import RULE, price_of, second_best
from argosy.engines.families.flow.settings import FlowSettings
from argosy.model.effects import Explain
from argosy.model.explanations import Explanation
from argosy.model.random import Random
from argosy.solvers.flow.arrays import Numbers

#: The first price of a waiting task holds for this many times the interval between explanations, and
#: each later one for as long as the task had been priced until then.
_TIMES: Final = 4
_NOBODY: Final = np.empty(0, np.int64)


class Explainer:
    def __init__(self, settings: FlowSettings, random: Random) -> None:
        self._settings = settings
        self._random = random
        self._last = -settings.explain
        #: The last explanation of each waiting class, and when it was first and last priced; and all
        #: tasks that have been told, in order.
        self._told: dict[int, Explanation] = {}
        self._priced: dict[int, tuple[int, int]] = {}
        self._told_to = np.empty(0, np.int64)
        #: For each class, its job, and in how many rounds it was placed.
        self._placed: dict[int, tuple[int, int]] = {}
        #: Result of the last search for each pool and shape.
        self._seen: dict[tuple[int, int], Explanation] = {}
        #: Each task's machine at the end of this round, by row.
        self._where = np.empty(0, np.int64)
        self._left = 0

    def begin(self) -> None:
        """Starts a round with a new flow."""
        self._left = self._settings.explain_arcs

    def placed(self, graph: Graph, plan: FlowPlan) -> list[Explain]:
        """Why tasks go where the plan puts them, once for all tasks of a class."""
        rows, numbers = plan.rows, graph.tasks["number"]
        members: dict[int, list[int]] = {}
        for at, task_class in enumerate(graph.tasks["task_class"][rows].tolist()):
            members.setdefault(task_class, []).append(at)
        classes = sorted(members)
        effects: list[Explain] = []
        others: list[int] = []
        for task_class, job in zip(classes, graph.classes["job"][classes].tolist(), strict=True):
            mine = members[task_class]
            known, rounds = self._placed.get(task_class, (job, 0))
            rounds = rounds + 1 if known == job else 1
            self._placed[task_class] = job, rounds
            has_turn = rounds & (rounds - 1) == 0
            if not has_turn or self._left <= self._settings.explain_arcs // 2:
                others += mine
                continue
            first = mine[0]
            found = second_best(
                graph, task_class, int(plan.machines[first]), int(plan.costs[first])
            )
            self._left -= found.scans
            effects.append(Explain(numbers[rows[mine]], found.explanation))
        if others and self._settings.explain_arcs:
            seen = Explanation(looked_at=int(np.count_nonzero(graph.cluster.usable)), rule=RULE)
            effects.append(Explain(numbers[rows[sorted(others)]], seen))
        return effects

    def waiting(self, graph: Graph, plan: FlowPlan | None, view: View, now: int) -> list[Explain]:
        """Why tasks that the round does not place have no machine."""
        if now < self._last + self._settings.explain:
            return []
        self._last = now
        self._seen.clear()
        self._where = graph.tasks["machine"].copy()
        if plan is not None:
            self._where[plan.rows] = plan.machines
        known, starts, rows = graph.roster.waiting(_NOBODY if plan is None else plan.rows)
        if not known:
            return []
        numbers = graph.tasks["number"][rows]
        # A price may be of an earlier round; without prices, every search is a new one.
        has_prices = self._settings.explain_arcs > 0
        told = {each: self._told[each] for each in known if has_prices and each in self._told}
        self._priced = {each: self._priced[each] for each in known if each in self._priced}
        for task_class in self._due(known, now):
            if self._left <= 0:
                break
            told[task_class] = self._why_not(graph, task_class, view)
            first, _ = self._priced.get(task_class, (now, now))
            self._priced[task_class] = first, now
        is_new = ~_is_among(numbers, self._told_to)
        has_new = np.logical_or.reduceat(is_new, starts)
        ends = [*starts[1:], len(rows)]
        effects = []
        for at, task_class in enumerate(known):
            explanation = told.get(task_class)
            if explanation is None:
                explanation = told[task_class] = self._search(graph, task_class, view)
            mine = slice(starts[at], ends[at])
            if self._told.get(task_class) != explanation:
                effects.append(Explain(numbers[mine], explanation))
            elif has_new[at]:
                effects.append(Explain(numbers[mine][is_new[mine]], explanation))
        self._told, self._told_to = told, np.sort(numbers)
        return effects

    def _due(self, classes: list[int], now: int) -> list[int]:
        """The classes to be priced, those first that were not for longest. The longer tasks wait, the
        less often their price is looked up."""
        new, due = list[int](), list[tuple[int, int]]()
        for task_class in classes:
            first, last = self._priced.get(task_class, (-1, -1))
            if last < 0:
                new.append(task_class)
            elif now - last >= max(_TIMES * self._settings.explain, last - first):
                due.append((last, task_class))
        return new + [task_class for _, task_class in sorted(due)]

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
            return _overused(graph, seen)
        if price.rise <= 0:
            # The flow has a place for it, but other tasks were admitted first in this round.
            return msgspec.structs.replace(
                seen, remedy="another round: other tasks went first in this one"
            )
        remedy = f"waiting would have to cost {price.rise:,} more"
        if price.precedence is not None:
            remedy = f"{price.precedence:,} more precedence"
        return msgspec.structs.replace(seen, price=price, remedy=remedy)


def _overused(graph: Graph, seen: Explanation) -> Explanation:
    """What a search found that does not know what is in use without being reserved."""
    if not seen.feasible or not graph.overused:
        return seen
    resource = graph.policy.observed(graph.settings)
    machines = "1 machine" if graph.overused == 1 else f"{graph.overused:,} machines"
    remedy = f"less {resource} in use: on {machines} it is more than is reserved"
    return msgspec.structs.replace(seen, remedy=remedy)


def _is_among(numbers: Numbers, ascending: Numbers) -> NDArray[np.bool_]:
    """Which numbers are among the others; unlike `np.isin`, it uses that those are in order."""
    if not len(ascending):
        return np.zeros(len(numbers), np.bool_)
    at = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.asarray(ascending[at] == numbers)
