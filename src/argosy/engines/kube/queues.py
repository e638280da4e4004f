"""The two queues: tasks that are ready, by rank and then by the time they came; tasks that wait."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np

from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import TaskArray


class Pod:
    """One task that has been taken from its job, and how often it has been tried."""

    __slots__ = ("attempts", "group", "job", "task")

    def __init__(self, job: Job, group: TaskGroup, task: int) -> None:
        self.job = job
        self.group = group
        self.task = task
        self.attempts = 0


class _Batch:
    """Tasks of one group that came together; pods are made of them one by one."""

    __slots__ = ("at", "group", "job", "tasks")

    def __init__(self, job: Job, group: TaskGroup, tasks: TaskArray) -> None:
        self.job = job
        self.group = group
        self.tasks = tasks
        self.at = 0

    def next(self) -> Pod:
        pod = Pod(self.job, self.group, int(self.tasks[self.at]))
        self.at += 1
        return pod

    @property
    def is_empty(self) -> bool:
        return self.at == len(self.tasks)


class ReadyQueue:
    """Higher precedence first; among equals, who came earlier. What comes again comes last."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, _Batch | Pod]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, job: Job, tasks: TaskArray) -> None:
        for group, mine in job.tasks_by_group(tasks):
            self._push(job, _Batch(job, group, mine))

    def put_back(self, pod: Pod) -> None:
        self._push(pod.job, pod)

    def pop(self) -> Pod:
        first = self._heap[0][2]
        if isinstance(first, Pod):
            heapq.heappop(self._heap)
            return first
        pod = first.next()
        if first.is_empty:
            heapq.heappop(self._heap)
        return pod

    def _push(self, job: Job, item: _Batch | Pod) -> None:
        self._count += 1
        heapq.heappush(self._heap, (-job.precedence, self._count, item))


class RetryQueue:
    """Tasks that found no machine, each until it has waited; all wait equally long."""

    def __init__(self, wait: int) -> None:
        self._wait = wait
        self._pods: deque[tuple[int, Pod]] = deque()

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod, now: int) -> None:
        self._pods.append((now + self._wait, pod))

    @property
    def due(self) -> int | None:
        """When the first has waited."""
        return self._pods[0][0] if self._pods else None

    def take_due(self, now: int) -> list[Pod]:
        pods = []
        while self._pods and self._pods[0][0] <= now:
            pods.append(self._pods.popleft()[1])
        return pods


def one(task: int) -> TaskArray:
    return np.array([task], np.int64)
