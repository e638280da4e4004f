"""Drives a live world on the event loop.

Inputs are handed to the world as they come, and answered when the turn that holds them is on the disk.
All inputs that come while a turn is written share the next one, so that a busy server commits less often
per input than an idle one.

If the database cannot be written for now, the cluster pauses: nothing new is accepted, and nothing
starts or stops, until a commit succeeds. If an engine fails, the turn is dropped and the world is built
anew from the database, as after a crash of the server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, TypeVar

from argosy.model.errors import ArgosyError, EngineFault
from argosy.worlds.local.store import StoreError
from argosy.worlds.local.world import LocalWorld, TryResult

T = TypeVar("T")

#: Seconds between two attempts to write, while the database cannot be written.
PAUSE: Final = 1.0
#: Seconds until a fleet that failed starts again: doubles with every failure in a row.
FIRST_REST: Final = 0.1
LONGEST_REST: Final = 30.0
_MICRO: Final = 1_000_000


class Paused(ArgosyError):
    """The cluster accepts nothing for now."""

    code = "paused"


class LiveCluster:
    """`build` makes the world from its database, now and after an engine has failed."""

    def __init__(self, build: Callable[[], LocalWorld]) -> None:
        self._build = build
        self.world = build()
        self._wake = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._stopping = False
        #: Why nothing is accepted; none while all is well.
        self.trouble: ArgosyError | None = None
        self._faults = 0
        #: Called after every turn that changed something.
        self.listeners: list[Callable[[], None]] = []

    async def do(self, action: Callable[[LocalWorld], T]) -> T:
        """Gives an input to the world; returns when it is on the disk."""
        if self.trouble is not None or self._stopping:
            raise Paused(
                str(self.trouble) if self.trouble else "the server is stopping",
                hint="try again later",
            )
        result = action(self.world)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wake.set()
        await done
        return result

    def ended(self, number: int, result: TryResult) -> None:
        """A process has ended. Its files say so too, so nothing is lost if this is."""
        self.world.ended(number, result)
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Until `stop`. Processes go on."""
        while not self._stopping:
            await self._rest()
            self._wake.clear()
            try:
                self._turn()
            except StoreError as error:
                if not error.is_passing:
                    raise
                self.trouble = error
                await asyncio.sleep(PAUSE)
                self._wake.set()
            except EngineFault as fault:
                await self._start_again(fault)

    async def _rest(self) -> None:
        """Until something comes in or is due."""
        due = self.world.next_due()
        timeout = None if due is None else max(0.0, (due - self.world.now) / _MICRO)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), timeout)
        # What else is ready belongs to the same turn.
        await asyncio.sleep(0)

    def _turn(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            self.world.commit()
        except StoreError:
            self._waiting = waiting + self._waiting
            raise
        except EngineFault as fault:
            for done in waiting:
                if not done.done():
                    done.set_exception(fault)
            raise
        self.trouble = None
        for done in waiting:
            if not done.done():
                done.set_result(None)
        for listener in self.listeners:
            listener()

    async def _start_again(self, fault: EngineFault) -> None:
        self.trouble = fault
        self._faults += 1
        await asyncio.sleep(min(FIRST_REST * 2 ** (self._faults - 1), LONGEST_REST))
        self.world = self._build()
        self._wake.set()
