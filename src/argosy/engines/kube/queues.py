"""The two queues: ready tasks, by rank and then by arrival; and waiting tasks."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from argosy.model.jobs import Job, TaskGroup
from argosy.model.transactions import TaskArray

#: Before any time.
NEVER: Final = -1
#: After any time.
NEVER_DUE: Final = 2**62


class TaskKind:
    """Tasks that are equal to a scheduler: if one finds no room, none does."""

    __slots__ = ("precedence", "preempts", "requires", "shape", "wishes")

    def __init__(
        self,
        shape: int,
        precedence: int,
        requires: dict[str, str],
        *,
        preempts: bool = True,
        wishes: dict[str, int] | None = None,
    ) -> None:
        self.wishes = wishes or {}
        self.shape = shape
        self.precedence = precedence
        self.preempts = preempts
        self.requires = requires


class QueuedPod:
    """A task taken from its job, and its number of attempts."""

    __slots__ = ("attempts", "batch", "explained", "failed_at", "job", "kind", "since", "task")

    def __init__(self, job: int, kind: TaskKind, task: int, since: int) -> None:
        self.job = job
        self.kind = kind
        self.task = task
        #: When it came.
        self.since = since
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
        pod = QueuedPod(self.job, self.kind, self.tasks[self.at], self.since)
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
    """Ready tasks of one precedence, in order of arrival, and those that come from the retry queue, if
    they go by the time of their creation."""

    __slots__ = ("came", "fresh", "items", "newest", "returned", "untold", "went")

    def __init__(self) -> None:
        self.items: deque[Batch | QueuedPod] = deque()
        #: Ordered by when they were created, and then by their return.
        self.returned: list[tuple[int, int, QueuedPod]] = []
        #: None of them was created later.
        self.newest = NEVER
        #: Total arrivals and departures; number of arrivals before each fresh batch.
        self.came = 0
        self.went = 0
        self.fresh: deque[int] = deque()
        #: Batches that were not told that others go first, in order of arrival.
        self.untold: deque[Batch] = deque()

    @property
    def is_empty(self) -> bool:
        return not self.items and not self.returned

    @property
    def is_returned_next(self) -> bool:
        if not self.returned or not self.items:
            return bool(self.returned)
        return self.returned[0][0] <= self.items[0].since

    @property
    def ahead_of_arrived(self) -> int:
        """Lower bound on how many of the returned go before all that have arrived."""
        if not self.items or self.newest <= self.items[0].since:
            return len(self.returned)
        return int(self.is_returned_next)

    def give_back(self, pod: QueuedPod, number: int) -> None:
        self.newest = max(self.newest, pod.since) if self.returned else pod.since
        heapq.heappush(self.returned, (pod.since, number, pod))

    def keep(self, is_wanted: Callable[[int], bool]) -> Counter[TaskKind]:
        """Drops withdrawn tasks as if they had never arrived."""
        gone = Counter(pod.kind for *_, pod in self.returned if not is_wanted(pod.task))
        self.returned = [entry for entry in self.returned if is_wanted(entry[2].task)]
        heapq.heapify(self.returned)
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
    """Ordered by precedence, then by arrival. Tasks put back go to the end; `by_creation`, those from
    the retry queue go before all that were created later."""

    def __init__(self, *, by_creation: bool = False) -> None:
        self._by_creation = by_creation
        self._returns = 0
        self._levels: dict[int, _Level] = {}
        #: Precedences with ready tasks, highest last.
        self._order: list[int] = []
        self._first: _Level | None = None

    def __bool__(self) -> bool:
        return self._first is not None

    def __iter__(self) -> Iterator[Batch | QueuedPod]:
        for precedence in self._order:
            yield from self._levels[precedence].items
            yield from (pod for *_, pod in self._levels[precedence].returned)

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

    def take_back(self, pod: QueuedPod) -> None:
        """A task comes from the retry queue."""
        if not self._by_creation:
            self.put_back(pod)
            return
        self._returns += 1
        self._level(pod.kind.precedence).give_back(pod, self._returns)

    def pop(self) -> QueuedPod:
        level = self._first
        assert level is not None
        if level.returned and level.is_returned_next:
            pod = heapq.heappop(level.returned)[2]
        else:
            pod = self._pop_arrived(level)
        if not level.items and not level.returned:
            self._order.pop()
            self._first = self._levels[self._order[-1]] if self._order else None
        return pod

    def _pop_arrived(self, level: _Level) -> QueuedPod:
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
        return pod

    def keep(self, is_wanted: Callable[[int], bool]) -> Counter[TaskKind]:
        """Drops withdrawn tasks; returns how many of each kind."""
        gone: Counter[TaskKind] = Counter()
        for precedence in self._order:
            gone += self._levels[precedence].keep(is_wanted)
        self._order = [each for each in self._order if not self._levels[each].is_empty]
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
        if self._first is None:
            return None
        return self._first.returned[0][2] if self._first.is_returned_next else self._first.items[0]

    @property
    def ahead_of_fresh(self) -> int | None:
        """Lower bound on the number of tasks tried before one of a fresh batch; None if there is no
        such batch."""
        ahead = 0
        for precedence in reversed(self._order):
            level = self._levels[precedence]
            if level.fresh:
                arrived = ahead + level.fresh[0] - level.went
                return max(0, arrived) + level.ahead_of_arrived
            ahead += level.came - level.went + len(level.returned)
        return None

    def _level(self, precedence: int) -> _Level:
        level = self._levels.get(precedence)
        if level is None:
            level = self._levels[precedence] = _Level()
        if not level.items and not level.returned:
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
        #: When the first task has waited long enough; `NEVER_DUE` if there is none.
        self.due = NEVER_DUE

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[QueuedPod]:
        return (pod for _, pod in self._pods)

    def add(self, pod: QueuedPod, now: int) -> None:
        due = now + self._wait
        self._pods.append((due, pod))
        if due < self.due:
            self.due = due

    def keep(self, is_wanted: Callable[[int], bool]) -> Counter[TaskKind]:
        """Drops withdrawn tasks; returns how many of each kind."""
        gone = Counter(pod.kind for _, pod in self._pods if not is_wanted(pod.task))
        self._pods = deque(entry for entry in self._pods if is_wanted(entry[1].task))
        self._look()
        return gone

    def move_due(self, now: int, ready: ReadyQueue) -> None:
        while self._pods and self._pods[0][0] <= now:
            ready.take_back(self._pods.popleft()[1])
        self._look()

    def _look(self) -> None:
        self.due = self._pods[0][0] if self._pods else NEVER_DUE


class Kinds:
    """One object per kind."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[object, ...], TaskKind] = {}

    def of(self, job: Job, group: TaskGroup, shape: int) -> TaskKind:
        requires, wishes = sorted(group.requires.items()), sorted(group.wishes.items())
        key = (shape, job.preempts, tuple(requires), tuple(wishes))
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = TaskKind(
                shape,
                job.precedence,
                dict(group.requires),
                preempts=job.preempts,
                wishes=dict(group.wishes),
            )
        return kind


def one(task: int) -> TaskArray:
    return np.array([task], np.int64)
