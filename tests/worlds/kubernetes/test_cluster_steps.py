"""What single changes of pods and nodes lead to, one step at a time."""

from __future__ import annotations

import msgspec
from recorded_pod_world import RecordedPodWorld
from test_pod_cluster import cluster, leaving, node, on_node, pod

from argosy.kubernetes.objects import Pod, PodStatus
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.gangs import NAME_LABEL, SIZE_LABEL
from argosy.worlds.kubernetes.tracked import BindOrder, PodState


def begun(*nodes: str) -> tuple[PodCluster, RecordedPodWorld]:
    pods, world = cluster()
    for name in nodes:
        pods.set_node(node(name))
    return pods, world


def run(pods: PodCluster, world: RecordedPodWorld, made: Pod, on: str = "n0") -> None:
    """The pod is on its node, and Kubernetes says so."""
    pods.set_pod(made)
    pods.flush()
    assert world.place(f"one.{made.name}", on)
    pods.bound(made.uid)
    pods.set_pod(on_node(made, on))
    pods.orders.clear()


def grouped(uid: str, size: int) -> Pod:
    plain = pod(uid)
    labels = {NAME_LABEL: "g", SIZE_LABEL: str(size)}
    return msgspec.structs.replace(
        plain, metadata=msgspec.structs.replace(plain.metadata, labels=labels)
    )


def held(pods: PodCluster, world: RecordedPodWorld) -> None:
    """A pod "high" of four cores is to take the place of "low", which has not left yet."""
    run(pods, world, pod("low", 2))
    pods.set_pod(pod("high", 4, priority=1_000))
    pods.flush()
    assert world.place("one.high", "n0")
    assert pods.pods["high"].state is PodState.HELD
    pods.orders.clear()


def test_a_node_that_grows_has_room_for_who_waits_for_it() -> None:
    pods, world = begun("n0")
    held(pods, world)
    larger = {"cpu": "6", "memory": "8Gi", "pods": "10"}
    status = msgspec.structs.replace(node("n0").status, allocatable=larger)
    pods.set_node(msgspec.structs.replace(node("n0"), status=status))
    assert [(type(order), order.pod.uid) for order in pods.orders] == [(BindOrder, "high")]  # type: ignore[union-attr]


def test_pods_that_ended_well_count_for_their_group_and_others_do_not() -> None:
    for phase, exists in (("Succeeded", 1), ("Failed", 0)):
        pods, _ = begun("n0")
        first = grouped("a", 2)
        pods.set_pod(first)
        pods.set_pod(grouped("c", 2))
        pods.flush()
        gang = pods.pods["c"].gang
        assert gang is not None
        pods.set_pod(msgspec.structs.replace(first, status=PodStatus(phase=phase)))
        assert gang.succeeded == exists


def test_an_abandoned_pod_that_was_taken_up_again_keeps_its_job() -> None:
    pods, world = begun("n0")
    pods.set_pod(pod("a"))
    pods.flush()
    job = world.waiting.pop("one.a")
    assert [each.uid for each in pods.waits("one.a")] == ["a"]
    world.waiting["one.a"] = job
    pods.second_looks.take({})
    pods.look_again()
    assert pods.pods["a"].job == "one.a"


def test_nothing_is_left_to_look_at_after_an_abandoned_pod_is_gone() -> None:
    pods, world = begun("n0")
    pods.set_pod(pod("a"))
    pods.flush()
    del world.waiting["one.a"]
    pods.waits("one.a")
    assert pods.needs_look
    pods.second_looks.take({})
    pods.remove_pod("a")
    assert not pods.needs_look


def test_a_new_world_cancels_only_the_tasks_that_no_pod_has() -> None:
    pods, world = begun("n0")
    for uid in ("a", "b"):
        pods.set_pod(grouped(uid, 2))
    pods.flush()
    [job] = world.waiting
    for index in (0, 1):
        assert pods.claimed(job, "n0", index)
        pods.launch(index + 1, job, index)
    pods.bound("a")
    pods.bound("b")
    gone = pods.of_job(job, 1)
    assert gone is not None
    pods.pushed_off(job, Why.CANCELLED, 1)
    pods.recover({job: 2}, {(job, 0): "n0", (job, 1): "n0"})
    assert world.cancelled == [(job, [1])]


def test_in_a_new_world_pods_keep_their_states_and_nodes() -> None:
    pods, world = begun("n0")
    pods.set_pod(pod("waiting", 4))
    run(pods, world, pod("bound", 1))
    pods.set_pod(pod("binding", 1))
    pods.flush()
    assert world.place("one.binding", "n0")
    anew = RecordedPodWorld()
    anew.cluster = pods
    pods._world = lambda: anew
    pods.recover({}, {})
    states = {uid: each.state for uid, each in pods.pods.items()}
    assert states == {
        "waiting": PodState.WAITING,
        "bound": PodState.BOUND,
        "binding": PodState.BINDING,
    }
    assert {name: where for name, (_, where) in anew.placed.items()} == {
        "one.bound": "n0",
        "one.binding": "n0",
    }


def test_a_pod_on_its_way_out_is_counted_anew_once() -> None:
    pods, world = begun("n0")
    run(pods, world, pod("a"))
    counted: list[str] = []
    pods._count_anew = lambda tracked: counted.append(tracked.uid)  # type: ignore[method-assign]
    for _ in range(2):
        pods.set_pod(leaving(on_node(pod("a"), "n0")))
    assert counted == ["a"]


def test_a_node_with_one_of_two_new_resources_tells_of_that_one() -> None:
    pods, world = cluster()
    made = node("n0")
    room = {**made.status.allocatable, "gpu": "2"}
    status = msgspec.structs.replace(made.status, allocatable=room)
    pods.set_node(msgspec.structs.replace(made, status=status))
    assert world.machines["n0"].extras.get("gpu") is None
    assert pods.know_resources(Resources(0, 0, {"gpu": 1, "fpga": 1}))
    assert world.machines["n0"].extras["gpu"] == 2
    assert pods.free_on("n0")["gpu"] == 2
