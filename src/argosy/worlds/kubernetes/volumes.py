"""Volumes and claims, and which nodes they can be used on."""

from __future__ import annotations

from argosy.kubernetes.objects import (
    NodeSelector,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)


class KnownVolumes:
    def __init__(self) -> None:
        self.volumes: dict[str, PersistentVolume] = {}
        #: By namespace and name.
        self.claims: dict[tuple[str, str], PersistentVolumeClaim] = {}

    def node_rules(self, pod: Pod) -> list[NodeSelector]:
        """Where the pod's bound volumes can be used."""
        rules = []
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            claim = self.claims.get((pod.namespace, volume.persistent_volume_claim.claim_name))
            bound = self.volumes.get(claim.spec.volume_name) if claim is not None else None
            affinity = bound.spec.node_affinity if bound is not None else None
            if affinity is not None and affinity.required is not None:
                rules.append(affinity.required)
        return rules
