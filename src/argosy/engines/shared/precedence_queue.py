"""A queue whose jobs of the highest precedence go first, among equals the one that came first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from argosy.engines.shared.serial import PendingJob


class PrecedenceQueue:
    def __init__(self, works: Iterable[PendingJob] = ()) -> None:
        #: By precedence, highest first; none is empty.
        self._classes: dict[int, deque[PendingJob]] = {}
        for work in works:
            self.append(work)

    def append(self, work: PendingJob) -> None:
        precedence = work.job.precedence
        if precedence not in self._classes:
            self._classes[precedence] = deque()
            self._classes = dict(sorted(self._classes.items(), reverse=True))
        self._classes[precedence].append(work)

    def popleft(self) -> PendingJob:
        precedence, first = next(iter(self._classes.items()))
        work = first.popleft()
        if not first:
            del self._classes[precedence]
        return work

    def __len__(self) -> int:
        return sum(map(len, self._classes.values()))

    def __iter__(self) -> Iterator[PendingJob]:
        for works in self._classes.values():
            yield from works
