"""All that a world and Kubernetes are told of a few lives of pods and nodes, to the last word."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from test_cluster_steps import grouped
from test_moved_pods import made_by
from test_pod_cluster import leaving, node, on_node, pod
from told_pod_world import ToldPodWorld

from argosy.kubernetes.objects import Node, PodStatus
from argosy.worlds.kubernetes.moves import KEPT_FOR, RelocatingCluster

NO_TAINTS = "node rules: no taints"


class ToldCluster:
    """A cluster with these nodes, and its world."""

    def __init__(self, *nodes: str) -> None:
        self.world = ToldPodWorld()
        self.pods = self.world.cluster = RelocatingCluster(
            lambda: self.world, lambda each: each.spec.scheduler_name == "argosy"
        )
        for name in nodes:
            self.pods.set_node(node(name))
        self.world.told()

    def are(self, *lines: str) -> None:
        """What was told since the last call."""
        self.pods.flush()
        assert self.world.told() == list(lines)


def larger(made: Node) -> Node:
    room = {"cpu": "6", "memory": "8Gi", "pods": "10"}
    return replace(made, status=replace(made.status, allocatable=room))


def test_a_world_hears_of_what_has_changed_of_a_node_and_of_nothing_else() -> None:
    told = ToldCluster()
    told.pods.set_node(node("n0", zone="a"))
    told.are("add n0 (4000m 8Gi)")
    told.pods.set_node(node("n0", zone="a"))
    told.are()
    told.pods.set_node(node("n0", zone="b"))
    told.are("relabel n0 {'zone': 'b'}")
    told.pods.set_node(larger(node("n0", zone="b")))
    told.are("fit n0 to 6000m 8Gi")
    told.pods.set_node(node("n0"))
    told.are("fit n0 to 4000m 8Gi", "relabel n0 {}")
    told.pods.set_pod(pod("p", nodeSelector={"zone": "b"}))
    told.are("submit one.p (1000m 0Gi)")
    told.pods.set_node(node("n0", zone="b"))
    told.are("relabel n0 {'zone': 'b'}", "mark machine n0: node rules: zone=b")
    cordoned = msgspec.to_builtins(node("n0", zone="b")) | {"spec": {"unschedulable": True}}
    told.pods.set_node(msgspec.convert(cordoned, Node))
    told.are("unmark machine n0: node rules: zone=b")


def test_a_pod_goes_and_comes_with_its_node_as_often_as_that_does() -> None:
    told = ToldCluster("n0")
    there = on_node(pod("p"), "n0")
    told.pods.set_pod(pod("p"))
    told.are(f"mark machine n0: {NO_TAINTS}", "submit one.p (1000m 0Gi)")
    assert told.world.place("one.p", "n0")
    told.are("order: bind p to n0")
    told.pods.bound("p")
    told.pods.set_pod(there)
    told.are()
    told.pods.remove_node("n0")
    told.are("remove n0", "cancel one.p", "settle", "try 1 is gone")
    told.pods.remove_node("n0")
    told.are()
    for number in (2, 3):
        name = f"one.p~{number}"
        told.pods.set_node(node("n0"))
        told.are(
            "add n0 (4000m 8Gi)",
            f"mark machine n0: {NO_TAINTS}",
            f"adopt {name} (1000m 0Gi) on n0 by kubernetes",
        )
        told.pods.set_pod(there)
        told.are()
        told.pods.remove_node("n0")
        told.are("remove n0", f"cancel {name}", "settle")
    told.pods.remove_pod("p")
    told.are()
    told.pods.set_node(node("n0"))
    told.are("add n0 (4000m 8Gi)", f"mark machine n0: {NO_TAINTS}")


def test_a_binding_that_fails_is_tried_anew_and_names_are_not_used_twice() -> None:
    told = ToldCluster("n0")
    first = pod("p", 2)
    told.pods.set_pod(first)
    told.are(f"mark machine n0: {NO_TAINTS}", "submit one.p (2000m 0Gi)")
    for number in (1, 2):
        assert told.world.place("one.p", "n0")
        told.are("order: bind p to n0")
        told.pods.bind_failed("p")
        told.are(f"try {number} is refused, stale")
    assert told.world.place("one.p", "n0")
    told.are("order: bind p to n0")
    told.pods.bound("p")
    told.pods.set_pod(on_node(first, "n0"))
    told.pods.bind_failed("p")
    told.pods.set_pod(leaving(on_node(first, "n0")))
    told.are()
    for lines in (("cancel one.p", "try 3 is gone"), ()):
        told.pods.remove_pod("p")
        told.are(*lines)
    told.pods.set_pod(pod("p"))
    told.are("submit one.p~2 (1000m 0Gi)")
    # Somebody else has bound it, to a node that is not known yet.
    there = on_node(pod("p"), "n9")
    told.pods.set_pod(there)
    told.are("cancel one.p~2")
    told.pods.set_node(node("n9"))
    told.are(
        "add n9 (4000m 8Gi)",
        f"mark machine n9: {NO_TAINTS}",
        "adopt one.p~3 (1000m 0Gi) on n9 by kubernetes",
    )
    told.pods.set_pod(replace(there, status=PodStatus(phase="Succeeded")))
    told.are("cancel one.p~3")


def test_a_pod_that_a_budget_keeps_runs_on_until_it_may_be_asked_again() -> None:
    told = ToldCluster("n0")
    low = pod("low", 3)
    told.pods.set_pod(low)
    told.are(f"mark machine n0: {NO_TAINTS}", "submit one.low (3000m 0Gi)")
    assert told.world.place("one.low", "n0")
    told.are("order: bind low to n0")
    told.pods.set_pod(on_node(low, "n0"))
    high = pod("high", 2, priority=100)
    told.pods.set_pod(high)
    told.are("submit one.high (2000m 0Gi)")
    refused = 2
    for name in ("one.low", "one.low~3"):
        assert told.world.place("one.high", "n0")
        told.are(
            f"cancel {name}",
            "order: evict low, preempted",
            "order: nominate n0 for high",
        )
        if name != "one.low":
            break
        told.pods.eviction_failed("low")
        told.are(
            "adopt one.low~2 (3000m 0Gi) on n0 by kubernetes, instead of one.high/0",
            f"try {refused} is refused, stale",
            "settle",
            "try 1 is gone",
        )
        told.pods.eviction_failed("low")
        told.are()
        told.pods.forget_budgets()
        told.are(
            "adopt one.low~3 (3000m 0Gi) on n0 by kubernetes, replacing one.low~2/0",
            "cancel one.low~2",
        )
        told.pods.forget_budgets()
        told.are()
    told.pods.remove_pod("low")
    told.are("order: bind high to n0")


def test_what_does_not_fit_on_its_node_is_accounted_for_in_full_as_soon_as_it_does() -> None:
    told = ToldCluster("n0")
    for uid in ("a", "b"):
        told.pods.set_pod(pod(uid, 3, on="n0", schedulerName="another"))
    told.are(
        "adopt one.a (3000m 0Gi) on n0 by kubernetes",
        "adopt one.b (3000m 0Gi) on n0 by kubernetes",
        "adopt one.b (1000m 0Gi) on n0 by kubernetes",
    )
    told.pods.remove_pod("a")
    told.are(
        "cancel one.a",
        "adopt one.b~2 (3000m 0Gi) on n0 by kubernetes, replacing one.b/0",
        "cancel one.b",
    )
    told.pods.set_pod(pod("b", 4, on="n0", schedulerName="another"))
    told.are("adopt one.b~3 (4000m 0Gi) on n0 by kubernetes, replacing one.b~2/0", "cancel one.b~2")
    told.pods.set_pod(pod("c", 1, on="n0", schedulerName="another"))
    told.are(
        "adopt one.c (1000m 0Gi) on n0 by kubernetes", "adopt one.c (0m 0Gi) on n0 by kubernetes"
    )
    told.pods.remove_node("n0")
    told.are("remove n0", "cancel one.b~3", "cancel one.c", "settle")


def test_room_that_is_promised_to_a_pod_is_its_own_when_it_comes() -> None:
    told = ToldCluster("n0")
    promised = pod("n", 3, schedulerName="another", priority=5)
    promised = replace(promised, status=PodStatus(nominated_node_name="n0"))
    told.pods.set_pod(promised)
    told.are("adopt one.n~nominated1 (3000m 0Gi) on n0 by nominated")
    told.pods.set_pod(promised)
    told.are()
    told.pods.set_pod(pod("m", 2))
    told.are(f"mark machine n0: {NO_TAINTS}", "submit one.m (2000m 0Gi)")
    assert not told.world.place("one.m", "n0")
    told.pods.set_pod(on_node(promised, "n0"))
    told.are(
        "adopt one.n (3000m 0Gi) on n0 by kubernetes, instead of one.n~nominated1/0",
        "try 1 is refused, stale",
        "cancel one.n~nominated1",
        "settle",
    )
    told.pods.remove_pod("n")
    told.are("cancel one.n")
    assert told.world.place("one.m", "n0")
    told.are("order: bind m to n0")


def test_a_new_world_is_told_of_nodes_marks_and_what_is_on_its_way() -> None:
    told = ToldCluster("n0", "n1")
    told.pods.set_pod(pod("there", on="n1", schedulerName="another"))
    told.pods.set_pod(pod("coming", 2))
    told.pods.set_pod(pod("waiting", 4))
    told.pods.flush()
    assert told.world.place("one.coming", "n0")
    told.world = anew = ToldPodWorld()
    anew.cluster = told.pods
    anew.machines["n1"] = told.pods.machine_of(node("n1")).capacity
    told.pods.orders.clear()
    told.pods.recover({}, {})
    told.are(
        "add n0 (4000m 8Gi)",
        "fit n1 to 4000m 8Gi",
        f"mark machine n0, n1: {NO_TAINTS}",
        "adopt one.there (1000m 0Gi) on n1 by kubernetes",
        "adopt one.coming (2000m 0Gi) on n0 by kubernetes",
        "submit one.waiting (4000m 0Gi)",
    )


def test_the_successor_of_a_moved_pod_takes_its_place_and_may_be_moved_as_well() -> None:
    told = ToldCluster("n0", "n1")
    old, new = made_by("web", "old", 3), made_by("web", "new", 3)
    told.pods.set_pod(old)
    told.are(f"mark machine n0, n1: {NO_TAINTS}", "submit one.old (3000m 0Gi)")
    assert told.world.place("one.old", "n0")
    told.are("order: bind old to n0")
    told.pods.set_pod(on_node(old, "n0"))
    told.world.move("one.old", "n1")
    told.are("order: evict old, moved")
    told.pods.set_pod(made_by("db", "other", 3))
    told.are("submit one.other (3000m 0Gi)")
    told.pods.set_pod(new)
    told.are(
        "adopt one.new (3000m 0Gi) on n1 by kubernetes, replacing one.old/0",
        "cancel one.old",
        "order: bind new to n1",
    )
    told.pods.remove_pod("old")
    told.are("try 1 is gone")
    told.pods.bound("new")
    told.pods.set_pod(on_node(new, "n1"))
    told.world.move("one.new", "n0")
    told.are("order: evict new, moved")
    for _ in range(2 * KEPT_FOR):
        told.pods.expire_places()
    told.are()
    told.pods.remove_pod("new")
    told.are("try 2 is gone")
    for _ in range(KEPT_FOR):
        told.pods.expire_places()
    told.are()
    told.pods.expire_places()
    told.are("cancel one.new")
    assert told.pods.moved == 1


def test_a_group_that_loses_a_pod_is_chosen_for_anew_and_bound_at_once() -> None:
    told = ToldCluster("n0", "n1")
    told.pods.set_pod(grouped("a", 2))
    told.are(f"mark machine n0, n1: {NO_TAINTS}")
    told.pods.set_pod(grouped("b", 2))
    told.are("submit one.group:g (1000m 0Gi)")
    assert told.pods.claimed("one.group:g", "n0", 0)
    assert told.pods.launch(1, "one.group:g", 0)
    told.are()
    told.pods.remove_pod("b")
    told.are("cancel one.group:g", "try 1 is gone")
    told.pods.set_pod(grouped("c", 2))
    told.are("submit one.group:g~2 (1000m 0Gi)")
    for index, name in enumerate(("n0", "n1")):
        assert told.pods.claimed("one.group:g~2", name, index)
        assert told.pods.launch(2 + index, "one.group:g~2", index)
    told.are("order: bind a to n0", "order: bind c to n1")
    told.pods.bind_failed("a")
    told.are("try 2 is refused, stale")
    told.pods.remove_pod("c")
    told.are("cancel one.group:g~2 [1]", "try 3 is gone")
