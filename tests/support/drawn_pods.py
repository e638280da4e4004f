"""Objects of Kubernetes drawn at random, as documents: nodes, pods with every kind of rule, volumes,
budgets, groups and namespaces. All are of a small universe, so that they meet."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

import msgspec

from argosy.kubernetes.kinds import ResourceKind
from argosy.worlds.kubernetes.annotated_constraints import CONSTRAINTS
from argosy.worlds.kubernetes.commits import COMMIT
from argosy.worlds.kubernetes.gangs import GROUP_LABEL, NAME_LABEL, SIZE_LABEL
from argosy.worlds.kubernetes.moves import MOVABLE
from argosy.worlds.kubernetes.pod_jobs import ESTIMATE, KIND

Document = dict[str, Any]
T = TypeVar("T")

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
SPACES = ("default", "one", "two")
APPS = ("web", "db", "cache", "crunch")
KEYS = (HOST, ZONE, REGION, "rack")
NOON = "2026-05-01T12:00:00Z"
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
CONSTRAINT_LINES = (
    "app=web -> {app:db, 1, inf} in zone",
    "{app:web} -> {app:db, 0, 0} in machine",
    "app:crunch -> {app:crunch, 0, 2} in machine weight 3",
    "appID:self -> {appID:self, 0, 1} in machine",
    "app:web -> {app:web, 1, 3} in topology.kubernetes.io/zone",
    "{app:cache} spread 1 to 2 in zone",
    "app:db -> {app:cache, 1, inf} in shelf",
    "# a comment",
    "",
    "not a constraint at all",
)


def read(kind: ResourceKind[Any], document: Document) -> Any:
    return kind.decode(msgspec.json.encode(document))


class DrawnObjects:
    """Draws from one stream."""

    def __init__(self, seed: object, richness: float | None = None) -> None:
        self.random = Random(f"objects {seed}")
        self._uids = 0
        #: Probability of everything that pods may have besides requests.
        self.richness = self.random.choice((0.08, 0.25, 0.5)) if richness is None else richness

    def below(self, bound: int) -> int:
        return self.random.randrange(bound)

    def one(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def some(self, values: Sequence[T], most: int = 3) -> list[T]:
        return self.random.sample(list(values), self.below(min(most, len(values)) + 1))

    def maybe(self, chance: float | None = None) -> bool:
        return self.random.random() < (self.richness if chance is None else chance)

    def uid(self, prefix: str) -> str:
        self._uids += 1
        return f"{prefix}-{self._uids}"

    # Nodes.

    def node(self, name: str) -> Document:
        labels = {HOST: name, "disk": self.one(("ssd", "hdd"))}
        if not self.maybe(0.1):
            labels[ZONE] = self.one(("east", "west", "north"))
            labels[REGION] = self.one(("here", "there"))
        if self.maybe(0.6):
            labels["rack"] = self.one(("r0", "r1", "r2"))
        if self.maybe(0.4):
            labels["cores"] = self.one(("4", "16", "064", "-2", "1_000", "many"))
        allocatable = {
            "cpu": self.one(("2", "4", "7500m", "8")),
            "memory": self.one(("4Gi", "8Gi", "16Gi", "9e9")),
            "pods": self.one(("3", "6", "110")),
        }
        if self.maybe(0.3):
            allocatable["nvidia.com/gpu"] = self.one(("1", "4"))
        if self.maybe(0.2):
            allocatable["example.com/tape"] = self.one(("1", "2"))
        if self.maybe(0.1):
            del allocatable["pods"]
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "unschedulable": self.maybe(0.1),
                "taints": [self.taint() for _ in range(self.one((0, 0, 0, 1, 1, 2)))],
            },
            "status": {"allocatable": allocatable},
        }

    def taint(self) -> Document:
        key = self.one(("gpu", "dedicated", "size", "old"))
        values = ("3", "12", "x") if key == "size" else ("", "web", "db")
        return {"key": key, "value": self.one(values), "effect": self.one(EFFECTS)}

    def toleration(self) -> Document:
        drawn: Document = {"operator": self.one(("Exists", "Equal", "", "Gt", "Lt", "Like"))}
        if self.maybe(0.8):
            drawn["key"] = self.one(
                ("gpu", "dedicated", "size", "node.kubernetes.io/unschedulable")
            )
        if self.maybe(0.7):
            drawn["value"] = self.one(("", "web", "db", "5", "12", "x"))
        if self.maybe(0.6):
            drawn["effect"] = self.one((*EFFECTS, "Other"))
        return drawn

    # Selectors.

    def requirement(self, keys: Sequence[str] = ("app", "tier", "disk", "cores")) -> Document:
        key = self.one(keys)
        operator = self.one(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"))
        values = {
            "app": APPS,
            "tier": ("front", "back"),
            "disk": ("ssd", "hdd"),
            "cores": ("4", "8", "many", "+7"),
            ZONE: ("east", "west", "south"),
            "metadata.name": ("n0", "n1", "n4"),
        }.get(key, ("r0", "r1"))
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        count = 1 if operator in ("Gt", "Lt") and not self.maybe(0.1) else 1 + self.below(2)
        return {"key": key, "operator": operator, "values": self.random.sample(values, count)}

    def selector(self) -> Document | None:
        match self.below(8):
            case 0:
                return None
            case 1:
                return {}
            case 2 | 3:
                return {"matchExpressions": [self.requirement(("app", "tier"))]}
            case 4:
                expressions = [self.requirement(("app", "tier")) for _ in range(2)]
                return {"matchLabels": {"app": self.one(APPS)}, "matchExpressions": expressions}
        return {"matchLabels": {"app": self.one(APPS)}}

    def node_term(self) -> Document:
        term: Document = {}
        if not self.maybe(0.1):
            keys = ("disk", "cores", "rack", ZONE)
            term["matchExpressions"] = [self.requirement(keys) for _ in range(1 + self.below(2))]
        if self.maybe(0.2):
            term["matchFields"] = [
                {
                    "key": "metadata.name",
                    "operator": self.one(("In", "NotIn")),
                    "values": [self.one(("n0", "n1", "n2"))],
                }
            ]
        return term

    def node_selector(self) -> Document:
        return {"nodeSelectorTerms": [self.node_term() for _ in range(self.one((0, 1, 1, 2)))]}

    def pod_term(self) -> Document:
        term: Document = {"topologyKey": self.one(KEYS)}
        if (selector := self.selector()) is not None:
            term["labelSelector"] = selector
        if self.maybe(0.25):
            term["namespaces"] = self.some(SPACES, 2)
        if self.maybe(0.2):
            term["namespaceSelector"] = self.one(
                ({}, {"matchLabels": {"team": "a"}}, {"matchLabels": {"team": "b"}})
            )
        if self.maybe(0.15):
            term["matchLabelKeys"] = self.one((["tier"], ["app", "tier"], ["absent"]))
        if self.maybe(0.1):
            term["mismatchLabelKeys"] = ["tier"]
        return term

    def affinity(self) -> Document:
        drawn: Document = {}
        required, preferred = (
            f"{each}DuringSchedulingIgnoredDuringExecution" for each in ("required", "preferred")
        )
        if self.maybe(0.5):
            node: Document = {}
            if self.maybe(0.6):
                node[required] = self.node_selector()
            if self.maybe(0.6):
                node[preferred] = [
                    {"weight": self.one((1, 30, 100)), "preference": self.node_term()}
                    for _ in range(1 + self.below(2))
                ]
            drawn["nodeAffinity"] = node
        for name in ("podAffinity", "podAntiAffinity"):
            if not self.maybe(0.45):
                continue
            part: Document = {}
            if self.maybe(0.7):
                part[required] = [self.pod_term() for _ in range(self.one((1, 1, 2)))]
            if self.maybe(0.5):
                part[preferred] = [
                    {"weight": self.one((1, 50, 100)), "podAffinityTerm": self.pod_term()}
                    for _ in range(1 + self.below(2))
                ]
            drawn[name] = part
        return drawn

    def spread(self) -> Document:
        drawn: Document = {
            "maxSkew": 1 + self.below(2),
            "topologyKey": self.one(KEYS),
            "whenUnsatisfiable": self.one(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
        }
        if (selector := self.selector()) is not None:
            drawn["labelSelector"] = selector
        if self.maybe(0.3):
            drawn["minDomains"] = 1 + self.below(4)
        if self.maybe(0.3):
            drawn["nodeAffinityPolicy"] = self.one(("Honor", "Ignore"))
        if self.maybe(0.3):
            drawn["nodeTaintsPolicy"] = self.one(("Honor", "Ignore"))
        if self.maybe(0.2):
            drawn["matchLabelKeys"] = ["tier"]
        return drawn

    # Pods.

    def requests(self) -> dict[str, str]:
        drawn = {}
        if not self.maybe(0.1):
            drawn["cpu"] = self.one(("100m", "500m", "1", "1500m", "2", "0.25", "9"))
        if not self.maybe(0.2):
            drawn["memory"] = self.one(("128Mi", "1Gi", "2Gi", "5e8", "3G"))
        if self.maybe(self.richness / 3):
            drawn["nvidia.com/gpu"] = self.one(("1", "2"))
        if self.maybe(self.richness / 6):
            drawn[f"example.com/{self.one(('tape', 'licence', 'a', 'b', 'c', 'd'))}"] = "1"
        return drawn

    def container(self, name: str) -> Document:
        drawn: Document = {"name": name, "resources": {"requests": self.requests()}}
        if self.maybe(self.richness / 3):
            drawn["ports"] = [
                {
                    "containerPort": 80,
                    "hostPort": self.one((0, 80, 443)),
                    "hostIP": self.one(("", "0.0.0.0", "127.0.0.1", "::", "10.0.0.1")),
                    "protocol": self.one(("TCP", "TCP", "UDP")),
                }
                for _ in range(1 + self.below(2))
            ]
        return drawn

    def init_container(self, name: str) -> Document:
        drawn = self.container(name)
        if self.maybe(0.5):
            drawn["restartPolicy"] = self.one(("Always", "Always", "OnFailure"))
        return drawn

    def volume(self, name: str) -> Document:
        match self.below(4):
            case 0 | 1:
                return {
                    "name": name,
                    "persistentVolumeClaim": {"claimName": f"claim-{self.below(4)}"},
                }
            case 2:
                return {"name": name, "ephemeral": {}}
        return {"name": name, "emptyDir": {}}

    def owner(self) -> Document:
        kind = self.one(("ReplicaSet", "ReplicaSet", "Job", "DaemonSet", "StatefulSet", "Node"))
        name = f"{kind.lower()}-{self.below(2)}"
        return {"kind": kind, "name": name, "uid": name, "controller": self.maybe(0.8)}

    def annotations(self) -> dict[str, str]:
        drawn = {}
        if self.maybe():
            drawn[KIND] = self.one(("batch", "service", "special", ""))
        if self.maybe():
            drawn[ESTIMATE] = self.one(("30s", "2min", "5000000us", "soon", "-3s", "0s"))
        if self.maybe(self.richness / 3):
            drawn[CONSTRAINTS] = "\n".join(self.some(CONSTRAINT_LINES[: 3 + self.below(8)]))
        if self.maybe(self.richness / 2):
            drawn[MOVABLE] = self.one(("true", "false", "TRUE", "perhaps"))
        if self.maybe(0.02):
            drawn[COMMIT] = "job-of-nobody"
        return drawn

    def spec(self, scheduler: str = "argosy") -> Document:
        drawn: Document = {
            "schedulerName": scheduler,
            "containers": [self.container(f"c{at}") for at in range(self.one((1, 1, 1, 2, 3, 0)))],
        }
        if self.maybe():
            drawn["priority"] = self.one((0, 1, 5, 100, -10, 2_000_000_000))
        if self.maybe(self.richness / 4):
            drawn["preemptionPolicy"] = self.one(("Never", "PreemptLowerPriority"))
        if self.maybe(0.5):
            drawn["restartPolicy"] = self.one(("Never", "OnFailure", "Always"))
        if self.maybe(self.richness / 2):
            drawn["nodeSelector"] = {
                "disk": self.one(("ssd", "hdd")),
                **({"rack": "r1"} if self.maybe(0.3) else {}),
            }
        if self.maybe():
            drawn["affinity"] = self.affinity()
        if self.maybe():
            drawn["tolerations"] = [self.toleration() for _ in range(1 + self.below(3))]
        if self.maybe():
            spread = [self.spread() for _ in range(1 + self.below(2))]
            drawn["topologySpreadConstraints"] = spread
        if self.maybe(self.richness / 2):
            drawn["initContainers"] = [
                self.init_container(f"i{at}") for at in range(1 + self.below(3))
            ]
        if self.maybe(self.richness / 3):
            drawn["overhead"] = {"cpu": "50m", "memory": "10Mi"}
        if self.maybe(self.richness / 3):
            drawn["resources"] = {
                "requests": self.one(({"cpu": "3"}, {"memory": "1Gi", "example.com/tape": "1"}))
            }
        if self.maybe(self.richness / 2):
            drawn["volumes"] = [self.volume(f"v{at}") for at in range(1 + self.below(2))]
        if self.maybe(self.richness / 5):
            drawn["schedulingGates"] = [{"name": "wait"}]
        if self.maybe(self.richness / 10):
            drawn["resourceClaims"] = [{"name": "accelerator"}]
        if self.maybe(self.richness / 10):
            drawn["workloadRef"] = {"name": "w", "podGroup": "g"}
        return drawn

    def labels(self) -> dict[str, str]:
        drawn = {"app": self.one(APPS)}
        if self.maybe(0.4):
            drawn["tier"] = self.one(("front", "back"))
        if self.maybe(0.1):
            drawn["pod-template-hash"] = "abc"
        if self.maybe(0.1):
            drawn["canary"] = self.one(("true", "false", ""))
        return drawn

    def pod(self, name: str, scheduler: str = "argosy") -> Document:
        metadata: Document = {
            "name": name,
            "namespace": self.one(SPACES),
            "uid": self.uid(name),
            "labels": self.labels(),
            "annotations": self.annotations(),
            "creationTimestamp": f"2026-05-01T12:00:{self.below(60):02}Z",
            "resourceVersion": str(1 + self.below(1_000)),
        }
        if self.maybe(0.3):
            metadata["ownerReferences"] = [self.owner() for _ in range(self.one((1, 1, 2)))]
        if self.maybe(0.3):
            metadata["generateName"] = name[:-1]
        drawn: Document = {"metadata": metadata, "spec": self.spec(scheduler)}
        drawn["status"] = {"phase": "Pending"}
        if self.maybe(self.richness / 6):
            drawn["status"]["nominatedNodeName"] = f"n{self.below(5)}"
        return drawn

    def resized(self, pod: Document) -> Document:
        """The status of a pod that is resized in place."""
        statuses = []
        for container in pod["spec"]["containers"]:
            status: Document = {"name": self.one((container["name"], container["name"], "other"))}
            asked = container["resources"]["requests"]
            if self.maybe(0.8):
                status["resources"] = {"requests": self.one((asked, self.requests()))}
            if self.maybe(0.6):
                status["allocatedResources"] = self.one((asked, self.requests()))
            statuses.append(status)
        drawn = {**pod["status"], "containerStatuses": statuses}
        if self.maybe(0.5):
            reason = self.one(("Infeasible", "Deferred"))
            condition = {"type": "PodResizePending", "status": "True", "reason": reason}
            drawn["conditions"] = [condition]
        return {**pod, "status": drawn}

    def in_group(self, pod: Document) -> Document:
        """The pod as one of a group, in one of the ways to say so."""
        pod = msgspec.json.decode(msgspec.json.encode(pod))
        name = f"group-{self.below(2)}"
        match self.below(4):
            case 0:
                pod["spec"]["schedulingGroup"] = {"podGroupName": name}
            case 1:
                pod["metadata"]["labels"][NAME_LABEL] = name
                if not self.maybe(0.1):
                    size = self.one(("2", "3", "3", "x", "0"))
                    pod["metadata"]["labels"][SIZE_LABEL] = size
            case _:
                pod["metadata"]["labels"][GROUP_LABEL] = name
        pod["metadata"]["namespace"] = "one"
        return pod

    # Other objects.

    def namespace(self, name: str) -> Document:
        labels = {"team": self.one(("a", "b"))} if self.maybe(0.7) else {}
        return {"metadata": {"name": name, "labels": labels}}

    def claim(self, number: int, space: str | None = None, name: str = "") -> Document:
        annotations = {} if self.maybe(0.1) else {"pv.kubernetes.io/bind-completed": "yes"}
        metadata: Document = {
            "name": name or f"claim-{number}",
            "namespace": space or self.one(SPACES),
            "annotations": annotations,
        }
        if self.maybe(0.05):
            metadata["deletionTimestamp"] = NOON
        modes = [self.one(("ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"))]
        volume = "" if self.maybe(0.1) else f"volume-{self.below(4)}"
        return {"metadata": metadata, "spec": {"volumeName": volume, "accessModes": modes}}

    def persistent_volume(self, number: int) -> Document:
        labels = {}
        if self.maybe(0.3):
            labels[ZONE] = self.one(("east", "west__north"))
        if self.maybe(0.1):
            labels[REGION] = "here"
        spec: Document = {"accessModes": ["ReadWriteOnce"]}
        if self.maybe(0.5):
            affinity = {"required": self.node_selector()} if not self.maybe(0.1) else {}
            spec["nodeAffinity"] = affinity
        return {"metadata": {"name": f"volume-{number}", "labels": labels}, "spec": spec}

    def budget(self, number: int) -> Document:
        spec = {}
        if (selector := self.selector()) is not None:
            spec["selector"] = selector
        return {
            "metadata": {"name": f"budget-{number}", "namespace": self.one(SPACES)},
            "spec": spec,
            "status": {"disruptionsAllowed": self.below(3)},
        }

    def pod_group(self, number: int) -> Document:
        spec: Document = {"schedulingPolicy": {"gang": {"minCount": 1 + self.below(4)}}}
        if self.maybe(0.1):
            spec["schedulingPolicy"] = {"basic": {}}
        if self.maybe(0.07):
            spec["schedulingConstraints"] = {"topology": [{"key": ZONE}]}
        if self.maybe(0.07):
            spec["resourceClaims"] = [{"name": "accelerator"}]
        return {"metadata": {"name": f"group-{number}", "namespace": "one"}, "spec": spec}

    def coscheduling_group(self, number: int) -> Document:
        spec = {"minMember": self.below(4)}
        return {"metadata": {"name": f"group-{number}", "namespace": "one"}, "spec": spec}
