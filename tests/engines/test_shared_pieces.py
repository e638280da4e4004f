"""Pieces that several engines share, by themselves: turns, gangs that wait, failed tasks, and which
machines may be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, take, tasks_of

from argosy.cell import Cell
from argosy.cell.bitmaps import to_mask
from argosy.engines.api import Context
from argosy.engines.shared.backlog import Backlog, all_full, room_in_queue, with_room
from argosy.engines.shared.decision_queue import DecisionQueue
from argosy.engines.shared.endless_tasks import TIMER, EndlessTasks
from argosy.engines.shared.gangs import explain_gang, waits_for_gang
from argosy.engines.shared.probing import Candidates, Stuck
from argosy.engines.shared.wished import wished_tiers
from argosy.engines.shared.withdrawal import added, chosen_claims, failed, left, update, withdrawn
from argosy.model.effects import Commit, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    JobCancelled,
    JobChanged,
    TaskFailed,
    TaskFinished,
    TasksLost,
)
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Claims, DrainMachine, RemoveMachine, Transaction
from argosy.testing.builders import GIB, SECOND, job, shared_job

SMALL, LARGE = Resources(1_000, GIB), Resources(3_000, GIB)


def mixed(**fields: Any) -> Job:
    """Two large tasks and three small ones."""
    groups = (TaskGroup(2, LARGE, estimate=70), TaskGroup(3, SMALL, tags=("web",)))
    return Job("mixed", groups, **fields)


class TestTurns:
    def test_one_job_is_decided_on_at_a_time(self) -> None:
        queue = DecisionQueue(100, 10)
        first, second = job("a", 3).job, job("b", 1).job
        assert queue.add((first, 4, tasks_of(4, 0, 1, 2))) == (Think(130, 4, 4),)
        assert queue.add((second, 5, tasks_of(5, 0))) == ()
        assert queue.decided()[:2] == (first, 4)
        assert queue.next() == (Think(110, 5, 5),)
        assert queue.decided()[:2] == (second, 5)
        assert queue.next() == ()

    @pytest.mark.parametrize(
        ("times", "takes_time"), [((0, 0), False), ((1, 0), True), ((0, 1), True)]
    )
    def test_either_time_counts(self, times: tuple[int, int], takes_time: bool) -> None:
        assert DecisionQueue(*times).takes_time is takes_time

    @pytest.mark.parametrize(("by_work", "turns"), [(False, [1, 2, 3]), (True, [2, 1, 3])])
    def test_the_least_work_comes_first_where_that_is_set(
        self, by_work: bool, turns: list[int]
    ) -> None:
        queue = DecisionQueue(1, 0, by_work=by_work)
        queue.add((job("now").job, 0, tasks_of(0, 0)))
        # 30 s in all, 20 s in all, and 30 s again, which came later.
        for number, (tasks, seconds) in enumerate([(3, 10), (1, 20), (1, 30)], 1):
            made = job(f"j{number}", tasks, seconds=seconds, estimate=seconds * SECOND).job
            queue.add((made, number, tasks_of(number, *range(tasks))))
        found = []
        for _ in turns:
            queue.decided()
            queue.next()
            assert queue._deciding is not None
            found.append(queue._deciding[1])
        assert found == turns

    def test_what_is_cancelled_is_forgotten_whether_it_waits_or_not(self) -> None:
        queue = DecisionQueue(1, 0)
        made = job("a", 2).job
        queue.add((made, 0, tasks_of(0, 0, 1)))
        queue.add((made, 1, tasks_of(1, 0, 1)))
        for number in (0, 1):
            queue.withdraw(JobCancelled(made, number, tasks_of(number, 1)))
        assert queue.decided()[2].tolist() == tasks_of(0, 0).tolist()
        queue.next()
        assert queue.decided()[2].tolist() == tasks_of(1, 0).tolist()


class TestGangs:
    def test_a_member_with_a_machine_waits_for_the_others(self) -> None:
        told = waits_for_gang(5, 2)
        assert told.refused == Refusal(Why.TOGETHER)
        assert (told.remedy, told.gang_room) == ("room for all 5 tasks at once; 2 had room", 2)

    def test_members_of_a_group_share_their_reason_and_others_wait_for_them(self) -> None:
        tasks = tasks_of(0, 0, 1, 2, 3, 4)
        why = Explanation(looked_at=9, remedy="buy a machine")
        first, second = explain_gang(mixed(), tasks, [Explain(tasks_of(0, 0, 1), why)], 3)
        assert first.tasks.tolist() == tasks_of(0, 0, 1).tolist()
        assert (first.explanation.looked_at, first.explanation.gang_room) == (9, 3)
        # The whole group has no machine: its own remedy stands.
        assert first.explanation.remedy == "buy a machine"
        assert second.tasks.tolist() == tasks_of(0, 2, 3, 4).tolist()
        assert second.explanation == waits_for_gang(5, 3)
        first, _ = explain_gang(mixed(), tasks, [Explain(tasks_of(0, 1), why)], 4)
        assert first.explanation.remedy == "room for all 5 tasks at once; 4 had room"
        assert (first.explanation.looked_at, first.explanation.gang_room) == (9, 4)


class TestWithdrawal:
    def test_a_failed_task_that_is_tried_again_is_lost_and_another_is_finished(self) -> None:
        cell, made = cell_of(4), mixed(precedence=3)
        tasks, machines = tasks_of(0, 1, 2), np.array([5, 6], np.int32)

        def event(*, again: bool) -> TaskFailed:
            return TaskFailed(made, 0, tasks, machines, tasks, 1, "broke", again)

        lost = failed(event(again=True), cell)
        assert isinstance(lost, TasksLost)
        assert (lost.why, lost.machines.tolist()) == (Why.FAILED, [5, 6])
        over = failed(event(again=False), cell)
        assert isinstance(over, TaskFinished)
        assert over.machines.tolist() == [5, 6]
        assert over.estimates.tolist() == [70, 0]
        assert over.shapes.tolist() == [
            cell.shape(LARGE, (), 3),
            cell.shape(SMALL, ("web",), 3),
        ]

    def test_a_change_removes_tasks_and_adds_others(self) -> None:
        made, tasks = job("a", 4).job, tasks_of(0, 0, 1, 2)
        none = tasks[:0]
        change = JobChanged(made, 0, removed=tasks_of(0, 1), added=tasks_of(0, 3))
        cancel = JobCancelled(made, 0, tasks_of(0, 2))
        assert withdrawn(change).tolist() == tasks_of(0, 1).tolist()
        assert withdrawn(cancel).tolist() == tasks_of(0, 2).tolist()
        grown = added(change)
        assert grown is not None
        assert grown.tasks.tolist() == tasks_of(0, 3).tolist()
        assert added(cancel) is None
        assert added(JobChanged(made, 0, removed=tasks, added=none)) is None
        assert left(tasks, change).tolist() == tasks_of(0, 0, 2).tolist()
        former = job("a", 3).job
        now, _, wanted = update((former, 0, tasks), change)
        assert (now, wanted.tolist()) == (made, tasks_of(0, 0, 2).tolist())
        other = (former, 1, tasks)
        assert update(other, change) is other

    def test_some_rows_of_claims_keep_their_columns(self) -> None:
        claims = Claims(
            tasks_of(0, 0, 1, 2),
            np.array([3, 4, 5], np.int32),
            np.array([6, 7, 8], np.int32),
            np.array([9, 10, 11], np.uint32),
            np.array([-1, 0, 0], np.int32),
        )
        assert chosen_claims(claims, np.ones(3, np.bool_)) is claims
        assert chosen_claims(claims, np.zeros(3, np.bool_)) is None
        some = chosen_claims(claims, np.array([True, False, True]))
        assert some is not None
        assert some.gangs is not None
        assert some.tasks.tolist() == tasks_of(0, 0, 2).tolist()
        columns = (some.machines, some.shapes, some.versions, some.gangs)
        assert [column.tolist() for column in columns] == [[3, 5], [6, 8], [9, 11], [-1, 0]]


class TestMachines:
    def test_machines_that_are_large_enough_and_take_claims(self) -> None:
        disks = {f"m{at}": {"disk": "ssd"} for at in (1, 2, 3, 4)}
        cell, known, made = cell_of(4, 3, 2, 4, 4, **disks), Candidates(), mixed()
        large, small = made.groups
        changes = (DrainMachine(3), RemoveMachine(4))
        cell.commit(Transaction(OPERATOR, machines=changes))
        assert known.of(made, large, cell).tolist() == [0, 1]
        assert known.of(made, small, cell).tolist() == [0, 1, 2]
        picky = TaskGroup(1, LARGE, requires={"disk": "ssd"})
        assert known.of(made, picky, cell).tolist() == [1]
        unknown = TaskGroup(1, Resources(1, 1, {"gpu": 1}))
        assert known.of(made, unknown, cell).tolist() == []
        cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0),)))
        assert known.of(made, large, cell).tolist() == [0, 1]
        known.forget()
        assert known.of(made, large, cell).tolist() == [1]

    @pytest.mark.parametrize(
        ("shares", "expected"),
        [
            ({}, [0, 1, 2, 3, 4]),
            ({"but_last": 0.4}, [0, 1, 2]),
            ({"only_last": 0.4}, [3, 4]),
            ({"but_last": 0.2, "only_last": 0.6}, [2, 3]),
        ],
    )
    def test_shares_are_counted_from_the_last(
        self, shares: dict[str, float], expected: list[int]
    ) -> None:
        made = job("a").job
        known = Candidates(**shares)
        assert known.of(made, made.groups[0], cell_of(*[4] * 5)).tolist() == expected

    def test_machines_with_more_that_is_wished_for_come_first(self) -> None:
        marks = {
            "m1": {"fast": "true"},
            "m2": {"near": "true"},
            "m3": {"fast": "true", "near": "true"},
        }
        cell = cell_of(4, 4, 4, 4, **marks)

        def tiers(wishes: dict[str, int], requires: dict[str, str] | None = None) -> list[Any]:
            found = wished_tiers(wishes, requires or {}, 7, cell)
            return [(np.flatnonzero(to_mask(bitmap, 4)).tolist(), most) for bitmap, most in found]

        assert tiers({}) == []
        assert tiers({"fast": 5, "near": 2}) == [([3], 7), ([1], 7), ([2], 7)]
        assert tiers({"fast": -5}) == [([0, 2], 7)]
        # Machines that do not meet the requirements are no tier of their own.
        assert tiers({"fast": 5, "near": 2}, {"near": "true"}) == [([3], 7)]

    def test_tasks_that_no_machine_can_take_are_told_and_taken_once(self) -> None:
        cell, stuck = cell_of(2, 4, m1={"disk": "hdd"}), Stuck()
        made = job("a", 2, cpu=9_000).job
        told = stuck.add(made, 0, made.groups[0], tasks_of(0, 0, 1), cell, Random(1))
        assert isinstance(told, Explain)
        assert told.tasks.tolist() == tasks_of(0, 0, 1).tolist()
        miss = told.explanation.nearest_miss
        assert miss is not None
        assert (miss.machine, miss.dimension, miss.lacking) == (1, "cpu", 5_000)
        picky = job("b", cpu=9_000, requires={"disk": "ssd"}).job
        other = stuck.add(picky, 1, picky.groups[0], tasks_of(1, 0), cell, Random(1))
        assert isinstance(other, Explain)
        assert other.explanation.nearest_miss is None
        stuck.withdraw(JobCancelled(made, 0, tasks_of(0, 1)))
        found = [(number, tasks.tolist()) for _, number, tasks in stuck.take()]
        assert found == [(0, tasks_of(0, 0).tolist()), (1, tasks_of(1, 0).tolist())]
        assert not stuck.take()


class TestRoomInQueues:
    def test_full_queues_are_counted_and_the_first_is_named(self) -> None:
        told = all_full(np.array([7, 3], np.int32))
        assert (told.looked_at, told.ruled_out) == (2, {"queue full": 2})
        assert told.nearest_miss == Refusal(Why.QUEUE_FULL, machine=7)
        assert room_in_queue().rule == "queue with room"

    @pytest.mark.parametrize(
        ("room", "count", "step", "expected"),
        [
            # Waits are 10, 0 and 5.
            ([9, 9, 9], 3, 0, [1, 1, 1]),
            ([9, 9, 9], 4, 4, [1, 1, 2, 1]),
            ([9, 9, 9], 4, 6, [1, 2, 1, 0]),
            ([1, 1, 1], 5, 0, [1, 2, 0]),
            ([2, 0, 1], 2, 0, [2, 0]),
            ([0, 0, 0], 2, 0, []),
        ],
    )
    def test_places_go_to_the_smallest_waits_first(
        self, room: list[int], count: int, step: int, expected: list[int]
    ) -> None:
        machines = np.arange(3, dtype=np.int32)
        waits = np.array([10, 0, 5], np.int64)
        chosen = with_room(machines, np.array(room), count, Random(1), waits, step)
        assert chosen.tolist() == expected

    def test_without_waits_every_machine_gets_its_first_place_before_any_gets_a_second(
        self,
    ) -> None:
        machines = np.array([2, 4, 5], np.int32)
        room = np.array([9, 9, 3, 9, 1, 2], np.int64)
        chosen = with_room(machines, room, 5, Random(3)).tolist()
        assert sorted(chosen[:3]) == [2, 4, 5]
        assert sorted(chosen[3:]) == [2, 5]

    def test_cancelled_tasks_leave_their_line_and_an_empty_line_goes(self) -> None:
        backlog, made = Backlog(), job("a", 2).job
        backlog.add(("x",), (made, 0, tasks_of(0, 0)))
        backlog.add(("y",), (made, 0, tasks_of(0, 1)))
        backlog.add(("y",), (made, 1, tasks_of(1, 0, 1)))
        backlog.asks(1, ("x",))
        backlog.asks(2, ("y",))
        backlog.withdraw(JobCancelled(made, 0, tasks_of(0, 0, 1)))
        assert (("x",) in backlog, ("y",) in backlog) == (False, True)
        head = backlog.head(("y",))
        assert head is not None
        assert head[1] == 1
        assert backlog.head(("x",)) is None
        assert [backlog.answered(token) for token in (1, 2, 2)] == [None, ("y",), None]


class TestEndlessTasks:
    def bench(self, *cores: int, keeps: bool = True) -> tuple[EndlessTasks, Cell]:
        context = Context("s", (), Random(1), keeps_explanations=keeps)
        return EndlessTasks(context), cell_of(*cores)

    def test_workers_and_endless_groups_are_told_from_the_others(self) -> None:
        groups = (TaskGroup(1, SMALL, estimate=5), TaskGroup(2, SMALL, endless=True))
        made, tasks = Job("a", groups), tasks_of(0, 0, 1, 2)
        standing, others = EndlessTasks.split(made, tasks)
        assert standing.tolist() == tasks_of(0, 1, 2).tolist()
        assert others.tolist() == tasks_of(0, 0).tolist()
        standing, others = EndlessTasks.split(job("b", 3).job, tasks)
        assert (standing.tolist(), others.tolist()) == ([], tasks.tolist())
        standing, others = EndlessTasks.split(shared_job("w", 3, (4,), (1,)).job, tasks)
        assert (standing.tolist(), others.tolist()) == (tasks.tolist(), [])

    @pytest.mark.parametrize(("keeps", "groups"), [(True, 1), (False, 1), (True, 2)])
    def test_a_placement_is_explained_if_it_is_of_one_group_and_anyone_keeps_it(
        self, keeps: bool, groups: int
    ) -> None:
        endless, cell = self.bench(4, keeps=keeps)
        made = Job("a", (TaskGroup(1, SMALL, endless=True),) * groups)
        [commit] = endless.place(made, 0, tasks_of(0, *range(groups)), cell, 0)
        assert isinstance(commit, Commit)
        assert (commit.explanation is not None) is (keeps and groups == 1)
        assert endless.place(made, 0, tasks_of(0), cell, 0) == ()

    def test_a_refused_claim_is_tried_again_in_a_second_and_an_accepted_one_is_not(self) -> None:
        endless, cell = self.bench(2)
        made = job("a", 2, seconds=None).job
        [commit] = endless.place(made, 0, tasks_of(0, 0, 1), cell, 0)
        assert isinstance(commit, Commit)
        take(cell, 0, 1)
        outcome = cell.commit(commit.transaction)
        assert outcome.accepted.tolist() == [True, False]
        assert endless.committed(Committed(commit.token, outcome), 7) == (
            WakeMe(7 + SECOND, TIMER),
        )
        effects = endless.retry(cell, SECOND)
        assert [type(effect) for effect in effects] == [Explain, WakeMe]
        assert isinstance(effects[0], Explain)
        assert effects[0].tasks.tolist() == tasks_of(0, 1).tolist()
        cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
        [again] = endless.retry(cell, 2 * SECOND)
        assert isinstance(again, Commit)
        assert again.token != commit.token
        assert again.transaction.scheduler == "s"
        assert endless.committed(Committed(again.token, cell.commit(again.transaction)), 0) == ()
        assert endless.retry(cell, 3 * SECOND) == []
