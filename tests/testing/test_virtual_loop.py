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
