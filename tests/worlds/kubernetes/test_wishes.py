"""What pods would rather have decides among nodes with room, for engines that heed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from small_pod_cluster import HOST, ZONE, SmallCluster, node, pod

from argosy.engines.registry import all_engines
from argosy.kubernetes.objects import Node, NodeSpec, Taint

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}
HEEDING = sorted(name for name, engine in all_engines().items() if engine.capabilities.wishes)


@pytest.fixture(params=HEEDING)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallCluster]:
    """Five nodes, n1 to n5, in two zones."""
    nodes = [node(at) for at in range(1, 6)]
    made = SmallCluster(request.param, tmp_path / "state", nodes=nodes)
    yield made
    made.store.close()


def label(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": values}]}


def near(*terms: tuple[int, dict[str, Any]]) -> dict[str, Any]:
    """Preferred node affinity."""
    preferred = [{"weight": weight, "preference": term} for weight, term in terms]
    return {"nodeAffinity": {PREFERRED: preferred}}


def by_pods(kind: str, key: str, selector: dict[str, Any] = WEB) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": selector}
    return {kind: {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}


def test_engines_that_place_tasks_one_by_one_heed_wishes() -> None:
    assert {"kube", "omega", "monolithic", "mesos"} <= set(HEEDING)


def test_a_pod_goes_where_it_would_rather_be(cluster: SmallCluster) -> None:
    wish = near((1, label(HOST, "n4")))
    assert cluster.schedule([pod("p", affinity=wish)]) == {"p": "n4"}


def test_a_wish_that_cannot_be_fulfilled_is_no_obstacle(cluster: SmallCluster) -> None:
    wish = near((100, label(HOST, "n4")))
    where = cluster.schedule([pod(f"p{at}", "5", affinity=wish) for at in range(2)])
    assert len(set(where.values())) == 2
    assert "n4" in where.values()


def test_weights_add_up(cluster: SmallCluster) -> None:
    wish = near((60, label(HOST, "n1")), (40, label(HOST, "n2")), (40, label(ZONE, "z0")))
    assert cluster.schedule([pod("p", affinity=wish)]) == {"p": "n2"}


def test_a_rule_comes_before_a_wish(cluster: SmallCluster) -> None:
    wish = near((100, label(HOST, "n4")))
    where = cluster.schedule([pod("p", affinity=wish, nodeSelector={HOST: "n3"})])
    assert where == {"p": "n3"}


def test_a_pod_would_rather_be_near_another(cluster: SmallCluster) -> None:
    cluster.schedule([pod("first", nodeSelector={HOST: "n5"})])
    where = cluster.schedule([pod("p", affinity=by_pods("podAffinity", HOST))])
    assert where == {"p": "n5"}


def test_pods_that_would_rather_be_apart_take_turns(cluster: SmallCluster) -> None:
    apart = by_pods("podAntiAffinity", HOST)
    where = cluster.schedule([pod(f"p{at}", "500m", affinity=apart) for at in range(10)])
    # Some engines decide on several pods at once.
    assert len(set(where.values())) == 5


def test_a_spread_that_may_be_broken_is_kept_as_long_as_there_is_room(
    cluster: SmallCluster,
) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": WEB,
    }
    pods = [pod(f"p{at}", "2", topologySpreadConstraints=[spread]) for at in range(18)]
    where = cluster.schedule(pods)
    # z0 has two nodes with room for eight, z1 has three with room for twelve.
    zones = Counter(f"z{int(name[1:]) % 2}" for name in where.values())
    assert zones == {"z0": 8, "z1": 10}


def softly_tainted(at: int) -> Node:
    taint = Taint(key="old", effect="PreferNoSchedule")
    return replace(node(at), spec=NodeSpec(taints=(taint,)))


def test_nodes_with_soft_taints_come_last(cluster: SmallCluster) -> None:
    for at in (1, 2, 3, 5):
        cluster.pods.set_node(softly_tainted(at))
    where = cluster.schedule([pod("p", "4"), pod("q", "4"), pod("r", "4")])
    assert Counter(where.values())["n4"] == 2
    assert len(where) == 3


def test_a_soft_taint_that_is_tolerated_does_not_count(cluster: SmallCluster) -> None:
    for at in (1, 2, 3, 5):
        cluster.pods.set_node(softly_tainted(at))
    tolerations = [{"key": "old", "operator": "Exists"}]
    wish = near((1, label(HOST, "n2")))
    where = cluster.schedule([pod("p", tolerations=tolerations, affinity=wish)])
    assert where == {"p": "n2"}


def test_marks_of_wishes_are_forgotten_in_the_end(tmp_path: Path) -> None:
    cluster = SmallCluster("kube", tmp_path / "state")
    for at in range(300):
        cluster.schedule([pod(f"p{at}", affinity=near((1, label("name", f"v{at}"))))])
        cluster.remove(f"p{at}")
    assert len(cluster.pods.rulebook._rules) < 300
    cluster.store.close()


def test_engines_that_do_not_heed_wishes_are_not_told_of_them(tmp_path: Path) -> None:
    cluster = SmallCluster("murmuration", tmp_path / "state")
    wishing = pod("p", affinity=near((1, label(HOST, "n4"))))
    cluster.pods.set_pod(wishing)
    assert not cluster.pods.heeds_wishes_of(wishing)
    assert cluster.pods.pods["p"].needs.wishes == {}
    cluster.store.close()
