"""Groups of pods, committed and growing jobs, and pods that are alike, each part by itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from recorded_pod_world import RecordedPodWorld
from test_pod_parts import IN_ONE, REQUIRED, WEB, pod

from argosy.kubernetes.objects import (
    CoschedulingGroup,
    PodGroup,
)
from argosy.model.jobs import Execution, Job, TaskGroup
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.commits import AgentCluster, pod_name, pod_of_job
from argosy.worlds.kubernetes.gangs import (
    GROUP_LABEL,
    NAME_LABEL,
    SIZE_LABEL,
    PodGangs,
    group_of,
    in_order,
    job_of_gang,
    lack_of,
    placed_of,
    rule_of_group,
)
from argosy.worlds.kubernetes.malleable import GrowthSettings, JobProgress, JobScaler, _Record
from argosy.worlds.kubernetes.moves import may_move
from argosy.worlds.kubernetes.pod_index import PodIndex
from argosy.worlds.kubernetes.rulebook import Rulebook
from argosy.worlds.kubernetes.shapes import PodShapes, has_changed
from argosy.worlds.kubernetes.tracked import PodGang, PodGroupName, PodState, TrackedPod
from argosy.worlds.kubernetes.volumes import KnownVolumes


class TestCommittedPods:
    def job(self, name: str = "j", **fields: Any) -> Job:
        execution = Execution(("run", "it"), environment={"A": "1"}, **fields.pop("how", {}))
        demands = {"image": "img", **fields.pop("demands", {})}
        group = TaskGroup(
            1,
            Resources(250, 64, {"pods": 1, "gpu": 2}),
            demands=demands,
            execution=execution,
            **fields,
        )
        return Job(name, (group,))

    def test_a_job_becomes_a_pod_with_all_that_it_says(self) -> None:
        made = pod_of_job(
            self.job("A-job", demands={"namespace": "n"}, how={"working_directory": "/w"}), "me"
        )
        [container] = made["spec"]["containers"]
        assert container == {
            "name": "main",
            "image": "img",
            "command": ["run", "it"],
            "env": [{"name": "A", "value": "1"}],
            "resources": {"requests": {"cpu": "250m", "memory": "64", "gpu": "2"}},
            "workingDir": "/w",
        }
        assert made["metadata"] == {
            "name": pod_name("A-job"),
            "namespace": "n",
            "annotations": {"argosy.dev/commit": "A-job"},
        }
        assert made["spec"]["schedulerName"] == "me"
        plain = pod_of_job(self.job(), "me")
        assert plain["metadata"]["namespace"] == "default"
        assert "activeDeadlineSeconds" not in plain["spec"]
        assert "workingDir" not in plain["spec"]["containers"][0]

    @pytest.mark.parametrize(
        ("job", "readable"),
        [("A/b_C", "a-b-c"), ("--x--", "x"), ("///", "job"), ("y" * 300, "y" * 200)],
    )
    def test_a_pod_is_named_after_its_job(self, job: str, readable: str) -> None:
        name, _, digest = pod_name(job).rpartition("-")
        assert name == readable
        assert (len(digest), pod_name(job)) == (10, f"{readable}-{digest}")

    def test_what_an_ordinary_pod_requires_is_prepared_once_and_for_agents_only(self) -> None:
        world = RecordedPodWorld()
        for name in ("", "me"):
            pods = AgentCluster(lambda: world, lambda pod: True, name=name)
            pods.prepare_commits()
            assert bool(pods.required) is bool(name)
        pods.required = {"own": "x"}
        pods.prepare_commits()
        assert pods.required == {"own": "x"}

    def test_only_the_controller_decides_whether_a_pod_may_move(self) -> None:
        owners = [
            {"kind": "DaemonSet", "name": "d", "uid": "1"},
            {"kind": "ReplicaSet", "name": "r", "uid": "2", "controller": True},
        ]
        assert may_move(pod({"ownerReferences": owners}))
        assert not may_move(pod({"ownerReferences": owners[:1]}))


class TestIndex:
    def tracked(self, name: str) -> TrackedPod:
        rules = Rulebook(lambda *_: None)
        return TrackedPod(pod({"uid": name}), PodShapes(rules, KnownVolumes(), bool).of(pod()))

    def test_pods_are_found_by_task_and_try(self) -> None:
        index, pods = PodIndex(), [self.tracked(name) for name in "abc"]
        index.give_tasks(pods, "gang")
        lone = self.tracked("d")
        index.give_job(lone, "lone")
        assert [index.of_job("gang", at) for at in range(4)] == [*pods, None]
        assert list(index.all_of_job("gang")) == pods
        assert list(index.all_of_job("lone")) == [lone]
        assert (index.has_others(pods[0]), index.has_others(lone)) == (True, False)
        assert index.take_job(pods[1]) == "gang"
        assert pods[1].job == ""
        assert list(index.all_of_job("gang")) == [pods[0], pods[2]]
        assert index.has_others(pods[2]), "though others have ended"
        for each in (pods[0], pods[2]):
            index.take_job(each)
        pods[0].job = "gang"
        assert not index.has_others(pods[0])
        assert index.take_job(pods[1]) == ""

    def test_a_pod_has_one_try(self) -> None:
        index, each = PodIndex(), self.tracked("a")
        assert index.take_try(each) is None
        index.give_try(each, 4)
        index.give_try(each, 5)
        assert (index.of_try(4), index.of_try(5), each.number) == (None, each, 5)
        assert index.take_try(each) == 5
        assert (index.of_try(5), each.number) == (None, None)


class TestGroups:
    def member(self, name: str, state: PodState = PodState.OUTSIDE, **keys: Any) -> TrackedPod:
        labels = keys.pop("labels", {})
        metadata = {"name": name, "uid": name, "labels": labels, **keys.pop("metadata", {})}
        made = pod(metadata, **keys)
        rules = Rulebook(lambda *_: None)
        shape = PodShapes(rules, KnownVolumes(), bool).of(made)
        return TrackedPod(made, shape, state)

    @pytest.mark.parametrize(
        ("spec", "labels", "found"),
        [
            ({}, {}, None),
            (
                {"schedulingGroup": {"podGroupName": "g"}},
                {GROUP_LABEL: "h"},
                PodGroupName("scheduling.k8s.io", "one", "g"),
            ),
            (
                {},
                {GROUP_LABEL: "h", NAME_LABEL: "i"},
                PodGroupName("scheduling.x-k8s.io", "one", "h"),
            ),
            ({}, {NAME_LABEL: "i"}, PodGroupName("", "one", "i")),
            ({}, {GROUP_LABEL: ""}, None),
        ],
    )
    def test_a_pod_belongs_to_one_group(
        self, spec: dict[str, Any], labels: dict[str, str], found: PodGroupName | None
    ) -> None:
        assert group_of(pod({"labels": labels}, **spec)) == found

    def test_a_pod_group_says_how_many_have_to_be_placed_together(self) -> None:
        def of(kind: Any, **spec: Any) -> Any:
            return rule_of_group(
                msgspec.convert({"metadata": {"name": "g", "namespace": "one"}, "spec": spec}, kind)
            )

        assert of(CoschedulingGroup, minMember=3).size == 3
        assert of(CoschedulingGroup, minMember=0).size == 1
        assert of(PodGroup, schedulingPolicy={"gang": {"minCount": 4}}).size == 4
        assert of(PodGroup, schedulingPolicy={"basic": {}}).size == 1
        gang = {"schedulingPolicy": {"gang": {"minCount": 4}}}
        constrained = of(PodGroup, schedulingConstraints={"topology": [{"key": "zone"}]}, **gang)
        assert "topology constraints" in constrained.obstacle
        claiming = of(PodGroup, resourceClaims=[{"name": "c"}], **gang)
        assert "resource claims" in claiming.obstacle
        assert of(PodGroup, schedulingConstraints={}, **gang).obstacle == ""

    @pytest.mark.parametrize(
        ("sizes", "size", "obstacle"),
        [
            (["2", "3"], 3, ""),
            (["0"], 1, ""),
            (["2", "x"], 1, f"the label {SIZE_LABEL} of a pod of its group is 'x', not a number"),
            (["2", None], 1, f"the label {SIZE_LABEL} of a pod of its group is missing"),
            (["²"], 1, f"the label {SIZE_LABEL} of a pod of its group is '²', not a number"),
        ],
    )
    def test_labels_may_say_so_too(self, sizes: list[str | None], size: int, obstacle: str) -> None:
        gangs, name = PodGangs(), PodGroupName("", "one", "g")
        for at, each in enumerate(sizes):
            labels = {} if each is None else {SIZE_LABEL: each}
            gang = gangs.join(self.member(f"p{at}", labels=labels), name)
        rule = gangs.rule(gang)
        assert (rule.size, rule.obstacle) == (size, obstacle)

    def test_a_group_is_there_as_long_as_it_has_pods(self) -> None:
        gangs, name = PodGangs(), PodGroupName("scheduling.x-k8s.io", "one", "g")
        first, second = self.member("a"), self.member("b")
        gang = gangs.join(first, name)
        assert gangs.join(second, name) is gang is first.gang
        assert gangs.rule(gang).obstacle == "there is no PodGroup g of scheduling.x-k8s.io"
        gang.able["a"] = first
        gangs.leave(first, gang)
        assert (first.gang, list(gang.members), gang.able) == (None, ["b"], {})
        assert list(gangs) == [gang]
        gangs.leave(second, gang)
        assert (list(gangs), gangs.get(name)) == ([], None)

    def test_who_counts_as_placed(self) -> None:
        gang = PodGang(PodGroupName("", "one", "g"))
        deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
        pods = {
            "outside": self.member("outside"),
            "waiting": self.member("waiting", PodState.WAITING),
            "claimed": self.member("claimed", PodState.CLAIMED),
            "held": self.member("held", PodState.HELD),
            "binding": self.member("binding", PodState.BINDING),
            "bound": self.member("bound", PodState.BOUND),
            "leaving": self.member("leaving", PodState.LEAVING),
            "there": self.member("there", nodeName="n"),
            "deleted": self.member("deleted", PodState.BOUND, metadata=deleted),
        }
        gang.members = pods
        gang.succeeded = 2
        assert placed_of(gang) == 2 + 5
        assert lack_of(gang, 10) == "9 of 10 pods of group g exist"
        gang.able = {"outside": pods["outside"]}
        assert lack_of(gang, 9).startswith("8 of 9 pods of group g can be scheduled")

    def test_the_oldest_come_first_and_then_by_name(self) -> None:
        def made(name: str, at: int) -> TrackedPod:
            when = {"creationTimestamp": f"2026-01-0{at}T00:00:00Z"}
            return self.member(name, metadata=when)

        pods = [made("c", 1), made("a", 2), made("b", 1)]
        assert [each.uid for each in in_order(pods)] == ["b", "c", "a"]

    def test_one_job_for_all_with_the_largest_first(self) -> None:
        gang = PodGang(PodGroupName("", "one", "g"))

        def of(cpu: int, memory: int = 1, **fields: Any) -> tuple[TrackedPod, Job]:
            group = TaskGroup(1, Resources(cpu, memory))
            return self.member(f"{cpu}-{memory}"), Job(f"j{cpu}", (group,), **fields)

        jobs = [
            of(1, precedence=9, kind="k"),
            of(3, precedence=4),
            of(1, precedence=7, preempts=False),
            of(3, 2, precedence=5),
        ]
        job, pods = job_of_gang("all", gang, jobs)
        assert [(group.count, group.request) for group in job.groups] == [
            (1, Resources(3, 2)),
            (1, Resources(3, 1)),
            (2, Resources(1, 1)),
        ]
        assert pods == [jobs[3][0], jobs[1][0], jobs[0][0], jobs[2][0]]
        assert (job.id, job.kind, job.name) == ("all", "k", "one/g")
        assert (job.precedence, job.preempts, job.gang) == (4, False, True)


class TestGrowth:
    def progress(self, **changes: Any) -> JobProgress:
        usual: dict[str, Any] = {
            "uid": "j",
            "program": "p",
            "request": Resources(1_000, 0),
            "asked": 2,
            "wanted": 2,
            "completions": 20,
            "succeeded": 0,
            "running": 2,
            "waiting": 0,
            "fits": 100,
            "in_the_way": 0,
            "estimate": 1_000_000,
        }
        return JobProgress(**(usual | changes))

    def test_what_pods_have_done_is_divided_by_those_that_ended(self) -> None:
        record = _Record(self.progress(succeeded=3, running=2), 100)
        assert record.average is None
        record.settle(self.progress(succeeded=3, running=5), 110)
        assert record.average is None, "none has ended since it was first seen"
        record.settle(self.progress(succeeded=5, running=0), 120)
        assert record.average == (2 * 10 + 5 * 10) // 2
        record.settle(self.progress(succeeded=500, running=0), 130)
        assert record.average == 1

    @pytest.mark.parametrize(
        ("changes", "grows"),
        [
            ({}, True),
            ({"waiting": 1, "asked": 3, "wanted": 3}, False),
            ({"running": 1}, False),
            # The last pods are fewer than wanted.
            ({"running": 1, "succeeded": 19}, True),
            ({"running": 0, "succeeded": 20}, False),
        ],
    )
    def test_a_job_grows_while_all_its_pods_run_and_some_are_left(
        self, changes: dict[str, Any], grows: bool
    ) -> None:
        scaler = JobScaler(GrowthSettings())
        assert scaler._may_grow(self.progress(**changes)) is grows

    @pytest.mark.parametrize(
        ("wanted", "in_the_way", "waiting", "left"),
        [
            (9, 0, 0, None),
            (9, 3, 0, 6),
            (9, 0, 4, 5),
            (9, 3, 4, 5),
            (9, 99, 0, 2),
            (2, 5, 5, None),
            (1, 5, 5, None),
        ],
    )
    def test_only_what_was_not_asked_for_is_given_back(
        self, wanted: int, in_the_way: int, waiting: int, left: int | None
    ) -> None:
        made = self.progress(wanted=wanted, in_the_way=in_the_way, waiting=waiting)
        assert JobScaler(GrowthSettings())._shrunk(made) == left

    def test_work_that_is_half_done_is_worth_fewer_pods(self) -> None:
        """With this estimate, what runs makes the difference of some pods."""
        capacity = {"cpu": 1_000_000}
        found = [
            JobScaler(GrowthSettings()).decide(
                [self.progress(running=running, wanted=10, asked=10, estimate=800_000)],
                {"cpu": 0},
                capacity,
                0,
            )
            for running in (10, 20)
        ]
        assert found[0]["j"] > found[1].get("j", 10)


class TestShapes:
    CHANGES: tuple[dict[str, Any], ...] = (
        {"metadata": {"labels": {"a": "b"}}},
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
        {"nodeSelector": {"k": "v"}},
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [IN_ONE]}}}},
        {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        {"initContainers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        {"resources": {"requests": {"cpu": "1"}}},
    )
    #: These never change, but pods differ in them.
    OTHERS: tuple[dict[str, Any], ...] = (
        {"metadata": {"namespace": "two"}},
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **WEB}
            ]
        },
        {"overhead": {"cpu": "1"}},
        {"schedulerName": "other"},
    )

    @pytest.mark.parametrize("change", CHANGES)
    def test_what_may_change_and_matters_is_noticed(self, change: dict[str, Any]) -> None:
        assert has_changed(pod(), pod(**change))
        assert has_changed(pod(**change), pod())
        assert not has_changed(pod(**change), pod(**change))

    def test_annotations_with_constraints_and_chosen_nodes_matter_too(self) -> None:
        constrained = pod({"annotations": {"argosy.dev/constraints": "x"}})
        assert has_changed(pod(), constrained)
        assert not has_changed(pod(), pod({"annotations": {"other": "x"}}))
        assert has_changed(pod(), pod(status={"nominatedNodeName": "n"}))

    @pytest.mark.parametrize("change", [*CHANGES, *OTHERS])
    def test_pods_share_a_shape_only_if_they_are_alike(self, change: dict[str, Any]) -> None:
        shapes = PodShapes(
            Rulebook(lambda *_: None),
            KnownVolumes(),
            lambda pod: pod.spec.scheduler_name != "other",
        )
        plain, other = shapes.of(pod()), shapes.of(pod(**change))
        assert plain is not other
        assert shapes.of(pod({"name": "q", "uid": "v"})) is plain
        assert (plain.pods, other.pods, len(shapes)) == (2, 1, 2)
        shapes.release(plain)
        shapes.release(other)
        assert (plain.pods, len(shapes)) == (1, 1)
        assert shapes.of(pod()) is plain

    def test_wishes_make_a_shape_only_where_they_are_heeded(self) -> None:
        wished = pod(status={"nominatedNodeName": "n"})
        for heeds in (False, True):
            shapes = PodShapes(Rulebook(lambda *_: None), KnownVolumes(), lambda pod: True)
            shapes.heeds_wishes = lambda pod, heeds=heeds: heeds
            shape = shapes.of(wished)
            assert (shape is shapes.of(pod())) is not heeds
            assert bool(shape.needs.wishes) is heeds
