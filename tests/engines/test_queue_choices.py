"""Engines that use machines' queues: lines, turns, and where tasks may go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from queue_reports import an_engine, of, report
from serial_attempts import cell_of, only, take, tasks_of

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.eagle import Eagle, EagleSettings
from argosy.engines.shared.endless_tasks import EndlessTasks
from argosy.engines.shared.probing import share_of
from argosy.model.effects import AskQueues, Commit, Enqueue, Explain, Probe, Think
from argosy.model.events import (
    Committed,
    DecisionDue,
    JobCancelled,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    TasksLost,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job, TaskGroup, job_of
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, RemoveMachine, Transaction
from argosy.testing.builders import GIB, SECOND, job

SMALL = Resources(1_000, GIB)
YAQS = pytest.mark.parametrize("name", ["yaq-c", "yaq-d"])


def submit(engine: Any, cell: Cell, made: Job, number: int) -> Any:
    tasks = tasks_of(number, *range(made.tasks))
    return engine.handle(JobSubmitted(made, number, tasks), cell, 0)


def come_back(engine: Any, cell: Cell, made: Job, number: int) -> Any:
    """All tasks of the job return from full queues."""
    tasks = tasks_of(number, *range(made.tasks))
    where = np.zeros(made.tasks, np.int32)
    return engine.handle(TasksLost(made, number, tasks, where, Why.QUEUE_FULL), cell, 0)


@YAQS
def test_who_comes_while_others_of_its_kind_wait_waits_behind_them(name: str) -> None:
    engine, cell = an_engine(name), cell_of(4, 4)
    come_back(engine, cell, job("first").job, 0)
    asked = only(submit(engine, cell, job("later").job, 1), AskQueues)
    effects = report(engine, cell, asked)
    assert not of(effects, Enqueue)
    assert only(effects, Explain).tasks.tolist() == tasks_of(1, 0).tolist()
    # Another kind of task does not wait for these.
    asked = only(submit(engine, cell, job("other", cpu=2_000).job, 2), AskQueues)
    assert only(report(engine, cell, asked), Enqueue).tasks.tolist() == tasks_of(2, 0).tolist()


@YAQS
def test_where_there_is_room_for_some_of_a_job_the_others_wait(name: str) -> None:
    engine, cell = an_engine(name), cell_of(4, 4, 4)
    asked = only(submit(engine, cell, job("a", 4).job, 0), AskQueues)
    effects = report(engine, cell, asked, room=[1, 1, 1])
    assert sorted(only(effects, Enqueue).machines.tolist()) == [0, 1, 2]
    assert len(only(effects, Explain).tasks) == 1


def test_tasks_that_require_something_else_wait_in_a_line_of_their_own() -> None:
    engine, cell = an_engine("sparrow"), cell_of(4, 4, 4, m1={"disk": "ssd"}, m2={"disk": "hdd"})
    waits = []
    for number, disk in enumerate(("ssd", "hdd")):
        made = Job(disk, (TaskGroup(1, SMALL, requires={"disk": disk}),))
        waits.append(only(come_back(engine, cell, made, number), AskQueues).until_room.tolist())
    assert waits == [[1], [2]]


def test_a_line_whose_machines_have_gone_is_begun_again_job_by_job() -> None:
    engine, cell = an_engine("yaq-d"), cell_of(4, 4, m1={"disk": "ssd"})
    made = [
        Job(name, (TaskGroup(2, SMALL, requires={"disk": "ssd"}),)) for name in ("first", "later")
    ]
    for number, each in enumerate(made):
        come_back(engine, cell, each, number)
    cell.commit(Transaction(OPERATOR, machines=(RemoveMachine(1),)))
    engine.handle(MachineLost(1), cell, 0)
    asked = of(engine.handle(MachineChanged(0), cell, 0), AskQueues)
    told = [report(engine, cell, each) for each in asked]
    found = [only(effects, Explain).tasks.tolist() for effects in told]
    assert found == [tasks_of(number, 0, 1).tolist() for number in (0, 1)]


def test_an_answer_to_a_question_from_before_a_machine_joined_is_not_used() -> None:
    engine, cell = an_engine("sparrow"), cell_of(4)
    before = only(come_back(engine, cell, job("a").job, 0), AskQueues)
    joins = AddMachine(Machine("m1", Resources(4_000, 64 * GIB)))
    cell.commit(Transaction(OPERATOR, machines=(joins,)))
    after = only(engine.handle(MachineJoined(1), cell, 0), AskQueues)
    assert after.until_room.tolist() == [0, 1]
    assert not report(engine, cell, before, room=[1, 0])
    assert only(report(engine, cell, after, room=[0, 1]), Probe).machines.tolist() == [1]


@pytest.mark.parametrize(
    ("share", "machines", "expected"), [(0.3, 4, 2), (0.1, 11, 2), (0.01, 3, 1), (0.25, 8, 2)]
)
def test_a_share_is_never_less_than_it_says(share: float, machines: int, expected: int) -> None:
    assert share_of(share, machines) == expected


class TestLongAndShort:
    def hybrid(self, name: str, **settings: Any) -> Any:
        return an_engine(name, cutoff=60 * SECOND, **settings)

    def test_a_job_is_long_if_any_of_its_groups_is(self) -> None:
        groups = [TaskGroup(1, SMALL, estimate=seconds * SECOND) for seconds in (1, 100)]
        for number, mixed in enumerate((groups, groups[::-1])):
            engine = self.hybrid("hawk")
            assert only(submit(engine, cell_of(4), Job("a", tuple(mixed)), number), AskQueues)

    def test_long_tasks_go_to_the_least_work_of_their_own_machines(self) -> None:
        engine, cell = self.hybrid("hawk", long_share=0.5), cell_of(4, 4, 4, 4)
        asked = only(submit(engine, cell, job("long", seconds=100).job, 0), AskQueues)
        effects = report(engine, cell, asked, waits=[0, 0, 9, 7])
        assert only(effects, Enqueue).machines.tolist() == [3]

    @pytest.mark.parametrize("t_job", [0, 5])
    def test_what_is_cancelled_is_not_begun_whatever_it_waited_for(self, t_job: int) -> None:
        engine, cell = self.hybrid("hawk", t_job=t_job), cell_of(4)
        giant = job("giant", 2, cpu=8_000).job
        submit(engine, cell, giant, 0)
        long = job("long", 2, seconds=100).job
        begun = submit(engine, cell, long, 1)
        engine.handle(JobCancelled(giant, 0, tasks_of(0, 0, 1)), cell, 0)
        engine.handle(JobCancelled(long, 1, tasks_of(1, 0, 1)), cell, 0)
        for thinking in of(begun, Think):
            assert not engine.handle(DecisionDue(thinking.token), cell, t_job)
        joins = AddMachine(Machine("m1", Resources(16_000, 64 * GIB)))
        cell.commit(Transaction(OPERATOR, machines=(joins,)))
        assert not [
            each for each in of(engine.handle(MachineJoined(1), cell, 9), Probe) if len(each.tasks)
        ]


class TestStaleStates:
    """Schedulers that learn where long tasks are from the machines that they probe."""

    def eagle(self, **settings: Any) -> Eagle:
        return Eagle(EagleSettings(stale_state=True, **settings), Context("s", (), Random(1)))

    def probed(self, engine: Eagle, count: int, lengths: list[int]) -> list[int]:
        machines = np.arange(len(lengths), dtype=np.int32)
        nowhere, state = np.empty(0, np.int32), np.array(lengths, np.int64)
        return sorted(engine.probed(machines, nowhere, count, state).tolist())

    def placed(self, engine: Eagle, machines: list[int], lengths: list[int]) -> None:
        engine.placed_long(np.array(machines, np.int32), np.array(lengths, np.int64))

    def test_machines_that_joined_know_of_no_state(self) -> None:
        engine = self.eagle()
        self.placed(engine, [0], [0, 0])
        # Machine 0 is said to have long tasks by all who know a state, and machine 2 knows none.
        assert engine._last.tolist() == [0, -1]
        self.placed(engine, [2], [1, 0, 0])
        assert engine._last.tolist() == [0, -1, 1]
        assert [state.tolist() for state in engine._states] == [
            [True, False, False],
            [True, False, True],
        ]

    def test_the_latest_state_heard_of_is_used_in_both_rounds(self) -> None:
        engine = self.eagle()
        # The first state is known to machine 0, the second to machine 1.
        self.placed(engine, [0], [0, 0, 0, 0])
        self.placed(engine, [1], [1, 0, 0, 0])
        # All four are asked; 0, 1 and 2 refuse. By what machine 1 knows, 2 and 3 are free.
        found = self.probed(engine, 4, [1, 1, 1, 0])
        assert found.count(3) >= 2
        assert set(found) <= {0, 1, 2, 3}


class TestTurnsOfEndlessTasks:
    def bench(self, *cores: int, **attributes: dict[str, str]) -> tuple[EndlessTasks, Cell]:
        return EndlessTasks(Context("s", (), Random(1))), cell_of(*cores, **attributes)

    def endless(self, name: str, count: int = 1, **fields: Any) -> Job:
        return Job(name, (TaskGroup(count, SMALL, endless=True, **fields),))

    def turns(self, endless: EndlessTasks, cell: Cell) -> list[int]:
        explains = of(endless.retry(cell, SECOND), Explain)
        return [int(job_of(int(each.tasks[0]))) for each in explains]

    def refuse(self, endless: EndlessTasks, cell: Cell, commit: Commit) -> None:
        outcome = cell.commit(commit.transaction)
        assert not outcome.accepted.any()
        endless.committed(Committed(commit.token, outcome), 0)

    def test_they_go_only_where_their_requirements_are_met(self) -> None:
        endless, cell = self.bench(8, 2, 8, m1={"disk": "ssd"})
        made = self.endless("a", 2, requires={"disk": "ssd"})
        [commit] = endless.place(made, 0, tasks_of(0, 0, 1), cell, 0)
        assert isinstance(commit, Commit)
        assert commit.transaction.claims is not None
        assert commit.transaction.claims.machines.tolist() == [1, 1]

    def test_a_job_whose_claim_is_refused_goes_before_those_that_came_meanwhile(self) -> None:
        endless, cell = self.bench(1)
        [commit] = endless.place(self.endless("first"), 0, tasks_of(0, 0), cell, 0)
        assert isinstance(commit, Commit)
        take(cell, 0, 1)
        endless.place(self.endless("later"), 1, tasks_of(1, 0), cell, 0)
        self.refuse(endless, cell, commit)
        assert self.turns(endless, cell) == [0, 1]

    def test_a_job_keeps_its_turn_while_any_claim_of_it_has_no_answer(self) -> None:
        endless, cell = self.bench(2)
        made = self.endless("first", 2)
        commits = [
            each
            for index in range(2)
            for each in endless.place(made, 0, tasks_of(0, index), cell, 0)
            if isinstance(each, Commit)
        ]
        take(cell, 0, 1)
        one, other = commits
        outcome = cell.commit(one.transaction)
        assert outcome.all_accepted
        # Another finds the machine full before the second answer comes.
        endless.committed(Committed(one.token, outcome), 0)
        endless.place(self.endless("later"), 1, tasks_of(1, 0), cell, 0)
        self.refuse(endless, cell, other)
        assert self.turns(endless, cell) == [0, 1]
