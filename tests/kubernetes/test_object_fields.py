"""Every field of every kind has the name that Kubernetes gives it, and what an absent one means."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.kubernetes import kinds, objects
from argosy.kubernetes.batch import BATCH_JOBS
from argosy.kubernetes.meta import ObjectList, ServerStatus

TIME = "2026-02-03T04:05:06Z"
MICRO = "2026-02-03T04:05:06.000000Z"
METADATA: dict[str, Any] = {
    "name": "a", "generateName": "a-", "namespace": "s", "uid": "u", "resourceVersion": "7",
    "generation": 3, "creationTimestamp": TIME, "deletionTimestamp": TIME,
    "deletionGracePeriodSeconds": 30, "labels": {"l": "1"}, "annotations": {"n": "2"},
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o",
         "controller": True, "blockOwnerDeletion": True},
    ],
    "finalizers": ["f"],
}  # fmt: skip
CONDITION = {
    "type": "Ready", "status": "True", "reason": "r", "message": "m", "observedGeneration": 2,
    "lastTransitionTime": TIME, "lastHeartbeatTime": TIME, "lastProbeTime": TIME,
}  # fmt: skip
REFERENCE = {
    "apiVersion": "v1", "kind": "Pod", "namespace": "s", "name": "p", "uid": "u",
    "resourceVersion": "8", "fieldPath": "spec.containers{c}",
}  # fmt: skip
REQUIREMENT = {"key": "k", "operator": "In", "values": ["v"]}
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [REQUIREMENT]}
NODE_TERM = {"matchExpressions": [REQUIREMENT], "matchFields": [REQUIREMENT]}
NODE_SELECTOR = {"nodeSelectorTerms": [NODE_TERM]}
POD_TERM = {
    "topologyKey": "zone", "labelSelector": SELECTOR, "namespaces": ["x"],
    "namespaceSelector": SELECTOR, "matchLabelKeys": ["a"], "mismatchLabelKeys": ["b"],
}  # fmt: skip
POD_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": [POD_TERM],
    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 9, "podAffinityTerm": POD_TERM}],
}
RESOURCES = {
    "requests": {"cpu": "1"},
    "limits": {"cpu": "2"},
    "claims": [{"name": "gpu", "request": "one"}],
}
PORT = {
    "containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1", "protocol": "UDP", "name": "web",
}  # fmt: skip
CONTAINER = {
    "name": "c", "image": "i", "resources": RESOURCES, "ports": [PORT], "restartPolicy": "Always",
}  # fmt: skip
SOURCES = (
    "ephemeral", "csi", "hostPath", "emptyDir", "configMap", "secret", "projected", "downwardAPI",
    "image", "nfs", "iscsi", "fc", "rbd", "cephfs", "cinder", "gitRepo", "glusterfs", "flexVolume",
    "gcePersistentDisk", "awsElasticBlockStore", "azureFile", "azureDisk", "vsphereVolume",
    "portworxVolume",
)  # fmt: skip
CLAIM = {"name": "r", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}
RUNNING = {"startedAt": TIME}
TERMINATED = {
    "exitCode": 137, "signal": 9, "reason": "OOMKilled", "startedAt": TIME, "finishedAt": TIME,
}  # fmt: skip
CONTAINER_STATUS = {
    "name": "c", "ready": True, "restartCount": 4,
    "state": {"running": RUNNING, "terminated": TERMINATED},
    "allocatedResources": {"cpu": "3"}, "resources": RESOURCES,
}  # fmt: skip
GROUP = {
    "schedulingPolicy": {"basic": {"any": 1}, "gang": {"minCount": 4}},
    "schedulingConstraints": {"topology": [{"key": "zone"}]},
    "resourceClaims": [CLAIM], "disruptionMode": "Pod", "priorityClassName": "high", "priority": 5,
}  # fmt: skip
POD = {
    "spec": {
        "schedulerName": "argosy", "nodeName": "n1", "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": NODE_SELECTOR,
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 3, "preference": NODE_TERM}
                ],
            },
            "podAffinity": POD_AFFINITY, "podAntiAffinity": POD_AFFINITY,
        },
        "tolerations": [
            {"key": "k", "operator": "Exists", "value": "v", "effect": "NoExecute",
             "tolerationSeconds": 300},
        ],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": SELECTOR, "minDomains": 2, "nodeAffinityPolicy": "Ignore",
             "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["a"]},
        ],
        "containers": [CONTAINER], "initContainers": [CONTAINER], "overhead": {"cpu": "10m"},
        "resources": RESOURCES, "priority": 7, "priorityClassName": "high",
        "preemptionPolicy": "Never", "schedulingGates": [{"name": "wait"}],
        "schedulingGroup": {"podGroupName": "g"},
        "workloadRef": {"name": "w", "podGroup": "g", "podGroupReplicaKey": "1"},
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
            *({"name": "v", each: {}} for each in SOURCES),
        ],
        "resourceClaims": [CLAIM], "hostNetwork": True, "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 5, "activeDeadlineSeconds": 6,
        "runtimeClassName": "gvisor", "serviceAccountName": "me",
    },
    "status": {
        "phase": "Failed", "reason": "Evicted", "message": "m", "conditions": [CONDITION],
        "nominatedNodeName": "n2", "startTime": TIME, "containerStatuses": [CONTAINER_STATUS],
        "initContainerStatuses": [CONTAINER_STATUS],
    },
}  # fmt: skip
DOCUMENTS: list[tuple[kinds.ResourceKind[Any], dict[str, Any]]] = [
    (kinds.PODS, POD),
    (kinds.NODES, {
        "spec": {
            "unschedulable": True, "providerID": "cloud://1",
            "taints": [{"key": "k", "effect": "NoSchedule", "value": "v", "timeAdded": TIME}],
        },
        "status": {
            "allocatable": {"cpu": "3"}, "capacity": {"cpu": "4"}, "conditions": [CONDITION],
        },
    }),
    (kinds.NAMESPACES, {}),
    (kinds.PRIORITY_CLASSES, {
        "value": 9, "globalDefault": True, "preemptionPolicy": "Never", "description": "d",
    }),
    (kinds.POD_DISRUPTION_BUDGETS, {
        "spec": {
            "selector": SELECTOR, "minAvailable": "50%", "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
        "status": {
            "observedGeneration": 1, "disruptionsAllowed": 2, "currentHealthy": 3,
            "desiredHealthy": 4, "expectedPods": 5, "disruptedPods": {"p": TIME},
            "conditions": [CONDITION],
        },
    }),
    (kinds.POD_GROUPS, {
        "spec": {
            "podGroupTemplateRef": {
                "workload": {"workloadName": "w", "podGroupTemplateName": "t"},
            },
            **GROUP,
        },
        "status": {"conditions": [CONDITION]},
    }),
    (kinds.COSCHEDULING_GROUPS, {"spec": {"minMember": 3}}),
    (kinds.WORKLOADS, {
        "spec": {
            "controllerRef": {"kind": "Job", "name": "j", "apiGroup": "batch"},
            "podGroupTemplates": [{"name": "t", **GROUP}],
        },
    }),
    (kinds.PERSISTENT_VOLUMES, {
        "spec": {
            "capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": NODE_SELECTOR},
            "claimRef": REFERENCE, "storageClassName": "fast", "accessModes": ["ReadWriteOnce"],
        },
        "status": {"phase": "Bound"},
    }),
    (kinds.PERSISTENT_VOLUME_CLAIMS, {
        "spec": {
            "volumeName": "v", "storageClassName": "fast", "accessModes": ["ReadWriteOncePod"],
            "resources": RESOURCES,
        },
        "status": {"phase": "Bound"},
    }),
    (kinds.STORAGE_CLASSES, {"provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"}),
    (kinds.LEASES, {
        "spec": {
            "holderIdentity": "me", "leaseDurationSeconds": 15, "acquireTime": MICRO,
            "renewTime": MICRO, "leaseTransitions": 2, "strategy": "OldestEmulationVersion",
            "preferredHolder": "you",
        },
    }),
    (kinds.EVENTS, {
        "eventTime": MICRO, "reportingController": "argosy", "reportingInstance": "one",
        "action": "Binding", "reason": "Scheduled", "type": "Normal", "note": "n",
        "regarding": REFERENCE, "related": REFERENCE,
        "series": {"count": 2, "lastObservedTime": MICRO},
    }),
    (BATCH_JOBS, {
        "spec": {
            "parallelism": 2, "completions": 3, "suspend": True,
            "template": {"metadata": METADATA},
        },
        "status": {
            "active": 1, "succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}],
        },
    }),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fields"), DOCUMENTS, ids=lambda each: getattr(each, "plural", "")
)
def test_every_field_is_read_and_written_by_its_name(
    kind: kinds.ResourceKind[Any], fields: dict[str, Any]
) -> None:
    document = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": METADATA,
        **fields,
    }
    read = kind.decode(msgspec.json.encode(document))
    assert msgspec.json.decode(msgspec.json.encode(read)) == document


def test_lists_and_statuses_are_read_and_written_by_their_names() -> None:
    listed = {
        "metadata": {"resourceVersion": "9", "continue": "next", "remainingItemCount": 4},
        "items": [{"metadata": METADATA}],
    }
    pods = kinds.PODS.decode_list(msgspec.json.encode(listed))
    assert isinstance(pods, ObjectList)
    assert msgspec.json.decode(msgspec.json.encode(pods)) == listed
    status = {
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "m", "reason": "r",
        "code": 409,
        "details": {
            "name": "p", "group": "apps", "kind": "pods", "uid": "u", "retryAfterSeconds": 3,
            "causes": [{"reason": "c", "message": "d", "field": "spec"}],
        },
    }  # fmt: skip
    refused = msgspec.json.encode(msgspec.convert(status, ServerStatus))
    assert msgspec.json.decode(refused) == status


#: What Kubernetes takes for granted where a field is absent, other than nothing.
DEFAULTS = [
    (objects.PodSpec, {}, "scheduler_name", "default-scheduler"),
    (objects.PodSpec, {}, "restart_policy", "Always"),
    (objects.Toleration, {}, "operator", "Equal"),
    (objects.ContainerPort, {"containerPort": 1}, "protocol", "TCP"),
    (objects.PriorityClass, {}, "preemption_policy", "PreemptLowerPriority"),
    (objects.CoschedulingGroupSpec, {}, "min_member", 1),
    (objects.StorageClass, {}, "volume_binding_mode", "Immediate"),
    (objects.ObjectCondition, {"type": "Ready"}, "status", "Unknown"),
]
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
DEFAULTS += [
    (objects.TopologySpreadConstraint, SPREAD, "node_affinity_policy", "Honor"),
    (objects.TopologySpreadConstraint, SPREAD, "node_taints_policy", "Ignore"),
]


@pytest.mark.parametrize(("kind", "given", "field", "expected"), DEFAULTS)
def test_an_absent_field_means_what_it_means_to_kubernetes(
    kind: type[Any], given: dict[str, Any], field: str, expected: object
) -> None:
    assert getattr(msgspec.convert(given, kind), field) == expected


@pytest.mark.parametrize(
    "kind", [kind for kind, _ in DOCUMENTS], ids=lambda kind: getattr(kind, "plural", "")
)
def test_what_else_is_absent_is_nothing(kind: kinds.ResourceKind[Any]) -> None:
    usual = {(kind, field): value for kind, given, field, value in DEFAULTS}
    seen: set[type[Any]] = set()

    def look(struct: msgspec.Struct) -> None:
        if type(struct) in seen:
            return
        seen.add(type(struct))
        for field in msgspec.structs.fields(struct):
            value = getattr(struct, field.name)
            if isinstance(value, msgspec.Struct):
                look(value)
            else:
                expected = usual.get((type(struct), field.name))
                assert value == expected if expected else not value, field.name

    look(kind.decode(b"{}"))


KINDS = [
    (kinds.PODS, "v1", "Pod", "/api/v1/namespaces/s/pods"),
    (kinds.NODES, "v1", "Node", "/api/v1/nodes"),
    (kinds.NAMESPACES, "v1", "Namespace", "/api/v1/namespaces"),
    (
        kinds.PRIORITY_CLASSES,
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
    ),
    (
        kinds.POD_DISRUPTION_BUDGETS,
        "policy/v1",
        "PodDisruptionBudget",
        "/apis/policy/v1/namespaces/s/poddisruptionbudgets",
    ),
    (
        kinds.POD_GROUPS,
        "scheduling.k8s.io/v1alpha2",
        "PodGroup",
        "/apis/scheduling.k8s.io/v1alpha2/namespaces/s/podgroups",
    ),
    (
        kinds.COSCHEDULING_GROUPS,
        "scheduling.x-k8s.io/v1alpha1",
        "PodGroup",
        "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/s/podgroups",
    ),
    (
        kinds.WORKLOADS,
        "scheduling.k8s.io/v1alpha2",
        "Workload",
        "/apis/scheduling.k8s.io/v1alpha2/namespaces/s/workloads",
    ),
    (kinds.PERSISTENT_VOLUMES, "v1", "PersistentVolume", "/api/v1/persistentvolumes"),
    (
        kinds.PERSISTENT_VOLUME_CLAIMS,
        "v1",
        "PersistentVolumeClaim",
        "/api/v1/namespaces/s/persistentvolumeclaims",
    ),
    (
        kinds.STORAGE_CLASSES,
        "storage.k8s.io/v1",
        "StorageClass",
        "/apis/storage.k8s.io/v1/storageclasses",
    ),
    (
        kinds.LEASES,
        "coordination.k8s.io/v1",
        "Lease",
        "/apis/coordination.k8s.io/v1/namespaces/s/leases",
    ),
    (kinds.EVENTS, "events.k8s.io/v1", "Event", "/apis/events.k8s.io/v1/namespaces/s/events"),
    (BATCH_JOBS, "batch/v1", "Job", "/apis/batch/v1/namespaces/s/jobs"),
]


@pytest.mark.parametrize(("kind", "version", "name", "path"), KINDS)
def test_each_kind_is_served_in_its_place(
    kind: kinds.ResourceKind[Any], version: str, name: str, path: str
) -> None:
    assert (kind.api_version, kind.name, kind.path("s")) == (version, name, path)
    assert kind.path("s", "a/b", "c") == f"{path}/a%2Fb/c"
    everywhere = path.replace("/namespaces/s/", "/")
    assert (kind.path(), kind.namespaced) == (everywhere, everywhere != path)


def test_nulls_are_removed_wherever_they_are() -> None:
    value = {"a": None, "b": [None, 1, {"c": None, "d": 0}], "e": "", "f": {"g": None}, "h": False}
    expected = {"b": [1, {"d": 0}], "e": "", "f": {}, "h": False}
    assert kinds.without_nulls(value) == expected
