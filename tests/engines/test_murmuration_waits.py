"""Murmuration's tasks without a machine, and what it learns: cases at the edge of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, only, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context, wait_view_for
from argosy.engines.murmuration import Murmuration, MurmurationSettings
from argosy.engines.murmuration.estimates import Learner
from argosy.model.effects import Enqueue, Explain, Think, WakeMe
from argosy.model.events import (
    DecisionDue,
    JobCancelled,
    JobSubmitted,
    MachineJoined,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
from argosy.testing.builders import GIB, SECOND, job, shared_job

NONE_TO_COME = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def a_murmuration(**settings: Any) -> Murmuration:
    made = MurmurationSettings(**settings)
    waits = wait_view_for(Murmuration, made)
    return Murmuration(made, Context("s", (), Random(1), waits=waits))


def of(effects: Any, kind: type) -> list[Any]:
    return [effect for effect in effects if isinstance(effect, kind)]


def submit(engine: Murmuration, cell: Cell, made: Job, number: int, now: int = 0) -> Any:
    tasks = tasks_of(number, *range(made.tasks))
    return engine.handle(JobSubmitted(made, number, tasks), cell, now)


def decide(engine: Murmuration, cell: Cell, effects: Any, now: int = 0) -> Any:
    return engine.handle(DecisionDue(only(effects, Think).token), cell, now)


def join(cell: Cell, name: str, cores: int) -> MachineJoined:
    joins = AddMachine(Machine(name, Resources(1_000 * cores, 64 * GIB)))
    cell.commit(Transaction(OPERATOR, machines=(joins,)))
    return MachineJoined(cell.machines - 1)


def test_while_all_queues_are_full_tasks_are_tried_again_and_again() -> None:
    engine, cell, made = a_murmuration(retry=SECOND), cell_of(4), job("a").job
    placed = only(decide(engine, cell, submit(engine, cell, made, 0)), Enqueue)
    back = TasksLost(made, 0, placed.tasks, placed.machines, Why.QUEUE_FULL)
    effects = decide(engine, cell, engine.handle(back, cell, 0))
    for now in (SECOND, 2 * SECOND, 3 * SECOND):
        assert only(effects, Explain).tasks.tolist() == placed.tasks.tolist()
        assert only(effects, WakeMe).at == now
        effects = decide(engine, cell, engine.handle(TimerFired("retry"), cell, now), now)


def test_tasks_that_fit_nowhere_are_begun_once_for_each_machine_that_joins() -> None:
    engine, cell = a_murmuration(), cell_of(4)
    assert not of(decide(engine, cell, submit(engine, cell, job("a", cpu=8_000).job, 0)), Enqueue)
    effects = decide(engine, cell, engine.handle(join(cell, "small", 4), cell, 0))
    assert len(only(effects, Explain).tasks) == 1
    effects = decide(engine, cell, engine.handle(join(cell, "large", 8), cell, 0))
    assert only(effects, Enqueue).machines.tolist() == [2]
    assert not of(effects, Think)
    assert not engine.handle(join(cell, "larger", 8), cell, 0)


def test_cancelled_tasks_that_fit_nowhere_are_not_begun_when_a_machine_joins() -> None:
    engine, cell, giant = a_murmuration(), cell_of(4), job("a", 2, cpu=8_000).job
    decide(engine, cell, submit(engine, cell, giant, 0))
    engine.handle(JobCancelled(giant, 0, tasks_of(0, 0, 1)), cell, 0)
    assert not engine.handle(join(cell, "large", 8), cell, 0)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (job("ends", seconds=5, estimate=5 * SECOND), 7 * SECOND),
        (job("stays", seconds=None), 900),
        (shared_job("shares", 1, (4,), (1,)), 4 * SECOND),
    ],
)
def test_only_tasks_that_end_by_themselves_are_estimated_from_others(made: Any, told: int) -> None:
    engine, cell = a_murmuration(estimates="learnt", unknown_estimate=900), cell_of(4)
    assert engine._learner is not None
    before = job("before", 5, owner=made.job.owner).job
    engine._learner.estimate(before, 9)
    engine._learner.learn(tasks_of(9, *range(5)), np.full(5, 7 * SECOND))
    placed = only(decide(engine, cell, submit(engine, cell, made.job, 0)), Enqueue)
    assert placed.estimate == told


def test_tasks_that_took_no_time_are_learnt_from_and_have_no_error() -> None:
    learner, made = Learner(0.5), job("a-1", 6).job
    learner.estimate(made, 0)
    learner.learn(tasks_of(0, *range(5)), np.zeros(5, np.int64))
    again = job("a-2", 2).job
    assert learner.estimate(again, 1) == 1
    learner.learn(tasks_of(1, 0, 1), np.array([0, 2], np.int64))
    assert learner.figures(*NONE_TO_COME)["estimates"] == 1


def test_figures_count_what_is_to_come_without_learning_it() -> None:
    learner = Learner(0.5)
    learner.estimate(job("a-1", 5).job, 0)
    learner.learn(tasks_of(0, *range(5)), np.full(5, 10))
    learner.estimate(job("a-2", 1).job, 1)
    coming = tasks_of(1, 0), np.array([20], np.int64)
    expected = {"estimates": 1.0, "estimate_error_p50": 0.5, "estimate_error_p90": 0.5}
    assert learner.figures(*coming) == expected
    assert learner.figures(*coming) == expected
    assert learner.figures(*NONE_TO_COME) == {"estimates": 0.0}
