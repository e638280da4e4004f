"""Groups of pods that are scheduled all or none: which group a pod belongs to, and what it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from argosy.kubernetes.kinds import COSCHEDULING_GROUPS, POD_GROUPS
from argosy.kubernetes.objects import CoschedulingGroup, Pod, PodGroup
from argosy.model.jobs import Job, TaskGroup
from argosy.worlds.kubernetes.tracked import PodGang, PodGroupName, PodState, TrackedPod

#: The label by which the coscheduling plug-in of kube-scheduler finds a pod's PodGroup.
GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"
#: Labels of its first version, which needs no objects.
NAME_LABEL: Final = "pod-group.scheduling.sigs.k8s.io/name"
SIZE_LABEL: Final = "pod-group.scheduling.sigs.k8s.io/min-available"
#: Precedes the group's name in the name of its job: names of pods have no colon.
JOB_PREFIX: Final = "group:"
#: The longest that a group rests, in looks.
LONGEST_REST: Final = 64

_COUNTS: Final = (PodState.CLAIMED, PodState.HELD, PodState.BINDING, PodState.BOUND)


class GroupRule(msgspec.Struct, frozen=True):
    """`size` is how many pods have to be placed together; `obstacle` is why none can be."""

    size: int = 1
    obstacle: str = ""


def group_of(pod: Pod) -> PodGroupName | None:
    """The group to which a pod belongs, if it does."""
    group, labels, namespace = pod.spec.scheduling_group, pod.metadata.labels, pod.namespace
    if group is not None and group.pod_group_name:
        return PodGroupName(POD_GROUPS.group, namespace, group.pod_group_name)
    if labels.get(GROUP_LABEL):
        return PodGroupName(COSCHEDULING_GROUPS.group, namespace, labels[GROUP_LABEL])
    if labels.get(NAME_LABEL):
        return PodGroupName("", namespace, labels[NAME_LABEL])
    return None


def name_of_group(group: PodGroup | CoschedulingGroup) -> PodGroupName:
    kind = POD_GROUPS if isinstance(group, PodGroup) else COSCHEDULING_GROUPS
    return PodGroupName(kind.group, group.namespace, group.name)


def rule_of_group(group: PodGroup | CoschedulingGroup) -> GroupRule:
    if isinstance(group, CoschedulingGroup):
        return GroupRule(max(1, group.spec.min_member))
    if group.spec.scheduling_constraints is not None and group.spec.scheduling_constraints.topology:
        return GroupRule(obstacle="its PodGroup has topology constraints, which are not supported")
    if group.spec.resource_claims:
        return GroupRule(obstacle="its PodGroup uses resource claims, which are not supported")
    gang = group.spec.scheduling_policy.gang
    return GroupRule(1 if gang is None else gang.min_count)


class PodGangs:
    """All groups that have pods. `rules` are those of the PodGroups that there are."""

    def __init__(self) -> None:
        self.rules: dict[PodGroupName, GroupRule] = {}
        self._gangs: dict[PodGroupName, PodGang] = {}

    def __iter__(self) -> Iterator[PodGang]:
        return iter(list(self._gangs.values()))

    def get(self, name: PodGroupName) -> PodGang | None:
        return self._gangs.get(name)

    def join(self, tracked: TrackedPod, name: PodGroupName) -> PodGang:
        gang = self._gangs.get(name)
        if gang is None:
            gang = self._gangs[name] = PodGang(name)
        tracked.gang = gang
        gang.members[tracked.uid] = tracked
        return gang

    def leave(self, tracked: TrackedPod, gang: PodGang) -> None:
        tracked.gang = None
        gang.members.pop(tracked.uid, None)
        gang.able.pop(tracked.uid, None)
        if not gang.members:
            self._gangs.pop(gang.name, None)

    def rule(self, gang: PodGang) -> GroupRule:
        if not gang.name.api:
            return _rule_of_labels(gang)
        rule = self.rules.get(gang.name)
        if rule is not None:
            return rule
        return GroupRule(obstacle=f"there is no PodGroup {gang.name.name} of {gang.name.api}")


def _rule_of_labels(gang: PodGang) -> GroupRule:
    sizes = [each.pod.metadata.labels.get(SIZE_LABEL, "") for each in gang.members.values()]
    wrong = next((size for size in sizes if not (size.isdecimal() and size.isascii())), None)
    if wrong is not None:
        what = f"is {wrong!r}, not a number" if wrong else "is missing"
        return GroupRule(obstacle=f"the label {SIZE_LABEL} of a pod of its group {what}")
    return GroupRule(max(1, *map(int, sizes), 1))


def placed_of(gang: PodGang) -> int:
    """Members that have a node, or are about to, or have ended well."""
    return gang.succeeded + sum(
        1
        for each in gang.members.values()
        if not is_leaving(each) and (each.state in _COUNTS or each.pod.spec.node_name)
    )


def is_leaving(tracked: TrackedPod) -> bool:
    is_deleted = tracked.pod.metadata.deletion_timestamp is not None
    return is_deleted or tracked.state is PodState.LEAVING


def in_order(pods: Iterable[TrackedPod]) -> list[TrackedPod]:
    """The oldest first."""
    return sorted(pods, key=lambda each: (str(each.pod.metadata.creation_timestamp), each.pod.name))


def lack_of(gang: PodGang, size: int) -> str:
    """Why too few pods of a group can be placed."""
    exist = gang.succeeded + sum(not is_leaving(each) for each in gang.members.values())
    group = f"group {gang.name.name}"
    if exist < size:
        return f"{exist} of {size} pods of {group} exist"
    able = placed_of(gang) + len(gang.able)
    return (
        f"{able} of {size} pods of {group} can be scheduled: something else keeps the others "
        "from being scheduled"
    )


def job_of_gang(
    name: str, gang: PodGang, jobs: Sequence[tuple[TrackedPod, Job]]
) -> tuple[Job, list[TrackedPod]]:
    """One job for pods with these jobs of their own, and the pods in the order of its tasks. Pods that
    are alike are one group of tasks; the largest come first, as they are the hardest to place. The job
    counts as much as the least important of the pods."""
    alike: list[tuple[TaskGroup, list[TrackedPod]]] = []
    for tracked, job in jobs:
        [group] = job.groups
        for known, pods in alike:
            if known == group:
                pods.append(tracked)
                break
        else:
            alike.append((group, [tracked]))
    alike.sort(key=lambda each: (each[0].request.cpu, each[0].request.memory), reverse=True)
    groups = tuple(msgspec.structs.replace(group, count=len(pods)) for group, pods in alike)
    first = jobs[0][1]
    together = msgspec.structs.replace(
        first,
        id=name,
        groups=groups,
        precedence=min(job.precedence for _, job in jobs),
        preempts=all(job.preempts for _, job in jobs),
        gang=True,
        constraints=tuple(dict.fromkeys(each for _, job in jobs for each in job.constraints)),
        name=f"{gang.name.namespace}/{gang.name.name}",
    )
    return together, [tracked for _, pods in alike for tracked in pods]
