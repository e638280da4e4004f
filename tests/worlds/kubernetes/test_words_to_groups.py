"""What groups and moved pods lead to when several things happen at once: late members, two places, and
nodes that several wait for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from gang_cluster import HOST, member, members
from msgspec.structs import replace
from test_group_lives import cluster, place, states, tell
from test_moved_pods import made_by
from test_pod_cluster import node, on_node, pod
from test_what_worlds_are_told import NO_TAINTS, ToldCluster

from argosy.kubernetes.objects import Pod
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.moves import MOVABLE
from argosy.worlds.kubernetes.tracked import PodState

#: Of what no pod here is.
AWAY: dict[str, Any] = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "none"}}}
        ]
    }
}


class TestMembers:
    def test_who_joins_while_others_are_placed_is_told_so(self) -> None:
        pods, world = cluster()
        tell(pods, *members("ab", 2))
        pods.refused.clear()
        tell(pods, member("c", 2))
        assert [(each.uid, each.obstacle) for each in pods.refused] == [
            ("c", "2 other pods of group g come first")
        ]
        assert list(world.waiting) == ["one.group:g"]

    def test_only_those_that_are_missing_come_first(self) -> None:
        pods, world = cluster()
        first, *others = members("abcd", 3)
        tell(pods, on_node(first, "n0"))
        tell(pods, others[0])
        assert pods.pods["b"].obstacle == "2 of 3 pods of group g exist"
        tell(pods, *others[1:])
        assert {uid: each.obstacle for uid, each in pods.pods.items()} == {
            "a": "",
            "b": "",
            "c": "",
            "d": "2 other pods of group g come first",
        }
        assert (list(world.waiting), world.waiting["one.group:g"].tasks) == (["one.group:g"], 2)

    def test_kinds_are_named_in_the_order_of_the_pods(self) -> None:
        pods, _ = cluster()
        tell(pods, member("a", 2), member("b", 2, restartPolicy="Never"))
        assert pods.pods["b"].obstacle == (
            "pods of its group go to different schedulers, by their kinds service, batch"
        )

    def test_who_has_a_node_keeps_it_when_the_group_has_to_be_placed_as_a_whole_again(self) -> None:
        pods, world = cluster()
        there, gone, claimed, waiting = members("abcd", 3)
        tell(pods, on_node(there, "n0"), on_node(gone, "n0"))
        tell(pods, claimed, waiting)
        assert sorted(world.waiting) == ["one.c", "one.d"]
        assert pods.claimed("one.c", "n1")
        pods.remove_pod("a")
        pods.remove_pod("b")
        pods.flush()
        assert states(pods) == {"c": "claimed", "d": "outside"}
        assert pods.pods["d"].obstacle == "2 of 3 pods of group g exist"
        assert [name for name, _ in world.cancelled][-1] == "one.d"
        tell(pods, member("e", 3))
        place(pods, "one.group:g", "n0")
        assert [pods.is_short(job) for job in ("one.group:g", "one.c")] == [True, False]

    @pytest.mark.parametrize("apart", [False, True])
    def test_a_group_of_which_one_heeds_others_is_decided_on_before_what_comes_next(
        self, apart: bool
    ) -> None:
        told = ToldCluster("n0", "n1")
        told.pods.set_pod(member("a", 2))
        spec: dict[str, Any] = {"affinity": AWAY} if apart else {}
        told.pods.set_pod(member("b", 2, **spec))
        told.pods.set_pod(pod("x"))
        told.pods.flush()
        lines = [line for line in told.world.told() if not line.startswith("mark")]
        together = "submit one.x (1000m 0Gi), one.group:g (1000m 0Gi)"
        assert lines == [together, "settle"] if apart else [together]

    def test_a_group_that_is_gone_while_it_rests_is_not_looked_at_again(self) -> None:
        pods, _ = cluster()
        tell(pods, *members("ab", 2))
        place(pods, "one.group:g", "n0")
        pods.found_short("one.group:g")
        pods.second_looks.take({})
        for uid in "ab":
            pods.remove_pod(uid)
        pods.flush()
        pods.second_looks.take({})
        assert not pods.needs_look

    def test_what_a_group_gives_up_goes_to_those_who_wait_for_it(self) -> None:
        pods, _ = cluster()
        tell(pods, *members("abc", 3, 3), pod("x", 2), pod("y", 2))
        place(pods, "one.group:g", "n0", "n1")
        for number, (name, where) in enumerate((("one.x", "n0"), ("one.y", "n1")), 20):
            assert pods.claimed(name, where)
            assert pods.launch(number, name)
        assert [pods.pods[uid].state for uid in "xy"] == [PodState.HELD] * 2
        pods.orders.clear()
        pods.remove_pod("c")
        pods.flush()
        assert [(order.pod.uid, order.node) for order in pods.orders] == [  # type: ignore[union-attr]
            ("x", "n0"),
            ("y", "n1"),
        ]
        assert states(pods) == {"a": "outside", "b": "outside", "x": "binding", "y": "binding"}

    def test_a_world_that_is_built_anew_breaks_no_choice_that_is_made_after_that(self) -> None:
        pods, world = cluster()
        tell(pods, *members("abc", 3))
        place(pods, "one.group:g", "n0", "n1")
        pods.pushed_off("one.group:g", Why.FILTERED, 0)
        assert [pods.has_try(number) for number in (10, 11)] == [False, True]
        pods.recover({"one.group:g": 3}, {("one.group:g", 1): "n1"})
        assert not pods.has_try(11)
        for _ in range(2):
            assert list(world.waiting) == ["one.group:g~2"]
            assert world.cancelled == [("one.group:g", [0, 1, 2])]
            pods.follow_up()

    def test_what_is_new_is_submitted_before_a_choice_is_undone(self) -> None:
        told = ToldCluster("n0", "n1")
        for uid in "ab":
            told.pods.set_pod(member(uid, 2))
        told.pods.flush()
        told.world.told()
        told.pods.set_pod(pod("x"))
        told.pods.remove_pod("b")
        told.are("submit one.x (1000m 0Gi)", "cancel one.group:g")


def test_room_that_nobody_waits_for_on_its_node_is_looked_at_by_others() -> None:
    told = ToldCluster("n0")
    told.pods.set_pod(pod("there", 4, on="n0", schedulerName="another"))
    told.pods.set_pod(pod("p", 4))
    told.pods.flush()
    told.pods.waits("one.p")
    told.pods.look_again()
    assert not told.pods.needs_look
    told.world.told()
    told.pods.remove_pod("there")
    assert told.pods.needs_look
    told.pods.look_again()
    told.are("cancel one.there", "cancel one.p", "submit one.p~2 (4000m 0Gi)")


def test_who_has_waited_for_a_node_longest_goes_first_though_others_need_less() -> None:
    told = ToldCluster("n0")
    theirs = pod("p", 3, on="n0", schedulerName="another")
    told.pods.set_pod(theirs)
    for number, (uid, cpu) in enumerate((("large", 3), ("small", 2)), 7):
        told.pods.set_pod(pod(uid, cpu))
        told.pods.flush()
        assert told.pods.claimed(f"one.{uid}", "n0")
        assert told.pods.launch(number, f"one.{uid}")
    told.world.told()
    told.pods.set_pod(pod("p", 2, on="n0", schedulerName="another"))
    told.are("adopt one.p~2 (2000m 0Gi) on n0 by kubernetes, replacing one.p/0", "cancel one.p")
    told.pods.remove_pod("p")
    told.are("cancel one.p~2", "order: bind large to n0")
    told.pods.remove_pod("large")
    told.are("cancel one.large", "try 7 is gone", "order: bind small to n0")


def running(told: ToldCluster, *pods: Pod, on: str = "n0") -> None:
    """The pods run on a node, and Kubernetes says so."""
    for each in pods:
        told.pods.set_pod(each)
        told.pods.flush()
        assert told.world.place(f"{each.namespace}.{each.name}", on)
        told.pods.bound(each.uid)
        told.pods.set_pod(on_node(each, on))
    told.world.told()


def named(uid: str, name: str, namespace: str = "one", **metadata: Any) -> Pod:
    """A pod that may be moved, though nobody says who makes it."""
    made = pod(uid, 1)
    document: dict[str, Any] = msgspec.to_builtins(made)
    document["metadata"] |= {
        "name": name,
        "namespace": namespace,
        "annotations": {MOVABLE: "true"},
        **metadata,
    }
    return msgspec.convert(document, Pod)


class TestMoves:
    def test_every_place_on_a_node_that_goes_is_given_up(self) -> None:
        told = ToldCluster("n0", "n1")
        running(told, made_by("web", "a"), made_by("db", "b"))
        told.world.move("one.a", "n1")
        told.world.move("one.b", "n1")
        told.are("order: evict a, moved", "order: evict b, moved")
        told.pods.remove_node("n1")
        told.are("remove n1", "cancel one.a", "cancel one.b", "settle")
        assert not told.pods.has_places

    def test_a_pod_that_is_being_bound_may_be_moved(self) -> None:
        told = ToldCluster("n0", "n1")
        told.pods.set_pod(made_by("web", "a"))
        told.pods.flush()
        assert told.world.place("one.a", "n0")
        told.world.told()
        told.world.move("one.a", "n1")
        told.are("order: evict a, moved")
        assert told.pods.has_places

    def test_only_the_place_of_a_pod_that_stays_is_given_up(self) -> None:
        told = ToldCluster("n0", "n1")
        running(told, made_by("web", "a"), made_by("db", "b"))
        told.world.move("one.a", "n1")
        told.world.move("one.b", "n1")
        told.pods.eviction_failed("b")
        told.pods.orders.clear()
        told.world.told()
        told.pods.set_pod(made_by("web", "new"))
        told.are(
            "adopt one.new (1000m 0Gi) on n1 by kubernetes, replacing one.a/0",
            "cancel one.a",
            "order: bind new to n1",
        )
        assert not told.pods.has_places

    def test_a_try_that_keeps_room_is_known_as_others_are(self) -> None:
        told = ToldCluster("n0", "n1")
        running(told, made_by("web", "a"), made_by("db", "b"))
        told.world.move("one.a", "n1")
        told.pods.remove_pod("a")
        [number] = [each for each, job in told.world.tries.items() if job == "one.a"]
        assert [told.pods.has_try(each) for each in (1, 2, number, 99)] == [
            False,
            True,
            True,
            False,
        ]

    def test_a_successor_for_which_the_room_has_shrunk_is_placed_as_any_other(self) -> None:
        told = ToldCluster("n0", "n1")
        running(told, made_by("web", "old", 3))
        told.world.move("one.old", "n1")
        told.pods.orders.clear()
        smaller = {"cpu": "2", "memory": "8Gi", "pods": "10"}
        made = node("n1")
        told.pods.set_node(replace(made, status=replace(made.status, allocatable=smaller)))
        told.pods.set_pod(made_by("web", "new", 3))
        told.are(
            "fit n1 to 2000m 8Gi",
            "adopt one.new (3000m 0Gi) on n1 by kubernetes, replacing one.old/0",
            "cancel one.old",
            "submit one.new (3000m 0Gi)",
        )
        tracked = told.pods.pods["new"]
        assert (tracked.state, tracked.node, told.pods.moved) == (PodState.WAITING, "", 0)
        assert told.pods.rulebook.pods_on("n1") == []
        assert told.pods.of_job("one.new") is tracked

    def test_a_successor_does_not_go_where_it_may_not(self) -> None:
        told = ToldCluster("n0", "n1")
        running(told, made_by("web", "old"))
        told.world.move("one.old", "n1")
        told.pods.orders.clear()
        cordoned = msgspec.to_builtins(node("n1")) | {"spec": {"unschedulable": True}}
        told.pods.set_node(msgspec.convert(cordoned, type(node("n1"))))
        told.pods.set_pod(made_by("web", "new"))
        told.are(f"unmark machine n1: {NO_TAINTS}", "submit one.new (1000m 0Gi)")
        assert told.pods.has_places

    @pytest.mark.parametrize(
        ("successor", "is_one"),
        [
            (named("new", "p"), True),
            (named("new", "p", "two"), False),
            (named("new", "q"), False),
        ],
    )
    def test_a_pod_that_nobody_makes_is_followed_by_one_of_its_name(
        self, successor: Pod, is_one: bool
    ) -> None:
        told = ToldCluster("n0", "n1")
        running(told, named("old", "p"))
        told.world.move("one.p", "n1")
        told.pods.remove_pod("old")
        told.pods.set_pod(successor)
        told.pods.flush()
        assert told.pods.has_places is not is_one
        assert (told.pods.pods["new"].node == "n1") is is_one

    @pytest.mark.parametrize(("controller", "is_one"), [("set", True), ("other", False)])
    def test_whoever_controls_a_pod_makes_its_successor(
        self, controller: str, is_one: bool
    ) -> None:
        told = ToldCluster("n0", "n1")

        def owned(uid: str, by: str) -> Pod:
            owners: list[dict[str, Any]] = [{"kind": "Thing", "name": "thing", "uid": "thing"}]
            owners.append({"kind": "ReplicaSet", "name": by, "uid": by, "controller": True})
            return named(uid, uid, ownerReferences=owners)

        running(told, owned("old", "set"))
        told.world.move("one.old", "n1")
        told.pods.set_pod(owned("new", controller))
        told.pods.flush()
        assert told.pods.has_places is not is_one
