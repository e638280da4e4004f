"""What pods may ask for that is not honoured here: what keeps a pod from being scheduled, and what is
ignored."""

from __future__ import annotations

from argosy.kubernetes.objects import (
    Affinity,
    NodeAffinity,
    Pod,
    PodAffinity,
)
from argosy.worlds.kubernetes.volumes import KnownVolumes


def obstacles_to_scheduling(pod: Pod, known: KnownVolumes) -> str:
    """Why the pod cannot be scheduled, whatever room there is; empty if it can."""
    if pod.spec.resource_claims:
        return "it uses resource claims, which are not supported"
    for volume in pod.spec.volumes:
        name = None
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.name}-{volume.name}"
        if name is None:
            continue
        claim = known.claims.get((pod.namespace, name))
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        if not claim.spec.volume_name:
            return f'persistentvolumeclaim "{name}" is not bound to a volume yet'
        if claim.spec.volume_name not in known.volumes:
            return f'persistentvolume "{claim.spec.volume_name}" not found'
    return ""


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
    if spec.preemption_policy == "Never":
        ignored.append("spec.preemptionPolicy Never")
    return ignored
