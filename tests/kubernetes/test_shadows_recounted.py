"""What counts in the comparison of engines with a cluster: pods placed again, fixed or never due."""

from __future__ import annotations

from typing import Any

import pytest
from test_placements import node as a_node
from test_placements import pod as plain_pod
from test_shadow_feeds import Session
from test_shadow_session import pod

from argosy.service.kubernetes.shadow.placements import (
    ClusterState,
    PlacementJudge,
    PlacementRecord,
    SeenPod,
)
from argosy.worlds.kubernetes.requests import PODS, node_capacity, pod_request
from argosy.worlds.kubernetes.volumes import KnownVolumes


def test_a_pod_that_is_put_elsewhere_no_longer_counts_where_it_was() -> None:
    record = PlacementRecord(0.0)
    for name in ("m", "n"):
        record.set_capacity(name, node_capacity(a_node(name), [PODS]))
    record.put(plain_pod("p", "2"), "m", since=0.0)
    record.put(plain_pod("p", "2"), "n", since=0.0)
    record.advance(1.0)
    assert record.utilisation("cpu") == pytest.approx(2 / 8)
    assert (record.pods["p"].node, record.first_nodes) == ("n", {"p": "m"})
    record.remove("p")
    record.remove("p")
    record.advance(2.0)
    assert record.utilisation("cpu") == pytest.approx(2 / 16)
    # No time has passed, so nothing is added.
    record.advance(2.0)
    assert record.utilisation("cpu") == pytest.approx(2 / 16)
    assert record.utilisation("memory") == 0.0


def spare(*nodes: tuple[str, str]) -> int:
    """Of nodes with so many cores, each with one pod that asks for so many."""
    state = ClusterState(
        tuple(a_node(f"n{at}", cpu) for at, (cpu, _) in enumerate(nodes)), (), KnownVolumes()
    )
    seen = []
    for at, (_, asked) in enumerate(nodes):
        made = plain_pod(f"p{at}", asked)
        seen.append(SeenPod(made, f"n{at}", pod_request(made), True))
    return PlacementJudge(state, seen).judge().nodes_spare


@pytest.mark.parametrize(
    ("nodes", "count"),
    [
        # The least used one goes first, wherever it stands.
        ((("5", "2"), ("4", "1"), ("4", "2")), 2),
        ((("4", "1"), ("5", "2"), ("4", "2")), 2),
        # A large node that cannot be emptied takes the pod of a smaller one.
        ((("10", "2"), ("3", "3")), 1),
        ((("3", "3"), ("10", "2")), 1),
        ((("2", "2"), ("3", "3")), 0),
    ],
)
def test_nodes_are_emptied_least_used_first_into_all_others(nodes: Any, count: int) -> None:
    assert spare(*nodes) == count


def test_only_pods_that_were_due_can_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Session(monkeypatch)
    gated = pod("gated", schedulingGates=[{"name": "g"}])
    found.change(None, pod("before", "m"))
    found.change(None, gated)
    found.change(None, pod("due"))
    for each in (pod("before", "m"), gated, pod("due")):
        found.change(each, None)
    report = found.session.report()
    assert [row.missed for row in report.schedulers] == [1, 1]
    assert [row.waiting for row in report.schedulers] == [0, 0]
    assert (report.pods, report.pods_before) == (1, 1)


def test_a_pod_that_was_there_before_is_shown_as_fixed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Session(monkeypatch)
    found.change(None, pod("p", "m"))
    found.change(pod("p", "m"), pod("p", "m"))
    found.change(pod("p", "m"), pod("p", "m", phase="Running"))
    assert found.did == [("p", True), ("p", False), ("p", False)]
    assert found.session.report().pods_before == 1
    # Another pod of its name is another pod.
    found.change(pod("p", "m"), None)
    found.change(None, pod("p", "m"))
    assert found.did[3:] == [("ended", "p"), ("p", True)]
    assert found.session.report().pods_before == 2
