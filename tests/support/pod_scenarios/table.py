"""What a scheduling scenario is made of.

Each scenario has nodes and a namespace of its own. `$ns` in a text is that namespace, and a node
is called `$ns-` and its letter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

Document = dict[str, Any]

ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
#: Nodes and pods of a scenario are kept to themselves by this label.
OWN: Final = "scenario"
PENDING: Final = ""


class PodScenario(msgspec.Struct, frozen=True, kw_only=True):
    """`on` are the nodes to which kube-scheduler lets the pod go; none if it stays pending."""

    topic: str
    name: str
    nodes: dict[str, Document]
    pod: Document
    on: str = PENDING
    #: Pods that are on nodes already, which their `nodeName` tells.
    existing: tuple[Document, ...] = ()
    #: Other objects, with the paths at which they are created.
    objects: tuple[tuple[str, Document], ...] = ()
    #: Whether the pod is tried on each node, rather than once on all of them.
    is_probed: bool = True
    #: Names of the existing pods that have to go.
    victims: tuple[str, ...] = ()
    #: Where Argosy differs: the nodes, who has to go, and why.
    argosy: str | None = None
    argosy_victims: tuple[str, ...] | None = None
    why: str = ""

    def expected(self, *, is_argosy: bool) -> tuple[set[str], set[str]]:
        """The nodes that are admissible, and the pods that have to go."""
        on, victims = self.on, self.victims
        if is_argosy:
            on = self.argosy if self.argosy is not None else on
            victims = self.argosy_victims if self.argosy_victims is not None else victims
        return set(on.split()), set(victims)


def node(
    zone: str = "",
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    resources: Mapping[str, str] | None = None,
    has_hostname: bool = True,
    is_cordoned: bool = False,
) -> Document:
    """`taints` as kubectl writes them."""
    offered = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    marks = {**({ZONE: zone} if zone else {}), **(labels or {})}
    if has_hostname:
        marks[HOSTNAME] = "$name"
    return {
        "metadata": {"labels": marks},
        "spec": {
            "taints": [_taint(text) for text in taints],
            **({"unschedulable": True} if is_cordoned else {}),
        },
        "status": {"allocatable": offered, "capacity": offered},
    }


def _taint(text: str) -> dict[str, str]:
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def pod(
    name: str = "pod",
    *,
    on: str = "",
    labels: Mapping[str, str] | None = None,
    namespace: str = "$ns",
    finalizers: Sequence[str] = (),
    phase: str = "",
    is_terminating: bool = False,
    requests: Mapping[str, str] | None = None,
    **spec: Any,
) -> Document:
    """`on` is the letter of its node. A terminating pod is one that a finalizer keeps."""
    container: Document = {"name": "main", "image": "none.invalid/x"}
    if requests:
        # The server wants limits of extended resources.
        limits = {name: amount for name, amount in requests.items() if "/" in name}
        container["resources"] = {"requests": dict(requests), "limits": limits}
    full: Document = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    if on:
        full |= {"nodeName": f"$ns-{on}", "schedulerName": "nobody"}
    kept = ["example.com/kept"] if is_terminating else list(finalizers)
    document: Document = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            **({"finalizers": kept} if kept else {}),
        },
        "spec": full,
    }
    if phase:
        document["status"] = {"phase": phase}
    if phase == "Running":
        # Budgets are about pods that are ready.
        document["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    if is_terminating:
        document["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return document


def container(name: str = "main", *, ports: Sequence[Document] = (), **requests: str) -> Document:
    return {
        "name": name,
        "image": "none.invalid/x",
        **({"ports": list(ports)} if ports else {}),
        **({"resources": {"requests": requests}} if requests else {}),
    }


def requires_node(*terms: Document) -> Document:
    """Node affinity."""
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expressions(*requirements: Document) -> Document:
    return {"matchExpressions": list(requirements)}


def need(key: str, operator: str, *values: str) -> Document:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def term(
    key: str, labels: Mapping[str, str] | None = None, *, selector: Any = ..., **more: Any
) -> Document:
    """A term of pod affinity or anti-affinity."""
    chosen = {"matchLabels": dict(labels or {})} if selector is ... else selector
    return {
        "topologyKey": key,
        **({} if chosen is None else {"labelSelector": chosen}),
        **more,
    }


def near(*terms: Document) -> Document:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def apart(*terms: Document) -> Document:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def spread(
    key: str, labels: Mapping[str, str], max_skew: int = 1, *, must: bool = True, **more: Any
) -> Document:
    return {
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule" if must else "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
        **more,
    }


def tolerate(
    key: str = "", *, value: str = "", effect: str = "", operator: str = "Equal"
) -> Document:
    fields = {"key": key, "value": value, "effect": effect}
    return {"operator": operator, **{name: text for name, text in fields.items() if text}}


def filled(document: Any, texts: Mapping[str, str]) -> Any:
    """The document with `$ns` and the like replaced."""
    match document:
        case str():
            for name, text in texts.items():
                document = document.replace(name, text)
            return document
        case dict():
            return {filled(key, texts): filled(value, texts) for key, value in document.items()}
        case list() | tuple():
            return [filled(value, texts) for value in document]
    return document
