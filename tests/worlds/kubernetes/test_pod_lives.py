"""What becomes of pods, one input at a time, over a world that decides nothing by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from recorded_pod_world import RecordedPodWorld
from test_moved_pods import made_by, moved
from test_pod_cluster import cluster, leaving, node, on_node, pod

from argosy.kubernetes.objects import (
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodStatus,
)
from argosy.model.explanations import Why
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.cluster import MOST_REFUSALS, PROMISED, PodCluster
from argosy.worlds.kubernetes.tracked import BindOrder, EvictOrder, NominateOrder, PodState


def tainted(name: str = "n0", effect: str = "NoSchedule", **room: str) -> Node:
    document = msgspec.to_builtins(node(name))
    document["spec"] = {"taints": [{"key": "k", "effect": effect}]}
    document["status"]["allocatable"].update(room)
    return msgspec.convert(document, Node)


def tell(pods: PodCluster, *told: Pod) -> None:
    for each in told:
        pods.set_pod(each)
    pods.flush()


def nominated(uid: str, on: str, cpu: int = 3, **spec: Any) -> Pod:
    made = pod(uid, cpu, **{"schedulerName": "another", "priority": 100, **spec})
    return replace(made, status=PodStatus(nominated_node_name=on))


def placed(cpu: int = 1, **spec: Any) -> tuple[PodCluster, RecordedPodWorld, Pod]:
    """A pod "p" that runs on n0."""
    pods, world = cluster()
    pods.set_node(node("n0"))
    made = pod("p", cpu, **spec)
    tell(pods, made)
    assert world.place("one.p", "n0")
    pods.bound("p")
    there = on_node(made, "n0")
    tell(pods, there)
    pods.orders.clear()
    return pods, world, there


class TestEnds:
    @pytest.mark.parametrize(
        ("status", "told"),
        [
            ({"phase": "Succeeded", "reason": "ignored"}, (0, "")),
            ({"phase": "Failed"}, (1, "failed")),
            ({"phase": "Failed", "reason": "Evicted"}, (1, "Evicted")),
            (
                {
                    "phase": "Failed",
                    "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 9}}}],
                },
                (9, "failed"),
            ),
        ],
    )
    def test_a_job_ends_as_its_pod_has(self, status: dict[str, Any], told: Any) -> None:
        pods, world, there = placed(restartPolicy="Never")
        tell(pods, replace(there, status=msgspec.convert(status, PodStatus)))
        assert [each[1:] for each in world.finished] == [told]
        assert (pods.pods, world.placed, pods.free_on("n0")["cpu"]) == ({}, {}, 4_000)

    def test_a_pod_that_is_always_started_again_has_no_end(self) -> None:
        pods, world, there = placed(restartPolicy="Always")
        tell(pods, replace(there, status=PodStatus(phase="Failed")))
        assert (world.finished, world.placed) == ([], {})

    @pytest.mark.parametrize("by_itself", [True, False])
    def test_a_pod_that_is_gone_may_have_ended_by_itself(self, by_itself: bool) -> None:
        pods, world, _ = placed(restartPolicy="Never")
        pods.remove_pod("p", by_itself=by_itself)
        assert [each[1:] for each in world.finished] == ([(0, "")] if by_itself else [])
        assert (pods.pods, world.placed, world.tries) == ({}, {}, {})
        pods.remove_pod("unknown", by_itself=by_itself)

    def test_one_that_ends_before_it_is_seen_is_not_taken_up(self) -> None:
        pods, world = cluster()
        tell(pods, replace(pod("p"), status=PodStatus(phase="Succeeded")))
        assert (pods.pods, world.waiting) == ({}, {})


class TestRefusals:
    def test_a_pod_that_is_refused_too_often_rests_until_the_next_look(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, pod("p"))
        pods.set_node(tainted())
        pods.look_again()
        for at in range(1, MOST_REFUSALS + 1):
            assert pods.pods["p"].refusals == at - 1
            assert not pods.needs_look
            world.place(pods.pods["p"].job, "n0")
        assert pods.pods["p"].state is PodState.OUTSIDE
        assert pods.pods["p"].refusals == 0
        assert (world.waiting, pods.needs_look) == ({}, True)
        assert pods.pods["p"].obstacle
        pods.look_again()
        pods.flush()
        assert pods.pods["p"].state is PodState.WAITING
        assert len(world.waiting) == 1

    def test_a_pod_that_is_deleted_while_it_rests_is_not_submitted_again(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, pod("p"))
        pods.set_node(tainted())
        for _ in range(MOST_REFUSALS):
            world.place(pods.pods["p"].job, "n0")
        assert pods.pods["p"].state is PodState.OUTSIDE
        pods.remove_pod("p")
        pods.look_again()
        pods.flush()
        assert (pods.pods, world.waiting) == ({}, {})

    def test_a_claim_that_is_allowed_begins_the_count_anew(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, pod("p"))
        pods.set_node(tainted())
        world.place("one.p", "n0")
        assert pods.pods["p"].refusals == 1
        pods.set_node(node("n0"))
        world.place("one.p", "n0")
        assert (pods.pods["p"].refusals, pods.pods["p"].state) == (0, PodState.BINDING)
        assert list(pods.orders) == [BindOrder(pod("p"), "n0")]

    def test_claims_of_others_are_nobodys_business(self) -> None:
        pods, _ = cluster()
        assert pods.claimed("unknown", "n0")
        assert not pods.launch(4, "unknown")
        pods.pushed_off("unknown", Why.PREEMPTED)
        assert not pods.has_try(4)

    def test_room_that_is_promised_but_not_free_yet_is_refused(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, pod("victim", 3, on="n0", schedulerName="another"))
        tell(pods, nominated("theirs", "n0", 3))
        tell(pods, pod("ours", 1), pod("equal", 1, priority=100), pod("higher", 1, priority=101))
        for uid in ("ours", "equal"):
            world.place(f"one.{uid}", "n0")
            assert pods.pods[uid].obstacle == PROMISED
            assert pods.pods[uid].state is PodState.WAITING
        assert world.place("one.higher", "n0")
        assert pods.pods["higher"].node == "n0"


class TestNominations:
    def test_a_promise_is_a_claim_of_the_pods_priority(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, nominated("theirs", "n0", restartPolicy="Never"))
        [(job, where)] = world.placed.values()
        assert (job.id, where) == ("one.theirs~nominated1", "n0")
        assert world.adopted == [(job.id, "nominated")]
        assert (job.kind, job.owner, job.name) == ("batch", "one", "one/theirs")
        assert job.precedence == pods._precedences.of(100) > 0
        [group] = job.groups
        assert (group.count, group.request, group.endless) == (
            1,
            Resources(3_000, 0, {"pods": 1}),
            True,
        )

    @pytest.mark.parametrize(
        ("again", "claims"),
        [
            (nominated("theirs", "n0"), 1),
            (nominated("theirs", "n0", 2), 2),
            (nominated("theirs", "n1"), 2),
            (nominated("theirs", ""), 1),
            (leaving(nominated("theirs", "n0")), 1),
        ],
    )
    def test_a_promise_is_claimed_anew_only_if_it_is_another(self, again: Pod, claims: int) -> None:
        pods, world = cluster()
        for name in ("n0", "n1"):
            pods.set_node(node(name))
        tell(pods, nominated("theirs", "n0"))
        tell(pods, again)
        assert len(world.adopted) == claims
        is_left = bool(again.status.nominated_node_name) and (
            again.metadata.deletion_timestamp is None
        )
        assert len(world.placed) == int(is_left)

    def test_a_promise_waits_for_its_node_and_for_room_there(self) -> None:
        pods, world = cluster()
        tell(pods, nominated("theirs", "n0", 3))
        assert world.adopted == []
        pods.set_node(node("n0"))
        assert len(world.placed) == 1
        tell(pods, nominated("second", "n0", 4))
        assert len(world.placed) == 1
        assert not pods.second_looks.take({}), "that was the node"
        pods.remove_pod("theirs")
        assert [job.id for job, _ in world.placed.values()] == ["one.second~nominated3"]
        assert pods.second_looks.are_due

    def test_a_claim_that_is_lost_is_cancelled_and_made_again_when_there_is_room(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, nominated("theirs", "n0", 3))
        tell(pods, pod("high", 3, priority=1_000))
        assert world.place("one.high", "n0")
        assert world.cancelled == [("one.theirs~nominated1", None)]
        pods.remove_pod("high")
        assert [job.id for job, _ in world.placed.values()] == ["one.theirs~nominated2"]

    def test_a_new_world_gets_all_promises_again(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, nominated("theirs", "n0"))
        world.placed.clear()
        pods.recover({}, {})
        assert [job.id for job, _ in world.placed.values()] == ["one.theirs~nominated2"]


class TestChanges:
    def test_a_pod_that_runs_with_another_size_counts_with_it(self) -> None:
        pods, world, there = placed(1)
        larger = replace(there, spec=replace(pod("p", 3).spec, node_name="n0"))
        tell(pods, larger)
        assert pods.free_on("n0")["cpu"] == 1_000
        assert world.free_on("n0").cpu == 1_000
        assert [job.groups[0].request.cpu for job, _ in world.placed.values()] == [3_000]
        pods.remove_pod("p")
        assert (pods.free_on("n0")["cpu"], world.free_on("n0").cpu) == (4_000, 4_000)

    def test_other_labels_of_a_pod_that_runs_need_no_other_job(self) -> None:
        pods, world, there = placed()
        adopted = len(world.adopted)
        tell(pods, replace(there, metadata=replace(there.metadata, labels={"a": "b"})))
        assert len(world.adopted) == adopted
        assert pods.pods["p"].state is PodState.BOUND

    def test_who_leaves_makes_room_for_who_was_held(self) -> None:
        pods, world, _ = placed(3)
        tell(pods, pod("high", 3, priority=1_000))
        assert world.place("one.high", "n0")
        assert pods.pods["high"].state is PodState.HELD
        assert [type(order) for order in pods.orders] == [EvictOrder, NominateOrder]
        assert pods.is_leaving(1)
        assert not pods.is_leaving(2)
        pods.orders.clear()
        pods.remove_pod("p")
        assert list(pods.orders) == [BindOrder(pod("high", 3, priority=1_000), "n0")]

    def test_an_overcommitted_node_accounts_for_what_it_has_until_there_is_room(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, pod("a", 3, on="n0"), pod("b", 3, on="n0"))
        sizes = {job.name: job.groups[0].request.cpu for job, _ in world.placed.values()}
        assert sizes == {"one/a": 3_000, "one/b": 1_000}
        assert pods.free_on("n0")["cpu"] == -2_000
        pods.remove_pod("a")
        sizes = {job.name: job.groups[0].request.cpu for job, _ in world.placed.values()}
        assert sizes == {"one/b": 3_000}

    def test_a_node_that_is_gone_is_forgotten(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, pod("a", 3, on="n0"), pod("b", 3, on="n0"))
        pods.remove_node("unknown")
        pods.remove_node("n0")
        assert world.machines == {}
        assert (pods.free_on("n0"), dict(pods._clamped)) == ({}, {})
        assert {each.state for each in pods.pods.values()} == {PodState.OUTSIDE}
        pods.remove_pod("a")
        pods.set_node(node("n0"))
        assert [job.name for job, _ in world.placed.values()] == ["one/b"]
        assert pods.free_on("n0")["cpu"] == 1_000

    def test_a_pod_that_is_being_bound_counts_again_on_a_node_that_comes_back(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, pod("a", 3))
        world.place("one.a", "n0")
        pods.remove_node("n0")
        pods.set_node(node("n0"))
        assert pods.free_on("n0")["cpu"] == 1_000
        assert [job.name for job, _ in world.placed.values()] == ["one/a"]
        assert pods.pods["a"].state is PodState.BINDING
        pods.bind_failed("a")
        assert pods.free_on("n0")["cpu"] == 4_000
        assert pods.pods["a"].state is PodState.WAITING

    @pytest.mark.parametrize("fate", ["refused", "removed", "seen on another node"])
    def test_a_pod_that_was_not_bound_to_a_node_that_is_gone_does_not_count_there(
        self, fate: str
    ) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        pods.set_node(node("n1"))
        tell(pods, pod("a", 3))
        world.place("one.a", "n0")
        pods.remove_node("n0")
        match fate:
            case "refused":
                pods.bind_failed("a")
            case "removed":
                pods.remove_pod("a")
            case _:
                tell(pods, pod("a", 3, on="n1"))
        pods.set_node(node("n0"))
        assert pods.free_on("n0")["cpu"] == 4_000

    def test_only_what_changed_about_a_node_is_told(self, monkeypatch: Any) -> None:
        pods, world = cluster()
        told: list[str] = []
        for what in ("add_machine", "fit_machine", "relabel_machine"):
            known = getattr(world, what)
            monkeypatch.setattr(
                world,
                what,
                lambda *given, what=what, known=known: (told.append(what), known(*given)),
            )
        pods.set_node(node("n0"))
        pods.set_node(node("n0"))
        assert told == ["add_machine"]
        pods.set_node(node("n0", disk="ssd"))
        assert told == ["add_machine", "relabel_machine"]
        assert pods.rulebook.nodes["n0"].metadata.labels == {"disk": "ssd"}
        larger = msgspec.to_builtins(node("n0", disk="ssd"))
        larger["status"]["allocatable"]["cpu"] = "9"
        pods.set_node(msgspec.convert(larger, Node))
        assert told == ["add_machine", "relabel_machine", "fit_machine"]
        assert (pods.free_on("n0")["cpu"], world.machines["n0"].cpu) == (9_000, 9_000)

    def test_a_claim_is_looked_at_again_in_its_own_namespace_only(self) -> None:
        pods, _ = cluster()
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
        tell(pods, pod("p", volumes=[volume]))
        assert [each.uid for each in pods.refused] == ["p"]
        assert pods.pods["p"].obstacle == 'persistentvolumeclaim "data" not found'

        def claim(namespace: str) -> PersistentVolumeClaim:
            metadata = {"name": "data", "namespace": namespace}
            return msgspec.convert({"metadata": metadata, "spec": {}}, PersistentVolumeClaim)

        pods.set_claim(claim("two"))
        assert len(pods.refused) == 1
        pods.set_claim(claim("one"))
        assert len(pods.refused) == 2
        assert "not bound to a volume yet" in pods.pods["p"].obstacle
        pods.remove_claim("one", "data")
        pods.set_pod(replace(pod("p", volumes=[volume]), status=PodStatus(nominated_node_name="x")))
        assert "not found" in pods.pods["p"].obstacle


class TestBindings:
    def test_a_pod_that_kubernetes_does_not_bind_is_placed_anew(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        tell(pods, pod("p", 3))
        world.place("one.p", "n0")
        assert pods.free_on("n0")["cpu"] == 1_000
        pods.bind_failed("p")
        assert pods.free_on("n0")["cpu"] == 4_000
        assert pods.pods["p"].state is PodState.WAITING
        assert list(world.waiting) == ["one.p"]
        for uid in ("p", "unknown"):
            pods.bind_failed(uid)
            pods.bound(uid)
        assert pods.pods["p"].state is PodState.WAITING

    def test_a_refusal_that_comes_after_the_pod_was_seen_on_its_node_is_late(self) -> None:
        pods, world, _ = placed()
        pods.bind_failed("p")
        assert pods.pods["p"].state is PodState.BOUND
        assert len(world.placed) == 1

    def test_a_pod_that_somebody_else_puts_elsewhere_counts_there(self) -> None:
        pods, world = cluster()
        for name in ("n0", "n1"):
            pods.set_node(node(name))
        tell(pods, pod("p", 3))
        world.place("one.p", "n0")
        tell(pods, pod("p", 3, on="n1"))
        assert [pods.free_on(name)["cpu"] for name in ("n0", "n1")] == [4_000, 1_000]
        assert [world.free_on(name).cpu for name in ("n0", "n1")] == [4_000, 1_000]


class TestBudgets:
    def budget(self, name: str, app: str, allowed: int) -> PodDisruptionBudget:
        return msgspec.convert(
            {
                "metadata": {"name": name, "namespace": "one"},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed},
            },
            PodDisruptionBudget,
        )

    def labelled(self, uid: str, *apps: str, on: str) -> Pod:
        made = pod(uid, 4, on=on)
        labels = {"app": apps[0]} | dict.fromkeys(apps, "yes")
        return replace(
            made,
            metadata=replace(made.metadata, labels=labels),
            status=PodStatus(phase="Running"),
        )

    def test_a_budget_that_allows_something_again_exposes_only_its_own_pods(self) -> None:
        pods, world = cluster()
        for name in ("n0", "n1"):
            pods.set_node(node(name))
        tell(pods, self.labelled("a", "a", on="n0"), self.labelled("b", "b", on="n1"))
        tell(pods, pod("high", 4, priority=1_000))
        for uid, name in (("a", "n0"), ("b", "n1")):
            world.place(pods.pods["high"].job, name)
            pods.set_budget(self.budget(uid, uid, 0))
            pods.eviction_failed(uid)
        assert [each.is_protected for each in pods.pods.values()] == [True, True, False]
        pods.set_budget(self.budget("a", "a", 0))
        assert pods.pods["a"].is_protected
        pods.set_budget(self.budget("a", "a", 1))
        assert (pods.pods["a"].is_protected, pods.pods["b"].is_protected) == (False, True)
        assert pods.has_protected
        pods.remove_budget("one", "b")
        assert (pods.pods["b"].is_protected, pods.has_protected) == (False, False)


class TestSecondLooks:
    def test_pods_in_queues_deserve_one_elsewhere_only(self) -> None:
        pods, world = cluster()
        for name in ("n0", "n1"):
            pods.set_node(node(name))
        pods.look_again()
        tell(pods, pod("p", 3), pod("q", 3))
        pods.look_again()
        world.queues = {"n1": [("one.p", 0)], "n0": [("one.q", -1)]}
        assert not pods.needs_look
        pods.second_looks.note(["n1"])
        assert pods.needs_look
        pods.look_again()
        pods.flush()
        # One of them waits for that very node; the other fits there now.
        assert sorted(world.waiting) == ["one.p", "one.q~2"]
        assert not pods.needs_look

    def test_pods_of_high_priority_come_first_and_only_as_many_as_fit(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        pods.look_again()
        tell(pods, pod("low", 3), pod("high", 3, priority=9), pod("small", 1))
        for name in ("low", "high", "small"):
            assert [each.uid for each in pods.waits(f"one.{name}")] == [name]
        assert pods.waits("unknown") == []
        pods.second_looks.note(["n0"])
        found = pods.second_looks.take({})
        assert [each.uid for each in found] == ["high", "small"]
        pods.second_looks.note(["n0"])
        assert [each.uid for each in pods.second_looks.take({})] == ["low"]
        assert not world.placed

    def test_a_name_that_was_made_up_is_not_used_twice_either(self) -> None:
        pods, world = cluster()
        pods.set_node(node("n0"))
        made = pod("p")
        tell(pods, replace(made, metadata=replace(made.metadata, generate_name="p-")))
        pods.look_again()
        pods.waits("one.p")
        pods.second_looks.note(["n0"])
        pods.look_again()
        pods.flush()
        assert list(world.waiting) == ["one.p~2"]


class TestPlaces:
    def test_tries_that_keep_room_are_known(self) -> None:
        pods, world = moved()
        [number] = [number for number, job in world.tries.items() if job == "one.old"]
        pods.remove_pod("old")
        kept = [number for number in range(1, 9) if pods.has_try(number)]
        assert len(kept) == 1
        assert kept[0] in (number, number + 1)

    def test_room_that_somebody_else_takes_is_given_up(self) -> None:
        pods, world = moved()
        pods.remove_pod("old")
        world.cancelled.clear()
        tell(pods, pod("high", 4, priority=1_000))
        assert world.place("one.high", "n1")
        assert not pods.has_places
        assert ("one.old", None) in world.cancelled

    @pytest.mark.parametrize(
        ("other", "succeeds"),
        [
            (made_by("web", "new", 3), True),
            (made_by("other", "new", 3), False),
            (made_by("web", "new", 2), False),
            (made_by("web", "new", 3, nodeSelector={"disk": "ssd"}), False),
        ],
    )
    def test_only_a_pod_like_the_one_that_left_takes_its_place(
        self, other: Pod, succeeds: bool
    ) -> None:
        pods, _ = moved()
        pods.remove_pod("old")
        pods.orders.clear()
        tell(pods, other)
        assert (pods.moved, pods.has_places) == (int(succeeds), not succeeds)
        assert len(pods.orders) == int(succeeds)


@pytest.mark.parametrize(
    ("claim", "volumes", "said"),
    [
        (None, ["pv"], 'persistentvolumeclaim "data" not found'),
        ({}, ["pv"], 'persistentvolumeclaim "data" is not bound to a volume yet'),
        ({"volume": "pv"}, ["pv"], 'persistentvolumeclaim "data" is not bound to a volume yet'),
        ({"bound": "yes"}, ["pv"], 'persistentvolumeclaim "data" is not bound to a volume yet'),
        ({"volume": "pv", "bound": "yes"}, [], 'persistentvolume "pv" not found'),
        ({"volume": "pv", "bound": "yes"}, ["pv"], ""),
        (
            {"volume": "pv", "bound": "yes", "deleted": "2026-01-01T00:00:00Z"},
            ["pv"],
            'persistentvolumeclaim "data" is being deleted',
        ),
    ],
)
def test_a_pod_waits_until_its_claim_is_bound_to_a_volume_that_is_there(
    claim: dict[str, str] | None, volumes: list[str], said: str
) -> None:
    pods, _ = cluster()
    for name in volumes:
        pods.set_volume(msgspec.convert({"metadata": {"name": name}}, PersistentVolume))
    if claim is not None:
        annotations = {"pv.kubernetes.io/bind-completed": "yes"} if "bound" in claim else {}
        metadata = {"name": "data", "namespace": "one", "annotations": annotations}
        if "deleted" in claim:
            metadata["deletionTimestamp"] = claim["deleted"]
        document = {"metadata": metadata, "spec": {"volumeName": claim.get("volume", "")}}
        pods.set_claim(msgspec.convert(document, PersistentVolumeClaim))
    tell(pods, pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]))
    assert pods.pods["p"].obstacle == said


def test_priority_classes_are_known_before_pods() -> None:
    pods, world = cluster()
    pods.set_priorities([10, 20])
    tell(pods, pod("p", priority=20))
    assert world.waiting["one.p"].precedence == 21_333


def test_labels_of_namespaces_are_known_to_the_rules() -> None:
    pods, _ = cluster()
    document = {"metadata": {"name": "one", "labels": {"team": "x"}}}
    pods.set_namespace(msgspec.convert(document, Namespace))
    assert pods.rulebook._labels_of("one") == {"team": "x"}
