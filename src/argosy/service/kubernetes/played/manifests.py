"""Nodes and pods for the machines and tasks of a scenario.

Attributes are labels, and what tasks require are node selectors. Nodes of one pool are tainted, and only
pods that ask for it tolerate that. Owners are namespaces, and gangs PodGroups.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.gangs import GROUP_LABEL
from argosy.worlds.kubernetes.pod_jobs import ESTIMATE, KIND

#: The attribute of machines that are tainted.
TAINTED: Final = ("pool", "c")
#: How many pods a node takes.
MOST_PODS: Final = 110
#: The namespace of jobs without an owner.
USUAL: Final = "default"


def allocatable(capacity: Resources) -> dict[str, str]:
    return {**_quantities(capacity), "pods": str(MOST_PODS)}


def _quantities(amounts: Resources) -> dict[str, str]:
    extras = {name: str(amount) for name, amount in amounts.extras.items()}
    return {"cpu": f"{amounts.cpu}m", "memory": str(amounts.memory), **extras}


def node_of(machine: Machine) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": machine.name, **machine.attributes}
    key, value = TAINTED
    taint = {"key": key, "value": value, "effect": "NoSchedule"}
    return {
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"taints": [taint] if labels.get(key) == value else []},
        "status": {"allocatable": allocatable(machine.capacity)},
    }


def namespace_of(job: Job) -> str:
    return job.owner or USUAL


def group_of_gang(job: Job) -> dict[str, Any]:
    return {
        "metadata": {"name": job.id, "namespace": namespace_of(job)},
        "spec": {"minMember": job.tasks},
    }


def pod_of(job: Job, group: TaskGroup, name: str) -> dict[str, Any]:
    labels = {"app": job.id, **({GROUP_LABEL: job.id} if job.gang else {})}
    annotations = {KIND: job.kind}
    if group.estimate is not None:
        annotations[ESTIMATE] = f"{group.estimate}us"
    key, value = TAINTED
    tolerates = group.requires.get(key) == value
    toleration = {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
    container = {"name": "main", "resources": {"requests": _quantities(group.request)}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job.id, "uid": job.id}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace_of(job),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "schedulerName": "argosy",
            "restartPolicy": "Always" if group.endless else "Never",
            "priority": job.precedence,
            "containers": [container],
            "nodeSelector": dict(group.requires),
            "tolerations": [toleration] if tolerates else [],
            **_preferences(group),
        },
        "status": {"phase": "Pending"},
    }


def _preferences(group: TaskGroup) -> dict[str, Any]:
    terms = [
        {
            "weight": 10,
            "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]},
        }
        for key, value in group.prefers.items()
    ]
    if not terms:
        return {}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": terms}
    return {"affinity": {"nodeAffinity": preferred}}
