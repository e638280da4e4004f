"""Room that other schedulers have promised, and what becomes of it while pods leave."""

from __future__ import annotations

from msgspec.structs import replace
from recorded_pod_world import RecordedPodWorld
from test_pod_cluster import cluster, node, on_node, pod

from argosy.kubernetes.objects import PodStatus
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.nominations import NOMINATED
from argosy.worlds.kubernetes.tracked import PodState


def with_a_leaving_pod(cpu: int) -> tuple[PodCluster, RecordedPodWorld]:
    """A node of four cores that a pod of so many has been told to leave."""
    pods, world = cluster()
    pods.set_node(node("n0"))
    low = pod("low", cpu)
    pods.set_pod(low)
    pods.flush()
    world.place("one.low", "n0")
    pods.bound("low")
    pods.set_pod(on_node(low, "n0"))
    pods.pushed_off("one.low", Why.PREEMPTED)
    pods.follow_up()
    pods.orders.clear()
    assert pods.pods["low"].state is PodState.LEAVING
    return pods, world


def promise(pods: PodCluster, cpu: int) -> None:
    theirs = pod("theirs", cpu, schedulerName="other", priority=100)
    pods.set_pod(replace(theirs, status=PodStatus(nominated_node_name="n0")))


def claims(world: RecordedPodWorld) -> list[str]:
    return [name for name, by in world.adopted if by == NOMINATED]


def test_a_promise_is_claimed_when_who_leaves_is_really_gone() -> None:
    pods, world = with_a_leaving_pod(3)
    promise(pods, 4)
    assert claims(world) == []
    pods.remove_pod("low")
    assert claims(world) == ["one.theirs~nominated1"]


def test_a_promise_that_is_claimed_is_not_kept_free_a_second_time() -> None:
    pods, world = with_a_leaving_pod(2)
    promise(pods, 2)
    assert claims(world) == ["one.theirs~nominated1"]
    pods.set_pod(pod("ours", 2))
    pods.flush()
    assert world.place("one.ours", "n0")
    assert pods.pods["ours"].state is PodState.BINDING


def test_a_new_world_is_told_nothing_of_claims_that_an_earlier_one_lost() -> None:
    pods, world = with_a_leaving_pod(2)
    promise(pods, 2)
    [claim] = claims(world)
    pods.pushed_off(claim, Why.PREEMPTED)
    pods.recover({}, {})
    world.cancelled.clear()
    pods.follow_up()
    assert world.cancelled == []
