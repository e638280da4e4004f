"""What pods may ask for that keeps them from being scheduled here."""

from __future__ import annotations

from typing import Final

from argosy.kubernetes.objects import Pod
from argosy.model.resources import MOST_DIMENSIONS
from argosy.worlds.kubernetes.volumes import KnownVolumes

TOO_MANY_RESOURCES: Final = (
    f"it asks for one of more than {MOST_DIMENSIONS} different resources, "
    "which is as many as can be accounted for"
)


def obstacles_to_scheduling(pod: Pod, known: KnownVolumes) -> str:
    """Why the pod cannot be scheduled, whatever room there is; empty if it can."""
    if pod.spec.resource_claims:
        return "it uses resource claims, which are not supported"
    if pod.spec.workload_ref is not None:
        return "it has a workloadRef, which Kubernetes 1.36 has replaced by schedulingGroup"
    return known.obstacle(pod)
