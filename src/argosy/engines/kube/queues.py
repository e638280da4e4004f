"""The two queues: ready tasks, by rank and then by arrival; and waiting tasks."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import TaskArray

#: Before any time.
NEVER: Final = -1


class TaskKind:
    """Tasks that are equal to a scheduler: if one finds no room, none does."""

    __slots__ = ("precedence", "preempts", "requires", "shape")

    def __init__(
        self, shape: int, precedence: int, requires: dict[str, str], *, preempts: bool = True
    ) -> None:
        self.shape = shape
        self.precedence = precedence
        self.preempts = preempts
        self.requires = requires


class QueuedPod:
    """A task taken from its job, and its number of attempts."""

    __slots__ = ("attempts", "batch", "explained", "failed_at", "job", "kind", "task")

    def __init__(self, job: int, kind: TaskKind, task: int) -> None:
        self.job = job
        self.kind = kind
        self.task = task
        self.attempts = 0
        #: When it last found no room.
        self.failed_at = NEVER
        #: The number of attempts at its last explanation.
        self.explained = 0
        #: Its batch, until its first attempt failed.
        self.batch: Batch | None = None


class Batch:
    """Tasks of one group that arrived together, from which pods are made one by one."""

    __slots__ = ("at", "is_fresh", "job", "kind", "since", "tasks")

    def __init__(self, job: int, kind: TaskKind, tasks: TaskArray, since: int) -> None:
        self.job = job
        self.kind = kind
        self.tasks: list[int] = tasks.tolist()
        #: When they came.
        self.since = since
        self.at = 0
        #: Whether all tasks so far found a machine. The first that does not is explained together with
        #: the rest.
        self.is_fresh = True

    def next(self) -> QueuedPod:
        pod = QueuedPod(self.job, self.kind, self.tasks[self.at])
        if self.is_fresh:
            pod.batch = self
        else:
            pod.explained = 1
        self.at += 1
        return pod

    def keep(self, is_wanted: Callable[[int], bool]) -> int:
        """Drops withdrawn tasks; returns how many."""
        tasks = self.tasks[self.at :]
        self.tasks, self.at = list(filter(is_wanted, tasks)), 0
        return len(tasks) - len(self.tasks)

    @property
    def is_empty(self) -> bool:
        return self.at == len(self.tasks)

    @property
    def is_silent(self) -> bool:
        """Whether it has tasks that nobody has told why they wait."""
        return self.is_fresh and not self.is_empty


class _Level:
    """Ready tasks of one precedence, in order of arrival."""

    __slots__ = ("came", "fresh", "items", "untold", "went")

    def __init__(self) -> None:
        self.items: deque[Batch | QueuedPod] = deque()
        #: Total arrivals and departures; number of arrivals before each fresh batch.
        self.came = 0
        self.went = 0
        self.fresh: deque[int] = deque()
        #: Batches that were not told that others go first, in order of arrival.
        self.untold: deque[Batch] = deque()

    def keep(self, is_wanted: Callable[[int], bool]) -> Counter[TaskKind]:
        """Drops withdrawn tasks as if they had never arrived."""
        gone: Counter[TaskKind] = Counter()
        items, self.items = self.items, deque()
        self.came = self.went = 0
        self.fresh.clear()
        for item in items:
            if isinstance(item, QueuedPod):
                size = int(is_wanted(item.task))
                gone[item.kind] += 1 - size
            else:
                gone[item.kind] += item.keep(is_wanted)
                size = len(item.tasks)
            if size:
                self.items.append(item)
                if isinstance(item, Batch) and item.is_fresh:
                    self.fresh.append(self.came)
                self.came += size
        return gone


class ReadyQueue:
    """Ordered by precedence, then by arrival. Tasks put back go to the end."""

    def __init__(self) -> None:
        self._levels: dict[int, _Level] = {}
        #: Precedences with ready tasks, highest last.
        self._order: list[int] = []
        self._first: _Level | None = None

    def __bool__(self) -> bool:
        return self._first is not None

    def __iter__(self) -> Iterator[Batch | QueuedPod]:
        for precedence in self._order:
            yield from self._levels[precedence].items

    def add(self, batch: Batch) -> None:
        level = self._level(batch.kind.precedence)
        level.items.append(batch)
        level.fresh.append(level.came)
        level.untold.append(batch)
        level.came += len(batch.tasks)

    def put_back(self, pod: QueuedPod) -> None:
        level = self._level(pod.kind.precedence)
        level.items.append(pod)
        level.came += 1

    def pop(self) -> QueuedPod:
        level = self._first
        assert level is not None
        first = level.items[0]
        level.went += 1
        if isinstance(first, QueuedPod):
            level.items.popleft()
            pod = first
        else:
            pod = first.next()
            if first.is_empty:
                level.items.popleft()
                if first.is_fresh:
                    level.fresh.popleft()
        if not level.items:
            self._order.pop()
            self._first = self._levels[self._order[-1]] if self._order else None
        return pod

    def keep(self, is_wanted: Callable[[int], bool]) -> Counter[TaskKind]:
        """Drops withdrawn tasks; returns how many of each kind."""
        gone: Counter[TaskKind] = Counter()
        for precedence in self._order:
            gone += self._levels[precedence].keep(is_wanted)
        self._order = [precedence for precedence in self._order if self._levels[precedence].items]
        self._first = self._levels[self._order[-1]] if self._order else None
        return gone

    def explained(self, batch: Batch) -> list[int]:
        """Marks the batch of the last pod as no longer fresh. Returns its remaining tasks."""
        if batch.is_fresh and not batch.is_empty:
            self._levels[batch.kind.precedence].fresh.popleft()
        batch.is_fresh = False
        return batch.tasks[batch.at :]

    def passed_over(self, precedence: int, since: int) -> list[Batch]:
        """Batches below a precedence that came until `since` and have not been tried, each once."""
        found: list[Batch] = []
        for each in self._order:
            untold = self._levels[each].untold
            while each < precedence and untold and untold[0].since <= since:
                batch = untold.popleft()
                found += [batch] * batch.is_silent
        return found

    def tell_again(self) -> None:
        """What batches were told about the task ahead of them no longer holds."""
        for precedence in self._order:
            level = self._levels[precedence]
            silent = (item for item in level.items if isinstance(item, Batch) and item.is_silent)
            level.untold = deque(silent)

    @property
    def head(self) -> Batch | QueuedPod | None:
        return self._first.items[0] if self._first is not None else None

    @property
    def ahead_of_fresh(self) -> int | None:
        """Lower bound on the number of tasks tried before one of a fresh batch; None if there is no
        such batch."""
        ahead = 0
        for precedence in reversed(self._order):
            level = self._levels[precedence]
            if level.fresh:
                return max(0, ahead + level.fresh[0] - level.went)
            ahead += level.came - level.went
        return None

    def _level(self, precedence: int) -> _Level:
        level = self._levels.get(precedence)
        if level is None:
            level = self._levels[precedence] = _Level()
        if not level.items:
            self._order.append(precedence)
            self._order.sort()
            self._first = self._levels[self._order[-1]]
        return level


class RetryQueue:
    """Tasks that found no machine, each until its waiting time is over; the time is the same for
    all."""

    def __init__(self, wait: int) -> None:
        self._wait = wait
        self._pods: deque[tuple[int, QueuedPod]] = deque()

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return (pod for _, pod in self._pods)

    def add(self, pod: QueuedPod, now: int) -> None:
        self._pods.append((now + self._wait, pod))

    def keep(self, is_wanted: Callable[[int], bool]) -> Counter[TaskKind]:
        """Drops withdrawn tasks; returns how many of each kind."""
        gone = Counter(pod.kind for _, pod in self._pods if not is_wanted(pod.task))
        self._pods = deque(entry for entry in self._pods if is_wanted(entry[1].task))
        return gone

    @property
    def due(self) -> int | None:
        """When the first task has waited long enough."""
        return self._pods[0][0] if self._pods else None

    def move_due(self, now: int, ready: ReadyQueue) -> None:
        while self._pods and self._pods[0][0] <= now:
            ready.put_back(self._pods.popleft()[1])


class Kinds:
    """One object per kind."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, bool, tuple[tuple[str, str], ...]], TaskKind] = {}

    def of(self, job: Job, group: TaskGroup, shape: int) -> TaskKind:
        key = (shape, job.preempts, tuple(sorted(group.requires.items())))
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = TaskKind(
                shape, job.precedence, dict(group.requires), preempts=job.preempts
            )
        return kind


def one(task: int) -> TaskArray:
    return np.array([task], np.int64)
