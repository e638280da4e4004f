"""Which pods manifests would make, what they ask for, and what is told of each in a plan."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import pytest

from argosy.kubernetes.objects import CoschedulingGroup, PodGroup
from argosy.model.resources import Resources
from argosy.service.kubernetes import planning
from argosy.service.kubernetes.planning import (
    ManifestError,
    ManifestPod,
    PlannedPod,
    PodPlan,
    groups_of,
    pods_of,
)
from argosy.worlds.kubernetes.requests import pod_request

SPEC = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def manifest(kind: str, name: str = "x", **spec: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name}, "spec": spec}


def made(*documents: Any, **priorities: int) -> list[tuple[str, str, str]]:
    """Of which object, in which namespace, and called what."""
    found = pods_of(documents, "here", priorities)
    return [(each.of, each.pod.namespace, each.pod.name) for each in found]


class TestPods:
    @pytest.mark.parametrize(
        ("kind", "field"),
        [
            ("Deployment", "replicas"),
            ("ReplicaSet", "replicas"),
            ("ReplicationController", "replicas"),
            ("StatefulSet", "replicas"),
            ("Job", "parallelism"),
        ],
    )
    def test_a_template_makes_as_many_pods_as_its_field_says(self, kind: str, field: str) -> None:
        template = {"spec": SPEC}
        for count in (0, 1, 3):
            found = made(manifest(kind, template=template, **{field: count}))
            assert found == [(f"{kind}/x", "here", f"x-{number}") for number in range(count)]
        assert made(manifest(kind, template=template)) == [(f"{kind}/x", "here", "x-0")]
        other = {"replicas": "parallelism", "parallelism": "replicas"}[field]
        assert len(made(manifest(kind, template=template, **{other: 5}))) == 1
        for broken in ({}, {"template": None}, {"template": []}):
            with pytest.raises(ManifestError) as caught:
                made(manifest(kind, **broken))
            told = (caught.value.problem, caught.value.field)
            assert told == (f"{kind} x has no template", "spec.template")

    def test_objects_are_called_by_their_names_in_their_namespaces(self) -> None:
        assert made(
            {"kind": "Pod", "metadata": {"name": "a", "namespace": "there"}, "spec": SPEC},
            {"kind": "Pod", "metadata": {"generateName": "b-"}, "spec": SPEC},
            {"kind": "Pod", "spec": SPEC},
            {
                "kind": "Job",
                "metadata": {"name": "j", "namespace": "there"},
                "spec": {"template": {"metadata": {"name": "t", "namespace": "odd"}, "spec": SPEC}},
            },
        ) == [
            ("Pod/a", "there", "a"),
            ("Pod/b-", "here", "b-"),
            ("Pod/pod", "here", "pod"),
            ("Job/j", "there", "j-0"),
        ]

    def test_lists_are_taken_apart_and_what_makes_no_pods_is_left_out(self) -> None:
        inner = {"kind": "List", "items": [manifest("Pod", "b", **SPEC), None]}
        documents = [
            None,
            {"kind": "List", "items": [manifest("Pod", "a", **SPEC), inner]},
            {"kind": "List"},
            {"kind": "List", "items": None},
            manifest("ConfigMap"),
            {"kind": "Service"},
            manifest("Pod", "c", **SPEC),
        ]
        assert [name for _, _, name in made(*documents)] == ["a", "b", "c"]

    @pytest.mark.parametrize("document", [{}, {"kind": 3}, {"kind": None}, [], "Pod", 7])
    def test_what_has_no_kind_is_no_manifest(self, document: Any) -> None:
        with pytest.raises(ManifestError) as caught:
            made(manifest("Pod", **SPEC), document)
        assert str(caught.value) == (
            "an object has no kind; expected manifests as kubectl takes them"
        )
        assert caught.value.code == "manifest"

    def test_a_daemon_set_cannot_be_planned(self) -> None:
        with pytest.raises(ManifestError) as caught:
            made(manifest("DaemonSet", "agent"))
        assert str(caught.value) == (
            "DaemonSet agent cannot be planned; expected Pod, Deployment, ReplicaSet, "
            "ReplicationController, StatefulSet, Job; its pods go to every node that they are "
            "allowed on"
        )

    def test_what_is_no_pod_says_which_one(self) -> None:
        with pytest.raises(ManifestError, match=r"^here/x is no pod: .*nodeName"):
            made(manifest("Pod", nodeName=7))

    @pytest.mark.parametrize(
        ("spec", "priority"),
        [
            ({}, None),
            ({"priorityClassName": "high"}, 9),
            ({"priorityClassName": "unknown"}, None),
            ({"priorityClassName": "high", "priority": 3}, 3),
            ({"priorityClassName": "none"}, 0),
        ],
    )
    def test_a_class_gives_its_priority_to_pods_without_one(
        self, spec: dict[str, Any], priority: int | None
    ) -> None:
        [found] = pods_of([manifest("Pod", **spec)], "here", {"high": 9, "none": 0})
        [usual] = pods_of([manifest("Pod", **{**spec, "priorityClassName": ""})], "here", {})
        expected = usual.pod.spec.priority if priority is None else priority
        assert found.pod.spec.priority == expected

    @pytest.mark.parametrize(
        ("resources", "asked"),
        [
            ({"requests": {"cpu": "250m", "memory": "1Gi"}}, Resources(250, 2**30)),
            ({"limits": {"cpu": 2}}, Resources(2_000, 0)),
            # What is requested counts; what is only limited is requested as well.
            (
                {"requests": {"cpu": "1"}, "limits": {"cpu": "3", "memory": 64}},
                Resources(1_000, 64),
            ),
            (None, Resources(0, 0)),
        ],
    )
    def test_what_is_limited_is_requested(self, resources: Any, asked: Resources) -> None:
        container = {"name": "c", "resources": resources}
        [found] = pods_of([manifest("Pod", containers=[container])], "here", {})
        assert (pod_request(found.pod).cpu, pod_request(found.pod).memory) == (
            asked.cpu,
            asked.memory,
        )
        # So it is for those that run before.
        [found] = pods_of([manifest("Pod", containers=[], initContainers=[container])], "here", {})
        assert pod_request(found.pod).cpu == asked.cpu

    def test_a_pod_keeps_what_its_manifest_says_and_has_a_uid_of_its_own(self) -> None:
        document = {
            "kind": "Pod",
            "metadata": {"name": "a", "labels": {"app": "web"}, "uid": "theirs"},
            "spec": {**SPEC, "nodeSelector": {"disk": "ssd"}, "tolerations": None},
        }
        [found] = pods_of([document], "here", {})
        assert found.pod.metadata.labels == {"app": "web"}
        assert found.pod.spec.node_selector == {"disk": "ssd"}
        assert found.pod.uid == "plan/here/a"


class TestGroups:
    def group(self, version: str, kind: str = "PodGroup", **metadata: Any) -> dict[str, Any]:
        named = {"name": "g", **metadata}
        return {"apiVersion": version, "kind": kind, "metadata": named, "spec": {"minMember": 2}}

    def test_groups_of_pods_are_found_among_the_objects(self) -> None:
        ours = self.group("scheduling.x-k8s.io/v1alpha1")
        there = self.group("scheduling.x-k8s.io/v1alpha1", namespace="there")
        found = groups_of(
            [
                manifest("Pod"),
                ours,
                {"kind": "List", "items": [there]},
                self.group("scheduling.x-k8s.io/v1alpha1", kind="Pod"),
                self.group("other/v1"),
            ],
            "here",
        )
        assert [(each.namespace, each.name, each.spec.min_member) for each in found] == [  # type: ignore[union-attr]
            ("here", "g", 2),
            ("there", "g", 2),
        ]

    def test_groups_of_either_api_are_groups(self) -> None:
        versions = ("scheduling.k8s.io/v1alpha2", "scheduling.x-k8s.io/v1alpha1")
        for version, kind in zip(versions, (PodGroup, CoschedulingGroup), strict=True):
            [found] = groups_of([{**self.group(version), "spec": {}}], "here")
            assert type(found) is kind

    def test_a_group_that_cannot_be_read_is_named(self) -> None:
        broken = {**self.group("scheduling.x-k8s.io/v1alpha1"), "spec": {"minMember": "many"}}
        with pytest.raises(ManifestError, match=r"^PodGroup g: "):
            groups_of([broken], "here")


class TestPlans:
    def test_a_plan_fits_if_every_pod_has_a_node(self) -> None:
        there, waits = (PlannedPod("s", "Pod/p", "p", node, "") for node in ("n", ""))
        assert PodPlan("e", (), ()).fits
        assert PodPlan("e", (there, there), ()).fits
        assert not PodPlan("e", (there, waits), ()).fits

    @pytest.mark.parametrize(
        ("node", "why", "told"),
        [
            ("n1", "", ("n1", "")),
            ("n1", "late", ("n1", "")),
            (None, "full", ("", "full")),
            (None, "", ("", "no node was found in time")),
        ],
    )
    def test_a_pod_has_its_node_or_why_it_would_wait(
        self, node: str | None, why: str, told: tuple[str, str]
    ) -> None:
        pod = SimpleNamespace(uid="u", namespace="s", name="p")
        seen = {} if node is None else {"u": SimpleNamespace(node=node)}
        engine: Any = SimpleNamespace(
            record=SimpleNamespace(pods=seen), reason_to_wait=lambda uid: why if uid == "u" else "?"
        )
        planned = planning._planned(engine, ManifestPod("Job/j", pod))  # type: ignore[arg-type]
        assert planned == PlannedPod("s", "Job/j", "p", *told)

    def decide(self, monkeypatch: pytest.MonkeyPatch, *steps: Any) -> list[str]:
        """What happens until it is decided on `a` and `b`; each look is a second later."""
        did: list[str] = []
        now = [0.0]
        engine: Any = SimpleNamespace(record=SimpleNamespace(pods={}), reasons={})
        coming = list(steps)

        async def do(action: Any) -> None:
            assert action(None) is None
            did.append("turn")
            if coming:
                coming.pop(0)(engine)

        async def sleep(seconds: float) -> None:
            assert seconds == 0.02
            now[0] += 1.0

        engine.cluster = SimpleNamespace(do=do)
        engine.reason_to_wait = lambda uid: engine.reasons.get(uid, "")
        engine.look_again = lambda: did.append("look")
        monkeypatch.setattr(planning.asyncio, "sleep", sleep)
        monkeypatch.setattr(planning, "time", SimpleNamespace(monotonic=lambda: now[0]))
        asyncio.run(planning._decided(engine, ["a", "b"]))
        return did

    def test_it_is_decided_when_every_pod_has_a_node_or_a_reason(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def placed(engine: Any) -> None:
            engine.record.pods["a"] = "n"

        def refused(engine: Any) -> None:
            engine.reasons["b"] = "full"

        assert self.decide(monkeypatch, placed, refused) == ["turn", "look", "turn"]
        assert self.decide(monkeypatch, placed).count("turn") == 30

    def test_a_plan_knows_all_that_there_is_and_the_groups_of_the_manifests(self) -> None:
        def store(*names: str) -> Any:
            return SimpleNamespace(objects={name: name for name in names})

        def pod(name: str, node: str) -> Any:
            return SimpleNamespace(name=name, spec=SimpleNamespace(node_name=node))

        bound, waits = pod("p", "n0"), pod("q", "")
        watches: Any = SimpleNamespace(
            namespaces=store("space"),
            nodes=store("n0", "n1"),
            volumes=store("v"),
            claims=store("c"),
            budgets=store("b"),
            groups=[store("g1"), store("g2")],
            pods=SimpleNamespace(objects={"p": bound, "q": waits}),
        )
        pods, engine = Mock(), Mock()
        budgets: list[str] = []
        pods.set_budgets.side_effect = lambda given: budgets.extend(given)
        engine.tell.side_effect = lambda known: known(pods)
        planning._show_cluster(engine, watches, ["own"])  # type: ignore[list-item]
        told = [each for each in pods.mock_calls if each[0] != "set_budgets"]
        assert told == [
            call.set_namespace("space"),
            call.set_node("n0"),
            call.set_node("n1"),
            call.set_volume("v"),
            call.set_claim("c"),
            call.set_group("g1"),
            call.set_group("g2"),
            call.set_group("own"),
        ]
        assert budgets == ["b"]
        # Pods that wait there are left out.
        assert engine.show.mock_calls == [call(bound, is_fixed=True)]
