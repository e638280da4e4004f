"""Batches of long-running applications: who is told what, who pushes off whom, and what is left."""

from __future__ import annotations

import numpy as np
import pytest
from serial_attempts import cell_of, only, take, tasks_of
from test_lra_steps import INTERVAL, an_engine, answer, decide, plan, service, submit

from argosy.cell import Cell
from argosy.engines.families.lra.memory import Memory
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Commit, Explain, Think, WakeMe
from argosy.model.events import JobCancelled, MachineChanged, TaskFinished
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Claims, Transaction
from argosy.testing.builders import GIB, job

APART = parse_constraint("w -> {u, 0, 0} in machine")


def claim(cell: Cell, name: str, number: int, machine: int, tag: str) -> None:
    """A container with this tag, placed by that scheduler."""
    rows = np.array([machine], np.int32)
    shapes = np.array([cell.shape(Resources(100, GIB), (tag,))], np.int32)
    claims = Claims(tasks_of(number, 0), rows, shapes, cell.versions(rows))
    assert cell.commit(Transaction(name, claims)).all_accepted


def test_looking_for_better_places_takes_as_long_as_one_application() -> None:
    engine, cell = an_engine(migrate=1, t_lra=1_000, t_container=10), cell_of(4, 4)
    made = service("a", 1, constraints=(APART,))
    cell.admit(0, made)
    submit(engine, cell, made, 0)
    answer(engine, cell, decide(engine, cell, plan(engine, cell)))
    assert only(engine.handle(MachineChanged(0), cell, INTERVAL), WakeMe).at == 2 * INTERVAL
    assert only(plan(engine, cell, 2 * INTERVAL), Think).duration == 1_000


def test_after_a_container_has_moved_others_are_looked_at_again() -> None:
    engine, cell = an_engine(migrate=1), cell_of(4, 4)
    made = service("a", 1, constraints=(APART,))
    cell.admit(0, made)
    submit(engine, cell, made, 0)
    effects = decide(engine, cell, plan(engine, cell))
    here = only(effects, Commit).transaction.claims.machines[0]
    answer(engine, cell, effects)
    claim(cell, "other", 7, int(here), "u")
    engine.handle(MachineChanged(0), cell, INTERVAL)
    effects = decide(engine, cell, plan(engine, cell, 2 * INTERVAL), 2 * INTERVAL)
    moves = only(effects, Commit).transaction
    assert (moves.move, moves.claims.machines.tolist()) == (True, [1 - here])
    assert only(answer(engine, cell, effects, 2 * INTERVAL), WakeMe).at == 3 * INTERVAL


def test_a_container_whose_move_is_refused_goes_on_to_run() -> None:
    engine, cell = an_engine(migrate=1), cell_of(4, 4)
    made = service("a", 1, constraints=(APART,))
    cell.admit(0, made)
    submit(engine, cell, made, 0)
    effects = decide(engine, cell, plan(engine, cell))
    here = int(only(effects, Commit).transaction.claims.machines[0])
    answer(engine, cell, effects)
    claim(cell, "other", 7, here, "u")
    engine.handle(MachineChanged(0), cell, INTERVAL)
    effects = decide(engine, cell, plan(engine, cell, 2 * INTERVAL), 2 * INTERVAL)
    take(cell, 1 - here, 4)
    answer(engine, cell, effects, 2 * INTERVAL)
    assert cell.machine_of(int(tasks_of(0, 0)[0])) == here
    assert engine._open == {0: 1}


def test_an_application_without_a_place_that_is_cancelled_meanwhile_is_not_told() -> None:
    engine, cell, giant = an_engine(), cell_of(4), service("a", 1, cpu=9_000)
    submit(engine, cell, giant, 0)
    thinking = plan(engine, cell)
    engine.handle(JobCancelled(giant, 0, tasks_of(0, 0)), cell, INTERVAL)
    assert not decide(engine, cell, thinking)
    assert not plan(engine, cell, 2 * INTERVAL)


@pytest.mark.parametrize("others", [True, False])
def test_an_application_pushes_off_tasks_only_if_all_of_its_batch_may(others: bool) -> None:
    engine, cell = an_engine(conflict="kill"), cell_of(8)
    submit(engine, cell, service("a", 1), 0)
    submit(engine, cell, service("b", 1, preempts=others), 1)
    effects = decide(engine, cell, plan(engine, cell))
    assert only(effects, Commit).transaction.preempt is others


def test_applications_that_ask_for_as_much_but_not_for_the_same_are_told_apart() -> None:
    engine, cell = an_engine(), cell_of(4, 4)
    groups = [TaskGroup(1, Resources(9_000, GIB), requires=each) for each in ({"disk": "ssd"}, {})]
    for number, group in enumerate(groups):
        submit(engine, cell, Job(f"a{number}", (group,), kind="service"), number)
    told = [e for e in decide(engine, cell, plan(engine, cell)) if isinstance(e, Explain)]
    assert [each.explanation.ruled_out for each in told] == [{"filtered": 2}, {"cpu": 2}]


def test_applications_with_other_constraints_are_told_apart() -> None:
    engine, cell = an_engine(), cell_of(4)
    rules = ["w -> {x, 1, inf} in machine hard", "w -> {y, 1, inf} in machine hard"]
    for number, rule in enumerate(rules):
        text = rule.replace("w ->", f"w & appID:a{number} ->")
        made = service(f"a{number}", 1, constraints=(parse_constraint(text),))
        cell.admit(number, made)
        submit(engine, cell, made, number)
    told = [e for e in decide(engine, cell, plan(engine, cell)) if isinstance(e, Explain)]
    assert [each.explanation.forbidden for each in told] == [
        (f"'w & appID:a{number} -> {{{tag}, 1, inf}} in machine hard'",)
        for number, tag in enumerate("xy")
    ]


def test_constrained_tasks_beyond_a_queues_limit_are_decided_on_later() -> None:
    quarter = {"guaranteed": 0.25, "most": 0.25}
    engine = an_engine(policy="capacity", capacities={"o": quarter})
    cell = cell_of(8)
    made = job("a", 5, tags=("w",), owner="o", constraints=(APART,)).job
    cell.admit(0, made)
    thinking = submit(engine, cell, made, 0)
    left = [0, 1, 2, 3, 4]
    while left:
        commit = only(decide(engine, cell, thinking), Commit)
        claims = commit.transaction.claims
        assert claims.tasks.tolist() == tasks_of(0, *left[:2]).tolist()
        answer(engine, cell, (commit,))
        left = left[2:]
        cell.commit(Transaction(OPERATOR, releases=claims.tasks))
        nothing = np.zeros(len(claims), np.int64)
        ended = TaskFinished(claims.tasks, claims.machines, nothing, claims.shapes)
        thinking = engine.handle(ended, cell, INTERVAL)
    assert not thinking


def test_only_its_own_containers_are_a_schedulers_to_move() -> None:
    cell = cell_of(4, 4)
    claim(cell, "s", 0, 1, "w")
    claim(cell, "other", 1, 0, "w")
    shape = cell.shape(Resources(100, GIB), ("w",))
    memory = Memory(cell, "s")
    assert list(memory.own_containers()) == [(tasks_of(0, 0)[0], 1, shape)]
    assert memory.is_running(int(tasks_of(1, 0)[0]), 0)
    take(cell, 0, 1)
    memory.refresh(cell)
    assert len(list(memory.own_containers())) == 1
