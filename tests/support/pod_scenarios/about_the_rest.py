"""Volumes, gates, who schedules, preemption."""

from __future__ import annotations

from typing import Any

from pod_scenarios.table import (
    HOSTNAME,
    ZONE,
    Document,
    PodScenario,
    apart,
    expressions,
    need,
    node,
    pod,
    term,
)

_NODES = {"a": node("one"), "b": node("two")}
_CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
_IS_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def _volume(
    selector: Document | None = None, labels: Document | None = None, mode: str = "ReadWriteOnce"
) -> tuple[str, Document]:
    return (
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "$ns", "labels": labels or {}},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": [mode],
                "storageClassName": "$ns",
                "local": {"path": "/data"},
                "claimRef": {"namespace": "$ns", "name": "data"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            selector or expressions(need("kubernetes.io/os", "DoesNotExist"))
                        ]
                    }
                },
            },
        },
    )


def _claim(*, is_bound: bool = True, mode: str = "ReadWriteOnce") -> tuple[str, Document]:
    return (
        "/api/v1/namespaces/$ns/persistentvolumeclaims",
        {
            "metadata": {"name": "data", "annotations": _IS_BOUND if is_bound else {}},
            "spec": {
                "accessModes": [mode],
                "storageClassName": "$ns",
                "resources": {"requests": {"storage": "1Gi"}},
                **({"volumeName": "$ns"} if is_bound else {}),
            },
        },
    )


def _storage_class(mode: str) -> tuple[str, Document]:
    return (
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "metadata": {"name": "$ns"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": mode,
        },
    )


def _volumes(name: str, on: str, *objects: tuple[str, Document], **more: Any) -> PodScenario:
    settings: dict[str, Any] = {"pod": pod(volumes=[_CLAIM]), **more}
    return PodScenario(topic="volumes", name=name, on=on, nodes=_NODES, objects=objects, **settings)


_ON_B = expressions(need(HOSTNAME, "In", "$ns-b"))

VOLUMES = (
    _volumes("a bound volume that one node can reach", "b", _volume(_ON_B), _claim()),
    _volumes("a bound volume that every node can reach", "a b", _volume(), _claim()),
    _volumes(
        "a bound volume of a zone, by its label", "b", _volume(labels={ZONE: "two"}), _claim()
    ),
    _volumes("no such claim", ""),
    _volumes(
        "a claim that is not bound, with immediate binding",
        "",
        _storage_class("Immediate"),
        _claim(is_bound=False),
    ),
    _volumes("a claim whose volume is missing", "", _claim()),
    _volumes(
        "a volume for one pod, in use",
        "",
        _volume(mode="ReadWriteOncePod"),
        _claim(mode="ReadWriteOncePod"),
        existing=(pod("user", on="a", volumes=[_CLAIM]),),
    ),
    _volumes(
        "volumes that need no node",
        "a b",
        pod=pod(
            volumes=[
                {"name": "scratch", "emptyDir": {}},
                {"name": "settings", "configMap": {"name": "none"}},
                {"name": "host", "hostPath": {"path": "/tmp"}},
            ]
        ),
    ),
    _volumes(
        "an ephemeral volume that has no claim yet",
        "",
        pod=pod(
            volumes=[
                {
                    "name": "scratch",
                    "ephemeral": {
                        "volumeClaimTemplate": {
                            "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "1Gi"}},
                            }
                        }
                    },
                }
            ]
        ),
    ),
)

GATES = (
    PodScenario(
        topic="who schedules",
        name="a scheduling gate",
        nodes=_NODES,
        pod=pod(schedulingGates=[{"name": "example.com/wait"}]),
    ),
    PodScenario(
        topic="who schedules",
        name="a scheduler that is not there",
        nodes=_NODES,
        pod=pod(schedulerName="nobody"),
    ),
    PodScenario(
        topic="who schedules",
        name="a node that was chosen before, although it is full",
        nodes={"a": node(pods=0), "b": node()},
        pod=pod(nodeName="$ns-a"),
        is_probed=False,
        on="a",
    ),
    PodScenario(
        topic="who schedules",
        name="pods of another scheduler take room",
        nodes={"a": node(pods=1), "b": node()},
        existing=(pod("theirs", on="a"),),
        pod=pod(),
        on="b",
    ),
    PodScenario(
        topic="who schedules",
        name="a resource claim that does not exist",
        nodes=_NODES,
        pod=pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "none"}]),
    ),
)

#: Nodes with room for one pod of this size.
_ONE = {"cpu": "3"}
#: Two of them fit.
_HALF = {"cpu": "2"}


def _low(name: str, on: str, **more: Any) -> Document:
    return pod(name, on=on, requests=_ONE, priorityClassName="low", phase="Running", **more)


