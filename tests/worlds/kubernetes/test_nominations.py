"""Nodes that somebody else has chosen for a pod: by `status.nominatedNodeName`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from small_pod_cluster import SmallCluster, node, pod

from argosy.kubernetes.objects import Pod, PodStatus


@pytest.fixture(params=["kube", "omega", "murmuration", "firmament", "sparrow"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallCluster]:
    """One node, with room for one large pod."""
    made = SmallCluster(request.param, tmp_path / "state", nodes=[node(1)])
    yield made
    made.store.close()


def nominated(name: str, on: str = "n1", **more: Any) -> Pod:
    """A large pod, of another scheduler unless it says otherwise, that waits for the node."""
    spec = {"schedulerName": "other", "priority": 100, **more}
    return replace(pod(name, "6", **spec), status=PodStatus(nominated_node_name=on))


def tell(cluster: SmallCluster, *pods: Pod) -> None:
    for each in pods:
        cluster.pods.set_pod(each)
    cluster.pods.flush()
    cluster.run(1)


def test_room_that_is_promised_is_not_given_away(cluster: SmallCluster) -> None:
    tell(cluster, nominated("theirs"))
    assert cluster.schedule([pod("small", "1")]) == {"small": "n1"}
    assert cluster.schedule([pod("ours", "4", priority=100)]) == {}


def test_a_pod_that_gets_what_was_promised_counts_once(cluster: SmallCluster) -> None:
    tell(cluster, nominated("theirs"))
    tell(cluster, pod("ours", "4"))
    tell(cluster, pod("theirs", "6", priority=100, schedulerName="other", nodeName="n1"))
    assert cluster.world.free_on("n1").cpu == 2_000
    assert "ours" not in cluster.bindings


def test_a_promise_ends_with_its_pod(cluster: SmallCluster) -> None:
    tell(cluster, nominated("theirs"))
    tell(cluster, pod("ours", "4"))
    cluster.remove("theirs")
    for _ in range(20):
        cluster.run(0.5)
    assert cluster.bindings["ours"].node == "n1"


def test_a_promise_ends_when_it_is_taken_back(cluster: SmallCluster) -> None:
    tell(cluster, nominated("theirs"))
    tell(cluster, nominated("theirs", on=""))
    assert cluster.schedule([pod("ours", "6")]) == {"ours": "n1"}


def test_a_promise_ends_when_its_pod_goes_elsewhere(tmp_path: Path) -> None:
    cluster = SmallCluster("omega", tmp_path / "state", nodes=[node(1), node(2)])
    tell(cluster, nominated("theirs", on="n1"))
    tell(cluster, pod("theirs", "6", priority=100, schedulerName="other", nodeName="n2"))
    assert cluster.schedule([pod("ours", "6")]) == {"ours": "n1"}
    cluster.store.close()


def test_who_leaves_makes_room_for_the_pod_that_it_was_promised_to(cluster: SmallCluster) -> None:
    tell(cluster, pod("victim", "6", schedulerName="other", nodeName="n1"))
    tell(cluster, nominated("theirs"))
    tell(cluster, pod("ours", "6", priority=50))
    cluster.remove("victim")
    for _ in range(20):
        cluster.run(0.5)
    assert "ours" not in cluster.bindings
    tell(cluster, pod("theirs", "6", priority=100, schedulerName="other", nodeName="n1"))
    assert cluster.world.free_on("n1").cpu == 2_000


def test_a_promise_outlives_a_new_world(tmp_path: Path) -> None:
    cluster = SmallCluster("omega", tmp_path / "state", nodes=[node(1)])
    tell(cluster, nominated("theirs"))
    cluster.overseer.begin(cluster.world)
    cluster.run(1)
    assert cluster.schedule([pod("ours", "4")]) == {}
    cluster.store.close()


def test_a_pod_of_higher_priority_may_take_what_was_promised(tmp_path: Path) -> None:
    cluster = SmallCluster("kube", tmp_path / "state", nodes=[node(1)])
    tell(cluster, nominated("theirs"))
    assert cluster.schedule([pod("ours", "4", priority=1_000)]) == {"ours": "n1"}
    assert cluster.evicted == []
    cluster.store.close()


@pytest.mark.parametrize("engine", ["kube", "omega"])
def test_a_pod_goes_to_the_node_that_somebody_chose_for_it(engine: str, tmp_path: Path) -> None:
    cluster = SmallCluster(engine, tmp_path / "state")
    ours = [nominated(f"p{at}", on=f"n{at}", schedulerName="argosy") for at in (1, 3, 5)]
    assert cluster.schedule(ours) == {"p1": "n1", "p3": "n3", "p5": "n5"}
    cluster.store.close()


def test_a_node_that_is_chosen_later_counts_as_well(tmp_path: Path) -> None:
    cluster = SmallCluster("kube", tmp_path / "state", nodes=[node(1), node(2)])
    for at in (1, 2):
        tell(cluster, pod(f"full{at}", "8", schedulerName="x", nodeName=f"n{at}"))
    tell(cluster, nominated("p", on="", schedulerName="argosy", priority=0))
    for at in (4, 5):
        cluster.pods.set_node(node(at))
    tell(cluster, nominated("p", on="n5", schedulerName="argosy", priority=0))
    for _ in range(4):
        cluster.run(0.5)
    assert cluster.bindings["p"].node == "n5"
    cluster.store.close()


def test_a_new_leader_keeps_no_room_from_its_own_pods(tmp_path: Path) -> None:
    cluster = SmallCluster("omega", tmp_path / "state", nodes=[node(1)])
    cluster.overseer.is_leading = False
    ours = nominated("p", schedulerName="argosy")
    tell(cluster, ours)
    cluster.overseer.is_leading = True
    assert cluster.schedule([ours]) == {"p": "n1"}
    cluster.store.close()
