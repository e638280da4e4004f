"""Nodes that no computer stands behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.kubernetes.control_plane.programs import KWOK_NODE
from argosy.model.errors import ModelError, excerpt

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
ZONE: Final = "topology.kubernetes.io/zone"


def node_document(
    name: str,
    resources: Mapping[str, str],
    labels: Mapping[str, str],
    taints: Sequence[str],
    *,
    is_ready: bool,
) -> dict[str, Any]:
    """A `Node`. If kwok looks after it, it becomes ready by kwok's doing; otherwise it is born ready."""
    usual = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    status: dict[str, Any] = {"allocatable": dict(resources), "capacity": dict(resources)}
    if is_ready:
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": dict([KWOK_NODE]),
            "labels": usual | dict(labels),
        },
        "spec": {"taints": [parse_taint(text) for text in taints]},
        "status": status,
    }


def parse_taint(text: str) -> dict[str, str]:
    """As kubectl writes taints: KEY=VALUE:EFFECT or KEY:EFFECT."""
    name, colon, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    if not (colon and key and effect in _EFFECTS):
        raise ModelError(
            f"taint {excerpt(text)} cannot be read",
            expected=f"KEY=VALUE:EFFECT with one of {', '.join(_EFFECTS)}",
        )
    return {"key": key, "value": value, "effect": effect}


def is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
