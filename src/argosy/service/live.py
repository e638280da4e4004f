"""Drives a live world on the event loop.

Inputs are handed to the world as they come, and answered when the turn that holds them is on the disk.
Inputs that come while a turn is written share the next one, so that a busy server commits less often
per input than an idle one.

If the database cannot be written for now, the cluster pauses: nothing new is accepted, and nothing
starts or stops, until a commit succeeds. If an engine fails, the turn is dropped and the world is built
anew from the database, as after a crash of the server; those who wait for the turn are told.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol, TypeVar

from argosy.host.protocols import Deliberator
from argosy.model.errors import ArgosyError, EngineFault, FleetRefused
from argosy.model.events import Decision
from argosy.model.scenario import FleetEntry
from argosy.worlds.local.store import StoreError
from argosy.worlds.local.stored_cluster import replace_fleet
from argosy.worlds.local.turn import TryResult
from argosy.worlds.local.world import LocalWorld

T = TypeVar("T")

#: Seconds between two attempts to write, while the database cannot be written.
PAUSE: Final = 1.0
#: Seconds until a fleet that failed starts again: doubles with every failure soon after another.
FIRST_REST: Final = 0.1
LONGEST_REST: Final = 30.0
#: A fleet that has worked for so many seconds is taken to be well.
CALM: Final = 60.0
#: Seconds for which processes are started and stopped before others have their turn.
SLICE: Final = 0.01
#: Seconds until an input is written that nobody waits for.
SOON: Final = 0.01
#: Seconds between two looks at all processes, in case a report was lost.
SWEEP: Final = 5.0
_MICRO: Final = 1_000_000


class Unavailable(ArgosyError):
    """The cluster accepts nothing for now."""

    code = "unavailable"


class Reporter(Protocol):
    """Where news of processes come from."""

    @property
    def has_stillborn(self) -> bool: ...

    def hear(self) -> None: ...
    def sweep(self) -> None: ...


class LiveCluster:
    """`build` makes the world from its database, now and after an engine has failed. It gets the
    deliberator for long decisions. Nothing happens before `run`."""

    def __init__(
        self,
        build: Callable[[Deliberator], LocalWorld],
        reporter: Reporter,
        log: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._build = build
        self._reporter = reporter
        self._log = log
        self._wake = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []
        self._is_stopping = False
        self._is_acting = False
        self._writes_soon = False
        #: Why nothing is accepted; none while all is well.
        self.trouble: ArgosyError | None = None
        #: Whether the trouble is a fleet that cannot run.
        self.is_failing = False
        #: How long a fleet that failed rests, and when that was last.
        self._fault_rest = FIRST_REST
        self._last_fault = -CALM
        self._generation = 0
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="deliberation")
        #: Called when the fleet fails, before it starts again.
        self.fault_listeners: list[Callable[[EngineFault], None]] = []
        #: Called after every turn that is on the disk, with the seconds it took.
        self.listeners: list[Callable[[float], None]] = []
        self._loop = asyncio.get_running_loop()
        self.world = self._built()

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    def _built(self) -> LocalWorld:
        self._generation += 1
        return self._build(self)

    async def do(self, action: Callable[[LocalWorld], T]) -> T:
        """Gives an input to the world; returns when it is on the disk."""
        self._check_open()
        with self._guarded():
            result = action(self.world)
        await self._committed()
        return result

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Mistakes of a caller leave the world as it was; anything else may not."""
        try:
            yield
        except EngineFault as fault:
            self._drop(fault)
            raise
        except ArgosyError:
            raise
        except Exception as error:
            internal = EngineFault(f"an internal error: {type(error).__name__}: {error}")
            internal.__cause__ = error
            self._drop(internal)
            raise internal from error

    def _check_open(self) -> None:
        if self._is_stopping:
            raise _stopping()
        if self.trouble is not None:
            what = "the fleet fails" if self.is_failing else "the cluster is paused"
            raise Unavailable(f"{what}: {self.trouble}", hint="try again later")

    async def _committed(self) -> None:
        done: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(done)
        self._wake.set()
        await done

    async def change_fleet(self, fleet: tuple[FleetEntry, ...]) -> None:
        """Also possible while the fleet fails: another may not."""
        if self.is_failing:
            trouble, before = self.trouble, replace_fleet(self.world.store, fleet)
            self._rebuild()
            if self.trouble is not None:
                replace_fleet(self.world.store, before)
                refused, self.trouble = FleetRefused.by(self.trouble), trouble
                raise refused
            return
        self._check_open()
        with self._guarded():
            self.world.change_fleet(fleet)
        await self._committed()

    def ended(self, number: int, result: TryResult | None) -> None:
        """A process has ended; `result` is none if nobody knows how. Its files say so too, so nothing is
        lost if this is."""
        if self.is_failing:
            return
        with contextlib.suppress(EngineFault), self._guarded():
            self.world.ended(number, result)
        self._wake.set()

    def tell(self, action: Callable[[LocalWorld], T]) -> T | None:
        """Gives an input to the world that nobody waits for. Schedulers act on it at once; it is written
        soon. None if the world takes no inputs now."""
        if self.is_failing or self._is_stopping:
            return None
        result = None
        with contextlib.suppress(EngineFault), self._guarded():
            self.world.settle()
            result = action(self.world)
            self.world.settle()
            if not self._writes_soon:
                self._writes_soon = True
                self._loop.call_later(SOON, self._wake.set)
        return result

    def start(self, run: Callable[[], Decision], done: Callable[[Decision], None]) -> None:
        """Decides beside the loop (see `Deliberator`)."""
        future = self._loop.run_in_executor(self._threads, run)
        future.add_done_callback(partial(self._decided, self._generation, done))

    def _decided(
        self,
        generation: int,
        done: Callable[[Decision], None],
        future: asyncio.Future[Decision],
    ) -> None:
        if generation != self._generation or self._is_stopping or self.is_failing:
            # Nobody waits for it any more; the exception, if any, is looked at all the same.
            future.cancelled() or future.exception()
            return
        with contextlib.suppress(EngineFault), self._guarded():
            self.world.settle()
            done(future.result())
        self._wake.set()

    def stop(self) -> None:
        self._is_stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Until `stop`. Processes go on."""
        sweeping = self._loop.create_task(self._sweep())
        try:
            while not self._is_stopping:
                await self._rest()
                self._wake.clear()
                if self.is_failing:
                    await self._start_again()
                    continue
                await self._turn()
            if not self.is_failing:
                await self._turn()
                self.world.act()
        finally:
            sweeping.cancel()
            self._give_up(_stopping(), self._waiting)
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            try:
                self._reporter.sweep()
            except OSError as error:
                # Descriptors may have run out; the next look may do better.
                self._log(f"cannot look at the tasks' processes: {error.strerror}")

    async def _rest(self) -> None:
        """Until something comes in or is due."""
        due = None if self.is_failing else self.world.next_due()
        timeout = None if due is None else max(0.0, (due - self.world.now) / _MICRO)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), timeout)
        # What else is ready belongs to the same turn.
        await asyncio.sleep(0)

    async def _turn(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._writes_soon = False
        began = self._loop.time()
        try:
            with self._guarded():
                self.world.write()
        except StoreError as error:
            self._waiting = waiting + self._waiting
            if not error.is_passing or self._is_stopping:
                raise
            if self.trouble is None:
                self._log(f"paused: {error}")
            self.trouble = error
            await asyncio.sleep(PAUSE)
            self._wake.set()
            return
        except EngineFault as fault:
            self._give_up(fault, waiting)
            return
        if self.trouble is not None:
            self._log("going on")
            self.trouble = None
        for done in waiting:
            if not done.done():
                done.set_result(None)
        for listener in self.listeners:
            listener(self._loop.time() - began)
        if not self._is_acting:
            self._act()

    def _act(self) -> None:
        """Starts and stops processes, a slice at a time, so that requests are answered meanwhile."""
        self._is_acting = not self.is_failing and self.world.act(SLICE)
        if self._is_acting:
            self._loop.call_soon(self._act)
        if self._reporter.has_stillborn:
            self._loop.call_soon(self._reporter.hear)

    def _drop(self, fault: EngineFault) -> None:
        """The world cannot be trusted any more: the turn is lost, and everyone is told."""
        if self.is_failing:
            return
        self._log(f"the fleet failed: {fault}")
        self._log("".join(traceback.format_exception(fault)).rstrip())
        self.trouble, self.is_failing = fault, True
        self._generation += 1
        waiting, self._waiting = self._waiting, []
        self._give_up(fault, waiting)
        self._wake.set()
        for listener in self.fault_listeners:
            listener(fault)

    def _give_up(self, error: ArgosyError, waiting: Iterable[asyncio.Future[None]]) -> None:
        for done in waiting:
            if not done.done():
                done.set_exception(error)

    async def _start_again(self) -> None:
        now = self._loop.time()
        is_calm = now - self._last_fault >= CALM
        self._fault_rest = FIRST_REST if is_calm else min(2 * self._fault_rest, LONGEST_REST)
        self._last_fault = now
        await asyncio.sleep(self._fault_rest)
        if self.is_failing and not self._is_stopping:
            self._rebuild()

    def _rebuild(self) -> None:
        try:
            self.world = self._built()
        except StoreError as error:
            if not error.is_passing:
                raise
            self.trouble = error
        except ArgosyError as error:
            # Also an engine that says it cannot work: another fleet may.
            self.trouble = error
        else:
            self.trouble, self.is_failing = None, False
            self._log("the fleet started again")
        self._wake.set()


def _stopping() -> Unavailable:
    return Unavailable("the server is stopping", hint="try again when it is back")
