"""Small parts of the world of pods, each by itself: what a pod, a node or a group comes to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from argosy.kubernetes.objects import (
    Node,
    NodeSelector,
    Pod,
    PodDisruptionBudget,
)
from argosy.model.resources import BASE_DIMENSIONS, MOST_DIMENSIONS, Resources
from argosy.worlds.kubernetes.budgets import DisruptionBudgets
from argosy.worlds.kubernetes.node_machines import AccountedResources
from argosy.worlds.kubernetes.node_rules import NodeRules
from argosy.worlds.kubernetes.pod_jobs import (
    controller_of,
    estimate_of,
    exit_code_of,
    has_ended,
    job_of_pod,
    kind_of,
)
from argosy.worlds.kubernetes.pod_wishes import (
    NodeWish,
    described_wishes,
    has_soft_taint,
    has_wishes,
    node_wishes,
    pod_wishes,
)
from argosy.worlds.kubernetes.priorities import Precedences
from argosy.worlds.kubernetes.queue_annotations import (
    has_place,
    left_queue,
    place_annotations,
    reached_node,
)
from argosy.worlds.kubernetes.queue_waits import QueuePlace, expected_waits
from argosy.worlds.kubernetes.room import NodeRoom, SparedRoom, least_of

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WEB = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
IN_ONE = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}


def pod(
    metadata: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **spec: Any
) -> Pod:
    named = {"name": "p", "namespace": "one", "uid": "u", **(metadata or {})}
    return msgspec.convert({"metadata": named, "status": status or {}, "spec": spec}, Pod)


def node(name: str = "n", labels: dict[str, str] | None = None, **spec: Any) -> Node:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10", "gpu": "2", "fpga": "3"}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": spec,
            "status": {"allocatable": room},
        },
        Node,
    )


def taint(key: str, effect: str, value: str = "") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


class TestJobsOfPods:
    @pytest.mark.parametrize(
        ("annotations", "policy", "kind"),
        [
            ({}, "Always", "service"),
            ({}, "OnFailure", "batch"),
            ({}, "Never", "batch"),
            ({"argosy.dev/kind": "own"}, "Never", "own"),
            ({"argosy.dev/kind": ""}, "Never", "batch"),
        ],
    )
    def test_the_kind_is_said_or_follows_from_the_restart_policy(
        self, annotations: dict[str, str], policy: str, kind: str
    ) -> None:
        assert kind_of(pod({"annotations": annotations}, restartPolicy=policy)) == kind

    @pytest.mark.parametrize(
        ("policy", "said", "estimate", "endless"),
        [
            ("Always", None, None, True),
            ("Never", None, None, False),
            ("OnFailure", None, None, False),
            ("Always", "90s", 90_000_000, False),
            ("Never", "nonsense", None, False),
        ],
    )
    def test_a_pod_that_never_ends_by_itself_is_endless_unless_it_has_an_estimate(
        self, policy: str, said: str | None, estimate: int | None, endless: bool
    ) -> None:
        annotations = {} if said is None else {"argosy.dev/estimate": said}
        owners = [
            {"kind": "X", "name": "other", "uid": "1"},
            {"kind": "Job", "name": "mine", "uid": "2", "controller": True},
        ]
        made = pod(
            {"annotations": annotations, "ownerReferences": owners},
            restartPolicy=policy,
            priority=5,
        )
        assert estimate_of(made) == estimate
        job = job_of_pod(made, "id", "k", Resources(1, 2), {"a": "b"}, Precedences([5]))
        [group] = job.groups
        assert (group.count, group.request, group.requires, group.wishes) == (
            1,
            Resources(1, 2),
            {"a": "b"},
            {},
        )
        assert (group.estimate, group.endless) == (estimate, endless)
        assert (job.id, job.kind, job.owner, job.program, job.name) == (
            "id",
            "k",
            "one",
            "Job/mine",
            "one/p",
        )
        assert (job.precedence, job.preempts) == (16_000, True)

    def test_what_a_pod_leaves_out_is_ordinary(self) -> None:
        polite = pod(preemptionPolicy="Never")
        job = job_of_pod(polite, "i", "k", Resources(1, 1), {}, Precedences(), {"w": 3})
        assert (job.precedence, job.preempts, job.program) == (0, False, "")
        assert job.groups[0].wishes == {"w": 3}
        assert controller_of(pod()) == ""

    @pytest.mark.parametrize(
        ("phase", "ended"),
        [("Succeeded", True), ("Failed", True), ("Running", False), ("Pending", False)],
    )
    def test_only_two_phases_are_ends(self, phase: str, ended: bool) -> None:
        assert has_ended(pod(status={"phase": phase})) is ended

    @pytest.mark.parametrize(
        ("states", "code"),
        [
            ([], 1),
            ([{"running": {}}], 1),
            ([{"terminated": {"exitCode": 0}}], 1),
            ([{}, {"terminated": {"exitCode": 0}}, {"terminated": {"exitCode": 7}}], 7),
            ([{"terminated": {"exitCode": 3}}, {"terminated": {"exitCode": 7}}], 3),
        ],
    )
    def test_the_exit_code_is_that_of_the_first_container_that_failed(
        self, states: list[dict[str, Any]], code: int
    ) -> None:
        told = [{"name": "c", "state": state} for state in states]
        assert exit_code_of(pod(status={"containerStatuses": told})) == code


class TestPrecedences:
    def test_classes_are_spaced_evenly_and_others_fit_between(self) -> None:
        known = Precedences([10, 20, 10, -5, 3_000_000_000, 2_000_000_000])
        lowest = -32_768
        assert [known.of(each) for each in (0, 10, 20, -5)] == [0, 10_666, 21_333, lowest // 2]
        assert (known.of(2_000_000_000), known.of(2_000_001_000)) == (32_000, 32_001)
        assert known.of(15) == (10_666 + 21_333) // 2
        assert known.of(-9) == (lowest - 1 + lowest // 2) // 2
        assert known.of(2_000_002_000) == (32_001 + 32_768) // 2
        assert known.of(15) == 15_999, "once given, it stays"

    def test_neighbours_without_room_between_them_are_worth_the_same(self) -> None:
        full = Precedences()
        for priority in range(2_000_000_999, 2_000_000_000, -1):
            assert full.of(priority) == 32_000


class TestRules:
    TOLERATES: dict[str, Any] = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("spec", "there", "reason"),
        [
            ({}, node(unschedulable=True), "node(s) were unschedulable"),
            (
                {},
                node(taints=[taint("soft", "PreferNoSchedule"), taint("gpu", "NoExecute", "x")]),
                "node(s) had untolerated taint {gpu: x}",
            ),
            (
                {"nodeSelector": {"k": "v"}, **TOLERATES},
                node(taints=[taint("gpu", "NoSchedule")]),
                "node(s) didn't match Pod's node affinity/selector",
            ),
            (
                {"nodeSelector": {"k": "v"}},
                node(labels={"k": "v"}),
                "node(s) had volume node affinity conflict",
            ),
        ],
    )
    def test_the_reason_is_the_first_thing_that_stands_in_the_way(
        self, spec: dict[str, Any], there: Node, reason: str
    ) -> None:
        elsewhere = {"matchExpressions": [{"key": "k", "operator": "In", "values": ["w"]}]}
        volume = msgspec.convert({"nodeSelectorTerms": [elsewhere]}, Any)
        rules = NodeRules.of(pod(**spec), [_selector(volume)])
        assert not rules.admits(there)
        assert rules.reason(there) == reason

    def test_being_cordoned_is_a_taint_that_can_be_tolerated(self) -> None:
        cordoned = node(unschedulable=True)
        key = "node.kubernetes.io/unschedulable"
        for spec, admitted in (
            ({}, False),
            ({"tolerations": [{"key": key, "operator": "Exists"}]}, True),
        ):
            rules = NodeRules.of(pod(**spec))
            assert rules.admits(cordoned) is admitted
            assert rules.tainted_by(cordoned) is None

    def test_rules_are_told_in_the_words_of_pods(self) -> None:
        affinity = {
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {
                            **IN_ONE,
                            "matchFields": [
                                {"key": "metadata.name", "operator": "In", "values": ["n"]}
                            ],
                        },
                        {},
                    ]
                }
            }
        }
        tolerations = [
            {"key": "a", "value": "b"},
            {"key": "c", "operator": "Exists"},
            {"operator": "Exists"},
            {"key": "soft", "effect": "PreferNoSchedule"},
        ]
        made = pod(nodeSelector={"z": "1", "y": "2"}, affinity=affinity, tolerations=tolerations)
        volume = _selector({"nodeSelectorTerms": [IN_ONE]})
        told = NodeRules.of(made, [volume]).describe()
        parts = told.split("; ")
        assert parts[:2] == ["y=2", "z=1"]
        assert parts[2].startswith("node affinity ")
        assert parts[2].endswith(" or nothing")
        assert " and " in parts[2]
        assert parts[3:] == ["tolerates a=b, c, everything", "its volumes"]
        assert NodeRules.of(pod()).describe() == "no taints"


def _selector(document: Any) -> Any:
    return msgspec.convert(document, NodeSelector)


class TestWishes:
    def affinity(self, kind: str, *weights: int) -> dict[str, Any]:
        if kind == "nodeAffinity":
            wished = [{"weight": weight, "preference": IN_ONE} for weight in weights]
        else:
            wished = [{"weight": weight, "podAffinityTerm": WEB} for weight in weights]
        return {kind: {PREFERRED: wished}}

    def test_weights_of_one_kind_share_what_a_node_gets_that_fulfils_all(self) -> None:
        made = pod(affinity=self.affinity("nodeAffinity", 1, 3))
        assert [weight for _, weight in node_wishes(made, has_soft_taints=False)] == [5_000, 15_000]
        rare = pod(affinity=self.affinity("nodeAffinity", *[1] * 30_000))
        assert {weight for _, weight in node_wishes(rare, has_soft_taints=False)} == {1}

    def test_pods_near_and_apart_weigh_as_much_whatever_the_number_of_their_marks(self) -> None:
        both = {**self.affinity("podAffinity", 50), **self.affinity("podAntiAffinity", 50)}
        found = pod_wishes(pod(affinity=both), NodeRules())
        assert [weight for _, weight in found] == [10_000, 2_500, 2_500, 2_500, 2_500]
        names = [plan.name for plan, _ in found]
        assert names[0].startswith("rather near pods ")
        assert [name.split(" pods")[0] for name in names[1:]] == [
            f"at most {most}" for most in (0, 1, 3, 7)
        ]
        assert all(name.endswith(" by zone") for name in names)

    def test_spreads_that_may_be_broken_are_wishes(self) -> None:
        def spread(how: str) -> dict[str, Any]:
            return {"maxSkew": 5, "minDomains": 3, "whenUnsatisfiable": how, **WEB}

        made = pod(
            topologySpreadConstraints=[
                spread("ScheduleAnyway"),
                spread("DoNotSchedule"),
                {**spread("ScheduleAnyway"), "topologyKey": "rack"},
            ]
        )
        found = pod_wishes(made, NodeRules())
        assert [weight for _, weight in found] == [10_000, 10_000]
        assert described_wishes(made) == [
            "spec.topologySpreadConstraints with whenUnsatisfiable ScheduleAnyway"
        ]

    def test_a_chosen_node_and_soft_taints_come_on_top(self) -> None:
        made = pod(
            status={"nominatedNodeName": "n4"},
            tolerations=[
                {"key": "a", "operator": "Exists", "effect": "PreferNoSchedule"},
                {"key": "b", "operator": "Exists"},
                {"key": "c", "operator": "Exists", "effect": "NoSchedule"},
            ],
        )
        (named, first), (clean, second) = node_wishes(made, has_soft_taints=True)
        assert (first, second) == (1_000_000, 30_000)
        assert [named.admits(node(name)) for name in ("n4", "n5")] == [True, False]
        admitted = {
            key: clean.admits(node(taints=[taint(key, "PreferNoSchedule")])) for key in "abc"
        }
        assert admitted == {"a": True, "b": True, "c": False}
        assert clean.admits(node(taints=[taint("c", "NoSchedule")])), "that one is a rule"
        assert clean.describe() == "prefers nodes without soft taints"
        assert named.describe().startswith("prefers metadata.name")
        assert named.reason(node()) == ""
        assert len(node_wishes(made, has_soft_taints=False)) == 1

    def test_fields_with_wishes_are_named(self) -> None:
        kinds = ("nodeAffinity", "podAffinity", "podAntiAffinity")
        for kind in kinds:
            made = pod(affinity=self.affinity(kind, 1))
            assert described_wishes(made) == [f"spec.affinity.{kind}.{PREFERRED}"]
            assert has_wishes(made)
        assert not has_wishes(pod(affinity={"nodeAffinity": {}}))
        assert not has_wishes(pod())
        assert has_wishes(pod(status={"nominatedNodeName": "n"}))

    @pytest.mark.parametrize(
        ("effects", "soft"),
        [([], False), (["NoSchedule"], False), (["NoSchedule", "PreferNoSchedule"], True)],
    )
    def test_a_soft_taint_is_one_that_is_only_preferred_not_to_be(
        self, effects: list[str], soft: bool
    ) -> None:
        nodes = [node(), node(taints=[taint("k", effect) for effect in effects])]
        assert has_soft_taint(nodes) is soft
        assert NodeWish().admits(nodes[1]) is not soft

    def test_a_domain_with_few_pods_is_open_and_a_node_without_one_too(self) -> None:
        apart = pod(affinity=self.affinity("podAntiAffinity", 1))
        plans = [plan for plan, _ in pod_wishes(apart, NodeRules())]
        term = plans[2].make(plans[2].name, plans[2].topology_key)
        for count, is_open in ((3, True), (4, False)):
            term.counts["z"] = count
            assert (term.is_open("z"), term.is_open(None)) == (is_open, True)


class TestQueues:
    def test_a_place_is_told_and_recognised(self) -> None:
        place = QueuePlace(("n1", "n2"), 3, 2_000_000)
        told = place_annotations(place)
        assert told == {
            "argosy.dev/queue": "n1,n2",
            "argosy.dev/queue-position": "3",
            "argosy.dev/expected-wait": "2 s",
        }
        assert has_place(pod({"annotations": told}), place)
        assert not has_place(pod({"annotations": {**told, "argosy.dev/queue": "n1"}}), place)
        unknown = QueuePlace(("n1",), 1, None)
        assert place_annotations(unknown)["argosy.dev/expected-wait"] is None
        assert left_queue() == dict.fromkeys(told)
        assert reached_node("n7") == {
            "argosy.dev/queue": "n7",
            "argosy.dev/queue-position": "0",
            "argosy.dev/expected-wait": "0 µs",
        }

    def test_the_best_of_several_queues_counts(self) -> None:
        one, other = QueuePlace(("b", "c"), 2, None), QueuePlace(("a", "b"), 5, 7)
        assert one.joined(other) == other.joined(one) == QueuePlace(("a", "b", "c"), 2, 7)
        assert one.joined(one).wait is None
        assert other.joined(QueuePlace(("a",), 9, 3)).wait == 3

    @pytest.mark.parametrize(
        ("running", "queue", "waits"),
        [
            ([], [(5, 1)], [0]),
            ([], [(5, 4), (5, 1)], [0, 5]),
            ([(9, 2)], [(5, 2), (5, 3), (1, 1)], [0, 9, 9]),
            # Nobody starts before those ahead of it, and what never ends never makes room.
            ([(None, 2)], [(5, 3), (1, 1)], [None, None]),
            ([(9, 2)], [(None, 4), (1, 1)], [9, None]),
            ([(3, 1), (8, 1), (5, 1)], [(1, 3)], [5]),
            ([], [(2, 5)], [None]),
            ([], [], []),
        ],
    )
    def test_a_pod_waits_until_those_before_it_have_left_room(
        self,
        running: list[tuple[int | None, int]],
        queue: list[tuple[int | None, int]],
        waits: list[int | None],
    ) -> None:
        free = {"cpu": 4 - sum(cpu for _, cpu in running)}
        found = expected_waits(
            free,
            [(rest, Resources(cpu, 0)) for rest, cpu in running],
            [(takes, Resources(cpu, 0, {"gpu": 0})) for takes, cpu in queue],
        )
        assert found == waits


class TestRoom:
    def test_room_is_what_is_left_of_the_capacity(self) -> None:
        room = NodeRoom()
        room.set_capacity("n", Resources(4, 8, {"gpu": 2}))
        room.take("n", Resources(1, 2, {"gpu": 2}))
        room.take("n", Resources(1, 2))
        room.give_back("n", Resources(1, 1, {"gpu": 1}))
        assert room.free("n") == {"cpu": 3, "memory": 5, "gpu": 1}
        assert room.free("unknown") == {}
        assert room.fits("n", Resources(3, 5, {"gpu": 1}))
        for request in (Resources(4, 5), Resources(3, 6), Resources(1, 1, {"gpu": 2})):
            assert not room.fits("n", request)
        # What nobody has is no obstacle to who asks for none of it.
        assert room.fits("n", Resources(1, 1, {"fpga": 0}))
        assert not room.fits("n", Resources(1, 1, {"fpga": 1}))
        assert not room.fits("n", Resources(2, 1), {"cpu": 2})
        assert room.fits("n", Resources(2, 1), {"cpu": 1, "gpu": 9})

    def test_a_node_that_comes_back_is_empty(self) -> None:
        room = NodeRoom()
        room.set_capacity("n", Resources(4, 8))
        room.take("n", Resources(1, 2))
        room.remove("n")
        assert room.free("n") == {}
        room.set_capacity("n", Resources(4, 8))
        assert room.free("n") == {"cpu": 4, "memory": 8}
        room.remove("unknown")

    def test_spared_room_counts_what_would_come(self) -> None:
        room = NodeRoom()
        for name in ("n", "m"):
            room.set_capacity(name, Resources(4, 8))
        spared = SparedRoom(room)
        for is_open in (True, True, False):
            assert spared.fits("n", Resources(2, 1)) is is_open
            spared.take("n", Resources(2, 1))
        assert spared.fits("m", Resources(4, 8))
        assert room.free("n")["cpu"] == 4

    def test_an_overcommitted_node_gives_what_it_has(self) -> None:
        asked = Resources(4, 8, {"gpu": 1, "fpga": 2})
        assert least_of(asked, Resources(3, 9, {"fpga": 1})) == Resources(3, 8, {"fpga": 1})


class TestAccounting:
    def test_as_many_resources_count_as_a_cell_can_have(self) -> None:
        known = AccountedResources()
        free = MOST_DIMENSIONS - len(BASE_DIMENSIONS) - 1
        many = {f"r{at}": 1 for at in range(free + 1)}
        assert known.learn(Resources(1, 1, many)) is None
        many.pop("r0")
        assert known.learn(Resources(1, 1, {**many, "pods": 1})) == list(many)
        assert known.learn(Resources(1, 1, many)) == []
        assert known.learn(Resources(1, 1, {"more": 1})) is None

    def test_a_node_is_a_machine_with_what_somebody_has_asked_for(self) -> None:
        known = AccountedResources()
        labels = {
            "kubernetes.io/hostname": "h",
            "topology.kubernetes.io/zone": "z",
            "topology.kubernetes.io/region": "",
            "disk": "ssd",
        }
        assert known.capacity_of(node()) == Resources(4_000, 8 * 2**30, {"pods": 10})
        known.learn(Resources(1, 1, {"gpu": 1}))
        machine = known.machine_of(node("n", labels))
        assert machine.capacity == Resources(4_000, 8 * 2**30, {"pods": 10, "gpu": 2})
        assert machine.attributes == {
            key: value for key, value in labels.items() if key != "kubernetes.io/hostname"
        }
        assert machine.joins["topology.kubernetes.io/zone"] == ("z",)
        assert "topology.kubernetes.io/region" not in machine.joins


def budget(name: str, allowed: int, app: str = "web") -> PodDisruptionBudget:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "one"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        },
        PodDisruptionBudget,
    )


class TestBudgets:
    def covered(self, app: str = "web", **status: Any) -> Pod:
        return pod({"labels": {"app": app}}, status={"phase": "Running", **status})

    def test_a_budget_is_exhausted_by_one_more_than_it_allows(self) -> None:
        budgets = DisruptionBudgets()
        budgets.put(budget("two", 2))
        budgets.put(budget("none", 0, "db"))
        key = ("one", "two")
        web, database = self.covered(), self.covered("db")
        assert budgets.exhausted_by([web, web]) == set()
        assert budgets.exhausted_by([web, web, web]) == {key}
        assert budgets.exhausted_by([web, database]) == {("one", "none")}
        budgets.spend([web, database])
        assert budgets.exhausted_by([web]) == set()
        assert budgets.exhausted_by([web, web]) == {key}
        assert not budgets.is_exhausted(key)
        budgets.spend([web])
        assert budgets.is_exhausted(key)
        budgets.put(budget("two", 1))
        assert not budgets.is_exhausted(key), "it was seen anew"
        budgets.remove("one", "two")
        assert list(budgets.of(web)) == []
        assert not budgets.is_exhausted(key)

    @pytest.mark.parametrize(
        ("status", "counts"),
        [
            ({"phase": "Running"}, True),
            ({"phase": "Pending"}, False),
            ({"conditions": [{"type": "Ready", "status": "True"}]}, True),
            ({"conditions": [{"type": "Ready", "status": "False"}]}, False),
            ({"conditions": [{"type": "Other", "status": "False"}]}, True),
        ],
    )
    def test_pods_that_do_not_work_yet_count_against_none(
        self, status: dict[str, Any], counts: bool
    ) -> None:
        budgets = DisruptionBudgets()
        budgets.put(budget("b", 0))
        assert list(budgets.of(self.covered(**status))) == ([("one", "b")] if counts else [])

    def test_a_budget_covers_its_own_namespace_and_labels(self) -> None:
        budgets = DisruptionBudgets()
        budgets.put(budget("b", 0))
        elsewhere = pod({"namespace": "two", "labels": {"app": "web"}})
        assert [*budgets.of(elsewhere), *budgets.of(self.covered("db"))] == []
