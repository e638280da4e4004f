"""The two queues: ready tasks, by rank and then by arrival; and waiting tasks."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator

import numpy as np

from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import TaskArray


class TaskKind:
    """What makes tasks equal to a scheduler: where one finds no room, none does."""

    __slots__ = ("precedence", "requires", "shape")

    def __init__(self, shape: int, precedence: int, requires: dict[str, str]) -> None:
        self.shape = shape
        self.precedence = precedence
        self.requires = requires


class Pod:
    """One task that has been taken from its job, and how often it has been tried."""

    __slots__ = ("attempts", "batch", "explained", "job", "kind", "task")

    def __init__(self, job: int, kind: TaskKind, task: int) -> None:
        self.job = job
        self.kind = kind
        self.task = task
        self.attempts = 0
        #: After how many attempts it was last said why it has no machine.
        self.explained = 0
        #: Where it came from, until it has been tried.
        self.batch: Batch | None = None


class Batch:
    """Tasks of one group that came together; pods are made of them one by one."""

    __slots__ = ("at", "is_fresh", "job", "kind", "tasks")

    def __init__(self, job: int, kind: TaskKind, tasks: TaskArray) -> None:
        self.job = job
        self.kind = kind
        self.tasks: list[int] = tasks.tolist()
        self.at = 0
        #: Whether all tasks so far have found a machine. The first that does not explains the others.
        self.is_fresh = True

    def next(self) -> Pod:
        pod = Pod(self.job, self.kind, self.tasks[self.at])
        if self.is_fresh:
            pod.batch = self
        else:
            pod.explained = 1
        self.at += 1
        return pod

    def keep(self, is_wanted: Callable[[int], bool]) -> int:
        """Leaves out tasks that are not wanted any more; returns how many."""
        tasks = self.tasks[self.at :]
        self.tasks, self.at = list(filter(is_wanted, tasks)), 0
        return len(tasks) - len(self.tasks)

    @property
    def is_empty(self) -> bool:
        return self.at == len(self.tasks)


class _Level:
    """Ready tasks of one precedence, in the order they came."""

    __slots__ = ("came", "fresh", "items", "went")

    def __init__(self) -> None:
        self.items: deque[Batch | Pod] = deque()
        #: How many tasks came and went ever; and how many had come before each fresh batch.
        self.came = 0
        self.went = 0
        self.fresh: deque[int] = deque()

    def keep(self, is_wanted: Callable[[int], bool]) -> Counter[TaskKind]:
        """Leaves out tasks that are not wanted any more, as if they had never come."""
        gone: Counter[TaskKind] = Counter()
        items, self.items = self.items, deque()
        self.came = self.went = 0
        self.fresh.clear()
        for item in items:
            if isinstance(item, Pod):
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
    """Higher precedence first; among equals, who came earlier. What comes again comes last."""

    def __init__(self) -> None:
        self._levels: dict[int, _Level] = {}
        #: Precedences that have ready tasks, the highest last.
        self._order: list[int] = []
        self._first: _Level | None = None

    def __bool__(self) -> bool:
        return self._first is not None

    def __iter__(self) -> Iterator[Batch | Pod]:
        for precedence in self._order:
            yield from self._levels[precedence].items

    def add(self, batch: Batch) -> None:
        level = self._level(batch.kind.precedence)
        level.items.append(batch)
        level.fresh.append(level.came)
        level.came += len(batch.tasks)

    def put_back(self, pod: Pod) -> None:
        level = self._level(pod.kind.precedence)
        level.items.append(pod)
        level.came += 1

    def pop(self) -> Pod:
        level = self._first
        assert level is not None
        first = level.items[0]
        level.went += 1
        if isinstance(first, Pod):
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
        """Leaves out tasks that are not wanted any more; returns how many of each kind."""
        gone: Counter[TaskKind] = Counter()
        for precedence in self._order:
            gone += self._levels[precedence].keep(is_wanted)
        self._order = [precedence for precedence in self._order if self._levels[precedence].items]
        self._first = self._levels[self._order[-1]] if self._order else None
        return gone

    def explained(self, batch: Batch) -> list[int]:
        """The batch that the last pod came from is fresh no more. Returns its tasks that are left."""
        if batch.is_fresh and not batch.is_empty:
            self._levels[batch.kind.precedence].fresh.popleft()
        batch.is_fresh = False
        return batch.tasks[batch.at :]

    @property
    def head(self) -> Batch | Pod | None:
        return self._first.items[0] if self._first is not None else None

    @property
    def ahead_of_fresh(self) -> int | None:
        """At least how many tasks are tried before one of a batch that is fresh; none without such."""
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
    """Tasks that found no machine, each until it has waited; all wait equally long."""

    def __init__(self, wait: int) -> None:
        self._wait = wait
        self._pods: deque[tuple[int, Pod]] = deque()

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[Pod]:
        return (pod for _, pod in self._pods)

    def add(self, pod: Pod, now: int) -> None:
        self._pods.append((now + self._wait, pod))

    def keep(self, is_wanted: Callable[[int], bool]) -> Counter[TaskKind]:
        """Leaves out tasks that are not wanted any more; returns how many of each kind."""
        gone = Counter(pod.kind for _, pod in self._pods if not is_wanted(pod.task))
        self._pods = deque(entry for entry in self._pods if is_wanted(entry[1].task))
        return gone

    @property
    def due(self) -> int | None:
        """When the first has waited."""
        return self._pods[0][0] if self._pods else None

    def move_due(self, now: int, ready: ReadyQueue) -> None:
        while self._pods and self._pods[0][0] <= now:
            ready.put_back(self._pods.popleft()[1])


class Kinds:
    """One object a kind."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[int, tuple[tuple[str, str], ...]], TaskKind] = {}

    def of(self, job: Job, group: TaskGroup, shape: int) -> TaskKind:
        key = (shape, tuple(sorted(group.requires.items())))
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = TaskKind(shape, job.precedence, dict(group.requires))
        return kind


def one(task: int) -> TaskArray:
    return np.array([task], np.int64)
