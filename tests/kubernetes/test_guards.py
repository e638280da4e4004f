"""Guards of what Argosy schedules, evaluated by a real API server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from command_line import process as argosy
from kube_schedulers import (
    PATIENCE,
    PodWitness,
    SchedulerProcess,
    create_pod,
    overcommitted,
    pod_document,
)

from argosy.kubernetes.control_plane import ControlPlane
from argosy.kubernetes.control_plane.admin import RequestRefused

Bind = Callable[..., str]


@pytest.fixture
def guarded(control_plane: ControlPlane, namespace: str) -> Iterator[Callable[..., None]]:
    """Applies the guard of a scheduler called as the namespace is."""
    common = ("--kubeconfig", str(control_plane.kubeconfig), "--name", namespace)

    def apply(*options: str) -> None:
        done = argosy(
            "kubernetes", "guard", *common, "--lease-namespace", namespace, "--apply", *options
        )
        assert done.returncode == 0, done.stderr

    yield apply
    done = argosy("kubernetes", "guard", *common, "--lease-namespace", namespace, "--remove")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def bind(control_plane: ControlPlane, namespace: str) -> Bind:
    """Creates and binds a pod with these annotations; returns what the server said against it."""

    def attempt(name: str, node: str, **annotations: str) -> str:
        create_pod(control_plane, namespace, pod_document(name, "nobody"))
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {
                "name": name,
                "annotations": {
                    f"argosy.dev/{k.replace('_', '-')}": v for k, v in annotations.items()
                },
            },
            "target": {"kind": "Node", "name": node},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        try:
            control_plane.request("POST", path, body)
        except RequestRefused as refused:
            return str(refused)
        return ""

    return attempt


def until_refused(bind: Bind, node: str, **annotations: str) -> str:
    """Policies take effect a moment after they are made."""
    for at in range(1_000):
        if said := bind(f"probe-{at}", node, **annotations):
            return said
    raise AssertionError("the policy has no effect")


def test_a_leader_that_was_followed_by_another_binds_nothing(
    control_plane: ControlPlane, namespace: str, guarded: Callable[..., None], bind: Bind
) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    lease = {"metadata": {"name": namespace}, "spec": {"leaseTransitions": 7}}
    control_plane.request("POST", leases, lease)
    guarded()
    said = until_refused(bind, "any", placed_by=namespace, fencing="6")
    assert f"the leader with fencing number 6 of {namespace} was followed by 7" in said
    assert bind("a", "any", placed_by=namespace, fencing="7") == ""
    assert bind("b", "any", placed_by=namespace, fencing="8") == "", "the lease may be read late"
    assert bind("c", "any", placed_by="another", fencing="1") == ""
    assert bind("d", "any") == ""


def test_nobody_else_binds_to_guarded_nodes(
    control_plane: ControlPlane,
    namespace: str,
    nodes: Any,
    guarded: Callable[..., None],
    bind: Bind,
) -> None:
    mine, other = nodes(1, labels={"pool": namespace}), nodes(1)
    guarded("--node-selector", f"pool={namespace}")
    said = until_refused(bind, mine[0])
    assert f"{mine[0]} is a node of the scheduler {namespace}" in said
    assert bind("a", mine[0], placed_by=namespace) == ""
    assert bind("b", other[0]) == ""
    document = pod_document("direct", "nobody", nodeName=mine[0])
    with pytest.raises(RequestRefused, match="is a node of the scheduler"):
        control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", document)


def test_a_guarded_scheduler_schedules(
    control_plane: ControlPlane, namespace: str, nodes: Any, guarded: Callable[..., None]
) -> None:
    mine = nodes(2, cpu="1", labels={"pool": namespace})
    guarded("--node-selector", f"pool={namespace}")
    options = ("--name", namespace, "--leader-elect", "--lease-namespace", namespace)
    with (
        PodWitness(control_plane, namespace) as witness,
        SchedulerProcess(control_plane.kubeconfig, *options) as process,
    ):
        process.wait_until_up()
        for at in range(20):
            document = pod_document(
                f"p{at}", namespace, cpu="100m", nodeSelector={"pool": namespace}
            )
            create_pod(control_plane, namespace, document)
        witness.until(lambda w: len(w.bound) == 20, f"all are bound within {PATIENCE:.0f} s")
        assert {pod["spec"]["nodeName"] for pod in witness.bound} == {*mine}
        assert overcommitted(control_plane) == []


def test_the_guard_is_printed_as_a_manifest() -> None:
    done = argosy("kubernetes", "guard", "--node", "n1", "--node", "n2")
    assert done.returncode == 0, done.stderr
    documents = list(yaml.safe_load_all(done.stdout))
    assert [(each["kind"], each["metadata"]["name"]) for each in documents] == [
        ("ValidatingAdmissionPolicy", "argosy-fencing"),
        ("ValidatingAdmissionPolicyBinding", "argosy-fencing"),
        ("ConfigMap", "argosy-nodes"),
        ("ValidatingAdmissionPolicy", "argosy-nodes-bindings"),
        ("ValidatingAdmissionPolicyBinding", "argosy-nodes-bindings"),
        ("ValidatingAdmissionPolicy", "argosy-nodes-pods"),
        ("ValidatingAdmissionPolicyBinding", "argosy-nodes-pods"),
    ]
    assert json.dumps(documents[2]["data"]) == '{"n1": "", "n2": ""}'
