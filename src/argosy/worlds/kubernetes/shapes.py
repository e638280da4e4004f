"""What pods ask for. Most pods are like many others, so it is worked out once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from argosy.kubernetes.objects import Pod
from argosy.worlds.kubernetes.annotated_constraints import annotation_of
from argosy.worlds.kubernetes.pod_wishes import has_wishes
from argosy.worlds.kubernetes.requests import pod_request, resized
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.tracked import PodShape
from argosy.worlds.kubernetes.volumes import KnownVolumes

_ENCODE: Final = msgspec.json.Encoder().encode


class PodShapes:
    """Pods that are not scheduled here (`is_ours`) are on their node, and need nothing."""

    def __init__(
        self, rulebook: Rulebook, volumes: KnownVolumes, is_ours: Callable[[Pod], bool]
    ) -> None:
        self._rulebook = rulebook
        self._volumes = volumes
        self._is_ours = is_ours
        self._shapes: dict[bytes, PodShape] = {}
        #: Whether the scheduler of a pod heeds what it would rather have.
        self.heeds_wishes: Callable[[Pod], bool] = lambda pod: False

    def __len__(self) -> int:
        return len(self._shapes)

    def of(self, pod: Pod) -> PodShape:
        """Until `release` the pod has this shape."""
        spec, metadata, is_ours = pod.spec, pod.metadata, self._is_ours(pod)
        volumes, claims = (
            (self._volumes.node_rules(pod), self._volumes.for_one_pod(pod))
            if spec.volumes
            else ([], [])
        )
        has_soft_taints = self._rulebook.has_soft_taints
        heeds = is_ours and (has_soft_taints or has_wishes(pod)) and self.heeds_wishes(pod)
        key = _ENCODE(
            (
                metadata.namespace,
                metadata.labels,
                annotation_of(pod),
                spec.node_selector,
                spec.affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.containers,
                spec.init_containers,
                spec.overhead,
                spec.resources,
                volumes,
                claims,
                resized(pod),
                is_ours,
                (heeds, heeds and has_soft_taints, pod.status.nominated_node_name if heeds else ""),
                metadata.deletion_timestamp is not None,
            )
        )
        shape = self._shapes.get(key)
        if shape is None:
            needs = (
                self._rulebook.needs(pod, volumes, claims, heeds_wishes=heeds)
                if is_ours
                else self._rulebook.presence(pod, claims)
            )
            shape = self._shapes[key] = PodShape(key, needs, pod_request(pod))
        shape.pods += 1
        return shape

    def release(self, shape: PodShape) -> None:
        shape.pods -= 1
        if not shape.pods:
            self._shapes.pop(shape.key, None)
            self._rulebook.release(shape.needs)


def has_changed(before: Pod, pod: Pod) -> bool:
    """Whether something that may change, and matters, has."""
    old, new = before.spec, pod.spec
    return (
        before.metadata.labels != pod.metadata.labels
        or annotation_of(before) != annotation_of(pod)
        or old.tolerations != new.tolerations
        or old.node_selector != new.node_selector
        or old.affinity != new.affinity
        or old.containers != new.containers
        or old.init_containers != new.init_containers
        or old.resources != new.resources
        or resized(before) != resized(pod)
        or before.status.nominated_node_name != pod.status.nominated_node_name
    )
