"""Pods from their first sight to their end, whatever Kubernetes and the schedulers do."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from recorded_pod_world import RecordedPodWorld

from argosy.kubernetes.objects import Node, PersistentVolume, PersistentVolumeClaim, Pod
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.tracked import BindOrder, EvictOrder, NominateOrder, PodState

CPUS = 4
NODES = ("n0", "n1")


def node(name: str, **labels: str) -> Node:
    room = {"cpu": str(CPUS), "memory": "8Gi", "pods": "10"}
    document = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": room}}
    return msgspec.convert(document, Node)


def pod(uid: str, cpu: int = 1, *, on: str = "", **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    full = {"schedulerName": "argosy", "nodeName": on, "containers": [container], **spec}
    return msgspec.convert(
        {"metadata": {"name": uid, "namespace": "one", "uid": uid}, "spec": full}, Pod
    )


def cluster() -> tuple[PodCluster, RecordedPodWorld]:
    world = RecordedPodWorld()
    made = PodCluster(lambda: world, lambda pod: pod.spec.scheduler_name == "argosy")
    world.cluster = made
    return made, world


def on_node(pod: Pod, name: str) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=name))


def test_a_gated_pod_is_scheduled_by_the_rules_that_it_has_then() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod("p", schedulingGates=[{"name": "wait"}]))
    pods.set_pod(pod("p", nodeSelector={"disk": "ssd"}))
    pods.flush()
    [job] = world.waiting.values()
    assert any("disk=ssd" in attribute for attribute in job.groups[0].requires)


def test_a_waiting_pod_gets_the_tolerations_it_is_given() -> None:
    pods, world = cluster()
    pods.set_pod(pod("p"))
    pods.flush()
    pods.set_pod(pod("p", tolerations=[{"key": "k", "operator": "Exists"}]))
    pods.flush()
    [job] = world.waiting.values()
    assert any("tolerates k" in attribute for attribute in job.groups[0].requires)


def leaving(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(
        pod.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC)
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def test_a_pod_that_is_deleted_or_given_away_while_it_waits_is_not_scheduled() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    for changed in (leaving(pod("p")), pod("p", schedulerName="another")):
        pods.set_pod(pod("p"))
        pods.flush()
        assert len(world.waiting) == 1
        pods.set_pod(changed)
        pods.flush()
        assert (world.waiting, pods.pods) == ({}, {})


def test_pods_of_other_schedulers_count_only_on_nodes() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod("p", 3, schedulerName="another"))
    assert pods.pods == {}
    pods.set_pod(pod("p", 3, on="n0", schedulerName="another"))
    assert world.free_on("n0").cpu == 1000


def test_a_volume_may_be_seen_after_its_claim() -> None:
    pods, world = cluster()
    claim = {
        "metadata": {
            "name": "data",
            "namespace": "one",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "pv"},
    }
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    pods.set_pod(pod("p", volumes=[volume]))
    pods.set_claim(msgspec.convert(claim, PersistentVolumeClaim))
    pods.flush()
    assert not world.waiting
    pods.set_volume(msgspec.convert({"metadata": {"name": "pv"}}, PersistentVolume))
    pods.flush()
    assert list(world.waiting) == ["one.p"]


def test_a_node_that_comes_back_has_its_pods_again() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod("p", 3, on="n0"))
    pods.remove_node("n0")
    pods.set_node(node("n0"))
    assert pods.pods["p"].state is PodState.BOUND
    assert world.free_on("n0").cpu == 1000
    pods.remove_pod("p")
    assert world.free_on("n0").cpu == 4000


def test_a_pod_that_a_budget_keeps_is_not_chosen_again_for_a_while() -> None:
    pods, world = cluster()
    pods.set_node(node("n0"))
    pods.set_pod(pod("low", 3, on="n0"))
    pods.set_pod(pod("high", 3, priority=1000))
    pods.flush()
    assert world.place("one.high", "n0")
    assert pods.pods["high"].state is PodState.HELD
    assert NominateOrder(pods.pods["high"].pod, "n0") in pods.orders, "people see where it waits"
    pods.eviction_failed("low")
    assert pods.pods["high"].state is PodState.WAITING
    assert not world.place(pods.pods["high"].job, "n0")
    pods.forget_budgets()
    assert world.place(pods.pods["high"].job, "n0")


class PodClusterMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pods, self.world = cluster()
        #: What the API has, the orders that are under way, and where pods were bound.
        self.objects: dict[str, Pod] = {}
        self.binds: dict[str, str] = {}
        self.evictions: set[str] = set()
        self.made = 0

    def take_orders(self) -> None:
        self.pods.flush()
        while self.pods.orders:
            order = self.pods.orders.popleft()
            if isinstance(order, BindOrder):
                assert order.pod.uid not in self.binds
                assert not self.objects[order.pod.uid].spec.node_name
                self.binds[order.pod.uid] = order.node
            elif isinstance(order, EvictOrder):
                self.evictions.add(order.pod.uid)

    @initialize()
    def nodes(self) -> None:
        for name in NODES:
            self.pods.set_node(node(name))

    @rule(cpu=st.integers(0, 3), priority=st.sampled_from((0, 100)))
    def pod_comes(self, cpu: int, priority: int) -> None:
        self.made += 1
        made = pod(f"p{self.made}", cpu, priority=priority)
        self.objects[made.uid] = made
        self.pods.set_pod(made)
        self.take_orders()

    @rule(data=st.data(), name=st.sampled_from(NODES))
    def scheduler_decides(self, data: st.DataObject, name: str) -> None:
        if self.world.waiting and name in self.world.machines:
            job = data.draw(st.sampled_from(sorted(self.world.waiting)))
            self.world.place(job, name)
            self.take_orders()

    @rule(data=st.data(), succeeds=st.booleans())
    def bind_ends(self, data: st.DataObject, succeeds: bool) -> None:
        if not self.binds:
            return
        uid = data.draw(st.sampled_from(sorted(self.binds)))
        name = self.binds.pop(uid)
        if succeeds and uid in self.objects:
            self.objects[uid] = on_node(self.objects[uid], name)
            self.pods.bound(uid)
            self.pods.set_pod(self.objects[uid])
        else:
            self.pods.bind_failed(uid)
        self.take_orders()

    @rule(data=st.data(), succeeds=st.booleans())
    def eviction_ends(self, data: st.DataObject, succeeds: bool) -> None:
        # Kubernetes evicts what is bound; a bind that is under way ends first.
        ready = sorted(self.evictions - self.binds.keys())
        if not ready:
            return
        uid = data.draw(st.sampled_from(ready))
        self.evictions.discard(uid)
        if succeeds:
            self.objects.pop(uid, None)
            self.pods.remove_pod(uid)
        else:
            self.pods.eviction_failed(uid)
        self.take_orders()

    @rule(data=st.data())
    def pod_goes(self, data: st.DataObject) -> None:
        gone = sorted(self.objects.keys() - self.binds.keys())
        if gone:
            uid = data.draw(st.sampled_from(gone))
            del self.objects[uid]
            self.evictions.discard(uid)
            self.pods.remove_pod(uid)
            self.take_orders()

    @rule()
    def budgets_change(self) -> None:
        self.pods.forget_budgets()
        self.take_orders()

    @invariant()
    def nothing_is_overcommitted(self) -> None:
        used: Counter[str] = Counter()
        for uid, each in self.objects.items():
            where = each.spec.node_name or self.binds.get(uid, "")
            used[where] += self.pods.pods[uid].request.cpu
        for name in NODES:
            assert used[name] <= 1000 * CPUS, used

    @invariant()
    def pods_are_known_as_they_are(self) -> None:
        for uid, each in self.objects.items():
            state = self.pods.pods[uid].state
            if each.spec.node_name:
                assert state in (PodState.BOUND, PodState.LEAVING), state
            elif uid in self.binds:
                assert state in (PodState.BINDING, PodState.LEAVING), state
            else:
                assert state in (PodState.WAITING, PodState.HELD, PodState.OUTSIDE), state

    def teardown(self) -> None:
        for uid in list(self.objects):
            self.pods.remove_pod(uid)
        assert not self.pods.pods
        assert self.pods.rulebook.is_unused
        assert not self.world.placed
        for name in NODES:
            if name in self.world.machines:
                assert self.world.free_on(name).cpu == 1000 * CPUS


TestPodCluster = PodClusterMachine.TestCase
TestPodCluster.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
