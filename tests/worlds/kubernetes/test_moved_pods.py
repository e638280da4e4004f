"""Pods that engines move: where the pods that take their place go."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from recorded_pod_world import RecordedPodWorld
from test_pod_cluster import node, on_node

from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.gangs import NAME_LABEL, SIZE_LABEL
from argosy.worlds.kubernetes.moves import KEPT_FOR, MOVABLE, RelocatingCluster, may_move
from argosy.worlds.kubernetes.tracked import BindOrder, EvictOrder


def made_by(maker: str, uid: str, cpu: int = 1, kind: str = "ReplicaSet", **spec: Any) -> Pod:
    """A pod of a controller; of none if `maker` is empty."""
    owner = {"kind": kind, "name": maker, "uid": maker, "controller": True}
    metadata: dict[str, Any] = {"name": uid, "namespace": "one", "uid": uid}
    if maker:
        metadata["ownerReferences"] = [owner]
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    full = {"schedulerName": "argosy", "containers": [container], **spec}
    return msgspec.convert({"metadata": metadata, "spec": full}, Pod)


def moved(*, maker: str = "web") -> tuple[RelocatingCluster, RecordedPodWorld]:
    """A pod "old" runs on n0, and an engine has just moved it to n1."""
    world = RecordedPodWorld()
    pods = RelocatingCluster(lambda: world, lambda pod: pod.spec.scheduler_name == "argosy")
    world.cluster = pods
    for name in ("n0", "n1"):
        pods.set_node(node(name))
    old = made_by(maker, "old", 3)
    pods.set_pod(old)
    pods.flush()
    world.place("one.old", "n0")
    assert pods.orders.popleft() == BindOrder(old, "n0")
    pods.bound("old")
    pods.set_pod(on_node(old, "n0"))
    world.move("one.old", "n1")
    return pods, world


def test_a_moved_pod_is_evicted_and_its_successor_goes_where_it_was_to_go() -> None:
    pods, world = moved()
    [order] = pods.orders
    assert isinstance(order, EvictOrder)
    assert (order.pod.uid, order.why) == ("old", Why.MOVED)
    pods.orders.clear()
    pods.set_pod(made_by("web", "new", 3))
    pods.flush()
    assert [(order.pod.uid, order.node) for order in pods.orders] == [("new", "n1")]  # type: ignore[union-attr]
    pods.remove_pod("old")
    assert list(world.placed) == ["one.new"]
    assert not world.waiting
    assert not pods.has_places


def test_room_is_kept_from_others_until_the_successor_comes() -> None:
    pods, world = moved()
    pods.remove_pod("old")
    pods.orders.clear()
    pods.set_pod(made_by("other", "stranger", 3))
    pods.flush()
    assert not world.place("one.stranger", "n1")
    pods.set_pod(made_by("web", "larger", 4))
    pods.flush()
    assert "one.larger" in world.waiting, "it is another kind of pod"
    assert not pods.orders
    pods.set_pod(made_by("web", "new", 3))
    pods.flush()
    assert [order.pod.uid for order in pods.orders] == ["new"]


def test_a_place_has_one_successor() -> None:
    pods, world = moved()
    for uid in ("new", "second"):
        pods.set_pod(made_by("web", uid, 3))
    pods.flush()
    assert "one.second" in world.waiting


def test_room_is_not_kept_for_ever() -> None:
    pods, world = moved()
    for _ in range(2 * KEPT_FOR):
        pods.expire_places()
    assert pods.has_places, "the pod takes its time to leave"
    pods.remove_pod("old")
    for _ in range(KEPT_FOR):
        pods.expire_places()
    assert pods.has_places
    pods.expire_places()
    assert not pods.has_places
    assert not world.placed


def test_a_pod_that_a_budget_keeps_stays_and_nothing_is_kept_for_it() -> None:
    pods, world = moved()
    pods.eviction_failed("old")
    assert [where for _, where in world.placed.values()] == ["n0"]
    assert not pods.has_places
    pods.set_pod(made_by("other", "stranger", 4))
    pods.flush()
    assert world.place("one.stranger", "n1")


def test_room_is_lost_with_its_node() -> None:
    pods, world = moved()
    pods.remove_node("n1")
    assert not pods.has_places
    pods.set_pod(made_by("web", "new", 3))
    pods.flush()
    assert "one.new" in world.waiting


def test_a_world_that_is_built_anew_keeps_no_room() -> None:
    pods, _ = moved()
    pods.recover({"one.old": 1}, {("one.old", 0): "n1"})
    assert not pods.has_places


@pytest.mark.parametrize(
    ("maker", "kind", "said", "expected"),
    [
        ("web", "ReplicaSet", "", True),
        ("", "", "", False),
        ("", "", "true", True),
        ("", "", "True", True),
        ("web", "ReplicaSet", "false", False),
        ("web", "ReplicaSet", "FALSE", False),
        ("web", "ReplicaSet", "perhaps", True),
        ("log", "DaemonSet", "", False),
        ("n0", "Node", "", False),
    ],
)
def test_only_pods_that_somebody_makes_anew_may_move(
    maker: str, kind: str, said: str, expected: bool
) -> None:
    pod = made_by(maker, "p", kind=kind)
    if said:
        metadata = msgspec.structs.replace(pod.metadata, annotations={MOVABLE: said})
        pod = msgspec.structs.replace(pod, metadata=metadata)
    assert may_move(pod) is expected


def test_a_place_can_be_moved_again_before_anybody_has_come() -> None:
    pods, world = moved()
    pods.set_node(node("n2"))
    world.move("one.old", "n2")
    pods.orders.clear()
    pods.set_pod(made_by("web", "new", 3))
    pods.flush()
    assert [(order.pod.uid, order.node) for order in pods.orders] == [("new", "n2")]  # type: ignore[union-attr]


def test_a_new_world_is_told_nothing_of_places_that_were_given_up_before() -> None:
    pods, world = moved()
    pods.pushed_off("one.old", Why.PREEMPTED)
    pods.recover({}, {})
    world.cancelled.clear()
    pods.follow_up()
    assert world.cancelled == []


def test_a_pod_that_shares_its_job_with_others_is_only_evicted() -> None:
    world = RecordedPodWorld()
    pods = RelocatingCluster(lambda: world, lambda pod: pod.spec.scheduler_name == "argosy")
    world.cluster = pods
    pods.set_node(node("n0"))
    group = {NAME_LABEL: "ab", SIZE_LABEL: "2"}
    for uid in ("a", "b"):
        alone = made_by("web", uid)
        metadata = msgspec.structs.replace(alone.metadata, labels=group)
        pods.set_pod(msgspec.structs.replace(alone, metadata=metadata))
    pods.flush()
    [job] = world.waiting
    for index in (0, 1):
        assert pods.claimed(job, "n0", index)
        pods.launch(index + 1, job, index)
    assert [type(order) for order in pods.orders] == [BindOrder, BindOrder]
    pods.orders.clear()
    pods.pushed_off(job, Why.MOVED, 1)
    pods.follow_up()
    [order] = pods.orders
    assert isinstance(order, EvictOrder)
    assert (order.pod.uid, order.why) == ("b", Why.MOVED)
    assert not pods.has_places
    assert world.cancelled == [(job, [1])]
