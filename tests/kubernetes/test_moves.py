"""Firmament moves pods of a real cluster: they are evicted, and those that a controller makes in their
place go where they were to go."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kube_cases import asynchronous
from kube_in_loop import FollowedPods, following, scheduling
from kube_schedulers import pod_document

from argosy.kubernetes.control_plane import ControlPlane, KubeTools
from argosy.kubernetes.kinds import PODS
from argosy.kubernetes.kubeconfig import load_connection
from argosy.service.server import Server

#: Moves a task from a machine with n tasks to one with m if 10 (n - 1 - m) is more than 20.
FLEET = {
    "name": "firmament",
    "engine": "firmament",
    "settings": {
        "policy": "load-spreading",
        "migration": 20,
        "reschedule": True,
        "moves_per_minute": 4,
    },
}
#: A node that one pod asks for.
HERE = {"only": "here"}


@pytest.fixture
def plane(kube_tools: KubeTools, tmp_path: Path) -> Iterator[ControlPlane]:
    """A cluster for each test: what one leaves behind, such as a pod about to move, is no other's."""
    with ControlPlane.start(
        tmp_path,
        tools=kube_tools,
        controller_manager=True,
        controllers=["replicaset", "disruption"],
    ) as plane:
        yield plane


def replica_set(name: str, count: int) -> dict[str, Any]:
    labels = {"app": name}
    pod = pod_document("unused", "argosy", cpu="100m", memory="1Mi")
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }


async def make(plane: ControlPlane, path: str, document: dict[str, Any]) -> None:
    await asyncio.to_thread(plane.request, "POST", path, document)


def successors(server: Server) -> int:
    """How many pods were put where room was kept for them."""
    lines = (line for section in server.metrics.sections for line in section())
    name = "argosy_scheduler_pods_moved_total "
    return next(int(line.removeprefix(name)) for line in lines if line.startswith(name))


def per_node(pods: FollowedPods) -> Counter[str]:
    return Counter(pod.spec.node_name for pod in pods.bound)


@asynchronous
async def test_pods_move_within_the_budget_and_bare_pods_stay(plane: ControlPlane) -> None:
    plane.create_nodes(1, name="first")
    direct = load_connection(plane.kubeconfig)
    async with (
        following(direct, "default") as pods,
        scheduling(direct, "argosy", [FLEET]) as server,
    ):
        bare = [f"bare-{at}" for at in range(3)]
        for name in bare:
            document = pod_document(name, "argosy", cpu="100m", memory="1Mi")
            await pods.client.create(PODS, document, "default")
        await make(plane, "/apis/apps/v1/namespaces/default/replicasets", replica_set("web", 9))
        await pods.until_bound(12)
        before = {pod.uid: pod.name for pod in pods.bound}
        [second] = await asyncio.to_thread(lambda: plane.create_nodes(1, name="second"))
        # The engine does not know that bare pods stay: it may choose all three, and then one other.
        await pods.until(lambda now: len(now.bound) == 12 and per_node(now)[second] >= 1)
        gone = {name for uid, name in before.items() if uid not in {p.uid for p in pods.bound}}
        moved = [pod for pod in pods.bound if pod.spec.node_name == second]
        assert 1 <= len(moved) <= 4
        assert not gone & set(bare)
        assert all(pod.uid not in before for pod in moved)
        assert len(gone) <= 4
        assert len(moved) <= successors(server) <= 4, "they went where room was kept for them"
        assert pods.bound_twice == []


@asynchronous
async def test_a_disruption_budget_keeps_pods_where_they_are(plane: ControlPlane) -> None:
    plane.create_nodes(1, name="first")
    direct = load_connection(plane.kubeconfig)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kept"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}},
    }
    async with (
        following(direct, "default") as pods,
        scheduling(direct, "argosy", [FLEET]) as server,
    ):
        await make(plane, "/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
        await make(plane, "/apis/apps/v1/namespaces/default/replicasets", replica_set("kept", 9))
        await pods.until_bound(9)
        before = {pod.uid for pod in pods.bound}
        await asyncio.to_thread(lambda: plane.create_nodes(1, name="second", cpu="1", labels=HERE))
        # Nothing is kept on the new node: a pod that needs all of it gets it.
        large = pod_document("large", "argosy", cpu="1", memory="1Mi", nodeSelector=HERE)
        await pods.client.create(PODS, large, "default")
        await pods.until_bound(10)
        assert {pod.uid for pod in pods.bound} > before
        assert server.backend.health() == ("ok", "")
