"""One scheduler over two Kubernetes clusters: each has an agent, and what is committed becomes a pod."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kube_schedulers import SchedulerProcess

from argosy.api.agent_values import CommitOrder, SampleRequest
from argosy.client import Client
from argosy.kubernetes.control_plane import ControlPlane, KubeTools
from argosy.model.errors import ArgosyError

PATIENCE = 90.0
POD_PATH = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def planes(
    kube_tools: KubeTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[ControlPlane]]:
    with ExitStack() as stack:
        made = []
        for name in ("east", "west"):
            plane = stack.enter_context(
                ControlPlane.start(tmp_path_factory.mktemp(name), tools=kube_tools)
            )
            plane.create_nodes(1, name=name, cpu="4")
            # Larger, so that it would be preferred; but no pod may go there.
            plane.create_nodes(1, name=f"{name}-kept", cpu="64", taints=["kept=yes:NoSchedule"])
            made.append(plane)
        yield made


@contextmanager
def agent(plane: ControlPlane, directory: Path) -> Iterator[Client]:
    options = ("--agent", "--dir", str(directory), "--listen", "none")
    with (
        SchedulerProcess(plane.kubeconfig, *options).wait_until_up(),
        Client(directory=str(directory)) as client,
    ):
        yield client


@contextmanager
def federated(directory: Path, *agents: Path) -> Iterator[Client]:
    """A Vela scheduler over these agents."""
    named = [
        part for each in agents for part in ("--agent", f"{each.name}=unix:{each}/argosy.sock")
    ]
    settings = ("--set", "clusters=1", "--set", "machines=1", "--set", 'backoff="50ms"')
    options = ("-o", "json", "--dir", str(directory), "--listen", "none")
    process = subprocess.Popen(
        [sys.executable, "-m", "argosy.cli", "scheduler", *named, *settings, *options],
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        with Client(directory=str(directory)) as client:
            yield client
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def job(name: str, **keys: Any) -> dict[str, Any]:
    return {
        "id": name,
        "command": "serve --pages",
        "environment": {"MODE": "fast"},
        "request": {"cpu": "2", "memory": "1MiB"},
        "demands": {"image": "none.invalid/web"},
        **keys,
    }


def bound(plane: ControlPlane, count: int) -> list[dict[str, Any]]:
    """Waits until so many pods have a node."""
    found: dict[str, dict[str, Any]] = {}
    for event in plane.watch(POD_PATH):
        pod = event["object"]
        name = pod["metadata"].get("name", "")
        if event["type"] not in ("ADDED", "MODIFIED") or not pod["spec"].get("nodeName"):
            found.pop(name, None)
        else:
            found[name] = pod
        if len(found) == count:
            return list(found.values())
    raise AssertionError


def emptied(plane: ControlPlane) -> None:
    left = {pod["metadata"]["name"] for pod in plane.request("GET", POD_PATH)["items"]}
    for event in plane.watch(POD_PATH) if left else ():
        if event["type"] == "DELETED":
            left.discard(event["object"]["metadata"]["name"])
        if not left:
            return


def succeed(plane: ControlPlane, pod: dict[str, Any]) -> None:
    status = {"status": {"phase": "Succeeded"}}
    path = f"{POD_PATH}/{pod['metadata']['name']}/status"
    plane.request("PATCH", path, status, content_type="application/merge-patch+json")


def test_a_scheduler_places_jobs_in_two_clusters_and_hears_of_their_ends(
    planes: list[ControlPlane], tmp_path: Path
) -> None:
    east, west = planes
    with (
        agent(east, tmp_path / "east"),
        agent(west, tmp_path / "west"),
        federated(tmp_path / "vela", tmp_path / "east", tmp_path / "west") as client,
    ):
        client.submit(job("web", count=4))
        for found in client.watch("web", timeout=PATIENCE):
            if found.tasks.running == 4:
                break
        # Two fit into each cluster, on the node that admits them.
        here, there = bound(east, 2), bound(west, 2)
        assert {pod["spec"]["nodeName"] for pod in here} == {"east-00000"}
        assert {pod["spec"]["nodeName"] for pod in there} == {"west-00000"}
        [container] = here[0]["spec"]["containers"]
        assert container["image"] == "none.invalid/web"
        assert container["command"] == ["serve", "--pages"]
        assert container["env"] == [{"name": "MODE", "value": "fast"}]
        assert container["resources"]["requests"] == {"cpu": "2", "memory": "1048576"}

        succeed(east, here[0])
        for found in client.watch("web", timeout=PATIENCE):
            if found.tasks.running == 3:
                break
        client.cancel("web")
        emptied(west)
        assert client.wait("web", timeout=PATIENCE).state == "cancelled"


def test_a_job_without_an_image_is_refused_and_samples_leave_out_what_admits_no_pod(
    planes: list[ControlPlane], tmp_path: Path
) -> None:
    with agent(planes[0], tmp_path / "east") as client:
        asked = SampleRequest(request={"cpu": 1000}, share=1.0)
        assert client.sample(asked).machines == ["east-00000"]
        order = CommitOrder(job=job("bare", demands={}), machines=("east-00000",))
        with pytest.raises(ArgosyError, match="no image"):
            client.commit(order, key="bare")


def test_pods_of_commits_that_are_not_known_any_more_are_evicted(
    planes: list[ControlPlane], tmp_path: Path
) -> None:
    east = planes[0]
    east.request("DELETE", POD_PATH, {"gracePeriodSeconds": 0})
    with agent(east, tmp_path / "first") as client:
        client.commit(CommitOrder(job=job("lost"), machines=("east-00000",)), key="lost")
        bound(east, 1)
    with agent(east, tmp_path / "second"):
        emptied(east)
