"""Serial schedulers as functions from events to effects: a cell, and attempts one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from argosy.cell import Cell
from argosy.engines.shared.serial import SerialScheduler
from argosy.model.effects import Commit, Effect, Think
from argosy.model.events import Committed, DecisionDue, JobSubmitted
from argosy.model.jobs import Job, task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Claims, TaskArray, Transaction
from argosy.testing.builders import GIB


def cell_of(*cores: int, **attributes: dict[str, str]) -> Cell:
    """Machines m0, m1 and so on with so many cores each; `attributes` of some by name."""
    cell = Cell(("cpu", "memory"), {}, audited=True)
    for at, count in enumerate(cores):
        name = f"m{at}"
        machine = Machine(name, Resources(1_000 * count, 64 * GIB), attributes.get(name, {}))
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    return cell


def tasks_of(number: int, *indices: int) -> TaskArray:
    return np.array([task_number(number, index) for index in indices], np.int64)


def only(effects: Any, kind: type[Effect]) -> Any:
    found = [effect for effect in effects if isinstance(effect, kind)]
    assert len(found) == 1, effects
    return found[0]


def submit(engine: SerialScheduler, cell: Cell, job: Job, number: int, now: int = 0) -> Any:
    tasks = tasks_of(number, *range(job.tasks))
    return engine.handle(JobSubmitted(job, number, tasks), cell, now)


def end(engine: SerialScheduler, cell: Cell, thinking: Think, now: int = 0) -> tuple[Any, Any]:
    """Lets a decision run its course: what it claimed, and the effects of the answer."""
    effects = engine.handle(DecisionDue(thinking.token), cell, now)
    commits = [effect for effect in effects if isinstance(effect, Commit)]
    if not commits:
        return None, effects
    [commit] = commits
    outcome = cell.commit(commit.transaction)
    answered = engine.handle(Committed(commit.token, outcome), cell, now)
    return commit.transaction.claims, answered


def placed(engine: SerialScheduler, cell: Cell, job: Job, number: int) -> list[int]:
    """The machine of each task of a job that is placed at the first attempt."""
    thinking = only(submit(engine, cell, job, number), Think)
    claims, _ = end(engine, cell, thinking)
    assert len(claims) == job.tasks
    machines: list[int] = claims.machines.tolist()
    return machines


def take(cell: Cell, machine: int, cores: int, number: int = 99) -> None:
    """So many cores of a machine are taken, each by a task of another job."""
    rows = np.full(cores, machine, np.int32)
    shapes = np.full(cores, cell.shape(Resources(1_000, GIB)), np.int32)
    claims = Claims(tasks_of(number, *range(cores)), rows, shapes, cell.versions(rows))
    assert cell.commit(Transaction(OPERATOR, claims)).all_accepted
