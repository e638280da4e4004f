"""Omega and jobs whose tasks are to be on different machines, as in Google's traces."""

from __future__ import annotations

from typing import Any

import pytest
from serial_attempts import cell_of, end, only, placed, submit, take, tasks_of

from argosy.engines.api import Context
from argosy.engines.omega import Omega, OmegaSettings
from argosy.engines.registry import ENGINES
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Explain, Think
from argosy.model.events import JobSubmitted, TimerFired
from argosy.model.jobs import Job, TaskGroup
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Transaction
from argosy.scenarios.ignored_demands import ignored_demands
from argosy.testing.builders import GIB, job, scenario
from argosy.workloads.google_jobs import APART

SOFT = parse_constraint("appID:self -> {appID:self, 0, 0} in machine")
IN_RACKS = parse_constraint("appID:self -> {appID:self, 0, 0} in rack hard")


def an_omega(**settings: Any) -> Omega:
    return Omega(OmegaSettings(t_job=0, t_task=0, **settings), Context("s", (), Random(1)))


def apart(name: str, tasks: int, **fields: Any) -> Job:
    return job(name, tasks, cpu=1_000, constraints=(APART,), **fields).job


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "worst-fit"])
def test_tasks_that_are_to_be_apart_get_a_machine_each(placement: str) -> None:
    engine, cell = an_omega(placement=placement), cell_of(8, 8, 8, 8)
    assert sorted(placed(engine, cell, apart("a", 4), 0)) == [0, 1, 2, 3]


def test_tasks_of_different_jobs_may_share_a_machine() -> None:
    engine, cell = an_omega(), cell_of(8, 8)
    for number, name in enumerate(("a", "b")):
        assert sorted(placed(engine, cell, apart(name, 2), number)) == [0, 1]


def test_tasks_of_several_groups_are_apart_too() -> None:
    engine, cell = an_omega(placement="best-fit"), cell_of(8, 8, 8)
    sizes = (Resources(1_000, GIB), Resources(2_000, GIB))
    groups = (TaskGroup(1, sizes[0]), TaskGroup(2, sizes[1]))
    assert sorted(placed(engine, cell, Job("a", groups, constraints=(APART,)), 0)) == [0, 1, 2]


def test_a_task_waits_for_a_machine_without_another_of_its_job() -> None:
    engine, cell = an_omega(), cell_of(8, 8)
    thinking = only(submit(engine, cell, apart("a", 3), 0), Think)
    claims, effects = end(engine, cell, thinking)
    assert sorted(claims.machines.tolist()) == [0, 1]
    waiting = only(effects, Explain)
    assert waiting.tasks.tolist() == tasks_of(0, 2).tolist()
    # One of the two ends, so its machine is free for the third.
    again, _ = end(engine, cell, only(effects, Think))
    assert again is None
    gone = claims.machines[claims.tasks == tasks_of(0, 1)[0]].tolist()
    cell.commit(Transaction(OPERATOR, releases=tasks_of(0, 1)))
    [timer] = engine._waiting
    claims, _ = end(engine, cell, only(engine.handle(TimerFired(timer), cell, 0), Think))
    assert claims.machines.tolist() == gone


def test_a_scheduler_that_starts_again_knows_where_the_others_are() -> None:
    cell = cell_of(8, 8, 8)
    there = placed(an_omega(), cell, apart("a", 2), 0)
    engine = an_omega()
    rest = JobSubmitted(apart("a", 3), 0, tasks_of(0, 2))
    claims, _ = end(engine, cell, only(engine.handle(rest, cell, 0), Think))
    assert sorted([*there, *claims.machines.tolist()]) == [0, 1, 2]


def test_preempting_tasks_stay_apart() -> None:
    engine, cell = an_omega(preempt=True), cell_of(4, 4)
    take(cell, 0, 4)
    take(cell, 1, 4, number=98)
    assert sorted(placed(engine, cell, apart("a", 2, precedence=5), 0)) == [0, 1]


def test_preferred_domains_do_not_bring_tasks_together() -> None:
    engine, cell = an_omega(regions=2), cell_of(8, 8, 8, 8)
    assert sorted(placed(engine, cell, apart("a", 4), 0)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("constraints", "told"),
    [
        ((APART,), []),
        ((SOFT,), ["omega ignores placement constraints; 1 job has some"]),
        ((IN_RACKS,), ["omega ignores placement constraints; 1 job has some"]),
    ],
)
def test_other_constraints_are_still_said_to_be_ignored(constraints: Any, told: list[str]) -> None:
    jobs = [job("a", 2, constraints=constraints)]
    assert [str(each) for each in ignored_demands(scenario("omega", jobs), ENGINES)] == told


def test_one_constraint_of_two_may_be_ignored() -> None:
    jobs = [job("a", 2, constraints=(APART,)), job("b", 2, constraints=(IN_RACKS,))]
    [told] = ignored_demands(scenario("omega", jobs), ENGINES)
    assert str(told) == "omega ignores some placement constraints; 1 job has such"
