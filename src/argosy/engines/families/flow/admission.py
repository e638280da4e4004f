"""Which of the flow's placements are committed (computed by the roster in the core).

If tasks differ in size, the flow may put more on a machine than fits, or preempt a task that is too
small to make room. Then tasks of the highest precedence are admitted first, tasks of lower
precedence in their way are preempted, and the rest waits for another round. A round moves and
preempts at most `moves` running tasks, and none for a task that is not admitted; fewer if the limit per
minute leaves fewer.
"""

from __future__ import annotations

import msgspec

from argosy.engines.families.flow.extraction import Placements, Rows
from argosy.engines.families.flow.graph import Graph
from argosy.solvers.flow.arrays import Numbers


class FlowPlan(msgspec.Struct, frozen=True):
    """One transaction: tasks to place or move, and tasks to take from their machines."""

    rows: Rows
    machines: Numbers
    costs: Numbers
    #: Preempted tasks.
    leaving: Rows
    #: Moving tasks that must leave before others can come; they are released first.
    early: Rows
    #: Whether the limit on moves cut something.
    is_cut: bool

    def __len__(self) -> int:
        return len(self.rows) + len(self.leaving)


def admit(graph: Graph, wanted: Placements) -> FlowPlan:
    """Admits placements on the cluster as the round's statistics show it."""
    statistics = graph.statistics
    assert statistics is not None
    return FlowPlan(
        *graph.roster.admit(
            graph.rooms,
            wanted.rows,
            wanted.machines,
            wanted.costs,
            wanted.leaving,
            statistics.free,
            statistics.usable,
            graph.most_moves,
        )
    )
