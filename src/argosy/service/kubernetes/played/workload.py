"""Controllers that make a pod for each task and another when it is lost, and kubelets that run pods."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec

from argosy.campaign.played_ends import PlayedEnds
from argosy.kubernetes.kinds import (
    COSCHEDULING_GROUPS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
)
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import Scenario
from argosy.model.truth import SimulatedJob
from argosy.service.kubernetes.played.api import PlayedApi
from argosy.service.kubernetes.played.manifests import (
    USUAL,
    allocatable,
    group_of_gang,
    namespace_of,
    node_of,
    pod_of,
)
from argosy.testing.api_objects import ApiChange
from argosy.testing.virtual_loop import VirtualLoop

#: How long at most until a kubelet starts a pod, a lost pod is made again, pods of a node that is gone
#: are deleted, and pods that have ended are.
LONGEST_START: Final = 500_000
LONGEST_REMAKE: Final = 1_000_000
LONGEST_NODE_GRACE: Final = 10_000_000
LONGEST_REMAINS: Final = 20_000_000


class PlayedTask(msgspec.Struct):
    """A task and the pod that is there for it."""

    job: Job
    group: TaskGroup
    index: int
    pods: int = 0
    #: Of the pod that there is now, or is to be.
    uid: str = ""
    is_over: bool = False

    def next_name(self) -> str:
        self.pods += 1
        return f"{self.job.id}-{self.index}-{self.pods}"


class PlayedWorkload:
    def __init__(self, scenario: Scenario, api: PlayedApi, loop: VirtualLoop) -> None:
        self._scenario = scenario
        self._api = api
        self._loop = loop
        self._random = Random(scenario.seed).child("pods")
        self._ends = PlayedEnds(scenario, Random(scenario.seed).child("kubelets"))
        self._machines = {machine.name: machine for machine in scenario.cell.machines}
        self._cordoned: set[str] = set()
        #: By the uid of their pods.
        self._tasks: dict[str, PlayedTask] = {}
        self._bound: set[str] = set()
        self._open = sum(made.tasks for made in scenario.jobs)
        api.listeners.append(self._changed)

    def begin(self) -> None:
        jobs = [made.job for made in self._scenario.jobs]
        for name in dict.fromkeys([USUAL, *map(namespace_of, jobs)]):
            self._api.put(NAMESPACES, {"metadata": {"name": name}})
        for value in dict.fromkeys(job.precedence for job in jobs if job.precedence):
            document = {"metadata": {"name": f"p{value}"}, "value": value}
            self._api.put(PRIORITY_CLASSES, document)
        for machine in self._scenario.cell.machines:
            self._put_node(machine)
        for made in self._scenario.jobs:
            self._loop.at(made.submit, partial(self._submit, made))

    @property
    def is_over(self) -> bool:
        return not self._open

    # Controllers.

    def _submit(self, made: SimulatedJob) -> None:
        job = made.job
        if job.gang:
            self._api.put(COSCHEDULING_GROUPS, group_of_gang(job))
        index = 0
        for group in job.groups:
            for _ in range(group.count):
                self._make(PlayedTask(job, group, index))
                index += 1

    def _make(self, task: PlayedTask) -> None:
        pod = self._api.put(PODS, pod_of(task.job, task.group, task.next_name()))
        task.uid = pod.uid
        self._tasks[pod.uid] = task

    def _soon(self, longest: int) -> int:
        return self._loop.micros + self._random.below(longest)

    def _changed(self, change: ApiChange) -> None:
        if change.path != PODS.path():
            return
        metadata, uid = change.document["metadata"], change.document["metadata"]["uid"]
        if change.type == "DELETED":
            task = self._tasks.pop(uid, None)
            if task is not None and task.uid == uid and not task.is_over:
                self._loop.at(self._soon(LONGEST_REMAKE), partial(self._make, task))
        elif change.document["spec"].get("nodeName") and uid not in self._bound:
            self._bound.add(uid)
            start = partial(self._start, metadata["namespace"], metadata["name"], uid)
            self._loop.at(self._soon(LONGEST_START), start)

    # Kubelets.

    def _there(self, namespace: str, name: str, uid: str) -> dict[str, Any] | None:
        """The pod, if it is there, its node too, and it is not leaving."""
        pod = self._api.document(PODS, name, namespace)
        if pod is None or pod["metadata"]["uid"] != uid:
            return None
        is_leaving = "deletionTimestamp" in pod["metadata"]
        node = self._api.document(NODES, pod["spec"]["nodeName"])
        return None if is_leaving or node is None else pod

    def _start(self, namespace: str, name: str, uid: str) -> None:
        pod, task = self._there(namespace, name, uid), self._tasks.get(uid)
        if pod is None or task is None:
            return
        self._api.put(PODS, {**pod, "status": {**pod["status"], "phase": "Running"}})
        end = self._ends.draw(task.job.id, task.index)
        if end is not None:
            over = partial(self._end, namespace, name, uid, end.fails)
            self._loop.at(self._loop.micros + end.after, over)

    def _end(self, namespace: str, name: str, uid: str, fails: bool) -> None:
        pod, task = self._there(namespace, name, uid), self._tasks.get(uid)
        if pod is None or task is None:
            return
        if fails:
            # Its controller makes another one.
            self._loop.at(self._soon(LONGEST_REMAKE), partial(self._make, task))
        else:
            task.is_over = True
            self._open -= 1
        task.uid = ""
        phase = "Failed" if fails else "Succeeded"
        self._api.put(PODS, {**pod, "status": {**pod["status"], "phase": phase}})
        clear = partial(self._delete, namespace, name, uid)
        self._loop.at(self._soon(LONGEST_REMAINS), clear)

    def _delete(self, namespace: str, name: str, uid: str) -> None:
        pod = self._api.document(PODS, name, namespace)
        if pod is not None and pod["metadata"]["uid"] == uid:
            self._api.remove(PODS, name, namespace)

    # Nodes.

    def _put_node(self, machine: Machine) -> None:
        document = node_of(machine)
        document["spec"]["unschedulable"] = machine.name in self._cordoned
        self._api.put(NODES, document)

    def remove_node(self, name: str, down: int | None) -> None:
        if self._api.document(NODES, name) is None:
            return
        self._api.remove(NODES, name)
        for pod in self._api.documents(PODS):
            if pod["spec"].get("nodeName") == name:
                metadata = pod["metadata"]
                uid = metadata["uid"]
                gone = partial(self._delete, metadata["namespace"], metadata["name"], uid)
                self._loop.at(self._soon(LONGEST_NODE_GRACE), gone)
        if down is not None:
            self._loop.at(self._loop.micros + max(1, down), partial(self._bring_back, name))

    def _bring_back(self, name: str) -> None:
        if self._api.document(NODES, name) is None:
            self._cordoned.discard(name)
            self._put_node(self._machines[name])

    def cordon(self, name: str, is_cordoned: bool) -> None:
        (self._cordoned.add if is_cordoned else self._cordoned.discard)(name)
        self._change_node(name)

    def resize(self, name: str, capacity: Resources) -> None:
        machine = self._machines[name]
        self._machines[name] = msgspec.structs.replace(machine, capacity=capacity)
        self._change_node(name)

    def _change_node(self, name: str) -> None:
        document = self._api.document(NODES, name)
        if document is not None:
            spec = {**document["spec"], "unschedulable": name in self._cordoned}
            status = {"allocatable": allocatable(self._machines[name].capacity)}
            self._api.put(NODES, {**document, "spec": spec, "status": status})
