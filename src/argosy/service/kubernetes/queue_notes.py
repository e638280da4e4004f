"""Tells pods that wait in the queue of a node where they stand, by annotations and their condition.

Places change all the time. So a pod is told at most every few seconds, only if something has changed
that matters, and few pods at a time: those that were told longest ago come first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from argosy.kubernetes.objects import Pod
from argosy.model.units import format_duration
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.pod_jobs import estimate_of
from argosy.worlds.kubernetes.queue_annotations import has_place, left_queue, place_annotations
from argosy.worlds.kubernetes.queue_waits import QueuePlace, expected_waits
from argosy.worlds.kubernetes.tracked import PodState, TrackedPod
from argosy.worlds.local.overruled import OverruledWorld

#: Microseconds between two notes to the same pod, and pods that are told at a time.
NOTE_EVERY: Final = 10_000_000
AT_A_TIME: Final = 50


class Annotating(Protocol):
    def annotate(self, pod: Pod, annotations: dict[str, str | None], message: str) -> None:
        """`message` is for the pod's condition; empty: it stays as it is."""

    def forget(self, uid: str) -> None:
        """The pod is gone."""


class _Told(msgspec.Struct):
    place: QueuePlace
    at: int


class QueueNotes:
    def __init__(
        self, pods: PodCluster, world: Callable[[], OverruledWorld], writer: Annotating
    ) -> None:
        self._pods = pods
        self._world = world
        self._writer = writer
        #: What pods were told last, by uid; the longest ago first.
        self._told: dict[str, _Told] = {}

    def write(self) -> None:
        """To be called now and then."""
        places, now = self._places(), self._world().now
        for uid in [uid for uid in self._told if uid not in places]:
            del self._told[uid]
            tracked = self._pods.pods.get(uid)
            if tracked is None:
                self._writer.forget(uid)
            elif tracked.state is PodState.WAITING:
                self._writer.annotate(tracked.pod, left_queue(), "")
        due = [uid for uid in self._told if self._is_out_of_date(uid, places[uid], now)]
        due += [uid for uid in places if uid not in self._told]
        for uid in due[:AT_A_TIME]:
            self._told.pop(uid, None)
            self._told[uid] = _Told(places[uid], now)
            self._writer.annotate(
                self._pods.pods[uid].pod, place_annotations(places[uid]), _sentence(places[uid])
            )

    def _is_out_of_date(self, uid: str, place: QueuePlace, now: int) -> bool:
        before, passed = self._told[uid].place, now - self._told[uid].at
        if passed < NOTE_EVERY:
            return False
        if not has_place(self._pods.pods[uid].pod, before):
            # It did not arrive.
            return True
        if (before.nodes, before.position) != (place.nodes, place.position):
            return True
        if before.wait is None or place.wait is None:
            return before.wait is not place.wait
        # That time passes is no news.
        return abs(place.wait - max(0, before.wait - passed)) > max(NOTE_EVERY, before.wait // 4)

    def _places(self) -> dict[str, QueuePlace]:
        places: dict[str, QueuePlace] = {}
        for node, entries in self._world().queued().items():
            # Several probes may stand there for the same pod, also for one that has a node by now.
            found = (self._pods.of_job(job) for job, _ in entries)
            queue = {
                each.uid: each
                for each in found
                if each is not None and each.state is PodState.WAITING
            }
            waits = self._waits(node, list(queue.values()))
            for position, (uid, wait) in enumerate(zip(queue, waits, strict=True), 1):
                place, other = QueuePlace((node,), position, wait), places.get(uid)
                places[uid] = place if other is None else place.joined(other)
        return places

    def _waits(self, node: str, queue: list[TrackedPod]) -> list[int | None]:
        world, pods = self._world(), self._pods
        there = [pods.pods[uid] for uid in pods.rulebook.pods_on(node) if uid in pods.pods]
        return expected_waits(
            pods.free_on(node),
            [(_time_left(each, world), each.request) for each in there],
            [(estimate_of(each.pod), each.request) for each in queue],
        )


def _time_left(tracked: TrackedPod, world: OverruledWorld) -> int | None:
    takes = estimate_of(tracked.pod)
    live = None if tracked.number is None else world.tries.get(tracked.number)
    return None if takes is None or live is None else max(0, live.since + takes - world.now)


def _sentence(place: QueuePlace) -> str:
    many = "queue of " if len(place.nodes) == 1 else "queues of "
    text = f"waits in the {many}{', '.join(place.nodes)} as number {place.position}"
    return text if place.wait is None else f"{text}, for {format_duration(place.wait)} still"
