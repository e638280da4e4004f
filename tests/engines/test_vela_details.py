"""Vela: time-outs of several agents, what a second attempt is told, and tasks whose job changes."""

from __future__ import annotations

import numpy as np
import pytest
from serial_attempts import only, tasks_of
from test_vela_steps import a_vela, due, federation, found, of, ready_to_commit, refusal, submit

from argosy.model.effects import Abandon, Commit, Explain, Sample, Think, WakeMe
from argosy.model.events import Committed, JobChanged, TimerFired
from argosy.model.explanations import UNANSWERED, Why
from argosy.model.machines import CLUSTER_GROUP, Machine
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, RelabelMachine, Transaction
from argosy.testing.builders import GIB, SECOND, job

SMALL = Resources(1_000, GIB)


def test_a_time_out_is_that_of_every_agent_asked_at_once() -> None:
    engine, cell = a_vela("abc", timeout=SECOND), federation(a=1, b=2, c=4)
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    wake = only(asked, WakeMe)
    samples = {sample.cluster: sample for sample in of(asked, Sample)}
    assert not engine.handle(found(samples["b"], []), cell, 1)
    effects = engine.handle(TimerFired(wake.name), cell, wake.at)
    assert only(effects, Explain).explanation.ruled_out[UNANSWERED] == 5
    # What comes later than that is of no use.
    assert not engine.handle(found(samples["a"], [0]), cell, wake.at + 1)


def test_each_attempt_is_told_what_was_seen_in_that_one() -> None:
    engine, cell = a_vela("a", backoff=SECOND), federation(a=3)
    effects = submit(engine, cell, "j", 0)
    for attempt in range(3):
        asked = due(engine, cell, effects, attempt)
        seen = found(only(asked, Sample), [], drawn=3, ruled_out={"cpu": 3})
        effects = engine.handle(seen, cell, attempt)
        told = only(effects, Explain).explanation
        assert (told.looked_at, told.ruled_out) == (3, {"cpu": 3})
        effects = engine.handle(TimerFired(only(effects, WakeMe).name), cell, attempt)


def test_the_size_of_a_cluster_is_that_of_now() -> None:
    engine, cell = a_vela("ab"), federation(a=2, b=1)
    assert [engine._machines_in(name, cell) for name in "ab"] == [2, 1]
    joins = {CLUSTER_GROUP: ("b",)}
    late = Machine("late", Resources(4_000, 16 * GIB), {}, joins)
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(late),)))
    assert [engine._machines_in(name, cell) for name in "ab"] == [2, 2]
    cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(0, {}, joins),)))
    assert [engine._machines_in(name, cell) for name in "ab"] == [1, 3]


def test_a_task_is_claimed_as_its_job_is_by_then() -> None:
    engine, cell = a_vela("a"), federation(a=1)
    asked = due(engine, cell, submit(engine, cell, "j", 0, tasks=1), 0)
    nothing = tasks_of(0)
    changed = JobChanged(job("j", 1, precedence=5).job, 0, nothing, nothing)
    engine.handle(changed, cell, 0)
    effects = engine.handle(found(only(asked, Sample), [0]), cell, 0)
    claims = only(due(engine, cell, effects, 0), Commit).transaction.claims
    assert claims.shapes.tolist() == [cell.shape(SMALL, (), 5)]


@pytest.mark.parametrize(
    ("why", "conflicts"), [(Why.NO_ROOM, 1), (Why.JOB_LIMIT, 1), (Why.FILTERED, 0)]
)
def test_only_conflicts_and_limits_are_usual(why: Why, conflicts: int) -> None:
    engine, cell = a_vela("a", backoff=SECOND), federation(a=1)
    commit = ready_to_commit(engine, cell, [0])
    effects = engine.handle(Committed(commit.token, refusal(why)), cell, 0)
    assert engine.figures()["conflicts"] == conflicts
    assert bool(of(effects, Explain)) is not bool(conflicts)


@pytest.mark.parametrize("ends", [True, False])
def test_only_tasks_that_end_wait_for_room_as_long_as_it_takes(ends: bool) -> None:
    engine, cell = a_vela("a", queue_batch=True, reschedules=0, backoff=SECOND), federation(a=1)
    effects = submit(engine, cell, "j", 0, seconds=5 if ends else None)
    asked = due(engine, cell, effects, 0)
    effects = engine.handle(found(only(asked, Sample), []), cell, 0)
    assert bool(of(effects, Abandon)) is not ends
    assert bool(of(effects, WakeMe)) is ends


def test_what_ends_sooner_is_woken_for_first() -> None:
    engine, cell = a_vela("ab", cores=1, t_read=100, t_decision=0), federation(a=4, b=4)
    asked = due(engine, cell, submit(engine, cell, "j", 0), 0)
    long, short = of(asked, Sample)
    effects = engine.handle(found(long, [0, 1, 2, 3]), cell, 0)
    assert only(effects, WakeMe).at == 400
    # Both share the processor: the shorter one ends at 200, the longer one at 500.
    effects = engine.handle(found(short, [4]), cell, 0)
    first = only(effects, WakeMe)
    assert first.at == 200
    effects = engine.handle(TimerFired(first.name), cell, 200)
    last = only(effects, WakeMe)
    assert last.at == 500
    assert only(engine.handle(TimerFired(last.name), cell, 500), Think)
    assert np.isclose(engine.figures()["computing s"], 500e-6)


@pytest.mark.parametrize(("prefer", "expected"), [("highest", 0), ("lowest", 1)])
def test_the_highest_score_is_best_unless_the_lowest_is_preferred(
    prefer: str, expected: int
) -> None:
    # The first machine has two points and the second one.
    engine, cell = a_vela("a", prefer=prefer), federation(a=2)
    commit = ready_to_commit(engine, cell, [0, 1])
    assert commit.transaction.claims is not None
    assert commit.transaction.claims.machines.tolist() == [expected]
    assert commit.explanation is not None
    assert (commit.explanation.rule, commit.explanation.second) == (
        f"{prefer} score",
        1 - expected,
    )
