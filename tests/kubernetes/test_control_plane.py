"""Control planes that are thrown away, made of the real programs."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.kubernetes.control_plane import (
    ControlPlane,
    ControlPlaneError,
    KubeProgram,
    KubeTools,
    RequestRefused,
)
from argosy.kubernetes.control_plane.nodes import is_ready, parse_taint
from argosy.model.errors import ModelError

#: Seconds after which a test is taken to hang.
PATIENCE = 120.0
CreateNodes = Callable[..., list[str]]
Start = Callable[..., ControlPlane]
#: Starts a control plane, says where it is, and waits to be killed.
USER = """
import json, sys
from pathlib import Path
from argosy.kubernetes.control_plane import ControlPlane, KubeTools

plane = ControlPlane.start(Path(sys.argv[2]), tools=KubeTools(Path(sys.argv[1])), timeout=120)
print(json.dumps([plane._keeper._process.pid, *plane.running.values()]), flush=True)
sys.stdin.read()
"""


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "only", "image": "none.invalid/none"}
    container["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


def seen(
    plane: ControlPlane, path: str, condition: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """The first object under `path` that meets a condition."""
    for event in plane.watch(path):
        if event["type"] in ("ADDED", "MODIFIED") and condition(event["object"]):
            return event["object"]
    raise AssertionError(f"nothing under {path} is as expected after {PATIENCE} s")


@contextmanager
def running(plane: ControlPlane, program: KubeProgram) -> Iterator[None]:
    plane.run(program)
    try:
        yield
    finally:
        plane.kill(program)


def test_nodes_become_ready_under_kwok(control_plane: ControlPlane, nodes: CreateNodes) -> None:
    names = nodes(
        4,
        cpu="8",
        resources={"example.com/gpu": "2"},
        labels={"disk": "ssd"},
        taints=["dedicated=batch:NoSchedule"],
        zones=["east", "west"],
    )
    found = [control_plane.request("GET", f"/api/v1/nodes/{name}") for name in names]
    assert all(is_ready(node) for node in found)
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in found]
    assert zones == ["east", "west", "east", "west"]
    first = found[0]
    assert first["metadata"]["labels"]["disk"] == "ssd"
    assert first["metadata"]["labels"]["kubernetes.io/hostname"] == names[0]
    assert first["spec"]["taints"] == [parse_taint("dedicated=batch:NoSchedule")]
    offered = {"cpu": "8", "memory": "256Gi", "pods": "110", "example.com/gpu": "2"}
    assert first["status"]["allocatable"] == offered


def test_further_nodes_get_further_numbers(
    control_plane: ControlPlane, nodes: CreateNodes, namespace: str
) -> None:
    assert nodes(2) == [f"{namespace}-00000", f"{namespace}-00001"]
    assert nodes(1) == [f"{namespace}-00002"]


def test_nodes_and_pods_of_a_test_are_gone_after_it(control_plane: ControlPlane) -> None:
    for kind in ("nodes", "pods"):
        left = [
            each["metadata"] for each in control_plane.request("GET", f"/api/v1/{kind}")["items"]
        ]
        names = [(each.get("namespace") or each["name"]) for each in left]
        assert [name for name in names if name.startswith("test-")] == []


def test_kube_scheduler_binds_a_pod_and_kwok_runs_it(
    control_plane: ControlPlane, namespace: str, nodes: CreateNodes
) -> None:
    (name,) = nodes(1)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    control_plane.request("POST", pods, pod("task"))
    with running(control_plane, KubeProgram.SCHEDULER):
        found = seen(control_plane, pods, lambda each: each["status"]["phase"] == "Running")
    assert found["spec"]["nodeName"] == name


def test_the_controller_manager_keeps_disruption_budgets(
    control_plane: ControlPlane, namespace: str, nodes: CreateNodes
) -> None:
    (name,) = nodes(1)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    control_plane.request("POST", pods, pod("task", nodeName=name))
    selector = {"matchLabels": {"app": "task"}}
    budget = {"metadata": {"name": "all"}, "spec": {"minAvailable": 1, "selector": selector}}
    control_plane.request("POST", budgets, budget)
    with running(control_plane, KubeProgram.CONTROLLER_MANAGER):
        seen(control_plane, budgets, lambda each: each["status"].get("currentHealthy") == 1)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "task"}}
    with pytest.raises(RequestRefused, match="disruption budget") as caught:
        control_plane.request("POST", f"{pods}/task/eviction", eviction)
    assert (caught.value.status, caught.value.reason) == (429, "TooManyRequests")


def test_kubectl_works_with_the_kubeconfig(
    control_plane: ControlPlane, kube_tools: KubeTools, namespace: str
) -> None:
    done = subprocess.run(
        [kube_tools.kubectl, "get", "namespace", namespace, "-o", "name"],
        env={"KUBECONFIG": str(control_plane.kubeconfig), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == (f"namespace/{namespace}\n", "")


def test_service_accounts_have_tokens_that_the_server_accepts(
    control_plane: ControlPlane, namespace: str
) -> None:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    control_plane.request("POST", accounts, {"metadata": {"name": "reader"}})
    token = control_plane.request("POST", f"{accounts}/reader/token", {"spec": {}})
    review = {"spec": {"token": token["status"]["token"]}}
    told = control_plane.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert told["status"]["user"]["username"] == f"system:serviceaccount:{namespace}:reader"


def test_a_refused_request_says_why(control_plane: ControlPlane, namespace: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        control_plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/none")
    assert caught.value.status == 404
    assert str(caught.value) == (
        f'GET /api/v1/namespaces/{namespace}/pods/none: 404 NotFound: pods "none" not found'
    )


def test_a_refused_watch_is_no_event(control_plane: ControlPlane) -> None:
    with pytest.raises(RequestRefused) as caught:
        next(control_plane.watch("/api/v1/pods", "fieldSelector=spec.nonsense%3D1"))
    assert caught.value.status == 400


def test_connections_that_the_server_has_given_up_are_not_used_again(
    control_plane: ControlPlane,
) -> None:
    control_plane.request("GET", "/version")
    idle = list(control_plane._admin._idle)
    assert idle
    for connection in idle:
        connection.sock.shutdown(socket.SHUT_RDWR)
    assert control_plane.request("GET", "/version")["major"] == "1"
    assert not set(idle) & set(control_plane._admin._idle)


def test_objects_survive_kills_and_nothing_survives_the_end(start_control_plane: Start) -> None:
    plane = start_control_plane()
    first = plane.create_nodes(1)
    before = plane.running
    plane.kill(KubeProgram.API_SERVER)
    assert KubeProgram.API_SERVER not in plane.running
    plane.restart(KubeProgram.API_SERVER)
    assert len(plane.request("GET", "/api/v1/nodes")["items"]) == 1
    plane.restart(KubeProgram.ETCD)
    # kwok was not killed, and works on.
    names = [*first, *plane.create_nodes(1)]
    found = plane.request("GET", "/api/v1/nodes")["items"]
    assert [node["metadata"]["name"] for node in found] == names
    after = plane.running
    assert after[KubeProgram.KWOK] == before[KubeProgram.KWOK]
    assert {program for program in before if before[program] != after[program]} == {
        KubeProgram.ETCD,
        KubeProgram.API_SERVER,
    }
    plane.kill(KubeProgram.API_SERVER)
    with pytest.raises(ControlPlaneError, match="the API server does not answer"):
        plane.request("GET", "/api/v1/nodes")
    ends = [os.pidfd_open(pid) for pid in plane.running.values()]
    plane.close()
    assert all(has_ended(descriptor, 0) for descriptor in ends)
    assert not plane.files.directory.exists()


def test_nothing_survives_a_kill_of_its_user(kube_tools: KubeTools, tmp_path: Path) -> None:
    directory = tmp_path / "control-plane"
    with subprocess.Popen(
        [sys.executable, "-c", USER, str(kube_tools.directory), str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as user:
        assert user.stdout is not None
        pids = json.loads(user.stdout.readline())
        assert len(pids) == 4
        ends = [os.pidfd_open(pid) for pid in pids]
        assert (directory / "etcd").is_dir()
        user.kill()
        assert all(has_ended(descriptor, PATIENCE) for descriptor in ends)
    assert not directory.exists()


def test_a_start_that_fails_shows_the_log_and_keeps_it(
    start_control_plane: Start, tmp_path: Path
) -> None:
    with pytest.raises(ControlPlaneError) as caught:
        start_control_plane(apiserver_flags=["--no-such-flag"])
    shown = str(caught.value)
    assert shown.startswith("kube-apiserver ended before it was ready; its log, ")
    assert "unknown flag: --no-such-flag" in shown
    (directory,) = tmp_path.iterdir()
    assert [path.name for path in directory.iterdir()] == ["logs"]
    assert "unknown flag" in (directory / "logs" / "kube-apiserver.log").read_text()


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path, kube_tools: KubeTools) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(ControlPlaneError, match="the directory of a control plane is not empty"):
        ControlPlane.start(tmp_path, tools=kube_tools)
    assert (tmp_path / "precious").exists()


@pytest.mark.parametrize("text", ["NoSchedule", "key=value", "=value:NoSchedule", "key:Sometimes"])
def test_a_taint_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match="expected KEY=VALUE:EFFECT with one of NoSchedule"):
        parse_taint(text)


def has_ended(descriptor: int, within: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        return bool(poll.poll(within * 1000))
    finally:
        os.close(descriptor)
