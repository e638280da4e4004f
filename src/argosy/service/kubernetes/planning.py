"""What would become of the pods of manifests in a cluster as it is now. Changes nothing there."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.kinds import COSCHEDULING_GROUPS, POD_GROUPS, PODS, without_nulls
from argosy.kubernetes.objects import CoschedulingGroup, Pod, PodGroup
from argosy.model.errors import ArgosyError
from argosy.service.kubernetes.driver import ClusterWatches
from argosy.service.kubernetes.shadow.engine import ShadowedEngine
from argosy.service.kubernetes.shadow.placements import PlacementRecord

#: Kinds of objects that make pods from a template, and the field that says how many.
TEMPLATES: Final = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "ReplicationController": "replicas",
    "StatefulSet": "replicas",
    "Job": "parallelism",
}
#: Seconds after which pods that nobody has spoken of are taken to wait.
PATIENCE: Final = 30.0
_LOOK: Final = 0.02


class ManifestError(ArgosyError):
    """A manifest that cannot be read."""

    code = "manifest"


class PlannedPod(msgspec.Struct, frozen=True):
    namespace: str
    #: Of the object in the manifest: KIND/NAME.
    of: str
    name: str
    node: str
    #: Why it would wait.
    why: str


class PodPlan(msgspec.Struct, frozen=True):
    engine: str
    pods: tuple[PlannedPod, ...]
    #: Pods that would have to leave their nodes, as NAMESPACE/NAME.
    displaced: tuple[str, ...]

    @property
    def fits(self) -> bool:
        return all(pod.node for pod in self.pods)


class ManifestPod(msgspec.Struct, frozen=True):
    of: str
    pod: Pod


def pods_of(
    documents: Iterable[Any], namespace: str, priorities: Mapping[str, int]
) -> list[ManifestPod]:
    """The pods that the objects would make. Objects that make none are left out; `namespace` is that of
    objects without one, and `priorities` are those of the priority classes."""
    found: list[ManifestPod] = []
    for document in _flat(documents):
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            raise ManifestError("an object has no kind", expected="manifests as kubectl takes them")
        kind, metadata = document["kind"], document.get("metadata") or {}
        spec = document.get("spec") or {}
        name = str(metadata.get("name") or metadata.get("generateName") or kind.lower())
        space = str(metadata.get("namespace") or namespace)
        if kind == "DaemonSet":
            raise ManifestError(
                f"DaemonSet {name} cannot be planned",
                expected=f"Pod, {', '.join(TEMPLATES)}",
                hint="its pods go to every node that they are allowed on",
            )
        if kind == "Pod":
            found.append(ManifestPod(f"Pod/{name}", _pod(document, space, name, priorities)))
        elif kind in TEMPLATES:
            count = spec.get(TEMPLATES[kind])
            template = spec.get("template")
            if not isinstance(template, dict):
                raise ManifestError(f"{kind} {name} has no template", field="spec.template")
            for number in range(1 if count is None else int(count)):
                pod = _pod(template, space, f"{name}-{number}", priorities)
                found.append(ManifestPod(f"{kind}/{name}", pod))
    return found


def groups_of(documents: Iterable[Any], namespace: str) -> list[PodGroup | CoschedulingGroup]:
    """The PodGroups among the objects, whether or not the cluster serves such."""
    found: list[PodGroup | CoschedulingGroup] = []
    for document in _flat(documents):
        for kind in (POD_GROUPS, COSCHEDULING_GROUPS):
            if (document.get("apiVersion"), document["kind"]) != (kind.api_version, "PodGroup"):
                continue
            metadata = {"namespace": namespace, **(document.get("metadata") or {})}
            text = msgspec.json.encode(without_nulls({**document, "metadata": metadata}))
            try:
                found.append(kind.decode(text))
            except msgspec.ValidationError as error:
                raise ManifestError(f"PodGroup {metadata.get('name')}: {error}") from None
    return found


def _flat(documents: Iterable[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "List":
            yield from _flat(document.get("items") or ())
        elif document is not None:
            yield document


def _pod(
    document: Mapping[str, Any], namespace: str, name: str, priorities: Mapping[str, int]
) -> Pod:
    spec = dict(document.get("spec") or {})
    metadata = dict(document.get("metadata") or {})
    if spec.get("priorityClassName") in priorities:
        spec.setdefault("priority", priorities[spec["priorityClassName"]])
    for field in ("containers", "initContainers"):
        spec[field] = [_defaulted(each) for each in spec.get(field) or ()]
    # No pod of the cluster has such a uid.
    metadata |= {"namespace": namespace, "name": name, "uid": f"plan/{namespace}/{name}"}
    text = msgspec.json.encode(without_nulls({"metadata": metadata, "spec": spec}))
    try:
        return PODS.decode(text)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{namespace}/{name} is no pod: {error}") from None


def _defaulted(container: Mapping[str, Any]) -> dict[str, Any]:
    """As the API server does: what is limited and not requested is requested."""
    resources = dict(container.get("resources") or {})
    requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    quantities = {name: str(amount) for name, amount in requests.items()}
    return {**container, "resources": {**resources, "requests": quantities, "limits": {}}}


async def plan_pods(
    connection: Connection, entry: dict[str, Any], documents: Sequence[Any], namespace: str
) -> PodPlan:
    """With the cluster as it is now; pods that wait there are left out."""
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="argosy-plan-")))
        client = await stack.enter_async_context(KubernetesClient(connection))
        watches = await stack.enter_async_context(ClusterWatches(client))
        await watches.complete()
        classes = watches.priority_classes.objects.values()
        asked = pods_of(documents, namespace, {each.name: each.value for each in classes})
        now = time.monotonic()
        engine = ShadowedEngine(
            entry, watches, directory, PlacementRecord(now), lambda uid: now, lambda line: None
        )
        stack.push_async_callback(engine.close)
        _show_cluster(engine, watches, groups_of(documents, namespace))
        engine.start()
        for each in asked:
            engine.show(each.pod, is_fixed=False)
        await _decided(engine, [each.pod.uid for each in asked])
        planned = tuple(_planned(engine, each) for each in asked)
        gone = {f"{pod.namespace}/{pod.name}": None for pod in engine.evicted}
        return PodPlan(engine.name, planned, tuple(gone))


def _show_cluster(
    engine: ShadowedEngine,
    watches: ClusterWatches,
    groups: Iterable[PodGroup | CoschedulingGroup],
) -> None:
    def known(pods: Any) -> None:
        for namespace in watches.namespaces.objects.values():
            pods.set_namespace(namespace)
        for node in watches.nodes.objects.values():
            pods.set_node(node)
        for volume in watches.volumes.objects.values():
            pods.set_volume(volume)
        for claim in watches.claims.objects.values():
            pods.set_claim(claim)
        pods.set_budgets(watches.budgets.objects.values())
        for watch in watches.groups:
            for group in watch.objects.values():
                pods.set_group(group)
        for group in groups:
            pods.set_group(group)

    engine.tell(known)
    for pod in watches.pods.objects.values():
        if pod.spec.node_name:
            engine.show(pod, is_fixed=True)


async def _decided(engine: ShadowedEngine, uids: Sequence[str]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        await engine.cluster.do(lambda world: None)
        if all(uid in engine.record.pods or engine.reason_to_wait(uid) for uid in uids):
            return
        engine.look_again()
        await asyncio.sleep(_LOOK)


def _planned(engine: ShadowedEngine, asked: ManifestPod) -> PlannedPod:
    pod = asked.pod
    seen = engine.record.pods.get(pod.uid)
    why = "" if seen is not None else engine.reason_to_wait(pod.uid) or "no node was found in time"
    return PlannedPod(pod.namespace, asked.of, pod.name, "" if seen is None else seen.node, why)
