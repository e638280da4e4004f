"""Every engine respects Kubernetes' rules, though none knows of Kubernetes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.engines.registry import all_engines
from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Node, NodeSpec, NodeStatus, Pod, PodSpec, Taint
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.server import FoundEngines
from argosy.worlds.kubernetes.tracked import BindOrder
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster

NODES = 6
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SECOND = 1_000_000
WEB = {"matchLabels": {"app": "web"}}


class SmallCluster:
    """A world whose time is told."""

    def __init__(self, engine: str, directory: Path) -> None:
        self.now = 0
        overseer = self.overseer = PodOverseer("argosy")
        overseer.connect(lambda number, result: None, lambda action: action())
        self.pods = overseer.pods
        nodes = [node(at) for at in range(NODES)]
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
                fleet=read_fleet([{"name": engine, "engine": engine}], cell),
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
        where: dict[str, str] = {}
        for _ in range(240):
            self.now += SECOND // 2
            self.world.commit()
            self.pods.look_again()
            self.pods.flush()
            while self.pods.orders:
                order = self.pods.orders.popleft()
                assert isinstance(order, BindOrder)
                where[order.pod.name] = order.node
                self.pods.bound(order.pod.uid)
            if len(where) == len(wanted):
                break
        return where


def node(at: int) -> Node:
    taints = (Taint(key="gpu", effect="NoSchedule"),) if at == 0 else ()
    labels = {HOST: f"n{at}", ZONE: f"z{at % 2}", "disk": "ssd" if at % 3 else "hdd"}
    return Node(
        metadata=ObjectMeta(name=f"n{at}", labels=labels),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(allocatable={"cpu": "8", "memory": "16Gi", "pods": "10"}),
    )


def pod(name: str, **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    read = msgspec.convert({"schedulerName": "argosy", "containers": [container], **spec}, PodSpec)
    metadata = ObjectMeta(name=name, namespace="default", uid=name, labels={"app": "web"})
    return Pod(metadata=metadata, spec=read)


@pytest.fixture(params=sorted(all_engines()))
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallCluster]:
    made = SmallCluster(request.param, tmp_path / "state")
    yield made
    made.store.close()


def test_taints_and_selectors_hold(cluster: SmallCluster) -> None:
    where = cluster.schedule([pod(f"p{at}", nodeSelector={"disk": "ssd"}) for at in range(6)])
    assert len(where) == 6
    assert set(where.values()) <= {"n1", "n2", "n4", "n5"}


def test_pods_that_avoid_each_other_are_on_different_nodes(cluster: SmallCluster) -> None:
    avoid = [{"topologyKey": HOST, "labelSelector": WEB}]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": avoid}}
    where = cluster.schedule([pod(f"p{at}", affinity=affinity) for at in range(5)])
    assert sorted(where.values()) == ["n1", "n2", "n3", "n4", "n5"]


def test_pods_are_spread_over_zones(cluster: SmallCluster) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": WEB,
    }
    where = cluster.schedule([pod(f"p{at}", topologySpreadConstraints=[spread]) for at in range(8)])
    zones = Counter(f"z{int(name[1:]) % 2}" for name in where.values())
    assert zones == {"z0": 4, "z1": 4}


def test_a_host_port_is_used_once_per_node(cluster: SmallCluster) -> None:
    container = {"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}
    where = cluster.schedule([pod(f"p{at}", containers=[container]) for at in range(7)])
    assert sorted(where.values()) == ["n1", "n2", "n3", "n4", "n5"]


def test_nothing_is_overcommitted(cluster: SmallCluster) -> None:
    where = cluster.schedule([pod(f"p{at}") for at in range(50)])
    counts = Counter(where.values())
    assert counts == dict.fromkeys(["n1", "n2", "n3", "n4", "n5"], 8)
