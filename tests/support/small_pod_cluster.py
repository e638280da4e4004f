"""A small cluster of pods and nodes without Kubernetes, scheduled by one engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Node, NodeSpec, NodeStatus, Pod, PodSpec, Taint
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.server import FoundEngines
from argosy.worlds.kubernetes.tracked import BindOrder, EvictOrder
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster

NODES = 6
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SECOND = 1_000_000
#: Seconds between two looks at pods that wait.
LOOK_EVERY = 1.0


class SmallCluster:
    """A world whose time is told. Pods that are evicted are gone at once."""

    def __init__(
        self,
        engine: str,
        directory: Path,
        *,
        nodes: Sequence[Node] | None = None,
        settings: Mapping[str, Any] | None = None,
        annotates: bool = True,
    ) -> None:
        self.now = 0
        self._looked_at = 0.0
        #: Bindings so far, by the name of the pod; and pods that had to go.
        self.bindings: dict[str, BindOrder] = {}
        self.evicted: list[str] = []
        overseer = self.overseer = PodOverseer("argosy", annotates=annotates)
        overseer.connect(lambda number, result: None, lambda action: action())
        self.pods = overseer.pods
        nodes = [node(at) for at in range(NODES)] if nodes is None else nodes
        cell = CellSpec(machines=tuple(map(self.pods.machine_of, nodes)))
        self.store = LocalStore(directory, is_lasting=False)
        self.world = OverruledWorld(
            self.store,
            FoundEngines(),
            overseer,
            lambda: self.now,
            overseer,
            cluster=LocalCluster(
                name="small",
                cell=cell,
                fleet=read_fleet(
                    [{"name": engine, "engine": engine, "settings": dict(settings or {})}], cell
                ),
            ),
        )
        for each in nodes:
            self.pods.set_node(each)
        self.world.commit()

    def schedule(self, wanted: list[Pod]) -> dict[str, str]:
        """Where each pod goes that gets a node within two minutes."""
        for each in wanted:
            self.pods.set_pod(each)
        self.pods.flush()
        names = {each.name for each in wanted}
        for _ in range(240):
            self.run(0.5)
            if names <= self.bindings.keys():
                break
        return {name: self.bindings[name].node for name in names & self.bindings.keys()}

    def run(self, seconds: float) -> None:
        """Time passes, in one step, and what was decided is carried out."""
        self.now += int(seconds * SECOND)
        self.world.commit()
        for job in self.world.take_explained():
            self.pods.waits(job)
        self._looked_at += seconds
        if self._looked_at >= LOOK_EVERY:
            self._looked_at = 0.0
            self.pods.look_again()
        self.pods.flush()
        while self.pods.orders:
            match self.pods.orders.popleft():
                case BindOrder(pod) as order:
                    self.bindings[pod.name] = order
                    self.pods.bound(pod.uid)
                case EvictOrder(pod):
                    self.evicted.append(pod.name)
                    self.remove(pod.name)

    def remove(self, name: str) -> None:
        """The pod is gone."""
        self.pods.remove_pod(name)
        self.pods.flush()
        self.world.commit()


def node(at: int) -> Node:
    taints = (Taint(key="gpu", effect="NoSchedule"),) if at == 0 else ()
    labels = {HOST: f"n{at}", ZONE: f"z{at % 2}", "disk": "ssd" if at % 3 else "hdd"}
    return Node(
        metadata=ObjectMeta(name=f"n{at}", labels=labels),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable={"cpu": "8", "memory": "16Gi", "pods": "10"}),
    )


def pod(name: str, cpu: str = "1", priority: int = 0, **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    read = msgspec.convert(
        {"schedulerName": "argosy", "priority": priority, "containers": [container], **spec},
        PodSpec,
    )
    metadata = ObjectMeta(name=name, namespace="default", uid=name, labels={"app": "web"})
    return Pod(metadata=metadata, spec=read)
