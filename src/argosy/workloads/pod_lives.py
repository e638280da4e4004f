"""What was seen of a Kubernetes cluster: its nodes, and the lives of its pods.

A snapshot (`kubectl get -o json`) has the times that the pods' own status gives, in whole seconds; a
watch knows better when each pod came, got its node and ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from argosy.kubernetes.objects import Node, Pod
from argosy.worlds.kubernetes.pod_jobs import has_ended
from argosy.worlds.kubernetes.volumes import KnownVolumes

_SCHEDULED: Final = "PodScheduled"
_SECOND: Final = 1_000_000


class PodLife(msgspec.Struct, frozen=True):
    """Times are microseconds since 1970."""

    pod: Pod
    #: When it could first be scheduled, as far as that is known.
    arrived: int
    #: When it got its node; None if it has none.
    bound: int | None = None
    #: When it ended or was deleted; None if it has not.
    ended: int | None = None

    def is_over(self, at: int) -> bool:
        return self.ended is not None and self.ended <= at

    def is_placed(self, at: int) -> bool:
        """Whether it had a node by then."""
        return self.bound is not None and self.bound <= at


class ClusterRecording(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen from `start` to `end`; of pods that were there before, also how they came."""

    nodes: tuple[Node, ...]
    lives: tuple[PodLife, ...]
    volumes: KnownVolumes = msgspec.field(default_factory=KnownVolumes)
    start: int
    end: int
    #: Nodes that came, went or changed in the meantime.
    changed_nodes: int = 0


def micros_of(instant: datetime) -> int:
    whole = instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
    return int(whole.timestamp()) * _SECOND + whole.microsecond


def life_told_by(pod: Pod) -> PodLife:
    """The pod's life as its own status tells it."""
    created = pod.metadata.creation_timestamp
    arrived = micros_of(created) if created is not None else 0
    if not pod.spec.node_name:
        ended = max([arrived, *_ends(pod)]) if has_ended(pod) else None
        return PodLife(pod, arrived, None, ended)
    told = [
        each.last_transition_time
        for each in pod.status.conditions
        if each.type == _SCHEDULED and each.status == "True"
    ]
    bound = next((micros_of(each) for each in (*told, pod.status.start_time) if each), arrived)
    ended = max([bound, *_ends(pod)]) if has_ended(pod) else None
    return PodLife(pod, arrived, max(arrived, bound), ended)


def _ends(pod: Pod) -> Iterable[int]:
    for container in pod.status.container_statuses:
        stopped = container.state.terminated
        if stopped is not None and stopped.finished_at is not None:
            yield micros_of(stopped.finished_at)


def snapshot(nodes: Iterable[Node], pods: Iterable[Pod], volumes: KnownVolumes) -> ClusterRecording:
    """A recording of one instant: the latest that any pod speaks of."""
    lives = tuple(map(life_told_by, pods))
    end = max((time for life in lives for time in _times(life)), default=0)
    return ClusterRecording(nodes=tuple(nodes), lives=lives, volumes=volumes, start=end, end=end)


def _times(life: PodLife) -> Iterable[int]:
    yield from (time for time in (life.arrived, life.bound, life.ended) if time is not None)
    for condition in life.pod.status.conditions:
        if condition.last_transition_time is not None:
            yield micros_of(condition.last_transition_time)
