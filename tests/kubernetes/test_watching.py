"""Watches of a real API server, through connections that fail."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from aiohttp import web
from faulty_proxy import Fault, FaultyProxy
from kube_cases import Plane, asynchronous, pod

from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.control_plane import ControlPlane, KubeProgram
from argosy.kubernetes.failures import ObjectNotFound, RequestForbidden, RequestInvalid
from argosy.kubernetes.kinds import NODES, PODS, ResourceKind
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.meta import KubernetesObject
from argosy.kubernetes.objects import Pod
from argosy.kubernetes.watching import (
    UNFINISHED_PODS,
    ChangeKind,
    ObjectChange,
    ObjectWatch,
    WatchSettings,
)

SOON = WatchSettings(first_delay=0.001, longest_delay=0.05, page=2)
GONE = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}'
)
EXPIRED = b'{"type":"ERROR","object":' + GONE + b"}\n"
ENDED = {
    "status": {
        "phase": "Succeeded",
        "containerStatuses": [
            {
                "name": "main",
                "image": "",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": {"exitCode": 3}},
            }
        ],
    }
}

Told = list[tuple[str, str]]


def is_watch(request: web.BaseRequest) -> bool:
    return "watch" in request.rel_url.query


def told(changes: list[ObjectChange[Pod]]) -> Told:
    return [
        (change.kind.value, (change.new or change.old or pod("?", "?")).name) for change in changes
    ]


async def until(
    watch: ObjectWatch[Pod], condition: Callable[[Told], bool] = lambda _: True
) -> list[ObjectChange[Pod]]:
    """All changes until the store is complete and the condition holds."""
    changes: list[ObjectChange[Pod]] = []
    async for batch in watch:
        changes += batch.changes
        if batch.is_complete and condition(told(changes)):
            break
    return changes


def has(*expected: tuple[str, str]) -> Callable[[Told], bool]:
    return lambda changes: set(expected) <= set(changes)


def names(watch: ObjectWatch[Any]) -> list[str]:
    return sorted(name for _, name in watch.objects)


@asynchronous
async def test_a_store_follows_every_change(control_plane: Plane, namespace: str) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        await client.create(PODS, pod("a", namespace))
        async with ObjectWatch(client, PODS, namespace) as watch:
            assert told(await until(watch)) == [("added", "a")]
            assert watch.is_complete
            made = await client.create(PODS, pod("b", namespace))
            await client.bind(namespace, "b", "n1")
            await client.delete(PODS, "a", namespace, grace_seconds=0)
            changes = await until(watch, has(("deleted", "a"), ("changed", "b")))
            newest = watch.objects[namespace, "b"]
            (bound,) = (each for each in changes if each.old is not None and each.new == newest)
            assert bound.kind is ChangeKind.CHANGED
            assert bound.old is not None
            assert (bound.old.uid, bound.old.spec.node_name) == (made.uid, "")
            assert bound.new is not None
            assert bound.new.spec.node_name == "n1"
            assert names(watch) == ["b"]
        assert watch.restarts == {}


@asynchronous
async def test_an_empty_store_is_told_to_be_complete(control_plane: Plane, namespace: str) -> None:
    async with (
        KubernetesClient(load_connection(control_plane.kubeconfig)) as client,
        ObjectWatch(client, PODS, namespace) as watch,
    ):
        assert await until(watch) == []


@asynchronous
async def test_a_pod_that_ends_leaves_a_watch_of_unfinished_pods(
    control_plane: Plane, namespace: str
) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        await client.create(PODS, pod("a", namespace))
        async with (
            ObjectWatch(client, PODS, namespace, fields=UNFINISHED_PODS) as unfinished,
            ObjectWatch(client, PODS, namespace) as watch,
        ):
            await until(unfinished)
            await until(watch)
            await client.patch(
                PODS, "a", ENDED, namespace, form=PatchForm.STRATEGIC, subresource="status"
            )
            assert told(await until(unfinished, bool)) == [("deleted", "a")]
            (change,) = await until(watch, bool)
            assert change.new is not None
            state = change.new.status.container_statuses[0].state.terminated
            assert state is not None
            assert state.exit_code == 3


@asynchronous
async def test_what_a_watch_stops_keeping_is_told_with_its_final_state(
    control_plane: Plane, namespace: str
) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        await client.create(PODS, pod("a", namespace))
        async with ObjectWatch(
            client, PODS, namespace, keeps=lambda each: each.status.phase != "Succeeded"
        ) as watch:
            await until(watch)
            await client.patch(
                PODS, "a", ENDED, namespace, form=PatchForm.STRATEGIC, subresource="status"
            )
            (change,) = await until(watch, bool)
            assert (change.kind, change.new, names(watch)) == (ChangeKind.DELETED, None, [])
            assert change.final is not None
            assert change.final.status.phase == "Succeeded"
            await client.delete(PODS, "a", namespace, grace_seconds=0)
            await client.create(PODS, pod("b", namespace))
            assert told(await until(watch, bool)) == [("added", "b")], "it is not told twice"


@asynchronous
async def test_a_watch_knows_for_how_long_it_may_have_missed_something(
    control_plane: Plane, namespace: str
) -> None:
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        KubernetesClient(proxy.connection) as client,
        ObjectWatch(client, PODS, namespace, settings=SOON) as watch,
    ):
        await until(watch)
        assert watch.lag == 0.0
        gate = asyncio.Event()
        proxy.inject(Fault(gate=gate), on=is_watch)
        arrived = asyncio.ensure_future(proxy.arrivals("GET", 1))
        await asyncio.sleep(0)
        proxy.end_streams()
        await arrived
        assert watch.lag > 0.0
        gate.set()
        await client.create(PODS, pod("a", namespace))
        await until(watch, bool)
        assert watch.lag == 0.0


@asynchronous
async def test_a_watch_goes_on_from_where_it_ended(control_plane: Plane, namespace: str) -> None:
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        async with (
            KubernetesClient(proxy.connection) as client,
            ObjectWatch(client, PODS, namespace, settings=SOON) as watch,
        ):
            await until(watch)
            version = watch.resource_version
            gate = asyncio.Event()
            proxy.inject(Fault(gate=gate), on=is_watch)
            proxy.end_streams()
            await client.create(PODS, pod("a", namespace))
            gate.set()
            assert told(await until(watch, bool)) == [("added", "a")]
            assert watch.restarts == {"ended": 1}
            assert watch.relists == 0
        assert f"resourceVersion={version}" in [each for each in proxy.seen if "watch" in each][-1]


@asynchronous
async def test_what_happened_while_away_is_told_when_versions_are_gone(
    control_plane: Plane, namespace: str
) -> None:
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        KubernetesClient(proxy.connection) as client,
    ):
        for name in ("gone", "changed", "again", "same"):
            await client.create(PODS, pod(name, namespace))
        async with ObjectWatch(client, PODS, namespace, settings=SOON) as watch:
            await until(watch)
            gate = asyncio.Event()
            proxy.inject(Fault(gate=gate, status=410, body=GONE), on=is_watch)
            proxy.end_streams()
            await client.delete(PODS, "gone", namespace, grace_seconds=0)
            await client.bind(namespace, "changed", "n1")
            await client.delete(PODS, "again", namespace, grace_seconds=0)
            await client.create(PODS, pod("again", namespace))
            await client.create(PODS, pod("new", namespace))
            gate.set()
            changes = told(await until(watch, has(("added", "new"), ("deleted", "gone"))))
            assert sorted(changes) == [
                ("added", "again"),
                ("added", "new"),
                ("changed", "changed"),
                ("deleted", "again"),
                ("deleted", "gone"),
            ]
            assert changes.index(("deleted", "again")) < changes.index(("added", "again"))
            assert names(watch) == ["again", "changed", "new", "same"]
            assert watch.restarts["gone"] == 1
            assert watch.relists == 1


@asynchronous
async def test_an_error_within_the_stream_is_heeded(control_plane: Plane, namespace: str) -> None:
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        KubernetesClient(proxy.connection) as client,
    ):
        await client.create(PODS, pod("a", namespace))
        # One object, then the bookmark that ends the initial ones.
        proxy.inject(Fault(lines=2, then="end", also=EXPIRED), on=is_watch)
        async with ObjectWatch(client, PODS, namespace, settings=SOON) as watch:
            await until(watch)
            await client.create(PODS, pod("b", namespace))
            await until(watch, has(("added", "b")))
            assert watch.restarts["gone"] == 1


@asynchronous
async def test_a_server_that_does_not_stream_is_listed(
    control_plane: Plane, namespace: str
) -> None:
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        refusal = {
            "kind": "Status",
            "status": "Failure",
            "message": "sendInitialEvents is forbidden for watch unless the WatchList feature is on",
            "reason": "Invalid",
            "code": 422,
        }
        proxy.inject(
            Fault(status=422, body=msgspec.json.encode(refusal)),
            on=lambda request: "sendInitialEvents" in request.rel_url.query,
            times=100,
        )
        async with KubernetesClient(proxy.connection) as client:
            for at in range(5):
                await client.create(PODS, pod(f"p{at}", namespace))
            async with ObjectWatch(client, PODS, namespace, settings=SOON) as watch:
                assert sorted(told(await until(watch))) == [("added", f"p{at}") for at in range(5)]
                gate = asyncio.Event()
                proxy.inject(Fault(gate=gate, status=410, body=GONE), on=is_watch)
                proxy.end_streams()
                await client.delete(PODS, "p0", namespace, grace_seconds=0)
                gate.set()
                assert told(await until(watch, bool)) == [("deleted", "p0")]
                await client.create(PODS, pod("q", namespace))
                assert told(await until(watch, bool)) == [("added", "q")]
        assert sum("sendInitialEvents" in each for each in proxy.seen) == 1, "asked only once"


@asynchronous
async def test_nothing_is_lost_when_connections_break_anywhere(
    control_plane: Plane, namespace: str
) -> None:
    connection = load_connection(control_plane.kubeconfig)
    async with FaultyProxy(connection) as proxy:
        for lines in (0, 1, 2, 4, 0, 1, 1, 2):
            proxy.inject(Fault(lines=lines, then="break"), on=is_watch)
        proxy.inject(Fault(breaks="before"), on=is_watch)
        async with (
            KubernetesClient(connection) as direct,
            KubernetesClient(proxy.connection, random=Random(1)) as client,
        ):
            for at in range(4):
                await direct.create(PODS, pod(f"old{at}", namespace))
            async with ObjectWatch(client, PODS, namespace, settings=SOON) as watch:
                for at in range(12):
                    await direct.create(PODS, pod(f"new{at}", namespace))
                    await direct.bind(namespace, f"new{at}", "n1")
                await direct.delete(PODS, "old0", namespace, grace_seconds=0)
                await direct.create(PODS, pod("last", namespace))

                def in_step(_: object) -> bool:
                    bound = [each for each in watch.objects.values() if each.spec.node_name]
                    return (namespace, "last") in watch.objects and len(bound) == 12

                changes = await until(watch, in_step)
                assert len(watch.objects) == 3 + 12 + 1
                kept: dict[str, Pod] = {}
                for change in changes:
                    name = (change.new or change.old or pod("?", "?")).name
                    assert kept.get(name) == change.old, (
                        "each change begins where the last one ended"
                    )
                    if change.new is None:
                        del kept[name]
                    else:
                        kept[name] = change.new
                assert kept == {name: each for (_, name), each in watch.objects.items()}
                assert sum(watch.restarts.values()) >= 5


@asynchronous
async def test_a_watch_outlives_its_server(control_plane: Plane, namespace: str) -> None:
    connection = load_connection(control_plane.kubeconfig)
    async with (
        FaultyProxy(connection) as proxy,
        KubernetesClient(proxy.connection) as client,
        KubernetesClient(connection) as direct,
        ObjectWatch(client, PODS, namespace, settings=SOON) as watch,
    ):
        await until(watch)
        await proxy.go_away()
        await direct.create(PODS, pod("a", namespace))
        await proxy.come_back()
        assert told(await until(watch, bool)) == [("added", "a")]
        assert watch.restarts["kubernetes-unreachable"] >= 1


@asynchronous
async def test_a_silent_stream_is_given_up(control_plane: Plane, namespace: str) -> None:
    connection = load_connection(control_plane.kubeconfig)
    settings = WatchSettings(timeout=0.4, grace=0.1, first_delay=0.001, longest_delay=0.01)
    async with FaultyProxy(connection) as proxy:
        proxy.inject(Fault(lines=1, then="silent"), on=is_watch)
        async with (
            KubernetesClient(proxy.connection) as client,
            KubernetesClient(connection) as direct,
            ObjectWatch(client, PODS, namespace, settings=settings) as watch,
        ):
            await until(watch)
            await direct.create(PODS, pod("a", namespace))
            assert told(await until(watch, bool)) == [("added", "a")]
            assert watch.restarts["stalled"] == 1


@asynchronous
async def test_a_slow_stream_is_put_together(control_plane: Plane, namespace: str) -> None:
    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        proxy.inject(Fault(piece=7), on=is_watch)
        async with KubernetesClient(proxy.connection) as client:
            await client.create(PODS, pod("a", namespace))
            async with ObjectWatch(client, PODS, namespace, settings=SOON) as watch:
                assert told(await until(watch)) == [("added", "a")]
                assert watch.restarts == {}


@asynchronous
async def test_changes_are_read_while_nobody_takes_them(
    control_plane: Plane, namespace: str
) -> None:
    async with (
        KubernetesClient(load_connection(control_plane.kubeconfig)) as client,
        ObjectWatch(client, PODS, namespace) as watch,
    ):
        await until(watch)
        await asyncio.gather(*(client.create(PODS, pod(f"p{at}", namespace)) for at in range(60)))
        while len(watch.objects) < 60:
            await asyncio.sleep(0)
        batch = await anext(watch)
        assert len(batch.changes) == 60


@asynchronous
async def test_what_trying_again_would_not_help_is_raised(
    control_plane: Plane, namespace: str
) -> None:
    connection = load_connection(control_plane.kubeconfig)
    nobody = msgspec.structs.replace(connection, headers=(("Impersonate-User", "nobody"),))
    async with KubernetesClient(nobody) as client, ObjectWatch(client, NODES) as forbidden:
        with pytest.raises(RequestForbidden, match='cannot watch resource "nodes"'):
            await anext(forbidden)
    async with KubernetesClient(connection) as client:
        things = ResourceKind(KubernetesObject, "things", group="nobody.invalid")
        async with ObjectWatch(client, things) as unknown:
            with pytest.raises(ObjectNotFound):
                await anext(unknown)
        async with ObjectWatch(client, PODS, namespace, fields="spec.colour=red") as wrong:
            with pytest.raises(RequestInvalid, match="not supported"):
                await anext(wrong)


@asynchronous
async def test_rights_that_are_lost_later_are_waited_for(
    control_plane: Plane, namespace: str
) -> None:
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        KubernetesClient(proxy.connection) as client,
        ObjectWatch(client, PODS, namespace, settings=SOON) as watch,
    ):
        await until(watch)
        proxy.inject(Fault(status=403), on=is_watch, times=3)
        proxy.end_streams()
        await client.create(PODS, pod("a", namespace))
        assert told(await until(watch, bool)) == [("added", "a")]
        assert watch.restarts["kubernetes-forbidden"] == 3


@asynchronous
async def test_an_object_that_cannot_be_read_is_left_out(
    control_plane: Plane, namespace: str
) -> None:
    def spoil(line: bytes) -> bytes:
        return re.sub(rb'"containers":\[', b'"containers":[7,', line) if b'"odd"' in line else line

    async with FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy:
        proxy.inject(Fault(edit=spoil), on=is_watch)
        async with KubernetesClient(proxy.connection) as client:
            for name in ("a", "odd", "z"):
                await client.create(PODS, pod(name, namespace))
            async with ObjectWatch(client, PODS, namespace, settings=SOON) as watch:
                await until(watch)
                assert names(watch) == ["a", "z"]
                assert list(watch.unreadable) == [(namespace, "odd")]
                await client.delete(PODS, "odd", namespace, grace_seconds=0)
                await client.delete(PODS, "a", namespace, grace_seconds=0)
                await until(watch, has(("deleted", "a")))
                assert watch.unreadable == {}


@asynchronous
async def test_selecting_pods_by_node_is_refused(control_plane: Plane) -> None:
    async with KubernetesClient(load_connection(control_plane.kubeconfig)) as client:
        for fields in ("spec.nodeName=", "status.phase!=Failed,spec.nodeName==n1"):
            with pytest.raises(ValueError, match="select in the client"):
                ObjectWatch(client, PODS, fields=fields)
        ObjectWatch(client, PODS, fields=UNFINISHED_PODS)


def test_a_server_that_was_restarted_does_not_know_old_versions(
    start_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = start_control_plane(kwok=False)
    connection = load_connection(plane.kubeconfig)
    namespace = "default"

    @asynchronous
    async def use() -> None:
        async with (
            FaultyProxy(connection) as proxy,
            KubernetesClient(proxy.connection) as client,
            KubernetesClient(connection) as direct,
        ):
            for name in ("gone", "kept"):
                await direct.create(PODS, pod(name, namespace))
            async with ObjectWatch(client, PODS, settings=SOON) as watch:
                await until(watch)
                gate = asyncio.Event()
                proxy.inject(Fault(gate=gate), on=is_watch)
                proxy.end_streams()
                await direct.delete(PODS, "gone", namespace, grace_seconds=0)
                await direct.create(PODS, pod("new", namespace))
                await asyncio.to_thread(plane.restart, KubeProgram.API_SERVER)
                gate.set()
                changes = told(await until(watch, has(("added", "new"), ("deleted", "gone"))))
                assert sorted(changes) == [("added", "new"), ("deleted", "gone")]
                assert watch.restarts["gone"] == 1, "the server's own refusal"
                assert names(watch) == ["kept", "new"]
                await direct.create(PODS, pod("after", namespace))
                assert told(await until(watch, bool)) == [("added", "after")]

    use()
