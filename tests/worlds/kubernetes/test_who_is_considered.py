"""Which pods are considered anew when something changes, and which are left alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from test_pod_cluster import cluster, node, on_node, pod

from argosy.kubernetes.objects import PersistentVolume, PersistentVolumeClaim, Pod, PodStatus
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.cluster import MOST_REFUSALS
from argosy.worlds.kubernetes.tracked import PodState


def claim(namespace: str, bound: str = "") -> PersistentVolumeClaim:
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if bound else {}
    metadata = {"name": "data", "namespace": namespace, "annotations": annotations}
    return msgspec.convert(
        {"metadata": metadata, "spec": {"volumeName": bound}}, PersistentVolumeClaim
    )


def using(uid: str, namespace: str) -> Pod:
    volumes: list[dict[str, Any]] = [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    made = pod(uid, volumes=volumes)
    metadata = msgspec.structs.replace(made.metadata, namespace=namespace)
    return msgspec.structs.replace(made, metadata=metadata)


def test_a_claim_concerns_pods_of_its_namespace_and_a_volume_all() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    for uid, namespace in (("a", "one"), ("b", "two"), ("c", "one")):
        pods.set_pod(using(uid, namespace))

    def told() -> list[tuple[str, str]]:
        found = [(each.uid, each.obstacle) for each in pods.refused]
        pods.refused.clear()
        return found

    missing = 'persistentvolumeclaim "data" not found'
    assert told() == [("a", missing), ("b", missing), ("c", missing)]
    pods.set_claim(claim("one"))
    unbound = 'persistentvolumeclaim "data" is not bound to a volume yet'
    assert told() == [("a", unbound), ("c", unbound)]
    pods.set_claim(claim("two", "v"))
    gone = 'persistentvolume "v" not found'
    assert told() == [("b", gone)]
    volume = msgspec.convert({"metadata": {"name": "v"}}, PersistentVolume)
    pods.set_volume(volume)
    pods.flush()
    assert told() == [("a", unbound), ("c", unbound)]
    assert list(world.waiting) == ["two.b"]
    # One that is known already changes nothing, nor does a claim for those that wait for a node.
    pods.set_volume(volume)
    pods.set_claim(claim("two", "v"))
    pods.flush()
    assert told() == []
    assert list(world.waiting) == ["two.b"]
    assert world.cancelled == []


def rested(uid: str) -> tuple[Any, Any]:
    """A cluster with a pod that was refused too often, and rests."""
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod(uid, nodeSelector={"disk": "ssd"}))
    pods.flush()
    for _ in range(MOST_REFUSALS):
        [job] = world.waiting
        assert not pods.claimed(job, "n0")
        pods.pushed_off(job, Why.FILTERED)
        pods.follow_up()
    assert pods.pods[uid].state is PodState.OUTSIDE
    assert world.waiting == {}
    return pods, world


def test_a_pod_that_rests_is_submitted_with_the_next_look() -> None:
    pods, world = rested("p")
    assert pods.needs_look
    pods.look_again()
    pods.flush()
    assert list(world.waiting) == ["one.p~2"]
    assert pods.pods["p"].refusals == 0
    pods.second_looks.take({})
    assert not pods.needs_look


def test_a_pod_that_goes_while_it_rests_does_not_come_back() -> None:
    pods, world = rested("p")
    pods.remove_pod("p")
    pods.look_again()
    pods.flush()
    assert world.waiting == {}
    assert pods.pods == {}


def test_only_a_job_that_its_scheduler_has_given_up_is_abandoned() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    for uid in ("a", "b"):
        pods.set_pod(pod(uid, 9))
    pods.flush()
    pods.second_looks.take({})
    assert [each.uid for each in pods.waits("one.a")] == ["a"]
    assert not pods.needs_look
    world.cancel("one.b")
    assert [each.uid for each in pods.waits("one.b")] == ["b"]
    assert pods.needs_look
    pods.look_again()
    pods.flush()
    assert list(world.waiting) == ["one.a", "one.b~2"]
    assert pods.waits("unknown") == []


def test_a_volume_helps_nobody_who_waits_for_a_node_or_for_its_own_to_come_back() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod("refused", nodeSelector={"disk": "ssd"}))
    pods.set_pod(pod("homeless", on="n9"))
    pods.flush()
    assert not pods.claimed("one.refused", "n0")
    assert pods.pods["refused"].obstacle
    pods.set_volume(msgspec.convert({"metadata": {"name": "v"}}, PersistentVolume))
    pods.flush()
    assert list(world.waiting) == ["one.refused"]
    assert pods.pods["homeless"].job == ""


@pytest.mark.parametrize(
    ("policy", "phase", "finished"),
    [
        ("Never", "Succeeded", [(1, 0, "")]),
        ("OnFailure", "Succeeded", [(1, 0, "")]),
        ("Never", "Failed", [(1, 1, "failed")]),
        # It would have been started again, so something else has ended it.
        ("Always", "Succeeded", []),
        ("Always", "Failed", []),
    ],
)
def test_the_job_of_a_pod_that_can_end_ends_with_it(
    policy: str, phase: str, finished: list[tuple[int, int, str]]
) -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    made = pod("p", restartPolicy=policy)
    pods.set_pod(made)
    pods.flush()
    assert world.place("one.p", "n0")
    there = on_node(made, "n0")
    pods.set_pod(there)
    pods.set_pod(msgspec.structs.replace(there, status=PodStatus(phase=phase)))
    assert world.finished == finished
    assert (world.placed, world.tries, pods.pods) == ({}, {}, {})
    assert pods.free_on("n0")["cpu"] == 4_000


def test_a_pod_that_others_avoid_by_now_is_submitted_with_that() -> None:
    pods, world = cluster()
    pods.set_node(node("n0", host="n0"))
    web = pod("web")
    labelled = msgspec.structs.replace(web.metadata, labels={"app": "web"})
    pods.set_pod(msgspec.structs.replace(web, metadata=labelled))
    pods.set_pod(pod("other", nodeSelector={"disk": "ssd"}))
    pods.flush()
    before = world.waiting["one.web"].groups[0].requires
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "host"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods.set_pod(pod("loner", on="n0", affinity=apart))
    for job in ("one.web", "one.other"):
        assert not pods.claimed(job, "n0")
        pods.pushed_off(job, Why.FILTERED)
        pods.follow_up()
    # For the other one nothing has changed: its scheduler looks for another node itself.
    assert list(world.waiting) == ["one.other", "one.web~2"]
    away = "away from pods that avoid app=web in one by host"
    assert world.waiting["one.web~2"].groups[0].requires == {**before, away: "true"}


@pytest.mark.parametrize(
    ("why", "waiting"), [(Why.PREEMPTED, "one.p~2"), (Why.MOVED, "one.p"), (Why.STALE, "one.p")]
)
def test_a_pod_that_is_pushed_off_before_it_is_bound_has_no_try_any_more(
    why: Why, waiting: str
) -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod("p", 9))
    pods.flush()
    assert pods.claimed("one.p", "n0")
    assert pods.launch(7, "one.p")
    assert (pods.pods["p"].state, pods.has_try(7)) == (PodState.HELD, True)
    pods.pushed_off("one.p", why)
    assert (pods.pods["p"].state, pods.has_try(7)) == (PodState.WAITING, False)
    assert (pods.pods["p"].node, pods.rulebook.pods_on("n0")) == ("", [])
    pods.follow_up()
    # Schedulers are not told of every loss: then the pod is another job.
    assert list(world.waiting) == [waiting]


def test_a_binding_that_failed_after_all_says_nothing_of_a_pod_on_its_node() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod("p", 3))
    pods.flush()
    assert world.place("one.p", "n0")
    pods.set_pod(on_node(pod("p", 3), "n0"))
    pods.pushed_off("one.p", Why.PREEMPTED)
    pods.follow_up()
    for uid in ("p", "unknown"):
        pods.bind_failed(uid)
        assert (pods.pods["p"].state, pods.pods["p"].node) == (PodState.LEAVING, "n0")
        assert (pods.rulebook.pods_on("n0"), pods.free_on("n0")["cpu"]) == (["p"], 1_000)
        assert world.waiting == {}
