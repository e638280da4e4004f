"""Pods in the queue of a node are told where they stand, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from small_pod_cluster import SECOND, SmallCluster, node, pod

from argosy.kubernetes.objects import Pod
from argosy.model.resources import Resources
from argosy.model.units import parse_duration
from argosy.service.kubernetes.queue_notes import QueueNotes
from argosy.worlds.kubernetes.queue_waits import QueuePlace, expected_waits

QUEUE, POSITION, WAIT = (
    f"argosy.dev/{name}" for name in ("queue", "queue-position", "expected-wait")
)
#: Engines with queues at machines.
ENGINES = ["murmuration", "sparrow", "hawk", "eagle", "yaq-c", "yaq-d"]


class Annotations:
    """Stands for Kubernetes: what pods were told, which the cluster sees."""

    def __init__(self, cluster: SmallCluster) -> None:
        self._cluster = cluster
        self.of: dict[str, dict[str, str]] = {}
        self.messages: dict[str, str] = {}
        self.writes = 0

    def annotate(self, pod: Pod, annotations: dict[str, str | None], message: str) -> None:
        self.writes += 1
        merged = {**self.of.get(pod.name, {}), **annotations}
        self.of[pod.name] = {key: value for key, value in merged.items() if value is not None}
        self.messages[pod.name] = message
        metadata = replace(pod.metadata, annotations=pod.metadata.annotations | self.of[pod.name])
        self._cluster.pods.set_pod(replace(pod, metadata=metadata))

    def forget(self, uid: str) -> None:
        self.of.pop(uid, None)


class QueuedPods:
    """A cluster of one node, and what its pods are told."""

    def __init__(self, engine: str, directory: Path) -> None:
        self.cluster = SmallCluster(engine, directory, nodes=[node(1)])
        self.told = Annotations(self.cluster)
        self.notes = QueueNotes(self.cluster.pods, lambda: self.cluster.world, self.told)

    def queue(self, *pods: Pod) -> None:
        """One after the other."""
        for each in pods:
            self.cluster.pods.set_pod(each)
            self.cluster.pods.flush()
            self.cluster.run(1)


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[QueuedPods]:
    """Of `murmuration`, or the engine that is asked for."""
    found = QueuedPods(getattr(request, "param", "murmuration"), tmp_path / "state")
    yield found
    found.cluster.store.close()


@pytest.fixture
def full(made: QueuedPods) -> QueuedPods:
    """The node is full, and two pods are in its queue."""
    made.cluster.schedule([timed("first", "100s")])
    made.queue(timed("second", "60s"), timed("third", "60s"))
    return made


def timed(name: str, takes: str, cpu: str = "8") -> Pod:
    found = pod(name, cpu, restartPolicy="Never")
    found.metadata.annotations["argosy.dev/estimate"] = takes
    return found


@pytest.mark.parametrize("made", ENGINES, indirect=True)
def test_a_pod_in_a_queue_is_told_its_place(full: QueuedPods) -> None:
    full.notes.write()
    of = full.told.of
    assert {of[name][QUEUE] for name in ("second", "third")} == {"n1"}
    ahead, behind = sorted(of, key=lambda name: of[name][POSITION])
    assert (of[ahead][POSITION], of[behind][POSITION]) == ("1", "2")
    assert full.told.messages[ahead].startswith("waits in the queue of n1 as number 1, for ")
    waits = [parse_duration(of[name][WAIT].replace(" ", "")) for name in (ahead, behind)]
    assert waits[0] <= 100 * SECOND
    assert waits[1] - waits[0] == pytest.approx(60 * SECOND, rel=0.01)
    full.cluster.remove("first")
    full.cluster.run(1)
    assert full.cluster.bindings.keys() == {"first", ahead}


def test_places_are_told_again_only_if_they_have_changed_and_not_too_often(
    full: QueuedPods,
) -> None:
    full.notes.write()
    full.notes.write()
    for _ in range(6):
        full.cluster.run(5)
        full.notes.write()
    assert full.told.writes == 2
    full.cluster.remove("second")
    full.cluster.run(0.5)
    full.notes.write()
    assert (full.told.writes, full.told.of["third"][POSITION]) == (3, "1")


def test_a_note_that_did_not_arrive_is_written_again(full: QueuedPods) -> None:
    full.notes.write()
    full.cluster.pods.set_pod(timed("third", "60s"))
    full.cluster.run(11)
    full.notes.write()
    assert full.told.writes == 3


def test_a_pod_that_leaves_its_queue_without_a_node_loses_its_annotations(
    full: QueuedPods,
) -> None:
    full.notes.write()
    assert full.told.of["second"].keys() == {QUEUE, POSITION, WAIT}
    full.cluster.pods.remove_node("n1")
    full.cluster.pods.flush()
    full.cluster.run(1)
    full.notes.write()
    assert full.told.of["second"] == {}


def test_nothing_is_expected_of_a_queue_behind_a_pod_that_never_ends(made: QueuedPods) -> None:
    made.cluster.schedule([pod("service", "8")])
    made.queue(timed("late", "60s"))
    made.notes.write()
    assert made.told.of["late"] == {QUEUE: "n1", POSITION: "1"}
    assert made.told.messages["late"] == "waits in the queue of n1 as number 1"


def cpu(amount: int) -> Resources:
    return Resources(amount, 0)


def test_a_pod_waits_until_enough_others_have_ended() -> None:
    running = [(30, cpu(2)), (10, cpu(2)), (None, cpu(4))]
    queue: list[tuple[int | None, Resources]] = [(5, cpu(2)), (5, cpu(4)), (5, cpu(8))]
    assert expected_waits({"cpu": 0}, running, queue) == [10, 30, None]


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 4)), min_size=1, max_size=8))
def test_nobody_is_expected_before_those_ahead(pods: list[tuple[int, int]]) -> None:
    queue = [(takes, cpu(amount)) for takes, amount in pods]
    waits = expected_waits({"cpu": 4}, [], queue)
    known = [wait for wait in waits if wait is not None]
    assert len(known) == len(waits)
    assert known == sorted(known)


def test_several_queues_count_as_the_best_of_them() -> None:
    here, there = QueuePlace(("m",), 4, SECOND), QueuePlace(("a",), 2, None)
    assert here.joined(there) == QueuePlace(("a", "m"), 2, SECOND)
