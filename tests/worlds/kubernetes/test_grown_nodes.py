"""Nodes whose capacity changes: what is on them is accounted for, and what was promised is kept."""

from __future__ import annotations

import msgspec
from test_pod_cluster import cluster, node, pod

from argosy.kubernetes.objects import Node, PodStatus
from argosy.worlds.kubernetes.tracked import BindOrder, PodState


def sized(name: str, cpu: int, **labels: str) -> Node:
    made = node(name, **labels)
    allocatable = {**made.status.allocatable, "cpu": str(cpu)}
    status = msgspec.structs.replace(made.status, allocatable=allocatable)
    return msgspec.structs.replace(made, status=status)


def test_pods_of_an_overcommitted_node_count_in_full_once_it_is_large_enough() -> None:
    pods, world = cluster()

    def sizes() -> dict[str, int]:
        return {job.name: job.groups[0].request.cpu for job, _ in world.placed.values()}

    for name, cpu in (("n0", 4), ("n1", 4)):
        pods.set_node(sized(name, cpu))
    for uid, cpu, where in (("a", 3, "n0"), ("b", 3, "n0"), ("c", 3, "n1"), ("d", 3, "n1")):
        pods.set_pod(pod(uid, cpu, on=where))
    clamped = {"one/a": 3_000, "one/b": 1_000, "one/c": 3_000, "one/d": 1_000}
    assert sizes() == clamped
    # Other changes, and less room, leave it at that.
    pods.set_node(sized("n0", 4, disk="ssd"))
    assert sizes() == clamped
    pods.set_node(sized("n0", 3))
    assert sizes()["one/b"] == 0
    pods.set_node(sized("n0", 5))
    assert sizes() == {**clamped, "one/b": 2_000}
    pods.set_node(sized("n0", 8))
    assert sizes() == {**clamped, "one/b": 3_000}
    assert world.machines["n0"].cpu == 8_000
    # What does not fit beside them is not sent there.
    pods.set_pod(pod("large", 3))
    pods.flush()
    assert not world.place("one.large", "n0")
    pods.set_pod(pod("small", 2))
    pods.flush()
    assert world.place("one.small", "n0")
    assert list(pods.orders) == [BindOrder(pod("small", 2), "n0")]
    assert pods.free_on("n0")["cpu"] == 0
    assert pods.pods["large"].state is PodState.WAITING


def test_a_promise_is_claimed_when_its_node_has_grown() -> None:
    pods, world = cluster()
    pods.set_node(sized("n0", 1))
    waiting = pod("theirs", 3, schedulerName="another", priority=5)
    pods.set_pod(msgspec.structs.replace(waiting, status=PodStatus(nominated_node_name="n0")))
    assert world.placed == {}
    pods.set_node(sized("n0", 4))
    [(job, where)] = world.placed.values()
    assert (job.name, where) == ("one/theirs", "n0")
