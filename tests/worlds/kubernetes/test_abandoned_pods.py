"""Pods that schedulers have abandoned are tried again."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_pod_cluster import SmallCluster, node, pod

from argosy.worlds.kubernetes.abandoned import LONGEST_REST, AbandonedPods
from argosy.worlds.kubernetes.tracked import PodState

ATTEMPTS = {"omega": {"attempts": 1}, "vela": {"reschedules": 0}, "jkube++": {"attempts": 1}}


def abandoned(engine: str, directory: Path) -> SmallCluster:
    """A full node, and a pod that its scheduler has abandoned."""
    cluster = SmallCluster(engine, directory, nodes=[node(1)], settings=ATTEMPTS[engine])
    cluster.schedule([pod("full", "8")])
    cluster.pods.set_pod(pod("late", "4"))
    cluster.pods.flush()
    while not cluster.world.is_over(cluster.pods.pods["late"].job):
        cluster.run(0.5)
        assert cluster.now < 120_000_000
    return cluster


@pytest.mark.parametrize("engine", ATTEMPTS)
def test_an_abandoned_pod_gets_the_room_that_appears(engine: str, tmp_path: Path) -> None:
    cluster = abandoned(engine, tmp_path / "state")
    cluster.remove("full")
    for _ in range(60):
        cluster.run(0.5)
    assert cluster.bindings["late"].node == "n1"
    cluster.store.close()


@pytest.mark.parametrize("engine", ATTEMPTS)
def test_an_abandoned_pod_is_submitted_again_though_nothing_changes(
    engine: str, tmp_path: Path
) -> None:
    cluster = abandoned(engine, tmp_path / "state")
    first = cluster.pods.pods["late"].job
    for _ in range(10):
        cluster.run(0.5)
    tracked = cluster.pods.pods["late"]
    assert tracked.job != first
    assert tracked.state is PodState.WAITING
    cluster.store.close()


def test_an_abandoned_pod_can_be_deleted(tmp_path: Path) -> None:
    cluster = abandoned("omega", tmp_path / "state")
    cluster.remove("late")
    assert "late" not in cluster.pods.pods
    cluster.store.close()


def test_rests_grow_up_to_a_limit_and_end_with_the_pod(tmp_path: Path) -> None:
    cluster = abandoned("omega", tmp_path / "state")
    tracked = cluster.pods.pods["late"]
    cluster.store.close()
    pods, rests = AbandonedPods(), []
    for _ in range(9):
        pods.add(tracked)
        # It is the same abandonment, told once more.
        pods.add(tracked)
        rests.append(1)
        while not pods.wake():
            rests[-1] += 1
    assert rests == [1, 2, 4, 8, 16, 32, LONGEST_REST, LONGEST_REST, LONGEST_REST]
    assert not pods.are_resting
    pods.add(tracked)
    pods.forget(tracked.uid)
    assert not pods.are_resting
