"""Each kind of change reaches the pods' cluster in the same way, in the scheduler and in its shadow; a
recorder tells lives from what it hears; committed jobs become pods."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import msgspec
import pytest

from argosy.host.records import PlacedRecord, ProbedRecord
from argosy.kubernetes import kinds
from argosy.kubernetes.watching import ChangeKind, ObjectChange
from argosy.model.errors import ArgosyError
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.records.choices import decision_text, probes_text, taken_text
from argosy.service.kubernetes import driver
from argosy.service.kubernetes.agent_terms import PodTerms
from argosy.service.kubernetes.driver import KubernetesDriver
from argosy.service.kubernetes.placements import placement_annotations
from argosy.service.kubernetes.recorder import PodRecorder
from argosy.service.kubernetes.shadow.session import _feed
from argosy.worlds.kubernetes.volumes import KnownVolumes


def made(kind: kinds.ResourceKind[Any], name: str, version: int = 1, **document: Any) -> Any:
    metadata = {"name": name, "namespace": "s", "uid": name, "resourceVersion": str(version)}
    metadata |= document.pop("metadata", {})
    return kind.decode(msgspec.json.encode({"metadata": metadata, **document}))


def change(old: Any, new: Any, final: Any = None) -> ObjectChange[Any]:
    return ObjectChange(ChangeKind.CHANGED, old, new, final)


OLD = {
    kind: made(kind, "old")
    for kind in (
        kinds.NODES,
        kinds.PERSISTENT_VOLUMES,
        kinds.PERSISTENT_VOLUME_CLAIMS,
        kinds.POD_DISRUPTION_BUDGETS,
        kinds.POD_GROUPS,
        kinds.COSCHEDULING_GROUPS,
    )
}


@pytest.mark.parametrize(
    ("kind", "word", "gone"),
    [
        (kinds.NODES, "node", ("old",)),
        (kinds.PERSISTENT_VOLUMES, "volume", ("old",)),
        (kinds.PERSISTENT_VOLUME_CLAIMS, "claim", ("s", "old")),
        (kinds.POD_DISRUPTION_BUDGETS, "budget", ("s", "old")),
        (kinds.POD_GROUPS, "group", (OLD[kinds.POD_GROUPS],)),
        (kinds.COSCHEDULING_GROUPS, "group", (OLD[kinds.COSCHEDULING_GROUPS],)),
    ],
)
def test_what_comes_is_set_and_what_goes_is_removed(
    kind: kinds.ResourceKind[Any], word: str, gone: tuple[Any, ...]
) -> None:
    old, new = OLD[kind], made(kind, "new")
    pods = Mock()
    follower = object.__new__(KubernetesDriver)
    follower._pods = pods
    heard = getattr(follower, f"_{word}_changed")
    for before, after in ((None, new), (old, new), (old, None)):
        heard(change(before, after))
        _feed(pods, before, after)
    put, removed = getattr(call, f"set_{word}")(new), getattr(call, f"remove_{word}")(*gone)
    assert pods.mock_calls == [put, put, put, put, removed, removed]


def test_namespaces_are_never_forgotten() -> None:
    pods, space = Mock(), made(kinds.NAMESPACES, "s")
    follower = object.__new__(KubernetesDriver)
    follower._pods = pods
    for before, after in ((None, space), (space, None)):
        follower._namespace_changed(change(before, after))
        _feed(pods, before, after)
    assert pods.mock_calls == [call.set_namespace(space)] * 2


def test_a_pod_is_followed_to_its_end() -> None:
    old, new = made(kinds.PODS, "p"), made(kinds.PODS, "p", 2)
    other, ended = made(kinds.PODS, "q"), made(kinds.PODS, "p", 3)
    pods = Mock()
    follower = object.__new__(KubernetesDriver)
    follower._pods = pods
    for each in (
        change(None, old),
        change(old, new),
        change(old, other),
        change(old, None),
        change(old, None, ended),
    ):
        follower._pod_changed(each)
    assert pods.mock_calls == [
        call.set_pod(old),
        call.set_pod(new),
        call.remove_pod("p"),
        call.set_pod(other),
        call.remove_pod("p"),
        call.set_pod(ended),
        call.remove_pod("p"),
    ]


def test_of_two_sources_the_newer_word_counts() -> None:
    def pod(name: str, version: int, phase: str = "Running") -> Any:
        return made(kinds.PODS, name, version, status={"phase": phase})

    watched = {each.key: each for each in (pod("a", 5), pod("b", 5))}
    watch: Any = SimpleNamespace(objects=watched, resource_version="7")
    listed = [
        pod("a", 4),
        pod("b", 6),
        # Gone already as far as the watch has come, and not.
        pod("c", 7),
        pod("d", 8),
        pod("e", 9, "Succeeded"),
    ]
    newest = {
        each.uid: int(each.metadata.resource_version) for each in driver._newest(listed, watch)
    }
    assert newest == {"a": 5, "b": 6, "d": 8}
    empty: Any = SimpleNamespace(objects={}, resource_version="")
    assert [each.uid for each in driver._newest([pod("a", 1)], empty)] == ["a"]


def test_pods_on_nodes_come_first_and_the_others_by_age() -> None:
    def pod(name: str, second: int, node: str = "") -> Any:
        born = {"creationTimestamp": f"2026-01-01T00:00:{second:02}Z"}
        return made(kinds.PODS, name, metadata=born, spec={"nodeName": node} if node else {})

    pods = [pod("young", 3), pod("there", 9, "n"), pod("old", 1), pod("elder", 2, "n")]
    assert [each.name for each in driver._bound_first(pods)] == ["elder", "there", "old", "young"]


# Recordings.


class Clock:
    def __init__(self) -> None:
        self.now = 1_000

    def __call__(self) -> int:
        return self.now


def a_pod(name: str, node: str = "", phase: str = "", *, gated: bool = False) -> Any:
    spec = {"nodeName": node} if node else {}
    gates = {"schedulingGates": [{"name": "g"}]} if gated else {}
    return made(kinds.PODS, name, spec={**spec, **gates}, status={"phase": phase})


def lives(recorder: PodRecorder) -> dict[str, tuple[int, int | None, int | None]]:
    recording = recorder.recording(KnownVolumes())
    return {life.pod.name: (life.arrived, life.bound, life.ended) for life in recording.lives}


def test_lives_are_told_by_when_each_thing_was_first_heard() -> None:
    clock = Clock()
    recorder = PodRecorder(clock)
    stages = [
        (None, a_pod("p", gated=True)),
        (a_pod("p", gated=True), a_pod("p", gated=True)),
        (a_pod("p", gated=True), a_pod("p")),
        (a_pod("p"), a_pod("p")),
        (a_pod("p"), a_pod("p", "n")),
        (a_pod("p", "n"), a_pod("p", "n")),
        (a_pod("p", "n"), a_pod("p", "n", "Succeeded")),
        (a_pod("p", "n"), None),
    ]
    seen = []
    for old, new in stages:
        clock.now += 10
        recorder.hear(change(old, new))
        seen.append(lives(recorder)["p"])
    assert seen == [
        (1010, None, None),
        (1010, None, None),
        (1030, None, None),
        (1030, None, None),
        (1030, 1050, None),
        (1030, 1050, None),
        (1030, 1050, 1070),
        (1030, 1050, 1070),
    ]
    recording = recorder.recording(KnownVolumes())
    assert (recording.start, recording.end) == (1_000, 1_080)


def test_a_pod_that_takes_anothers_name_ends_it() -> None:
    clock = Clock()
    recorder = PodRecorder(clock)
    recorder.hear(change(None, a_pod("p", "n")))
    clock.now += 5
    recorder.hear(change(a_pod("p", "n"), a_pod("q")))
    assert lives(recorder) == {"p": (1_000, 1_000, 1_005), "q": (1_005, None, None)}
    clock.now += 5
    # At the end the server is asked: what it does not know any more is gone.
    recorder.close([a_pod("r")])
    assert lives(recorder) == {
        "p": (1_000, 1_000, 1_005),
        "q": (1_005, None, 1_010),
        "r": (1_010, None, None),
    }


def test_what_was_there_before_came_before() -> None:
    clock = Clock()
    clock.now = 1_767_225_605_000_000
    recorder = PodRecorder(clock)

    def born(name: str, second: int) -> Any:
        at = f"2026-01-01T00:00:{second:02}Z"
        return made(
            kinds.PODS,
            name,
            metadata={"creationTimestamp": at},
            spec={"nodeName": "n"},
            status={"startTime": at, "phase": "Running"},
        )

    nodes = SimpleNamespace(objects={"n": made(kinds.NODES, "n")})
    pods = SimpleNamespace(objects={"a": born("a", 3), "b": born("b", 9)})
    recorder.begin(nodes, pods)  # type: ignore[arg-type]
    assert (recorder.nodes, recorder.pods) == (1, 2)
    # The clock of the cluster is ahead of ours by some seconds.
    assert lives(recorder) == {
        "a": (1_767_225_603_000_000, 1_767_225_603_000_000, None),
        "b": (1_767_225_605_000_000, 1_767_225_605_000_000, None),
    }


def test_nodes_count_as_changed_if_what_they_offer_does() -> None:
    def node(name: str, cpu: str = "4", heartbeat: int = 0) -> Any:
        conditions = [{"type": "Ready", "status": "True", "reason": str(heartbeat)}]
        return made(
            kinds.NODES, name, status={"allocatable": {"cpu": cpu}, "conditions": conditions}
        )

    recorder = PodRecorder(Clock())
    recorder.begin(
        SimpleNamespace(objects={each: node(each) for each in "abc"}),  # type: ignore[arg-type]
        SimpleNamespace(objects={}),  # type: ignore[arg-type]
    )

    def changed() -> int:
        return recorder.recording(KnownVolumes()).changed_nodes

    recorder.hear(change(node("a"), node("a", heartbeat=1)))
    assert changed() == 0
    recorder.hear(change(node("a"), node("a", "8")))
    recorder.hear(change(node("a", "8"), node("a", "4")))
    assert changed() == 1
    recorder.hear(change(node("b"), None))
    assert changed() == 2
    recorder.hear(change(None, node("d")))
    assert changed() == 3
    assert recorder.nodes == 4


# Jobs that schedulers elsewhere commit.


def committed(**demands: str) -> Job:
    group = TaskGroup(
        count=1,
        request=Resources(500, 0, {"gpu": 1}),
        requires={"zone": "east"},
        demands=demands,
    )
    return Job(id="j", groups=(group,))


def test_a_committed_job_is_a_pod_without_tolerations() -> None:
    overseer: Any = SimpleNamespace(pods=SimpleNamespace(required={"free": "yes"}), is_leading=True)
    [group] = PodTerms(overseer).job(committed(image="x")).groups
    assert group.request == Resources(500, 0, {"gpu": 1, "pods": 1})
    assert group.requires == {"zone": "east", "free": "yes"}
    assert group.demands == {"image": "x"}
    for demands in ({}, {"image": ""}):
        with pytest.raises(ArgosyError, match="no image") as caught:
            PodTerms(overseer).job(committed(**demands))
        assert caught.value.field == "job.demands"
    overseer.is_leading = False
    with pytest.raises(ArgosyError, match="this replica stands by"):
        PodTerms(overseer).job(committed(image="x"))


# Why a pod is where it is.


def annotated(
    choice: Any, index: int, node: str, told: Explanation | None = None
) -> dict[str, str]:
    machines = [SimpleNamespace(name=name) for name in ("n0", "n1", "n2")]
    row = SimpleNamespace(submitted=2_000_000)
    world: Any = SimpleNamespace(
        projection=SimpleNamespace(machines=machines, by_id={"j": row}),
        host=SimpleNamespace(view=SimpleNamespace(dimensions=("cpu", "memory"))),
        now=3_500_000,
    )
    return placement_annotations(world, {"s": "kube"}, choice, told, index, node)


SCORED = Explanation(rule="best", feasible=3, looked_at=3, score=5, second=2, second_score=3)


def test_a_pod_is_told_who_put_it_there_and_after_how_long() -> None:
    choice = PlacedRecord(3_000_000, "j", [0, 1], [0, 1], "s:part", SCORED)
    found = annotated(choice, 0, "n0")
    assert found["argosy.dev/scheduler"] == "s:part"
    assert found["argosy.dev/engine"] == "kube"
    assert found["argosy.dev/waited"] == "1.5 s"
    first = decision_text(SCORED, ("cpu", "memory"), "s:part", "n0", "n2", "")
    assert found["argosy.dev/why"] == first
    # Numbers are those of the first of several tasks.
    other = decision_text(SCORED, ("cpu", "memory"), "s:part", "n1", "n2", "j/0")
    assert annotated(choice, 1, "n1")["argosy.dev/why"] == other
    assert other != first
    # Another node took it from the queue of the one it was sent to.
    moved = annotated(choice, 0, "n1")["argosy.dev/why"]
    assert moved == first + taken_text("n0", "n1") != first


def test_an_explanation_may_come_separately_or_not_at_all() -> None:
    choice = PlacedRecord(3_000_000, "gone", [0, 1], [0, 1], "t")
    told = annotated(choice, 1, "n1", SCORED)
    assert told["argosy.dev/why"] == decision_text(SCORED, ("cpu", "memory"), "t", "n1", "n2", "")
    assert told["argosy.dev/engine"] == ""
    assert "argosy.dev/waited" not in told
    without = annotated(choice, 0, "n0")["argosy.dev/why"]
    assert without == decision_text(Explanation(), ("cpu", "memory"), "t", "n0", "", "")
    probed = ProbedRecord(3_000_000, "j", [0], [0, 2], "s")
    assert annotated(probed, 0, "n2")["argosy.dev/why"] == probes_text("s", ["n0", "n2"], "n2")
