"""What becomes of pods in rare moments, and what is asked for in rare amounts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from recorded_pod_world import RecordedPodWorld
from test_malleable import CAPACITY, SECOND, used
from test_malleable import job as malleable_job
from test_moved_pods import made_by
from test_pod_cluster import cluster, node, pod

from argosy.kubernetes.objects import Pod, Taint
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.malleable import GrowthSettings, JobScaler
from argosy.worlds.kubernetes.moves import RelocatingCluster
from argosy.worlds.kubernetes.queue_waits import expected_waits
from argosy.worlds.kubernetes.requests import node_capacity, pod_request
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.shapes import PodShapes
from argosy.worlds.kubernetes.tracked import PodState
from argosy.worlds.kubernetes.volumes import KnownVolumes


def relocating() -> tuple[RelocatingCluster, RecordedPodWorld]:
    world = RecordedPodWorld()
    pods = RelocatingCluster(lambda: world, lambda pod: pod.spec.scheduler_name == "argosy")
    world.cluster = pods
    for name in ("n0", "n1"):
        pods.set_node(node(name))
    return pods, world


def asking(**requests: str) -> Pod:
    resources = {"requests": {name.replace("_", "/"): text for name, text in requests.items()}}
    return msgspec.convert({"spec": {"containers": [{"name": "c", "resources": resources}]}}, Pod)


def test_a_pod_that_is_moved_before_it_was_sent_to_its_node_is_not_evicted() -> None:
    pods, world = relocating()
    pods.set_pod(made_by("web", "p", 3))
    pods.flush()
    assert pods.claimed("one.p", "n0")
    pods.pushed_off("one.p", Why.MOVED)
    pods.follow_up()
    assert not pods.orders
    assert not pods.has_places
    assert (pods.pods["p"].state, pods.pods["p"].node) == (PodState.WAITING, "")
    assert world.place("one.p", "n1"), "it goes where it was moved to"


def test_programs_are_expected_to_take_what_their_completions_took_on_average() -> None:
    scaler = JobScaler(GrowthSettings())

    def run(name: str, completions: int, each: int, now: int) -> None:
        """Two pods run for so long, and the job is over."""
        first = malleable_job(uid=name, estimate=None, completions=completions)
        scaler.decide([first], used(2), CAPACITY, now)
        scaler.decide([replace(first, succeeded=2)], used(2), CAPACITY, now + each)
        scaler.decide([], used(0), CAPACITY, now + each)

    run("many", 1_000, SECOND // 100, 0)
    run("few", 2, 60 * SECOND, SECOND)
    # By jobs it would be half a minute.
    again = malleable_job(uid="next", estimate=None, completions=4)
    assert scaler.decide([again], used(2), CAPACITY, 90 * SECOND) == {}
    known = replace(again, uid="known", estimate=30 * SECOND)
    assert JobScaler(GrowthSettings()).decide([known], used(2), CAPACITY, 0) == {"known": 4}


def test_who_asks_for_none_of_a_resource_does_not_ask_for_it() -> None:
    assert pod_request(asking(cpu="1", example_gpu="0")) == pod_request(asking(cpu="1"))
    [bare] = [node("n0")]
    room = {**bare.status.allocatable, "example/gpu": "0"}
    empty = replace(bare, status=replace(bare.status, allocatable=room))
    assert node_capacity(empty, ["example/gpu"]) == node_capacity(bare, ["example/gpu"])


def test_an_overdrawn_resource_does_not_keep_those_who_need_none_of_it() -> None:
    queue: list[tuple[int | None, Resources]] = [(None, Resources(1_000, 0))]
    assert expected_waits({"cpu": 1_000, "memory": -5}, [], queue) == [0]
    queue = [(None, Resources(1_000, 1))]
    assert expected_waits({"cpu": 1_000, "memory": -5}, [], queue) == [None]


def test_what_nobody_heeds_does_not_make_pods_different() -> None:
    def chosen(node: str) -> Pod:
        plain = pod("p")
        return replace(plain, status=replace(plain.status, nominated_node_name=node))

    def shapes(rules: Rulebook, *, heeds: bool) -> Any:
        made = PodShapes(rules, KnownVolumes(), lambda _: True)
        made.heeds_wishes = lambda _: heeds
        return made

    for heeds, different, with_soft_taints in ((False, 1, 1), (True, 3, 4)):
        rules = Rulebook(lambda *_: None)
        made = shapes(rules, heeds=heeds)
        for name in ("", "n0", "n1"):
            made.of(chosen(name))
        assert len(made) == different
        soft = node("soft")
        taint = Taint(key="slow", effect="PreferNoSchedule")
        rules.set_node(replace(soft, spec=replace(soft.spec, taints=(taint,))))
        made.of(chosen(""))
        assert len(made) == with_soft_taints


def test_pods_that_others_matter_to_are_not_plain() -> None:
    rules = Rulebook(lambda *_: None)
    shapes = PodShapes(rules, KnownVolumes(), lambda _: True)
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert shapes.of(pod("p", nodeSelector={"disk": "ssd"})).needs.is_plain
    assert not shapes.of(pod("p", affinity=apart)).needs.is_plain


def test_a_node_that_is_gone_takes_what_its_pods_counted_for_with_it() -> None:
    rules = Rulebook(lambda *_: None)
    shapes = PodShapes(rules, KnownVolumes(), lambda _: True)
    for name in ("n0", "n1"):
        rules.set_node(node(name, zone="z"))
    rules.put("p", shapes.of(pod("p")).needs, "n0")
    rules.remove_node("n0")
    term = {"topologyKey": "zone", "labelSelector": {}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    lonely = shapes.of(pod("lonely", affinity=apart)).needs
    assert rules.forbidding(lonely, "n1") is None
    rules.put("q", shapes.of(pod("q")).needs, "n1")
    assert rules.forbidding(lonely, "n1") is not None


@pytest.mark.parametrize("why", list(Why))
def test_a_claim_that_is_lost_unknown_to_its_scheduler_is_decided_on_anew(why: Why) -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod("p"))
    pods.flush()
    assert pods.claimed("one.p", "n0")
    pods.pushed_off("one.p", why)
    pods.follow_up()
    is_untold = why in (Why.PREEMPTED, Why.MACHINE_GONE, Why.NO_ROOM)
    assert world.cancelled == ([("one.p", None)] if is_untold else [])
    assert list(world.waiting) == ["one.p~2" if is_untold else "one.p"]
    assert (pods.pods["p"].state, pods.pods["p"].node) == (PodState.WAITING, "")
    assert pods.claimed(pods.pods["p"].job, "n0")
