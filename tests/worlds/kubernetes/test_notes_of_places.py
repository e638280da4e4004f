"""To which pods notes about their places in queues go, in which order, and how many at a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Pod
from argosy.model.resources import Resources
from argosy.service.kubernetes.queue_notes import AT_A_TIME, NOTE_EVERY, QueueNotes
from argosy.worlds.kubernetes.queue_annotations import left_queue, place_annotations
from argosy.worlds.kubernetes.queue_waits import QueuePlace
from argosy.worlds.kubernetes.tracked import PodState

SECOND = 1_000_000
ESTIMATE = "argosy.dev/estimate"


class Bench:
    """Pods of 1 CPU in queues of nodes, and what is written to them."""

    def __init__(self) -> None:
        self.queues: dict[str, list[str]] = {}
        self.on_nodes: dict[str, list[str]] = {}
        self.free: dict[str, dict[str, int]] = {}
        self.pods: Any = SimpleNamespace(
            pods={},
            of_job=lambda job: self.pods.pods.get(job),
            rulebook=SimpleNamespace(pods_on=lambda node: self.on_nodes.get(node, [])),
            free_on=lambda node: self.free.get(node, {"cpu": 0}),
        )
        self.world: Any = SimpleNamespace(
            now=0,
            tries={},
            queued=lambda: {node: [(uid, 0) for uid in uids] for node, uids in self.queues.items()},
        )
        #: What was annotated since the last look: the pod, its annotations, and the message.
        self.written: list[tuple[str, dict[str, str | None], str]] = []
        self.forgotten: list[str] = []
        self.arrives = True
        self.notes = QueueNotes(self.pods, lambda: self.world, self)

    def annotate(self, pod: Pod, annotations: dict[str, str | None], message: str) -> None:
        self.written.append((pod.name, annotations, message))
        if self.arrives:
            have = pod.metadata.annotations
            have.update({key: value for key, value in annotations.items() if value is not None})
            for key in [key for key, value in annotations.items() if value is None]:
                have.pop(key, None)

    def forget(self, uid: str) -> None:
        self.forgotten.append(uid)

    def add(self, *names: str, takes: str = "", state: PodState = PodState.WAITING) -> None:
        for name in names:
            annotations = {ESTIMATE: takes} if takes else {}
            self.pods.pods[name] = SimpleNamespace(
                pod=Pod(metadata=ObjectMeta(name=name, uid=name, annotations=annotations)),
                uid=name,
                state=state,
                request=Resources(1, 0),
                number=None,
            )

    def run(self, name: str, node: str, since: int, takes: str) -> None:
        self.add(name, takes=takes, state=PodState.BOUND)
        number = self.pods.pods[name].number = len(self.world.tries)
        self.world.tries[number] = SimpleNamespace(since=since)
        self.on_nodes.setdefault(node, []).append(name)

    def write(self, at: int | None = None) -> list[str]:
        """Whom the notes go to."""
        self.world.now = self.world.now if at is None else at
        self.written.clear()
        self.notes.write()
        return [name for name, _, _ in self.written]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_so_many_pods_are_told_at_a_time_and_the_others_next(bench: Bench) -> None:
    names = [f"p{number:03}" for number in range(2 * AT_A_TIME + 1)]
    bench.add(*names)
    bench.queues = {"n": names}
    assert bench.write() == names[:50]
    assert bench.write() == names[50:100]
    assert bench.write() == names[100:]
    assert bench.write() == []


def test_exactly_as_many_as_are_told_at_a_time_are_told_at_once(bench: Bench) -> None:
    names = [f"p{number:03}" for number in range(AT_A_TIME)]
    bench.add(*names)
    bench.queues = {"n": names}
    assert bench.write() == names
    assert bench.write() == []


def test_those_told_longest_ago_come_before_those_that_were_told_nothing(bench: Bench) -> None:
    bench.add("a", "b", "c", "new")
    bench.queues = {"n": ["a"]}
    assert bench.write(0) == ["a"]
    bench.queues = {"n": ["a", "b", "c"]}
    assert bench.write(SECOND) == ["b", "c"]
    # Everybody moves: a is told first, though c is first in the queue now.
    bench.queues = {"n": ["c", "new", "b", "a"]}
    assert bench.write(NOTE_EVERY) == ["a", "new"]
    assert bench.write(NOTE_EVERY + SECOND) == ["b", "c"]
    bench.queues = {"n": ["new", "a", "b", "c"]}
    assert bench.write(3 * NOTE_EVERY) == ["a", "new", "c"]


def test_a_pod_that_has_left_its_queue_is_told_so_only_if_it_waits(bench: Bench) -> None:
    states = {
        "waits": PodState.WAITING,
        "claimed": PodState.CLAIMED,
        "bound": PodState.BOUND,
        "outside": PodState.OUTSIDE,
    }
    bench.add(*states, "gone")
    bench.queues = {"n": [*states, "gone"]}
    bench.write()
    bench.queues = {}
    for name, state in states.items():
        bench.pods.pods[name].state = state
    del bench.pods.pods["gone"]
    bench.write()
    assert bench.written == [("waits", left_queue(), "")]
    assert bench.forgotten == ["gone"]
    bench.forgotten.clear()
    assert (bench.write(), bench.forgotten) == ([], [])


def test_who_comes_back_to_a_queue_is_told_at_once(bench: Bench) -> None:
    bench.add("a")
    bench.queues = {"n": ["a"]}
    assert bench.write(0) == ["a"]
    bench.queues = {}
    assert bench.write(1) == ["a"]
    bench.queues = {"n": ["a"]}
    assert bench.write(2) == ["a"]
    assert bench.write(3) == []


def test_the_same_place_is_not_told_again_and_another_only_after_a_while(bench: Bench) -> None:
    bench.add("a", "b")
    bench.queues = {"n": ["a", "b"]}
    bench.write(0)
    assert bench.write(5 * NOTE_EVERY) == []
    bench.queues = {"n": ["b", "a"]}
    bench.write(5 * NOTE_EVERY)
    bench.queues = {"n": ["b"], "m": ["a"]}
    assert bench.write(6 * NOTE_EVERY - 1) == []
    assert bench.write(6 * NOTE_EVERY) == ["a"]
    assert bench.written[0][2] == "waits in the queue of m as number 1"


def test_a_note_that_did_not_arrive_is_written_again_after_a_while(bench: Bench) -> None:
    bench.add("a")
    bench.queues = {"n": ["a"]}
    bench.arrives = False
    assert bench.write(0) == ["a"]
    assert bench.write(NOTE_EVERY - 1) == []
    bench.arrives = True
    assert bench.write(NOTE_EVERY) == ["a"]
    assert bench.write(2 * NOTE_EVERY) == []


def test_a_wait_is_told_again_if_it_differs_by_more_than_a_quarter(bench: Bench) -> None:
    bench.add("a")
    bench.queues = {"n": ["a"]}
    bench.run("first", "n", since=0, takes="80s")
    bench.write(0)
    assert bench.written == [
        (
            "a",
            place_annotations(QueuePlace(("n",), 1, 80 * SECOND)),
            "waits in the queue of n as number 1, for 1.33 min still",
        )
    ]
    live = bench.world.tries[0]
    # That time passes is no news, nor is a quarter.
    assert bench.write(30 * SECOND) == []
    live.since = 20 * SECOND
    assert bench.write(30 * SECOND) == []
    live.since = 20 * SECOND + 1
    assert bench.write(30 * SECOND) == ["a"]
    # Of a short wait, ten seconds are no news.
    live.since = -30 * SECOND
    assert bench.write(40 * SECOND) == ["a"]
    live.since = -20 * SECOND
    assert bench.write(50 * SECOND) == []
    live.since = -20 * SECOND + 1
    assert bench.write(50 * SECOND) == ["a"]


def test_whether_a_wait_is_known_is_news(bench: Bench) -> None:
    bench.add("a")
    bench.queues = {"n": ["a"]}
    assert bench.write(0) == ["a"]
    bench.run("first", "n", since=0, takes="80s")
    assert bench.write(NOTE_EVERY) == ["a"]
    bench.on_nodes.clear()
    assert bench.write(2 * NOTE_EVERY) == ["a"]
    assert bench.write(3 * NOTE_EVERY) == []


def test_pods_wait_for_those_that_run_and_for_those_ahead(bench: Bench) -> None:
    bench.add("a", "b", takes="5s")
    bench.queues = {"n": ["a", "b"]}
    bench.run("first", "n", since=0, takes="80s")
    bench.run("late", "n", since=0, takes="3s")
    # It takes longer than was said: it may end any time.
    bench.run("overdue", "m", since=0, takes="3s")
    bench.run("stranger", "m", since=0, takes="")
    bench.add("c")
    bench.queues["m"] = ["c"]
    bench.write(10 * SECOND)
    assert [(name, text.partition(" for ")[2]) for name, _, text in bench.written] == [
        ("a", "0 µs still"),
        ("b", "5 s still"),
        ("c", "0 µs still"),
    ]


def test_a_pod_in_several_queues_has_the_best_place_of_them(bench: Bench) -> None:
    bench.add("a", "b")
    bench.add("bound", state=PodState.BOUND)
    # A probe for a pod that has a node by now takes no place, and two of one pod take one.
    bench.queues = {"n": ["bound", "unknown", "b", "b", "a"], "m": ["a"]}
    bench.write()
    assert [(name, text) for name, _, text in bench.written] == [
        ("b", "waits in the queue of n as number 1"),
        ("a", "waits in the queues of m, n as number 1"),
    ]


def test_pods_on_a_node_that_nobody_keeps_track_of_end_at_no_known_time(bench: Bench) -> None:
    bench.add("a", takes="10s")
    bench.run("runs", "n", 0, "30s")
    bench.on_nodes["n"].append("ghost")
    bench.queues = {"n": ["a"]}
    assert bench.write(0) == ["a"]
    [(_, _, message)] = bench.written
    assert message == "waits in the queue of n as number 1, for 30 s still"
