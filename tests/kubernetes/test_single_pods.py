"""What single pods see of Argosy, on a real control plane."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pod_scheduler import scheduling

from argosy.kubernetes.control_plane import ControlPlane

Document = dict[str, Any]
#: Seconds within which everything has to happen.
PATIENCE = 60.0


@pytest.fixture(scope="module")
def schedulers(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    log = tmp_path_factory.mktemp("single-pods") / "argosy.log"
    with scheduling(control_plane, log, "--engine", "kube", "--engine", "murmuration"):
        yield control_plane


def created(
    plane: ControlPlane, namespace: str, name: str, engine: str, node: str, **more: Any
) -> Document:
    """A pod that takes half of the node, and says that it runs for ten minutes."""
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "2"}}}
    return plane.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/pods",
        {
            "metadata": {"name": name, "annotations": {"argosy.dev/estimate": "10min"}},
            "spec": {
                "schedulerName": engine,
                "terminationGracePeriodSeconds": 0,
                "nodeSelector": {"kubernetes.io/hostname": node},
                "containers": [container],
                **more,
            },
        },
    )


def until(
    plane: ControlPlane, namespace: str, name: str, is_so: Callable[[Document], bool]
) -> Document:
    """The pod, as soon as that is so."""
    deadline = time.monotonic() + PATIENCE
    for event in plane.watch(f"/api/v1/namespaces/{namespace}/pods"):
        found = event["object"]
        if found["metadata"].get("name") == name and is_so(found):
            return dict(found)
        assert time.monotonic() < deadline, found
    raise AssertionError("the watch has ended")


def is_bound(pod: Document) -> bool:
    return bool(pod["spec"].get("nodeName"))


def notes(pod: Document) -> dict[str, str]:
    """The annotations that Argosy writes, without their prefix."""
    found = pod["metadata"].get("annotations", {})
    return {key.removeprefix("argosy.dev/"): value for key, value in found.items()}


def test_a_bound_pod_says_who_placed_it_and_why(
    schedulers: ControlPlane, namespace: str, nodes: Any
) -> None:
    [node] = nodes(1, cpu="4")
    created(schedulers, namespace, "p", "kube", node)
    told = notes(until(schedulers, namespace, "p", is_bound))
    assert (told["placed-by"], told["scheduler"], told["engine"]) == ("argosy", "kube", "kube")
    assert told["why"].startswith("it was the only one of ")
    assert told["waited"]


def test_a_pod_in_the_queue_of_a_node_says_where_it_stands_until_it_is_bound(
    schedulers: ControlPlane, namespace: str, nodes: Any
) -> None:
    [node] = nodes(1, cpu="4")
    for name in ("first", "second"):
        created(schedulers, namespace, name, "murmuration", node)
        until(schedulers, namespace, name, is_bound)
    created(schedulers, namespace, "third", "murmuration", node)
    waiting = until(schedulers, namespace, "third", lambda pod: "queue" in notes(pod))
    told = notes(waiting)
    assert (told["queue"], told["queue-position"]) == (node, "1")
    assert told["expected-wait"].endswith("min")
    [condition] = waiting["status"]["conditions"]
    assert condition["message"].startswith(f"waits in the queue of {node} as number 1, for ")
    schedulers.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/first")
    told = notes(until(schedulers, namespace, "third", is_bound))
    assert (told["queue"], told["queue-position"]) == (node, "0")
    assert told["why"]


@pytest.mark.parametrize("engine", ["kube", "murmuration"])
def test_a_pod_that_found_no_room_is_bound_soon_after_there_is_some(
    engine: str, schedulers: ControlPlane, namespace: str, nodes: Any
) -> None:
    [node] = nodes(1, cpu="4")
    large = [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "4"}}}]
    created(schedulers, namespace, "first", engine, node)
    until(schedulers, namespace, "first", is_bound)
    created(schedulers, namespace, "second", engine, node, containers=large)
    until(schedulers, namespace, "second", lambda pod: bool(pod["status"].get("conditions")))
    began = time.monotonic()
    schedulers.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/first")
    until(schedulers, namespace, "second", is_bound)
    # The engine itself would look again after half a minute.
    assert time.monotonic() - began < 15


def test_room_that_another_scheduler_has_promised_is_not_given_away(
    schedulers: ControlPlane, namespace: str, nodes: Any
) -> None:
    [node] = nodes(1, cpu="4")
    path = f"/api/v1/namespaces/{namespace}/pods"
    for name in ("theirs", "more"):
        created(schedulers, namespace, name, "nobody", node)
        schedulers.request(
            "PATCH",
            f"{path}/{name}/status",
            {"status": {"nominatedNodeName": node}},
            content_type="application/merge-patch+json",
        )
    created(schedulers, namespace, "ours", "kube", node)
    until(schedulers, namespace, "ours", lambda pod: bool(pod["status"].get("conditions")))
    schedulers.request("DELETE", f"{path}/more")
    until(schedulers, namespace, "ours", is_bound)
    created(schedulers, namespace, "last", "kube", node)
    waiting = until(
        schedulers, namespace, "last", lambda pod: bool(pod["status"].get("conditions"))
    )
    assert not is_bound(waiting)
