"""Groups of pods are placed all or none, and what happens to one of them reaches the others in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from gang_cluster import APART, GangCluster, member, members, pod
from msgspec import structs

from argosy.model.constraints.text import parse_constraint
from argosy.testing.builders import job
from argosy.worlds.kubernetes.gangs import GROUP_LABEL, NAME_LABEL, job_of_gang
from argosy.worlds.kubernetes.tracked import PodState


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[GangCluster]:
    made = GangCluster(tmp_path, settings={"preempt": True})
    yield made
    made.close()


def test_pods_of_a_group_are_bound_together(cluster: GangCluster) -> None:
    cluster.add(*members("abcde", 5))
    cluster.go_on()
    assert cluster.binds.keys() == set("abcde")


def test_a_group_with_too_few_pods_waits_and_says_so(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 5))
    cluster.go_on()
    assert not cluster.binds
    assert cluster.obstacle("a") == "3 of 5 pods of group g exist"
    cluster.add(*members("de", 5))
    cluster.go_on()
    assert cluster.binds.keys() == set("abcde")


def test_a_group_that_does_not_fit_keeps_no_room_from_others(cluster: GangCluster) -> None:
    cluster.add(*members("abcdefghijklm", 13))
    cluster.go_on()
    assert not cluster.binds
    cluster.add(*(pod(f"single-{at}") for at in range(12)))
    cluster.go_on()
    assert len(cluster.binds) == 12


def test_a_group_that_does_not_fit_is_placed_when_there_is_room(cluster: GangCluster) -> None:
    cluster.add(*members("abcdefghijklm", 13))
    cluster.go_on()
    cluster.add_node("n3")
    cluster.go_on()
    assert len(cluster.binds) == 13


def test_pods_beyond_the_size_of_a_group_join_later(cluster: GangCluster) -> None:
    cluster.add(*members("abcd", 2))
    cluster.go_on()
    assert cluster.binds.keys() == set("abcd")
    cluster.bind_all()
    cluster.add(member("e", 2))
    cluster.go_on()
    assert cluster.binds.keys() == {"e"}


def test_pods_beyond_the_size_do_not_keep_the_others_waiting(cluster: GangCluster) -> None:
    cluster.add(*members("abcdefghijklmnop", 10))
    cluster.go_on()
    assert len(cluster.binds) == 12
    assert cluster.binds.keys() >= set("abcdefghij")


def test_pods_of_a_group_may_differ(cluster: GangCluster) -> None:
    cluster.add(member("leader", 3, 4), *members("ab", 3, 2))
    cluster.go_on()
    assert cluster.binds.keys() == {"leader", "a", "b"}
    assert cluster.binds["leader"] not in (cluster.binds["a"], cluster.binds["b"])


def test_pods_of_a_group_that_avoid_each_other_are_on_different_nodes(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 3, affinity=APART))
    cluster.go_on()
    assert sorted(cluster.binds.values()) == ["n0", "n1", "n2"]


def test_a_group_whose_rules_cannot_hold_gives_back_what_it_had(cluster: GangCluster) -> None:
    cluster.add(*members("abcd", 4, 4, affinity=APART))
    cluster.go_on()
    assert not cluster.binds
    cluster.remove("a")
    cluster.go_on(70)
    assert not cluster.binds
    assert cluster.obstacle("b") == "3 of 4 pods of group g exist"
    cluster.add(*(pod(f"single-{at}", 4, labels={"app": "other"}) for at in range(3)))
    cluster.go_on()
    assert len(cluster.binds) == 3


def test_a_group_whose_rules_cannot_hold_is_placed_when_they_can(cluster: GangCluster) -> None:
    cluster.add(*members("abcd", 4, affinity=APART))
    cluster.go_on()
    assert not cluster.binds
    cluster.add_node("n3")
    cluster.go_on(10)
    assert len(set(cluster.binds.values())) == 4


def test_a_pod_that_is_deleted_before_the_group_is_bound_holds_the_others_back(
    cluster: GangCluster,
) -> None:
    cluster.add(pod("low", 4, on="n0"))
    cluster.add(*members("abc", 3, 4, priority=100))
    cluster.go_on()
    assert not cluster.binds, "low has not left yet"
    assert cluster.evictions.keys() == {"low"}
    cluster.remove("a")
    cluster.remove("low")
    cluster.go_on()
    assert not cluster.binds
    assert cluster.obstacle("b") == "2 of 3 pods of group g exist"
    cluster.add(member("d", 3, 4, priority=100))
    cluster.go_on()
    assert cluster.binds.keys() == set("bcd")


def test_a_group_waits_until_all_have_room(cluster: GangCluster) -> None:
    cluster.add(pod("low", 4, on="n0"))
    cluster.add(*members("abc", 3, 4, priority=100))
    cluster.go_on()
    assert not cluster.binds
    cluster.remove("low")
    cluster.go_on()
    assert cluster.binds.keys() == set("abc")


def test_a_victim_that_stays_keeps_the_whole_group_waiting(cluster: GangCluster) -> None:
    cluster.add(pod("low", 4, on="n0"))
    cluster.add(*members("abc", 3, 4, priority=100))
    cluster.go_on()
    cluster.pods.eviction_failed("low")
    cluster.go_on()
    assert not cluster.binds
    cluster.add(*(pod(f"single-{at}", 4) for at in range(2)))
    cluster.go_on()
    assert len(cluster.binds) == 2, "what the group had chosen is free again"


def test_a_node_that_goes_before_the_group_is_bound_holds_the_others_back(
    cluster: GangCluster,
) -> None:
    cluster.add(pod("low", 4, on="n0"))
    cluster.add(*members("abc", 3, 4, priority=100))
    cluster.go_on()
    cluster.remove_node("n2")
    cluster.remove("low")
    cluster.go_on()
    assert not cluster.binds
    cluster.add_node("n3")
    cluster.go_on()
    assert sorted(cluster.binds.values()) == ["n0", "n1", "n3"]


def test_a_pod_whose_binding_is_refused_is_placed_by_itself(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 3))
    cluster.go_on()
    cluster.bind("a")
    cluster.bind("b")
    cluster.refuse("c")
    cluster.go_on()
    assert cluster.binds.keys() == {"c"}


def test_a_server_that_was_killed_in_the_middle_binds_the_rest_together(
    cluster: GangCluster,
) -> None:
    cluster.add(*members("abcde", 5))
    cluster.go_on()
    cluster.bind("a")
    cluster.bind("b")
    cluster.start()
    assert cluster.binds.keys() == set("cde")
    cluster.refuse("c")
    cluster.go_on()
    assert cluster.binds.keys() == set("cde")


def test_a_server_that_was_killed_in_the_middle_binds_no_part_of_the_rest(
    cluster: GangCluster,
) -> None:
    cluster.add(*members("abcde", 5, 2))
    cluster.go_on()
    cluster.bind("a")
    where = cluster.binds["b"]
    cluster.bind("b")
    cluster.add(pod("other", 4, on=next(each for each in cluster.nodes if each != where)))
    cluster.start()
    assert not cluster.binds


def test_an_engine_that_fails_loses_nothing_of_a_group(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 3))
    cluster.go_on()
    cluster.bind("a")
    cluster.add(*members("def", 3, group="h"))
    cluster.build()
    cluster.go_on()
    cluster.bind_all()
    assert cluster.bound.keys() == set("abcdef")


def test_a_group_that_waits_for_room_is_decided_anew_after_an_engine_failed(
    cluster: GangCluster,
) -> None:
    cluster.add(pod("low", 4, on="n0"))
    cluster.add(*members("abc", 3, 4, priority=100))
    cluster.go_on()
    cluster.build()
    cluster.remove("low")
    cluster.go_on()
    assert cluster.binds.keys() == set("abc")


def test_a_pod_in_the_place_of_one_that_failed_is_placed_by_itself(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 3))
    cluster.go_on()
    cluster.bind_all()
    cluster.end("a", "Failed")
    cluster.add(member("d", 3))
    cluster.go_on()
    assert cluster.binds.keys() == {"d"}


def test_pods_that_have_ended_well_count(cluster: GangCluster) -> None:
    cluster.add(*members("abc", 3))
    cluster.go_on()
    cluster.bind_all()
    cluster.end("a", "Succeeded")
    cluster.end("b", "Failed")
    cluster.add(member("d", 3))
    cluster.go_on()
    assert cluster.binds.keys() == {"d"}


def test_a_group_that_lost_several_pods_is_completed_at_once_or_not_at_all(
    cluster: GangCluster,
) -> None:
    cluster.add(*members("abc", 3))
    cluster.go_on()
    cluster.bind_all()
    cluster.end("a", "Failed")
    cluster.end("b", "Failed")
    cluster.add(member("d", 3))
    cluster.go_on()
    assert cluster.obstacle("d") == "2 of 3 pods of group g exist"
    cluster.add(member("e", 3))
    cluster.go_on()
    assert cluster.binds.keys() == {"d", "e"}


def test_pods_that_waited_by_themselves_are_placed_together_after_the_group_is_gone(
    cluster: GangCluster,
) -> None:
    cluster.add(*members("abc", 3, 4))
    cluster.go_on()
    cluster.bind_all()
    cluster.add(member("d", 3, 4))
    cluster.go_on()
    assert cluster.pods.pods["d"].state is PodState.WAITING
    for each in "abc":
        cluster.remove(each)
    cluster.go_on()
    assert not cluster.binds
    assert cluster.obstacle("d") == "1 of 3 pods of group g exist"


def test_a_pod_that_somebody_else_binds_counts(cluster: GangCluster) -> None:
    cluster.add(*members("ab", 3))
    cluster.add(member("c", 3, on="n0"))
    cluster.go_on()
    assert cluster.binds.keys() == set("ab")


def test_a_pod_with_a_gate_is_waited_for(cluster: GangCluster) -> None:
    cluster.add(*members("ab", 3), member("c", 3, schedulingGates=[{"name": "wait"}]))
    cluster.go_on()
    assert not cluster.binds
    assert cluster.obstacle("a").startswith("2 of 3 pods of group g can be scheduled")
    cluster.add(member("c", 3))
    cluster.go_on()
    assert cluster.binds.keys() == set("abc")


def test_a_pod_that_changes_its_group_leaves_the_first_incomplete(cluster: GangCluster) -> None:
    cluster.add(*members("abcdefghijklm", 13))
    cluster.go_on()
    cluster.add(member("m", 1, group="other"))
    cluster.go_on()
    assert cluster.binds.keys() == {"m"}
    assert cluster.obstacle("a") == "12 of 13 pods of group g exist"


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({NAME_LABEL: "g"}, "the label pod-group.scheduling.sigs.k8s.io/min-available"),
        ({GROUP_LABEL: "g"}, "there is no PodGroup g of scheduling.x-k8s.io"),
    ],
)
def test_a_group_without_a_size_waits_and_says_so(
    cluster: GangCluster, labels: dict[str, str], reason: str
) -> None:
    cluster.add(pod("a", labels=labels))
    cluster.go_on()
    assert not cluster.binds
    assert cluster.obstacle("a").startswith(reason)


def test_a_pod_group_may_be_seen_after_its_pods(cluster: GangCluster) -> None:
    cluster.add(*(pod(each, schedulingGroup={"podGroupName": "g"}) for each in "ab"))
    cluster.go_on()
    assert cluster.obstacle("a") == "there is no PodGroup g of scheduling.k8s.io"
    cluster.add_group("g", 2)
    cluster.go_on()
    assert cluster.binds.keys() == set("ab")


def test_a_reference_to_a_workload_is_refused(cluster: GangCluster) -> None:
    cluster.add(pod("a", workloadRef={"name": "w", "podGroup": "g"}))
    cluster.go_on()
    assert not cluster.binds
    assert cluster.obstacle("a").startswith("it has a workloadRef")


def test_an_engine_that_places_pods_one_by_one_refuses_groups(tmp_path: Path) -> None:
    cluster = GangCluster(tmp_path, "sparrow")
    cluster.add(*members("ab", 2), *members("c", 1, group="alone"))
    cluster.go_on(20)
    assert cluster.binds.keys() == {"c"}
    assert cluster.obstacle("a") == (
        "engine sparrow of scheduler sparrow places pods one by one: it cannot schedule groups"
    )
    cluster.close()


def test_constraints_of_every_pod_hold_for_its_group(cluster: GangCluster) -> None:
    cluster.add(*members("ab", 2))
    first, second = (cluster.pods.pods[name] for name in "ab")
    apart, near = (
        parse_constraint(text)
        for text in ("w -> {w, 0, 0} in machine", "w -> {db, 1, inf} in rack")
    )
    jobs = [
        structs.replace(job(name).job, constraints=given)
        for name, given in (("a", (apart,)), ("b", (apart, near)))
    ]
    assert first.gang is not None
    together, _ = job_of_gang("g", first.gang, [(first, jobs[0]), (second, jobs[1])])
    assert together.constraints == (apart, near)
