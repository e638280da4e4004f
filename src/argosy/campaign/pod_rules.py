"""What must hold for the pods and nodes of a Kubernetes cluster, judged by what its API server recorded.

Shares no code with the scheduler: requests, selectors and taints are read here as the played manifests
write them. A scheduler hears of changes late, so a binding may rest on what was true a while ago
(`NEWS`), except for what the scheduler has done itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from argosy.campaign.recordings import ApiRecord, KnownPod, PodRecording
from argosy.campaign.recount import Recount, total
from argosy.campaign.waiting import PATIENCE
from argosy.model.scenario import AgentDown, AgentSlow, AgentStale, Partition
from argosy.model.units import format_duration

#: By then, a scheduler has heard what has changed: cuts and silences included, which may follow each
#: other.
NEWS: Final = 90_000_000
#: By then, a scheduler and an API server between which nothing goes wrong agree.
AGREED: Final = 10_000_000
_GROUP: Final = "scheduling.x-k8s.io/pod-group"
_CORDON: Final = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class RecordedNode(msgspec.Struct):
    """All that a node ever was: times, and documents from then on, none while it is gone."""

    name: str
    versions: list[tuple[int, dict[str, Any] | None]] = []

    def lately(self, at: int) -> list[dict[str, Any]]:
        """What a scheduler may take it for now."""
        ends = [*(since for since, _ in self.versions[1:]), at]
        return [
            document
            for (_, document), until in zip(self.versions, ends, strict=True)
            if document is not None and until >= at - NEWS
        ]


class RecordedPod(msgspec.Struct):
    document: dict[str, Any]
    made_at: int
    changed_at: int
    bound_at: int | None = None
    gone_at: int | None = None

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def node(self) -> str:
        return str(self.document["spec"].get("nodeName") or "")

    @property
    def group(self) -> tuple[str, str] | None:
        """Namespace and name of its PodGroup."""
        metadata = self.document["metadata"]
        name = (metadata.get("labels") or {}).get(_GROUP)
        return None if name is None else (metadata["namespace"], name)

    @property
    def has_ended(self) -> bool:
        return self.document["status"].get("phase") in ("Succeeded", "Failed")

    @property
    def is_there(self) -> bool:
        return self.gone_at is None and not self.has_ended

    @property
    def is_leaving(self) -> bool:
        return "deletionTimestamp" in self.document["metadata"]


class PodJudge:
    """Notes what is wrong with `Recount.complain`; the recount is that of the last scheduler's
    journals."""

    def __init__(self, recording: PodRecording, recount: Recount, ended_at: int) -> None:
        self._recording = recording
        self._recount = recount
        self._ended_at = ended_at
        self._nodes: dict[str, RecordedNode] = {}
        self._pods: dict[str, RecordedPod] = {}
        self._on_node: defaultdict[str, dict[str, RecordedPod]] = defaultdict(dict)
        self._sizes: dict[tuple[str, str], int] = {}
        self._node_losses: list[int] = []

    def judge(self) -> None:
        for record in self._recording.records:
            match record.kind:
                case "node":
                    self._see_node(record)
                case "pod":
                    self._see_pod(record)
                case "group":
                    metadata = record.document["metadata"]
                    size = record.document["spec"]["minMember"]
                    self._sizes[metadata["namespace"], metadata["name"]] = size
        self._check_gangs()
        self._check_agreement()
        self._check_explanations()

    def _see_node(self, record: ApiRecord) -> None:
        name = record.document["metadata"]["name"]
        node = self._nodes.setdefault(name, RecordedNode(name))
        node.versions.append((record.at, None if record.is_gone else record.document))
        if record.is_gone:
            self._node_losses.append(record.at)

    def _see_pod(self, record: ApiRecord) -> None:
        uid = record.document["metadata"]["uid"]
        pod = self._pods.get(uid)
        if pod is None:
            pod = self._pods[uid] = RecordedPod(record.document, record.at, record.at)
        before, pod.document, pod.changed_at = pod.node, record.document, record.at
        if record.is_gone:
            pod.gone_at = record.at
        if pod.node and not before and pod.is_there:
            pod.bound_at = record.at
            self._on_node[pod.node][uid] = pod
            self._check_binding(pod, record.at)
        elif before and pod.node != before:
            told = f"{pod.name} was on {before} and is on {pod.node or 'no node'}"
            self._recount.complain("task-steps", "bound again", told)
        if not pod.is_there:
            self._on_node[pod.node].pop(uid, None)

    # Bindings.

    def _check_binding(self, pod: RecordedPod, at: int) -> None:
        node = self._nodes.get(pod.node)
        known = [] if node is None else node.lately(at)
        told = f"{pod.name} was bound to {pod.node} at {format_duration(at)}, which "
        if not known:
            self._recount.complain("machine-state", "node gone", f"{told}is gone")
            return
        self._demand(known, _is_chosen, pod, "requires", "selector", f"{told}it does not select")
        self._demand(known, _is_tolerated, pod, "requires", "taint", f"{told}it does not tolerate")
        self._check_room(pod, known, at)

    def _demand(
        self,
        known: list[dict[str, Any]],
        holds: Callable[[dict[str, Any], dict[str, Any]], bool],
        pod: RecordedPod,
        check: str,
        kind: str,
        told: str,
    ) -> None:
        if not any(holds(pod.document, node) for node in known):
            self._recount.complain(check, kind, told)

    def _check_room(self, pod: RecordedPod, known: list[dict[str, Any]], at: int) -> None:
        used = total(_request(each.document) for each in self._on_node[pod.node].values())
        for resource, amount in used.items():
            has = max(_amount(node["status"]["allocatable"].get(resource, "0")) for node in known)
            if amount > has and _request(pod.document).get(resource):
                told = (
                    f"{pod.node} has {has} of {resource} and holds {amount} since {pod.name} was"
                    f" bound to it at {format_duration(at)}"
                )
                self._recount.complain("oversubscribed", "node", told)

    # Groups.

    def _check_gangs(self) -> None:
        """If nothing goes wrong meanwhile, as many pods of a group as it needs are bound together."""
        members: defaultdict[tuple[str, str], list[RecordedPod]] = defaultdict(list)
        for pod in self._pods.values():
            if pod.group is not None:
                members[pod.group].append(pod)
        for group, pods in members.items():
            times = sorted(pod.bound_at for pod in pods if pod.bound_at is not None)
            if not times or self._is_disturbed(times[0], pods):
                continue
            count = sum(at <= times[0] + NEWS for at in times)
            if count < self._sizes[group] and times[0] + NEWS < self._ended_at:
                told = (
                    f"group {group[1]} needs {self._sizes[group]} pods at once, of which {count}"
                    f" were bound from {format_duration(times[0])} on"
                )
                self._recount.complain("gang", "pods", told)

    def _is_disturbed(self, since: int, pods: list[RecordedPod]) -> bool:
        losses = [pod.gone_at for pod in pods if pod.gone_at is not None]
        times = (*self._recording.kills, *self._node_losses, *losses)
        return self._is_noisy or any(since - NEWS <= at <= since + NEWS for at in times)

    @property
    def _is_noisy(self) -> bool:
        """Whether requests may have been lost or refused."""
        scenario = self._recount.scenario
        kinds = (Partition, AgentDown, AgentSlow, AgentStale)
        return scenario.network.loss > 0 or any(isinstance(each, kinds) for each in scenario.faults)

    # The end.

    def _check_agreement(self) -> None:
        """What has not changed for a while is known to the scheduler as it is."""
        known = {each.uid: each for each in self._recording.known}
        for uid, pod in self._pods.items():
            if pod.changed_at > self._ended_at - AGREED or pod.is_leaving:
                known.pop(uid, None)
            elif pod.is_there:
                self._compare(pod, known.pop(uid, None))
        for uid in known:
            told = f"{self._pods[uid].name} is gone, and its scheduler does not know it"
            self._recount.complain("processes", "pod gone", told)

    def _compare(self, pod: RecordedPod, known: KnownPod | None) -> None:
        if known is None:
            told = f"{pod.name} is there, and its scheduler does not know it"
            self._recount.complain("processes", "pod unknown", told)
        elif pod.node:
            if self._has_settled(pod.node) and (known.node != pod.node or not known.is_bound):
                told = (
                    f"{pod.name} is on {pod.node}, and to its scheduler on {known.node or 'none'}"
                )
                self._recount.complain("processes", "pod elsewhere", told)
        elif not known.job and not known.obstacle:
            told = f"{pod.name} waits, and its scheduler does nothing about it"
            self._recount.complain("forgotten", "pod", told)

    def _has_settled(self, name: str) -> bool:
        """Whether the node is there, and has not changed for a while."""
        node = self._nodes.get(name)
        if node is None:
            return False
        since, document = node.versions[-1]
        return document is not None and since < self._ended_at - AGREED

    def _check_explanations(self) -> None:
        """A pod that has waited for long says why."""
        if self._is_noisy:
            return
        since = max((0, *self._recording.kills))
        for pod in self._pods.values():
            if pod.node or not pod.is_there or self._ended_at - max(pod.made_at, since) < PATIENCE:
                continue
            conditions = pod.document["status"].get("conditions") or ()
            if not any(each["type"] == "PodScheduled" for each in conditions):
                told = f"{pod.name} has waited since {format_duration(pod.made_at)}: no condition"
                self._recount.complain("unexplained", "pod", told)


def _is_chosen(pod: dict[str, Any], node: dict[str, Any]) -> bool:
    labels = node["metadata"]["labels"]
    wanted: Mapping[str, str] = pod["spec"].get("nodeSelector") or {}
    return all(labels.get(key) == value for key, value in wanted.items())


def _is_tolerated(pod: dict[str, Any], node: dict[str, Any]) -> bool:
    taints = [*node["spec"].get("taints", ())]
    if node["spec"].get("unschedulable"):
        taints.append(_CORDON)
    tolerated = [(each["key"], each.get("value")) for each in pod["spec"].get("tolerations") or ()]
    return all((taint["key"], taint.get("value")) in tolerated for taint in taints)


def _request(pod: dict[str, Any]) -> dict[str, int]:
    wanted = total(
        {name: _amount(text) for name, text in container["resources"]["requests"].items()}
        for container in pod["spec"]["containers"]
    )
    return {**wanted, "pods": 1}


def _amount(text: str) -> int:
    """As the played manifests write it: processors in thousandths, anything else in its own unit."""
    return int(text.removesuffix("m"))
