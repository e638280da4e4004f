"""Constraints from Kubernetes manifests as people have them: pods, and what has a template of pods.

Objects without pods (services, config maps) say nothing about placement and are left out. Of a pod, only
labels, affinities, topology spread constraints and the node selector matter here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.model.constraints import Constraint
from argosy.model.constraints.kubernetes_reader import from_kubernetes
from argosy.model.errors import ArgosyError, Untranslatable

#: Where the template of pods is, by kind of object.
_TEMPLATES: Final = {
    "Deployment": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
    "Pod": (),
}
_PARTS: Final = ("affinity", "topologySpreadConstraints", "nodeSelector")


def from_manifests(documents: list[Any]) -> tuple[Constraint, ...]:
    """The constraints of all documents, without repetitions. A document without `kind` has a pod's
    `labels`, `affinity` and `topologySpreadConstraints` at its top."""
    found: dict[Constraint, None] = {}
    pods = 0
    for document in documents:
        for manifest in _each(document):
            if not isinstance(manifest, Mapping) or "kind" not in manifest:
                found.update(dict.fromkeys(from_kubernetes(manifest)))
                pods += 1
            elif manifest["kind"] in _TEMPLATES:
                found.update(dict.fromkeys(_of_object(manifest)))
                pods += 1
    if not pods:
        kinds = ", ".join(_TEMPLATES)
        raise Untranslatable("no manifest with pods", expected=f"one of {kinds}")
    return tuple(found)


def _each(document: Any) -> Iterator[Any]:
    """The objects in a document: those of a list one by one; nothing in an empty one."""
    if document is None:
        return
    is_list = isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List")
    items = document.get("items") if is_list else None
    if isinstance(items, list):
        for item in items:
            yield from _each(item)
    else:
        yield document


def _of_object(manifest: Mapping[str, Any]) -> tuple[Constraint, ...]:
    kind = manifest["kind"]
    path = _TEMPLATES[kind]
    named = manifest.get("metadata")
    name = named.get("name", "") if isinstance(named, Mapping) else ""
    pod: Any = manifest
    for step in path:
        pod = pod.get(step) if isinstance(pod, Mapping) else None
    if not isinstance(pod, Mapping):
        where = ".".join(path)
        raise Untranslatable(f"{kind} {name} has no {where}", expected="a template of pods")
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
        raise Untranslatable(f"{kind} {name}", expected="metadata and spec that are maps")
    parts = {part: spec[part] for part in _PARTS if spec.get(part)}
    if not parts:
        return ()
    try:
        return from_kubernetes({"labels": metadata.get("labels"), **parts})
    except ArgosyError as error:
        inner = error.field or ""
        part = "metadata" if inner.startswith("labels") else "spec"
        error.field = f"{kind} {name}: {'.'.join((*path, part, inner)).rstrip('.')}"
        raise
