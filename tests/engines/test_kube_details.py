"""Kubernetes' scheduler: refusals after a cancellation, early timers, and what counts as wanted."""

from __future__ import annotations

from serial_attempts import cell_of, only, take, tasks_of
from test_kube_attempts import T_TASK, a_kube, decide, giant, of, submit

from argosy.model.effects import Abandon, Commit, Think, WakeMe
from argosy.model.events import Committed, DecisionDue, JobCancelled, TimerFired
from argosy.testing.builders import SECOND, job


def test_a_task_cancelled_during_its_commit_is_not_tried_again_if_that_is_refused() -> None:
    for is_cancelled in (False, True):
        engine, cell, made = a_kube(), cell_of(1), job("a")
        thinking = only(submit(engine, cell, made, 0), Think)
        commit = only(engine.handle(DecisionDue(thinking.token), cell, T_TASK), Commit)
        if is_cancelled:
            engine.handle(JobCancelled(made.job, 0, tasks_of(0, 0)), cell, T_TASK)
        take(cell, 0, 1)
        answer = Committed(commit.token, cell.commit(commit.transaction))
        effects = engine.handle(answer, cell, T_TASK)
        assert bool(of(effects, Think)) is not is_cancelled


def test_a_timer_that_was_set_for_a_later_time_is_not_due_yet() -> None:
    engine, cell = a_kube(retry=SECOND, skip_hopeless_attempts=False), cell_of(4)
    effects = decide(engine, cell, only(submit(engine, cell, giant("a"), 0), Think), T_TASK)
    wake = only(effects, WakeMe)
    assert wake.at == T_TASK + SECOND
    assert not engine.handle(TimerFired(wake.name), cell, wake.at - 1)
    assert engine.handle(TimerFired(wake.name), cell, wake.at)


def test_a_decision_that_is_over_early_does_not_hold_up_others_where_tasks_wait_anyway() -> None:
    engine, cell = a_kube(retry=SECOND), cell_of(4)
    thinking = only(submit(engine, cell, giant("a"), 0), Think)
    submit(engine, cell, job("b"), 1)
    assert only(decide(engine, cell, thinking, 1), Think).job == 1


def test_tasks_that_are_cancelled_or_given_up_are_no_longer_wanted() -> None:
    engine, cell = a_kube(attempts=1), cell_of(4)
    thinking = only(submit(engine, cell, giant("first"), 0), Think)
    waits = job("waits", 3, cpu=500)
    submit(engine, cell, waits, 1)
    assert sum(engine._room._wanting.values()) == 4
    engine.handle(JobCancelled(waits.job, 1, tasks_of(1, 0, 1, 2)), cell, 0)
    assert sum(engine._room._wanting.values()) == 1
    assert only(decide(engine, cell, thinking, T_TASK), Abandon)
    assert not engine._room._wanting
