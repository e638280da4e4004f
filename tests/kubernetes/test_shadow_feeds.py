"""What the engines of a shadow session are shown: all that there is, in order, and every change."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import msgspec
import pytest
from test_placements import node as a_node
from test_placements import pod as plain_pod
from test_shadow_session import pod

from argosy.kubernetes import kinds
from argosy.kubernetes.objects import Pod
from argosy.kubernetes.watching import ChangeKind, ObjectChange
from argosy.service.kubernetes.shadow import placements
from argosy.service.kubernetes.shadow import session as module
from argosy.service.kubernetes.shadow.placements import (
    ClusterState,
    PlacementJudge,
    PlacementRecord,
    SeenPod,
    quantile,
)
from argosy.service.kubernetes.shadow.session import ShadowSession
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.volumes import KnownVolumes


def an_object(kind: Any, name: str) -> Any:
    document = {"metadata": {"name": name, "namespace": "s", "uid": name}, "spec": {}}
    return kind.decode(msgspec.json.encode(document))


SPACE = an_object(kinds.NAMESPACES, "space")
NODE = an_object(kinds.NODES, "m")
VOLUME = an_object(kinds.PERSISTENT_VOLUMES, "v")
CLAIM = an_object(kinds.PERSISTENT_VOLUME_CLAIMS, "c")
BUDGET = an_object(kinds.POD_DISRUPTION_BUDGETS, "b")
GROUP = an_object(kinds.POD_GROUPS, "g")
OLD_GROUP = an_object(kinds.COSCHEDULING_GROUPS, "h")


class Session:
    """A session of one engine that only remembers, beside a cluster with these pods."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *pods: Pod) -> None:
        monkeypatch.setattr(module.time, "monotonic", lambda: 100.0)
        self.pods = Mock()
        self.did: list[Any] = []
        self.record = PlacementRecord(100.0)
        self.engine = SimpleNamespace(
            name="e",
            unsupported=0,
            record=self.record,
            tell=lambda action: action(self.pods),
            show=lambda each, is_fixed: self.did.append((each.name, is_fixed)),
            end=lambda each: self.did.append(("ended", each.name)),
            look_again=lambda: self.did.append("look"),
        )
        stores = {
            name: SimpleNamespace(objects={each.name: each for each in objects})
            for name, objects in {
                "namespaces": [SPACE],
                "nodes": [a_node("m")],
                "volumes": [VOLUME],
                "claims": [CLAIM],
                "budgets": [BUDGET],
                "pods": pods,
            }.items()
        }
        groups = [SimpleNamespace(objects={"g": GROUP}), SimpleNamespace(objects={"h": OLD_GROUP})]
        self.session = ShadowSession(SimpleNamespace(**stores, groups=groups))  # type: ignore[arg-type]
        self.session.engines.append(self.engine)  # type: ignore[arg-type]

    def change(self, old: Any, new: Any) -> None:
        self.session._changed(ObjectChange(ChangeKind.CHANGED, old, new))


