"""SwarmKit's strategy: the fewest tasks of the same job, then the fewest of all."""

from __future__ import annotations

from typing import Any

import numpy as np
from serial_attempts import cell_of, end, only, placed, submit, take, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.spread.engine import Spread, SpreadSettings
from argosy.model.effects import Explain, Think
from argosy.model.events import (
    DecisionDue,
    Event,
    JobCancelled,
    JobSubmitted,
    TaskFinished,
    TasksLost,
)
from argosy.model.explanations import Why
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Transaction
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, job


def a_spread(seed: int = 1) -> Spread:
    return Spread(SpreadSettings(), Context("s", (), Random(seed)))


def begin(engine: Spread, cell: Cell, event: Event) -> tuple[Any, Any]:
    """Lets the decision that follows an event run its course."""
    return end(engine, cell, only(engine.handle(event, cell, 0), Think))


def finish(engine: Spread, cell: Cell, number: int, index: int, machine: int) -> None:
    """One task ends, and its claim is released."""
    gone = tasks_of(number, index)
    cell.commit(Transaction(OPERATOR, releases=gone))
    where, nothing = np.array([machine], np.int32), np.zeros(1, np.int64)
    engine.handle(TaskFinished(gone, where, nothing, nothing.astype(np.int32)), cell, 0)


def test_a_machine_with_fewer_tasks_of_the_job_is_preferred_to_one_with_fewer_of_all() -> None:
    engine, cell, wide = a_spread(), cell_of(8, 8), job("a", 2).job
    claims, _ = begin(engine, cell, JobSubmitted(wide, 0, tasks_of(0, 0)))
    [one] = claims.machines.tolist()
    take(cell, one, 7)
    for number in (1, 2, 3):
        assert placed(engine, cell, job(f"b{number}", 1).job, number) == [1 - one]
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, *range(7))))
    # Three tasks of others count less than one of the same job.
    claims, _ = begin(engine, cell, JobSubmitted(wide, 0, tasks_of(0, 1)))
    assert claims.machines.tolist() == [1 - one]


def test_tasks_of_one_job_are_dealt_out_evenly() -> None:
    engine, cell = a_spread(), cell_of(4, 8, 8)
    for number in range(2):
        machines = placed(engine, cell, job(f"j{number}", 6).job, number)
        assert np.bincount(machines, minlength=3).tolist() == [2, 2, 2]


def test_tasks_of_one_job_are_dealt_out_evenly_over_machines_with_unlike_numbers_of_others() -> (
    None
):
    engine, cell = a_spread(), cell_of(8, 8)
    take(cell, 0, 8)
    assert placed(engine, cell, job("a", 3).job, 0) == [1, 1, 1]
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, *range(8))))
    assert sorted(placed(engine, cell, job("b", 4).job, 1)) == [0, 0, 1, 1]


def test_groups_of_one_job_count_each_other() -> None:
    small = group_with_truth(1, Resources(1_000, GIB), (SECOND,))
    for seed in range(4):
        engine, cell = a_spread(seed), cell_of(8, 8)
        assert sorted(placed(engine, cell, simulated_job("a", small, small).job, 0)) == [0, 1]


def test_a_task_of_another_group_counts_more_than_tasks_of_other_jobs() -> None:
    small = group_with_truth(1, Resources(1_000, GIB), (SECOND,))
    engine, cell = a_spread(), cell_of(8, 8)
    take(cell, 0, 8)
    assert placed(engine, cell, job("other", 5).job, 0) == [1] * 5
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, *range(8))))
    assert placed(engine, cell, simulated_job("a", small, small).job, 1) == [0, 1]


def test_groups_of_one_job_see_what_the_others_take() -> None:
    groups = [group_with_truth(1, Resources(3_000, GIB), (SECOND,)) for _ in range(2)]
    engine, cell = a_spread(), cell_of(4)
    thinking = only(submit(engine, cell, simulated_job("b", *groups).job, 0), Think)
    claims, effects = end(engine, cell, thinking)
    assert claims.tasks.tolist() == tasks_of(0, 0).tolist()
    assert only(effects, Explain).tasks.tolist() == tasks_of(0, 1).tolist()


def test_ended_tasks_no_longer_count() -> None:
    engine, cell = a_spread(), cell_of(8, 8)
    machines = placed(engine, cell, job("a", 3).job, 0)
    twice = max(set(machines), key=machines.count)
    for index in range(3):
        if machines[index] == twice:
            finish(engine, cell, 0, index, twice)
    assert placed(engine, cell, job("b", 1).job, 1) == [twice]


def test_lost_tasks_no_longer_count() -> None:
    engine, cell, wide = a_spread(), cell_of(8, 8), job("a", 3).job
    machines = placed(engine, cell, wide, 0)
    twice = max(set(machines), key=machines.count)
    lost = tasks_of(0, *(index for index in range(3) if machines[index] == twice))
    cell.commit(Transaction(OPERATOR, releases=lost))
    event = TasksLost(wide, 0, lost, np.full(2, twice, np.int32), Why.PREEMPTED)
    claims, _ = begin(engine, cell, event)
    assert claims.machines[0] == twice


def test_refused_claims_do_not_count() -> None:
    for seed in range(6):
        engine, cell, refused = a_spread(seed), cell_of(1, 8), job("a", 2).job
        thinking = only(submit(engine, cell, refused, 0), Think)
        take(cell, 0, 1)
        claims, _ = end(engine, cell, thinking)
        assert sorted(claims.machines.tolist()) == [0, 1]
        engine.handle(JobCancelled(refused, 0, tasks_of(0, 0, 1)), cell, 0)
        cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
        submit(engine, cell, job("b", 1).job, 1)
        effects = engine.handle(DecisionDue(thinking.token + 1), cell, 0)
        claims, _ = end(engine, cell, only(effects, Think))
        assert claims.machines.tolist() == [0]


def test_tasks_placed_before_a_restart_are_not_counted_below_zero() -> None:
    engine, cell = a_spread(), cell_of(8, 8)
    for index in range(3):
        finish(engine, cell, 7, index, 0)
    machines = placed(engine, cell, job("a", 1).job, 0) + placed(engine, cell, job("b", 1).job, 1)
    assert sorted(machines) == [0, 1]


def test_tasks_that_never_had_a_machine_are_placed_like_new_ones() -> None:
    engine, cell = a_spread(), cell_of(8, 8)
    one = placed(engine, cell, job("a", 1).job, 0)
    lost = TasksLost(job("b", 1).job, 1, tasks_of(1, 0), np.array([-1], np.int32), Why.FAILED)
    claims, _ = begin(engine, cell, lost)
    assert claims.machines.tolist() == [1 - one[0]]


def test_only_a_gang_waits_until_there_is_room_for_all() -> None:
    for gang in (False, True):
        engine, cell = a_spread(), cell_of(2)
        thinking = only(submit(engine, cell, job("a", 3, gang=gang).job, 0), Think)
        claims, effects = end(engine, cell, thinking)
        assert (claims is None) is gang
        told = [len(effect.tasks) for effect in effects if isinstance(effect, Explain)]
        assert told == ([3] if gang else [1])
