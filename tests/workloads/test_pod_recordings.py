"""Lives of pods as their status tells them, and what jobs and machines they come to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from argosy.kubernetes.objects import Node, Pod
from argosy.model.constraints.parts import leaves
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob
from argosy.workloads.pod_constraints import constraints_of, port_tags
from argosy.workloads.pod_lives import (
    ClusterRecording,
    PodLife,
    life_told_by,
    micros_of,
    snapshot,
)
from argosy.workloads.pod_workloads import TOGETHER, CarriedOver, carry_over
from argosy.worlds.kubernetes.volumes import KnownVolumes

SECOND = 1_000_000
EPOCH = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02d}Z"


def pod(
    name: str = "p",
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    *,
    owner: str = "",
    cpu: str = "1",
    **spec: Any,
) -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "one", "uid": name, **(metadata or {})}
    if owner:
        kind, _, of = owner.partition("/")
        meta["ownerReferences"] = [{"kind": kind, "name": of, "uid": of, "controller": True}]
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    full = {"restartPolicy": "Never", "containers": [container], **spec}
    return msgspec.convert({"metadata": meta, "spec": full, "status": status or {}}, Pod)


def node(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Node:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10", "gpu": "2"}
    meta = {"name": name, "labels": labels or {}}
    document = {"metadata": meta, "spec": spec, "status": {"allocatable": room}}
    return msgspec.convert(document, Node)


class TestLives:
    def test_instants_without_a_zone_are_universal(self) -> None:
        moment = datetime(2026, 1, 1, 0, 0, 7, 250)
        assert micros_of(moment) == micros_of(moment.replace(tzinfo=UTC)) == EPOCH + 7_000_250
        east = moment.replace(tzinfo=timezone(timedelta(hours=1)))
        assert micros_of(east) == EPOCH + 7_000_250 - 3_600 * SECOND

    @pytest.mark.parametrize(
        ("status", "on", "bound", "ended"),
        [
            ({}, "", None, None),
            ({"phase": "Failed"}, "", None, 5),
            ({}, "n", 5, None),
            ({"startTime": at(8)}, "n", 8, None),
            (
                {
                    "startTime": at(8),
                    "conditions": [
                        {"type": "Ready", "status": "True", "lastTransitionTime": at(6)},
                        {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(7)},
                    ],
                },
                "n",
                7,
                None,
            ),
            (
                {
                    "startTime": at(8),
                    "conditions": [
                        {"type": "PodScheduled", "status": "False", "lastTransitionTime": at(7)}
                    ],
                },
                "n",
                8,
                None,
            ),
            # Clocks differ: nobody has a node before it is there.
            ({"startTime": at(3)}, "n", 5, None),
            ({"phase": "Succeeded", "startTime": at(8)}, "n", 8, 8),
            (
                {
                    "phase": "Succeeded",
                    "startTime": at(8),
                    "containerStatuses": [
                        {"name": "c", "state": {"terminated": {"finishedAt": at(20)}}},
                        {"name": "d", "state": {"terminated": {"finishedAt": at(30)}}},
                        {"name": "e", "state": {"terminated": {}}},
                        {"name": "f", "state": {"running": {}}},
                    ],
                },
                "n",
                8,
                30,
            ),
        ],
    )
    def test_a_status_tells_when_a_pod_came_got_its_node_and_ended(
        self, status: dict[str, Any], on: str, bound: int | None, ended: int | None
    ) -> None:
        made = pod(metadata={"creationTimestamp": at(5)}, status=status, nodeName=on)
        life = life_told_by(made)
        times = [None if each is None else EPOCH + each * SECOND for each in (bound, ended)]
        assert (life.arrived, life.bound, life.ended) == (EPOCH + 5 * SECOND, *times)

    def test_a_snapshot_is_of_the_latest_time_that_is_told(self) -> None:
        told = {"type": "Ready", "status": "True", "lastTransitionTime": at(40)}
        pods = [
            pod("a", {"creationTimestamp": at(5)}, {"startTime": at(8)}, nodeName="n"),
            pod("b", {"creationTimestamp": at(9)}, {"conditions": [told]}),
        ]
        found = snapshot([node("n")], pods, KnownVolumes())
        assert (found.start, found.end) == (EPOCH + 40 * SECOND,) * 2
        assert [life.pod.name for life in found.lives] == ["a", "b"]
        assert snapshot([], [], KnownVolumes()).end == 0
        assert snapshot([], pods[:1], KnownVolumes()).end == EPOCH + 8 * SECOND

    def test_a_life_is_over_and_placed_from_that_very_time_on(self) -> None:
        life = PodLife(pod(), 1, 5, 9)
        assert [life.is_placed(time) for time in (4, 5)] == [False, True]
        assert [life.is_over(time) for time in (8, 9)] == [False, True]
        waiting = PodLife(pod(), 1)
        assert (waiting.is_placed(99), waiting.is_over(99)) == (False, False)


NODES = (
    node("n0", {"zone": "a", "disk": "ssd", "kubernetes.io/hostname": "n0"}),
    node("n1", {"zone": "b", "disk": "ssd", "kubernetes.io/hostname": "n1"}),
    node("n2", {"zone": "b"}, taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]),
)
ANYWHERE = {"tolerations": [{"operator": "Exists"}]}


def carried(*lives: PodLife, start: int = 100, pinned: bool = False, **more: Any) -> CarriedOver:
    recording = ClusterRecording(
        nodes=NODES, lives=lives, start=start * SECOND, end=900 * SECOND, **more
    )
    return carry_over(recording, pinned=pinned)


def life(
    made: Pod, arrived: float, bound: float | None = None, ended: float | None = None
) -> PodLife:
    times = [None if each is None else int(each * SECOND) for each in (bound, ended)]
    return PodLife(made, int(arrived * SECOND), *times)


def only(found: CarriedOver) -> SimulatedJob:
    [job] = found.jobs
    return job


class TestJobs:
    @pytest.mark.parametrize(
        ("arrived", "bound", "ended", "submit", "duration"),
        [
            (110, 112, 130, 10, 18),
            # What it had done before does not count.
            (50, 60, 130, 0, 30),
            (50, 112, 130, 0, 18),
            (110, 112, None, 10, None),
            (110, None, None, 10, None),
        ],
    )
    def test_times_count_from_the_beginning_of_the_recording(
        self,
        arrived: int,
        bound: int | None,
        ended: int | None,
        submit: int,
        duration: int | None,
    ) -> None:
        job = only(carried(life(pod(**ANYWHERE), arrived, bound, ended)))
        assert job.submit == submit * SECOND
        durations = () if duration is None else (duration * SECOND,)
        assert [truth.durations for truth in job.truth] == [durations]
        assert job.job.groups[0].requires == {}

    @pytest.mark.parametrize(
        ("lost", "said"),
        [
            (life(pod(), 10, 20, 100), "pods that had ended before (1 pod)"),
            (life(pod(), 110, None, 120), "pods that were deleted before they had a node (1 pod)"),
            (
                life(pod(schedulingGates=[{"name": "g"}]), 110),
                "pods that scheduling gates hold (1 pod)",
            ),
            (life(pod(nodeSelector={"x": "y"}), 110), "pods that no node admits (1 pod)"),
        ],
    )
    def test_what_cannot_be_carried_over_is_said(self, lost: PodLife, said: str) -> None:
        found = carried(lost)
        assert (found.jobs, found.left_out) == ((), (f"not carried over: {said}",))

    def test_other_things_are_said_too(self) -> None:
        ports = [{"containerPort": 1, "hostPort": 80, "hostIP": "10.0.0.1"}]
        strange = pod(
            preemptionPolicy="Never",
            containers=[{"name": "c", "ports": ports}],
            schedulingGroup={"podGroupName": "g"},
        )
        found = carried(life(strange, 110), changed_nodes=2)
        assert found.left_out == (
            "nodes are there all along, as they were last seen; not so in reality: 2 nodes",
            "not carried over: host ports on one address (1 pod)",
            "not carried over: pod groups: their pods are placed one by one (1 pod)",
            "not carried over: preemptionPolicy Never (1 pod)",
        )
        asking = {"name": "c", "resources": {"requests": {"fpga": "1"}}}
        lost = carried(life(pod(containers=[asking]), 110))
        assert lost.left_out == (
            "not carried over: pods that ask for fpga, which no node has (1 pod)",
        )

    def test_pods_of_one_owner_that_come_together_are_one_job(self) -> None:
        gap = TOGETHER / SECOND
        lives = [
            life(pod(f"w{n}", owner="Job/w", priority=5, **ANYWHERE), 110 + when, 120, 130 + n)
            for n, when in enumerate((0, gap, 2 * gap, 3 * gap + 0.001))
        ]
        lone = [life(pod(f"x{n}", **ANYWHERE), 110, 120, 125) for n in range(2)]
        found = carried(*lives, *lone)
        assert sorted(job.id for job in found.jobs) == ["one.w", "one.w.2", "one.x0", "one.x1"]
        first = next(job for job in found.jobs if job.id == "one.w")
        assert (first.job.tasks, first.submit) == (3, 10 * SECOND)
        assert first.truth[0].durations == tuple(n * SECOND for n in (10, 11, 12))
        job = first.job
        assert (job.kind, job.owner, job.program) == ("batch", "one", "Job/w")
        assert job.precedence == 16_000
        assert [job.submit for job in found.jobs] == sorted(job.submit for job in found.jobs)

    def test_pods_that_differ_are_groups_of_their_own(self) -> None:
        def made(name: str, **keys: Any) -> Pod:
            return pod(name, owner="Job/w", **ANYWHERE, **keys)

        lives = [
            life(made("a"), 110, 111, 120),
            life(made("b"), 110, 111, 120),
            life(made("c", cpu="2"), 110, 111, 120),
            life(made("d"), 110, 111),
            life(made("e", metadata={"annotations": {"argosy.dev/estimate": "5s"}}), 110, 111, 120),
            life(made("f", metadata={"labels": {"app": "x"}}), 110, 111, 120),
        ]
        groups = only(carried(*lives)).job.groups
        assert [group.count for group in groups] == [2, 1, 1, 1, 1]
        assert groups[1].request.cpu == 2_000
        assert groups[2].endless
        assert groups[3].estimate == 5 * SECOND
        assert groups[4].tags

    def test_jobs_that_differ_in_kind_or_priority_are_apart(self) -> None:
        lives = [
            life(pod("a", owner="Job/w", **ANYWHERE), 110),
            life(pod("b", owner="Job/w", priority=3, **ANYWHERE), 110),
            life(pod("c", {"namespace": "two"}, owner="Job/w", **ANYWHERE), 110),
            life(pod("d", owner="Job/v", **ANYWHERE), 110),
        ]
        assert [job.id for job in carried(*lives).jobs] == ["one.w", "one.w.2", "two.w", "one.v"]


class TestNodes:
    def requires(self, made: Pod, bound: int | None = None, **options: Any) -> dict[str, str]:
        return only(carried(life(made, 50, bound), **options)).job.groups[0].requires

    def test_what_a_pod_requires_is_as_simple_as_its_nodes_allow(self) -> None:
        assert self.requires(pod(**ANYWHERE)) == {}
        ssd = {"nodeSelector": {"disk": "ssd"}}
        assert self.requires(pod(**ssd)) == {"disk": "ssd"}
        one = {"nodeSelector": {"disk": "ssd", "zone": "b"}}
        assert self.requires(pod(**one)) == {"disk": "ssd", "zone": "b"}
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
        affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
        assert self.requires(pod(affinity=affinity)) == {"kubernetes.io/hostname": "n0"}
        assert self.requires(pod()) == {"admits/one.p": "true"}

    def test_a_pod_stays_where_it_was_only_if_it_is_pinned(self) -> None:
        there = pod(nodeName="n1", **ANYWHERE)
        host = {"kubernetes.io/hostname": "n1"}
        assert self.requires(there, 60, pinned=True) == host
        assert self.requires(there, 60) == {}
        assert self.requires(there, 101, pinned=True) == {}, "it came later"
        static = pod(nodeName="n1", owner="Node/n1", **ANYWHERE)
        assert self.requires(static, 60) == host

    def test_a_pod_that_its_rules_do_not_admit_any_more_stays(self) -> None:
        early = pod(nodeName="n2", nodeSelector={"x": "y"})
        assert self.requires(early, 60) == {"admits/one.p": "true"}
        assert carried(life(early, 50)).jobs == ()

    def test_nodes_are_machines_with_their_labels_taints_and_places(self) -> None:
        found = carried(life(pod(), 110), life(pod("q", owner="Job/w"), 110))
        first, _, tainted = found.machines
        assert first.attributes == {
            "zone": "a",
            "disk": "ssd",
            "kubernetes.io/hostname": "n0",
            "admits/one.p": "true",
        }
        assert tainted.attributes == {"zone": "b", "taint/k": "v:NoSchedule"}
        assert [machine.joins for machine in found.machines] == [
            {"zone": ("a",)},
            {"zone": ("b",)},
            {"zone": ("b",)},
        ]
        assert [(group.name, group.sets) for group in found.groups] == [("zone", ("a", "b"))]
        assert first.capacity == Resources(4_000, 8 * 2**30, {"pods": 10})


class TestConstraints:
    def test_a_port_of_the_node_is_taken_once_on_all_addresses(self) -> None:
        ports = [
            {"containerPort": 1, "hostPort": 80},
            {"containerPort": 2, "hostPort": 53, "protocol": "UDP", "hostIP": "0.0.0.0"},
            {"containerPort": 3, "hostPort": 81, "hostIP": "10.0.0.1"},
            {"containerPort": 4},
        ]
        made = pod(containers=[{"name": "c", "ports": ports}])
        assert port_tags(made) == ["hostPort:TCP-80", "hostPort:UDP-53"]
        found = constraints_of(made, lambda what: None)
        assert [str(each.hard) for each in found] == ["True", "True"]

    def test_affinity_to_pods_like_itself_is_only_a_wish(self) -> None:
        term = {"labelSelector": {"matchLabels": {"app": "w"}}, "topologyKey": "zone"}
        affinity = {"podAffinity": {REQUIRED: [term]}}
        for label, hard in (("w", False), ("v", True)):
            noted: list[str] = []
            made = pod(metadata={"labels": {"app": label}}, affinity=affinity)
            [found] = constraints_of(made, noted.append)
            assert found.hard is hard
            assert bool(noted) is not hard
        apart = pod(
            metadata={"labels": {"app": "w"}}, affinity={"podAntiAffinity": {REQUIRED: [term]}}
        )
        [found] = constraints_of(apart, noted.append)
        assert found.hard


def recorded(nodes: list[Node], *lives: PodLife) -> CarriedOver:
    return carry_over(ClusterRecording(nodes=tuple(nodes), lives=lives, start=0, end=900 * SECOND))


def near(label: str, key: str, value: str) -> dict[str, Any]:
    """Affinity to pods with the label, on nodes with the same value of `key`."""
    term = {"labelSelector": {"matchLabels": {label: value}}, "topologyKey": key}
    return {"podAffinity": {REQUIRED: [term]}}


def test_resources_beyond_those_of_a_cell_are_left_out_of_requests() -> None:
    names = [f"r{number}" for number in range(6)]
    room = {"cpu": "4", "pods": "10", **dict.fromkeys(names, "3")}
    wide = msgspec.convert(
        {"metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": room}}, Node
    )
    asked = {"requests": {"cpu": "1", **dict.fromkeys(names, "2")}}
    found = recorded([wide], life(pod(containers=[{"name": "c", "resources": asked}]), 10))
    extras = only(found).job.groups[0].request.extras
    assert {name: extras[name] for name in extras if name != "pods"} == dict.fromkeys(names[:5], 2)
    assert only(found).job.groups[0].request.cpu == 1_000
    assert found.machines[0].capacity.extras == {"pods": 10, **dict.fromkeys(names[:5], 3)}
    assert found.left_out == ("not carried over: requests of r5, one resource too many (1 pod)",)


def test_places_are_labels_that_are_known_for_it_or_that_a_rule_names() -> None:
    labels = {
        "topology.kubernetes.io/zone": "a",
        "example.com/zone": "other",
        "example.com/rack": "r1",
        "example.com/region": "",
        "row": "7",
        "disk": "ssd",
    }
    far = life(pod("p", affinity=near("app", "row", "db")), 10)
    lost = life(pod("q", affinity=near("app", "nowhere", "db")), 10)
    found = recorded([node("n0", labels), node("n1", {"row": "8"}), node("n2", {"row": "7"})], far)
    assert [(group.name, group.sets) for group in found.groups] == [
        ("zone", ("a",)),
        ("rack", ("r1",)),
        ("region", ()),
        ("row", ("7", "8")),
    ]
    assert [machine.joins for machine in found.machines] == [
        {"zone": ("a",), "rack": ("r1",), "row": ("7",)},
        {"row": ("8",)},
        {"row": ("7",)},
    ]
    assert len(only(found).job.constraints) == 1
    assert found.left_out == ()
    without = recorded([node("n0", labels)], lost)
    assert only(without).job.constraints == ()
    assert [group.name for group in without.groups] == ["zone", "rack", "region"]
    assert without.left_out == (
        "not carried over: rules on a topology key that no node has (1 pod)",
    )


def test_labels_that_controllers_write_are_tags_only_where_a_rule_names_them() -> None:
    hashed = {"labels": {"app": "w", "pod-template-hash": "x1"}}
    nodes = [node("n0", {"row": "7"})]
    alone = recorded(nodes, life(pod("a", hashed), 10))
    assert only(alone).job.groups[0].tags == ("app:w",)
    other = pod("b", affinity=near("pod-template-hash", "row", "x1"))
    named = recorded(nodes, life(pod("a", hashed), 10), life(other, 11))
    assert named.jobs[0].job.groups[0].tags == ("app:w", "pod-template-hash:x1")


def test_jobs_are_in_order_whatever_the_order_in_which_their_pods_were_seen() -> None:
    late = [life(pod(f"w{n}", owner="Job/w", **ANYWHERE), 30 + n, 40, 60 + n) for n in (1, 0)]
    early = life(pod("e", **ANYWHERE), 5, 6, 7)
    # What was there from the beginning is in the order in which it came.
    there = [life(pod(f"v{n}", owner="Job/v", **ANYWHERE), n, 4, 50 + n) for n in (2, 1)]
    found = recorded([node("n0")], *late, early, *there)
    assert [(job.id, job.submit // SECOND, job.job.tasks) for job in found.jobs] == [
        ("one.v", 1, 2),
        ("one.e", 5, 1),
        ("one.w", 30, 2),
    ]
    assert found.jobs[2].truth[0].durations == (20 * SECOND, 21 * SECOND)


def test_nodes_that_share_a_host_name_are_told_apart_by_an_attribute() -> None:
    label = "kubernetes.io/hostname"
    nodes = [node("n0", {label: "same", "disk": "ssd"}), node("n1", {label: "same"})]
    term = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    found = recorded(nodes, life(pod(affinity=affinity), 10))
    assert only(found).job.groups[0].requires == {"admits/one.p": "true"}


def test_a_port_of_the_pod_alone_is_nothing_to_carry_over() -> None:
    ports = [{"containerPort": 1, "hostIP": "10.0.0.1"}]
    made = pod(containers=[{"name": "c", "ports": ports}])
    assert recorded([node("n0")], life(made, 10)).left_out == ()


def test_pods_that_ask_for_the_same_in_another_order_are_alike_and_equal_times_are_one() -> None:
    selectors = ({"disk": "ssd", "zone": "b"}, {"zone": "b", "disk": "ssd"})
    lives = [
        life(pod(f"w{n}", owner="Job/w", nodeSelector=selector), 110, 112, 130)
        for n, selector in enumerate(selectors)
    ]
    found = only(carried(*lives))
    [group], [truth] = found.job.groups, found.truth
    assert (group.count, group.requires) == (2, {"disk": "ssd", "zone": "b"})
    assert truth.durations == (18 * SECOND,)


def test_what_was_there_from_the_beginning_is_in_the_order_in_which_it_came() -> None:
    lives = [life(pod(name, **ANYWHERE), came, 95) for name, came in (("q", 60), ("p", 50))]
    assert [(each.id, each.submit) for each in carried(*lives).jobs] == [("one.p", 0), ("one.q", 0)]


def test_a_place_that_is_known_by_its_full_name_is_not_another_of_its_short_one() -> None:
    full = "topology.kubernetes.io/zone"
    nodes = [node("n0", {full: "a", "zone": "x"}), node("n1", {full: "b", "zone": "x"})]
    found = recorded(nodes, life(pod(affinity=near("app", full, "db")), 10))
    assert [machine.joins for machine in found.machines] == [{"zone": ("a",)}, {"zone": ("b",)}]
    [constraint] = only(found).job.constraints
    assert [leaf.group for leaf in leaves(constraint.rule)] == ["zone"]


def test_attributes_are_labels_that_can_be_named() -> None:
    found = recorded([node("n0", {"a b": "1", "c": "", "d/e": "2"})], life(pod(), 10))
    assert found.machines[0].attributes == {"c": "", "d/e": "2"}


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}]}]},
        {"schedulingGates": [{"name": "g"}], "nodeName": "n0"},
    ],
)
def test_ports_of_all_addresses_and_gates_that_are_passed_leave_nothing_out(
    spec: dict[str, Any],
) -> None:
    found = recorded([node("n0")], life(pod(**spec), 10, 20))
    assert (len(found.jobs), found.left_out) == (1, ())
