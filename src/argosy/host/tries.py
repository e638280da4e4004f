"""Attempts to run tasks on real machines: which task runs where, as which incarnation.

Only worlds with real machines need this. Each start and stop of the runtime is passed on to the
machines. A report about an attempt that is no longer current is dropped.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from argosy._core import TaskRuntime
from argosy.host.protocols import Machines
from argosy.model.explanations import Why
from argosy.model.transactions import MachineArray, TaskArray


class Tries:
    def __init__(self, runtime: TaskRuntime, machines: Machines) -> None:
        self._runtime = runtime
        self._machines = machines
        #: Per task: its machine and current incarnation.
        self._running: dict[int, tuple[int, int]] = {}
        runtime.tell_starts(machines.acts)

    def pass_on_starts(self) -> None:
        """Starts tasks on their machines; a task that moved is stopped on its old machine first."""
        if not self._runtime.has_starts:
            return
        tasks, machines, incarnations, _ = self._runtime.take_starts()
        self.stop(tasks, Why.MOVED)
        self._note(tasks, machines, incarnations)
        self._machines.start(tasks, machines, incarnations)

    def adopt_starts(self) -> None:
        """What begins to run was running on its machine before."""
        tasks, machines, incarnations, _ = self._runtime.take_starts()
        self._note(tasks, machines, incarnations)

    def _note(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None:
        tries = zip(machines.tolist(), incarnations.tolist(), strict=True)
        self._running.update(zip(tasks.tolist(), tries, strict=True))

    def stop(self, tasks: TaskArray, why: Why) -> None:
        """Stops those of the tasks that are running."""
        stopped = [
            (task, *self._running.pop(task)) for task in tasks.tolist() if task in self._running
        ]
        if stopped:
            numbers, machines, incarnations = (
                np.array(column) for column in zip(*stopped, strict=True)
            )
            self._machines.stop(
                numbers.astype(np.int64),
                machines.astype(np.int32),
                incarnations.astype(np.int64),
                why,
            )

    def end(self, task: int, incarnation: int) -> bool:
        """Ends the attempt; returns false if it is not the current one."""
        current = self._running.get(task)
        if current is None or current[1] != incarnation:
            return False
        del self._running[task]
        return True
