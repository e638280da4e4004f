"""Kubernetes' scheduler as a function from events to effects: attempts made, skipped and withdrawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, only, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.kube import Kube, KubeSettings
from argosy.model.effects import Abandon, Commit, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobSubmitted,
    TaskFinished,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.random import Random
from argosy.model.transactions import OPERATOR, Transaction
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import SECOND, job

T_TASK = 5_000


def a_kube(**settings: Any) -> Kube:
    return Kube(KubeSettings(**{"t_task": T_TASK, **settings}), Context("s", (), Random(1)))


def submit(engine: Kube, cell: Cell, submission: SimulatedJob, number: int, now: int = 0) -> Any:
    tasks = tasks_of(number, *range(submission.tasks))
    return engine.handle(JobSubmitted(submission.job, number, tasks), cell, now)


def decide(engine: Kube, cell: Cell, thinking: Think, now: int) -> Any:
    """The decision is due; a claim is answered at once."""
    effects = engine.handle(DecisionDue(thinking.token), cell, now)
    for effect in effects:
        if isinstance(effect, Commit):
            outcome = cell.commit(effect.transaction)
            return engine.handle(Committed(effect.token, outcome), cell, now)
    return effects


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def giant(name: str, **fields: Any) -> SimulatedJob:
    return job(name, 1, cpu=64_000, **fields)


@pytest.mark.parametrize("late", [-1, 0, 1])
def test_attempts_are_skipped_only_while_decisions_take_exactly_as_long_as_told(late: int) -> None:
    engine, cell = a_kube(retry=0), cell_of(4)
    thinking = only(submit(engine, cell, giant("a"), 0), Think)
    effects = decide(engine, cell, thinking, T_TASK + late)
    assert bool(of(effects, Think)) == (late > 0)
    # An attempt that was over early is not repeated before its time.
    assert [wake.at for wake in of(effects, WakeMe)] == {
        -1: [T_TASK],
        0: [T_TASK + 60 * SECOND],
        1: [],
    }[late]


def test_skipped_attempts_are_accounted_for_every_minute() -> None:
    engine, cell = a_kube(retry=0), cell_of(4)
    effects = decide(engine, cell, only(submit(engine, cell, giant("a"), 0), Think), T_TASK)
    assert only(effects, WakeMe).at == T_TASK + 60 * SECOND


def test_attempts_of_a_task_that_was_given_up_do_not_keep_others_from_being_skipped() -> None:
    engine, cell = a_kube(retry=0, attempts=3), cell_of(4)
    now, effects = 0, submit(engine, cell, giant("a"), 0)
    while not of(effects, Abandon):
        if thinking := of(effects, Think):
            now += thinking[0].duration
            effects = decide(engine, cell, thinking[0], now)
        else:
            now = only(effects, WakeMe).at
            effects = engine.handle(TimerFired("retry"), cell, now)
    thinking = only(submit(engine, cell, giant("b"), 1, now), Think)
    assert not of(decide(engine, cell, thinking, now + T_TASK), Think)


def test_no_attempt_is_skipped_where_decisions_take_no_time() -> None:
    engine, cell = a_kube(retry=SECOND, t_task=0), cell_of(4)
    effects = decide(engine, cell, only(submit(engine, cell, giant("a"), 0), Think), 0)
    wake = only(effects, WakeMe)
    assert wake.at == SECOND
    assert only(engine.handle(TimerFired(wake.name), cell, wake.at), Think)


def test_a_timer_that_is_set_serves_later_times_too() -> None:
    engine, cell = a_kube(), cell_of(4)
    wake = only(
        decide(engine, cell, only(submit(engine, cell, giant("a"), 0), Think), T_TASK), WakeMe
    )
    thinking = only(submit(engine, cell, giant("b"), 1, SECOND), Think)
    effects = decide(engine, cell, thinking, SECOND + T_TASK)
    assert [effect.at for effect in of(effects, WakeMe) if effect.at >= wake.at] == []


def test_tasks_are_told_anew_when_the_task_that_goes_first_is_cancelled() -> None:
    engine, cell = a_kube(retry=0), cell_of(4)
    first, second = (giant(name, precedence=5) for name in ("first", "second"))
    thinking = only(submit(engine, cell, first, 0), Think)
    submit(engine, cell, job("low", 1), 1)
    now, told = 0, []

    def go_on(thinking: Think) -> Think:
        nonlocal now
        now += T_TASK
        effects = decide(engine, cell, thinking, now)
        told.extend(
            effect.explanation.refused.task
            for effect in of(effects, Explain)
            if effect.explanation.refused is not None
            and effect.explanation.refused.why is Why.BEHIND
        )
        return only(effects, Think)

    for _ in range(3):
        thinking = go_on(thinking)
    assert told == tasks_of(0, 0).tolist()
    submit(engine, cell, second, 2, now)
    thinking = go_on(thinking)
    engine.handle(JobCancelled(first.job, 0, tasks_of(0, 0)), cell, now)
    for _ in range(3):
        thinking = go_on(thinking)
    assert told == tasks_of(0, 0).tolist() + tasks_of(2, 0).tolist()


def test_a_task_cancelled_during_its_decision_is_not_claimed_and_the_next_one_is() -> None:
    engine, cell = a_kube(), cell_of(4)
    gone = job("gone", 1)
    thinking = only(submit(engine, cell, gone, 0), Think)
    submit(engine, cell, job("next", 1), 1)
    engine.handle(JobCancelled(gone.job, 0, tasks_of(0, 0)), cell, 0)
    effects = engine.handle(DecisionDue(thinking.token), cell, T_TASK)
    assert not of(effects, Commit)
    thinking = only(effects, Think)
    assert thinking.job == 1
    commit = only(engine.handle(DecisionDue(thinking.token), cell, 2 * T_TASK), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(1, 0).tolist()


def test_tasks_that_require_different_machines_do_not_share_their_lack_of_room() -> None:
    engine, cell = a_kube(), cell_of(4, 4, m1={"disk": "ssd"})
    nowhere = job("nowhere", 1, requires={"disk": "tape"})
    decide(engine, cell, only(submit(engine, cell, nowhere, 0), Think), T_TASK)
    thinking = only(
        submit(engine, cell, job("here", 1, requires={"disk": "ssd"}), 1, SECOND), Think
    )
    commit = only(engine.handle(DecisionDue(thinking.token), cell, SECOND + T_TASK), Commit)
    assert commit.transaction.claims.machines.tolist() == [1]


def test_room_given_back_ends_the_skipping_of_attempts() -> None:
    engine, cell = a_kube(retry=0), cell_of(1)
    thinking = only(submit(engine, cell, job("runs", 1), 0), Think)
    assert not decide(engine, cell, thinking, T_TASK)
    thinking = only(submit(engine, cell, job("waits", 1), 1, SECOND), Think)
    only(decide(engine, cell, thinking, SECOND + T_TASK), WakeMe)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(0, 0)))
    shape = np.array([cell.shape(job("runs", 1).job.groups[0].request)], np.int32)
    ended = TaskFinished(tasks_of(0, 0), np.zeros(1, np.int32), np.zeros(1, np.int64), shape)
    # An attempt is under way then, half of whose time has passed.
    begun = only(engine.handle(ended, cell, SECOND + 3 * T_TASK + 2_000), Think)
    assert begun.duration == 3_000
    assert begun.earlier is not None
    assert begun.earlier.total == begun.earlier.on_job == 2 * T_TASK + 2_000
    again = only(decide(engine, cell, begun, SECOND + 4 * T_TASK), Think)
    assert not of(decide(engine, cell, again, SECOND + 5 * T_TASK), Think)
    assert cell.machine_of(int(tasks_of(1, 0)[0])) == 0


def test_a_task_gets_its_attempts_though_another_is_cancelled_during_one_of_them() -> None:
    engine, cell = a_kube(retry=0, attempts=4), cell_of(4)
    effects = decide(engine, cell, only(submit(engine, cell, giant("a"), 0), Think), T_TASK)
    only(effects, WakeMe)
    # The second of its attempts was passed over; the third is under way.
    other, now = giant("b"), 2 * T_TASK + 1_000
    effects = submit(engine, cell, other, 1, now)
    engine.handle(JobCancelled(other.job, 1, tasks_of(1, 0)), cell, now)
    while not of(effects, Abandon):
        if thinking := of(effects, Think):
            now += thinking[0].duration
            effects = decide(engine, cell, thinking[0], now)
        else:
            now = only(effects, WakeMe).at
            effects = engine.handle(TimerFired("retry"), cell, now)
    assert only(effects, Abandon).explanation.refused.lacking == 4


@pytest.mark.parametrize(("order", "first"), [("ready", 1), ("created", 0)])
def test_a_task_from_the_retry_queue_may_go_before_those_created_later(
    order: str, first: int
) -> None:
    engine, cell = a_kube(order=order, retry=4 * T_TASK, skip_hopeless_attempts=False), cell_of(1)
    thinking = only(submit(engine, cell, giant("old"), 0), Think)
    # The old one fails, the others come, and the old one is ready again while they wait.
    decide(engine, cell, thinking, T_TASK)
    at = 4 * T_TASK
    thinking = only(submit(engine, cell, giant("a", submit=0), 1, at), Think)
    submit(engine, cell, giant("b"), 2, at)
    decided = [thinking.job]
    for turn in range(1, 4):
        effects = decide(engine, cell, thinking, at + turn * T_TASK)
        found = of(effects, Think)
        if not found:
            break
        thinking = found[0]
        decided.append(thinking.job)
    assert decided[1 + first] == 0, decided


def test_an_attempt_that_finds_no_machine_may_take_longer() -> None:
    engine, cell = a_kube(t_failed=3_000), cell_of(1)
    assert only(submit(engine, cell, job("small", 1, cpu=100), 0), Think).duration == T_TASK
    engine, cell = a_kube(t_failed=3_000), cell_of(1)
    assert only(submit(engine, cell, giant("large"), 0), Think).duration == T_TASK + 3_000
