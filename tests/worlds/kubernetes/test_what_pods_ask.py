"""Requests, selectors, taints, priorities, and what is not supported: case by case."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.kubernetes import kinds
from argosy.kubernetes.objects import (
    LabelSelector,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    SelectorRequirement,
    Taint,
    Toleration,
)
from argosy.worlds.kubernetes.node_rules import NodeRules, tolerates
from argosy.worlds.kubernetes.pod_wishes import described_wishes
from argosy.worlds.kubernetes.priorities import HIGHEST, Precedences
from argosy.worlds.kubernetes.requests import node_capacity, pod_request, resized
from argosy.worlds.kubernetes.selectors import holds, selects
from argosy.worlds.kubernetes.shapes import has_changed
from argosy.worlds.kubernetes.unsupported import obstacles_to_scheduling
from argosy.worlds.kubernetes.volumes import KnownVolumes


def pod(**spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p", "namespace": "one"}, "spec": spec}, Pod)


def asks(name: str = "c", *, sidecar: bool = False, **requests: str) -> dict[str, Any]:
    more = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "resources": {"requests": requests}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({}, 0),
        ({"containers": [asks(cpu="1"), asks(cpu="500m")]}, 1500),
        ({"containers": [asks(cpu="1")], "initContainers": [asks(cpu="3"), asks(cpu="2")]}, 3000),
        ({"containers": [asks(cpu="1")], "initContainers": [asks(cpu="2", sidecar=True)]}, 3000),
        (
            {
                "containers": [asks(cpu="1")],
                "initContainers": [asks(cpu="2", sidecar=True), asks(cpu="3")],
            },
            5000,
        ),
        (
            {
                "containers": [asks(cpu="1")],
                "initContainers": [asks(cpu="3"), asks(cpu="2", sidecar=True)],
            },
            3000,
        ),
        ({"containers": [asks(cpu="1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [asks(cpu="1")], "resources": {"requests": {"cpu": "4"}}}, 4000),
        (
            {
                "containers": [asks(cpu="1")],
                "resources": {"requests": {"cpu": "4"}},
                "overhead": {"cpu": "1"},
            },
            5000,
        ),
    ],
)
def test_a_pod_asks_for_the_most_that_it_uses_at_once(spec: dict[str, Any], cpu: int) -> None:
    request = pod_request(pod(**spec))
    assert request.cpu == cpu
    assert request.extras["pods"] == 1


def test_only_some_resources_can_be_asked_for_as_a_whole() -> None:
    containers = [asks(**{"example.com/gpu": "1", "hugepages-2Mi": "2Mi"})]
    whole = {"requests": {"example.com/gpu": "8", "hugepages-2Mi": "4Mi"}}
    extras = pod_request(pod(containers=containers, resources=whole)).extras
    assert extras == {"example.com/gpu": 1, "hugepages-2Mi": 4 << 20, "pods": 1}


def test_a_node_tells_of_resources_that_somebody_wants() -> None:
    offered = {"cpu": "2", "memory": "1Ki", "pods": "9", "example.com/gpu": "3", "other.io/x": "1"}
    node = msgspec.convert({"status": {"allocatable": offered}}, Node)
    capacity = node_capacity(node, ["example.com/gpu"])
    assert dict(capacity.items()) == {"cpu": 2000, "memory": 1024, "example.com/gpu": 3, "pods": 9}


@pytest.mark.parametrize(
    ("operator", "values", "label", "result"),
    [
        ("In", ("x", "y"), "x", True),
        ("In", ("x",), None, False),
        ("NotIn", ("x",), "x", False),
        ("NotIn", ("x",), None, True),
        ("Exists", (), "", True),
        ("DoesNotExist", (), "", False),
        ("Gt", ("5",), "6", True),
        ("Gt", ("5",), "5", False),
        ("Lt", ("5",), "4", True),
        ("Lt", ("5",), "x", False),
        ("Lt", ("5",), None, False),
        ("Gt", ("5",), "1_000", False),
        ("Gt", ("5",), "٦", False),
        ("Gt", ("5",), str(2**63), False),
        ("Gt", ("5", "6"), "9", False),
        ("Other", ("x",), "x", False),
    ],
)
def test_a_requirement_holds(
    operator: str, values: tuple[str, ...], label: str | None, result: bool
) -> None:
    requirement = SelectorRequirement(key="k", operator=operator, values=values)
    assert holds(requirement, {} if label is None else {"k": label}) is result


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selects(None, {})
    assert selects(LabelSelector(), {})


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        (Toleration(key="k", value="5"), True),
        (Toleration(key="k", value="6"), False),
        (Toleration(key="k", operator="Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration(), False),
        (Toleration(key="k", value="5", effect="NoSchedule"), True),
        (Toleration(key="k", value="5", effect="NoExecute"), False),
        (Toleration(key="k", operator="Gt", value="4"), True),
        (Toleration(key="k", operator="Gt", value="5"), False),
        (Toleration(key="k", operator="Lt", value="6"), True),
        (Toleration(key="k", operator="Lt", value="x"), False),
    ],
)
def test_a_taint_is_tolerated(toleration: Toleration, is_tolerated: bool) -> None:
    assert tolerates([toleration], Taint(key="k", value="5", effect="NoSchedule")) is is_tolerated


def test_tolerations_of_preferences_make_no_other_rules() -> None:
    preferred = [{"key": "k", "operator": "Exists", "effect": "PreferNoSchedule"}]
    assert NodeRules.of(pod(tolerations=preferred)).key() == NodeRules.of(pod()).key()


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=30, unique=True), st.data())
def test_precedence_has_the_order_of_priority(priorities: list[int], data: st.DataObject) -> None:
    known = data.draw(st.lists(st.sampled_from(priorities), max_size=5)) if priorities else []
    precedences = Precedences(known)
    found = {each: precedences.of(each) for each in priorities}
    for lower, higher in pairwise(sorted(priorities)):
        assert found[lower] <= found[higher] < HIGHEST


def test_the_priorities_of_classes_are_told_apart() -> None:
    precedences = Precedences([1, 2, 3, 1_000_000_000])
    found = [precedences.of(each) for each in (-5, 0, 1, 2, 3, 1_000_000_000, 2_000_000_000)]
    assert found == sorted(set(found))


def claimed(**volume: Any) -> Pod:
    return pod(volumes=[{"name": "data", **volume}])


def known(
    *, is_bound: bool = True, is_leaving: bool = False, has_volume: bool = True, mode: str = "RWO"
) -> KnownVolumes:
    found = KnownVolumes()
    metadata: dict[str, Any] = {"name": "data", "namespace": "one"}
    if is_bound:
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    if is_leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"volumeName": "pv", "accessModes": [mode]}
    claim = msgspec.convert({"metadata": metadata, "spec": spec}, PersistentVolumeClaim)
    found.claims["one", "data"] = claim
    found.claims["one", "p-data"] = claim
    if has_volume:
        labels = {"topology.kubernetes.io/zone": "a__b"}
        document = {"metadata": {"name": "pv", "labels": labels}}
        found.volumes["pv"] = msgspec.convert(document, PersistentVolume)
    return found


CLAIM = {"persistentVolumeClaim": {"claimName": "data"}}


@pytest.mark.parametrize(
    ("volumes", "obstacle"),
    [
        (known(), ""),
        (KnownVolumes(), 'persistentvolumeclaim "data" not found'),
        (known(is_bound=False), 'persistentvolumeclaim "data" is not bound to a volume yet'),
        (known(is_leaving=True), 'persistentvolumeclaim "data" is being deleted'),
        (known(has_volume=False), 'persistentvolume "pv" not found'),
    ],
)
def test_a_pod_waits_for_its_volumes(volumes: KnownVolumes, obstacle: str) -> None:
    assert obstacles_to_scheduling(claimed(**CLAIM), volumes) == obstacle


@pytest.mark.parametrize("volume", [CLAIM, {"ephemeral": {}}])
@pytest.mark.parametrize(("zone", "is_admitted"), [("a", True), ("c", False), ("", True)])
def test_a_volume_is_used_in_its_zones(
    volume: dict[str, Any], zone: str, is_admitted: bool
) -> None:
    wanting = claimed(**volume)
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    node = msgspec.convert({"metadata": {"name": "n", "labels": labels}}, Node)
    rules = NodeRules.of(wanting, known().node_rules(wanting))
    assert rules.admits(node) is is_admitted


def test_claims_for_one_pod_are_known() -> None:
    assert known(mode="ReadWriteOncePod").for_one_pod(claimed(**CLAIM)) == ["data"]
    assert known().for_one_pod(claimed(**CLAIM)) == []


def test_resource_claims_are_not_supported() -> None:
    wanting = pod(resourceClaims=[{"name": "gpu"}])
    assert "not supported" in obstacles_to_scheduling(wanting, KnownVolumes())


def test_wishes_that_make_no_difference_are_told() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
    wishing = pod(
        affinity=dict.fromkeys(("nodeAffinity", "podAffinity", "podAntiAffinity"), preferred),
        topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "ScheduleAnyway"}
        ],
    )
    assert len(described_wishes(wishing)) == 4
    assert described_wishes(pod()) == []


def being_resized(asked: str, has: str, granted: str = "", reason: str = "Deferred") -> Pod:
    """The cpu that a container asks for, has, and has been granted."""
    document = {
        "metadata": {"name": "p", "namespace": "default", "uid": "p"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": asked}}}]},
        "status": {
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
            "containerStatuses": [
                {
                    "name": "c",
                    "resources": {"requests": {"cpu": has}},
                    "allocatedResources": {"cpu": granted} if granted else {},
                }
            ],
        },
    }
    return kinds.PODS.decode(msgspec.json.encode(document))


def test_a_pod_that_is_resized_counts_with_the_most_of_what_it_wants_and_has() -> None:
    assert pod_request(being_resized("2", "1")).cpu == 2_000
    assert pod_request(being_resized("1", "2")).cpu == 2_000
    assert pod_request(being_resized("1", "1", granted="3")).cpu == 3_000
    assert resized(being_resized("1", "1000m")) == {}


def test_what_a_node_can_never_grant_does_not_count() -> None:
    assert pod_request(being_resized("8", "1", granted="1", reason="Infeasible")).cpu == 1_000


def test_a_resize_is_a_change() -> None:
    assert has_changed(being_resized("1", "1"), being_resized("1", "2"))
    assert not has_changed(being_resized("1", "1"), being_resized("1", "1", granted="1"))


def test_a_volume_that_is_not_known_does_not_hide_the_places_of_others() -> None:
    known = KnownVolumes()
    zone = {"topology.kubernetes.io/zone": "east"}
    volume = {"metadata": {"name": "second", "labels": zone}}
    known.volumes["second"] = msgspec.convert(volume, PersistentVolume)
    for name in ("first", "second"):
        claim = {"metadata": {"name": name, "namespace": "one"}, "spec": {"volumeName": name}}
        known.claims["one", name] = msgspec.convert(claim, PersistentVolumeClaim)
    volumes = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("first", "second")
    ]
    document = {
        "metadata": {"name": "p", "namespace": "one", "uid": "p"},
        "spec": {"containers": [], "volumes": volumes},
    }
    assert len(known.node_rules(msgspec.convert(document, Pod))) == 1


def test_a_claim_that_is_not_known_does_not_hide_others_for_one_pod() -> None:
    missing = {"name": "missing", "persistentVolumeClaim": {"claimName": "missing"}}
    wanting = pod(volumes=[missing, {"name": "data", **CLAIM}])
    assert known(mode="ReadWriteOncePod").for_one_pod(wanting) == ["data"]
