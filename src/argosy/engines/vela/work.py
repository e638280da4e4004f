"""Tasks on their way through the three phases, and pools of those who work on them."""

from __future__ import annotations

import heapq
from enum import Enum
from typing import Literal

import msgspec
import numpy as np

from argosy.agents.api import Requirements, Sorting
from argosy.model.events import SampleReturned
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import TaskArray


class Phase(Enum):
    QUEUED = "queued"
    SAMPLING = "sampling"
    DECIDING = "deciding"
    COMMITTING = "committing"
    WAITING = "waiting"


class AgentQuestion(msgspec.Struct, frozen=True, gc=False):
    """A request for a sample of a cluster. `count` is 0 for a share of it."""

    cluster: str
    count: int = 0


class RankedMachine(msgspec.Struct, frozen=True, gc=False):
    """A machine that a task may be committed to."""

    machine: int
    cluster: str
    version: int


class ScheduledTask:
    """One task, which is what the paper calls a job. Identity matters: a task that is lost while its
    commit is under way comes back as another one."""

    __slots__ = (
        "agents_left", "asked", "began", "candidates", "chosen", "explanation", "first", "group",
        "job", "number", "phase", "queued", "reschedules", "samples", "slot", "submitted", "task",
        "waits",
    )  # fmt: skip

    def __init__(self, job: Job, number: int, group: TaskGroup, task: int, now: int) -> None:
        self.job = job
        self.number = number
        self.group = group
        self.task = task
        self.phase = Phase.QUEUED
        self.submitted = self.queued = self.began = now
        self.reschedules = 0
        #: How often it waited to be rescheduled.
        self.waits = 0
        self.slot = -1
        #: Clusters of this attempt, open requests for samples, agents not asked yet, and answers.
        self.chosen: list[str] = []
        self.asked: set[int] = set()
        self.agents_left: list[AgentQuestion] = []
        self.samples: list[SampleReturned] = []
        self.candidates: list[RankedMachine] = []
        #: The best candidate of this attempt.
        self.first = -1
        self.explanation = Explanation()

    @property
    def tasks(self) -> TaskArray:
        return np.array([self.task], np.int64)

    @property
    def requirements(self) -> Requirements:
        group = self.group
        return Requirements(group.request, group.requires, group.demands)


class SamplingQueue:
    """Tasks that wait for a sampler, in the order of the sort plug-in. A task put back goes to the end
    of its rank, or to the beginning."""

    def __init__(self, sorting: Sorting, put_back: Literal["tail", "head"] = "tail") -> None:
        self._sorting = sorting
        self._put_back = put_back
        self._heap: list[tuple[tuple[int, ...], int, ScheduledTask]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, item: ScheduledTask) -> None:
        self._count += 1
        self._insert(item, self._count)

    def put_back(self, item: ScheduledTask) -> None:
        self._count += 1
        self._insert(item, self._count if self._put_back == "tail" else -self._count)

    def _insert(self, item: ScheduledTask, turn: int) -> None:
        rank = self._sorting.rank(item.job, item.submitted)
        heapq.heappush(self._heap, (rank, turn, item))

    def pop(self) -> ScheduledTask:
        return heapq.heappop(self._heap)[2]


class WorkerPool:
    """Workers of one phase. The number of a worker names its lane."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._free = list(range(size))

    @property
    def has_free(self) -> bool:
        return bool(self._free)

    def take(self) -> int:
        return heapq.heappop(self._free)

    def give(self, slot: int) -> None:
        heapq.heappush(self._free, slot)

    def lane(self, slot: int) -> str:
        return f"{self._name} {slot}"
