"""What is begun and what is not: while a writer or driver closes, and without a right to write."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kube_cases import asynchronous
from test_driver_steps import DriverBench
from test_growing_jobs import GrowthBench
from test_written_orders import a_pod

from argosy.service.kubernetes.driver import KubernetesDriver
from argosy.service.kubernetes.rights import LastingRight, NoRight
from argosy.service.kubernetes.writer import AT_ONCE, KubernetesWriter
from argosy.worlds.kubernetes.tracked import BindOrder


class PatientClient:
    """Bindings are answered when the test says so."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.may_end = asyncio.Event()

    async def bind(self, namespace: str, name: str, node: str, **more: Any) -> None:
        self.begun.append(name)
        await self.may_end.wait()


@asynchronous
async def test_while_closing_what_is_under_way_ends_and_what_is_queued_does_not_begin() -> None:
    client, bound = PatientClient(), list[str]()
    writer = KubernetesWriter(
        client,  # type: ignore[arg-type]
        "argosy",
        bound=bound.append,
        failed=bound.append,
        stayed=bound.append,
        writes_events=False,
    )
    writer.start()
    names = [f"p{number}" for number in range(AT_ONCE + 1)]
    for name in names:
        writer.carry_out(BindOrder(a_pod(name, uid=name), "n"))
    while len(client.begun) < AT_ONCE:
        await asyncio.sleep(0)
    closing = asyncio.create_task(writer.close())
    await asyncio.sleep(0)
    client.may_end.set()
    await closing
    assert client.begun == bound == names[:AT_ONCE]
    assert writer.counts["bound"] == AT_ONCE


@asynchronous
async def test_what_does_not_end_in_time_is_left_when_a_writer_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("argosy.service.kubernetes.writer._GOODBYE", 0.0)
    client, fates = PatientClient(), list[str]()
    writer = KubernetesWriter(
        client,  # type: ignore[arg-type]
        "argosy",
        bound=fates.append,
        failed=fates.append,
        stayed=fates.append,
    )
    writer.start()
    writer.carry_out(BindOrder(a_pod("p"), "n"))
    while not client.begun:
        await asyncio.sleep(0)
    async with asyncio.timeout(20):
        await writer.close()
    client.may_end.set()
    await asyncio.sleep(0)
    assert (client.begun, fates, writer.counts) == (["p"], [], {})


@asynchronous
async def test_jobs_grow_only_while_there_is_a_right_to_write() -> None:
    bench, looks = GrowthBench(1), list[bool]()
    growth = bench.growth
    growth._interval = 0.0

    async def look() -> None:
        looks.append(growth._right().is_held)
        if len(looks) == 2:
            bench.right = NoRight()  # type: ignore[assignment]

    growth._look = look  # type: ignore[method-assign]
    growing = asyncio.create_task(growth._look_on())
    for _ in range(20):
        await asyncio.sleep(0)
    assert looks == [True, True], "after the second look the right was lost"
    bench.right = LastingRight()
    while len(looks) < 3:
        await asyncio.sleep(0)
    growing.cancel()
    await asyncio.gather(growing, return_exceptions=True)
    assert looks == [True] * 3


@pytest.mark.parametrize(
    ("how", "failed"), [("returns", False), ("is cancelled", False), ("crashes", True)]
)
@asynchronous
async def test_a_driver_fails_only_if_one_of_its_tasks_does(how: str, failed: bool) -> None:
    driver, complaints = object.__new__(KubernetesDriver), list[dict[str, Any]]()
    driver.error, driver.failed = None, asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))

    async def follow() -> None:
        if how == "is cancelled":
            await asyncio.Event().wait()
        if how == "crashes":
            raise ValueError("no news")

    task = loop.create_task(follow())
    task.add_done_callback(driver._task_ended)
    await asyncio.sleep(0)
    if how == "is cancelled":
        task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(0)
    assert driver.failed.is_set() == failed
    assert (str(driver.error) == "no news") == failed
    assert complaints == []


@pytest.mark.parametrize("takes", [True, False])
def test_what_the_world_orders_when_it_is_told_something_is_carried_out_at_once(
    takes: bool,
) -> None:
    bench = DriverBench()
    bench.pods.orders.append("before")
    bench.takes = takes
    assert bench.driver._tell(lambda: bench.pods.orders.append("bind")) is takes
    carried_out = [each.args[0] for each in bench.writer.carry_out.mock_calls]
    assert carried_out == (["before", "bind"] if takes else ["before"])
    assert not bench.pods.orders
