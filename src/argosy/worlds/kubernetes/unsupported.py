"""What pods may ask for that is not honoured here: what keeps a pod from being scheduled, and what is
ignored."""

from __future__ import annotations

from typing import Final

from argosy.kubernetes.objects import (
    Affinity,
    NodeAffinity,
    Pod,
    PodAffinity,
)
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


def ignored_wishes(pod: Pod) -> list[str]:
    """Fields of the pod that make no difference here."""
    spec = pod.spec
    affinity = spec.affinity or Affinity()
    ignored = []
    for name, part in (
        ("nodeAffinity", affinity.node_affinity or NodeAffinity()),
        ("podAffinity", affinity.pod_affinity or PodAffinity()),
        ("podAntiAffinity", affinity.pod_anti_affinity or PodAffinity()),
    ):
        if part.preferred_during_scheduling_ignored_during_execution:
            ignored.append(f"spec.affinity.{name}.preferredDuringSchedulingIgnoredDuringExecution")
    if any(each.when_unsatisfiable != "DoNotSchedule" for each in spec.topology_spread_constraints):
        ignored.append("spec.topologySpreadConstraints with whenUnsatisfiable ScheduleAnyway")
    return ignored
