"""A scheduler whose connection to Kubernetes is disturbed: pods are bound once, and none is lost."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from faulty_proxy import Fault, FaultyProxy
from kube_cases import asynchronous
from kube_in_loop import FollowedPods, following, scheduling
from kube_schedulers import metric_value, overcommitted, pod_document

from argosy.kubernetes.control_plane import ControlPlane
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection

GONE = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
    b'"message":"too old resource version: 1 (2)","reason":"Expired","code":410}'
)
THROTTLED = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","code":429}'


def is_pod_watch(request: web.BaseRequest) -> bool:
    return "watch" in request.rel_url.query and request.path.endswith("/pods")


def is_bind(request: web.BaseRequest) -> bool:
    return request.path.endswith("/binding")


async def create(pods: FollowedPods, namespace: str, count: int, first: int = 0) -> None:
    for at in range(first, first + count):
        document = pod_document(f"p{at}", namespace, cpu="100m", memory="1Mi")
        await pods.client.create(PODS, document, namespace)


async def is_overcommitted(plane: ControlPlane) -> list[str]:
    return await asyncio.to_thread(overcommitted, plane)


@asynchronous
async def test_watches_that_are_cut_again_and_again(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(2, cpu="4")
    direct = load_connection(control_plane.kubeconfig)
    async with (
        FaultyProxy(direct) as proxy,
        scheduling(proxy.connection, namespace) as server,
        following(direct, namespace) as pods,
    ):
        for round_ in range(5):
            proxy.end_streams()
            await create(pods, namespace, 10, first=10 * round_)
            await pods.until_bound(10 * (round_ + 1))
        text = server.metrics.text().decode()
        cut = metric_value(text, "argosy_kubernetes_watch_restarts_total", 'resource="pods"')
        assert cut >= 5
        assert pods.bound_twice == []
    assert await is_overcommitted(control_plane) == []


@asynchronous
async def test_versions_that_are_gone(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(2, cpu="4")
    direct = load_connection(control_plane.kubeconfig)
    async with (
        FaultyProxy(direct) as proxy,
        scheduling(proxy.connection, namespace) as server,
        following(direct, namespace) as pods,
    ):
        await create(pods, namespace, 10)
        await pods.until_bound(10)
        gate = asyncio.Event()
        proxy.inject(Fault(gate=gate, status=410, body=GONE), on=is_pod_watch)
        proxy.end_streams()
        # What the scheduler does not see: a pod that goes, and others that come.
        await pods.client.delete(PODS, "p0", namespace, grace_seconds=0)
        await create(pods, namespace, 10, first=10)
        gate.set()
        await pods.until_bound(19)
        text = server.metrics.text().decode()
        assert metric_value(text, "argosy_kubernetes_watch_relists_total", 'resource="pods"') == 1
        assert pods.bound_twice == []


@asynchronous
async def test_a_server_that_throttles(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(2, cpu="4")
    direct = load_connection(control_plane.kubeconfig)
    async with (
        FaultyProxy(direct) as proxy,
        scheduling(proxy.connection, namespace) as server,
        following(direct, namespace) as pods,
    ):
        throttled = Fault(status=429, headers={"Retry-After": "0"}, body=THROTTLED)
        proxy.inject(throttled, on=is_bind, times=30)
        await create(pods, namespace, 20)
        await pods.until_bound(20)
        text = server.metrics.text().decode()
        assert metric_value(text, "argosy_rest_client_requests_total", 'code="429"') == 30
        assert metric_value(text, "argosy_rest_client_request_retries_total", "bind") == 30
        assert pods.bound_twice == []


@asynchronous
async def test_answers_that_are_lost(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(2, cpu="1")
    direct = load_connection(control_plane.kubeconfig)
    async with (
        FaultyProxy(direct) as proxy,
        scheduling(proxy.connection, namespace),
        following(direct, namespace) as pods,
    ):
        for at in range(10):
            # Half of them have bound the pod, and half have not; and watches are cut as well.
            proxy.inject(Fault(breaks="after" if at % 2 else "before"), on=is_bind)
        await create(pods, namespace, 20)
        proxy.end_streams()
        await pods.until_bound(20)
        assert pods.bound_twice == []
    assert await is_overcommitted(control_plane) == []


@asynchronous
async def test_a_server_that_is_slow_to_bind_keeps_no_other_pod_waiting(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(2, cpu="4")
    direct = load_connection(control_plane.kubeconfig)
    async with (
        FaultyProxy(direct) as proxy,
        scheduling(proxy.connection, namespace),
        following(direct, namespace) as pods,
    ):
        gate = asyncio.Event()
        proxy.inject(Fault(gate=gate), on=is_bind, times=5)
        await create(pods, namespace, 20)
        await pods.until_bound(15)
        gate.set()
        await pods.until_bound(20)
        assert pods.bound_twice == []


@asynchronous
async def test_a_binding_that_admission_forbids_is_tried_again_later(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(2, cpu="4")
    direct = load_connection(control_plane.kubeconfig)
    forbidden = b'{"kind":"Status","status":"Failure","reason":"Forbidden","code":403}'
    async with (
        FaultyProxy(direct) as proxy,
        scheduling(proxy.connection, namespace) as server,
        following(direct, namespace) as pods,
    ):
        proxy.inject(Fault(status=403, body=forbidden), on=is_bind)
        await create(pods, namespace, 3)
        await pods.until_bound(3)
        text = server.metrics.text().decode()
        assert metric_value(text, "argosy_scheduler_bindings_refused_total") == 1


@asynchronous
async def test_a_scheduler_without_news_is_not_ready(
    control_plane: ControlPlane, namespace: str, nodes: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("argosy.service.kubernetes.driver.LONGEST_LAG", 0.0)
    direct = load_connection(control_plane.kubeconfig)
    async with (
        FaultyProxy(direct) as proxy,
        scheduling(proxy.connection, namespace) as server,
    ):
        assert server.backend.health() == ("ok", "")
        gate = asyncio.Event()
        proxy.inject(Fault(gate=gate), on=is_pod_watch)
        proxy.end_streams()
        await proxy.arrivals("GET", 1)
        while "pods" not in server.backend.health()[1]:
            await asyncio.sleep(0)
        assert server.backend.health()[0] == "lagging"
        gate.set()
        while server.backend.health()[0] != "ok":
            await asyncio.sleep(0)
