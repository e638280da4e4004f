"""Runs scenarios on a control plane, all of them at once, and says where each pod may go.

Every node has a taint of its own, which a probe pod tolerates for one node only. So a round of probes,
one for each letter of nodes, tells whether that node is admissible; the probes of a scheduler are gone
before the next round begins. Scenarios that probes would change, or that remove pods, have nodes of
their own for each scheduler, and their pod chooses among all of them.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from argosy.kubernetes.control_plane import ControlPlane, ControlPlaneError
from argosy.kubernetes.control_plane.admin import RequestRefused
from pod_scenarios.table import OWN, Document, PodScenario, filled

PROBE: Final = "probe"
PRIORITIES: Final = {"lowest": 10, "low": 100, "high": 1000}
#: The class of pods that preempt nobody.
POLITE: Final = "polite"
#: Seconds within which everything has to come to rest.
PATIENCE: Final = 60.0
_MERGE: Final = "application/merge-patch+json"


class ScenarioResult(msgspec.Struct):
    """Nodes to which the pod may go, pods that had to go, and what the pod's status says."""

    on: set[str] = msgspec.field(default_factory=set)
    victims: set[str] = msgspec.field(default_factory=set)
    messages: list[str] = msgspec.field(default_factory=list)


class _Stage(msgspec.Struct, frozen=True):
    """A scenario in a namespace of its own."""

    scenario: PodScenario
    namespace: str

    def filled(self, document: Any) -> Any:
        return filled(document, {"$ns": self.namespace})


