"""Fleets on a Kubernetes cluster: several schedulers on one cell, other ones while pods run, and engines
that fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from failing_engines import FailsWhenTold
from kube_cases import asynchronous
from kube_in_loop import FollowedPods, following, scheduling
from kube_schedulers import overcommitted, pod_document

from argosy.kubernetes.control_plane import ControlPlane
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.service.server import Server

FIVE = ("omega", "murmuration", "firmament", "kube", "medea")


def fleet(*engines: str) -> list[dict[str, Any]]:
    entries = [{"name": engine.rpartition(":")[2].lower(), "engine": engine} for engine in engines]
    for entry in entries:
        if entry["engine"] == "kube":
            # By default it looks again after half a minute.
            entry["settings"] = {"retry": "200ms"}
    return entries


async def create(
    pods: FollowedPods,
    namespace: str,
    names: list[str],
    scheduler: str = "",
    cpu: str = "100m",
    **spec: Any,
) -> None:
    for name in names:
        document = pod_document(name, scheduler or namespace, cpu=cpu, memory="1Mi", **spec)
        await pods.client.create(PODS, document, namespace)


async def change_fleet(server: Server, *engines: str) -> None:
    entries = server.backend.submissions.fleet(server.backend.world, fleet(*engines))
    await server.cluster.change_fleet(entries)


def there_is(namespace: str) -> dict[str, str]:
    """A selector of the test's own nodes."""
    return {"test": namespace}


@asynchronous
async def test_five_schedulers_that_compete_for_little_room_never_overcommit(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(3, cpu="1", labels=there_is(namespace))
    direct = load_connection(control_plane.kubeconfig)
    async with (
        following(direct, namespace) as pods,
        scheduling(direct, namespace, fleet(*FIVE)) as server,
    ):
        selector = there_is(namespace)
        names = [f"{engine}-{at}" for at in range(12) for engine in FIVE]
        async with asyncio.TaskGroup() as group:
            for engine in FIVE:
                mine = [name for name in names if name.startswith(f"{engine}-")]
                group.create_task(create(pods, namespace, mine, engine, nodeSelector=selector))
        # Three nodes of ten pods each, for sixty.
        await pods.until_bound(30)
        left = len(names)
        for _ in range(5):
            gone = pods.bound[::3]
            left -= len(gone)
            for pod in gone:
                await pods.client.delete(PODS, pod.name, namespace, grace_seconds=0)
            await pods.until(
                lambda now, gone=gone, left=left: (  # type: ignore[misc]
                    not {pod.uid for pod in gone} & {pod.uid for pod in now.bound}
                    and len(now.bound) == min(30, left)
                )
            )
            assert await asyncio.to_thread(overcommitted, control_plane) == []
        assert pods.bound_twice == []
        placed = {pod.spec.scheduler_name for pod in pods.bound}
        assert len(placed) >= 3, "all of them take part"
        assert server.backend.health() == ("ok", "")


@asynchronous
async def test_the_fleet_changes_while_pods_come(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(4, cpu="8")
    direct = load_connection(control_plane.kubeconfig)
    async with (
        following(direct, namespace) as pods,
        scheduling(direct, namespace, fleet("omega")) as server,
    ):
        async with asyncio.TaskGroup() as group:
            names = [f"p{at}" for at in range(100)]
            creating = group.create_task(create(pods, namespace, names))
            for engine in ("murmuration", "firmament", "kube", "omega"):
                await change_fleet(server, engine)
            await creating
        await change_fleet(server, "medea")
        await pods.until_bound(100)
        assert pods.bound_twice == []
    assert await asyncio.to_thread(overcommitted, control_plane) == []


@asynchronous
async def test_pods_that_a_former_scheduler_bound_stay_and_its_waiting_ones_wait_for_its_return(
    control_plane: ControlPlane, namespace: str, nodes: Any
) -> None:
    nodes(1, cpu="1", labels=there_is(namespace))
    direct = load_connection(control_plane.kubeconfig)
    selector = there_is(namespace)
    async with (
        following(direct, namespace) as pods,
        scheduling(direct, namespace, fleet("omega")) as server,
    ):
        await create(pods, namespace, ["a"], "omega", "600m", nodeSelector=selector)
        await pods.until_bound(1)
        await create(pods, namespace, ["b"], "omega", "600m", nodeSelector=selector)
        await change_fleet(server, "kube")
        await create(pods, namespace, ["c"], "kube", "300m", nodeSelector=selector)
        await pods.until_bound(2)
        await pods.client.delete(PODS, "a", namespace, grace_seconds=0)
        await create(pods, namespace, ["d"], "kube", "100m", nodeSelector=selector)
        await pods.until(lambda now: {pod.name for pod in now.bound} == {"c", "d"})
        await change_fleet(server, "kube", "omega")
        await pods.until(lambda now: {pod.name for pod in now.bound} == {"b", "c", "d"})


@pytest.fixture
def trouble() -> Any:
    yield FailsWhenTold
    FailsWhenTold.fails = False


@asynchronous
async def test_what_happened_while_an_engine_failed_is_not_lost(
    control_plane: ControlPlane, namespace: str, nodes: Any, trouble: Any
) -> None:
    nodes(2, cpu="1", labels=there_is(namespace))
    direct = load_connection(control_plane.kubeconfig)
    selector = there_is(namespace)
    said: list[str] = []
    async with (
        following(direct, namespace) as pods,
        scheduling(direct, namespace, fleet("failing_engines:FailsWhenTold"), said=said) as server,
    ):
        await create(pods, namespace, [f"a{at}" for at in range(15)], nodeSelector=selector)
        await pods.until_bound(15)
        trouble.fails = True
        await create(pods, namespace, ["b0"], nodeSelector=selector)
        while not server.cluster.is_failing:
            await asyncio.sleep(0)
        # Nobody listens to these changes.
        await create(pods, namespace, ["b1", "b2"], nodeSelector=selector)
        for name in ("a0", "a1", "b2"):
            await pods.client.delete(PODS, name, namespace, grace_seconds=0)
        await create(pods, namespace, [f"c{at}" for at in range(20)], nodeSelector=selector)
        assert server.backend.health()[0] == "failing"
        trouble.fails = False
        # Room for twenty.
        await pods.until_bound(20)
        assert pods.bound_twice == []
        assert await asyncio.to_thread(overcommitted, control_plane) == []
        for name in [pod.name for pod in pods.bound]:
            await pods.client.delete(PODS, name, namespace, grace_seconds=0)
        await pods.until(lambda now: not now.waiting and len(now.bound) == 15)
        assert server.backend.health() == ("ok", "")
        assert any("the fleet started again" in line for line in said)
