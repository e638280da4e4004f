"""Tries that run in other clusters: an agent has started them, and tells how they end.

A try is known by the key of its commit. The agent may say that it is over before the turn is written in
which it begins; that is kept until then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.worlds.local.processless import ProcesslessRunner
from argosy.worlds.local.turn import TryResult

#: How a try ends that was told to.
STOPPED: Final = TryResult(-15, "released", was_stopped=True)


class RemotePlace(NamedTuple):
    """Where a task is: the cluster, and the key of the commit."""

    cluster: str
    key: str


class RemoteRunner(ProcesslessRunner[tuple[RemotePlace, tuple[str, int]]]):
    """`ended` hears of ends, `released` of commits that are to be undone; `soon` calls something when
    there is nothing else to do. Tries are kept with their place, job and index."""

    def __init__(
        self,
        ended: Callable[[int, TryResult | None], None],
        released: Callable[[RemotePlace], None],
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        super().__init__()
        self._ended = ended
        self._released = released
        self._soon = soon
        #: The last commit of every task that is not known to be over, by job and index.
        self._places: dict[tuple[str, int], RemotePlace] = {}
        self._known: set[str] = set()
        self._numbers: dict[str, int] = {}
        #: Ends of tries that have not begun here.
        self._early: dict[str, TryResult | None] = {}

    def place(self, job: str, index: int, where: RemotePlace) -> None:
        """A commit has succeeded: the next try of the task is this one."""
        self._places[job, index] = where
        self._known.add(where.key)

    def take_unwritten(self) -> list[RemotePlace]:
        """Commits whose tries have not begun here. If the turn is lost in which they do, so are they."""
        lost = [
            (task, where) for task, where in self._places.items() if where.key not in self._numbers
        ]
        for task, where in lost:
            del self._places[task]
            self._known.discard(where.key)
            self._early.pop(where.key, None)
        return [where for _, where in lost]

    def adopt_as(self, number: int, job: str, index: int, where: RemotePlace) -> None:
        """A try of an earlier server."""
        self.place(job, index, where)
        self._note(number, where, (job, index))

    def _note(self, number: int, where: RemotePlace, task: tuple[str, int]) -> None:
        self._numbers[where.key] = number
        self._running[number] = where, task

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        where = self._places.get((job.id, index))
        if where is None or where.key in self._numbers:
            # It was lost in a crash between the commit and the turn, or is a service that ended.
            self._soon(lambda: self._ended(number, TryResult(1, "its commit is not known")))
            return
        self._note(number, where, (job.id, index))
        if where.key in self._early:
            result = self._early.pop(where.key)
            self._soon(lambda: self._over(number, result))

    def is_known(self, key: str) -> bool:
        """Whether a task is where this commit put it."""
        return key in self._known

    def number_of(self, key: str) -> int | None:
        return self._numbers.get(key)

    def keys_in(self, cluster: str) -> list[str]:
        """The commits in a cluster whose tries run."""
        return [where.key for where, _ in self._running.values() if where.cluster == cluster]

    def ended(self, key: str, result: TryResult | None) -> None:
        """The agent says that it is over."""
        number = self._numbers.get(key)
        if number is not None:
            self._over(number, result)
        elif self.is_known(key):
            self._early[key] = result

    def _over(self, number: int, result: TryResult | None) -> None:
        if self._forget(number) is not None:
            self._ended(number, result)

    def _forget(self, number: int) -> RemotePlace | None:
        where, task = self._running.pop(number, (None, ("", -1)))
        if where is None:
            return None
        del self._numbers[where.key]
        self._known.discard(where.key)
        if self._places.get(task) == where:
            del self._places[task]
        return where

    def stop(self, number: int) -> None:
        """The agent is told until it has heard; nobody has to wait for that."""
        where = self._forget(number)
        if where is not None:
            self._released(where)
        self._soon(lambda: self._ended(number, STOPPED))

    def adopt(self, number: int) -> TryResult | bool:
        # What has become of it meanwhile, its agent says as soon as it is reached.
        return True

    def limits(self) -> str:
        return "it runs in another cluster, with the limits that tasks have there"

    def close(self) -> None:
        """Tasks go on."""
