"""Groups of pods, one input at a time: what they are told, when they rest, and what nodes lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from gang_cluster import member, members
from gang_cluster import pod as labelled
from recorded_pod_world import RecordedPodWorld
from test_pod_cluster import node, on_node, pod

from argosy.kubernetes.objects import CoschedulingGroup, Node
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.cluster import PodCluster
from argosy.worlds.kubernetes.gangs import GROUP_LABEL, LONGEST_REST
from argosy.worlds.kubernetes.tracked import BindOrder, PodState

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def cluster(
    obstacle: Callable[[str], str] = lambda kind: "",
) -> tuple[PodCluster, RecordedPodWorld]:
    world = RecordedPodWorld()
    pods = world.cluster = PodCluster(
        lambda: world, lambda pod: pod.spec.scheduler_name == "argosy", obstacle_to_groups=obstacle
    )
    for name in ("n0", "n1"):
        pods.set_node(node(name))
    return pods, world


def tell(pods: PodCluster, *told: Any) -> None:
    for each in told:
        pods.set_pod(each)
    pods.flush()


def place(pods: PodCluster, job: str, *nodes: str) -> None:
    """A scheduler has nodes for the first tasks of a job."""
    for index, name in enumerate(nodes):
        assert pods.claimed(job, name, index)
        assert pods.launch(10 + index, job, index)


def states(pods: PodCluster) -> dict[str, str]:
    return {uid: each.state.value for uid, each in pods.pods.items()}


class TestForming:
    def test_as_many_as_the_group_needs_become_one_job_and_the_others_are_told(self) -> None:
        pods, world = cluster()
        tell(pods, *members("abc", 2))
        assert list(world.waiting) == ["one.group:g"]
        assert world.waiting["one.group:g"].tasks == 2
        assert states(pods) == {"a": "waiting", "b": "waiting", "c": "outside"}
        assert pods.pods["c"].obstacle == "2 other pods of group g come first"
        assert [pods.pods[uid].obstacle for uid in "ab"] == ["", ""]
        pods.refused.clear()
        pods.tell_groups()
        assert [each.uid for each in pods.refused] == ["c"]

    def test_too_few_are_told_how_many_there_are(self) -> None:
        pods, world = cluster()
        tell(pods, member("a", 3), member("b", 3))
        assert world.waiting == {}
        assert {each.obstacle for each in pods.pods.values()} == {"2 of 3 pods of group g exist"}

    def test_pods_of_different_kinds_are_not_placed_together(self) -> None:
        pods, _ = cluster()
        tell(pods, member("a", 2, restartPolicy="Never"), member("b", 2))
        assert pods.pods["a"].obstacle == (
            "pods of its group go to different schedulers, by their kinds batch, service"
        )

    def test_an_engine_may_not_place_groups_but_may_place_groups_of_one(self) -> None:
        pods, world = cluster(lambda kind: f"not for {kind}")
        tell(pods, *members("ab", 2), member("c", 1, group="h"))
        assert pods.pods["a"].obstacle == "not for service"
        assert list(world.waiting) == ["one.c"]

    def test_pods_beyond_the_size_go_one_by_one_once_the_others_are_bound(self) -> None:
        pods, world = cluster()
        tell(pods, *members("abc", 2))
        place(pods, "one.group:g", "n0", "n1")
        assert [order.node for order in pods.orders if isinstance(order, BindOrder)] == ["n0", "n1"]
        pods.flush()
        assert states(pods)["c"] == "waiting"
        assert "one.c" in world.waiting

    def test_a_group_that_lacks_one_lets_all_others_go_one_by_one(self) -> None:
        pods, world = cluster()
        first, *others = members("abc", 2)
        tell(pods, on_node(first, "n0"))
        tell(pods, *others)
        assert sorted(world.waiting) == ["one.b", "one.c"]
        assert states(pods) == {"a": "bound", "b": "waiting", "c": "waiting"}

    def test_nobody_is_bound_before_all_have_room(self) -> None:
        pods, _ = cluster()
        tell(pods, pod("full", 4, on="n1"))
        tell(pods, *members("ab", 2))
        place(pods, "one.group:g", "n0")
        assert not pods.orders
        assert pods.free_on("n0")["cpu"] == 3_000, "its room is kept"
        assert states(pods) == {"full": "bound", "a": "claimed", "b": "waiting"}

    def test_a_size_may_be_learnt_and_lost(self) -> None:
        pods, world = cluster()

        def sized(size: int) -> CoschedulingGroup:
            document = {
                "metadata": {"name": "g", "namespace": "one"},
                "spec": {"minMember": size},
            }
            return msgspec.convert(document, CoschedulingGroup)

        tell(pods, *(labelled(uid, labels={GROUP_LABEL: "g"}) for uid in "ab"))
        missing = "there is no PodGroup g of scheduling.x-k8s.io"
        assert pods.pods["a"].obstacle == missing
        pods.set_group(sized(3))
        assert pods.has_unformed
        pods.flush()
        assert not pods.has_unformed
        assert pods.pods["a"].obstacle == "2 of 3 pods of group g exist"
        pods.remove_group(sized(3))
        pods.flush()
        assert pods.pods["a"].obstacle == missing
        pods.set_groups([sized(2)])
        pods.flush()
        assert list(world.waiting) == ["one.group:g"]
        tell(pods, labelled("c", labels={GROUP_LABEL: "g"}))
        pods.set_groups([])
        assert pods.has_unformed


class TestResting:
    def test_a_group_that_is_short_rests_twice_as_long_each_time(self) -> None:
        pods, world = cluster()
        tell(pods, *members("ab", 2))
        looks = []
        for _ in range(9):
            [job] = world.waiting
            assert not pods.is_short(job), "nobody has a node yet"
            pods.found_short(job)
            assert job in world.waiting
            place(pods, job, "n0")
            assert pods.is_short(job)
            pods.found_short(job)
            assert states(pods) == {"a": "outside", "b": "outside"}
            assert pods.pods["b"].obstacle == (
                "1 of 2 pods of group g found nodes, and the others none that their rules allow"
            )
            assert (pods.needs_look, pods.free_on("n0")["cpu"]) == (True, 4_000)
            looks.append(0)
            while not world.waiting:
                looks[-1] += 1
                pods.look_again()
                pods.flush()
        assert looks == [1, 2, 4, 8, 16, 32, LONGEST_REST, LONGEST_REST, LONGEST_REST]

    def test_those_with_nodes_are_counted(self) -> None:
        pods, world = cluster()
        tell(pods, *members("abc", 3))
        [job] = world.waiting
        place(pods, job, "n0", "n1")
        pods.found_short(job)
        assert pods.pods["c"].obstacle.startswith("2 of 3 pods of group g found nodes")

    def test_a_group_that_is_bound_begins_anew(self) -> None:
        pods, world = cluster()
        tell(pods, *members("ab", 2))
        place(pods, "one.group:g", "n0")
        pods.found_short("one.group:g")
        pods.look_again()
        pods.flush()
        [job] = world.waiting
        gang = pods.pods["a"].gang
        assert gang is not None
        assert gang.failures == 1
        place(pods, job, "n0", "n1")
        assert (gang.failures, gang.together, gang.job, gang.ready) == (0, {}, "", set())

    def test_jobs_of_single_pods_are_never_short(self) -> None:
        pods, _ = cluster()
        tell(pods, pod("p"))
        assert not pods.is_short("one.p")
        assert not pods.is_short("unknown")
        pods.found_short("unknown")


class TestBreakingUp:
    @pytest.mark.parametrize("how", ["removed", "elsewhere", "changed"])
    def test_what_happens_to_one_undoes_the_choice_of_all(self, how: str) -> None:
        pods, world = cluster()
        first, second = members("ab", 2)
        tell(pods, first, second)
        place(pods, "one.group:g", "n0")
        if how == "removed":
            pods.remove_pod("b")
        elif how == "elsewhere":
            tell(pods, on_node(second, "n1"))
        else:
            tell(pods, member("b", 2, 3))
        pods.flush()
        assert ("one.group:g", None) in world.cancelled
        if how == "removed":
            assert states(pods) == {"a": "outside"}
            assert pods.pods["a"].obstacle == "1 of 2 pods of group g exist"
        elif how == "elsewhere":
            assert states(pods) == {"a": "waiting", "b": "bound"}
            assert "one.a" in world.waiting, "the other is placed by itself"
        else:
            assert list(world.waiting) == ["one.group:g~2"]
        assert pods.free_on("n0")["cpu"] == 4_000

    def test_a_claim_that_is_lost_breaks_the_group_when_decisions_are_over(self) -> None:
        pods, world = cluster()
        tell(pods, *members("ab", 2))
        place(pods, "one.group:g", "n0")
        pods.pushed_off("one.group:g", Why.FILTERED, 0)
        assert states(pods) == {"a": "waiting", "b": "waiting"}
        assert world.cancelled == []
        pods.follow_up()
        assert world.cancelled == [("one.group:g", None)]
        assert list(world.waiting) == ["one.group:g~2"]


class TestReasons:
    def test_each_node_counts_for_the_first_reason_that_applies(self) -> None:
        pods, _ = cluster()
        tainted = msgspec.to_builtins(node("n2"))
        tainted["spec"] = {"taints": [{"key": "k", "effect": "NoSchedule"}]}
        pods.set_node(msgspec.convert(tainted, Node))
        pods.set_node(node("n3", disk="ssd"))
        apart = {"labelSelector": {"matchLabels": {"app": "gang"}}, "topologyKey": "disk"}
        avoiding = {"podAntiAffinity": {REQUIRED: [apart]}}
        tell(pods, labelled("there", on="n3"))
        tell(pods, labelled("p", affinity=avoiding))
        rulebook, needs = pods.rulebook, pods.pods["p"].needs
        before = rulebook.reasons(needs)
        assert before.pop("node(s) had untolerated taint {k: }") == 1
        [(_, count)] = before.items()
        assert count == 1
        pods.remove_node("n2")
        assert "node(s) had untolerated taint {k: }" not in rulebook.reasons(needs)
        pods.remove_pod("there")
        assert rulebook.reasons(needs) == {}
        assert pods.pods["p"].state is PodState.WAITING