class ScenarioRun:
    """`scenarios` are known by their numbers."""

    def __init__(self, plane: ControlPlane, scenarios: Mapping[int, PodScenario]) -> None:
        self._plane = plane
        self._shared = {
            at: _Stage(each, f"s{at}") for at, each in scenarios.items() if each.is_probed
        }
        self._own = {
            at: {name: _Stage(each, f"s{at}{name}") for name in ("kube", "argosy")}
            for at, each in scenarios.items()
            if not each.is_probed
        }
        #: Changes of pods, as they are watched.
        self._events: queue.SimpleQueue[Document] = queue.SimpleQueue()

    def _watch(self) -> None:
        with contextlib.suppress(ControlPlaneError, OSError):
            while True:
                for event in self._plane.watch("/api/v1/pods"):
                    self._events.put(event)

    def prepare(self) -> None:
        """All but the pods that are scheduled."""
        self._plane.request(
            "POST",
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": POLITE}, "value": 1000, "preemptionPolicy": "Never"},
        )
        for name, value in PRIORITIES.items():
            document = {"metadata": {"name": name}, "value": value}
            self._plane.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", document)
        stages = [
            *self._shared.values(),
            *(stage for own in self._own.values() for stage in own.values()),
        ]
        self._for_each(self._build, stages)
        threading.Thread(target=self._watch, daemon=True).start()

    def _for_each(self, action: Any, items: Sequence[Any]) -> None:
        self._plane._admin.for_each(action, items)

    def _build(self, stage: _Stage) -> None:
        plane, scenario = self._plane, stage.scenario
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": stage.namespace}})
        for path, document in scenario.objects:
            whole = stage.filled(document)
            created = plane.request("POST", stage.filled(path), whole)
            if "status" in whole:
                name = created["metadata"]["name"]
                plane.request(
                    "PATCH",
                    f"{stage.filled(path)}/{name}/status",
                    {"status": whole["status"]},
                    content_type=_MERGE,
                )
        for letter, document in scenario.nodes.items():
            name = f"{stage.namespace}-{letter}"
            node = filled(stage.filled(document), {"$name": name})
            node["metadata"] |= {"name": name}
            node["metadata"]["labels"] |= {OWN: stage.namespace}
            if scenario.is_probed:
                node["spec"]["taints"].append(
                    {"key": PROBE, "value": letter, "effect": "NoSchedule"}
                )
            node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            plane.request("POST", "/api/v1/nodes", node)
        for document in scenario.existing:
            self._place(stage.filled(document))

    def _place(self, document: Document) -> None:
        metadata = document["metadata"]
        is_terminating = metadata.pop("deletionTimestamp", None) is not None
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
        self._plane.request("POST", path, document)
        one = f"{path}/{metadata['name']}"
        if "status" in document:
            self._plane.request(
                "PATCH", f"{one}/status", {"status": document["status"]}, content_type=_MERGE
            )
        if is_terminating:
            self._plane.request("DELETE", one)

    def results(self, scheduler: str, *, is_argosy: bool) -> dict[int, ScenarioResult]:
        """`scheduler` is the name that pods give."""
        found: dict[int, ScenarioResult] = {}
        for letter in "abcd":
            stages = {
                at: stage for at, stage in self._shared.items() if letter in stage.scenario.nodes
            }
            self._round(stages, letter, scheduler, is_argosy, found)
        own = {at: stages["argosy" if is_argosy else "kube"] for at, stages in self._own.items()}
        self._round(own, "", scheduler, is_argosy, found)
        for at, stage in own.items():
            found[at].victims = self._missing(stage)
        return found

    def _round(
        self,
        stages: dict[int, _Stage],
        letter: str,
        scheduler: str,
        is_argosy: bool,
        found: dict[int, ScenarioResult],
    ) -> None:
        if not stages:
            return
        created: dict[str, int] = {}

        def create(at: int) -> None:
            stage = stages[at]
            pod = self._plane.request("POST", _pods(stage), _probe(stage, letter, scheduler))
            created[pod["metadata"]["uid"]] = at

        self._for_each(create, list(stages))
        hopeful = set()
        for at, stage in stages.items():
            on, _ = stage.scenario.expected(is_argosy=is_argosy)
            if letter in on if letter else on:
                hopeful.add(at)
        pods = self._at_rest(stages, created, hopeful)
        for at, pod in pods.items():
            result = found.setdefault(at, ScenarioResult())
            name = pod["spec"].get("nodeName", "")
            if name:
                result.on.add(name.rpartition("-")[2])
            result.messages += [each.get("message", "") for each in _unscheduled(pod)]
        if letter:
            self._for_each(
                lambda stage: self._plane.request("DELETE", f"{_pods(stage)}/pod"),
                list(stages.values()),
            )

    def _at_rest(
        self, stages: dict[int, _Stage], created: Mapping[str, int], hopeful: set[int]
    ) -> dict[int, Document]:
        """The pods when all that is to be expected has happened, or has failed to.

        `created` has the uids of the pods: late news of an earlier round's pod, which had the same name,
        says nothing.
        """
        is_ours = {at: "schedulerName" not in stages[at].scenario.pod["spec"] for at in stages}
        waiting = {at for at in stages if is_ours[at]}
        pods: dict[int, Document] = {}
        deadline = time.monotonic() + PATIENCE
        while waiting or len(pods) < len(stages):
            try:
                event = self._events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            document = event["object"]
            at = created.get(document.get("metadata", {}).get("uid", ""), -1)
            if event["type"] in ("ADDED", "MODIFIED") and at >= 0:
                pods[at] = document
                if document["spec"].get("nodeName") or (
                    at not in hopeful and _unscheduled(document)
                ):
                    waiting.discard(at)
        return {
            at: self._plane.request("GET", f"{_pods(stage)}/pod") for at, stage in stages.items()
        }

    def _missing(self, stage: _Stage) -> set[str]:
        missing = set()
        for document in stage.scenario.existing:
            name = document["metadata"]["name"]
            try:
                pod = self._plane.request("GET", f"{_pods(stage)}/{name}")
            except RequestRefused:
                missing.add(name)
            else:
                if "deletionTimestamp" in pod["metadata"]:
                    missing.add(name)
        return missing


def _pods(stage: _Stage) -> str:
    return f"/api/v1/namespaces/{stage.namespace}/pods"


def _probe(stage: _Stage, letter: str, scheduler: str) -> Document:
    document = stage.filled(stage.scenario.pod)
    spec = document["spec"]
    spec.setdefault("schedulerName", scheduler)
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), OWN: stage.namespace}
    if letter:
        own = {"key": PROBE, "operator": "Equal", "value": letter, "effect": "NoSchedule"}
        spec["tolerations"] = [*spec.get("tolerations", ()), own]
    return dict(document)


def _unscheduled(pod: Document) -> list[Document]:
    return [
        each
        for each in pod.get("status", {}).get("conditions", ())
        if each["type"] == "PodScheduled" and each["status"] == "False"
    ]


def difference(scenario: PodScenario, result: ScenarioResult, *, is_argosy: bool) -> str:
    on, victims = scenario.expected(is_argosy=is_argosy)
    is_right = result.on == on if scenario.is_probed else bool(result.on) == bool(on)
    if is_right and result.on <= on and result.victims == victims:
        return ""
    return (
        f"on {sorted(result.on)} instead of {sorted(on)}, "
        f"gone {sorted(result.victims)} instead of {sorted(victims)}: {result.messages}"
    )
