"""A cluster of pods and nodes drawn at random, scheduled by one engine without Kubernetes. All that the
world is told, all that is ordered, and what is known of pods is written down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
from drawn_pods import HOST, NOON, SPACES, DrawnObjects, read
from told_overseer import ToldOverseer, plain

from argosy.kubernetes.kinds import (
    COSCHEDULING_GROUPS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    POD_GROUPS,
    PODS,
    ResourceKind,
)
from argosy.kubernetes.objects import Pod
from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.messages import waiting_message
from argosy.service.kubernetes.queue_notes import QueueNotes
from argosy.service.server import FoundEngines
from argosy.worlds.kubernetes.gangs import GROUP_LABEL
from argosy.worlds.kubernetes.pod_jobs import has_ended
from argosy.worlds.kubernetes.pod_wishes import described_wishes
from argosy.worlds.kubernetes.tracked import (
    BindOrder,
    CreateOrder,
    EvictOrder,
    NominateOrder,
    PodState,
)
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster

SECOND: Final = 1_000_000
_OWNER: Final = {"kind": "ReplicaSet", "name": "rs", "uid": "rs"}
_APART: Final = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


class _Notes:
    """What pods are told of their place in a queue arrives at once, or not at all."""

    def __init__(self, cluster: DrawnPodCluster) -> None:
        self._cluster = cluster

    def annotate(self, pod: Pod, annotations: dict[str, str | None], message: str) -> None:
        self._cluster.tell(f"annotate {pod.uid} {plain(annotations)} {message!r}")
        document = self._cluster.objects.get(pod.uid)
        if document is not None and self._cluster.random.random() < 0.8:
            kept = document["metadata"].setdefault("annotations", {})
            kept.update(annotations)
            for key in [key for key, value in kept.items() if value is None]:
                del kept[key]
            self._cluster.pods.set_pod(read(PODS, document))

    def forget(self, uid: str) -> None:
        self._cluster.tell(f"forget {uid}")


class DrawnPodCluster:
    def __init__(
        self,
        seed: int,
        engines: list[dict[str, Any]],
        directory: Path,
        *,
        commits: bool = False,
        is_crowded: bool = False,
        is_grouped: bool = False,
    ) -> None:
        self.is_crowded, self.is_grouped = is_crowded, is_grouped
        #: Whether all pods are alike and spread over several nodes: engines that move some then do.
        self.is_even = engines[0]["engine"] == "firmament" and seed % 2 == 0
        self.seed, self._engines, self._directory = seed, engines, directory
        self.random = Random(f"cluster {seed}")
        self.draw = DrawnObjects(f"cluster {seed}", (0.02, 0.08, 0.2)[seed % 3])
        self.lines: list[str] = []
        self.now = 0
        self.commits = commits
        self.objects: dict[str, dict[str, Any]] = {}
        self.nodes: dict[str, dict[str, Any]] = {
            f"n{at}": self.draw.node(f"n{at}")
            for at in range(4 if self.is_even else 1 + self.random.randrange(4))
        }
        if is_crowded:
            for document in self.nodes.values():
                document["spec"] = {}
                document["status"]["allocatable"] |= {"cpu": "4", "memory": "8Gi", "pods": "6"}
        #: Orders that Kubernetes has not answered.
        self.open: list[BindOrder | EvictOrder | CreateOrder] = []
        self._later: list[Callable[[], None]] = []
        self._made = 0
        self._lives = 0
        overseer = self.overseer = ToldOverseer(
            "argosy", annotates=seed % 3 > 0, serves_commits=commits
        )
        overseer.tell = self.tell
        overseer.connect(
            lambda number, result: self.world.ended(number, result), self._later.append
        )
        self.pods = overseer.pods
        if seed % 2:
            self.pods.set_priorities([1, 5, 100, 1_000_000, -10])
        self.store: LocalStore | None = None
        self.build()
        self.notes = QueueNotes(self.pods, lambda: self.world, _Notes(self))
        for space in SPACES:
            self.pods.set_namespace(read(NAMESPACES, self.draw.namespace(space)))
        for document in self.nodes.values():
            self.pods.set_node(read(NODES, document))
        self.pods.prepare_commits()
        for number in range(3):
            self.volume(number)
            self.claim(number)
        drawn = [read(COSCHEDULING_GROUPS, self.draw.coscheduling_group(at)) for at in (0, 1)]
        self.pods.set_groups([*drawn, read(POD_GROUPS, self.draw.pod_group(0))])
        if is_grouped:
            for at in (0, 1):
                group = self.draw.coscheduling_group(at)
                group["spec"]["minMember"] = 2 + self.draw.below(3)
                self.pods.set_group(read(COSCHEDULING_GROUPS, group))
        self.pods.set_budgets([read(POD_DISRUPTION_BUDGETS, self.draw.budget(0))])
        self.go_on()

    def tell(self, line: str) -> None:
        self.lines.append(line)

    def build(self) -> None:
        """The world, new or again from its store."""
        if self.store is None:
            self.store = LocalStore(self._directory, is_lasting=False)
        machines = (self.pods.machine_of(read(NODES, each)) for each in self.nodes.values())
        cell = CellSpec(machines=tuple(machines))
        self.world = OverruledWorld(
            self.store,
            FoundEngines(),
            self.overseer,
            lambda: self.now,
            self.overseer,
            cluster=LocalCluster(name="drawn", cell=cell, fleet=read_fleet(self._engines, cell)),
        )

    def close(self) -> None:
        if self.store is not None:
            self.store.close()

    # What happens in the API.

    def set_pod(self, document: dict[str, Any]) -> None:
        pod = read(PODS, document)
        self.objects[pod.uid] = document
        self.tell(f"pod {plain(document)}")
        self.pods.set_pod(pod)
        if has_ended(pod):
            self.remove(pod.uid)

    def remove(self, uid: str) -> None:
        self.tell(f"pod {uid} is gone")
        self.objects.pop(uid, None)
        self.pods.remove_pod(uid, by_itself=self.random.random() < 0.2)

    def new_pod(self) -> None:
        self._made += 1
        scheduler = self.draw.one(("argosy", "argosy", "argosy", "first", "somebody"))
        document = self.draw.pod(f"p{self._made}", scheduler)
        if self.draw.maybe(0.2):
            document = self.draw.in_group(document)
        if self.draw.maybe(0.5):
            document["spec"]["priority"] = self.draw.one((1, 5, 100))
        if self.draw.maybe(0.5):
            document["metadata"]["ownerReferences"] = [{**_OWNER, "controller": True}]
        if self.is_crowded:
            self._simplify(document)
        copies = self.draw.one((1, 1, 2, 3))
        for copy in range(copies):
            again = msgspec.json.decode(msgspec.json.encode(document))
            again["metadata"]["uid"] += f"-{copy}"
            again["metadata"]["name"] += f"-{copy}"
            self.set_pod(again)
        self.pods.flush()

    def _simplify(self, document: dict[str, Any]) -> None:
        """Pods that all fit, one way or another, and the later the more important."""
        document["metadata"]["namespace"] = "one"
        resources = {"requests": {"cpu": self.draw.one(("500m", "1", "2")), "memory": "1Gi"}}
        names = ("affinity", "schedulingGroup")[self._made % 3 > 0 :]
        kept = {name: document["spec"].get(name) for name in names}
        document["spec"] = {
            "schedulerName": self.draw.one(("argosy", "argosy", "argosy", "first", "other")),
            "priority": 0 if self.is_even else self.draw.one((0, self._made // 4, self._made)),
            "restartPolicy": self.draw.one(("Never", "Always")),
            "containers": [{"name": "c0", "resources": resources}],
            **{name: value for name, value in kept.items() if value},
        }
        if self.is_even:
            document["metadata"]["ownerReferences"] = [{**_OWNER, "controller": True}]
            resources["requests"]["cpu"] = "500m"
        if self.is_grouped and self.draw.maybe(0.8):
            labels = {"app": "web", GROUP_LABEL: f"group-{self._made % 2}"}
            document["metadata"]["labels"] = labels
            document["spec"]["schedulerName"] = "argosy"
            if self.draw.maybe(0.5):
                document["spec"]["affinity"] = _APART
        if document["spec"]["schedulerName"] == "other":
            document["status"]["nominatedNodeName"] = self.draw.one(tuple(self.nodes))

    def any_pod(self, test: Callable[[dict[str, Any]], bool] = lambda _: True) -> Any:
        found = [each for each in self.objects.values() if test(each)]
        if not found:
            return None
        return msgspec.json.decode(msgspec.json.encode(self.random.choice(found)))

    def volume(self, number: int) -> None:
        volume = read(PERSISTENT_VOLUMES, self.draw.persistent_volume(number))
        self.tell(f"volume {plain(volume)}")
        self.pods.set_volume(volume)

    def claim(self, number: int) -> None:
        claim = read(PERSISTENT_VOLUME_CLAIMS, self.draw.claim(number))
        self.tell(f"claim {plain(claim)}")
        self.pods.set_claim(claim)

    def step(self) -> None:
        action = self.random.choice(_CROWDED if self.is_crowded else _ACTIONS)
        self.tell(f"-- {action.__name__.strip('_')}")
        action(self)
        self.pods.flush()

    def change_pod(self) -> None:
        document = self.any_pod()
        if document is None:
            return
        spec, metadata = document["spec"], document["metadata"]
        match self.random.randrange(9):
            case 0:
                metadata["labels"] = {**metadata["labels"], **self.draw.labels()}
            case 1:
                metadata["annotations"] = self.draw.annotations()
            case 2:
                spec["tolerations"] = [*spec.get("tolerations", ()), {"operator": "Exists"}]
            case 3:
                document = self.draw.resized(document)
            case 4:
                spec["schedulingGates"] = []
            case 5:
                spec["containers"] = [self.draw.container("c0")]
            case 6:
                document["status"]["nominatedNodeName"] = self.draw.one(("", "n0", "n1"))
            case 7:
                metadata["deletionTimestamp"] = NOON
            case _:
                document["status"]["conditions"] = [
                    {"type": "Ready", "status": self.draw.one(("True", "False"))}
                ]
        self.set_pod(document)

    def end_pod(self) -> None:
        document = self.any_pod(lambda each: bool(each["spec"].get("nodeName")))
        if document is None:
            return
        phase = self.draw.one(("Succeeded", "Failed"))
        document["status"] = {"phase": phase, "reason": self.draw.one(("", "Evicted"))}
        if phase == "Failed" and self.draw.maybe(0.5):
            ended = {"terminated": {"exitCode": self.draw.one((0, 3, 137))}}
            document["status"]["containerStatuses"] = [{"name": "c0", "state": ended}]
        self.set_pod(document)

    def delete_pod(self) -> None:
        if self.objects:
            self.remove(self.random.choice(list(self.objects)))

    def bound_by_others(self) -> None:
        document = self.any_pod(lambda each: not each["spec"].get("nodeName"))
        if document is None:
            return
        document["spec"]["nodeName"] = self.draw.one(("n0", "n1", "n2", "n7"))
        document["status"]["phase"] = "Running"
        self.set_pod(document)

    def set_node(self) -> None:
        name = f"n{self.random.randrange(6)}"
        known = self.nodes.get(name)
        document = self.draw.node(name)
        if known is not None and self.draw.maybe(0.7):
            part = self.draw.one(("metadata", "spec", "status"))
            document = {**known, part: document[part]}
        self.nodes[name] = document
        self.tell(f"node {plain(document)}")
        self.pods.set_node(read(NODES, document))

    def remove_node(self) -> None:
        if len(self.nodes) > 1:
            name = self.random.choice(list(self.nodes))
            self.tell(f"node {name} is gone")
            del self.nodes[name]
            self.pods.remove_node(name)

    def other_objects(self) -> None:
        number = self.random.randrange(3)
        match self.random.randrange(12):
            case 0:
                self.volume(number)
            case 1:
                self.claim(number)
            case 2:
                self.pods.remove_volume(f"volume-{number}")
            case 3:
                self.pods.remove_claim(self.draw.one(SPACES), f"claim-{number}")
            case 4 | 5:
                budget = self.draw.budget(number)
                self.tell(plain(budget))
                self.pods.set_budget(read(POD_DISRUPTION_BUDGETS, budget))
            case 6:
                self.pods.remove_budget(self.draw.one(SPACES), f"budget-{number}")
            case 7:
                group = self.draw.pod_group(number)
                self.tell(plain(group))
                self.pods.set_group(read(POD_GROUPS, group))
            case 8:
                group = self.draw.coscheduling_group(number)
                self.tell(plain(group))
                self.pods.set_group(read(COSCHEDULING_GROUPS, group))
            case 9:
                kinds: tuple[ResourceKind[Any], ...] = (POD_GROUPS, COSCHEDULING_GROUPS)
                kind = self.draw.one(kinds)
                self.pods.remove_group(read(kind, self.draw.coscheduling_group(number)))
            case 10:
                space = self.draw.namespace(self.draw.one(SPACES))
                self.tell(plain(space))
                self.pods.set_namespace(read(NAMESPACES, space))
            case _:
                budgets = [self.draw.budget(at) for at in range(number)]
                self.tell(plain(budgets))
                self.pods.set_budgets([read(POD_DISRUPTION_BUDGETS, each) for each in budgets])

    def recover(self) -> None:
        """An engine has failed: the world is built anew, perhaps without its last decisions."""
        self._later.clear()
        if self.draw.maybe(0.5):
            self.new_pod()
            self.world.settle()
        else:
            self.world.commit()
        self.build()

    def stand_by(self) -> None:
        if self.seed % 4 == 0:
            self.overseer.is_leading = not self.overseer.is_leading
            self.tell(f"leading {self.overseer.is_leading}")

    def look_up(self) -> None:
        self.pods.tell_groups()
        self.pods.expire_places()
        for job in {each.job: None for each in self.pods.pods.values() if each.job}:
            if self.pods.is_short(job):
                self.tell(f"{job} is short")
                self.pods.found_short(job)
        if self.pods.has_protected and self.draw.maybe(0.5):
            self.pods.forget_budgets()
        self.notes.write()

    def commit_job(self) -> None:
        if not self.commits:
            return
        self._made += 1
        demands = {"image": "registry/image:1"}
        if self.draw.maybe(0.3):
            demands["namespace"] = self.draw.one(SPACES)
        if self.draw.maybe(0.1):
            demands = {}
        execution = Execution(
            command=("run", str(self._made)),
            environment={"A": "1"} if self.draw.maybe(0.5) else {},
            working_directory="/data" if self.draw.maybe(0.3) else "",
            timeout=self.draw.one((0, 1, 1_500_000, 60_000_000)),
        )
        request = Resources(
            self.draw.one((100, 1_000, 2_500)), 2**28, {"pods": 1, "nvidia.com/gpu": self.below2()}
        )
        ends = self.draw.maybe(0.6)
        group = TaskGroup(
            count=1,
            request=request,
            requires=self.pods.required,
            demands=demands,
            execution=execution,
            estimate=self.draw.one((None, 30 * SECOND)) if ends else None,
            endless=not ends,
        )
        job = Job(id=f"Job_{self._made}.of.Others", groups=(group,), kind="batch")
        self.tell(f"job {plain(job)}")
        self.world.submit_all([job])

    def below2(self) -> int:
        return self.draw.below(2) * self.draw.below(2)

    # What is decided, and what becomes of it.

    def go_on(self) -> None:
        """Time passes, and what is ordered is noted."""
        for _ in range(self.random.choice((1, 1, 2, 5))):
            self.now += self.random.choice((SECOND // 10, SECOND, 4 * SECOND))
            self.world.commit()
            later, self._later[:] = list(self._later), []
            for action in later:
                action()
            self._explain()
            if self.pods.needs_look:
                self.pods.look_again()
            self.pods.flush()
            self.world.commit()
            self.take_orders()
            while self.pods.refused:
                tracked = self.pods.refused.popleft()
                self.tell(f"refused {tracked.uid} {tracked.obstacle!r} {tracked.state.value}")

    def _explain(self) -> None:
        for job, explanation in self.world.take_explained().items():
            for tracked in self.pods.waits(job):
                message = waiting_message(
                    explanation,
                    len(self.pods.rulebook.nodes),
                    self.world.host.view.machine_name,
                    described_wishes(tracked.pod),
                    self.pods.rulebook.reasons(tracked.needs),
                    tracked.gang,
                )
                self.tell(f"{tracked.uid} waits: {message}")
            if self.pods.is_short(job):
                self.tell(f"{job} is short")
                self.pods.found_short(job)

    def take_orders(self) -> None:
        while self.pods.orders:
            order = self.pods.orders.popleft()
            self.tell(f"order {type(order).__name__} {_told(order)}")
            if not isinstance(order, NominateOrder):
                self.open.append(order)

    def answer(self) -> None:
        """Kubernetes has carried out some orders, or has not."""
        for _ in range(self.random.randrange(1, 5)):
            if not self.open:
                return
            order = self.open.pop(self.random.choice((0, 0, -1)))
            fails = self.random.random() < 0.2
            self.tell(f"answer {type(order).__name__} {_told(order)[:60]} {fails}")
            match order:
                case BindOrder(pod, node, annotations):
                    self._bind(pod, node, annotations, fails)
                case EvictOrder(pod):
                    if fails:
                        self.pods.eviction_failed(pod.uid)
                    elif self.random.random() < 0.3 and pod.uid in self.objects:
                        document = self.objects[pod.uid]
                        metadata = {**document["metadata"], "deletionTimestamp": NOON}
                        self.set_pod({**document, "metadata": metadata})
                    else:
                        self.remove(pod.uid)
                        self._made_again(pod)
                case CreateOrder(job, document):
                    if fails:
                        self.pods.unmade(job, "forbidden")
                        continue
                    made = {**document, "status": {"phase": "Pending"}}
                    made["metadata"] = {**made["metadata"], "uid": f"uid of {job}"}
                    self.set_pod(made)

    def _bind(self, pod: Pod, node: str, annotations: dict[str, str], fails: bool) -> None:
        document = self.objects.get(pod.uid)
        if fails or document is None or document["spec"].get("nodeName"):
            self.pods.bind_failed(pod.uid)
            return
        spec = {**document["spec"], "nodeName": node}
        notes = {**document["metadata"].get("annotations", {}), **annotations}
        metadata = {**document["metadata"], "annotations": notes}
        bound = {**document, "spec": spec, "metadata": metadata, "status": {"phase": "Running"}}
        if self.random.random() < 0.5:
            self.pods.bound(pod.uid)
            self.set_pod(bound)
        else:
            self.set_pod(bound)
            self.pods.bound(pod.uid)

    def _made_again(self, pod: Pod) -> None:
        """Its controller makes another one."""
        if not any(each.controller for each in pod.metadata.owner_references):
            return
        self._made += 1
        document = msgspec.json.decode(msgspec.json.encode(pod))
        document["metadata"]["uid"] = f"again-{self._made}"
        document["metadata"]["name"] = f"again-{self._made}"
        document["spec"].pop("nodeName", None)
        document["status"] = {"phase": "Pending"}
        self.set_pod(document)

    def look(self) -> None:
        """What is known."""
        for uid, each in self.pods.pods.items():
            gang = None if each.gang is None else plain(each.gang.name)
            self.tell(
                f"{uid} {each.state.value} {each.job}/{each.index} on {each.node!r} to"
                f" {each.sent_to!r} try {each.number} {each.obstacle!r} {each.refusals}"
                f" {each.takes_room} {each.is_protected} {gang} {plain(each.annotations)}"
            )
        pods = self.pods
        free = {name: pods.free_on(name) for name in self.nodes}
        state = (
            pods.needs_look,
            pods.has_protected,
            pods.has_places,
            pods.moved,
            pods.has_unformed,
        )
        self.tell(f"free {free} {state} queued {self.world.queued()}")
        numbers = [each.number for each in pods.pods.values() if each.number is not None]
        self.tell(f"tries {[(n, pods.has_try(n), pods.is_leaving(n)) for n in numbers]}")

    def run(self, steps: int) -> str:
        try:
            for at in range(steps):
                self.step()
                self.go_on()
                if at % 6 == 5:
                    self.look()
            for _ in range(4):
                self.answer()
                self.go_on()
            self.look()
            self.tell(f"states {sorted(each.state.value for each in self.pods.pods.values())}")
            assert all(isinstance(each.state, PodState) for each in self.pods.pods.values())
        finally:
            self.close()
        return "\n".join(self.lines)


def _told(order: Any) -> str:
    match order:
        case BindOrder(pod, node, annotations):
            return f"{pod.uid} {node} {plain(annotations)}"
        case EvictOrder(pod, why):
            return f"{pod.uid} {why.name}"
        case NominateOrder(pod, node):
            return f"{pod.uid} {node}"
    return plain([order.job, order.document])


_ACTIONS: Final[tuple[Callable[[DrawnPodCluster], None], ...]] = (
    *(DrawnPodCluster.new_pod,) * 7,
    *(DrawnPodCluster.answer,) * 9,
    *(DrawnPodCluster.change_pod,) * 2,
    DrawnPodCluster.end_pod,
    DrawnPodCluster.end_pod,
    DrawnPodCluster.delete_pod,
    DrawnPodCluster.bound_by_others,
    DrawnPodCluster.bound_by_others,
    DrawnPodCluster.set_node,
    DrawnPodCluster.set_node,
    DrawnPodCluster.remove_node,
    DrawnPodCluster.other_objects,
    DrawnPodCluster.other_objects,
    DrawnPodCluster.recover,
    DrawnPodCluster.stand_by,
    DrawnPodCluster.look_up,
    DrawnPodCluster.look_up,
    DrawnPodCluster.commit_job,
)

_CROWDED: Final[tuple[Callable[[DrawnPodCluster], None], ...]] = (
    *(DrawnPodCluster.new_pod,) * 10,
    *(DrawnPodCluster.answer,) * 14,
    *(DrawnPodCluster.other_objects,) * 3,
    *(DrawnPodCluster.look_up,) * 3,
    DrawnPodCluster.change_pod,
    DrawnPodCluster.end_pod,
    DrawnPodCluster.bound_by_others,
    DrawnPodCluster.recover,
    DrawnPodCluster.commit_job,
    DrawnPodCluster.commit_job,
)
