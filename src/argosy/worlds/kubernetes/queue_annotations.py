"""The annotations of pods that wait in the queue of a node, and of those that have left it."""

from __future__ import annotations

from typing import Final

from argosy.kubernetes.objects import Pod
from argosy.model.units import format_duration
from argosy.worlds.kubernetes.pod_jobs import PREFIX
from argosy.worlds.kubernetes.queue_waits import QueuePlace

QUEUE: Final = PREFIX + "queue"
POSITION: Final = PREFIX + "queue-position"
EXPECTED_WAIT: Final = PREFIX + "expected-wait"


def place_annotations(place: QueuePlace) -> dict[str, str | None]:
    return {
        QUEUE: ",".join(place.nodes),
        POSITION: str(place.position),
        EXPECTED_WAIT: None if place.wait is None else format_duration(place.wait),
    }


def has_place(pod: Pod, place: QueuePlace) -> bool:
    """Whether the pod carries the annotations of this place."""
    have, wanted = pod.metadata.annotations, place_annotations(place)
    return all(have.get(key) == value for key, value in wanted.items())


def left_queue() -> dict[str, str | None]:
    """Of a pod that waits, but not in a queue any more."""
    return dict.fromkeys((QUEUE, POSITION, EXPECTED_WAIT))


def reached_node(node: str) -> dict[str, str]:
    """Of a pod that has its node. A binding can change annotations, and not remove them."""
    return {QUEUE: node, POSITION: "0", EXPECTED_WAIT: format_duration(0)}
