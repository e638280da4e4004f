"""What a journal of two dozen facts says of every task, job and moment; and the scenario made of one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec import structs

from argosy.host import TaskState
from argosy.host.records import (
    AttemptRecord,
    CancelledRecord,
    EndedRecord,
    EnqueuedRecord,
    FailedRecord,
    LostRecord,
    MachineRecord,
    PlacedRecord,
    ScaledRecord,
    StartedRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import ConstantLatency, Federation, MachineCrash, Network, Output
from argosy.model.transactions import AddMachine, RelabelMachine, RemoveMachine
from argosy.records.observed import observed_scenario
from argosy.records.state import RunState
from argosy.records.steps import JournalSteps, Step
from argosy.testing.builders import job, scenario


def of(number: int, *indices: int) -> list[int]:
    return [task_number(number, index) for index in indices]


def read(*facts: Any, until: int, **setup: Any) -> RunState:
    steps = JournalSteps(structs.replace(HostSetup.of(scenario("omega", [])), **setup))
    for fact in facts:
        steps.read(fact)
    return RunState(steps, until)


FACTS = (
    SubmittedRecord(10, 0, job("a", 3).job, "s-0"),
    AttemptRecord(12, "a", "s-0", 3, 1),
    SubmittedRecord(14, 1, job("b", 5).job, "s-1"),
    PlacedRecord(15, "a", [0, 1], [0, 1], "s-0"),
    EnqueuedRecord(16, "b", [0, 2], [2, 3], "s-1", None, 2, 3),
    AttemptRecord(17, "a", "s-0", 5),
    StartedRecord(20, of(1, 0), [2], 1),
    # Another machine took it.
    StartedRecord(22, of(1, 2), [6]),
    EndedRecord(25, of(0, 0)),
    ScaledRecord(30, 0, job("a", 5).job),
    # As many as the job had at first, but not as many as it has by now.
    PlacedRecord(30, "a", [2], [3], "s-0"),
    PlacedRecord(31, "a", [3], [3], "s-0"),
    EndedRecord(40, of(0, 1)),
    # A worker that is none of the job's own tasks.
    PlacedRecord(41, "a", [5], [4], "s-1"),
    PlacedRecord(45, "a", [4], [5], "s-1"),
    EndedRecord(50, of(0, 4, 2, 3)),
    LostRecord(55, "a", [5], [4], "preempted"),
    SubmittedRecord(60, 2, job("c", 1).job, "s-0"),
)


@pytest.fixture(scope="module")
def state() -> RunState:
    return read(*FACTS, until=60)


def test_tasks_are_counted_by_where_they_are(state: RunState) -> None:
    expected = dict.fromkeys(TaskState, 0)
    expected |= {TaskState.PENDING: 4, TaskState.RUNNING: 2, TaskState.FINISHED: 5}
    assert state.counts == expected
    assert [state.count(kind) for kind in (Step.PLACED, Step.ENDED, Step.PREEMPTED)] == [6, 5, 1]
    assert state.count(Step.STARTED, Step.ENQUEUED) == 4


def test_a_job_is_placed_when_all_the_tasks_that_it_has_by_then_are(state: RunState) -> None:
    jobs = {name: getattr(state.jobs, name).tolist() for name in state.jobs.__struct_fields__}
    assert jobs == {
        "submitted": [10, 14, 60],
        "first_attempt": [12, -1, -1],
        "all_placed": [45, -1, -1],
        "done": [50, -1, -1],
        "thought": [9, 0, 0],
        "tasks": [5, 5, 1],
        "abandoned": [0, 0, 0],
    }


def test_tasks_that_ran_have_their_last_machine_and_times(state: RunState) -> None:
    def rows(found: Any) -> dict[str, list[int]]:
        return {name: getattr(found, name).tolist() for name in found.__struct_fields__}

    assert rows(state.finished) == {
        "tasks": of(0, 0, 1, 4, 2, 3),
        "machines": [0, 1, 5, 3, 3],
        "placed": [15, 15, 45, 30, 31],
        "started": [15, 15, 45, 30, 31],
        "finished": [25, 40, 50, 50, 50],
        "schedulers": [0, 0, 1, 0, 0],
    }
    # Tasks leave their scheduler one after another, and may start some time after their queue.
    assert rows(state.running) == {
        "tasks": of(1, 0, 2),
        "machines": [2, 6],
        "placed": [18, 21],
        "started": [21, 22],
        "finished": [-1, -1],
        "schedulers": [1, 1],
    }


def test_room_is_taken_from_the_start_to_the_next_step_also_by_workers(state: RunState) -> None:
    claims = state.claims
    assert claims.tasks.tolist() == [*of(0, 0, 1, 2, 3, 4, 5), *of(1, 0, 2)]
    assert claims.machines.tolist() == [0, 1, 3, 3, 5, 4, 2, 6]
    assert claims.schedulers.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert claims.begin.tolist() == [15, 15, 30, 31, 45, 41, 20, 22]
    assert claims.end.tolist() == [25, 40, 50, 50, 50, 55, 60, 60]
    assert np.flatnonzero(claims.was_preempted).tolist() == [5]


def test_the_first_open_task_of_each_job_by_state(state: RunState) -> None:
    found = {where: state.open_tasks(where).tolist() for where in TaskState}
    assert found[TaskState.PENDING] == [-1, 1, 0]
    assert found[TaskState.QUEUED] == [-1, -1, -1]
    assert found[TaskState.RUNNING] == [-1, 0, -1]
    assert found[TaskState.FINISHED] == [0, -1, -1]
    # One that has lost its machine comes before those without any step.
    lost = LostRecord(61, "b", [0], [2], "machine_gone")
    assert read(*FACTS, lost, until=61).open_tasks(TaskState.PENDING).tolist() == [-1, 0, 0]
    assert read(*FACTS, lost, until=61).open_tasks(TaskState.RUNNING).tolist() == [-1, 2, -1]


@pytest.mark.parametrize(
    ("at", "pending"),
    [(9, [0, 0, 0]), (13, [3, 0, 0]), (14, [3, 5, 0]), (29, [1, 3, 0]), (30, [2, 3, 0]), (45, [0, 3, 0]),
     (59, [0, 3, 0]), (60, [0, 3, 1])],
)  # fmt: skip
def test_tasks_wait_from_the_moment_at_which_their_job_has_them(
    state: RunState, at: int, pending: list[int]
) -> None:
    assert state.pending_at(at).tolist() == pending


def test_each_moment_has_the_counts_of_just_before(state: RunState) -> None:
    expected = {
        10: (0, 0, 0),
        11: (3, 0, 0),
        15: (8, 0, 0),
        16: (6, 0, 2),
        17: (4, 2, 2),
        21: (4, 1, 3),
        23: (4, 0, 4),
        26: (4, 0, 3),
        30: (4, 0, 3),
        31: (5, 0, 4),
        32: (4, 0, 5),
        45: (4, 0, 4),
        46: (3, 0, 5),
        51: (3, 0, 2),
        60: (3, 0, 2),
        61: (4, 0, 2),
    }
    series = state.over_time(np.array(list(expected), np.int64))
    assert list(series) == ["pending", "queued", "running"]
    found = zip(*(column.tolist() for column in series.values()), strict=True)
    assert dict(zip(expected, found, strict=True)) == expected


def test_a_journal_in_which_nothing_happens_has_an_empty_state() -> None:
    empty = read(until=5)
    assert set(empty.counts.values()) == {0}
    assert empty.claims.tasks.tolist() == empty.finished.tasks.tolist() == []
    assert empty.open_tasks(TaskState.PENDING).tolist() == empty.pending_at(5).tolist() == []


class TestObserved:
    def test_a_scenario_is_what_the_journal_says_of_its_cluster(self) -> None:
        federation = Federation(clusters=())
        observed = observed_scenario(read(*FACTS, until=60, federation=federation, network=None))
        assert observed.federation is federation
        assert observed.network == Network(latency=ConstantLatency(delay=0))
        assert observed.output == Output(log="none")
        assert observed.machines == HostSetup.of(scenario("omega", [])).machines
        # Three tasks of b, and that of c, had not begun; two of b had not ended.
        assert observed.left_out == (
            "6 tasks had not ended: their estimates are taken for their running times",
        )
        assert observed.horizon == 60
        assert [made.submit for made in observed.jobs] == [10, 14, 60]
        assert observed.jobs[0].truth[0].durations == (10, 25, 20, 19, 5)

    def test_a_task_that_was_to_start_after_the_end_has_not_run(self) -> None:
        late = job("a", 1, estimate=0, seconds=0).job
        state = read(
            SubmittedRecord(0, 0, late, "s-0"),
            EnqueuedRecord(1, "a", [0], [0], "s-0"),
            StartedRecord(2, [0], [0], 50),
            until=10,
        )
        assert observed_scenario(state).jobs[0].truth[0].durations == (0,)

    @pytest.mark.parametrize(
        ("count", "sentences"),
        [
            (
                1,
                (
                    "1 task had not ended: its estimate is taken for its running time",
                    "1 machine joined later: engines know of it from the beginning",
                    "1 task was cancelled: here it runs",
                    "1 try of a task failed: here each task runs once",
                ),
            ),
            (
                2,
                (
                    "2 tasks had not ended: their estimates are taken for their running times",
                    "2 machines joined later: engines know of them from the beginning",
                    "2 tasks were cancelled: here they run",
                    "2 tries of tasks failed: here each task runs once",
                ),
            ),
        ],
    )
    def test_what_a_scenario_leaves_out_is_told_in_numbers(
        self, count: int, sentences: tuple[str, ...]
    ) -> None:
        facts: list[Any] = [SubmittedRecord(0, 0, job("a", count).job, "s-0")]
        joined = [Machine(f"late-{each}", Resources(1, 1)) for each in range(count)]
        facts += [MachineRecord(3, AddMachine(machine)) for machine in joined]
        for index in range(count):
            facts.append(PlacedRecord(4, "a", [index], [8], "s-0"))
            facts.append(FailedRecord(5, index, 1, 1, ""))
        facts.append(CancelledRecord(6, 0, list(range(count))))
        observed = observed_scenario(read(*facts, until=9))
        assert observed.left_out == sentences
        assert observed.cell.machines[8:] == tuple(joined)
        assert observed.faults == tuple(
            MachineCrash(at=0, machine=machine.name, down=3) for machine in joined
        )

    def test_a_machine_that_joined_and_left_is_known_by_its_name(self) -> None:
        observed = observed_scenario(
            read(
                MachineRecord(3, AddMachine(Machine("late", Resources(1, 1)))),
                MachineRecord(4, RelabelMachine(8, {"a": "b"}, {})),
                MachineRecord(5, RemoveMachine(8)),
                MachineRecord(6, RemoveMachine(0)),
                until=9,
            )
        )
        assert observed.faults == (
            MachineCrash(at=0, machine="late", down=3),
            MachineCrash(at=5, machine="late"),
            MachineCrash(at=6, machine="m0"),
        )
        assert observed.left_out == (
            "1 machine joined later: engines know of it from the beginning",
            "1 machine was relabelled: here it keeps its labels",
        )
