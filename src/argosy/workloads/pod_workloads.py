"""A Kubernetes cluster as a workload: nodes are machines, and pods that came together are jobs.

Pods of one controller (ReplicaSet, Job, StatefulSet, DaemonSet) that arrive within `TOGETHER` of each
other are a job, with a group for each different request; other pods are jobs by themselves. Those that
had a node when the recording began are the initial load: jobs at time 0.

Rules about nodes (selectors, required affinity, taints, bound volumes) are kept exactly: a pod requires
the labels that select its nodes, or, where labels cannot say it, an attribute that just these nodes get
(`admits/JOB`). Rules about other pods become constraints as far as they have a counterpart. All else is
counted in `CarriedOver.left_out`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from argosy.kubernetes.objects import Node, Pod
from argosy.model.constraints import Constraint
from argosy.model.constraints.kubernetes import HOSTNAME, TOPOLOGIES
from argosy.model.constraints.parts import atoms, leaves
from argosy.model.jobs import Job, TaskGroup, is_name
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.resources import Resources
from argosy.model.scenario import GroupSpec
from argosy.model.truth import GroupTruth, SimulatedJob, group_with_truth
from argosy.model.units import format_count
from argosy.workloads.pod_constraints import constraints_of, tags_of
from argosy.workloads.pod_lives import ClusterRecording, PodLife
from argosy.worlds.kubernetes.node_machines import AccountedResources
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.pod_jobs import controller_of, estimate_of, kind_of
from argosy.worlds.kubernetes.pod_tags import GENERATED
from argosy.worlds.kubernetes.priorities import Precedences
from argosy.worlds.kubernetes.requests import node_capacity, pod_request

#: Pods of one controller that follow each other within this time, in microseconds, are one job.
TOGETHER: Final = 2_000_000
_ADMITS: Final = "admits/"
_TAINT: Final = "taint/"
_TRUE: Final = "true"
#: Labels with these names are node groups, whatever their prefix.
_GROUP_NAMES: Final = ("zone", "region", "rack")
#: Static pods are owned by their node.
_STATIC: Final = "Node"


class CarriedOver(msgspec.Struct, frozen=True):
    machines: tuple[Machine, ...]
    groups: tuple[GroupSpec, ...]
    #: In order of submission.
    jobs: tuple[SimulatedJob, ...]
    #: What the jobs and machines do not reproduce, a sentence each.
    left_out: tuple[str, ...]


class _PodTask(msgspec.Struct, frozen=True):
    """A pod, and what its job needs to know of it."""

    life: PodLife
    submit: int
    duration: int | None
    request: Resources
    admitted: frozenset[str]
    constraints: tuple[Constraint, ...]

    @property
    def pod(self) -> Pod:
        return self.life.pod


class _Alike(NamedTuple):
    """What tasks of one group have in common."""

    request: tuple[tuple[str, int], ...]
    requires: tuple[tuple[str, str], ...]
    tags: tuple[str, ...]
    estimate: int | None
    is_endless: bool


def carry_over(recording: ClusterRecording, *, pinned: bool = False) -> CarriedOver:
    """With `pinned`, pods that had a node when the recording began stay there."""
    return _Translation(recording, pinned).result()


class _Translation:
    def __init__(self, recording: ClusterRecording, pinned: bool) -> None:
        self._recording = recording
        self._pinned = pinned
        self._nodes = {node.name: node for node in recording.nodes}
        self._resources = AccountedResources()
        self._known = _offered(recording.nodes)
        self._pods_left_out: Counter[str] = Counter()
        self._precedences = Precedences(
            life.pod.spec.priority for life in recording.lives if life.pod.spec.priority is not None
        )
        #: Nodes admitted by rules, by the rules' key; and the names of attributes for sets of nodes.
        self._admitted: dict[bytes, frozenset[str]] = {}
        self._attributes: dict[frozenset[str], str] = {}
        self._hosts = Counter(node.metadata.labels.get(HOSTNAME, "") for node in recording.nodes)

    def result(self) -> CarriedOver:
        tasks = [task for life in self._recording.lives if (task := self._task(life)) is not None]
        topology = self._topology(tasks)
        tasks = [self._within(task, topology) for task in tasks]
        named = {tag for task in tasks for tag in _named(task.constraints)}
        ids: Counter[str] = Counter()
        jobs = [self._job(wave, ids, named) for wave in _waves(tasks)]
        jobs.sort(key=lambda job: job.submit)
        machines = tuple(self._machine(node, topology) for node in self._recording.nodes)
        groups = tuple(
            GroupSpec(name=group, sets=tuple(dict.fromkeys(_domains(machines, group))))
            for group in topology
        )
        return CarriedOver(machines, groups, tuple(jobs), tuple(self._sentences()))

    def _sentences(self) -> Iterable[str]:
        if self._recording.changed_nodes:
            nodes = format_count(self._recording.changed_nodes, "node")
            yield f"nodes are there all along, as they were last seen; not so in reality: {nodes}"
        for what, count in sorted(self._pods_left_out.items()):
            yield f"not carried over: {what} ({format_count(count, 'pod')})"

    # Pods.

    def _task(self, life: PodLife) -> _PodTask | None:
        start, pod = self._recording.start, life.pod
        if life.is_over(start):
            self._pods_left_out["pods that had ended before"] += 1
            return None
        if life.ended is not None and life.bound is None:
            self._pods_left_out["pods that were deleted before they had a node"] += 1
            return None
        if pod.spec.scheduling_gates and life.bound is None:
            self._pods_left_out["pods that scheduling gates hold"] += 1
            return None
        was_there = life.is_placed(start)
        request = self._request(pod)
        admitted = self._admitting(pod, life, stays=self._pinned and was_there)
        if request is None or not admitted:
            if not admitted:
                self._pods_left_out["pods that no node admits"] += 1
            return None
        duration = None
        if life.ended is not None and life.bound is not None:
            duration = max(0, life.ended - max(life.bound, start))
        problems: dict[str, None] = {}
        constraints = constraints_of(pod, lambda what: problems.setdefault(what))
        problems.update(dict.fromkeys(_ignored(pod)))
        self._pods_left_out.update(list(problems))
        return _PodTask(
            life, max(0, life.arrived - start), duration, request, admitted, constraints
        )

    def _request(self, pod: Pod) -> Resources | None:
        request = pod_request(pod)
        missing = [name for name in request.extras if name not in self._known]
        if missing:
            self._pods_left_out[f"pods that ask for {missing[0]}, which no node has"] += 1
            return None
        if self._resources.learn(request) is None:
            for name in list(request.extras):
                alone = Resources.of({name: request.extras[name]})
                if self._resources.learn(alone) is None:
                    self._pods_left_out[f"requests of {name}, one resource too many"] += 1
                    left = {key: each for key, each in request.items() if key != name}
                    request = Resources.of(left)
        return request

    def _admitting(self, pod: Pod, life: PodLife, *, stays: bool) -> frozenset[str]:
        """The nodes that the pod may go to."""
        is_static = any(owner.kind == _STATIC for owner in pod.metadata.owner_references)
        if (stays or is_static) and pod.spec.node_name in self._nodes:
            return frozenset((pod.spec.node_name,))
        rules = NodeRules.of(pod, self._recording.volumes.node_rules(pod))
        key = rules.key()
        if key not in self._admitted:
            admitted = (node.name for node in self._recording.nodes if rules.admits(node))
            self._admitted[key] = frozenset(admitted)
        found = self._admitted[key]
        if not found and life.bound is not None and pod.spec.node_name in self._nodes:
            # It runs where its rules do not admit it any more: it was there before the taint.
            return frozenset((pod.spec.node_name,))
        return found

    def _requires(self, pod: Pod, admitted: frozenset[str], job: str) -> dict[str, str]:
        """Attributes that just these nodes have."""
        if len(admitted) == len(self._nodes):
            return {}
        selector = pod.spec.node_selector
        if selector and admitted == self._labelled(selector):
            return dict(selector)
        if len(admitted) == 1:
            host = self._nodes[next(iter(admitted))].metadata.labels.get(HOSTNAME, "")
            if host and self._hosts[host] == 1:
                return {HOSTNAME: host}
        return {self._attributes.setdefault(admitted, _ADMITS + job): _TRUE}

    def _labelled(self, selector: Mapping[str, str]) -> frozenset[str]:
        wanted = selector.items()
        return frozenset(
            name for name, node in self._nodes.items() if wanted <= node.metadata.labels.items()
        )

    def _within(self, task: _PodTask, topology: Mapping[str, str]) -> _PodTask:
        """The task without constraints on node groups that there are not."""
        known = {MACHINE_GROUP, *topology}
        kept = tuple(
            each
            for each in task.constraints
            if all(leaf.group in known for leaf in leaves(each.rule))
        )
        if len(kept) < len(task.constraints):
            self._pods_left_out["rules on a topology key that no node has"] += 1
        return msgspec.structs.replace(task, constraints=kept)

    # Jobs.

    def _job(self, wave: list[_PodTask], ids: Counter[str], named: set[str]) -> SimulatedJob:
        first = wave[0].pod
        name = _job_name(first)
        ids[name] += 1
        job_id = name if ids[name] == 1 else f"{name}.{ids[name]}"
        parts: dict[_Alike, list[_PodTask]] = {}
        for task in wave:
            key = _Alike(
                tuple(task.request.items()),
                tuple(sorted(self._requires(task.pod, task.admitted, job_id).items())),
                _kept_tags(task.pod, named),
                estimate_of(task.pod),
                task.duration is None,
            )
            parts.setdefault(key, []).append(task)
        groups: list[tuple[TaskGroup, GroupTruth]] = []
        for alike, tasks in parts.items():
            durations = tuple(task.duration for task in tasks if task.duration is not None)
            groups.append(
                group_with_truth(
                    len(tasks),
                    tasks[0].request,
                    durations[:1] if len(set(durations)) == 1 else durations,
                    alike.estimate,
                    tags=alike.tags,
                    requires=dict(alike.requires),
                )
            )
        job = Job(
            job_id,
            tuple(group for group, _ in groups),
            kind=kind_of(first),
            precedence=self._precedences.of(first.spec.priority or 0),
            owner=first.namespace,
            constraints=wave[0].constraints,
            program=controller_of(first),
        )
        return SimulatedJob(job, wave[0].submit, tuple(truth for _, truth in groups))

    # Machines.

    def _topology(self, tasks: Iterable[_PodTask]) -> dict[str, str]:
        """The label of nodes behind each node group: places, and whatever constraints name."""
        labels = dict.fromkeys(
            key for node in self._recording.nodes for key in node.metadata.labels
        )
        keys = {group: key for group, key in TOPOLOGIES.items() if key in labels}
        keys.pop(MACHINE_GROUP, None)
        for key in labels:
            short = key.rpartition("/")[2]
            if short in _GROUP_NAMES and key not in keys.values():
                keys.setdefault(short, key)
        for task in tasks:
            for constraint in task.constraints:
                for leaf in leaves(constraint.rule):
                    if leaf.group != MACHINE_GROUP and leaf.group in labels:
                        keys.setdefault(leaf.group, leaf.group)
        return keys

    def _machine(self, node: Node, topology: Mapping[str, str]) -> Machine:
        labels = node.metadata.labels
        attributes = {key: value for key, value in labels.items() if is_name(key)}
        for taint in node.spec.taints:
            attributes[_TAINT + taint.key] = f"{taint.value}:{taint.effect}".removeprefix(":")
        for admitted, attribute in self._attributes.items():
            if node.name in admitted:
                attributes[attribute] = _TRUE
        return Machine(
            name=node.name,
            capacity=self._resources.capacity_of(node),
            attributes=attributes,
            joins={group: (labels[key],) for group, key in topology.items() if labels.get(key)},
        )


def _offered(nodes: Iterable[Node]) -> set[str]:
    """The resources that some node has."""
    return {
        name
        for node in nodes
        for name, amount in node_capacity(node, node.status.allocatable).items()
        if amount
    }


def _domains(machines: Iterable[Machine], group: str) -> Iterable[str]:
    for machine in machines:
        yield from machine.joins.get(group, ())


def _waves(tasks: Iterable[_PodTask]) -> Iterable[list[_PodTask]]:
    """Tasks of one job each."""
    open_: dict[tuple[object, ...], list[_PodTask]] = {}
    for task in sorted(tasks, key=lambda task: (task.submit, task.life.arrived)):
        owner = controller_of(task.pod)
        key: tuple[object, ...] = (
            task.pod.namespace,
            owner or f"Pod/{task.pod.name}",
            kind_of(task.pod),
            task.pod.spec.priority,
            task.constraints,
        )
        wave = open_.get(key)
        if wave is not None and owner and task.submit - wave[-1].submit <= TOGETHER:
            wave.append(task)
            continue
        if wave is not None:
            yield wave
        open_[key] = [task]
    yield from open_.values()


def _job_name(pod: Pod) -> str:
    owner = controller_of(pod).partition("/")[2] or pod.name
    return f"{pod.namespace}.{owner}"


def _kept_tags(pod: Pod, named: set[str]) -> tuple[str, ...]:
    return tuple(
        sorted(tag for tag, key in tags_of(pod).items() if key not in GENERATED or tag in named)
    )


def _named(constraints: Iterable[Constraint]) -> Iterable[str]:
    for constraint in constraints:
        for leaf in leaves(constraint.rule):
            if hasattr(leaf, "expression"):
                for atom in atoms(leaf.expression):
                    yield from atom.tags


def _ignored(pod: Pod) -> Iterable[str]:
    """What jobs cannot say."""
    spec = pod.spec
    if spec.preemption_policy == "Never":
        yield "preemptionPolicy Never"
    if spec.scheduling_group is not None or spec.workload_ref is not None:
        yield "pod groups: their pods are placed one by one"
    if spec.resource_claims:
        yield "resource claims"
    if any(
        port.host_port and port.host_ip not in ("", "0.0.0.0")
        for container in spec.containers
        for port in container.ports
    ):
        yield "host ports on one address"
