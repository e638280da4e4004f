"""A pod as a job of one task."""

from __future__ import annotations

from typing import Final

from argosy.kubernetes.objects import Pod
from argosy.model.errors import ArgosyError
from argosy.model.jobs import BATCH, SERVICE, Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.units import parse_duration
from argosy.worlds.kubernetes.priorities import Precedences

#: Annotations that pods may have, and those that Argosy writes.
PREFIX: Final = "argosy.dev/"
KIND: Final = PREFIX + "kind"
ESTIMATE: Final = PREFIX + "estimate"
PLACED_BY: Final = PREFIX + "placed-by"
SCHEDULER: Final = PREFIX + "scheduler"
ENGINE: Final = PREFIX + "engine"
WHY: Final = PREFIX + "why"
WAITED: Final = PREFIX + "waited"

_RUNS_TO_ITS_END: Final = ("Never", "OnFailure")


def kind_of(pod: Pod) -> str:
    """What the annotation says; otherwise pods that end by themselves are batch."""
    said = pod.metadata.annotations.get(KIND)
    if said:
        return said
    return BATCH if pod.spec.restart_policy in _RUNS_TO_ITS_END else SERVICE


def estimate_of(pod: Pod) -> int | None:
    """How long the pod is expected to run, in microseconds; none if that is unknown or unreadable."""
    said = pod.metadata.annotations.get(ESTIMATE)
    if said is None:
        return None
    try:
        return parse_duration(said)
    except ArgosyError:
        return None


def controller_of(pod: Pod) -> str:
    """What made the pod: pods of one controller are alike."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            return f"{owner.kind}/{owner.name}"
    return ""


def job_of_pod(
    pod: Pod,
    name: str,
    kind: str,
    request: Resources,
    requires: dict[str, str],
    precedences: Precedences,
    wishes: dict[str, int] | None = None,
) -> Job:
    metadata = pod.metadata
    estimate = estimate_of(pod)
    group = TaskGroup(
        count=1,
        request=request,
        requires=requires,
        wishes=wishes or {},
        estimate=estimate,
        endless=estimate is None and pod.spec.restart_policy not in _RUNS_TO_ITS_END,
    )
    return Job(
        id=name,
        groups=(group,),
        kind=kind,
        precedence=precedences.of(pod.spec.priority or 0),
        owner=metadata.namespace,
        program=controller_of(pod),
        name=f"{metadata.namespace}/{metadata.name}",
        preempts=pod.spec.preemption_policy != "Never",
    )


def has_ended(pod: Pod) -> bool:
    """Whether it has ended by itself; the object may stay for long."""
    return pod.status.phase in ("Succeeded", "Failed")


def exit_code_of(pod: Pod) -> int:
    for container in pod.status.container_statuses:
        ended = container.state.terminated
        if ended is not None and ended.exit_code:
            return ended.exit_code
    return 1
