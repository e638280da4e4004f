"""Tasks that were over before scaling removed and added them, and numbers and names that nobody has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_folded_facts import of, read

from argosy.host import TaskState, records
from argosy.host.records import (
    AbandonedRecord,
    CancelledRecord,
    EndedRecord,
    FailedRecord,
    PhaseEndedRecord,
    PlacedRecord,
    RetriedRecord,
    ScaledRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.explanations import Explanation
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import AddMachine, DrainMachine, RemoveMachine
from argosy.records.answers import TaskAnswers
from argosy.records.in_memory import RunInMemory
from argosy.records.steps import JournalSteps, Step
from argosy.testing.builders import job, scenario, shared_job

A = SubmittedRecord(0, 0, job("a", 6).job, "s-0")
#: What became of tasks 1 to 5 before the job became smaller; task 5 waits.
OVER = (
    PlacedRecord(1, "a", [0, 1, 2], [0, 1, 2], "s-0"),
    EndedRecord(2, of(0, 1)),
    FailedRecord(3, of(0, 2)[0], 0, 1, ""),
    RetriedRecord(3, "a", [2], 1, "", for_good=True),
    AbandonedRecord(4, "a", [3], "s-0", Explanation()),
    CancelledRecord(5, 0, [4]),
)
SMALLER = ScaledRecord(6, 0, job("a", 1).job)
LARGER = ScaledRecord(7, 0, job("a", 6).job)


@pytest.mark.parametrize(
    ("index", "before", "removed", "added"),
    [
        (0, "running", "running", "running"),
        (1, "finished", "finished", "finished"),
        (2, "failed", "failed", "failed"),
        (3, "abandoned", "abandoned", "abandoned"),
        (4, "cancelled", "cancelled", "pending"),
        (5, "pending", "cancelled", "pending"),
    ],
)
def test_a_task_that_is_over_stays_so_when_its_job_shrinks_and_grows(
    ask: Callable[..., TaskAnswers], index: int, before: str, removed: str, added: str
) -> None:
    for facts, state in (
        (OVER, before),
        ((*OVER, SMALLER), removed),
        ((*OVER, SMALLER, LARGER), added),
    ):
        assert ask(A, *facts, task=f"a/{index}").why().state == state


def test_only_tasks_that_scaling_or_someone_has_cancelled_are_added_again() -> None:
    state = read(A, *OVER, SMALLER, LARGER, until=9)
    columns = state.steps.columns()
    steps = list(zip(columns.tasks.tolist(), columns.kinds.tolist(), strict=True))
    assert [task for task, kind in steps if kind == Step.ADDED_AGAIN] == of(0, 4, 5)
    assert [task for task, kind in steps if kind == Step.CANCELLED] == of(0, 4, 5)
    assert state.jobs.abandoned.tolist() == [1]
    counted = {each: int(state.open_tasks(each)[0]) for each in (TaskState.PENDING,)}
    assert counted == {TaskState.PENDING: 4}


def test_shared_work_is_done_with_the_last_of_all_phases() -> None:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    for number, phases in enumerate((1, 3)):
        made = shared_job(f"j{number}", 2, (4,) * phases, (1,) * phases)
        steps.read(SubmittedRecord(0, number, made.job, "s-0"))
    for at, number, phase in ((3, 1, 0), (4, 1, 1), (5, 0, 0), (6, 1, 2)):
        assert number not in steps.work_done
        steps.read(PhaseEndedRecord(at, number, phase, 10 * at))
    assert steps.work_done == {0: 5, 1: 6}
    assert steps.phases == {0: {0: 50}, 1: {0: 30, 1: 40, 2: 60}}


@pytest.mark.parametrize(
    "fact",
    [
        *(PhaseEndedRecord(1, number, 0, 9) for number in (-1, 1)),
        *(CancelledRecord(1, number, [0]) for number in (-1, 1)),
        *(ScaledRecord(1, number, job("a", 2).job) for number in (-1, 1)),
        *(records.MachineRecord(1, RemoveMachine(number)) for number in (-1, 8)),
        *(records.MachineRecord(1, DrainMachine(number, True)) for number in (-1, 8)),
        records.CrashedRecord(1, "nobody"),
        records.RestartedRecord(1, "nobody"),
    ],
)
def test_what_nobody_has_is_noticed_at_once(fact: Any) -> None:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    steps.read(SubmittedRecord(0, 0, shared_job("a", 2, (4,), (1,)).job, "s-0"))
    before = len(steps.columns().tasks)
    known = list(steps.schedulers)
    with pytest.raises(LookupError):
        steps.read(fact)
    assert (len(steps.columns().tasks), list(steps.schedulers)) == (before, known)
    assert (steps.phases, steps.machine_changes, steps.scheduler_changes) == ({}, [], [])


@pytest.mark.parametrize(("machine", "exists"), [(7, True), (8, True), (9, False), (-1, True)])
def test_a_machine_that_was_added_is_one_more(machine: int, exists: bool) -> None:
    steps = JournalSteps(HostSetup.of(scenario("omega", [])))
    assert len(steps.setup.cell.machines) == 8
    steps.read(A)
    steps.read(records.MachineRecord(1, AddMachine(Machine("new", Resources(1, 1)))))
    steps.read(PlacedRecord(2, "a", [0], [machine], "s-0"))
    if exists:
        steps.check()
    else:
        with pytest.raises(ValueError, match="machines"):
            steps.check()


def test_what_is_asked_of_a_run_in_memory_is_the_askers() -> None:
    made: Any = None
    jobs, tasks = {"submitted": np.arange(2)}, {"task": np.arange(3)}
    run = RunInMemory(made, made, None, tasks, jobs)
    for column, kept in ((run.kept_jobs, jobs), (run.kept_tasks, tasks)):
        mine = column()
        assert mine == kept
        mine.clear()
        assert column() == kept != {}
