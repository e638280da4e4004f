"""A world that is built anew, as after an engine has failed: what is bound stays, all else is decided
anew, and both agree on what is where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Node, NodeStatus, Pod, PodSpec
from argosy.model.scenario import CellSpec
from argosy.scenarios.loader import read_fleet
from argosy.service.kubernetes.overseer import PodOverseer
from argosy.service.server import FoundEngines
from argosy.worlds.kubernetes.tracked import BindOrder, PodState
from argosy.worlds.local.overruled import OverruledWorld
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster

SECOND = 1_000_000


class RebuiltCluster:
    """Three nodes with room for four pods each; the world's time is told."""

    def __init__(self, directory: Path) -> None:
        self.now = 0
        self.store = LocalStore(directory, is_lasting=False)
        self.nodes = [node(f"n{at}") for at in range(3)]
        self.binds: Counter[str] = Counter()
        self.start()

    def start(self) -> None:
        """Another process on the same store."""
        self.overseer = PodOverseer("argosy")
        self.overseer.connect(
            lambda number, result: self.world.ended(number, result), lambda action: action()
        )
        self.pods = self.overseer.pods
        self.build()
        for each in self.nodes:
            self.pods.set_node(each)

    def build(self) -> None:
        """The world as the store has it. Whatever was not written is lost to it."""
        cell = CellSpec(machines=tuple(map(self.pods.machine_of, self.nodes)))
        fleet = read_fleet([{"name": "omega", "engine": "omega"}], cell)
        self.world = OverruledWorld(
            self.store,
            FoundEngines(),
            self.overseer,
            lambda: self.now,
            self.overseer,
            cluster=LocalCluster(name="small", cell=cell, fleet=fleet),
        )

    def add(self, *names: str) -> None:
        for name in names:
            self.pods.set_pod(pod(name))

    def decide(self) -> None:
        """Nothing is written."""
        self.pods.flush()
        self.now += 10 * SECOND
        self.world.settle()

    def go_on(self) -> None:
        for _ in range(20):
            self.decide()
            self.world.commit()
            self.bind()

    def bind(self) -> None:
        while self.pods.orders:
            order = self.pods.orders.popleft()
            assert isinstance(order, BindOrder)
            self.binds[order.pod.name] += 1
            self.pods.bound(order.pod.uid)
            spec = msgspec.structs.replace(order.pod.spec, node_name=order.node)
            self.pods.set_pod(msgspec.structs.replace(order.pod, spec=spec))

    def check(self, bound: int) -> None:
        """The cluster and the world agree, and no node has more than it can."""
        placed = [each for each in self.pods.pods.values() if each.state is PodState.BOUND]
        assert len(placed) == bound
        claims = self.world.claimed_machines()
        assert claims == {(each.job, each.index): each.node for each in placed}
        assert max(Counter(claims.values()).values()) <= 4
        for name in (each.name for each in self.nodes):
            free = self.world.free_on(name).cpu
            assert free == 4_000 - 1_000 * Counter(claims.values())[name]
        assert set(self.binds.values()) == {1}


def node(name: str) -> Node:
    return Node(
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name}),
        status=NodeStatus(allocatable={"cpu": "4", "memory": "16Gi", "pods": "10"}),
    )


def pod(name: str, **more: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"schedulerName": "argosy", "containers": [container], **more}
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=msgspec.convert(spec, PodSpec),
    )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RebuiltCluster]:
    made = RebuiltCluster(tmp_path / "store")
    yield made
    made.store.close()


def test_pods_that_the_world_had_not_heard_of_are_submitted_once(cluster: RebuiltCluster) -> None:
    cluster.add("a", "b")
    cluster.build()
    cluster.go_on()
    cluster.check(bound=2)


def test_pods_of_a_turn_that_was_lost_are_submitted_again(cluster: RebuiltCluster) -> None:
    cluster.add("a", "b")
    cluster.pods.flush()
    cluster.build()
    cluster.go_on()
    cluster.check(bound=2)


def test_claims_of_a_turn_that_was_lost_are_made_anew(cluster: RebuiltCluster) -> None:
    cluster.add(*"abcdefgh")
    cluster.pods.flush()
    cluster.world.write()
    cluster.decide()
    claimed = [each for each in cluster.pods.pods.values() if each.state is PodState.CLAIMED]
    assert claimed, "otherwise nothing is tested"
    cluster.build()
    cluster.go_on()
    cluster.check(bound=8)


def test_what_is_bound_or_being_bound_stays_where_it_is(cluster: RebuiltCluster) -> None:
    cluster.add(*"abcd")
    cluster.go_on()
    cluster.add(*"efgh")
    cluster.decide()
    cluster.world.commit()
    before = {each.pod.name: each.node for each in cluster.pods.pods.values()}
    binding = [each for each in cluster.pods.pods.values() if each.state is PodState.BINDING]
    assert binding, "otherwise nothing is tested"
    orders = len(cluster.pods.orders)
    cluster.build()
    assert len(cluster.pods.orders) == orders, "nothing is ordered a second time"
    assert {each.state for each in binding} == {PodState.BINDING}
    cluster.go_on()
    cluster.check(bound=8)
    assert {each.pod.name: each.node for each in cluster.pods.pods.values()} == before


def test_a_pod_that_was_seen_on_a_node_in_a_lost_turn_is_adopted_again(
    cluster: RebuiltCluster,
) -> None:
    cluster.pods.set_pod(pod("theirs", schedulerName="other", nodeName="n1"))
    cluster.build()
    cluster.add(*"abcdefghijk")
    cluster.go_on()
    cluster.check(bound=12)


def test_a_node_that_came_in_a_lost_turn_is_used(cluster: RebuiltCluster) -> None:
    cluster.nodes.append(node("n3"))
    cluster.pods.set_node(cluster.nodes[-1])
    cluster.build()
    cluster.add(*(f"p{at}" for at in range(16)))
    cluster.go_on()
    cluster.check(bound=16)


def test_another_process_takes_no_room_for_what_only_the_store_remembers(
    cluster: RebuiltCluster,
) -> None:
    cluster.add(*"abcdefgh")
    cluster.go_on()
    there = [each.pod for each in cluster.pods.pods.values()]
    cluster.start()
    # Two of them are gone meanwhile, and new ones have come.
    for each in there[2:]:
        cluster.pods.set_pod(each)
    cluster.add(*"uvwxyz")
    cluster.go_on()
    cluster.check(bound=12)
