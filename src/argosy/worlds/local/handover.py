"""From one try of a task to the next: a task runs once at a time, and what it has done counts.

A try that was told to stop, because its task lost its place, may take its time, or may end by itself
before it hears of it. The task's next try waits until it is gone. If it ended by itself, that was the
task's end, and the next try takes it over instead of starting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from argosy.worlds.local.turn import PlannedLaunch, TryResult


class StoppingTry(msgspec.Struct, frozen=True):
    """A try that has to stop. `seq` is the job's number in the database."""

    number: int
    seq: int
    index: int
    #: Whether the task is to run again, rather than being cancelled.
    is_wanted: bool


class Handover:
    """Tries that were told to stop, and launches that wait for them."""

    def __init__(self) -> None:
        self._stopping: dict[int, StoppingTry] = {}
        #: Tries that ended by themselves, and how, by job and index.
        self._results: dict[tuple[int, int], tuple[int, TryResult]] = {}
        self._waiting: dict[int, PlannedLaunch] = {}
        self._gone: list[int] = []

    def stop(self, stopping: StoppingTry) -> None:
        self._stopping[stopping.number] = stopping

    def ended(self, number: int, end: TryResult | None) -> None:
        """A try has ended, which may be one of those that were told to stop."""
        stopping = self._stopping.pop(number, None)
        if stopping is None:
            return
        if end is None or end.was_stopped or not stopping.is_wanted:
            self._gone.append(number)
        else:
            self._results[stopping.seq, stopping.index] = (number, end)

    def disown(self, seq: int, first: int) -> None:
        """The job has no tasks from the index `first` on any more."""
        for stopping in list(self._stopping.values()):
            if stopping.seq == seq and stopping.index >= first:
                self.stop(msgspec.structs.replace(stopping, is_wanted=False))
        for key in [key for key in self._results if key[0] == seq and key[1] >= first]:
            self._gone.append(self._results.pop(key)[0])

    def hold(self, launches: dict[int, PlannedLaunch]) -> None:
        self._waiting |= launches

    def drop(self, number: int) -> bool:
        """Takes a launch back; false if it has been made."""
        return self._waiting.pop(number, None) is not None

    def ready(self) -> Iterator[tuple[int, PlannedLaunch, int, TryResult | None]]:
        """The launches that nothing keeps waiting any more, each with the try whose end it takes over,
        if there is one."""
        busy = {(stopping.seq, stopping.index) for stopping in self._stopping.values()}
        for number, planned in list(self._waiting.items()):
            key = (planned.seq, planned.index)
            # Whoever is told of one may ask for the others before this goes on.
            if key in busy or number not in self._waiting:
                continue
            del self._waiting[number]
            former, end = self._results.pop(key, (0, None))
            if end is not None:
                self._gone.append(former)
            yield number, planned, former, end

    def take_gone(self) -> Iterable[int]:
        """Tries that need not be stopped any more, and whose ends nobody waits for."""
        gone, self._gone = self._gone, []
        return gone
