"""Jobs that come with a machine."""

from __future__ import annotations

import pytest
from host_bench import Bench

from argosy.host import TaskState
from argosy.host.placing import place
from argosy.host.records import PlacedRecord, SubmittedRecord
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ScenarioError
from argosy.model.explanations import Why
from argosy.model.jobs import task_number
from argosy.model.scenario import Takes
from argosy.testing.builders import job


def test_a_job_starts_on_the_machine_that_it_comes_with() -> None:
    bench = Bench("omega")
    assert place(bench.host, job("a", 1, cpu=3_000, seconds=None).job, 2, "far", "Bind") is None
    task = task_number(0, 0)
    assert bench.host.cell.machine_of(task) == 2
    assert bench.host.board.state(task) is TaskState.RUNNING
    bench.go(1)
    assert [machine for machine, _ in bench.machines.running.values()] == [2]
    facts = [*bench.replay().facts()]
    [placed] = [fact for fact in facts if isinstance(fact, PlacedRecord)]
    assert (placed.job, placed.indices, placed.machines, placed.scheduler) == ("a", [0], [2], "far")
    [came] = [fact for fact in facts if isinstance(fact, SubmittedRecord)]
    assert (came.machine, came.by, came.commit) == (2, "far", "Bind")


def test_a_job_that_the_cell_refuses_leaves_no_trace() -> None:
    bench = Bench("omega")
    assert place(bench.host, job("a", 1, cpu=3_000, seconds=None).job, 2, "far", "Bind") is None
    refusal = place(bench.host, job("b", 1, cpu=3_000).job, 2, "far", "Bind")
    assert refusal is not None
    assert (refusal.why, refusal.machine, refusal.lacking) == (Why.NO_ROOM, 2, 2_000)
    assert len(bench.host.jobs) == 1
    assert bench.host.cell.claims() == 1


def test_only_a_single_task_without_constraints_comes_with_a_machine() -> None:
    bench = Bench("omega")
    apart = (parse_constraint("x -> {x, 0, 0} in machine"),)
    for wrong in (job("two", 2).job, job("picky", 1, constraints=apart, tags=("x",)).job):
        with pytest.raises(ScenarioError, match="cannot be placed as a whole"):
            place(bench.host, wrong, 0, "far", "Bind")
    some = Bench("omega", takes=Takes(kinds=("service",)))
    with pytest.raises(ScenarioError, match="no scheduler takes jobs of kind 'batch'"):
        place(some.host, job("batch", 1).job, 0, "far", "Bind")
    assert len(bench.host.jobs) == len(some.host.jobs) == 0


def test_a_scheduler_that_is_up_gets_the_job() -> None:
    bench = Bench("omega", replicas=2)
    first, second = bench.host.schedulers
    assert place(bench.host, job("a", 1).job, 0, "far", "Bind") is None
    first.crash(0)
    assert place(bench.host, job("b", 1).job, 0, "far", "Bind") is None
    owners = [bench.host.board.owner(number) for number in (0, 1)]
    assert owners == [first.index, second.index]
