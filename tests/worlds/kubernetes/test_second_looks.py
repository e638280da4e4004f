"""Pods that wait are decided on as soon as there is room for them, whichever engine decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_pod_cluster import SmallCluster, node, pod

from argosy.engines.registry import all_engines
from argosy.worlds.kubernetes.second_looks import MOST_PAIRS, SecondLooks

#: These decide on batches, every ten seconds.
BATCHES = {"ilp-all", "jkube", "jkube++", "kube-modern", "medea", "yarn"}
ENGINES = sorted(all_engines())


def waiting(engine: str, directory: Path, *, foreign: bool = False) -> SmallCluster:
    """Two nodes that are full, and a pod that has waited for forty seconds."""
    cluster = SmallCluster(engine, directory, nodes=[node(1), node(2)])
    if foreign:
        for at in (1, 2):
            cluster.pods.set_pod(pod(f"full{at}", "8", schedulerName="x", nodeName=f"n{at}"))
        cluster.pods.flush()
        cluster.run(1)
    else:
        cluster.schedule([pod("full1", "8"), pod("full2", "8")])
    cluster.pods.set_pod(pod("late", "4"))
    cluster.pods.flush()
    for _ in range(80):
        cluster.run(0.5)
    assert "late" not in cluster.bindings
    return cluster


def seconds_to_bind(cluster: SmallCluster) -> float:
    began = cluster.now
    while "late" not in cluster.bindings and cluster.now < began + 60_000_000:
        cluster.run(0.1)
    cluster.store.close()
    return (cluster.now - began) / 1e6


def limit(engine: str) -> float:
    return 10.1 if engine in BATCHES else 1.2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("foreign", [False, True], ids=["own", "foreign"])
def test_a_pod_that_leaves_makes_room(engine: str, foreign: bool, tmp_path: Path) -> None:
    cluster = waiting(engine, tmp_path / "state", foreign=foreign)
    cluster.remove("full1")
    assert seconds_to_bind(cluster) <= limit(engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_node_that_comes_is_used(engine: str, tmp_path: Path) -> None:
    cluster = waiting(engine, tmp_path / "state")
    cluster.pods.set_node(node(4))
    cluster.pods.flush()
    assert seconds_to_bind(cluster) <= limit(engine)


@pytest.mark.parametrize("engine", ["kube", "omega", "murmuration"])
def test_a_rule_that_opens_a_node_counts_as_room(engine: str, tmp_path: Path) -> None:
    near = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    ]
    cluster = SmallCluster(engine, tmp_path / "state")
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": near}}
    cluster.pods.set_pod(pod("late", affinity=affinity))
    cluster.pods.flush()
    for _ in range(80):
        cluster.run(0.5)
    assert "late" not in cluster.bindings
    database = pod("database", schedulerName="x", nodeName="n3")
    database.metadata.labels["app"] = "db"
    cluster.pods.set_pod(database)
    cluster.pods.flush()
    assert seconds_to_bind(cluster) <= limit(engine)
    assert cluster.bindings["late"].node == "n3"


def test_only_as_many_are_decided_on_anew_as_there_is_room_for(tmp_path: Path) -> None:
    cluster = waiting("omega", tmp_path / "state")
    for at in range(5):
        cluster.pods.set_pod(pod(f"more{at}", "4"))
    cluster.pods.flush()
    cluster.run(5)
    looks = cluster.pods.second_looks
    cluster.remove("full1")
    cluster.world.settle()
    assert len(looks.take({})) == 2
    cluster.store.close()


def test_a_look_has_an_end_and_goes_on_with_the_rest(tmp_path: Path) -> None:
    cluster = waiting("omega", tmp_path / "state")
    looks: SecondLooks = cluster.pods.second_looks
    for at in range(3):
        cluster.pods.set_pod(pod(f"more{at}", f"{at + 2}"))
    cluster.pods.flush()
    cluster.run(0.5)
    looks.note([f"gone{at}" for at in range(MOST_PAIRS + 1)])
    assert looks.take({}) == []
    assert looks.are_due
    cluster.store.close()
