"""Volumes and claims, and which nodes they can be used on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.kubernetes.objects import (
    NodeSelector,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    SelectorRequirement,
)

ONE_POD: Final = "ReadWriteOncePod"
_IS_BOUND: Final = "pv.kubernetes.io/bind-completed"
#: Labels of a volume that say where it is; several values are separated as shown.
_PLACES: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_BETWEEN: Final = "__"


def claim_names(pod: Pod) -> Iterator[str]:
    """Those of the pod's volumes; an ephemeral volume has a claim of its own."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield f"{pod.name}-{volume.name}"


class KnownVolumes:
    def __init__(self) -> None:
        self.volumes: dict[str, PersistentVolume] = {}
        #: By namespace and name.
        self.claims: dict[tuple[str, str], PersistentVolumeClaim] = {}

    def _claims(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        for name in claim_names(pod):
            claim = self.claims.get((pod.namespace, name))
            if claim is not None:
                yield claim

    def node_rules(self, pod: Pod) -> list[NodeSelector]:
        """Where the pod's bound volumes can be used."""
        rules = []
        for claim in self._claims(pod):
            bound = self.volumes.get(claim.spec.volume_name)
            if bound is None:
                continue
            affinity = bound.spec.node_affinity
            if affinity is not None and affinity.required is not None:
                rules.append(affinity.required)
            place = _place(bound)
            if place is not None:
                rules.append(place)
        return rules

    def for_one_pod(self, pod: Pod) -> list[str]:
        """Claims of the pod that no other pod may use at the same time."""
        return [claim.name for claim in self._claims(pod) if ONE_POD in claim.spec.access_modes]

    def obstacle(self, pod: Pod) -> str:
        """Why the pod has to wait for its volumes; empty if it need not."""
        for name in claim_names(pod):
            claim = self.claims.get((pod.namespace, name))
            if claim is None:
                return f'persistentvolumeclaim "{name}" not found'
            if claim.metadata.deletion_timestamp is not None:
                return f'persistentvolumeclaim "{name}" is being deleted'
            if not claim.spec.volume_name or _IS_BOUND not in claim.metadata.annotations:
                return f'persistentvolumeclaim "{name}" is not bound to a volume yet'
            if claim.spec.volume_name not in self.volumes:
                return f'persistentvolume "{claim.spec.volume_name}" not found'
        return ""


def _place(volume: PersistentVolume) -> NodeSelector | None:
    """The zones of a volume; nodes that are in no zone at all can use it too."""
    labels = volume.metadata.labels
    within = tuple(
        SelectorRequirement(key=key, operator="In", values=tuple(labels[key].split(_BETWEEN)))
        for key in _PLACES
        if key in labels
    )
    nowhere = tuple(SelectorRequirement(key=key, operator="DoesNotExist") for key in _PLACES)
    if not within:
        return None
    return NodeSelector(
        node_selector_terms=(
            NodeSelectorTerm(match_expressions=within),
            NodeSelectorTerm(match_expressions=nowhere),
        )
    )
