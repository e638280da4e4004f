"""Claims on which another system has the last word: Kubernetes, or a remote agent.

A task whose claim is assumed runs at once, like any other: telling the machines to start it is how the
other system is asked. That system's answer is an input: `confirm`, or `forget`, after which the task has
lost its machine. An answer about an earlier claim of the task is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argosy._core import TaskState
from argosy.host import records
from argosy.model.explanations import Why
from argosy.model.transactions import TaskArray

if TYPE_CHECKING:
    from argosy.host.host import Host


class AssumedClaims:
    def __init__(self, host: Host) -> None:
        self._host = host

    def confirm(self, tasks: TaskArray, incarnations: NDArray[np.int64]) -> TaskArray:
        """Confirms the claims that are still assumed, and returns their tasks."""
        host, (settled, _) = self._host, self._current(tasks, incarnations)
        if len(settled):
            now = host.runtime.now
            host.decisions.input(records.ConfirmedRecord(now, settled.tolist()))
            host.cell.confirm(settled)
        return settled

    def forget(self, tasks: TaskArray, incarnations: NDArray[np.int64], why: Why) -> TaskArray:
        """Removes the claims that are still assumed, and returns their tasks."""
        host, (settled, current) = self._host, self._current(tasks, incarnations)
        if not len(settled):
            return settled
        now = host.runtime.now
        host.decisions.input(records.ForgottenRecord(now, settled.tolist(), why.name.lower()))
        machines = np.array([host.cell.machine_of(task) for task in settled.tolist()], np.int32)
        host.stop(settled, why)
        for task, incarnation in zip(settled.tolist(), current.tolist(), strict=True):
            host.runtime.stop_task(task, incarnation, TaskState.PENDING)
        host.membership.lose(settled, machines, why, now)
        return settled

    def _current(
        self, tasks: TaskArray, incarnations: NDArray[np.int64]
    ) -> tuple[TaskArray, NDArray[np.int64]]:
        """Those whose claims are the task's current ones, and assumed."""
        host, is_overruled = self._host, self._host.setup.is_overruled
        pairs = zip(tasks.tolist(), incarnations.tolist(), strict=True)
        is_current = [
            host.runtime.incarnation(task) == incarnation
            and (is_overruled or host.cell.is_assumed(task))
            for task, incarnation in pairs
        ]
        rows = np.array(is_current, np.bool_)
        return tasks[rows], incarnations[rows]
