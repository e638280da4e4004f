"""Pods that budgets keep, among others that they do not: what is told, and when they may go again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from gang_cluster import member
from msgspec.structs import replace
from test_pod_cluster import on_node, pod
from test_what_worlds_are_told import ToldCluster

from argosy.kubernetes.objects import Pod, PodDisruptionBudget
from argosy.worlds.kubernetes.tracked import PodState


def budget(name: str, allowed: int) -> PodDisruptionBudget:
    """For pods whose app has the same name."""
    document = {
        "metadata": {"name": name, "namespace": "one"},
        "spec": {"selector": {"matchLabels": {"app": name}}},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(document, PodDisruptionBudget)


def of_app(app: str, uid: str, cpu: int = 1, **spec: Any) -> Pod:
    made = pod(uid, cpu, **spec)
    return replace(made, metadata=replace(made.metadata, labels={"app": app}))


def run(told: ToldCluster, *pods: Pod, on: str = "n0", is_seen: bool = True) -> None:
    for each in pods:
        told.pods.set_pod(each)
        told.pods.flush()
        assert told.world.place(f"one.{each.name}", on)
        if is_seen:
            told.pods.bound(each.uid)
            told.pods.set_pod(on_node(each, on))
    told.world.told()


def protected(told: ToldCluster) -> list[str]:
    return [uid for uid, each in told.pods.pods.items() if each.is_protected]


def preempting(told: ToldCluster, cpu: int) -> None:
    told.pods.set_pod(pod("high", cpu, priority=100))
    told.pods.flush()
    assert told.world.place("one.high", "n0")


@pytest.mark.parametrize("how", ["another", "none", "removed"])
def test_what_a_budget_kept_may_go_when_the_budget_does(how: str) -> None:
    told = ToldCluster("n0")
    run(told, of_app("web", "low", 3))
    preempting(told, 4)
    told.pods.set_budgets([budget("web", 0)])
    told.pods.eviction_failed("low")
    assert protected(told) == ["low"]
    told.world.told()
    if how == "another":
        told.pods.set_budgets([budget("db", 0)])
    elif how == "none":
        told.pods.set_budgets([])
    else:
        told.pods.remove_budget("one", "web")
    assert (protected(told), told.pods.has_protected) == ([], False)
    told.are(
        "adopt one.low~3 (3000m 0Gi) on n0 by kubernetes, replacing one.low~2/0",
        "cancel one.low~2",
    )
    assert told.world.place("one.high", "n0")
    told.are("cancel one.low~3", "order: evict low, preempted", "order: nominate n0 for high")


def test_another_allowance_of_a_budget_is_for_its_own_pods() -> None:
    told = ToldCluster("n0")
    run(told, of_app("web", "a", 2), of_app("db", "b", 2))
    preempting(told, 4)
    for uid in "ab":
        told.pods.eviction_failed(uid)
    assert protected(told) == ["a", "b"]
    told.world.told()
    told.pods.set_budget(budget("db", 0))
    told.are()
    told.pods.set_budget(budget("db", 1))
    assert protected(told) == ["a"]
    told.are("adopt one.b~3 (2000m 0Gi) on n0 by kubernetes, replacing one.b~2/0", "cancel one.b~2")
    told.pods.set_budget(budget("web", 2))
    assert protected(told) == []


def test_a_pod_that_is_kept_while_it_is_being_bound_needs_no_other_job_later() -> None:
    told = ToldCluster("n0")
    run(told, pod("low", 3), is_seen=False)
    preempting(told, 4)
    told.world.told()
    told.pods.eviction_failed("low")
    told.are(
        "adopt one.low~2 (3000m 0Gi) on n0 by kubernetes, instead of one.high/0",
        "try 2 is refused, stale",
        "settle",
        "try 1 is gone",
    )
    assert (told.pods.pods["low"].state, protected(told)) == (PodState.BINDING, ["low"])
    told.pods.forget_budgets()
    told.are()
    assert (told.pods.pods["low"].state, protected(told)) == (PodState.BINDING, [])


def test_only_who_was_to_take_its_place_gives_way_to_a_pod_that_stays() -> None:
    told = ToldCluster("n0")
    run(told, pod("low", 2))
    for uid in "ab":
        told.pods.set_pod(member(uid, 2))
    told.pods.flush()
    assert told.pods.claimed("one.group:g", "n0", 0)
    assert told.pods.launch(9, "one.group:g", 0)
    preempting(told, 3)
    told.world.told()
    told.pods.eviction_failed("low")
    told.are(
        "adopt one.low~2 (2000m 0Gi) on n0 by kubernetes, instead of one.high/0",
        "try 2 is refused, stale",
        "settle",
        "try 1 is gone",
    )
    assert told.pods.pods["a"].state is PodState.CLAIMED
    assert told.pods.free_on("n0")["cpu"] == 1_000


def test_a_budget_counts_all_who_leave_whatever_nodes_they_are_on() -> None:
    told = ToldCluster("n0", "n1")
    told.pods.set_budget(budget("web", 2))
    run(told, of_app("web", "a", 2), of_app("web", "b", 2))
    run(told, of_app("web", "c", 4), on="n1")
    preempting(told, 4)
    orders = [line for line in told.world.told() if line.startswith("order")]
    assert orders == [
        "order: evict a, preempted",
        "order: evict b, preempted",
        "order: nominate n0 for high",
    ]
    told.pods.set_pod(pod("next", 4, priority=100))
    told.pods.flush()
    assert told.world.place("one.next", "n1")
    assert "order: evict c, preempted" not in told.world.told()
    assert protected(told) == ["a", "b", "c"]
