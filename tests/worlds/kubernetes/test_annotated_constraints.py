"""Placement constraints in annotations of pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from test_every_engine import SmallCluster, pod

from argosy.kubernetes.objects import Pod
from argosy.worlds.kubernetes.annotated_constraints import CONSTRAINTS


def annotated(name: str, text: str) -> Pod:
    plain = pod(name)
    return replace(plain, metadata=replace(plain.metadata, annotations={CONSTRAINTS: text}))


@pytest.fixture
def medea(tmp_path: Path) -> Iterator[SmallCluster]:
    made = SmallCluster("medea", tmp_path / "state")
    yield made
    made.store.close()


def test_a_hard_constraint_bounds_how_many_pods_share_a_node(medea: SmallCluster) -> None:
    rule = "app:web -> {app:web, 0, 1} in machine hard"
    where = medea.schedule([annotated(f"p{at}", rule) for at in range(10)])
    assert Counter(Counter(where.values()).values()) == {2: 5}


def test_zones_are_node_groups(medea: SmallCluster) -> None:
    rule = "app:web -> spread {1, 1} over zone hard"
    where = medea.schedule([annotated(f"p{at}", rule) for at in range(4)])
    assert len(where) == 4
    assert len({int(node[1:]) % 2 for node in where.values()}) == 1


def test_a_mistake_is_told_with_its_place(medea: SmallCluster) -> None:
    assert medea.schedule([annotated("p", "\napp:web -> {app:web, 0} in machine")]) == {}
    said = medea.pods.refused[0].obstacle
    assert "line 2" in said
    assert "column" in said


def test_an_unknown_node_group_is_told(medea: SmallCluster) -> None:
    assert medea.schedule([annotated("p", "app:web -> {app:web, 0, 0} in rack")]) == {}
    assert "no node group 'rack'" in medea.pods.refused[0].obstacle


def test_an_engine_that_ignores_constraints_does_not_schedule_such_pods(tmp_path: Path) -> None:
    omega = SmallCluster("omega", tmp_path / "state")
    rule = "app:web -> {app:web, 0, 0} in machine"
    assert omega.schedule([annotated("p", rule)]) == {}
    assert "which omega ignores" in omega.pods.refused[0].obstacle
    assert set(omega.schedule([pod("plain")])) == {"plain"}
    omega.store.close()
