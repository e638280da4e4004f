"""A native task runtime over a small cell, without a host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from argosy._core import Cell, ProbeTerms, QueueRules, TaskRuntime, TaskState
from argosy.model.jobs import INDEX_MASK, job_of
from argosy.model.tasks import first_tasks

SOME = 16
OTHER = 17
MACHINES = 5
SLOTS = 2


def longs(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def ints(*values: int) -> NDArray[np.int32]:
    return np.array(values, np.int32)


class Bench:
    """A cell of small machines, one scheduler, and a runtime over them."""

    def __init__(self, rules: QueueRules | None = None, *, replayed: bool = False) -> None:
        self.cell = Cell(1, 0)
        empty: list[list[int]] = [[] for _ in range(MACHINES)]
        self.cell.add_machines(np.full((MACHINES, 1), SLOTS, np.int64), empty, empty)
        self.scheduler = self.cell.add_scheduler()
        self.shape = self.cell.shape([1], [], 0)
        self.runtime = TaskRuntime(
            self.cell, rules or QueueRules(), record_tasks=True, replayed=replayed
        )
        self.board = self.runtime.board
        self._facts: dict[int, tuple[int, int]] = {}
        self.runtime.keep_loads()
        self.runtime.hear_all()

    def job(self, tasks: int = 1) -> NDArray[np.int64]:
        number = self.runtime.add_job(self.runtime.now, 0, [(tasks, self.shape, 7)])
        return first_tasks(number, tasks)

    def know(
        self, tasks: NDArray[np.int64], times: Sequence[int], estimates: Sequence[int]
    ) -> None:
        """From now on each of these tasks runs that long, and is expected to run as its estimate
        says."""
        self._facts.update(zip(tasks.tolist(), zip(times, estimates, strict=True), strict=True))
        for job in {job_of(task) for task in tasks.tolist()}:
            count = max(task & INDEX_MASK for task in self._facts if job_of(task) == job) + 1
            facts = [self._facts.get(task, (-1, 7)) for task in first_tasks(job, count).tolist()]
            self.runtime.set_groups(job, [(1, self.shape, estimate) for _, estimate in facts])
            self.runtime.set_times(job, [time for time, _ in facts])

    def claim(self, tasks: NDArray[np.int64], machine: int) -> NDArray[np.int64]:
        """The tasks that got a place."""
        count = len(tasks)
        answer, *_ = self.cell.commit(
            self.scheduler,
            tasks,
            np.full(count, machine, np.int32),
            np.full(count, self.shape, np.int32),
            np.zeros(count, np.uint32),
            *[None] * 5,
            *[False] * 7,
        )
        return tasks if answer is None else np.ascontiguousarray(tasks[answer[0]])

    def release(self, tasks: NDArray[np.int64]) -> None:
        self.cell.commit(self.scheduler, *[None] * 8, tasks, *[False] * 7)

    def launch(self, tasks: NDArray[np.int64], machine: int = 0, duration: int = -1) -> None:
        placed = self.claim(tasks, machine)
        self.know(placed, [duration] * len(placed), [7] * len(placed))
        self.runtime.launch(placed)

    def enqueue(self, tasks: NDArray[np.int64], machine: int = 0, duration: int = -1) -> None:
        count = len(tasks)
        self.know(tasks, [duration] * count, [7] * count)
        machines = np.full(count, machine, np.int32)
        self.runtime.enqueue(self.runtime.now, self.scheduler, tasks, machines)

    def terms(self, task: int) -> ProbeTerms:
        return ProbeTerms(job_of(task), 0, self.scheduler, self.shape, 7)

    def state(self, task: int) -> TaskState:
        return self.board.state(int(task))

    def end(self, task: int) -> bool:
        return self.runtime.end_task(int(task), self.runtime.incarnation(int(task)))
