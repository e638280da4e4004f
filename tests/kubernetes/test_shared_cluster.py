"""Argosy and kube-scheduler on the same nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from command_line import process as argosy
from kube_cases import asynchronous
from kube_in_loop import following, scheduling
from kube_schedulers import overcommitted, pod_document

from argosy.kubernetes.control_plane import ControlPlane, KubeTools
from argosy.kubernetes.failures import RequestForbidden
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection

THEIRS = "default-scheduler"


@pytest.fixture(scope="module")
def shared_plane(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("shared-control-plane")
    with ControlPlane.start(directory, tools=kube_tools, scheduler=True, timeout=120.0) as plane:
        yield plane


async def create(pods: Any, namespace: str, prefix: str, count: int, **spec: Any) -> None:
    for at in range(count):
        document = pod_document(f"{prefix}{at}", memory="1Mi", **spec)
        await pods.client.create(PODS, document, namespace)


def new_namespace(plane: ControlPlane, name: str) -> str:
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    return name


@asynchronous
async def test_pods_of_other_schedulers_are_seen_and_counted(shared_plane: ControlPlane) -> None:
    namespace = new_namespace(shared_plane, "seen")
    shared_plane.create_nodes(2, name="seen", cpu="1", labels={"test": "seen"})
    selector = {"test": "seen"}
    direct = load_connection(shared_plane.kubeconfig)
    async with following(direct, namespace) as pods, scheduling(direct, "argosy"):
        await create(
            pods, namespace, "theirs", 4, scheduler=THEIRS, cpu="400m", nodeSelector=selector
        )
        await pods.until_bound(4)
        await create(pods, namespace, "ours", 10, cpu="100m", nodeSelector=selector)
        # Four times 400m leave 200m on each node.
        await pods.until_bound(8)
        assert await asyncio.to_thread(overcommitted, shared_plane) == []
        await pods.client.delete(PODS, "theirs0", namespace, grace_seconds=0)
        await pods.until(lambda now: len(now.bound) == 11 and len(now.waiting) == 2)
        assert await asyncio.to_thread(overcommitted, shared_plane) == []
        await pods.client.delete(PODS, "theirs1", namespace, grace_seconds=0)
        await pods.until(lambda now: not now.waiting)
        assert await asyncio.to_thread(overcommitted, shared_plane) == []


@asynchronous
async def test_a_node_that_others_overcommitted_gets_nothing_until_there_is_room(
    shared_plane: ControlPlane,
) -> None:
    namespace = new_namespace(shared_plane, "over")
    (node,) = shared_plane.create_nodes(1, name="over", cpu="1", labels={"test": "over"})
    selector = {"test": "over"}
    direct = load_connection(shared_plane.kubeconfig)
    async with following(direct, namespace) as pods, scheduling(direct, "argosy"):
        await create(pods, namespace, "theirs", 4, scheduler="nobody", cpu="400m")
        for at in range(4):
            await pods.client.bind(namespace, f"theirs{at}", node)
        await pods.until_bound(4)
        await create(pods, namespace, "ours", 3, cpu="200m", nodeSelector=selector)
        # 1,600m of 1,000m, then 1,200m, then 800m.
        await pods.client.delete(PODS, "theirs0", namespace, grace_seconds=0)
        await pods.client.delete(PODS, "theirs1", namespace, grace_seconds=0)
        await pods.until(lambda now: sum(pod.name.startswith("ours") for pod in now.bound) == 1)
        assert await asyncio.to_thread(overcommitted, shared_plane) == []
        await pods.client.delete(PODS, "theirs2", namespace, grace_seconds=0)
        await pods.until(lambda now: not now.waiting)
        assert await asyncio.to_thread(overcommitted, shared_plane) == []


@asynchronous
async def test_on_guarded_nodes_kube_scheduler_overcommits_nothing(
    shared_plane: ControlPlane,
) -> None:
    namespace = new_namespace(shared_plane, "guarded")
    shared_plane.create_nodes(3, name="guarded", cpu="1", labels={"test": "guarded"})
    selector = {"test": "guarded"}
    direct = load_connection(shared_plane.kubeconfig)
    common = ("kubernetes", "guard", "--kubeconfig", str(shared_plane.kubeconfig))
    applied = await asyncio.to_thread(argosy, *common, "--node-selector", "test=guarded", "--apply")
    assert applied.returncode == 0, applied.stderr
    async with following(direct, namespace) as pods, scheduling(direct, "argosy"):
        # Policies take effect a moment later: until then, nothing of theirs is tried.
        await until_guarded(pods, namespace)
        async with asyncio.TaskGroup() as group:
            for prefix, scheduler in (("theirs", THEIRS), ("ours", "argosy")):
                group.create_task(
                    create(
                        pods,
                        namespace,
                        prefix,
                        40,
                        scheduler=scheduler,
                        cpu="100m",
                        nodeSelector=selector,
                    )
                )
        await pods.until_bound(30)
        assert {pod.spec.scheduler_name for pod in pods.bound} == {"argosy"}
        assert await asyncio.to_thread(overcommitted, shared_plane) == []
    removed = await asyncio.to_thread(argosy, *common, "--remove")
    assert removed.returncode == 0, removed.stderr


async def until_guarded(pods: Any, namespace: str) -> None:
    for at in range(1_000):
        await create(pods, namespace, f"probe{at}-", 1, scheduler="nobody", cpu="1m")
        try:
            await pods.client.bind(namespace, f"probe{at}-0", "guarded-00000")
        except RequestForbidden:
            await pods.client.delete(PODS, f"probe{at}-0", namespace, grace_seconds=0)
            await pods.until(lambda now: not now.waiting and not now.bound)
            return
        await pods.client.delete(PODS, f"probe{at}-0", namespace, grace_seconds=0)
    raise AssertionError("the policy has no effect")
