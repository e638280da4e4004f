"""An event loop in virtual time: whenever nothing is left to do at an instant, the next begins at once.

What runs on it must neither open sockets nor start threads. Then a run is deterministic, and an hour of
waiting takes no time.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Mapping
from typing import Any, Final

_MICRO: Final = 1_000_000
#: Turns of the loop within which tasks have to end before they are cancelled once more, and how often
#: they are.
_TURNS: Final = 100
_MOST_TIMES: Final = 10


class VirtualSelector(selectors.BaseSelector):
    """Waits by letting time pass. Nothing is ever ready to be read or written."""

    def __init__(self) -> None:
        #: Microseconds since the loop was made.
        self.now = 0
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        # The loop registers a socket of its own, by which threads would wake it.
        self._keys[fileobj] = key = selectors.SelectorKey(fileobj, 0, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits, and nothing is going to happen")
        if timeout > 0:
            # Sums of floating-point times miss whole microseconds by a little.
            self.now += max(1, math.ceil(timeout * _MICRO - 1e-3))
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """Work for threads is done at once, and its result is there after `thinking` seconds."""

    def __init__(self, thinking: Callable[[], float] = lambda: 0.0) -> None:
        self._time = VirtualSelector()
        super().__init__(self._time)
        self._thinking = thinking

    @property
    def micros(self) -> int:
        return self._time.now

    def time(self) -> float:
        return self._time.now / _MICRO

    def at(self, micros: int, action: Callable[[], object]) -> None:
        """`action` is called at a time, or now if that is over."""
        self.call_at(micros / _MICRO, action)

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        done: asyncio.Future[Any] = self.create_future()
        try:
            result = func(*args)
        except Exception as error:
            self.call_later(self._thinking(), _unless_done, done, done.set_exception, error)
        else:
            self.call_later(self._thinking(), _unless_done, done, done.set_result, result)
        return done


async def others_ended() -> None:
    """Waits until all tasks have ended but the caller's, which were cancelled before. Time stands still
    meanwhile: one that has lost its cancellation and waits for a time is cancelled once more."""
    own = asyncio.current_task()
    for turn in range(_TURNS * _MOST_TIMES):
        others = asyncio.all_tasks() - {own}
        if not others:
            return
        if turn % _TURNS == _TURNS - 1:
            for task in others:
                task.cancel()
        await asyncio.sleep(0)
    raise RuntimeError(f"tasks that were cancelled do not end: {sorted(map(repr, others))}")


def _unless_done(
    future: asyncio.Future[Any], settle: Callable[[Any], None], outcome: object
) -> None:
    if not future.done():
        settle(outcome)
