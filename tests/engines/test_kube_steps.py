"""Kubernetes' scheduler step by step: limits, when failures are told, turns and who may preempt; and its
pieces at their bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, only, take, tasks_of
from test_kube_attempts import T_TASK, a_kube, decide, giant, of, submit

from argosy.agents.committing import refused
from argosy.cell.bitmaps import to_mask
from argosy.engines.kube.engine import _window, looks_at
from argosy.engines.kube.queues import Batch, QueuedPod, ReadyQueue, RetryQueue, TaskKind
from argosy.engines.kube.skipped_attempts import VainAttempts
from argosy.model.effects import Commit, EarlierTime, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobChanged,
    TimerFired,
)
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.testing.builders import GIB, SECOND, job

PLAIN = TaskKind(0, 0, {})


@pytest.mark.parametrize(
    ("why", "waits"),
    [
        (Why.RESOURCE_LIMIT, True),
        (Why.JOB_LIMIT, True),
        (Why.PRECEDENCE_LIMIT, True),
        (Why.NO_ROOM, False),
    ],
)
def test_only_a_task_at_a_limit_waits_in_the_retry_queue(why: Why, waits: bool) -> None:
    engine, cell = a_kube(retry=SECOND), cell_of(4)
    thinking = only(submit(engine, cell, job("a", 2), 0), Think)
    commit = only(engine.handle(DecisionDue(thinking.token), cell, T_TASK), Commit)
    outcome = refused(Refusal(why, machine=0), ("cpu", "memory"))
    effects = engine.handle(Committed(commit.token, outcome), cell, T_TASK)
    # The other task is next in either case.
    assert only(effects, Think).duration == T_TASK
    told = [each.tasks.tolist() for each in of(effects, Explain)]
    assert told == ([tasks_of(0, 0, 1).tolist()] if waits else [])
    following = decide(engine, cell, only(effects, Think), 2 * T_TASK)
    assert of(following, WakeMe) == ([WakeMe(T_TASK + SECOND, "retry")] if waits else [])
    assert len(of(following, Think)) == (not waits)


def test_failures_are_told_at_the_first_the_second_the_fourth_and_the_eighth_attempt() -> None:
    engine, cell = a_kube(retry=SECOND, skip_hopeless_attempts=False), cell_of(4)
    effects, now, told = submit(engine, cell, giant("a"), 0), 0, []
    for attempt in range(1, 10):
        now += T_TASK
        effects = decide(engine, cell, only(effects, Think), now)
        told += [attempt] * len(of(effects, Explain))
        wake = only(effects, WakeMe)
        assert wake.at == now + SECOND
        now = wake.at
        effects = engine.handle(TimerFired(wake.name), cell, now)
    assert told == [1, 2, 4, 8]


@pytest.mark.parametrize(("setting", "own"), [(True, True), (True, False), (False, True)])
def test_a_task_preempts_if_its_scheduler_and_its_job_may(setting: bool, own: bool) -> None:
    engine, cell = a_kube(preempt=setting), cell_of(1)
    take(cell, 0, 1)
    thinking = only(submit(engine, cell, job("a", precedence=5, preempts=own), 0), Think)
    effects = engine.handle(DecisionDue(thinking.token), cell, T_TASK)
    assert [each.transaction.preempt for each in of(effects, Commit)] == [True] * (setting and own)
    # Where there is room, the right is claimed with the machine.
    engine, cell = a_kube(preempt=setting), cell_of(1)
    thinking = only(submit(engine, cell, job("a", precedence=5, preempts=own), 0), Think)
    commit = only(engine.handle(DecisionDue(thinking.token), cell, T_TASK), Commit)
    assert commit.transaction.preempt is (setting and own)


@pytest.mark.parametrize(
    ("score", "expected", "rule"),
    [
        ("least-allocated", [1, 1, 1, 1], "least-allocated"),
        ("most-allocated", [0, 1, 1, 1], "most-allocated"),
    ],
)
def test_the_score_decides_between_machines_and_names_the_choice(
    score: str, expected: list[int], rule: str
) -> None:
    engine, cell = a_kube(score=score), cell_of(4, 4)
    take(cell, 0, 3)
    effects, chosen, now = submit(engine, cell, job("a", 4, cpu=800), 0), [], 0
    while thinking := of(effects, Think):
        now += T_TASK
        commit = only(engine.handle(DecisionDue(thinking[0].token), cell, now), Commit)
        chosen += commit.transaction.claims.machines.tolist()
        assert commit.explanation.rule == rule
        effects = engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, now)
    assert chosen == expected


def test_machines_take_turns_and_a_full_turn_is_followed_by_all_others() -> None:
    engine, cell = a_kube(looks=1), cell_of(4, 4, 4)
    take(cell, 1, 4)
    effects, chosen, now = submit(engine, cell, job("a", 4), 0), [], 0
    while thinking := of(effects, Think):
        now += T_TASK
        commit = only(engine.handle(DecisionDue(thinking[0].token), cell, now), Commit)
        chosen += commit.transaction.claims.machines.tolist()
        effects = engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, now)
    # The second turn is that of m1, which is full; the emptiest of the others takes the task.
    assert chosen == [0, 2, 2, 0]


@pytest.mark.parametrize(
    ("first", "looks", "machines", "expected"),
    [(0, 2, 5, [0, 1]), (3, 2, 5, [3, 4]), (4, 2, 5, [0, 4]), (4, 4, 5, [0, 1, 2, 4])],
)
def test_a_window_wraps_round(first: int, looks: int, machines: int, expected: list[int]) -> None:
    mask = to_mask(_window(first, looks, machines), machines)
    assert np.flatnonzero(mask).tolist() == expected


def test_fewer_machines_are_looked_at_the_more_there_are() -> None:
    found = {count: looks_at(count) for count in (0, 99, 100, 101, 250, 1_000, 5_000, 5_750, 9_999)}
    assert found == {
        0: 0,
        99: 99,
        100: 100,
        101: 100,
        250: 120,
        1_000: 420,
        5_000: 500,
        5_750: 287,
        9_999: 499,
    }


def test_tasks_added_to_a_job_are_tried_at_once_and_removed_ones_are_not() -> None:
    engine, cell = a_kube(), cell_of(4)
    first = only(submit(engine, cell, job("a", 2), 0), Think)
    group = TaskGroup(3, Resources(1_000, GIB))
    changed = JobChanged(Job("a", (group,)), 0, tasks_of(0, 2), tasks_of(0, 1))
    assert engine.handle(changed, cell, 1) == ()
    effects = decide(engine, cell, first, T_TASK)
    following = only(effects, Think)
    commit = only(engine.handle(DecisionDue(following.token), cell, 2 * T_TASK), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(0, 2).tolist()
    assert engine.handle(Committed(commit.token, cell.commit(commit.transaction)), cell, 0) == ()
    # An idle scheduler begins with them, and has nothing to do when they are withdrawn.
    more = JobChanged(Job("a", (group,)), 0, tasks_of(0, 1), tasks_of(0)[:0])
    thinking = only(engine.handle(more, cell, 3 * T_TASK), Think)
    gone = JobCancelled(Job("a", (group,)), 0, tasks_of(0, 1))
    assert engine.handle(gone, cell, 3 * T_TASK) == ()
    assert engine.handle(DecisionDue(thinking.token), cell, 4 * T_TASK) == ()


def test_those_who_are_behind_a_task_are_told_anew_when_it_has_gone() -> None:
    engine, cell = a_kube(retry=0, skip_hopeless_attempts=False), cell_of(4)
    high = giant("high", precedence=5)
    thinking = only(submit(engine, cell, high, 0), Think)
    low = job("low", 2)
    submit(engine, cell, low, 1)

    def behind(effects: Any) -> list[tuple[list[int], int]]:
        found = [each for each in of(effects, Explain) if each.explanation.refused is not None]
        return [(each.tasks.tolist(), each.explanation.refused.task) for each in found]

    [mine] = tasks_of(0, 0).tolist()
    effects = decide(engine, cell, thinking, T_TASK)
    assert behind(effects) == []
    effects = decide(engine, cell, only(effects, Think), 2 * T_TASK)
    assert behind(effects) == [(tasks_of(1, 0, 1).tolist(), mine)]
    effects = decide(engine, cell, only(effects, Think), 3 * T_TASK)
    assert behind(effects) == []
    other = giant("other", precedence=4)
    assert submit(engine, cell, other, 2, 3 * T_TASK) == ()
    engine.handle(JobCancelled(high.job, 0, tasks_of(0, 0)), cell, 3 * T_TASK)
    effects = decide(engine, cell, only(effects, Think), 4 * T_TASK)
    thinking = only(effects, Think)
    assert thinking.job == 2
    effects = decide(engine, cell, thinking, 5 * T_TASK)
    effects = decide(engine, cell, only(effects, Think), 6 * T_TASK)
    assert behind(effects) == [(tasks_of(1, 0, 1).tolist(), tasks_of(2, 0).tolist()[0])]


class TestPieces:
    def test_a_task_put_aside_waits_or_is_ready_at_once(self) -> None:
        for retry in (0, 7):
            ready, waiting = ReadyQueue(), RetryQueue(retry)
            vain = VainAttempts(ready, waiting, 5, retry)
            pod = QueuedPod(0, PLAIN, 1, 0)
            vain.put_aside(pod, 10)
            assert pod.failed_at == 10
            assert (len(waiting), bool(ready)) == ((1, False) if retry else (0, True))
            if retry:
                assert waiting.due == 17
                waiting.move_due(16, ready)
                assert not ready
                waiting.move_due(17, ready)
                assert ready.pop() is pod

    def test_time_of_skipped_attempts_is_reported_once_in_total_and_by_job(self) -> None:
        ready, waiting = ReadyQueue(), RetryQueue(0)
        vain = VainAttempts(ready, waiting, 5, 0)
        for number in (1, 2):
            ready.put_back(QueuedPod(number, PLAIN, number, 0))
        vain.since = 100
        found = vain.until(112)
        assert found is not None
        assert (found[0].job, found[1]) == (1, 115)
        # Two whole attempts, and two microseconds of the third.
        assert vain.take_passed() == 3
        assert vain.take_passed() == 0
        assert vain.take_unreported(1) == EarlierTime(12, 7)
        assert vain.take_unreported(1) is None
        assert vain.take_unreported(2) == EarlierTime(0, 5)
        assert vain.take_unreported(2) is None
        assert vain.most == 2
        vain.since = 200
        assert vain.earliest_attempt(5) == 200 + 2 * 5

    def test_only_silent_batches_are_told_that_others_pass(self) -> None:
        ready, high = ReadyQueue(), TaskKind(0, 5, {})
        told, silent, late = (
            Batch(number, PLAIN, tasks_of(number, 0, 1), since)
            for number, since in ((1, 0), (2, 10), (3, 11))
        )
        for batch in (told, silent, late):
            ready.add(batch)
        told.is_fresh = False
        ready.put_back(QueuedPod(0, high, 9, 0))
        assert ready.passed_over(0, 10) == []
        assert ready.passed_over(5, 10) == [silent]
        assert ready.passed_over(5, 10) == []
        assert ready.passed_over(5, 11) == [late]
        ready.tell_again()
        assert ready.passed_over(5, 11) == [silent, late]
