"""Every engine places groups of pods all or none, or says that it cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from gang_cluster import APART, GangCluster, member, members, pod

from argosy.engines.registry import all_engines

ABLE = sorted(name for name, engine in all_engines().items() if engine.capabilities.gang)
UNABLE = sorted(all_engines().keys() - set(ABLE))
#: Some engines decide in rounds, or look again only after a while.
LOOKS = 120


@pytest.fixture(params=ABLE)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GangCluster]:
    made = GangCluster(tmp_path, request.param)
    yield made
    made.close()


def go_on(cluster: GangCluster, binds: int) -> None:
    for _ in range(LOOKS // 5):
        cluster.go_on(5)
        assert len(cluster.binds) in (0, binds), "some, but not all"
        if cluster.binds:
            return


def test_a_group_is_bound_as_a_whole(cluster: GangCluster) -> None:
    cluster.add(member("leader", 5, 3), *members("abcd", 5))
    go_on(cluster, 5)
    used = Counter[str]()
    for name, where in cluster.binds.items():
        used[where] += 3 if name == "leader" else 1
    assert sum(used.values()) == 7
    assert max(used.values()) <= 4


def test_a_group_that_does_not_fit_is_bound_when_it_does(cluster: GangCluster) -> None:
    cluster.add(*members("abcdefg", 7, 2))
    cluster.go_on(20)
    assert not cluster.binds
    cluster.add_node("n3")
    go_on(cluster, 7)
    assert len(cluster.binds) == 7


def test_pods_of_a_group_that_avoid_each_other_are_on_different_nodes(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 3, affinity=APART))
    go_on(cluster, 3)
    assert sorted(cluster.binds.values()) == ["n0", "n1", "n2"]


def test_of_two_groups_that_do_not_fit_both_one_is_bound(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 3, 3), *members("def", 3, 3, group="h"))
    go_on(cluster, 3)
    assert set(cluster.binds) in (set("abc"), set("def"))


def test_a_pod_whose_binding_is_refused_is_bound_elsewhere_or_again(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 3))
    go_on(cluster, 3)
    cluster.refuse("a")
    cluster.go_on(LOOKS)
    assert cluster.binds.keys() == set("abc")


@pytest.mark.parametrize("engine", UNABLE)
def test_engines_that_place_pods_one_by_one_say_so(engine: str, tmp_path: Path) -> None:
    cluster = GangCluster(tmp_path, engine)
    cluster.add(*members("ab", 2), pod("c"))
    cluster.go_on(30)
    assert cluster.binds.keys() == {"c"}
    assert "cannot schedule groups" in cluster.obstacle("a")
    cluster.close()
