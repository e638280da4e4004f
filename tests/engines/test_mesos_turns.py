"""Mesos: whose turn it is, what goes on with an offer, and what each of several events leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, only, take, tasks_of
from test_mesos_offers import a_mesos, answer, decide, large, of, offer, submit
from test_mesos_whole_queue import at_once

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.mesos import Mesos, MesosSettings
from argosy.engines.mesos.framework import Framework, FrameworkSettings, HoardedJob
from argosy.model.effects import Abandon, Commit, Explain, Think, WakeMe
from argosy.model.events import JobChanged, TimerFired
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, Transaction
from argosy.testing.builders import GIB, SECOND, job

NOBODY = np.empty(0, np.int32)
WHOLE = Resources(4_000, 64 * GIB)


def place(engine: Mesos, cell: Cell, made: Any, number: int) -> Commit:
    submit(engine, cell, made, number)
    commit: Commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    answer(engine, cell, commit)
    return commit


def occupy(cell: Cell, machine: int, request: Resources) -> None:
    rows = np.array([machine], np.int32)
    shapes = np.array([cell.shape(request)], np.int32)
    claims = Claims(tasks_of(50 + machine, 0), rows, shapes, cell.versions(rows))
    assert cell.commit(Transaction(OPERATOR, claims)).all_accepted


@pytest.mark.parametrize("first", ["batch", "service"])
def test_shares_are_compared_as_parts_of_the_cell_whatever_the_resource(first: str) -> None:
    """Half of the processors is more than a quarter of the memory, though that is more bytes."""
    engine, cell = a_mesos(), cell_of(4, 4)
    place(engine, cell, job("a", cpu=4_000, memory=GIB), 0)
    place(engine, cell, job("b", cpu=500, memory=32 * GIB, kind="service"), 1)
    for number, kind in enumerate([first, {"batch": "service", "service": "batch"}[first]], 2):
        submit(engine, cell, job(f"j{number}", cpu=100, kind=kind), number)
    assert only(offer(engine, cell), Think).job == (3 if first == "batch" else 2)


def test_one_offer_is_on_its_way_at_a_time_and_none_to_a_framework_that_decides() -> None:
    engine, cell = a_mesos(), cell_of(4, 4)
    take(cell, 1, 4)
    [wake] = submit(engine, cell, job("a"), 0)
    assert wake == WakeMe(1_000, "offer")
    assert submit(engine, cell, job("b"), 1, 5) == ()
    thinking, *others = offer(engine, cell, 1_000)
    assert (thinking.job, thinking.lane, others) == (0, "batch", [])
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    # Its second job waits for the first decision, so nobody asks; that one's end asks again.
    assert offer(engine, cell, 2_000) == ()
    commit = only(decide(engine, cell, thinking, 3_000), Commit)
    assert answer(engine, cell, commit, 3_000) == [WakeMe(4_000, "offer")]


def test_an_offer_that_is_used_up_is_not_gone_on_with() -> None:
    engine, cell = a_mesos(uses="queue", refuse=0), cell_of(4)
    submit(engine, cell, large("a", 1), 0)
    submit(engine, cell, large("b", 1), 1)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    assert answer(engine, cell, commit, 7) == [WakeMe(1_007, "offer")]


def test_a_gang_that_gets_a_part_of_an_offer_leaves_the_rest_to_the_next_job() -> None:
    engine, cell = a_mesos(uses="queue", refuse=0), cell_of(4, 4, 4)
    occupy(cell, 2, WHOLE)
    submit(engine, cell, large("gang", 3, gang=True), 0)
    submit(engine, cell, job("small"), 1)
    # Nothing is left of the two machines.
    effects = decide(engine, cell, only(offer(engine, cell), Think))
    assert not of(effects, Think)
    assert [each.tasks.tolist() for each in of(effects, Explain)] == [
        tasks_of(0, 2).tolist(),
        tasks_of(0, 0, 1).tolist(),
    ]
    engine, cell = a_mesos(uses="queue", refuse=0), cell_of(4, 4, 1)
    submit(engine, cell, large("gang", 3, gang=True), 0)
    submit(engine, cell, job("small"), 1)
    following = only(decide(engine, cell, only(offer(engine, cell), Think)), Think)
    assert following.job == 1
    claims = only(decide(engine, cell, following), Commit).transaction.claims
    assert claims.machines.tolist() == [2]


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("uses", ["job", "queue-at-once"])
def test_choices_are_explained_where_explanations_are_kept(uses: str, keeps: bool) -> None:
    context = Context("s", (), Random(1), keeps_explanations=keeps)
    engine, cell = Mesos(MesosSettings(uses=uses), context), cell_of(4, 4)
    submit(engine, cell, job("a"), 0)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    assert (commit.explanation is not None) is keeps
    assert (commit.transaction.scheduler, commit.transaction.atomic) == ("s:batch", False)


def test_all_that_was_withdrawn_during_a_commit_stays_away() -> None:
    engine, cell = a_mesos(refuse=0), cell_of(4)
    request = Resources(1_000, GIB)
    submit(engine, cell, job("a", 3), 0)
    commit = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit)
    for left in (2, 1):
        smaller = Job("a", (TaskGroup(left, request),))
        change = JobChanged(smaller, 0, tasks_of(0)[:0], tasks_of(0, left))
        assert engine.handle(change, cell, 0) == ()
    take(cell, 0, 4)
    answer(engine, cell, commit)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0, 1, 2, 3)))
    thinking = only(offer(engine, cell), Think)
    assert thinking.duration == 100_000 + 5_000
    claims = only(decide(engine, cell, thinking), Commit).transaction.claims
    assert claims.tasks.tolist() == tasks_of(0, 0).tolist()


def test_a_waiting_job_that_changes_twice_keeps_what_each_change_left() -> None:
    engine, cell = a_mesos(), cell_of(8)
    submit(engine, cell, job("a", 4), 0)
    submit(engine, cell, job("b", 4), 1)
    for number, gone in ((0, 3), (1, 3), (0, 2)):
        smaller = Job("ab"[number], (TaskGroup(gone, Resources(2_000, GIB)),))
        engine.handle(JobChanged(smaller, number, tasks_of(0)[:0], tasks_of(number, gone)), cell, 0)
    claims = only(decide(engine, cell, only(offer(engine, cell), Think)), Commit).transaction.claims
    # It is claimed as it is now.
    assert claims.tasks.tolist() == tasks_of(0, 0, 1).tolist()
    assert cell.shape_request(int(claims.shapes[0])) == (2_000, GIB)


class TestWholeQueues:
    def test_a_gang_that_an_offer_suffices_for_is_claimed_as_one(self) -> None:
        engine, cell = at_once(), cell_of(4, 4, 4)
        submit(engine, cell, large("gang", 2, gang=True), 0)
        submit(engine, cell, large("a", 2), 1)
        effects = offer(engine, cell, 50)
        # The gang is claimed wholly, the other job in part; its rest rests from now on.
        assert only(effects, WakeMe) == WakeMe(50 + SECOND, "rest")
        gang, other = decide(engine, cell, of(effects, Think)[0], 50)
        claimed = [each.transaction.claims.tasks.tolist() for each in (gang, other)]
        assert claimed == [tasks_of(0, 0, 1).tolist(), tasks_of(1, 0).tolist()]
        assert [each.transaction.atomic for each in (gang, other)] == [True, False]

    def test_offers_of_several_answers_are_locked_each_until_its_own_ends(self) -> None:
        engine, cell = at_once(rest=0), cell_of(4, 4, 4)
        for machine in (1, 2):
            occupy(cell, machine, WHOLE)
        thinking = []
        for number in range(3):
            cell.commit(Transaction(OPERATOR, releases=tasks_of(50 + number, 0)))
            submit(engine, cell, large(f"j{number}", 1), number)
            thinking.append(only(offer(engine, cell), Think))
        submit(engine, cell, job("other", kind="service"), 3)
        # Two are on their way to the cell and one to the allocator: nothing is left to offer.
        commits = [only(decide(engine, cell, each), Commit) for each in thinking[:2]]
        taken = [each.transaction.claims.machines.tolist() for each in commits]
        assert taken == [[0], [1]]
        assert not of(offer(engine, cell), Think)
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(Machine("new", WHOLE)),)))
        assert only(offer(engine, cell), Think).job == 3

    @pytest.mark.parametrize("gang", [False, True])
    def test_what_fits_nowhere_is_known_for_jobs_like_it_unless_a_gang_found_out(
        self, gang: bool
    ) -> None:
        engine, cell = at_once(rest=0), cell_of(4)
        submit(engine, cell, large("first", 2, gang=gang), 0)
        submit(engine, cell, large("second", 1), 1)
        submit(engine, cell, job("small"), 2)
        effects = offer(engine, cell)
        commits = decide(engine, cell, of(effects, Think)[0])
        claimed = [each.transaction.claims.tasks.tolist() for each in commits]
        assert claimed == [(tasks_of(1, 0) if gang else tasks_of(0, 0)).tolist()]

    @pytest.mark.parametrize(("free", "is_made"), [(1, False), (2, True)])
    def test_a_small_offer_has_fewer_cores_than_are_set(self, free: int, is_made: bool) -> None:
        engine, cell = at_once(least_cores=2), cell_of(*[16] * 20)
        for machine in range(20):
            take(cell, machine, 16, number=100 + machine)
        cell.commit(Transaction(OPERATOR, releases=tasks_of(100, *range(free))))
        submit(engine, cell, job("a"), 0)
        assert bool(of(offer(engine, cell), Think)) is is_made

    def test_a_job_is_given_up_at_its_last_attempt_and_not_before(self) -> None:
        engine, cell = at_once(rest=0, attempts=2), cell_of(4)
        submit(engine, cell, job("giant", cpu=64_000), 0)
        found = []
        for _ in range(2):
            effects = offer(engine, cell)
            found.append([each.explanation.refused.lacking for each in of(effects, Abandon)])
            decide(engine, cell, only(effects, Think))
        assert found == [[], [2]]


class TestFrameworks:
    def framework(self, **settings: Any) -> Framework:
        return Framework("batch", FrameworkSettings(**settings), 5 * SECOND, failed_first=True)

    def test_one_refusal_does_not_end_another(self) -> None:
        framework, cell = self.framework(), cell_of(4, 4, 4)
        whole = cell.free()
        for machine, now in ((0, 10), (1, 20)):
            part = np.zeros_like(whole)
            part[machine] = whole[machine]
            framework.decline(part, NOBODY, now, is_short=True)
        for now, passing in (
            (5 * SECOND + 9, [2]),
            (5 * SECOND + 10, [0, 2]),
            (5 * SECOND + 20, [0, 1, 2]),
        ):
            passed = framework.acceptable(whole, cell, now)
            assert np.flatnonzero(passed.any(axis=1)).tolist() == passing
            assert passed[passing].tolist() == whole[passing].tolist()
        # A machine that joins makes a new start.
        assert not framework._refused(np.vstack([whole, whole[:1]]), 20).any()
        framework.decline(None, NOBODY, 30, is_short=True)

    @pytest.mark.parametrize(
        ("state", "ruled_out", "remedy"),
        [
            ("full", {"full": 3}, "wait until tasks end, or add a machine"),
            (
                "offered",
                {"offered": 3},
                "wait until others return their offers, or set offers = 'fair-share'",
            ),
            (
                "share",
                {"beyond its share": 2, "not wanted": 1},
                "wait until tasks of the framework end, or set offers = 'all'",
            ),
            (
                "declined",
                {"declined": 2, "not wanted": 1},
                "wait: declined machines are offered again after 5 s",
            ),
            (
                "unwanted",
                {"full": 2, "not wanted": 1},
                "wait until tasks end, or add a machine",
            ),
        ],
    )
    def test_each_state_of_the_cell_has_its_remedy(
        self, state: str, ruled_out: dict[str, int], remedy: str
    ) -> None:
        framework = self.framework(avoid={"disk": "hdd"})
        cell = cell_of(4, 4, 4, m2={"disk": "hdd"})
        for machine in {"full": (0, 1, 2), "unwanted": (0, 1)}.get(state, ()):
            made = cell.free()[machine].tolist()
            shape = Resources(made[0], made[1])
            occupy(cell, machine, shape)
        available = cell.free()
        if state == "offered":
            available[:] = 0
        if state == "declined":
            framework.decline(available, NOBODY, 0, is_short=True)
        tried = HoardedJob(job("tried").job, 1, tasks_of(1, 0))
        tried.attempts = 1
        framework.queue.extend([HoardedJob(job("a").job, 0, tasks_of(0, 0)), tried])
        [told] = framework.unoffered(available, cell, 1, has_its_share=state == "share")
        assert told.tasks.tolist() == tasks_of(0, 0).tolist()
        assert told.explanation.looked_at == 3
        assert (told.explanation.ruled_out, told.explanation.remedy) == (ruled_out, remedy)

    def test_rests_end_in_turn_and_only_those_that_are_over(self) -> None:
        framework = self.framework()
        works = [HoardedJob(job(f"j{n}").job, n, tasks_of(n, 0)) for n in range(3)]
        assert framework.let_rest([], 5) == []
        assert framework.let_rest(works[:2], 10) == [WakeMe(10, "rest")]
        assert framework.let_rest(works[2:], 20) == [WakeMe(20, "rest")]
        framework.end_rests(9)
        assert not framework.queue
        framework.end_rests(19)
        assert [*framework.queue] == works[:2]
        assert [*framework.resting] == works[2:]


def test_rests_of_every_framework_end() -> None:
    engine, cell = a_mesos(refuse=0, rest=SECOND), cell_of(4)
    for number, kind in enumerate(("batch", "service")):
        submit(engine, cell, job(kind, cpu=64_000, kind=kind), number)
        assert WakeMe(SECOND, "rest") in decide(engine, cell, only(offer(engine, cell), Think))
    engine.handle(TimerFired("rest"), cell, SECOND)
    first = only(offer(engine, cell, SECOND), Think)
    decide(engine, cell, first, SECOND)
    assert {first.job, only(offer(engine, cell, SECOND), Think).job} == {0, 1}
