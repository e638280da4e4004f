"""How placements are recorded and judged, whoever made them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.kubernetes import kinds
from argosy.kubernetes.objects import Node, Pod
from argosy.service.kubernetes.shadow.placements import (
    ClusterState,
    PlacementJudge,
    PlacementRecord,
    PlacementVerdict,
    SeenPod,
    quantile,
)
from argosy.worlds.kubernetes.requests import PODS, node_capacity, pod_request
from argosy.worlds.kubernetes.volumes import KnownVolumes

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"app": "a"}},
            }
        ]
    }
}


def node(name: str, cpu: str = "4") -> Node:
    document = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
    }
    return kinds.NODES.decode(msgspec.json.encode(document))


def pod(name: str, cpu: str = "1", owner: str = "", **spec: Any) -> Pod:
    owners = [{"kind": owner, "name": "o", "controller": True, "uid": "o"}] if owner else []
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": "a"},
            "ownerReferences": owners,
        },
        "spec": {"containers": [container], **spec},
    }
    return kinds.PODS.decode(msgspec.json.encode(document))


def judged(nodes: list[Node], **places: tuple[Pod, str]) -> PlacementVerdict:
    state = ClusterState(tuple(nodes), (), KnownVolumes())
    pods = [SeenPod(pod, place, pod_request(pod), True) for pod, place in places.values()]
    return PlacementJudge(state, pods).judge()


def test_pods_that_must_be_apart_and_are_not_break_a_rule_each() -> None:
    nodes = [node("m"), node("n")]
    together = judged(nodes, p=(pod("p", affinity=APART), "m"), q=(pod("q", affinity=APART), "m"))
    apart = judged(nodes, p=(pod("p", affinity=APART), "m"), q=(pod("q", affinity=APART), "n"))
    assert (together.broken_rules, apart.broken_rules) == (2, 0)


def test_a_node_with_more_than_it_has_is_overcommitted() -> None:
    nodes = [node("m", "2"), node("n", "2")]
    found = judged(nodes, p=(pod("p", "1500m"), "m"), q=(pod("q"), "m"))
    assert found.overcommitted == 1


def test_nodes_whose_pods_fit_elsewhere_could_be_emptied() -> None:
    nodes = [node("m"), node("n"), node("o"), node("empty")]
    found = judged(nodes, p=(pod("p"), "m"), q=(pod("q", "2"), "n"), r=(pod("r", "3"), "o"))
    # p goes to o, which is then full; q has to stay.
    assert (found.nodes_used, found.nodes_spare) == (3, 2)


def test_rules_keep_nodes_from_being_emptied() -> None:
    nodes = [node("m"), node("n")]
    found = judged(nodes, p=(pod("p", affinity=APART), "m"), q=(pod("q", affinity=APART), "n"))
    assert found.nodes_spare == 0


def test_pods_of_daemon_sets_do_not_keep_a_node() -> None:
    nodes = [node("m"), node("n")]
    found = judged(nodes, d=(pod("d", owner="DaemonSet"), "m"), p=(pod("p"), "n"))
    assert (found.nodes_used, found.nodes_spare) == (1, 1)


def test_utilisation_is_an_average_over_time() -> None:
    record = PlacementRecord(10.0)
    record.set_capacity("m", node_capacity(node("m"), [PODS]))
    record.advance(11.0)
    record.put(pod("p", "2"), "m", since=10.5)
    record.advance(13.0)
    record.remove("p")
    record.advance(14.0)
    assert record.utilisation("cpu") == pytest.approx(2 * 2 / (4 * 4))
    assert (record.waits, record.first_nodes) == ({"p": 0.5}, {"p": "m"})


def test_a_node_that_goes_and_comes_back_counts_once() -> None:
    record = PlacementRecord(0.0)
    capacity = node_capacity(node("m"), [PODS])
    for seen in (capacity, None, None, capacity):
        record.set_capacity("m", seen)
    record.put(pod("p", "2"), "m")
    record.advance(1.0)
    assert record.utilisation("cpu") == pytest.approx(2 / 4)


def test_a_pod_that_is_placed_again_has_waited_only_once() -> None:
    record = PlacementRecord(0.0)
    record.advance(1.0)
    record.put(pod("p"), "m", since=0.0)
    record.remove("p")
    record.advance(5.0)
    record.put(pod("p"), "n", since=0.0)
    assert (record.waits["p"], record.first_nodes["p"], record.pods["p"].node) == (1.0, "m", "n")


def test_quantiles_are_values_that_occurred() -> None:
    values = [1.0, 2.0, 3.0, 4.0]
    assert [quantile(values, share) for share in (0.5, 0.9, 1.0)] == [2.0, 4.0, 4.0]
    assert quantile([], 0.5) is None