def _half(name: str, on: str, **more: Any) -> Document:
    return pod(name, on=on, requests=_HALF, priorityClassName="low", phase="Running", **more)


def _preempt(name: str, on: str, *existing: Document, **more: Any) -> PodScenario:
    settings: dict[str, Any] = {
        "nodes": {"a": node()},
        "pod": pod(requests=_ONE, priorityClassName="high"),
        **more,
    }
    return PodScenario(
        topic="preemption", name=name, on=on, existing=existing, is_probed=False, **settings
    )


def _budget(allowed: int) -> tuple[str, Document]:
    return (
        "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets",
        {
            "metadata": {"name": "budget"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": allowed,
                "currentHealthy": 1 + allowed,
                "desiredHealthy": 1,
                "expectedPods": 1 + allowed,
            },
        },
    )


PREEMPTION = (
    _preempt("a pod of lower priority has to go", "a", _low("victim", "a"), victims=("victim",)),
    _preempt(
        "a pod of the same priority stays",
        "",
        pod("stays", on="a", requests=_ONE, priorityClassName="high"),
    ),
    _preempt(
        "preemptionPolicy Never",
        "",
        _low("stays", "a"),
        pod=pod(requests=_ONE, priorityClassName="polite"),
    ),
    _preempt(
        "nobody has to go where there is room",
        "b",
        _low("stays", "a"),
        nodes={"a": node(), "b": node()},
    ),
    _preempt(
        "nobody has to go if that does not help",
        "",
        _low("stays", "a"),
        pod=pod(requests={"cpu": "5"}, priorityClassName="high"),
    ),
    _preempt(
        "no more have to go than are needed",
        "a",
        pod("small", on="a", requests={"cpu": "1"}, priorityClassName="low"),
        pod("large", on="a", requests={"cpu": "3"}, priorityClassName="low"),
        victims=("large",),
    ),
    _preempt(
        "a budget that allows it",
        "a",
        _low("victim", "a", labels={"app": "web"}),
        objects=(_budget(1),),
        victims=("victim",),
    ),
    _preempt(
        "a budget forbids it, and nobody else can go",
        "a",
        _low("victim", "a", labels={"app": "web"}),
        objects=(_budget(0),),
        victims=("victim",),
        argosy="",
        argosy_victims=(),
        why="kube-scheduler breaks a budget if there is no other way, Argosy never does",
    ),
    _preempt(
        "a budget forbids it here, but not there",
        "b",
        _low("stays", "a", labels={"app": "web"}),
        _low("victim", "b"),
        nodes={"a": node(), "b": node()},
        objects=(_budget(0),),
        victims=("victim",),
    ),
    _preempt(
        "a budget forbids it there, but not here",
        "a",
        _low("victim", "a"),
        _low("stays", "b", labels={"app": "web"}),
        nodes={"a": node(), "b": node()},
        objects=(_budget(0),),
        victims=("victim",),
    ),
    _preempt(
        "a budget allows one, but two would have to go here",
        "b",
        _half("stays", "a", labels={"app": "web"}),
        _half("stays-too", "a", labels={"app": "web"}),
        _low("victim", "b"),
        nodes={"a": node(), "b": node()},
        objects=(_budget(1),),
        victims=("victim",),
    ),
    _preempt(
        "a budget forbids one, but not the other",
        "a",
        _half("stays", "a", labels={"app": "web"}),
        _half("victim", "a"),
        pod=pod(requests=_HALF, priorityClassName="high"),
        objects=(_budget(0),),
        victims=("victim",),
    ),
    _preempt(
        "a taint cannot be preempted",
        "",
        _low("stays", "a"),
        nodes={"a": node(taints=["k=v:NoSchedule"])},
    ),
    _preempt(
        "a pod that is avoided has to go",
        "a",
        pod("victim", on="a", labels={"app": "web"}, priorityClassName="low"),
        pod=pod(
            priorityClassName="high",
            affinity=apart(term(HOSTNAME, {"app": "web"})),
        ),
        victims=("victim",),
        argosy="",
        argosy_victims=(),
        why="Argosy preempts to make room, not to satisfy rules about other pods",
    ),
    _preempt(
        "a pod with the host port has to go",
        "a",
        pod(
            "victim",
            on="a",
            priorityClassName="low",
            containers=[
                {
                    "name": "main",
                    "image": "none.invalid/x",
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                }
            ],
        ),
        pod=pod(
            priorityClassName="high",
            containers=[
                {
                    "name": "main",
                    "image": "none.invalid/x",
                    "ports": [{"containerPort": 80, "hostPort": 8080}],
                }
            ],
        ),
        victims=("victim",),
        argosy="",
        argosy_victims=(),
        why="Argosy preempts to make room, not to satisfy rules about other pods",
    ),
)
