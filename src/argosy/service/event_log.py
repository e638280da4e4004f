"""What has changed, in order, for those who watch: from the database, and as it happens.

An event's id is the number of its turn and its place in the turn. A watcher that comes back says where
it was, and misses nothing, whichever server it comes back to.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from itertools import takewhile
from typing import Final, NamedTuple

from argosy.api.values import (
    ClusterEvent,
    FleetEvent,
    JobEvent,
    MachineEvent,
    TaskCounts,
    TaskEvent,
)
from argosy.model.errors import excerpt
from argosy.service.dates import Calendar
from argosy.service.problems import RequestError
from argosy.service.retention import forgotten_turn
from argosy.worlds.local.changes import (
    ChangeNote,
    JobNote,
    LifeNote,
    MachineNote,
    TaskNote,
    decode_changes,
)
from argosy.worlds.local.projection import STATES
from argosy.worlds.local.store import LocalStore

#: Turns that are read at once.
_BATCH: Final = 100
#: Changes of the last turns that are kept in memory, for all who watch as things happen.
_RECENT: Final = 5_000
#: A place after all events of a turn.
_LAST: Final = 1 << 40


class Position(NamedTuple):
    """After an event of a turn."""

    turn: int
    place: int

    @staticmethod
    def parse(text: str) -> Position:
        turn, _, index = text.partition(".")
        parts = (turn, index or "0")
        if not all(part.isascii() and part.isdecimal() and len(part) < 16 for part in parts):
            raise RequestError(
                f"event id {excerpt(text)}", expected="the id of an event, 0, or now"
            )
        return Position(int(turn), int(index) if index else _LAST)

    def __str__(self) -> str:
        return str(self.turn) if self.place == _LAST else f"{self.turn}.{self.place}"


class EventLog:
    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._calendar = Calendar(store.origin)
        self._recent: deque[tuple[int, list[ChangeNote]]] = deque()
        self._kept = 0
        self._last = self._stored_last()
        self._news = asyncio.Event()

    def _stored_last(self) -> int:
        rows = self._store.rows("SELECT max(turn) FROM turns")
        return int(rows[0][0] or 0)

    @property
    def now(self) -> Position:
        """After all that has happened."""
        return Position(self._last, _LAST)

    def turn_ended(self, seconds: float = 0.0) -> None:
        """To be called after every turn."""
        rows = self._store.rows(
            "SELECT turn, changes FROM turns WHERE turn > ? ORDER BY turn", (self._last,)
        )
        if not rows:
            return
        for turn, data in rows:
            changes = decode_changes(data)
            self._recent.append((turn, changes))
            # A turn without changes takes room as well.
            self._kept += len(changes) + 1
            self._last = turn
        # The last turn stays, however large it is: everybody is about to ask for it.
        while self._kept > _RECENT and len(self._recent) > 1:
            self._kept -= len(self._recent.popleft()[1]) + 1
        news, self._news = self._news, asyncio.Event()
        news.set()

    def position(self, text: str) -> Position:
        """Where to go on: after the event with this id, or `now`."""
        if text == "now":
            return self.now
        position = Position.parse(text)
        if position.turn > self._last:
            raise RequestError(
                f"event id {excerpt(text)} is of the future",
                expected="the id of an event of this cluster, 0, or now",
            )
        if 0 < position.turn < forgotten_turn(self._store):
            raise RequestError(
                f"event id {excerpt(text)} is too old: what followed it is not kept any more",
                expected="the id of a later event, 0 for what is kept, or now",
            )
        return position

    def before_last(self, count: int) -> Position:
        """Before the last so many events, or as many as there are in the last turns."""
        rows = self._store.rows(
            "SELECT turn, changes FROM turns ORDER BY turn DESC LIMIT ?", (_BATCH,)
        )
        position = self.now
        for turn, data in rows:
            changes = len(decode_changes(data))
            if changes >= count:
                skipped = changes - count
                return Position(turn, skipped - 1) if skipped else Position(turn - 1, _LAST)
            count -= changes
            position = Position(turn - 1, _LAST)
        return position

    async def wait(self, position: Position) -> None:
        """Until there may be something after it."""
        while position.turn >= self._last:
            await self._news.wait()

    def after(
        self, position: Position, job: str | None
    ) -> Iterator[tuple[Position, ClusterEvent | None]]:
        """What follows the position, up to a limit; the event is none at the end of every turn."""
        for turn, changes in self._turns(position):
            for index, change in enumerate(changes):
                if (turn, index) > position and (job is None or getattr(change, "job", "") == job):
                    yield Position(turn, index), self._event(change)
            yield Position(turn, _LAST), None

    def changes_after(self, position: Position) -> Iterator[ChangeNote]:
        """What has changed since, if that is not long ago."""
        for _, changes in self._recent_since(position.turn + 1):
            yield from changes

    def _recent_since(self, first: int) -> list[tuple[int, list[ChangeNote]]]:
        """The turns in memory from one on. Those who ask mostly want the last one or two."""
        found = list(takewhile(lambda item: item[0] >= first, reversed(self._recent)))
        return found[::-1]

    def _turns(self, position: Position) -> list[tuple[int, list[ChangeNote]]]:
        if self._recent and self._recent[0][0] <= position.turn:
            return self._recent_since(position.turn)[:_BATCH]
        rows = self._store.rows(
            "SELECT turn, changes FROM turns WHERE turn >= ? ORDER BY turn LIMIT ?",
            (position.turn, _BATCH),
        )
        return [(turn, decode_changes(data)) for turn, data in rows]

    def _event(self, change: ChangeNote) -> ClusterEvent:
        at = self._calendar.date(change.at)
        match change:
            case TaskNote():
                return TaskEvent(
                    at=at,
                    job=change.job,
                    index=change.index,
                    state=change.state,  # type: ignore[arg-type]
                    machine=change.machine,
                    exit_status=change.exit_status,
                    reason=change.reason,
                )
            case JobNote():
                counts = dict(zip(STATES, change.counts, strict=True))
                return JobEvent(
                    at=at,
                    job=change.job,
                    state=change.state,  # type: ignore[arg-type]
                    version=change.version,
                    tasks=TaskCounts(**counts),
                )
            case MachineNote():
                return MachineEvent(at=at, machine=change.machine, change=change.change)
            case LifeNote():
                return FleetEvent(at=at, version=change.life)
