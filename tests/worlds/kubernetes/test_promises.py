"""Promises of room, one by one: which are claimed, with which jobs, and how they end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from small_pod_cluster import pod

from argosy.kubernetes.objects import Pod, PodStatus
from argosy.model.explanations import Refusal, Why
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.nominations import NOMINATED, Nominations
from argosy.worlds.kubernetes.requests import pod_request
from argosy.worlds.kubernetes.room import NodeRoom


class Bench:
    """Two nodes with room for four pods of one core each."""

    def __init__(self) -> None:
        self.refusals: list[Refusal | None] = []
        self.adopted: list[tuple[Any, str, str]] = []
        self.cancelled: list[str] = []
        self.freed: list[str] = []
        self.taken: set[str] = set()
        self.machines = {"n0", "n1"}
        self.unknown: set[int] = set()
        self.room = NodeRoom()
        size = Resources(4_000, 64 * 2**30, {"pods": 20})
        for name in ("n0", "n1"):
            self.room.set_capacity(name, size)
        world: Any = SimpleNamespace(
            has_machine=lambda name: name in self.machines,
            job_seq=lambda name: 0 if name in self.taken else None,
            adopt=self._adopt,
            cancel=self.cancelled.append,
        )
        self.nominations = Nominations(
            lambda: world,
            self.room,
            lambda pod: f"kind of {pod.name}",
            lambda priority: priority + 1_000,
            lambda request: request.cpu not in self.unknown,
            self.freed.append,
        )

    def _adopt(self, jobs: Any, by: str) -> list[Refusal | None]:
        self.adopted += [(job, node, by) for job, node in jobs]
        return [self.refusals.pop(0) if self.refusals else None]

    def promise(self, name: str, node: str = "n0", cpu: str = "1", **changes: Any) -> Pod:
        priority = changes.pop("priority", 5)
        found = replace(
            pod(name, cpu, priority), status=PodStatus(nominated_node_name=node), **changes
        )
        self.nominations.set_pod(found)
        return found

    def claims(self) -> list[tuple[str, str]]:
        """The jobs that were made since the last look, and where."""
        found = [(job.id, node) for job, node, _ in self.adopted]
        self.adopted.clear()
        return found

    def job(self, uid: str) -> str:
        known = self.nominations.of(uid)
        assert known is not None
        return known.job


@pytest.fixture
def bench() -> Bench:
    return Bench()


def leaving(found: Pod) -> Pod:
    return replace(
        found, metadata=replace(found.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )


def test_the_job_of_a_claim_is_the_pods_in_all_that_counts(bench: Bench) -> None:
    found = bench.promise("p", cpu="2", priority=7)
    [(job, node, by)] = bench.adopted
    assert (job.id, job.name, job.owner) == ("default.p~nominated1", "default/p", "default")
    assert (job.kind, job.precedence) == ("kind of p", 1_007)
    [group] = job.groups
    assert (group.count, group.request, group.endless) == (1, pod_request(found), True)
    assert (node, by) == ("n0", NOMINATED)
    known = bench.nominations.of("p")
    assert known is not None
    assert (known.pod, known.node, known.job, known.tasks) == (found, "n0", job.id, ())


def test_a_pod_without_a_priority_has_none(bench: Bench) -> None:
    found = pod("p")
    none = replace(found.spec, priority=None)
    status = PodStatus(nominated_node_name="n0")
    bench.nominations.set_pod(replace(found, spec=none, status=status))
    [(job, _, _)] = bench.adopted
    assert job.precedence == 1_000


def test_claims_are_numbered_and_names_that_are_taken_passed_over(bench: Bench) -> None:
    bench.taken = {"default.b~nominated2", "default.b~nominated3"}
    for name in "abc":
        bench.promise(name)
    assert bench.claims() == [
        ("default.a~nominated1", "n0"),
        ("default.b~nominated4", "n0"),
        ("default.c~nominated5", "n0"),
    ]


@pytest.mark.parametrize("reason", ["no node", "leaving", "unknown resource"])
def test_what_is_no_promise_is_not_known(bench: Bench, reason: str) -> None:
    bench.unknown = {1_000} if reason == "unknown resource" else set()
    found = replace(pod("p"), status=PodStatus(nominated_node_name="n0" * (reason != "no node")))
    bench.nominations.set_pod(leaving(found) if reason == "leaving" else found)
    assert (bench.nominations.of("p"), bench.claims(), bench.freed) == (None, [], [])


def test_the_same_promise_is_claimed_once_and_the_newest_pod_kept(bench: Bench) -> None:
    bench.promise("p")
    newer = bench.promise("p", metadata=replace(pod("p").metadata, labels={"app": "other"}))
    known = bench.nominations.of("p")
    assert known is not None
    assert known.pod is newer
    assert (len(bench.claims()), bench.cancelled, bench.freed) == (1, [], [])


@pytest.mark.parametrize(("node", "cpu"), [("n1", "1"), ("n0", "2")])
def test_another_promise_takes_the_place_of_the_first(bench: Bench, node: str, cpu: str) -> None:
    bench.promise("p")
    bench.claims()
    bench.promise("p", node, cpu)
    assert bench.cancelled == ["default.p~nominated1"]
    assert bench.claims() == [("default.p~nominated2", node)]
    assert bench.freed == ["n0"]


@pytest.mark.parametrize("how", ["removed", "leaves", "is taken back"])
def test_the_end_of_a_promise_frees_its_room_at_once(bench: Bench, how: str) -> None:
    found = bench.promise("p")
    match how:
        case "removed":
            bench.nominations.remove("p")
        case "leaves":
            bench.nominations.set_pod(leaving(found))
        case _:
            bench.promise("p", "")
    assert bench.nominations.of("p") is None
    assert (bench.cancelled, bench.freed) == (["default.p~nominated1"], ["n0"])
    bench.nominations.remove("p")
    assert (len(bench.cancelled), len(bench.freed)) == (1, 1)
    # What is lost afterwards is nothing of this promise.
    assert bench.nominations.launch("default.p~nominated1") is False


def test_a_promise_without_a_claim_ends_without_a_cancelled_job(bench: Bench) -> None:
    bench.promise("p", cpu="5")
    assert (bench.claims(), bench.job("p")) == ([], "")
    bench.nominations.remove("p")
    assert (bench.cancelled, bench.freed) == ([], ["n0"])


def test_the_room_of_a_promise_that_ends_is_for_the_next_on_its_node(bench: Bench) -> None:
    bench.promise("first")
    bench.room.take("n0", Resources(4_000, 0))
    bench.room.take("n1", Resources(4_000, 0))
    bench.promise("here")
    bench.promise("there", "n1")
    bench.claims()
    bench.room.give_back("n0", Resources(4_000, 0))
    bench.room.give_back("n1", Resources(4_000, 0))
    bench.nominations.remove("first")
    assert bench.claims() == [("default.here~nominated2", "n0")]
    bench.nominations.look_at("n1")
    assert bench.claims() == [("default.there~nominated3", "n1")]


def test_a_promise_that_the_world_refuses_is_claimed_later(bench: Bench) -> None:
    bench.refusals = [Refusal(Why.NO_ROOM)]
    bench.promise("p")
    assert bench.claims() == [("default.p~nominated1", "n0")]
    assert bench.job("p") == ""
    assert bench.nominations.launch("default.p~nominated1") is False
    bench.nominations.lose("default.p~nominated1")
    bench.nominations.follow_up()
    assert bench.cancelled == []
    bench.nominations.look_at("n0")
    assert bench.claims() == [("default.p~nominated2", "n0")]
    assert bench.job("p") == "default.p~nominated2"
    bench.nominations.look_at("n0")
    assert bench.claims() == []


def test_a_promise_on_a_node_that_is_not_there_yet_waits_for_it(bench: Bench) -> None:
    bench.machines = {"n1"}
    bench.promise("p")
    assert bench.claims() == []
    bench.machines.add("n0")
    bench.nominations.look_at("n0")
    assert bench.claims() == [("default.p~nominated1", "n0")]


def test_a_claim_is_told_by_its_task_once_a_try_has_begun(bench: Bench) -> None:
    bench.promise("p")
    job, known = bench.job("p"), bench.nominations.of("p")
    assert known is not None
    assert bench.nominations.launch("unknown") is False
    assert known.tasks == ()
    assert bench.nominations.launch(job) is True
    assert known.tasks == ((job, 0),)
    bench.nominations.lose(job)
    assert (known.job, known.tasks) == ("", ())


def test_a_claim_that_is_lost_is_cancelled_once_and_may_be_made_anew(bench: Bench) -> None:
    bench.promise("p")
    bench.nominations.lose("default.p~nominated1")
    bench.nominations.lose("default.p~nominated1")
    bench.nominations.lose("unknown")
    assert bench.cancelled == []
    bench.nominations.follow_up()
    bench.nominations.follow_up()
    assert bench.cancelled == ["default.p~nominated1"]
    bench.claims()
    bench.nominations.look_at("n0")
    assert bench.claims() == [("default.p~nominated2", "n0")]


def test_a_new_world_gets_every_claim_anew(bench: Bench) -> None:
    bench.promise("a")
    bench.promise("b", "n1")
    bench.promise("c")
    bench.nominations.launch("default.a~nominated1")
    bench.nominations.lose("default.b~nominated2")
    bench.claims()
    bench.nominations.begin_anew()
    assert bench.claims() == [
        ("default.a~nominated4", "n0"),
        ("default.b~nominated5", "n1"),
        ("default.c~nominated6", "n0"),
    ]
    known = bench.nominations.of("a")
    assert known is not None
    assert known.tasks == ()
    bench.nominations.follow_up()
    assert bench.cancelled == []
    assert bench.nominations.launch("default.a~nominated1") is False


@pytest.mark.parametrize(
    ("priority", "cpu", "leaves"),
    [(5, 1_000, False), (4, 1_000, False), (6, 1_000, True), (5, 0, True)],
)
def test_only_higher_priorities_may_take_what_is_promised_and_not_claimed(
    bench: Bench, priority: int, cpu: int, leaves: bool
) -> None:
    bench.refusals = [Refusal(Why.NO_ROOM)] * 2
    bench.promise("a", cpu="2")
    bench.promise("b", cpu="2")
    wanted: Any = SimpleNamespace(pod=pod("w", priority=priority), request=Resources(cpu, 0))
    assert bench.nominations.leaves_room(wanted, "n0") is leaves
    # Nothing is promised elsewhere, and what is claimed is kept by its claim.
    assert bench.nominations.leaves_room(wanted, "n1") is True
    bench.nominations.look_at("n0")
    assert bench.nominations.leaves_room(wanted, "n0") is True


def test_promises_add_up_to_what_is_left(bench: Bench) -> None:
    bench.refusals = [Refusal(Why.NO_ROOM)] * 2
    bench.promise("a", cpu="1")
    bench.promise("b", cpu="2")

    def fits(cpu: int) -> bool:
        wanted: Any = SimpleNamespace(pod=pod("w", priority=5), request=Resources(cpu, 0))
        return bench.nominations.leaves_room(wanted, "n0")

    assert [cpu for cpu in (999, 1_000, 1_001) if fits(cpu)] == [999, 1_000]
