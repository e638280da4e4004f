"""What is written to Kubernetes, and with which right."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from faulty_proxy import Fault, FaultyProxy
from kube_cases import Plane, asynchronous, pod

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.service.kubernetes.writer import KubernetesWriter
from argosy.worlds.kubernetes.tracked import BindOrder, EvictOrder, NominateOrder


class GivenRight:
    """A right that the test gives and takes."""

    def __init__(self, *, is_held: bool = True, remaining: float | None = 60.0) -> None:
        self.is_held = is_held
        self.remaining = remaining
        self.fencing = 7


class Fates:
    """What became of orders."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def writer(self, client: KubernetesClient, **options: Any) -> KubernetesWriter:
        return KubernetesWriter(
            client,
            "argosy",
            bound=lambda uid: self.told.put_nowait(("bound", uid)),
            failed=lambda uid: self.told.put_nowait(("failed", uid)),
            stayed=lambda uid: self.told.put_nowait(("stayed", uid)),
            **options,
        )


@asynccontextmanager
async def writing(
    connection: Connection, fates: Fates, **options: Any
) -> AsyncIterator[tuple[KubernetesClient, KubernetesWriter]]:
    async with KubernetesClient(connection) as client:
        writer = fates.writer(client, **options)
        writer.start()
        try:
            yield client, writer
        finally:
            await writer.close()


async def made(client: KubernetesClient, name: str, namespace: str) -> Pod:
    return await client.create(PODS, pod(name, namespace))


def is_bind(request: web.BaseRequest) -> bool:
    return request.path.endswith("/binding")


@asynchronous
async def test_a_binding_says_which_leader_made_it(control_plane: Plane, namespace: str) -> None:
    fates = Fates()
    connection = load_connection(control_plane.kubeconfig)
    async with writing(connection, fates, right=GivenRight()) as (client, writer):
        order = await made(client, "a", namespace)
        writer.carry_out(BindOrder(order, "n1"))
        assert await fates.told.get() == ("bound", order.uid)
        bound = await client.get(PODS, "a", namespace)
        assert bound.spec.node_name == "n1"
        assert bound.metadata.annotations == {
            "argosy.dev/placed-by": "argosy",
            "argosy.dev/fencing": "7",
        }


@asynchronous
async def test_without_the_right_nothing_is_written(control_plane: Plane, namespace: str) -> None:
    fates, right = Fates(), GivenRight(is_held=False)
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        writing(proxy.connection, fates, right=right) as (client, writer),
    ):
        first, second = await made(client, "a", namespace), await made(client, "b", namespace)
        before = len(proxy.seen)
        writer.carry_out(BindOrder(first, "n1"))
        writer.carry_out(NominateOrder(first, "n1"))
        writer.carry_out(EvictOrder(first, Why.PREEMPTED))
        writer.note_waiting(first, "no room")
        while writer.counts["left"] < 3:
            await asyncio.sleep(0)
        right.is_held = True
        writer.carry_out(BindOrder(second, "n1"))
        assert await fates.told.get() == ("bound", second.uid)
        changes = [each for each in proxy.seen[before:] if not each.startswith("GET")]
        assert [each for each in changes if "/pods/a" in each] == []


@asynchronous
async def test_no_request_is_waited_for_longer_than_the_right_lasts(
    control_plane: Plane, namespace: str
) -> None:
    fates, right = Fates(), GivenRight()
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        writing(proxy.connection, fates, right=right) as (client, writer),
    ):
        order = await made(client, "a", namespace)
        right.remaining = 0.05
        # The server does not answer, and the right ends meanwhile.
        proxy.inject(Fault(gate=asyncio.Event()), on=is_bind)
        arrival = asyncio.ensure_future(proxy.arrivals("POST", 1))
        await asyncio.sleep(0)
        writer.carry_out(BindOrder(order, "n1"))
        await arrival
        right.is_held = False
        while writer.counts["left"] < 1:
            await asyncio.sleep(0.001)
        assert fates.told.empty()


@asynchronous
async def test_a_right_that_was_renewed_meanwhile_is_used_again(
    control_plane: Plane, namespace: str
) -> None:
    fates, right = Fates(), GivenRight(remaining=0.05)
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        writing(proxy.connection, fates, right=right) as (client, writer),
    ):
        order = await made(client, "a", namespace)
        proxy.inject(Fault(gate=asyncio.Event()), on=is_bind)
        arrival = asyncio.ensure_future(proxy.arrivals("POST", 2))
        await asyncio.sleep(0)
        writer.carry_out(BindOrder(order, "n1"))
        await arrival
        right.remaining = 60.0
        assert await fates.told.get() == ("bound", order.uid)


@asynchronous
async def test_a_binding_is_not_taken_for_refused_while_nobody_knows(
    control_plane: Plane, namespace: str
) -> None:
    fates = Fates()
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        writing(proxy.connection, fates) as (client, writer),
    ):
        order = await made(client, "a", namespace)
        # It is bound, and the answer is lost; the next attempt is a conflict, and nobody tells why.
        proxy.inject(Fault(breaks="after"), on=is_bind)
        proxy.inject(Fault(status=500), on=lambda request: request.path.endswith("/pods/a"))
        writer.carry_out(BindOrder(order, "n1"))
        assert await fates.told.get() == ("bound", order.uid)


@asynchronous
async def test_bindings_under_way_are_finished_when_the_writer_closes(
    control_plane: Plane, namespace: str
) -> None:
    fates, gate = Fates(), asyncio.Event()
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        KubernetesClient(proxy.connection) as client,
    ):
        writer = fates.writer(client)
        writer.start()
        order = await made(client, "a", namespace)
        proxy.inject(Fault(gate=gate), on=is_bind)
        arrival = asyncio.ensure_future(proxy.arrivals("POST", 1))
        await asyncio.sleep(0)
        writer.carry_out(BindOrder(order, "n1"))
        await arrival
        closing = asyncio.ensure_future(writer.close())
        await asyncio.sleep(0)
        gate.set()
        await closing
        assert await fates.told.get() == ("bound", order.uid)
