"""A cluster of pods and nodes without Kubernetes, scheduled by one engine: its API and its time are the
test's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from argosy.kubernetes.objects import Node, Pod, PodDisruptionBudget, PodGroup
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.server import FoundEngines
from argosy.worlds.kubernetes.gangs import NAME_LABEL, SIZE_LABEL
from argosy.worlds.kubernetes.tracked import BindOrder, EvictOrder, PodState
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster

HOST = "kubernetes.io/hostname"
SECOND = 1_000_000
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "gang"}}}
        ]
    }
}


class GangCluster:
    """Nodes have room for four pods each. Orders are kept until the test answers them."""

    def __init__(
        self,
        directory: Path,
        engine: str = "omega",
        nodes: int = 3,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.now = 0
        self._directory, self._engine, self._settings = directory, engine, dict(settings or {})
        self.nodes = {f"n{at}": node(f"n{at}") for at in range(nodes)}
        #: Pods as the API has them, by uid, and orders that are under way.
        self.objects: dict[str, Pod] = {}
        self.groups: list[PodGroup] = []
        self.binds: dict[str, str] = {}
        self.evictions: dict[str, None] = {}
        self._lives = 0
        #: What happens when nothing else does.
        self._later: list[Callable[[], None]] = []
        self.store: LocalStore | None = None
        self.start()

    def start(self) -> None:
        """A server that starts, and reads what there is from the API."""
        self._lives += 1
        self.close()
        overseer = self.overseer = PodOverseer("argosy")
        overseer.connect(
            lambda number, result: self.world.ended(number, result), self._later.append
        )
        self.pods = overseer.pods
        self.binds.clear()
        self.evictions.clear()
        self._later.clear()
        self.store = LocalStore(self._directory / f"life-{self._lives}", is_lasting=False)
        self.build()
        for each in self.nodes.values():
            self.pods.set_node(each)
        for group in self.groups:
            self.pods.set_group(group)
        for each in sorted(self.objects.values(), key=lambda each: not each.spec.node_name):
            self.pods.set_pod(each)
        self.go_on()

    def build(self) -> None:
        """The world as its store has it, as after an engine has failed."""
        assert self.store is not None
        cell = CellSpec(machines=tuple(map(self.pods.machine_of, self.nodes.values())))
        entry = {"name": self._engine, "engine": self._engine, "settings": self._settings}
        self.world = OverruledWorld(
            self.store,
            FoundEngines(),
            self.overseer,
            lambda: self.now,
            self.overseer,
            cluster=LocalCluster(name="gangs", cell=cell, fleet=read_fleet([entry], cell)),
        )

    def close(self) -> None:
        if self.store is not None:
            self.store.close()

    # What happens in the API.

    def add(self, *pods: Pod) -> None:
        for each in pods:
            self.objects[each.uid] = each
            self.pods.set_pod(each)
        self.pods.flush()

    def add_group(self, name: str, size: int) -> None:
        policy = {"gang": {"minCount": size}}
        metadata = {"name": name, "namespace": "one"}
        group = {"metadata": metadata, "spec": {"schedulingPolicy": policy}}
        self.groups.append(msgspec.convert(group, PodGroup))
        self.pods.set_group(self.groups[-1])
        self.pods.flush()

    def add_budget(self, allowed: int, name: str = "budget") -> None:
        document = {
            "metadata": {"name": name, "namespace": "one"},
            "spec": {"selector": {"matchLabels": {"app": "gang"}}},
            "status": {"disruptionsAllowed": allowed},
        }
        self.pods.set_budget(msgspec.convert(document, PodDisruptionBudget))
        self.pods.flush()

    def remove(self, uid: str) -> None:
        del self.objects[uid]
        self.binds.pop(uid, None)
        self.evictions.pop(uid, None)
        self.pods.remove_pod(uid)
        self.pods.flush()

    def end(self, uid: str, phase: str) -> None:
        """The pod has ended by itself."""
        ended = self.objects.pop(uid)
        status = msgspec.structs.replace(ended.status, phase=phase)
        self.pods.set_pod(msgspec.structs.replace(ended, status=status))
        self.pods.flush()

    def add_node(self, name: str, cpu: int = 4) -> None:
        self.nodes[name] = node(name, cpu)
        self.pods.set_node(self.nodes[name])
        self.pods.flush()

    def remove_node(self, name: str) -> None:
        del self.nodes[name]
        self.pods.remove_node(name)
        self.pods.flush()

    # What is decided, and what becomes of it.

    def go_on(self, looks: int = 6) -> None:
        """Time passes, and what is ordered is noted."""
        for _ in range(looks):
            self.now += SECOND
            self.world.commit()
            later, self._later[:] = list(self._later), []
            for action in later:
                action()
            for job in self.world.take_explained():
                self.pods.found_short(job)
            self.pods.look_again()
            self.pods.flush()
            self.world.commit()
            self.take_orders()

    def take_orders(self) -> None:
        while self.pods.orders:
            match self.pods.orders.popleft():
                case BindOrder(pod, where):
                    assert pod.uid not in self.binds
                    assert not self.objects[pod.uid].spec.node_name
                    self.binds[pod.uid] = where
                case EvictOrder(pod):
                    self.evictions[pod.uid] = None

    def bind(self, uid: str) -> None:
        """Kubernetes has bound the pod."""
        where = self.binds.pop(uid)
        pod = self.objects[uid]
        self.pods.bound(uid)
        spec = msgspec.structs.replace(pod.spec, node_name=where)
        self.objects[uid] = msgspec.structs.replace(pod, spec=spec)
        self.pods.set_pod(self.objects[uid])
        self.pods.flush()

    def refuse(self, uid: str) -> None:
        """Kubernetes has refused to bind the pod."""
        del self.binds[uid]
        self.pods.bind_failed(uid)
        self.pods.flush()

    def bind_all(self) -> None:
        for uid in list(self.binds):
            self.bind(uid)
        self.go_on()

    @property
    def bound(self) -> dict[str, str]:
        return {
            uid: each.spec.node_name for uid, each in self.objects.items() if each.spec.node_name
        }

    def obstacle(self, uid: str) -> str:
        """Why a pod waits outside."""
        tracked = self.pods.pods[uid]
        assert tracked.state is PodState.OUTSIDE
        return tracked.obstacle


def node(name: str, cpu: int = 4) -> Node:
    room = {"cpu": str(cpu), "memory": "64Gi", "pods": "100"}
    document = {"metadata": {"name": name, "labels": {HOST: name}}, "status": {"allocatable": room}}
    return msgspec.convert(document, Node)


def pod(
    uid: str, cpu: int = 1, *, labels: Mapping[str, str] | None = None, on: str = "", **spec: Any
) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    full = {"schedulerName": "argosy", "nodeName": on, "containers": [container], **spec}
    metadata = {
        "name": uid,
        "namespace": "one",
        "uid": uid,
        "labels": {"app": "gang", **(labels or {})},
    }
    return msgspec.convert({"metadata": metadata, "spec": full}, Pod)


def member(uid: str, size: int, cpu: int = 1, group: str = "g", **spec: Any) -> Pod:
    """A pod of a group of which labels say how large it is."""
    return pod(uid, cpu, labels={NAME_LABEL: group, SIZE_LABEL: str(size)}, **spec)


def members(names: str, size: int, cpu: int = 1, group: str = "g", **spec: Any) -> list[Pod]:
    return [member(each, size, cpu, group, **spec) for each in names]
