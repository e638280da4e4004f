"""Every engine respects Kubernetes' rules, though none knows of Kubernetes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_pod_cluster import HOST, ZONE, SmallCluster, pod

from argosy.engines.registry import all_engines

WEB = {"matchLabels": {"app": "web"}}


@pytest.fixture(params=sorted(all_engines()))
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallCluster]:
    made = SmallCluster(request.param, tmp_path / "state")
    yield made
    made.store.close()


def test_taints_and_selectors_hold(cluster: SmallCluster) -> None:
    where = cluster.schedule([pod(f"p{at}", nodeSelector={"disk": "ssd"}) for at in range(6)])
    assert len(where) == 6
    assert set(where.values()) <= {"n1", "n2", "n4", "n5"}


def test_pods_that_avoid_each_other_are_on_different_nodes(cluster: SmallCluster) -> None:
    avoid = [{"topologyKey": HOST, "labelSelector": WEB}]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": avoid}}
    where = cluster.schedule([pod(f"p{at}", affinity=affinity) for at in range(5)])
    assert sorted(where.values()) == ["n1", "n2", "n3", "n4", "n5"]


def test_pods_are_spread_over_zones(cluster: SmallCluster) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": WEB,
    }
    where = cluster.schedule([pod(f"p{at}", topologySpreadConstraints=[spread]) for at in range(8)])
    zones = Counter(f"z{int(name[1:]) % 2}" for name in where.values())
    assert zones == {"z0": 4, "z1": 4}


def test_a_host_port_is_used_once_per_node(cluster: SmallCluster) -> None:
    container = {"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}
    where = cluster.schedule([pod(f"p{at}", containers=[container]) for at in range(7)])
    assert sorted(where.values()) == ["n1", "n2", "n3", "n4", "n5"]


def test_nothing_is_overcommitted(cluster: SmallCluster) -> None:
    where = cluster.schedule([pod(f"p{at}") for at in range(50)])
    counts = Counter(where.values())
    assert counts == dict.fromkeys(["n1", "n2", "n3", "n4", "n5"], 8)