def aged(name: str, second: int, node: str = "") -> Pod:
    made = pod(name, node)
    document = msgspec.to_builtins(made)
    document["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:{second:02}Z"
    return kinds.PODS.decode(msgspec.json.encode(document))


class TestSessions:
    def test_an_engine_begins_with_all_there_is_and_pods_on_nodes_first_the_oldest_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = Session(
            monkeypatch,
            aged("late", 9),
            aged("old", 1),
            aged("there", 8, "m"),
            aged("first", 2, "m"),
        )
        found.session.take_all()
        assert [each[0] for each in found.pods.mock_calls] == [
            "set_namespace", "set_node", "set_volume", "set_claim", "set_budget", "set_group",
            "set_group",
        ]  # fmt: skip
        assert found.did == [("first", True), ("there", True), ("old", False), ("late", False)]
        assert found.session.nodes == 1
        report = found.session.report()
        assert (report.pods, report.pods_before, report.nodes) == (2, 2, 1)

    def test_nodes_that_come_and_go_change_what_there_is_for_everybody(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = Session(monkeypatch)
        records = [found.session._real, found.record]
        first, larger = a_node("n", "4"), a_node("n", "6")
        for old, new, cpu in ((None, first, 4_000), (first, larger, 6_000), (larger, None, 0)):
            found.change(old, new)
            assert [each._total["cpu"] for each in records] == [cpu, cpu]
        assert found.pods.mock_calls == [
            call.set_node(first),
            call.set_node(larger),
            call.remove_node("n"),
        ]
        found.change(VOLUME, None)
        assert found.pods.mock_calls[3:] == [call.remove_volume("v")]

    def test_pods_that_end_are_ended_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = Session(monkeypatch)
        found.change(None, pod("p"))
        found.change(pod("p"), pod("p", phase="Succeeded"))
        found.change(pod("p", phase="Succeeded"), None)
        found.change(pod("never"), None)
        assert found.did == [("p", False), ("ended", "p")]
        real, row = found.session.report().schedulers
        assert (real.missed, row.missed, row.waiting) == (1, 1, 0)

    def test_a_pod_that_an_engine_had_placed_was_not_missed_there(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = Session(monkeypatch)
        found.change(None, pod("p"))
        found.record.put(pod("p"), "m", since=100.0)
        found.change(pod("p"), None)
        real, row = found.session.report().schedulers
        assert (real.missed, row.missed, row.placed) == (1, 0, 1)

    def test_a_gated_pod_does_not_wait_until_it_may_be_scheduled(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = Session(monkeypatch)
        gated = pod("p", schedulingGates=[{"name": "g"}])
        found.change(None, gated)
        assert found.session.report().schedulers[0].waiting == 0
        found.change(gated, pod("p"))
        assert [row.waiting for row in found.session.report().schedulers] == [1, 1]
        found.change(pod("p"), pod("p", "m"))
        assert [row.waiting for row in found.session.report().schedulers] == [0, 1]

    def test_every_engine_looks_again_each_second(self, monkeypatch: pytest.MonkeyPatch) -> None:
        found = Session(monkeypatch)
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) > 2:
                raise asyncio.CancelledError

        monkeypatch.setattr(module.asyncio, "sleep", sleep)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(found.session.look_again())
        assert (slept, found.did) == ([1.0] * 3, ["look", "look"])


class TestJudging:
    def judge(self, nodes: dict[str, str], **where: tuple[str, str]) -> Any:
        """Nodes with so many cores; pods with so many cores, and their nodes."""
        state = ClusterState(
            tuple(a_node(name, cpu) for name, cpu in nodes.items()), (), KnownVolumes()
        )
        seen = []
        for name, (cpu, node) in where.items():
            made = plain_pod(name, cpu)
            seen.append(SeenPod(made, node, pod_request(made), True))
        return PlacementJudge(state, seen).judge()

    def test_the_least_used_nodes_are_emptied_first(self) -> None:
        # The pod of `c` goes to `a`, then that of `b` has no room there, and `a` none on `b`.
        found = self.judge({"a": "4", "b": "4", "c": "4"}, x=("3", "a"), y=("2", "b"), z=("1", "c"))
        assert (found.nodes_used, found.nodes_spare) == (3, 1)
        # All of it goes to one of four.
        found = self.judge(
            {"a": "4", "b": "4", "c": "4", "d": "4"},
            w=("1", "a"), x=("1", "b"), y=("1", "c"), z=("1", "d"),
        )  # fmt: skip
        assert (found.nodes_used, found.nodes_spare) == (4, 3)

    @pytest.mark.parametrize(("trials", "spare"), [(0, 0), (1, 1), (2, 2), (200, 2)])
    def test_pods_are_tried_elsewhere_only_so_often(
        self, monkeypatch: pytest.MonkeyPatch, trials: int, spare: int
    ) -> None:
        monkeypatch.setattr(placements, "MOST_TRIALS", trials)
        found = self.judge({"a": "4", "b": "4", "c": "4"}, x=("3", "a"), y=("2", "b"), z=("1", "c"))
        assert found.nodes_spare == min(trials, 1)
        found = self.judge({"a": "4", "b": "4", "c": "4"}, x=("2", "a"), y=("1", "b"), z=("1", "c"))
        assert found.nodes_spare == spare

    def test_an_amount_beyond_what_there_is_is_too_much_of_any_resource(self) -> None:
        assert self.judge({"a": "4"}, x=("4", "a")).overcommitted == 0
        assert self.judge({"a": "4", "b": "4"}, x=("5", "a"), y=("5", "b")).overcommitted == 2

    @pytest.mark.parametrize(
        ("share", "value"),
        [(0.0, 1), (0.25, 1), (0.26, 2), (0.5, 2), (0.75, 3), (0.76, 9), (1.0, 9)],
    )
    def test_a_quantile_is_the_smallest_value_that_so_many_are_not_above(
        self, share: float, value: float
    ) -> None:
        assert quantile([1, 2, 3, 9], share) == value
        assert quantile([], share) is None
        assert quantile([7], share) == 7
