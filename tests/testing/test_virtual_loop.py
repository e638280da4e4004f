"""How runs in virtual time end."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from argosy.testing.virtual_loop import VirtualLoop, others_ended

FOREVER = 10**9


async def end_of(times: int) -> bool:
    """Whether a task ends that loses its first cancellations, so many of them."""

    async def hard_of_hearing() -> None:
        for _ in range(times):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(FOREVER)
        await asyncio.sleep(FOREVER)

    task = asyncio.create_task(hard_of_hearing())
    await asyncio.sleep(0)
    task.cancel()
    await others_ended()
    return task.cancelled()


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_task_that_loses_its_cancellation_is_cancelled_once_more(times: int) -> None:
    loop = VirtualLoop()
    assert loop.run_until_complete(end_of(times))
    assert loop.micros == 0, "time stands still"
    loop.close()


def test_a_task_that_never_ends_is_an_error_that_names_it() -> None:
    loop = VirtualLoop()
    with pytest.raises(RuntimeError, match=r"do not end: .*hard_of_hearing"):
        loop.run_until_complete(end_of(1_000))
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.close()


def test_time_passes_only_while_everybody_waits_and_in_whole_microseconds() -> None:
    loop = VirtualLoop()
    seen: list[tuple[str, int]] = []

    def note(what: str) -> None:
        seen.append((what, loop.micros))

    async def waits() -> None:
        note("begin")
        await asyncio.sleep(0.1 + 0.2)
        note("a sum")
        await asyncio.sleep(1e-9)
        note("a moment")
        await asyncio.sleep(0)
        note("no time")

    loop.at(300_001, lambda: note("planned"))
    loop.at(5, lambda: note("early"))
    loop.run_until_complete(waits())
    assert loop.time() == loop.micros / 1_000_000
    assert seen[:3] == [("begin", 0), ("early", 5), ("a sum", 300_000)]
    assert dict(seen[3:]) == {
        "planned": 300_001,
        "a moment": 300_001,
        "no time": 300_001,
    }
    loop.at(7, lambda: note("late"))
    loop.run_until_complete(asyncio.sleep(0))
    assert seen[-1] == ("late", 300_001), "what should have happened already happens now"
    loop.close()


def test_work_for_threads_is_done_at_once_and_known_after_a_while() -> None:
    loop = VirtualLoop(lambda: 2.0)
    done: list[int] = []

    def work(value: int) -> int:
        done.append(loop.micros)
        if not value:
            raise KeyError(value)
        return value + 1

    async def asks() -> tuple[int, int]:
        found = await loop.run_in_executor(None, work, 4)
        with pytest.raises(KeyError):
            await loop.run_in_executor(None, work, 0)
        given_up = loop.run_in_executor(None, work, 5)
        given_up.cancel()
        await asyncio.sleep(9)
        return found, loop.micros

    assert loop.run_until_complete(asks()) == (5, 13_000_000)
    assert done == [0, 2_000_000, 4_000_000]
    loop.close()


def test_waiting_for_nothing_is_an_error() -> None:
    loop = VirtualLoop()
    nothing = loop.create_future()
    with pytest.raises(RuntimeError, match="everybody waits, and nothing is going to happen"):
        loop.run_until_complete(nothing)
    loop.close()
