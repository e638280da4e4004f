"""Pods that wait for a node that an engine has chosen before there is room: which of them is next."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest
from kube_cases import asynchronous
from kube_in_loop import following, scheduling
from kube_schedulers import pod_document

from argosy.kubernetes.control_plane import ControlPlane
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.model.machine_model import MachineModel


@pytest.mark.parametrize(
    ("queue", "expected"), [("fcfs", "long"), ("shortest-first", "short")], ids=["fcfs", "shortest"]
)
@asynchronous
async def test_a_node_takes_the_first_or_the_shortest_of_the_pods_that_wait_for_it(
    control_plane: ControlPlane,
    namespace: str,
    nodes: Any,
    queue: Literal["fcfs", "shortest-first"],
    expected: str,
) -> None:
    nodes(1, cpu="1", labels={"test": namespace})
    direct = load_connection(control_plane.kubeconfig)
    fleet = [{"name": "murmuration", "engine": "murmuration"}]
    async with (
        following(direct, namespace) as pods,
        scheduling(direct, namespace, fleet, machines=MachineModel(queue=queue)) as server,
    ):

        async def create(name: str, estimate: str) -> None:
            wishes = {"nodeSelector": {"test": namespace}, "restartPolicy": "Never"}
            pod = pod_document(name, namespace, cpu="1", memory="1Mi", **wishes)
            pod["metadata"]["annotations"] = {"argosy.dev/estimate": estimate}
            await pods.client.create(PODS, pod, namespace)

        await create("first", "1s")
        await pods.until_bound(1)
        await create("long", "1h")
        await create("short", "1s")
        # Both are in the node's queue before there is room.
        while await server.cluster.do(lambda world: len(world.open_rows())) < 3:
            await asyncio.sleep(0)
        await pods.client.delete(PODS, "first", namespace, grace_seconds=0)
        await pods.until(lambda now: [pod.name for pod in now.bound] == [expected])
