"""Small differences between pods, nodes and moments that matter."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from test_cluster_steps import begun, grouped, held, run
from test_moved_pods import made_by
from test_pod_cluster import node, on_node, pod
from told_pod_world import ToldPodWorld

from argosy.kubernetes.objects import (
    Node,
    NodeSelectorTerm,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PodStatus,
    SelectorRequirement,
)
from argosy.model.explanations import Why
from argosy.worlds.kubernetes.annotated_constraints import (
    CONSTRAINTS,
    AnnotatedConstraints,
    constraint_tags,
)
from argosy.worlds.kubernetes.gangs import NAME_LABEL, SIZE_LABEL
from argosy.worlds.kubernetes.moves import RelocatingCluster
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.pod_tags import label_tags
from argosy.worlds.kubernetes.pod_wishes import has_wishes
from argosy.worlds.kubernetes.priorities import HIGHEST, Precedences
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.selectors import as_integer, term_matches
from argosy.worlds.kubernetes.shapes import PodShapes
from argosy.worlds.kubernetes.tracked import EvictOrder, PodState
from argosy.worlds.kubernetes.volumes import KnownVolumes


def labelled(made: Pod, **labels: str) -> Pod:
    return replace(made, metadata=replace(made.metadata, labels=labels))


def annotated(made: Pod, **annotations: str) -> Pod:
    return replace(made, metadata=replace(made.metadata, annotations=annotations))


def relocating(*nodes: str) -> tuple[RelocatingCluster, ToldPodWorld]:
    world = ToldPodWorld()
    pods = world.cluster = RelocatingCluster(
        lambda: world, lambda each: each.spec.scheduler_name == "argosy"
    )
    for name in nodes:
        pods.set_node(node(name))
    return pods, world


class TestMoments:
    def test_a_pod_that_was_told_to_leave_is_not_counted_again_when_it_is_seen(self) -> None:
        pods, world = begun("n0")
        held(pods, world)
        before = dict(world.placed)
        pods.set_pod(labelled(on_node(pod("low", 2), "n0")))
        pods.flush()
        assert pods.pods["low"].state is PodState.LEAVING
        assert world.placed == before
        assert not pods.orders

    def test_a_pod_that_somebody_binds_while_it_is_held_takes_room_once(self) -> None:
        pods, world = begun("n0")
        held(pods, world)
        assert pods.free_on("n0")["cpu"] == 2_000
        for _ in range(2):
            pods.set_pod(on_node(pod("high", 4, priority=1_000), "n0"))
            assert pods.free_on("n0")["cpu"] == -2_000
        assert pods.pods["high"].state is PodState.BOUND

    def test_groups_that_were_not_looked_at_are_a_reason_to_look(self) -> None:
        pods, _ = begun("n0")
        pods.second_looks.take({})
        assert not pods.needs_look
        pods.set_pod(grouped("a", 2))
        pods.second_looks.take({})
        assert pods.needs_look
        assert pods.has_unformed
        pods.flush()
        pods.second_looks.take({})
        assert not pods.has_unformed
        assert not pods.needs_look

    def test_a_pod_whose_claim_is_elsewhere_in_a_new_world_counts_where_it_is(self) -> None:
        pods, world = begun("n0", "n1")
        run(pods, world, pod("p"))
        pods.recover({"one.p": 1}, {("one.p", 0): "n1"})
        assert pods.pods["p"].job == "one.p~2"
        assert world.placed["one.p~2"][1] == "n0"

    def test_all_who_waited_alone_are_recalled_when_their_group_grows(self) -> None:
        pods, world = begun("n0")
        for uid in ("a", "b"):
            pods.set_pod(labelled(pod(uid), **{NAME_LABEL: "g", SIZE_LABEL: "1"}))
        pods.flush()
        assert list(world.waiting) == ["one.a", "one.b"]
        pods.set_pod(labelled(pod("c"), **{NAME_LABEL: "g", SIZE_LABEL: "3"}))
        pods.flush()
        assert [len(job.groups) and job.tasks for job in world.waiting.values()] == [3]
        assert [name for name, _ in world.cancelled] == ["one.a", "one.b"]

    def test_tries_of_a_group_end_with_its_world(self) -> None:
        pods, world = begun("n0", "n1")
        for uid in ("a", "b"):
            pods.set_pod(grouped(uid, 2))
        pods.flush()
        [job] = world.waiting
        assert pods.claimed(job, "n0", 0)
        assert pods.launch(7, job, 0)
        assert pods.has_try(7)
        pods.recover({}, {})
        assert not pods.has_try(7)

    def test_a_group_is_short_only_while_some_have_nodes_and_others_have_none(self) -> None:
        pods, world = begun("n0", "n1")
        for uid in ("a", "b"):
            pods.set_pod(grouped(uid, 2))
        pods.flush()
        [job] = world.waiting
        assert not pods.is_short(job)
        assert pods.claimed(job, "n0", 0)
        assert pods.is_short(job)
        assert pods.claimed(job, "n1", 1)
        assert not pods.is_short(job)
        assert not pods.is_short("another")

    def test_who_waits_is_looked_at_again_when_a_pod_has_left(self) -> None:
        pods, world = begun("n0")
        run(pods, world, pod("p"))
        pods.second_looks.take({})
        assert not pods.second_looks.are_due
        pods.remove_pod("p")
        assert pods.second_looks.are_due

    def test_why_nodes_are_refused_is_told_of_nodes_as_they_are(self) -> None:
        rules = Rulebook(lambda *_: None)
        needs = rules.needs(pod("p", nodeSelector={"disk": "ssd"}))
        assert rules.reasons(needs) == {}
        rules.set_node(node("n0"))
        expected = {"node(s) didn't match Pod's node affinity/selector": 1}
        assert rules.reasons(needs) == expected
        rules.set_node(node("n0", disk="ssd"))
        assert rules.reasons(needs) == {}
        rules.set_node(node("n1"))
        assert rules.reasons(needs) == expected
        rules.remove_node("n1")
        assert rules.reasons(needs) == {}


class TestMovesAndBudgets:
    def test_a_pod_that_is_being_bound_may_be_moved(self) -> None:
        pods, world = relocating("n0", "n1")
        pods.set_pod(made_by("web", "p"))
        pods.flush()
        assert world.place("one.p", "n0")
        assert pods.pods["p"].state is PodState.BINDING
        pods.orders.clear()
        world.move("one.p", "n1")
        assert [type(order) for order in pods.orders] == [EvictOrder]
        assert pods.has_places

    def test_a_pod_that_stays_gives_up_its_own_place_and_no_other(self) -> None:
        pods, world = relocating("n0", "n1")
        for uid in ("a", "b"):
            pods.set_pod(made_by(uid, uid))
            pods.flush()
            assert world.place(f"one.{uid}", "n0")
            pods.set_pod(on_node(made_by(uid, uid), "n0"))
            world.move(f"one.{uid}", "n1")
        world.told()
        pods.eviction_failed("a")
        assert [line for line in world.told() if line.startswith("cancel")] == ["cancel one.a"]
        assert pods.has_places

    def test_a_budget_keeps_pods_on_one_node_and_not_on_others(self) -> None:
        pods, world = relocating("n0", "n1")
        budget = {
            "metadata": {"name": "b", "namespace": "one"},
            "spec": {"selector": {"matchLabels": {"app": "kept"}}},
            "status": {"disruptionsAllowed": 0},
        }
        pods.set_budget(msgspec.convert(budget, PodDisruptionBudget))
        for uid, on, app in (("a", "n0", "kept"), ("b", "n1", "free")):
            made = labelled(pod(uid, 3), app=app)
            run(pods, world, made, on)
        for uid in ("a", "b"):
            tracked = pods.pods[uid]
            pods.pushed_off(tracked.job, Why.PREEMPTED, tracked.index)
        pods.follow_up()
        assert [order.pod.uid for order in pods.orders if isinstance(order, EvictOrder)] == ["b"]
        assert pods.pods["a"].state is PodState.BOUND
        assert pods.pods["b"].state is PodState.LEAVING

    def test_a_promise_that_is_kept_already_is_not_made_twice(self) -> None:
        pods, world = relocating("n0")
        pods.set_pod(pod("x", 1, on="n0", schedulerName="another"))
        promised = pod("n", 1, schedulerName="another", priority=5)
        pods.set_pod(replace(promised, status=PodStatus(nominated_node_name="n0")))
        world.told()
        pods.remove_pod("x")
        assert world.told() == ["cancel one.x"]

    def test_no_room_is_promised_of_resources_that_cannot_be_accounted_for(self) -> None:
        pods, world = relocating("n0")
        requests = {f"example.com/r{number}": "1" for number in range(100)}
        container = {"name": "c", "resources": {"requests": requests}}
        promised = pod("n", schedulerName="another", containers=[container])
        pods.set_pod(replace(promised, status=PodStatus(nominated_node_name="n0")))
        assert not world.placed


class TestWhatIsRead:
    @pytest.mark.parametrize(("effect", "is_kept"), [("NoSchedule", 0), ("NoExecute", 0), ("x", 1)])
    def test_two_effects_of_taints_keep_pods_away(self, effect: str, is_kept: int) -> None:
        document = msgspec.to_builtins(node("n0"))
        document["spec"] = {"taints": [{"key": "k", "effect": effect}]}
        assert NodeRules().admits(msgspec.convert(document, Node)) is bool(is_kept)
        tolerating = pod("p", tolerations=[{"key": "k", "operator": "Exists", "effect": effect}])
        assert NodeRules.of(tolerating).admits(msgspec.convert(document, Node))

    @pytest.mark.parametrize(
        ("operator", "bound", "expected"),
        [("Gt", "4", True), ("Gt", "5", False), ("Lt", "5", False), ("Lt", "6", True)],
    )
    def test_bounds_of_labels_and_taints_are_strict(
        self, operator: str, bound: str, expected: bool
    ) -> None:
        requirement = SelectorRequirement(key="k", operator=operator, values=(bound,))
        term = NodeSelectorTerm(match_expressions=(requirement,))
        assert term_matches(term, node("n0", k="5")) is expected
        document = msgspec.to_builtins(node("n0"))
        taint = {"key": "k", "value": "5", "effect": "NoSchedule"}
        document["spec"] = {"taints": [taint]}
        toleration = {"key": "k", "operator": operator, "value": bound}
        rules = NodeRules.of(pod("p", tolerations=[toleration]))
        assert rules.admits(msgspec.convert(document, Node)) is expected

    @pytest.mark.parametrize(
        ("text", "number"),
        [
            (str(2**63 - 1), 2**63 - 1),
            (str(2**63), None),
            (str(-(2**63)), -(2**63)),
            (str(-(2**63) - 1), None),
            ("+7", 7),
            ("1_000", None),
            ("٣", None),
            ("", None),
        ],
    )
    def test_numbers_of_labels_have_64_bits(self, text: str, number: int | None) -> None:
        assert as_integer(text) == number

    def test_wishes_may_be_about_spreading_alone(self) -> None:
        spread = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {}}
        for when, expected in (("ScheduleAnyway", True), ("DoNotSchedule", False)):
            constraints = [{**spread, "whenUnsatisfiable": when}]
            assert has_wishes(pod("p", topologySpreadConstraints=constraints)) is expected

    def test_labels_that_controllers_write_are_no_tags_of_constraints(self) -> None:
        made = labelled(pod("p"), **{"app": "web", "pod-template-hash": "5", "odd": "a b", "": "x"})
        assert constraint_tags(made) == ("app:web", "appID:one/Pod/p", "namespace:one")
        assert label_tags(made) == {
            "app:web": "app",
            "pod-template-hash:5": "pod-template-hash",
        }

    def test_an_annotation_that_cannot_be_read_adds_no_constraints(self) -> None:
        pods, world = begun("n0")
        pods.set_pod(pod("p"))
        pods.flush()
        [job] = world.waiting.values()
        acting = AnnotatedConstraints(matters=lambda: True)
        unreadable = annotated(pod("p"), **{CONSTRAINTS: "nonsense"})
        assert acting.applied(job, unreadable).constraints == ()
        assert acting.applied(job, unreadable).groups[0].tags != ()

    def test_only_a_pending_resize_can_be_infeasible(self) -> None:
        made = pod("p", 4)
        has = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
        for type_, cpu in (("PodResizePending", 1_000), ("PodResizeInProgress", 4_000)):
            condition = {"type": type_, "reason": "Infeasible", "status": "True"}
            status = {"containerStatuses": [has], "conditions": [condition]}
            resizing = replace(made, status=msgspec.convert(status, PodStatus))
            assert pod_request(resizing).cpu == cpu

    def test_no_pod_is_as_important_as_one_that_a_budget_keeps(self) -> None:
        precedences = Precedences()
        found = [precedences.of(2_000_001_000 + more) for more in range(1, 20)]
        assert found[0] == (32_001 + HIGHEST) // 2
        assert found == sorted(found)
        assert found[-1] == HIGHEST - 1


class TestShapesOfPods:
    @staticmethod
    def shapes() -> tuple[PodShapes, Rulebook, KnownVolumes]:
        rules, volumes = Rulebook(lambda *_: None), KnownVolumes()
        return PodShapes(rules, volumes, lambda _: True), rules, volumes

    def test_pods_with_claims_of_their_own_are_not_alike(self) -> None:
        shapes, _, volumes = self.shapes()
        for name in ("a", "b"):
            document: dict[str, Any] = {
                "metadata": {"name": name, "namespace": "one"},
                "spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "v"},
            }
            claim = msgspec.convert(document, PersistentVolumeClaim)
            volumes.claims["one", name] = claim
        made = [
            pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}])
            for name in ("a", "b", "a")
        ]
        one, other, again = map(shapes.of, made)
        assert one is not other
        assert one is again
        assert [term.name for term in other.needs.terms] == ["claim one/b not in use"]

    def test_pods_that_heed_wishes_are_looked_at_anew_once_there_are_soft_taints(self) -> None:
        shapes, rules, _ = self.shapes()
        shapes.heeds_wishes = lambda _: True
        field = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
        wish = {"weight": 1, "preference": {"matchFields": [field]}}
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
        made = pod("p", affinity={"nodeAffinity": affinity})
        before = shapes.of(made)
        document = msgspec.to_builtins(node("n0"))
        document["spec"] = {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]}
        rules.set_node(msgspec.convert(document, Node))
        after = shapes.of(made)
        assert (len(before.needs.wishes), len(after.needs.wishes)) == (1, 2)
