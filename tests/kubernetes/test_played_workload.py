"""The controllers, kubelets and nodes of a played cluster, and the objects that stand for a scenario."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from told_dice import ToldDice

from argosy.campaign.played_ends import PlayedEnd
from argosy.kubernetes.kinds import (
    COSCHEDULING_GROUPS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
)
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.model.truth import SimulatedJob
from argosy.service.kubernetes.played.api import PlayedApi
from argosy.service.kubernetes.played.manifests import group_of_gang, node_of, pod_of
from argosy.service.kubernetes.played.workload import PlayedWorkload
from argosy.testing.builders import job, scenario
from argosy.testing.virtual_loop import VirtualLoop

SMALL = CellSpec(machines=(Machine("m0", Resources(4_000, 8)), Machine("m1", Resources(2_000, 4))))
NODE = {"metadata": {"name": "n"}}


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


class Play:
    """A workload whose random numbers are told; tries end after 100 ms, or as `ends` says."""

    def __init__(self, loop: VirtualLoop, *jobs: SimulatedJob, drawn: Any = ()) -> None:
        self.loop = loop
        self.api = PlayedApi(loop, ToldDice())  # type: ignore[arg-type]
        self.work = PlayedWorkload(scenario("omega", list(jobs), cell=SMALL), self.api, loop)
        self.dice = ToldDice(below=drawn)
        self.ends: list[PlayedEnd | None] = []
        self.tries: list[tuple[str, int]] = []
        self.work._random = self.dice  # type: ignore[assignment]
        self.work._ends = SimpleNamespace(draw=self.draw)  # type: ignore[assignment]

    def draw(self, name: str, index: int) -> PlayedEnd | None:
        self.tries.append((name, index))
        return self.ends.pop(0) if self.ends else PlayedEnd(100_000)

    def begin(self) -> None:
        self.work.begin()
        self.until(0)

    def until(self, micros: int) -> None:
        """All that happens up to that time."""
        left = max(0, micros - self.loop.micros) / 1e6
        self.loop.run_until_complete(asyncio.sleep(left))
        self.loop.run_until_complete(asyncio.sleep(0))

    def pods(self) -> dict[str, str]:
        return {
            each["metadata"]["name"]: each["status"]["phase"] for each in self.api.documents(PODS)
        }

    def bind(self, name: str, node: str = "m0") -> None:
        pod = self.api.document(PODS, name)
        assert pod is not None
        self.api.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": node}})


@pytest.fixture
def play(loop: VirtualLoop) -> Callable[..., Play]:
    def make(*jobs: SimulatedJob, drawn: Any = ()) -> Play:
        made = Play(loop, *(jobs or (job("a"),)), drawn=drawn)
        made.begin()
        return made

    return make


def names(play: Play, kind: Any) -> list[str]:
    return [each["metadata"]["name"] for each in play.api.documents(kind)]


class TestControllers:
    def test_a_cluster_begins_with_its_nodes_and_what_jobs_refer_to(
        self, play: Callable[..., Play]
    ) -> None:
        jobs = [
            job("a", owner="ada", precedence=5),
            job("b", owner="ada"),
            job("c", precedence=-3),
            job("d", precedence=5),
        ]
        found = play(*jobs)
        assert names(found, NAMESPACES) == ["default", "ada"]
        values = {
            each["metadata"]["name"]: each["value"]
            for each in found.api.documents(PRIORITY_CLASSES)
        }
        assert values == {"p5": 5, "p-3": -3}
        assert names(found, NODES) == ["m0", "m1"]
        assert [each["spec"]["unschedulable"] for each in found.api.documents(NODES)] == [False] * 2

    def test_a_job_has_a_pod_for_each_task_when_it_is_submitted(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(job("a", 2), job("late", 1, submit=3), job("gang", 2, gang=True))
        assert found.pods() == dict.fromkeys(["a-0-1", "a-1-1", "gang-0-1", "gang-1-1"], "Pending")
        assert names(found, COSCHEDULING_GROUPS) == ["gang"]
        found.until(3_000_000)
        assert "late-0-1" in found.pods()
        assert not found.work.is_over

    def test_a_pod_that_is_lost_is_made_again_with_a_new_name(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(job("a", 2), drawn=[400, 0])
        found.api.remove(PODS, "a-1-1")
        found.until(399)
        assert list(found.pods()) == ["a-0-1"]
        found.until(400)
        assert list(found.pods()) == ["a-0-1", "a-1-2"]
        found.api.remove(PODS, "a-1-2")
        found.until(401)
        assert list(found.pods()) == ["a-0-1", "a-1-3"]
        assert found.dice.bounds == [1_000_000, 1_000_000]

    def test_what_happens_to_other_kinds_of_objects_concerns_no_pod(
        self, play: Callable[..., Play]
    ) -> None:
        found = play()
        found.api.remove(NODES, "m1")
        found.api.remove(NAMESPACES, "default")
        found.until(2_000_000)
        assert list(found.pods()) == ["a-0-1"]


class TestKubelets:
    def test_a_bound_pod_starts_soon_runs_its_time_and_is_cleared_away(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(drawn=[300, 5_000])
        found.bind("a-0-1")
        seen = {}
        for at in (299, 300, 100_299, 100_300, 105_299, 105_300):
            found.until(at)
            seen[at] = (found.pods(), found.work.is_over)
        assert seen == {
            299: ({"a-0-1": "Pending"}, False),
            300: ({"a-0-1": "Running"}, False),
            100_299: ({"a-0-1": "Running"}, False),
            100_300: ({"a-0-1": "Succeeded"}, True),
            105_299: ({"a-0-1": "Succeeded"}, True),
            105_300: ({}, True),
        }
        assert found.dice.bounds == [500_000, 20_000_000]
        found.until(5_000_000)
        assert (found.pods(), found.tries) == ({}, [("a", 0)])

    def test_a_pod_that_changes_after_its_binding_starts_once(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(job("a", 2))
        found.bind("a-1-1")
        found.bind("a-1-1")
        found.until(50_000)
        assert found.tries == [("a", 1)]

    def test_a_pod_that_fails_is_followed_by_another_one(self, play: Callable[..., Play]) -> None:
        found = play(drawn=[0, 700, 9_000])
        found.ends = [PlayedEnd(100, fails=True)]
        found.bind("a-0-1")
        seen = {}
        for at in (99, 100, 799, 800, 9_099, 9_100):
            found.until(at)
            seen[at] = found.pods()
        failed = {"a-0-1": "Failed"}
        assert seen == {
            99: {"a-0-1": "Running"},
            100: failed,
            799: failed,
            800: {**failed, "a-0-2": "Pending"},
            9_099: {**failed, "a-0-2": "Pending"},
            # It is cleared away, and nobody makes it anew.
            9_100: {"a-0-2": "Pending"},
        }
        assert found.dice.bounds == [500_000, 1_000_000, 20_000_000]
        found.until(3_000_000)
        assert (found.pods(), found.work.is_over) == ({"a-0-2": "Pending"}, False)

    def test_a_service_runs_until_it_is_stopped(self, play: Callable[..., Play]) -> None:
        found = play()
        found.ends = [None]
        found.bind("a-0-1")
        found.until(60_000_000)
        assert (found.pods(), found.work.is_over) == ({"a-0-1": "Running"}, False)

    def test_jobs_are_over_when_the_last_task_has_ended(self, play: Callable[..., Play]) -> None:
        found = play(job("a", 1), job("b", 2))
        for at, name in enumerate(("a-0-1", "b-0-1", "b-1-1"), 1):
            found.bind(name)
            found.until(at * 200_000)
            assert found.work.is_over == (name == "b-1-1")

    @pytest.mark.parametrize("when", ["before it starts", "while it runs"])
    @pytest.mark.parametrize("what", ["leaves", "is gone", "loses its node"])
    def test_nothing_more_becomes_of_a_pod_that_is_not_there(
        self, play: Callable[..., Play], when: str, what: str
    ) -> None:
        found = play(drawn=[1_000])
        found.bind("a-0-1")
        found.until(900 if when == "before it starts" else 1_100)
        if what == "loses its node":
            found.api.remove(NODES, "m0")
        else:
            # Without its time to leave, it is gone at once.
            found.api._random = ToldDice(below=[10**6 if what == "leaves" else 0])  # type: ignore[assignment]
            found.api.remove(PODS, "a-0-1")
        found.until(found.loop.micros + 2)
        before = found.pods()
        assert list(before) == (["a-0-2"] if what == "is gone" else ["a-0-1"])
        found.until(200_000)
        assert found.pods() == before
        assert found.tries == ([] if when == "before it starts" else [("a", 0)])
        assert not found.work.is_over

    def test_a_kubelet_does_not_take_a_pod_for_another_of_the_same_name(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(drawn=[1_000])
        found.bind("a-0-1")
        old = found.api.document(PODS, "a-0-1")
        assert old is not None
        found.api._remove(PODS.path(), ("default", "a-0-1"))
        found.until(1)
        metadata = {"name": "a-0-1", "namespace": "default", "uid": "other"}
        found.api.put(PODS, {**old, "metadata": metadata})
        found.until(900_000)
        assert found.tries == []


class TestNodes:
    def test_pods_of_a_node_that_is_gone_are_deleted_and_the_node_comes_back(
        self, play: Callable[..., Play]
    ) -> None:
        found = play(job("a", 3), drawn=[0, 0, 0, 6_000, 7_000])
        found.ends = [None] * 3
        for name, node in (("a-0-1", "m0"), ("a-1-1", "m1"), ("a-2-1", "m0")):
            found.bind(name, node)
        found.until(1_000)
        found.work.remove_node("m0", 10_000)
        assert names(found, NODES) == ["m1"]
        assert found.dice.bounds[3:] == [10_000_000, 10_000_000]
        seen = {}
        for at in (6_999, 7_001, 8_001, 10_999, 11_000):
            found.until(at)
            seen[at] = (set(found.pods()), len(names(found, NODES)))
        all_, second = {"a-0-1", "a-1-1", "a-2-1"}, {"a-0-2", "a-1-1", "a-2-1"}
        assert seen[6_999] == (all_, 1)
        assert seen[7_001] == (second, 1)
        assert seen[8_001] == ({"a-0-2", "a-1-1", "a-2-2"}, 1)
        assert seen[10_999][1] == 1
        assert seen[11_000][1] == 2

    @pytest.mark.parametrize(("down", "nodes"), [(None, 1), (0, 2)])
    def test_a_node_without_an_end_of_its_absence_stays_away(
        self, play: Callable[..., Play], down: int | None, nodes: int
    ) -> None:
        found = play()
        found.work.remove_node("m0", down)
        # One that is gone already is not taken away a second time.
        found.work.remove_node("m0", 5)
        found.until(1_000_000)
        assert len(names(found, NODES)) == nodes

    def test_a_cordoned_node_takes_no_pods_until_it_is_let_off_or_comes_back(
        self, play: Callable[..., Play]
    ) -> None:
        found = play()

        def cordoned() -> list[bool]:
            return [each["spec"]["unschedulable"] for each in found.api.documents(NODES)]

        found.work.cordon("m1", True)
        assert cordoned() == [False, True]
        found.work.cordon("m1", False)
        assert cordoned() == [False, False]
        found.work.cordon("m0", True)
        found.work.remove_node("m0", 10)
        found.work.cordon("m0", True)
        found.until(20)
        assert names(found, NODES) == ["m1", "m0"]
        assert cordoned() == [False, False]

    def test_a_resized_node_has_its_new_size_also_when_it_comes_back(
        self, play: Callable[..., Play]
    ) -> None:
        found = play()

        def sizes() -> dict[str, dict[str, str]]:
            documents = found.api.documents(NODES)
            return {each["metadata"]["name"]: each["status"]["allocatable"] for each in documents}

        second = {"cpu": "2000m", "memory": "4", "pods": "110"}
        found.work.resize("m0", Resources(1_000, 3, {"gpu": 2}))
        small = {"cpu": "1000m", "memory": "3", "gpu": "2", "pods": "110"}
        assert sizes() == {"m0": small, "m1": second}
        found.work.remove_node("m0", 10)
        found.work.resize("m0", Resources(500, 2))
        assert sizes() == {"m1": second}
        found.until(20)
        assert sizes() == {"m1": second, "m0": {"cpu": "500m", "memory": "2", "pods": "110"}}


class TestApi:
    def test_changes_of_pods_nodes_and_groups_are_recorded_with_their_times(
        self, loop: VirtualLoop
    ) -> None:
        api = PlayedApi(loop, ToldDice())  # type: ignore[arg-type]
        named = {"metadata": {"name": "x"}}
        for at, kind in enumerate((PODS, NODES, COSCHEDULING_GROUPS, NAMESPACES), 1):
            loop.at(at, lambda kind=kind: api.put(kind, {**named, "spec": {}}))  # type: ignore[misc]
        loop.at(9, lambda: api.remove(NODES, "x"))
        loop.run_until_complete(asyncio.sleep(1))
        found = [(each.at, each.kind, each.is_gone) for each in api.records]
        assert found == [
            (1, "pod", False),
            (2, "node", False),
            (3, "group", False),
            (9, "node", True),
        ]

    @pytest.mark.parametrize(
        ("spec", "phase", "leaves"),
        [
            ({"nodeName": "n"}, "Running", True),
            ({"nodeName": "n"}, "Pending", True),
            ({"nodeName": "gone"}, "Running", False),
            ({}, "Pending", False),
            ({"nodeName": "n"}, "Failed", False),
        ],
    )
    def test_a_pod_on_a_node_leaves_after_a_grace(
        self, loop: VirtualLoop, spec: dict[str, str], phase: str, leaves: bool
    ) -> None:
        dice = ToldDice(below=[500])
        api = PlayedApi(loop, dice)  # type: ignore[arg-type]
        api.put(NODES, NODE)
        api.put(PODS, {"metadata": {"name": "p"}, "spec": spec, "status": {"phase": phase}})
        api.remove(PODS, "p")
        assert (api.document(PODS, "p") is not None) == leaves
        assert dice.bounds == ([2_000_000] if leaves else [])
        loop.run_until_complete(asyncio.sleep(499e-6))
        assert (api.document(PODS, "p") is not None) == leaves
        loop.run_until_complete(asyncio.sleep(1e-6))
        assert api.document(PODS, "p") is None
        assert [each.is_gone for each in api.records if each.kind == "pod"][-1]

    def test_a_pod_that_is_deleted_again_is_gone_at_once_and_its_name_is_free(
        self, loop: VirtualLoop
    ) -> None:
        api = PlayedApi(loop, ToldDice(below=[500]))  # type: ignore[arg-type]
        api.put(NODES, NODE)
        pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {}}
        api.put(PODS, pod)
        api.remove(PODS, "p")
        api.remove(PODS, "p")
        assert api.document(PODS, "p") is None
        again = api.put(PODS, pod)
        loop.run_until_complete(asyncio.sleep(1))
        there = api.document(PODS, "p")
        assert there is not None
        assert there["metadata"]["uid"] == again.uid

    def test_nodes_are_gone_at_once(self, loop: VirtualLoop) -> None:
        api = PlayedApi(loop, ToldDice())  # type: ignore[arg-type]
        api.put(NODES, NODE)
        api.remove(NODES, "n")
        assert api.documents(NODES) == []


class TestManifests:
    @pytest.mark.parametrize(("pool", "is_tainted"), [("c", True), ("a", False)])
    def test_a_node_is_tainted_if_it_is_of_one_pool(self, pool: str, is_tainted: bool) -> None:
        machine = Machine("m0", Resources(4_000, 8, {"gpu": 2}), {"pool": pool})
        taint = {"key": "pool", "value": "c", "effect": "NoSchedule"}
        assert node_of(machine) == {
            "metadata": {
                "name": "m0",
                "labels": {"kubernetes.io/hostname": "m0", "pool": pool},
            },
            "spec": {"taints": [taint] if is_tainted else []},
            "status": {"allocatable": {"cpu": "4000m", "memory": "8", "gpu": "2", "pods": "110"}},
        }

    def test_a_plain_task_is_a_plain_pod(self) -> None:
        made = job("a", cpu=1_500, memory=7, seconds=None, kind="service").job
        assert pod_of(made, made.groups[0], "a-0-1") == {
            "metadata": {
                "name": "a-0-1",
                "namespace": "default",
                "labels": {"app": "a"},
                "annotations": {"argosy.dev/kind": "service"},
                "ownerReferences": [
                    {
                        "apiVersion": "batch/v1",
                        "kind": "Job",
                        "name": "a",
                        "uid": "a",
                        "controller": True,
                    }
                ],
            },
            "spec": {
                "schedulerName": "argosy",
                "restartPolicy": "Always",
                "priority": 0,
                "containers": [
                    {"name": "main", "resources": {"requests": {"cpu": "1500m", "memory": "7"}}}
                ],
                "nodeSelector": {},
                "tolerations": [],
            },
            "status": {"phase": "Pending"},
        }

    def test_a_demanding_task_says_so_in_the_words_of_kubernetes(self) -> None:
        made = job(
            "a",
            2,
            owner="ada",
            gang=True,
            precedence=4,
            estimate=9_000,
            requires={"pool": "c", "disk": "ssd"},
            prefers={"rack": "r1", "zone": "z"},
        ).job
        pod = pod_of(made, made.groups[0], "a-1-1")
        assert pod["metadata"]["namespace"] == "ada"
        assert pod["metadata"]["labels"] == {
            "app": "a",
            "scheduling.x-k8s.io/pod-group": "a",
        }
        assert pod["metadata"]["annotations"]["argosy.dev/estimate"] == "9000us"
        spec = pod["spec"]
        assert (spec["priority"], spec["restartPolicy"]) == (4, "Never")
        assert spec["nodeSelector"] == {"pool": "c", "disk": "ssd"}
        assert spec["tolerations"] == [
            {"key": "pool", "operator": "Equal", "value": "c", "effect": "NoSchedule"}
        ]
        preferred = [
            {
                "weight": 10,
                "preference": {
                    "matchExpressions": [{"key": key, "operator": "In", "values": [value]}]
                },
            }
            for key, value in (("rack", "r1"), ("zone", "z"))
        ]
        assert spec["affinity"] == {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
        }
        assert group_of_gang(made) == {
            "metadata": {"name": "a", "namespace": "ada"},
            "spec": {"minMember": 2},
        }
