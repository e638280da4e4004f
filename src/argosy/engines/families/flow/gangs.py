"""Gangs: jobs whose waiting tasks are placed together or not at all.

Min-cost flow cannot express "all or nothing", and finding the best flow with it is NP-hard. So the
flow is first solved as if there were no gangs. A gang that gets only some of its places is left
out, and the flow is solved again for the others, which is a small change. If several gangs lack
places, the first by precedence and age is tried without the others, because it may get their
places, and then each of the others is added. After a limited number of flows, gangs that still lack
places are left out. The next round tries all again, with the cost of their longer wait.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.engines.families.flow.admission import FlowPlan, admit
from argosy.engines.families.flow.extraction import extract
from argosy.engines.families.flow.graph import Graph
from argosy.engines.families.flow.tasks import PENDING
from argosy.model.events import TimedDecision

#: Limit on the number of flows per round.
MOST_FLOWS: Final = 12


class RoundDecision(TimedDecision, frozen=True):
    plan: FlowPlan


def decide(graph: Graph) -> RoundDecision:
    """A plan in which no gang is placed in part."""
    graph.parked = {
        number: counts for number, counts in graph.parked.items() if number in graph.jobs
    }
    if graph.parked:
        graph.unpark([*graph.parked])
        graph.resync()
    scans, flows, aside = 0, 0, list[int]()
    tried: int | None = None
    while True:
        solution = graph.solve()
        if not solution.is_optimal:
            raise RuntimeError(f"no flow: {solution.status}")
        scans, flows = scans + solution.scans, flows + 1
        plan = admit(graph, extract(graph))
        lacking = _lacking(graph, plan) if graph.gangs else {}
        if lacking and tried is not None:
            # Without this gang, every gang was complete.
            graph.park({tried: lacking.get(tried, (0, graph.jobs[tried].pending))})
            tried = None
        elif len(lacking) > 1 and flows < MOST_FLOWS:
            first = min(lacking, key=lambda number: (-graph.jobs[number].job.precedence, number))
            others = {number: counts for number, counts in lacking.items() if number != first}
            graph.park(others)
            aside.extend(sorted(others))
        elif lacking:
            graph.park(lacking)
        elif aside and flows < MOST_FLOWS:
            tried = aside.pop(0)
            graph.unpark([tried])
        else:
            settings = graph.settings
            time = settings.t_round + settings.t_arcs * scans // 1_000
            return RoundDecision(time, _together(graph, plan) if graph.gangs else plan)
        graph.resync()


def _lacking(graph: Graph, plan: FlowPlan) -> dict[int, tuple[int, int]]:
    """Gangs that the plan places only partially: number of waiting tasks placed, and in total."""
    rows = plan.rows[graph.tasks["state"][plan.rows] == PENDING]
    jobs, counts = np.unique(
        graph.classes["job"][graph.tasks["task_class"][rows]], return_counts=True
    )
    return {
        number: (count, graph.jobs[number].pending)
        for number, count in zip(jobs.tolist(), counts.tolist(), strict=True)
        if number in graph.gangs and count < graph.jobs[number].pending
    }


def _together(graph: Graph, plan: FlowPlan) -> FlowPlan:
    """The plan with the rows of each gang adjacent, after all others."""
    numbers = gang_numbers(graph, plan)
    if numbers is None:
        return plan
    order = np.argsort(numbers, kind="stable")
    rows, machines, costs = (x[order] for x in (plan.rows, plan.machines, plan.costs))
    return msgspec.structs.replace(plan, rows=rows, machines=machines, costs=costs)


def gang_numbers(graph: Graph, plan: FlowPlan) -> NDArray[np.int32] | None:
    """For each placement, the number of its gang, or -1."""
    if not graph.gangs:
        return None
    jobs = graph.classes["job"][graph.tasks["task_class"][plan.rows]]
    waits = graph.tasks["state"][plan.rows] == PENDING
    mine = waits & np.isin(jobs, np.array(sorted(graph.gangs), np.int64))
    if not mine.any():
        return None
    numbers = np.full(len(jobs), -1, np.int32)
    numbers[mine] = np.unique(jobs[mine], return_inverse=True)[1]
    return numbers
