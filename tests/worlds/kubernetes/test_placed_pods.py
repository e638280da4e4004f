"""Single steps of pods that are placed: their names, rooms, claims and tries."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock, call

import pytest
from small_pod_cluster import node, pod

from argosy.model.explanations import Refusal, Why
from argosy.model.resources import Resources
from argosy.worlds.kubernetes.placed_pods import KUBERNETES, PlacedPods
from argosy.worlds.kubernetes.tracked import BindOrder, PodShape, PodState, TrackedPod

CORE = Resources(1_000, 2**30, {"pods": 1})


class Bench:
    """Pods over a world that says yes to all, unless it is told otherwise."""

    def __init__(self) -> None:
        self.world: Any = Mock()
        self.world.job_seq.return_value = None
        self.refusals: list[list[Refusal | None]] = []
        self.world.adopt.side_effect = lambda jobs, *more: (
            self.refusals.pop(0) if self.refusals else [None] * len(jobs)
        )
        self.placed = PlacedPods(lambda: self.world, lambda pod: True)
        self.placed.rulebook = Mock()
        self.placed.rulebook.nodes = {}
        self.placed._nominations = Mock()

    def tracked(self, name: str, state: PodState = PodState.WAITING, **fields: Any) -> TrackedPod:
        needs: Any = Mock(attributes={}, wishes=(), counted=Mock(brings=()), is_plain=True)
        made = TrackedPod(pod(name), PodShape(name.encode(), needs, CORE), state, **fields)
        self.placed.pods[name] = made
        return made

    def adopted(self) -> list[Any]:
        return self.world.adopt.mock_calls


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("number", [0, 1, 7])
def test_a_try_that_ends_is_told_once_whatever_its_number(bench: Bench, number: int) -> None:
    tracked = bench.tracked("p")
    bench.placed._end_try(tracked)
    assert bench.world.gone.mock_calls == []
    bench.placed._index.give_try(tracked, number)
    bench.placed._end_try(tracked)
    bench.placed._end_try(tracked)
    assert bench.world.gone.mock_calls == [call(number)]
    assert (tracked.number, bench.placed._index.of_try(number)) == (None, None)


def test_names_that_were_used_get_a_number(bench: Bench) -> None:
    taken = {"default.p", "default.p~2"}
    bench.world.job_seq.side_effect = lambda name: 0 if name in taken else None
    assert bench.placed._new_name("default.p") == "default.p~3"
    assert bench.placed._new_name("default.q") == "default.q"


def test_room_is_taken_once_and_given_back_once(bench: Bench) -> None:
    tracked = bench.tracked("p", node="n1")
    bench.placed._room.set_capacity("n1", Resources(4_000, 2**33, {"pods": 9}))
    bench.placed._take_room(tracked)
    bench.placed._take_room(tracked)
    assert bench.placed.free_on("n1")["cpu"] == 3_000
    bench.placed._held["n1"]["p"] = None
    bench.placed._undo_claim(tracked)
    assert (tracked.node, tracked.takes_room, bench.placed._held["n1"]) == ("", False, {})
    assert bench.placed.free_on("n1") == {"cpu": 4_000, "memory": 2**33, "pods": 9}
    tracked.node = "n1"
    bench.placed._undo_claim(tracked)
    assert bench.placed.free_on("n1")["cpu"] == 4_000
    assert bench.placed.rulebook.leave.mock_calls == [call("p")] * 2  # type: ignore[attr-defined]


def test_binding_takes_room_and_orders_it(bench: Bench) -> None:
    tracked = bench.tracked("p", PodState.HELD, node="n1", annotations={"a": "b"})
    bench.placed._bind(tracked)
    assert (tracked.state, tracked.takes_room) == (PodState.BINDING, True)
    assert list(bench.placed.orders) == [BindOrder(tracked.pod, "n1", {"a": "b"})]


def test_a_pod_that_is_on_its_node_is_adopted_there(bench: Bench) -> None:
    tracked = bench.tracked("p")
    bench.placed._adopt(tracked, "n1", [("other", 2)])
    [asked] = bench.adopted()
    [(job, where)], by, instead_of, replaced = asked.args
    assert (where, by, instead_of, list(replaced)) == ("n1", KUBERNETES, [("other", 2)], [])
    assert (job.id, job.groups[0].request) == ("default.p", CORE)
    assert (tracked.state, tracked.node, tracked.job) == (PodState.BOUND, "n1", "default.p")
    assert bench.placed.rulebook.put.mock_calls == [call("p", tracked.needs, "n1")]  # type: ignore[attr-defined]
    assert not bench.placed._clamped


@pytest.mark.parametrize("second", [None, Refusal(Why.NO_ROOM)])
def test_a_pod_on_an_overcommitted_node_gets_what_is_left(
    bench: Bench, second: Refusal | None
) -> None:
    first, tracked = bench.tracked("a"), bench.tracked("p")
    first.node = tracked.node = "n1"
    bench.refusals = [[None, Refusal(Why.NO_ROOM)], [second]]
    bench.world.free_on.return_value = Resources(300, 2**40, {"pods": 3})
    bench.placed._adopt_all([first, tracked])
    assert bench.world.free_on.mock_calls == [call("n1")]
    [(job, node)], by = bench.adopted()[1].args
    assert (node, by) == ("n1", KUBERNETES)
    assert job.groups[0].request == Resources(300, 2**30, {"pods": 1})
    assert bench.placed._clamped["n1"] == {"p": None}
    assert (first.job, tracked.job) == ("default.a", "" if second else job.id)


def test_pods_that_need_other_jobs_leave_their_old_ones(bench: Bench) -> None:
    old, new = bench.tracked("old", node="n1"), bench.tracked("new", node="n2")
    bench.placed._index.give_tasks([bench.tracked("x"), old], "gang")
    bench.placed._fresh = [Mock()]
    fresh = list(bench.placed._fresh)
    bench.placed._adopt_anew([old, new], [("gang", 0)])
    assert bench.world.mock_calls[0] == call.submit_all(fresh)
    assert bench.placed._fresh == []
    asked = bench.adopted()[0]
    assert [where for _, where in asked.args[0]] == ["n1", "n2"]
    assert (list(asked.args[2]), list(asked.args[3])) == ([("gang", 0)], [("gang", 1)])
    assert bench.placed.rulebook.leave.mock_calls == [call("old"), call("new")]  # type: ignore[attr-defined]
    assert bench.placed._index.of_job("gang", 1) is None


@pytest.mark.parametrize(
    ("plain", "counted", "at_once"), [(True, 0, 0), (False, 0, 1), (True, 1, 1)]
)
def test_pods_that_matter_to_others_are_submitted_at_once(
    bench: Bench, plain: bool, counted: int, at_once: int
) -> None:
    tracked = bench.tracked("p", PodState.OUTSIDE)
    tracked.needs.is_plain = plain  # type: ignore[misc]
    bench.placed.rulebook.is_counted.return_value = bool(counted)  # type: ignore[attr-defined]
    bench.placed._submit(tracked)
    assert (tracked.state, tracked.job) == (PodState.WAITING, "default.p")
    assert bench.world.submit_all.call_count == bench.world.settle.call_count == at_once
    bench.placed._submit_fresh()
    bench.placed._submit_fresh()
    assert bench.world.submit_all.call_count == 1
    [[job]] = bench.world.submit_all.mock_calls[0].args
    assert job.id == "default.p"


def test_one_of_several_is_cancelled_alone_and_a_single_one_with_its_job(bench: Bench) -> None:
    first, second = bench.tracked("a"), bench.tracked("b")
    bench.placed._index.give_tasks([first, second], "gang")
    alone, none = bench.tracked("c"), bench.tracked("d")
    bench.placed._index.give_job(alone, "alone")
    bench.placed._fresh = [Mock()]
    for tracked in (second, none, alone, second, first):
        bench.placed._cancel(tracked)
    told = [each for each in bench.world.mock_calls if each[0] == "cancel"]
    assert told == [call.cancel("gang", [1]), call.cancel("alone", None), call.cancel("gang", [0])]
    assert bench.world.mock_calls[0][0] == "submit_all"
    assert (first.job, second.job, alone.job) == ("", "", "")


def test_room_that_becomes_free_is_for_promises_and_for_those_who_had_less(bench: Bench) -> None:
    bound = bench.tracked("bound", PodState.BOUND, node="n1")
    bench.tracked("leaving", PodState.LEAVING, node="n1")
    other = bench.tracked("other", PodState.BOUND, node="n2")
    bench.placed._clamped["n1"] = dict.fromkeys(["bound", "leaving", "gone"])
    bench.placed._clamped["n2"] = {"other": None}
    bench.placed._unclamp("n1")
    assert bench.placed._nominations.look_at.mock_calls == [call("n1")]  # type: ignore[attr-defined]
    assert [each.args[0][0][0].id for each in bench.adopted()] == ["default.bound"]
    assert (bound.job, other.job) == ("default.bound", "")
    assert list(bench.placed._clamped) == ["n2"]


def test_attributes_that_are_given_are_a_reason_to_look_again_and_lost_ones_are_none(
    bench: Bench,
) -> None:
    bench.placed.second_looks = Mock()
    bench.placed.rulebook.members.return_value = ["n1", "n2"]  # type: ignore[attr-defined]
    bench.placed._mark("a", "machine", ["s"], False)
    assert bench.placed.second_looks.note.mock_calls == []
    bench.placed._mark("a", "machine", ["s"], True)
    assert bench.placed.second_looks.note.mock_calls == [call(["n1", "n2"])]
    assert bench.world.mark.mock_calls == [
        call("a", "machine", ["s"], False),
        call("a", "machine", ["s"], True),
    ]


def test_nodes_tell_of_resources_that_somebody_asks_for(bench: Bench) -> None:
    plain, special = node(1), node(2)
    special.status.allocatable["vendor/chip"] = "3"
    bench.placed.rulebook.nodes = {"n1": plain, "n2": special}
    assert bench.placed.know_resources(CORE) is True
    assert bench.world.fit_machine.mock_calls == []
    wanted = Resources(1_000, 0, {"vendor/chip": 1})
    assert bench.placed.know_resources(wanted) is True
    [fitted] = bench.world.fit_machine.mock_calls
    assert fitted.args[0] == "n2"
    assert dict(fitted.args[1].items())["vendor/chip"] == 3
    assert bench.placed.free_on("n2")["vendor/chip"] == 3
    assert bench.placed.know_resources(wanted) is True
    assert bench.world.fit_machine.call_count == 1


def test_pods_on_their_way_out_are_counted_anew(bench: Bench) -> None:
    tracked = bench.tracked("p", node="n1")
    rules: Any = bench.placed.rulebook
    replaced: list[Any] = []
    rules.put.side_effect = lambda uid, needs, node: replaced.append((uid, needs, node))
    counted = object()
    rules.counted.return_value = counted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("msgspec.structs.replace", lambda needs, **fields: (needs, fields))
        bench.placed._count_anew(tracked)
    assert replaced == [("p", (tracked.needs, {"counted": counted}), "n1")]
    assert rules.mock_calls[0] == call.leave("p")
    assert rules.counted.mock_calls == [call(tracked.pod, ())]
