"""Pods with `preemptionPolicy: Never` push off nobody, whichever engine decides."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_pod_cluster import SmallCluster, node, pod

from argosy.kubernetes.objects import Pod

#: Engines that preempt, with the settings that they need to.
ENGINES: dict[str, dict[str, Any]] = {
    "kube": {},
    "omega": {"preempt": True},
    "mapreduce": {"preempt": True},
    "firmament": {"reschedule": True},
    "quincy": {"reschedule": True},
}


@pytest.fixture(params=sorted(ENGINES))
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallCluster]:
    """Two nodes that are full of pods of low priority."""
    made = SmallCluster(
        request.param,
        tmp_path / "state",
        nodes=[node(1), node(2)],
        settings=ENGINES[request.param],
    )
    assert len(made.schedule([pod(f"low{at}", "4", priority=10) for at in range(4)])) == 4
    yield made
    made.store.close()


def polite(name: str, cpu: str = "4") -> Pod:
    return pod(name, cpu, priority=1_000, preemptionPolicy="Never")


def test_others_have_to_go_for_a_pod_of_higher_priority(cluster: SmallCluster) -> None:
    assert len(cluster.schedule([pod("high", "4", priority=1_000)])) == 1
    assert len(cluster.evicted) == 1


@pytest.mark.parametrize("cpu", ["4", "2"])
def test_nobody_has_to_go_for_a_polite_pod(cluster: SmallCluster, cpu: str) -> None:
    assert cluster.schedule([polite("polite", cpu)]) == {}
    assert cluster.evicted == []


def test_a_polite_pod_takes_the_room_that_becomes_free(cluster: SmallCluster) -> None:
    cluster.schedule([polite("polite")])
    cluster.remove("low3")
    assert cluster.schedule([polite("polite")]).keys() == {"polite"}
    assert cluster.evicted == []


def test_a_polite_pod_does_not_profit_from_one_that_is_not(cluster: SmallCluster) -> None:
    cluster.schedule([polite("polite"), pod("high", "4", priority=1_000)])
    assert len(cluster.evicted) == 1
    assert cluster.bindings.keys() & {"polite", "high"} == {"high"}
