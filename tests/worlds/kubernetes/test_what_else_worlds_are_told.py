"""Further lives of pods and nodes, and all that a world and Kubernetes are told of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from test_pod_cluster import leaving, node, on_node, pod
from test_what_worlds_are_told import NO_TAINTS, ToldCluster

from argosy.kubernetes.objects import Node, PersistentVolume, PersistentVolumeClaim, Pod, PodStatus
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.gangs import NAME_LABEL, SIZE_LABEL
from argosy.worlds.kubernetes.tracked import PodState
from argosy.worlds.kubernetes.unsupported import TOO_MANY_RESOURCES


def asking(uid: str, **requests: str) -> Pod:
    made = pod(uid)
    document: dict[str, Any] = msgspec.to_builtins(made)
    document["spec"]["containers"][0]["resources"]["requests"] |= requests
    return msgspec.convert(document, Pod)


def large(name: str, cpu: str = "8") -> Node:
    made = node(name)
    room = {**made.status.allocatable, "cpu": cpu}
    return replace(made, status=replace(made.status, allocatable=room))


def group_member(uid: str, size: int, cpu: int = 1) -> Pod:
    made = pod(uid, cpu)
    labels = {NAME_LABEL: "g", SIZE_LABEL: str(size)}
    return replace(made, metadata=replace(made.metadata, labels=labels))


def test_a_pod_without_a_node_is_decided_on_anew_when_one_comes() -> None:
    told = ToldCluster("n0")
    told.pods.set_pod(pod("p", 6))
    told.are(f"mark machine n0: {NO_TAINTS}", "submit one.p (6000m 0Gi)")
    assert [each.uid for each in told.pods.waits("one.p")] == ["p"]
    told.pods.look_again()
    told.are()
    told.pods.set_node(node("n1"))
    told.are("add n1 (4000m 8Gi)", f"mark machine n1: {NO_TAINTS}")
    assert told.pods.needs_look
    told.pods.look_again()
    told.are()
    assert not told.pods.needs_look
    told.pods.set_node(large("n2"))
    told.are("add n2 (8000m 8Gi)", f"mark machine n2: {NO_TAINTS}")
    told.pods.look_again()
    told.are("cancel one.p", "submit one.p~2 (6000m 0Gi)")
    told.pods.set_node(large("n0"))
    told.are("fit n0 to 8000m 8Gi")
    told.pods.look_again()
    told.are()


def test_a_waiting_pod_that_changes_is_submitted_as_it_is_then() -> None:
    told = ToldCluster("n0")
    told.pods.set_pod(pod("p"))
    told.are(f"mark machine n0: {NO_TAINTS}", "submit one.p (1000m 0Gi)")
    told.pods.set_pod(pod("p"))
    told.are()
    told.pods.set_pod(pod("p", nodeSelector={"disk": "ssd"}))
    told.are("cancel one.p", "submit one.p~2 (1000m 0Gi)")
    told.pods.set_pod(pod("p", 2, schedulingGates=[{"name": "wait"}]))
    told.are("cancel one.p~2")
    assert told.pods.pods["p"].state is PodState.OUTSIDE
    told.pods.set_pod(pod("p", 2))
    told.are("submit one.p~3 (2000m 0Gi)")
    told.pods.set_pod(leaving(pod("p", 2)))
    told.are("cancel one.p~3")
    assert told.pods.pods == {}
    assert told.pods.rulebook.is_unused
    assert len(told.pods._shapes) == 0


def test_a_pod_that_is_resized_on_its_node_counts_with_what_it_asks_for_then() -> None:
    told = ToldCluster("n0")
    told.pods.set_pod(pod("p", 1, on="n0", schedulerName="another"))
    told.pods.set_pod(pod("held", 3))
    told.are(
        "adopt one.p (1000m 0Gi) on n0 by kubernetes",
        f"mark machine n0: {NO_TAINTS}",
        "submit one.held (3000m 0Gi)",
    )
    told.pods.set_pod(pod("p", 2, on="n0", schedulerName="another"))
    told.are("adopt one.p~2 (2000m 0Gi) on n0 by kubernetes, replacing one.p/0", "cancel one.p")
    assert told.pods.free_on("n0")["cpu"] == 2_000
    # The world does not know it yet: the room itself decides.
    assert told.pods.claimed("one.held", "n0")
    assert told.pods.launch(7, "one.held")
    told.are("order: nominate n0 for held")
    told.pods.set_pod(pod("p", 1, on="n0", schedulerName="another"))
    told.are(
        "adopt one.p~3 (1000m 0Gi) on n0 by kubernetes, replacing one.p~2/0",
        "cancel one.p~2",
        "order: bind held to n0",
    )
    assert told.pods.free_on("n0")["cpu"] == 0


def test_other_labels_of_a_pod_on_its_node_count_without_another_job() -> None:
    told = ToldCluster("n0")
    there = on_node(pod("p"), "n0")
    told.pods.set_pod(there)
    told.are(f"mark machine n0: {NO_TAINTS}", "adopt one.p (1000m 0Gi) on n0 by kubernetes")
    avoiding = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [avoiding]}
    told.pods.set_node(node("n0", zone="a"))
    told.pods.set_pod(pod("q", affinity={"podAntiAffinity": required}))
    away = "away from pods app=web in one by zone"
    brought = "away from pods that avoid app=web in one by zone"
    told.are(
        "relabel n0 {'zone': 'a'}",
        f"mark machine n0: {away}",
        f"mark machine n0: {brought}",
        "submit one.q (1000m 0Gi)",
        "settle",
    )
    labelled = replace(there, metadata=replace(there.metadata, labels={"app": "web"}))
    told.pods.set_pod(labelled)
    told.are(f"unmark machine n0: {away}")
    told.pods.set_pod(leaving(labelled))
    told.are(f"mark machine n0: {away}", f"unmark machine n0: {away}")
    told.pods.set_pod(leaving(labelled))
    told.are()
    told.pods.remove_pod("p")
    told.are(f"mark machine n0: {away}", "cancel one.p")


def test_a_binding_is_known_to_be_done_once_and_only_while_it_is_asked_for() -> None:
    told = ToldCluster("n0")
    told.pods.set_pod(pod("p"))
    told.pods.flush()
    told.pods.bound("p")
    assert told.pods.pods["p"].state is PodState.WAITING
    assert told.world.place("one.p", "n0")
    assert told.pods.pods["p"].state is PodState.BINDING
    told.pods.bound("p")
    assert told.pods.pods["p"].state is PodState.BOUND
    told.pods.pushed_off("one.p", Why.CANCELLED)
    assert told.pods.pods["p"].state is PodState.LEAVING
    told.pods.bound("p")
    assert told.pods.pods["p"].state is PodState.LEAVING
    told.pods.bound("nobody")


def test_a_pod_that_did_not_get_its_node_leaves_the_room_to_who_is_held_there() -> None:
    for how in ("refused", "told to leave"):
        told = ToldCluster("n0")
        told.pods.set_pod(pod("first", 3))
        told.pods.set_pod(pod("second", 3))
        told.pods.flush()
        assert told.world.place("one.first", "n0")
        assert told.pods.claimed("one.second", "n0")
        assert told.pods.launch(9, "one.second")
        told.world.told()
        if how == "told to leave":
            told.pods.pushed_off("one.first", Why.PREEMPTED)
            told.pods.follow_up()
            told.are("cancel one.first", "order: evict first, preempted")
            told.pods.bind_failed("first")
            told.are(
                "try 1 is gone",
                "submit one.first~2 (3000m 0Gi)",
                "order: bind second to n0",
            )
            continue
        told.pods.bind_failed("first")
        told.are("try 1 is refused, stale", "order: bind second to n0")


def test_pods_that_become_ours_are_no_promises_any_more() -> None:
    told = ToldCluster("n0")
    leads: list[bool] = []
    told.pods._is_ours = lambda each: bool(leads)
    promised = replace(pod("p", 3), status=PodStatus(nominated_node_name="n0"))
    told.pods.set_pod(promised)
    told.are("adopt one.p~nominated1 (3000m 0Gi) on n0 by nominated")
    leads.append(True)
    told.pods.set_pod(promised)
    lines = ["cancel one.p~nominated1", "submit one.p (3000m 0Gi)"]
    told.pods.flush()
    assert [line for line in told.world.told() if not line.startswith("mark")] == lines


def test_a_pod_that_asks_for_too_many_resources_is_refused_until_it_asks_for_fewer() -> None:
    told = ToldCluster("n0")
    names = [f"example.com/r{at}" for at in range(40)]
    told.pods.set_pod(asking("p", **dict.fromkeys(names, "1")))
    told.are(f"mark machine n0: {NO_TAINTS}")
    assert [each.obstacle for each in told.pods.refused] == [TOO_MANY_RESOURCES]
    assert told.pods.pods["p"].state is PodState.OUTSIDE
    told.pods.set_pod(asking("p", **{names[0]: "1"}))
    told.are("submit one.p (1000m 0Gi)")
    assert told.pods.pods["p"].obstacle == ""


def test_a_member_that_meets_an_obstacle_does_not_count_for_its_group() -> None:
    told = ToldCluster("n0")
    told.pods.set_pod(group_member("a", 3))
    told.pods.set_pod(group_member("b", 3))
    told.pods.flush()
    assert [each.obstacle for each in told.pods.refused] == ["2 of 3 pods of group g exist"] * 2
    told.pods.refused.clear()
    claims = [{"name": "x", "resourceClaimName": "y"}]
    blocked = pod("b", resourceClaims=claims)
    told.pods.set_pod(replace(blocked, metadata=group_member("b", 3).metadata))
    told.pods.set_pod(group_member("c", 3))
    told.pods.flush()
    said = {each.uid: each.obstacle for each in told.pods.refused}
    lacking = (
        "2 of 3 pods of group g can be scheduled: something else keeps the others from being"
        " scheduled"
    )
    assert said == {
        "a": lacking,
        "b": "it uses resource claims, which are not supported",
        "c": lacking,
    }


def volume(name: str) -> PersistentVolume:
    return msgspec.convert({"metadata": {"name": name}}, PersistentVolume)


def claim(name: str, namespace: str = "one") -> PersistentVolumeClaim:
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata = {"name": name, "namespace": namespace, "annotations": bound}
    document = {"metadata": metadata, "spec": {"volumeName": "v"}}
    return msgspec.convert(document, PersistentVolumeClaim)


def test_a_volume_that_goes_and_comes_keeps_pods_waiting_meanwhile() -> None:
    told = ToldCluster("n0")
    using = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
    told.pods.set_volume(volume("v"))
    told.pods.set_claim(claim("c"))
    told.pods.remove_volume("v")
    told.pods.remove_volume("v")
    told.pods.set_pod(pod("p", volumes=using))
    told.are(f"mark machine n0: {NO_TAINTS}")
    assert told.pods.pods["p"].obstacle == 'persistentvolume "v" not found'
    told.pods.set_volume(volume("v"))
    told.are("submit one.p (1000m 0Gi)")
    told.pods.remove_claim("one", "c")
    told.pods.remove_claim("one", "c")
    told.pods.set_pod(pod("q", volumes=using))
    told.are()
    assert told.pods.pods["q"].obstacle == 'persistentvolumeclaim "c" not found'
    told.pods.set_claim(claim("c", "two"))
    told.are()
    told.pods.set_claim(claim("c"))
    told.are("submit one.q (1000m 0Gi)")


@pytest.mark.parametrize("seen", [False, True])
def test_a_pod_that_leaves_before_it_comes_back_to_its_node_is_forgotten(seen: bool) -> None:
    told = ToldCluster("n0", "n1")
    told.pods.set_pod(pod("p"))
    told.pods.flush()
    assert told.world.place("one.p", "n0")
    told.pods.remove_node("n0")
    told.world.told()
    if seen:
        # It was bound elsewhere after all.
        told.pods.set_pod(on_node(pod("p"), "n1"))
        told.are("adopt one.p~2 (1000m 0Gi) on n1 by kubernetes")
    else:
        told.pods.remove_pod("p")
        told.are()
    told.pods.set_node(node("n0"))
    told.are("add n0 (4000m 8Gi)", f"mark machine n0: {NO_TAINTS}")
    if seen:
        tracked = told.pods.pods["p"]
        assert (tracked.sent_to, tracked.node, tracked.state) == ("", "n1", PodState.BOUND)
