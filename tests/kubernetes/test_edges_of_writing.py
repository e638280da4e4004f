"""What is begun and what is not while a writer closes."""

from __future__ import annotations

import asyncio
from typing import Any

from kube_cases import asynchronous
from test_written_orders import a_pod

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
