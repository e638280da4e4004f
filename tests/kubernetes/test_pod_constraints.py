"""Placement constraints in annotations of pods, on a real control plane."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from pod_scheduler import scheduling

from argosy.kubernetes.control_plane import ControlPlane

Document = dict[str, Any]


@pytest.fixture(scope="module")
def schedulers(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    log = tmp_path_factory.mktemp("pod-constraints") / "argosy.log"
    with scheduling(control_plane, log, "--engine", "medea", "--engine", "omega"):
        yield control_plane


def create(
    plane: ControlPlane, namespace: str, name: str, engine: str, constraint: str, nodes: list[str]
) -> None:
    terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    plane.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/pods",
        {
            "metadata": {
                "name": name,
                "labels": {"app": "web"},
                "annotations": {"argosy.dev/constraints": constraint},
            },
            "spec": {
                "schedulerName": engine,
                "terminationGracePeriodSeconds": 0,
                "affinity": {
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
                },
                "containers": [container],
            },
        },
    )


def pods_once(plane: ControlPlane, namespace: str, count: int, key: str) -> list[Document]:
    """The pods of the namespace, once so many of them have a node ("node") or a message ("message")."""
    found: dict[str, Document] = {}
    for event in plane.watch(f"/api/v1/namespaces/{namespace}/pods"):
        pod = event["object"]
        told = [each.get("message") for each in pod["status"].get("conditions", ())]
        if pod["spec"].get("nodeName") if key == "node" else any(told):
            found[pod["metadata"]["name"]] = pod
        if len(found) == count:
            return list(found.values())
    raise AssertionError("the watch has ended")


def test_at_most_two_of_an_application_share_a_node(
    schedulers: ControlPlane, namespace: str, nodes: Any
) -> None:
    names = nodes(3, cpu="4")
    for at in range(6):
        create(
            schedulers,
            namespace,
            f"p{at}",
            "medea",
            "app:web -> {app:web, 0, 1} in machine hard",
            names,
        )
    bound = pods_once(schedulers, namespace, 6, "node")
    assert Counter(pod["spec"]["nodeName"] for pod in bound) == dict.fromkeys(names, 2)


def test_a_scheduler_that_ignores_constraints_refuses_the_pod_and_says_so(
    schedulers: ControlPlane, namespace: str, nodes: Any
) -> None:
    names = nodes(1, cpu="4")
    constraint = "app:web -> {app:web, 0, 0} in machine hard"
    create(schedulers, namespace, "p", "omega", constraint, names)
    [pod] = pods_once(schedulers, namespace, 1, "message")
    assert "nodeName" not in pod["spec"]
    [told] = [each["message"] for each in pod["status"]["conditions"] if each.get("message")]
    assert "omega" in told


def test_a_mistake_is_told_with_its_line(
    schedulers: ControlPlane, namespace: str, nodes: Any
) -> None:
    names = nodes(1, cpu="4")
    create(schedulers, namespace, "p", "medea", "# about us\napp:web -> {app:web, 0", names)
    [pod] = pods_once(schedulers, namespace, 1, "message")
    [told] = [each["message"] for each in pod["status"]["conditions"] if each.get("message")]
    assert "line 2" in told
