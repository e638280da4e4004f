"""One scheduler's view of the expected waits at machines: see core/waits/wait_view.hpp.

A host creates the view for each scheduler that wants one, passes it in the scheduler's context and feeds
it with reports. The engine reads it when it decides, and adds its own decisions.
"""

from __future__ import annotations

import msgspec
import numpy as np

from argosy._core import WaitState, WaitView
from argosy.model.jobs import job_of
from argosy.model.messages import EndsReported, WaitColumns, WaitReport, WaitUpdate

__all__ = ["WaitRules", "WaitView", "columns_of", "feed", "new_wait_view", "state_of"]


class WaitRules(msgspec.Struct, frozen=True):
    """How a wait view computes expected waits."""

    #: Machines are busy until a time, as in the Murmuration authors' simulator; otherwise the view adds
    #: up the work of tasks.
    as_published: bool = False
    #: How long reports are held back at the scheduler before the view includes them.
    lag: int = 0
    #: The expected wait is the plain sum of the estimates, whatever share of a machine its tasks take
    #: and whether or not there is room.
    plain: bool = False
    #: How long reading one message takes. A scheduler reads while it does not decide.
    cost: int = 0


def new_wait_view(rules: WaitRules) -> WaitView:
    return WaitView(rules.as_published, rules.lag, rules.plain, rules.cost)


def feed(view: WaitView, report: WaitReport, due: int, now: int) -> None:
    """Adds a report that reaches the scheduler at time `due`; the view includes it from then on. A
    scheduler that has not started knows no machines, and gets no placements."""
    match report:
        case EndsReported(tasks, machines, estimates, shapes, started):
            view.post_ended(due, now, tasks, machines, estimates, shapes, started)
        case WaitUpdate(tasks, versions, machines, estimate, shape) if view.machines:
            view.know_shape(shape, np.array(report.request, np.int64))
            if len(tasks):
                view.expect(job_of(int(tasks[0])), report.total)
            view.post_placed(
                due,
                now,
                tasks,
                versions,
                machines,
                estimate,
                shape,
                report.since,
                report.is_per_task,
            )


def columns_of(state: WaitState) -> WaitColumns:
    """The state that one view sends to another, as a plain value."""
    return WaitColumns(*state.columns())


def state_of(columns: WaitColumns) -> WaitState:
    return WaitState.from_columns(msgspec.structs.astuple(columns))
