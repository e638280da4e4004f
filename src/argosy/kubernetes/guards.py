"""Admission policies that keep two schedulers from undoing each other's work.

A policy is evaluated by the API server for every binding, with nothing in between that could be away. It
sees the binding (names and annotations), who asks, and one object of the policy's own (`params`); it
sees neither the pod's requests nor what else is on the node. So it cannot count. What it can do:

- The *fencing guard* refuses bindings of leaders that were followed by another, whatever network or
  pause kept their requests under way. Its params are the Lease.
- The *node guard* refuses bindings of anybody else to the nodes that are listed in its ConfigMap, and
  pods that are created on them, those of kubelets apart. Where one scheduler has the last word, nothing
  is overcommitted.

On nodes that several schedulers share, each sees the other's pods only after they are bound: nothing but
a common arbiter could prevent that both take the last room at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from argosy.kubernetes.client import KubernetesClient, PatchForm
from argosy.kubernetes.failures import ObjectNotFound
from argosy.kubernetes.requests import KubernetesCall

Manifest: TypeAlias = dict[str, Any]

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_PATHS: Final = {
    "ValidatingAdmissionPolicy": f"/apis/{_ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"/apis/{_ADMISSION}/validatingadmissionpolicybindings",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
}
#: Both ways to bind a pod.
_BINDINGS: Final = ("pods/binding", "bindings")
_NODES_LABEL: Final = "app.kubernetes.io/managed-by"


def fencing_guard(
    name: str, lease: str, namespace: str, *, placed_by: str, fencing: str
) -> list[Manifest]:
    """Refuses bindings of NAME's earlier leaders. `placed_by` and `fencing` are the annotations of its
    bindings; `lease` is the Lease that the leader holds."""
    mine = _annotation(placed_by, name)
    given = f"int(object.metadata.annotations[{_text(fencing)}])"
    newest = "(has(params.spec.leaseTransitions) ? params.spec.leaseTransitions : 0)"
    return _policy(
        f"{name}-fencing",
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
        {"name": lease, "namespace": namespace},
        _BINDINGS,
        conditions={
            "of-this-scheduler": mine,
            "with-fencing": f"{_text(fencing)} in object.metadata.annotations",
        },
        # The server may not have seen the newest lease yet: larger numbers are right, too.
        valid=f"{given} >= {newest}",
        message=f"'the leader with fencing number ' + string({given}) + ' of {name} was followed by '"
        f" + string({newest})",
    )


def node_guard(
    name: str, nodes: Iterable[str], namespace: str, *, placed_by: str
) -> list[Manifest]:
    """Refuses what others put on these nodes."""
    listed = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(f"{name}-nodes", namespace),
        "data": dict.fromkeys(sorted(nodes), ""),
    }
    params = {"apiVersion": "v1", "kind": "ConfigMap"}
    where = {"name": f"{name}-nodes", "namespace": namespace}
    message = f"' is a node of the scheduler {name}'"
    is_listed = "has(params.data) && {node} in params.data"
    return [
        listed,
        *_policy(
            f"{name}-nodes-bindings",
            params,
            where,
            _BINDINGS,
            conditions={"of-another-scheduler": f"!({_annotation(placed_by, name)})"},
            valid=f"!({is_listed.format(node='object.target.name')})",
            message=f"object.target.name + {message}",
        ),
        *_policy(
            f"{name}-nodes-pods",
            params,
            where,
            ("pods",),
            conditions={
                "with-a-node": "has(object.spec.nodeName) && object.spec.nodeName != ''",
                "not-of-a-kubelet": "!request.userInfo.username.startsWith('system:node:')",
            },
            valid=f"!({is_listed.format(node='object.spec.nodeName')})",
            message=f"object.spec.nodeName + {message}",
        ),
    ]


def _policy(
    name: str,
    params: Mapping[str, str],
    where: Mapping[str, str],
    resources: Iterable[str],
    *,
    conditions: Mapping[str, str],
    valid: str,
    message: str,
) -> list[Manifest]:
    return [
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": _metadata(name),
            "spec": {
                "failurePolicy": "Fail",
                "paramKind": dict(params),
                "matchConstraints": {
                    "resourceRules": [
                        {
                            "apiGroups": [""],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": list(resources),
                        }
                    ]
                },
                "matchConditions": [
                    {"name": each, "expression": expression}
                    for each, expression in conditions.items()
                ],
                "validations": [
                    {"expression": valid, "messageExpression": message, "reason": "Forbidden"}
                ],
            },
        },
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": _metadata(name),
            "spec": {
                "policyName": name,
                "paramRef": {**where, "parameterNotFoundAction": "Allow"},
                "validationActions": ["Deny"],
            },
        },
    ]


def _metadata(name: str, namespace: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {_NODES_LABEL: "argosy"}}
    return metadata | ({"namespace": namespace} if namespace else {})


def _annotation(key: str, value: str) -> str:
    annotations = "object.metadata.annotations"
    return (
        f"has({annotations}) && {_text(key)} in {annotations} && "
        f"{annotations}[{_text(key)}] == {_text(value)}"
    )


def _text(value: str) -> str:
    """A literal of the Common Expression Language."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


async def apply_manifests(client: KubernetesClient, manifests: Iterable[Manifest]) -> None:
    """Makes them, or changes those that are there."""
    for manifest in manifests:
        metadata = manifest["metadata"]
        path = _PATHS[manifest["kind"]].format(namespace=metadata.get("namespace", ""))
        await client.sender.send(
            KubernetesCall(
                verb="apply",
                method="PATCH",
                path=f"{path}/{metadata['name']}",
                parameters={"fieldManager": "argosy", "force": "true"},
                body=msgspec.json.encode(manifest),
                content_type=PatchForm.APPLY.value,
            )
        )


async def remove_manifests(client: KubernetesClient, manifests: Iterable[Manifest]) -> None:
    """Those that are there, in the opposite order: what binds a policy goes first."""
    for manifest in reversed(list(manifests)):
        metadata = manifest["metadata"]
        path = _PATHS[manifest["kind"]].format(namespace=metadata.get("namespace", ""))
        call = KubernetesCall(verb="delete", method="DELETE", path=f"{path}/{metadata['name']}")
        try:
            await client.sender.send(call)
        except ObjectNotFound:
            continue
