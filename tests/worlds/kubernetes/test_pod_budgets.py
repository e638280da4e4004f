"""Pods that disruption budgets cover are evicted only if the budgets allow it, as far as is known; and
who needs their room takes another's, if there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import test_pod_cluster as small
from gang_cluster import GangCluster, members, pod
from recorded_pod_world import RecordedPodWorld

from argosy.kubernetes.objects import PodDisruptionBudget
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.tracked import PodState

FREE = {"app": "free"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[GangCluster]:
    made = GangCluster(tmp_path, nodes=2, settings={"preempt": True})
    yield made
    made.close()


def test_a_pod_whose_budget_is_used_up_is_not_even_tried(cluster: GangCluster) -> None:
    cluster.add_budget(0)
    cluster.add(pod("kept", 4, on="n0"), pod("taken", 4, on="n1", priority=2_000))
    cluster.add(pod("high", 4, priority=1_000))
    cluster.go_on()
    assert not cluster.evictions
    assert not cluster.binds
    assert cluster.pods.pods["kept"].state is PodState.BOUND
    assert cluster.pods.pods["high"].state is PodState.WAITING


@pytest.mark.parametrize("kept", ["n0", "n1"])
def test_another_pod_goes_whose_budget_allows_it(cluster: GangCluster, kept: str) -> None:
    cluster.add_budget(0)
    other = "n1" if kept == "n0" else "n0"
    cluster.add(pod("kept", 4, on=kept), pod("free", 4, on=other, labels=FREE))
    cluster.add(pod("high", 4, priority=1_000))
    cluster.go_on()
    assert cluster.evictions.keys() == {"free"}
    cluster.remove("free")
    cluster.go_on()
    assert cluster.binds == {"high": other}


def test_what_is_ordered_counts_before_the_budget_says_so(cluster: GangCluster) -> None:
    cluster.add_budget(1)
    cluster.add(pod("a", 4, on="n0"), pod("b", 4, on="n1"))
    cluster.add(pod("high", 4, priority=1_000), pod("higher", 4, priority=1_001))
    cluster.go_on()
    assert len(cluster.evictions) == 1


def test_nobody_leaves_a_node_in_vain(cluster: GangCluster) -> None:
    cluster.add_budget(1)
    cluster.add(*(pod(f"n0-{at}", 2, on="n0") for at in range(2)))
    cluster.add(pod("taken", 4, on="n1", priority=2_000))
    cluster.add(pod("high", 4, priority=1_000))
    cluster.go_on()
    assert not cluster.evictions
    assert cluster.world.free_on("n0").cpu == 0


def test_pods_may_go_as_soon_as_the_budget_allows_it(cluster: GangCluster) -> None:
    cluster.add_budget(0)
    cluster.add(pod("a", 4, on="n0"), pod("b", 4, on="n1"))
    cluster.add(pod("high", 4, priority=1_000))
    cluster.go_on()
    assert cluster.pods.has_protected
    cluster.add_budget(1)
    cluster.go_on(30)
    assert len(cluster.evictions) == 1


def test_pods_may_go_whose_budget_is_gone(cluster: GangCluster) -> None:
    cluster.add_budget(0)
    cluster.add(pod("a", 4, on="n0"), pod("b", 4, on="n1"))
    cluster.add(pod("high", 4, priority=1_000))
    cluster.go_on()
    cluster.pods.remove_budget("one", "budget")
    cluster.go_on(30)
    assert len(cluster.evictions) == 1


def test_a_group_displaces_nobody_if_a_budget_keeps_one_of_its_victims(
    cluster: GangCluster,
) -> None:
    cluster.add_budget(0)
    cluster.add(pod("kept", 4, on="n0"), pod("taken", 4, on="n1", priority=2_000))
    cluster.add(*members("ab", 2, 2, priority=1_000))
    cluster.go_on()
    assert not cluster.evictions
    assert not cluster.binds


def test_a_pod_that_stays_before_it_is_bound_is_still_being_bound(cluster: GangCluster) -> None:
    cluster.add(pod("taken", 4, on="n1", priority=2_000))
    cluster.add(pod("low", 4))
    cluster.go_on()
    cluster.add(pod("high", 4, priority=1_000))
    cluster.go_on()
    assert cluster.evictions.keys() == {"low"}
    cluster.pods.eviction_failed("low")
    cluster.refuse("low")
    cluster.go_on()
    assert cluster.binds == {"high": "n0"}
    assert cluster.pods.pods["low"].state is PodState.WAITING


def test_a_pod_that_was_to_leave_before_it_was_bound_waits_if_it_is_not(
    cluster: GangCluster,
) -> None:
    cluster.add(pod("taken", 4, on="n1", priority=2_000))
    cluster.add(pod("low", 4))
    cluster.go_on()
    cluster.add(pod("high", 4, priority=1_000))
    cluster.go_on()
    cluster.refuse("low")
    cluster.go_on()
    assert cluster.binds == {"high": "n0"}
    assert cluster.pods.pods["low"].state is PodState.WAITING


class TestWhoIsProtected:
    """Pods on one node, and budgets that cover all of them."""

    @staticmethod
    def begun(*uids: str, **allowed: int) -> tuple[PodCluster, RecordedPodWorld]:
        pods, world = small.cluster()
        pods.set_node(small.node("n0"))
        pods.set_budgets(TestWhoIsProtected.budget(name, left) for name, left in allowed.items())
        for uid in uids:
            TestWhoIsProtected.run(pods, world, uid)
        return pods, world

    @staticmethod
    def run(pods: PodCluster, world: RecordedPodWorld, uid: str) -> None:
        pods.set_pod(small.pod(uid))
        pods.flush()
        world.place(f"one.{uid}", "n0")
        pods.bound(uid)
        pods.set_pod(small.on_node(small.pod(uid), "n0"))
        pods.orders.clear()

    @staticmethod
    def budget(name: str, allowed: int) -> PodDisruptionBudget:
        document = {
            "metadata": {"name": name, "namespace": "one"},
            "spec": {"selector": {}},
            "status": {"disruptionsAllowed": allowed},
        }
        return msgspec.convert(document, PodDisruptionBudget)

    @staticmethod
    def preempt(pods: PodCluster, uid: str) -> None:
        pods.pushed_off(pods.pods[uid].job, Why.PREEMPTED)
        pods.follow_up()

    def protected(self, pods: PodCluster) -> list[str]:
        return [uid for uid, each in pods.pods.items() if each.is_protected]

    def test_a_pod_is_kept_until_every_budget_allows_it_to_go(self) -> None:
        pods, _ = self.begun("a", first=0, second=0)
        self.preempt(pods, "a")
        assert not pods.orders
        for name, kept in (("first", ["a"]), ("second", [])):
            pods.set_budget(self.budget(name, 1))
            assert self.protected(pods) == kept
        assert not pods.has_protected

    def test_pods_that_are_protected_already_keep_their_jobs(self) -> None:
        pods, world = self.begun("a", "b", only=0)
        self.preempt(pods, "a")
        assert self.protected(pods) == ["a", "b"]
        jobs = [pods.pods[uid].job for uid in ("a", "b")]
        self.run(pods, world, "c")
        self.preempt(pods, "c")
        assert self.protected(pods) == ["a", "b", "c"]
        assert [pods.pods[uid].job for uid in ("a", "b")] == jobs

    def test_a_pod_that_is_gone_needs_no_protection(self) -> None:
        pods, _ = self.begun("a", only=0)
        self.preempt(pods, "a")
        pods.remove_pod("a")
        pods.forget_budgets()
        assert not pods.has_protected

    def test_a_pod_that_never_got_its_node_is_not_evicted_from_it(self) -> None:
        pods, world = self.begun()
        pods.set_pod(small.pod("a"))
        pods.flush()
        world.place("one.a", "n0")
        pods.orders.clear()
        pods.pushed_off("one.a", Why.PREEMPTED)
        pods.bind_failed("a")
        pods.follow_up()
        assert not pods.orders
        assert pods.pods["a"].state is PodState.WAITING
