"""Pods carry what is known of the decision about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_pod_cluster import SmallCluster, pod

from argosy.engines.registry import all_engines
from argosy.service.journals import Journals

WHY = "argosy.dev/why"


@pytest.mark.parametrize("engine", sorted(all_engines()))
def test_a_pod_is_told_why_it_is_on_its_node_in_the_words_of_argosy_why(
    engine: str, tmp_path: Path
) -> None:
    cluster = SmallCluster(engine, tmp_path / "state")
    cluster.schedule([pod(f"p{at}") for at in range(8)])
    told = cluster.bindings["p5"].annotations
    assert (told["argosy.dev/engine"], told["argosy.dev/scheduler"].partition(":")[0]) == (
        engine,
        engine,
    )
    answer = Journals(cluster.store).why(cluster.world.job_seq("default.p5") or 0, "default.p5", 0)
    assert answer.sentence.endswith(f": {told[WHY]}.")
    cluster.store.close()


def test_a_pod_is_told_how_long_it_has_waited(tmp_path: Path) -> None:
    cluster = SmallCluster("omega", tmp_path / "state")
    cluster.pods.set_pod(pod("p"))
    cluster.pods.flush()
    cluster.run(3)
    assert cluster.bindings["p"].annotations["argosy.dev/waited"] == "3 s"
    cluster.store.close()


def test_explanations_can_be_switched_off(tmp_path: Path) -> None:
    cluster = SmallCluster("omega", tmp_path / "state", annotates=False)
    cluster.schedule([pod("p")])
    assert cluster.bindings["p"].annotations == {}
    assert not cluster.world.projection.choices
    cluster.store.close()


def test_nothing_is_kept_of_pods_that_have_their_node_or_are_gone(tmp_path: Path) -> None:
    cluster = SmallCluster("murmuration", tmp_path / "state")
    cluster.schedule([pod(f"p{at}") for at in range(45)])
    for at in range(45):
        cluster.remove(f"p{at}")
    cluster.run(1)
    kept = cluster.world.projection
    assert (kept.choices, kept.told) == ({}, {})
    cluster.store.close()
