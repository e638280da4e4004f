"""Omega's terms, precedence and regions one by one; and extra workers of MapReduce jobs where several
things happen at once."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from serial_attempts import cell_of, end, only, submit, take, tasks_of
from test_extra_workers import a_job, added, an_engine, claimed, scaling, started

from argosy.cell import Cell
from argosy.cell.bitmaps import to_mask
from argosy.engines.api import Context
from argosy.engines.mapreduce.policies import most_workers, shared_room
from argosy.engines.mapreduce.scaling import TIMER
from argosy.engines.omega import Omega, OmegaSettings
from argosy.engines.omega.fairness import LEASE
from argosy.engines.shared.serial import CommitTerms, PendingJob
from argosy.model.effects import Commit, Explain, Think, WakeMe
from argosy.model.events import Committed, DecisionDue, PhaseFinished, TasksLost, TimerFired
from argosy.model.explanations import Why
from argosy.model.jobs import MOST_TASKS, PRECEDENCE_RANGE
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Claims, Transaction, Wants
from argosy.testing.builders import SECOND, job


def an_omega(name: str = "s", peers: tuple[str, ...] = (), **settings: Any) -> Omega:
    return Omega(OmegaSettings(**settings), Context(name, peers, Random(1)))


def work_of(tasks: int = 2, lost: int = 0, **fields: Any) -> PendingJob:
    return PendingJob(job("a", tasks, **fields).job, 0, tasks_of(0, *range(tasks)), lost=lost)


class TestTerms:
    @pytest.mark.parametrize(
        ("settings", "work", "expected"),
        [
            ({}, {}, CommitTerms()),
            ({"transaction": "atomic"}, {}, CommitTerms(atomic=True)),
            ({"detection": "coarse"}, {}, CommitTerms(coarse=True)),
            ({"detection": "coarse-claims"}, {}, CommitTerms(coarse=True, by_claims=True)),
            ({"preempt": True}, {}, CommitTerms(preempt=True)),
            ({}, {"gang": True}, CommitTerms(atomic=True)),
            (
                {"detection": "coarse-claims", "preempt": True},
                {"gang": True},
                CommitTerms(atomic=True, coarse=True, by_claims=True, preempt=True),
            ),
            ({"detection": "coarse"}, {"gang": True}, CommitTerms(atomic=True, coarse=True)),
            # Whoever has lost often enough is checked for room only, and may push others out.
            ({"patience": 3}, {"lost": 2}, CommitTerms()),
            ({"patience": 3}, {"lost": 3}, CommitTerms(preempt=True)),
            ({"patience": 3, "detection": "coarse"}, {"lost": 2}, CommitTerms(coarse=True)),
            ({"patience": 3, "detection": "coarse"}, {"lost": 4}, CommitTerms(preempt=True)),
            (
                {"patience": 3, "transaction": "atomic"},
                {"lost": 3},
                CommitTerms(atomic=True, preempt=True),
            ),
            ({"patience": 3}, {"lost": 3, "gang": True}, CommitTerms(atomic=True, preempt=True)),
            ({"patience": 0}, {"lost": 99}, CommitTerms()),
        ],
    )
    def test_a_job_is_claimed_on_these_terms(
        self, settings: dict[str, Any], work: dict[str, Any], expected: CommitTerms
    ) -> None:
        assert an_omega(**settings).terms(work_of(**work)) == expected

    @pytest.mark.parametrize(
        ("own", "lost", "expected"),
        [
            (0, 2, 0),
            (0, 3, 2),
            (0, 4, 4),
            (0, 5, 6),
            # No higher than the scheduler may claim with.
            (0, 6, 6),
            (0, 99, 6),
            (-3, 4, 1),
            # Nor lower than its own.
            (9, 3, 9),
            (5, 3, 6),
        ],
    )
    def test_precedence_rises_with_each_attempt_that_is_lost(
        self, own: int, lost: int, expected: int
    ) -> None:
        cell = cell_of(8)
        cell.set_limits("s", None, None, 6)
        work = work_of(lost=lost, precedence=own)
        assert an_omega(patience=3, raise_by=2).precedence(work, cell) == expected
        assert an_omega().precedence(work, cell) == own

    def test_a_rest_lasts_for_the_backoff_or_a_decision(self) -> None:
        for settings, rest in (
            ({"backoff": 7 * SECOND, "t_job": 9 * SECOND}, 7 * SECOND),
            ({"backoff": 0, "t_job": 9 * SECOND, "t_task": 0}, 9 * SECOND),
        ):
            engine, cell = an_omega(weight=1.0, **settings), cell_of(8)
            cell.commit(Transaction("rival", wants=_wants(8)))
            thinking = only(submit(engine, cell, job("a", 8).job, 0), Think)
            _, effects = end(engine, cell, thinking, SECOND)
            assert only(effects, WakeMe) == WakeMe(SECOND + rest, "rest")

    def test_the_same_tasks_held_back_again_are_not_told_again(self) -> None:
        engine, cell = an_omega(weight=1.0, detection="coarse", backoff=0), cell_of(16)
        cell.commit(Transaction("rival", wants=_wants(16)))
        effects = submit(engine, cell, job("a", 12).job, 0)
        told = []
        for at in range(3):
            told.append([type(each).__name__ for each in effects])
            effects = answered_too_late(engine, cell, only(effects, Think), at)
        assert [names.count("Explain") for names in told] == [1, 0, 0]

    def test_jobs_of_which_as_many_tasks_are_held_back_are_each_told(self) -> None:
        engine, cell = an_omega(weight=1.0, detection="coarse", backoff=0), cell_of(16)
        cell.commit(Transaction("rival", wants=_wants(16)))
        effects = submit(engine, cell, job("a", 12).job, 0)
        assert only(effects, Explain).tasks.tolist() == tasks_of(0, 8, 9, 10, 11).tolist()
        submit(engine, cell, job("b", 12).job, 1)
        effects = answered_too_late(engine, cell, only(effects, Think))
        assert only(effects, Explain).tasks.tolist() == tasks_of(1, 8, 9, 10, 11).tolist()


def answered_too_late(engine: Omega, cell: Cell, thinking: Think, at: int = 0) -> Any:
    """The machine has changed meanwhile, so that nothing is accepted."""
    commit = only(engine.handle(DecisionDue(thinking.token), cell, at), Commit)
    rows = np.zeros(1, np.int32)
    shapes = np.full(1, cell.shape(Resources(0, 0)), np.int32)
    touch = Claims(tasks_of(50 + at, 0), rows, shapes, cell.versions(rows))
    assert cell.commit(Transaction("other", touch)).all_accepted
    outcome = cell.commit(commit.transaction)
    assert not outcome.accepted.any()
    return engine.handle(Committed(commit.token, outcome), cell, at)


def _wants(cores: int) -> Wants:
    return Wants(1.0, (1_000 * cores, 0), LEASE)


class TestRegions:
    @pytest.mark.parametrize(("regions", "apart"), [(7, 2), (3, 1), (2, 1), (6, 2)])
    def test_replicas_begin_apart_and_search_every_region_once(
        self, regions: int, apart: int
    ) -> None:
        names = ("c", "a", "b")
        base = zlib.crc32(b"a")
        for at, name in enumerate(sorted(names)):
            peers = tuple(each for each in names if each != name)
            order = list(an_omega(name, peers, regions=regions)._regions_in_turn())
            assert order[0] == (base + apart * at) % regions
            assert sorted(order) == list(range(regions))

    def test_regions_are_equal_parts_of_the_machines(self) -> None:
        cell, engine = cell_of(*[4] * 7), an_omega(regions=3)
        parts = [np.flatnonzero(to_mask(engine._region(n, cell), 7)).tolist() for n in range(3)]
        assert parts == [[0, 1], [2, 3], [4, 5, 6]]


class TestExtraWorkers:
    def test_of_lost_workers_only_those_that_were_asked_for_are_placed_again(self) -> None:
        cell = cell_of(16)
        engine, made = an_engine(cell, (6, 6)), a_job("j", (6, 6))
        added(engine, cell, started(engine, cell, made, 1))
        lost = tasks_of(1, 4, 1, 3)
        cell.commit(Transaction(OPERATOR, releases=lost))
        event = TasksLost(made, 1, lost, np.array([5, 6, 7], np.int32), Why.MACHINE_GONE)
        thinking = only(engine.handle(event, cell, 0), Think)
        assert thinking.duration == 0
        claims, effects = end(engine, cell, thinking)
        assert claims.tasks.tolist() == tasks_of(1, 1).tolist()
        # Then it is whole again, and gets others for the two that were lost.
        again = claimed(engine, cell, effects).transaction.claims
        assert again.tasks.tolist() == tasks_of(1, 6, 7).tolist()

    @pytest.mark.parametrize(
        ("own", "extra"), [(3, 2), (PRECEDENCE_RANGE[0], PRECEDENCE_RANGE[0]), (0, -1)]
    )
    @pytest.mark.parametrize("at_start", [True, False])
    def test_extra_workers_are_like_the_others_but_one_precedence_below(
        self, own: int, extra: int, at_start: bool
    ) -> None:
        cell = cell_of(16)
        engine, made = an_engine(cell, at_start=at_start), a_job("j", (4, 2))
        group = structs.replace(made.groups[0], tags=("w",))
        made = structs.replace(made, groups=(group,), precedence=own)
        thinking = only(submit(engine, cell, made, 1), Think)
        claims, effects = end(engine, cell, thinking)
        shapes = claims.shapes.tolist()
        if not at_start:
            shapes += claimed(engine, cell, effects).transaction.claims.shapes.tolist()
        asked, more = (cell.shape(group.request, ("w",), each) for each in (own, extra))
        assert shapes == [asked, asked, more, more]

    def test_jobs_that_found_no_room_are_considered_again_in_their_order(self) -> None:
        cell = cell_of(8)
        engine = an_engine(cell)
        take(cell, 0, 4)
        # Number 8 first: as long as the machine is full, both wait.
        for number in (8, 1):
            effects = started(engine, cell, a_job(f"j{number}"), number)
            assert not scaling(effects) or number == 8
            for thinking in scaling(effects):
                take(cell, 0, 2, 77)
                commit = only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)
                outcome = cell.commit(commit.transaction)
                engine.handle(Committed(commit.token, outcome), cell, 0)
                cell.commit(Transaction(OPERATOR, releases=tasks_of(77, 0, 1)))
        cell.commit(Transaction(OPERATOR, releases=tasks_of(99, *range(4))))
        [thinking] = scaling(engine.handle(TimerFired(TIMER), cell, 30 * SECOND))
        assert thinking.job == 1

    def test_the_answer_to_a_release_is_not_that_to_a_claim(self) -> None:
        cell, phases = cell_of(16), (6, 4)
        engine = an_engine(cell, phases)
        added(engine, cell, started(engine, cell, a_job("j", phases), 1))
        [thinking] = scaling(started(engine, cell, a_job("k", phases), 2))
        effects = engine.handle(PhaseFinished(1, 0, 10 * SECOND), cell, 0)
        release = only(effects, Commit)
        outcome = cell.commit(release.transaction)
        assert not engine.handle(Committed(release.token, outcome), cell, 0)
        # The claim is still to be made, and only once.
        assert not engine.handle(DecisionDue(thinking.token - 1), cell, 0)
        commit = only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)
        assert set(commit.transaction.claims.tasks.tolist()) == set(
            tasks_of(2, 2, 3, 4, 5).tolist()
        )

    @pytest.mark.parametrize(
        ("policy", "taken", "sharing", "expected"),
        [
            ("max-parallelism", 0, 1, 3),
            ("max-parallelism", 1, 1, 2),
            ("max-parallelism", 1, 2, 1),
            ("max-parallelism", 5, 2, 0),
            ("global-cap", 0, 1, 1),
            ("relative-job-size", 0, 2, 1),
        ],
    )
    def test_room_is_what_the_scarcest_resource_leaves(
        self, policy: str, taken: int, sharing: int, expected: int
    ) -> None:
        request = (("cpu", 1_000), ("memory", 2), ("net", 0))
        used, capacity = {"cpu": 2_000, "memory": 3}, {"cpu": 10_000, "memory": 10}
        assert shared_room(policy, 0.5, request, used, capacity, sharing, taken) == expected

    def test_room_at_the_edges(self) -> None:
        assert shared_room("none", 1.0, (), {}, {}, 1) == MOST_TASKS
        assert shared_room("none", 1.0, (("gpu", 1),), {}, {"cpu": 5}, 1) == 0
        # More is in use than the cap allows.
        assert shared_room("global-cap", 0.5, (("cpu", 1),), {"cpu": 9}, {"cpu": 10}, 1) == 0
        assert most_workers("relative-job-size", 2.5, 40, 3) == 7
        assert most_workers("relative-job-size", 2.5, 6, 3) == 6
        assert most_workers("max-parallelism", 2.5, 40, 3) == 40
