"""The queues of Kubernetes' scheduler by themselves: turns, retries, attempts that are skipped, and room
that was not found."""

from __future__ import annotations

import pytest
from serial_attempts import cell_of, take, tasks_of

from argosy.engines.kube.queues import (
    NEVER_DUE,
    Batch,
    Kinds,
    QueuedPod,
    ReadyQueue,
    RetryQueue,
    TaskKind,
)
from argosy.engines.kube.room import Lack, Room
from argosy.engines.kube.skipped_attempts import VainAttempts
from argosy.model.effects import EarlierTime
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job, TaskGroup
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, DrainMachine, Transaction
from argosy.testing.builders import GIB, SECOND

PLAIN = TaskKind(0, 0, {})
HIGH = TaskKind(0, 5, {})


def pod(task: int, *, since: int = 0, kind: TaskKind = PLAIN, job: int = 0) -> QueuedPod:
    return QueuedPod(job, kind, task, since)


def batch(*tasks: int, since: int = 0, kind: TaskKind = PLAIN) -> Batch:
    return Batch(0, kind, tasks_of(0, *tasks), since)


def drained(ready: ReadyQueue) -> list[int]:
    found = []
    while ready:
        head = ready.head
        taken = ready.pop()
        assert head is taken or isinstance(head, Batch)
        found.append(taken.task)
    assert ready.head is None
    return found


class TestReady:
    def test_precedence_comes_before_arrival(self) -> None:
        ready = ReadyQueue()
        ready.add(batch(0, 1))
        ready.add(batch(2, kind=HIGH))
        ready.put_back(pod(3))
        ready.put_back(pod(4, kind=HIGH))
        assert [each.task for each in ready if isinstance(each, QueuedPod)] == [3, 4]
        assert drained(ready) == [2, 4, 0, 1, 3]

    @pytest.mark.parametrize(
        ("by_creation", "expected"), [(False, [0, 1, 8, 7, 9]), (True, [7, 0, 1, 8, 9])]
    )
    def test_tasks_from_the_retry_queue_go_by_their_creation_where_that_is_set(
        self, by_creation: bool, expected: list[int]
    ) -> None:
        ready = ReadyQueue(by_creation=by_creation)
        ready.add(batch(0, 1, since=10))
        for task, since in ((8, 20), (7, 10), (9, 20)):
            ready.take_back(pod(task, since=since))
        assert drained(ready) == expected

    def test_a_pod_of_a_fresh_batch_knows_it_until_the_batch_is_explained(self) -> None:
        ready, many = ReadyQueue(), batch(0, 1, 2, since=7)
        ready.add(many)
        first = ready.pop()
        assert (first.batch, first.explained, first.since) == (many, 0, 7)
        assert many.is_silent
        assert ready.explained(many) == tasks_of(0, 1, 2).tolist()
        assert not many.is_silent
        later = ready.pop()
        assert (later.batch, later.explained) == (None, 1)

    def test_what_is_ahead_of_a_fresh_batch(self) -> None:
        ready = ReadyQueue()
        assert ready.ahead_of_fresh is None
        first, second = batch(0, 1), batch(2)
        ready.put_back(pod(9, kind=HIGH))
        ready.put_back(pod(8))
        ready.add(first)
        ready.add(second)
        assert ready.ahead_of_fresh == 2
        ready.pop()
        assert ready.ahead_of_fresh == 1
        ready.pop()
        assert ready.ahead_of_fresh == 0
        ready.pop()
        ready.explained(first)
        # The rest of the first batch is before the second.
        assert ready.ahead_of_fresh == 1
        ready.pop()
        assert ready.ahead_of_fresh == 0
        ready.pop()
        assert ready.ahead_of_fresh is None

    @pytest.mark.parametrize(
        ("returned", "ahead"), [((), 0), ((10, 10), 2), ((9, 10), 2), ((10, 11), 1), ((11,), 0)]
    )
    def test_returned_tasks_go_ahead_of_a_fresh_batch_unless_they_are_younger(
        self, returned: tuple[int, ...], ahead: int
    ) -> None:
        ready = ReadyQueue(by_creation=True)
        ready.add(batch(0, 1, since=10))
        for task, since in enumerate(returned, 7):
            ready.take_back(pod(task, since=since))
        assert ready.ahead_of_fresh == ahead

    def test_withdrawn_tasks_are_counted_by_kind_and_never_tried(self) -> None:
        ready = ReadyQueue(by_creation=True)
        ready.add(batch(0, 1, 2))
        ready.put_back(pod(3))
        ready.put_back(pod(4, kind=HIGH))
        ready.take_back(pod(5))
        ready.take_back(pod(6))
        gone = ready.keep(lambda task: task in (1, 3, 6))
        assert gone == {PLAIN: 3, HIGH: 1}
        assert ready.ahead_of_fresh == 1
        assert drained(ready) == [6, 1, 3]
        ready.add(batch(7))
        assert ready.keep(lambda task: False) == {PLAIN: 1}
        assert not ready

    def test_batches_that_others_pass_over_are_told_once(self) -> None:
        ready = ReadyQueue()
        early, late, high = batch(0, 1, since=5), batch(2, since=6), batch(3, kind=HIGH)
        for each in (early, late, high):
            ready.add(each)
        assert ready.passed_over(0, 9) == []
        assert ready.passed_over(5, 4) == []
        assert ready.passed_over(5, 5) == [early]
        assert ready.passed_over(5, 9) == [late]
        assert ready.passed_over(6, 9) == [high]
        assert ready.passed_over(6, 9) == []
        early.is_fresh = False
        ready.tell_again()
        assert ready.passed_over(6, 9) == [late, high]


class TestRetries:
    def test_a_task_waits_its_time_and_not_longer(self) -> None:
        ready, waiting = ReadyQueue(), RetryQueue(10)
        assert waiting.due == NEVER_DUE
        waiting.add(pod(1), 5)
        waiting.add(pod(2, kind=HIGH), 6)
        assert (waiting.due, len(waiting)) == (15, 2)
        waiting.move_due(14, ready)
        assert not ready
        waiting.move_due(15, ready)
        assert ([each.task for each in waiting], drained(ready)) == ([2], [1])
        waiting.add(pod(3), 9)
        assert waiting.keep(lambda task: task == 3) == {HIGH: 1}
        assert [each.task for each in waiting] == [3]

    def test_kinds_are_told_apart_by_all_that_matters(self) -> None:
        kinds, group = Kinds(), TaskGroup(1, Resources(1, 1), requires={"a": "1"}, wishes={"b": 2})
        made = Job("j", (group,), precedence=3)
        kind = kinds.of(made, group, 7)
        assert (kind.shape, kind.precedence, kind.preempts) == (7, 3, True)
        assert (kind.requires, kind.wishes) == ({"a": "1"}, {"b": 2})
        assert kinds.of(Job("k", (group,), precedence=3), group, 7) is kind
        others = [
            kinds.of(made, group, 8),
            kinds.of(made, TaskGroup(1, Resources(1, 1), wishes={"b": 2}), 7),
            kinds.of(made, TaskGroup(1, Resources(1, 1), requires={"a": "1"}), 7),
            kinds.of(Job("l", (group,), precedence=3, preempts=False), group, 7),
        ]
        assert len({kind, *others}) == 5
        assert not others[-1].preempts


class TestSkippedAttempts:
    def bench(self, *, retry: int) -> tuple[ReadyQueue, VainAttempts]:
        ready = ReadyQueue()
        return ready, VainAttempts(ready, RetryQueue(retry), 10, retry)

    def test_attempts_go_round_until_one_is_under_way(self) -> None:
        ready, vain = self.bench(retry=0)
        for task in (1, 2):
            ready.put_back(pod(task, job=task))
        vain.since = 100
        found = vain.until(135)
        assert found is not None
        # 1 and 2 at 100 and 110, 1 again at 120, and 2 from 130 to 140.
        assert (found[0].task, found[1]) == (2, 140)
        assert (found[0].attempts, found[0].failed_at) == (2, 120)
        assert (vain.most, vain.take_passed(), vain.take_passed()) == (2, 4, 0)
        assert vain.take_unreported(1) == EarlierTime(35, 20)
        assert vain.take_unreported(2) == EarlierTime(0, 15)
        assert vain.take_unreported(2) is None
        assert vain.since is None
        assert drained(ready) == [1]

    def test_an_attempt_that_would_start_now_is_really_made(self) -> None:
        ready, vain = self.bench(retry=0)
        ready.put_back(pod(1))
        vain.since = 100
        assert vain.until(120) is None
        assert vain.take_passed() == 2
        vain.since = 120
        assert vain.until(120) is None
        assert vain.take_passed() == 0

    def test_tasks_rest_between_attempts(self) -> None:
        ready, vain = self.bench(retry=50)
        ready.put_back(pod(1))
        vain.since = 0
        assert vain.earliest_attempt(3) == 120
        # Attempts at 0, 60 and 120; the next is due at 180.
        assert vain.until(180) is None
        assert (vain.take_passed(), vain.most) == (3, 3)
        assert not ready
        vain.since = 180
        assert vain.earliest_attempt(4) == 180
        vain.recount()
        assert vain.most == 3

    def test_the_most_attempts_are_of_tasks_that_are_left(self) -> None:
        _, vain = self.bench(retry=0)
        often, seldom = pod(1), pod(2)
        for each, times in ((often, 3), (seldom, 1)):
            for _ in range(times):
                vain.tried(each)
        assert vain.most == 3
        vain.put_aside(seldom, 7)
        assert seldom.failed_at == 7
        vain.recount()
        assert vain.most == 1


class TestRoom:
    def test_an_explanation_is_recent_for_a_second(self) -> None:
        lack = Lack(Explanation(), 0, 5)
        assert (lack.is_recent(5 + SECOND), lack.is_recent(6 + SECOND)) == (True, False)

    def test_a_kind_lacks_room_until_a_machine_changes_that_would_do(self) -> None:
        cell, room = cell_of(1, 1, m1={"disk": "ssd"}), Room(preempts=False)
        small = cell.shape(Resources(1_000, GIB))
        plain, picky = TaskKind(small, 0, {}), TaskKind(small, 0, {"disk": "ssd"})
        take(cell, 0, 1, number=98)
        take(cell, 1, 1, number=99)
        why = Explanation(looked_at=2)
        for kind in (plain, picky):
            room.wanted(kind, 2)
            room.found_none(kind, why, cell, 3)
        assert room.why_none_before(plain) is why
        assert not room.is_own(cell)
        assert not room.is_short(cell)
        cell.commit(Transaction(OPERATOR, releases=tasks_of(98, 0)))
        lack = room.look_again(picky, cell)
        assert lack is not None
        assert lack.at == 3
        assert room.look_again(plain, cell) is None
        # It is forgotten with that.
        assert room.look_again(plain, cell) is None
        room.changed()
        assert room.look_again(picky, cell) is None

    def test_a_full_cell_of_ones_own_is_short_until_a_task_ends(self) -> None:
        cell, room = cell_of(1, 1), Room(preempts=False)
        kind = TaskKind(cell.shape(Resources(1_000, GIB)), 0, {})
        cell.commit(Transaction(OPERATOR, machines=(DrainMachine(1),)))
        room.wanted(kind, 2)
        assert not room.is_short(cell)
        room.taken(kind, cell)
        assert not room.is_own(cell)
        take(cell, 0, 1)
        assert room.is_own(cell)
        assert not room.is_short(cell)
        room.found_none(kind, Explanation(), cell, 0)
        assert room.is_short(cell)
        cell.commit(Transaction(OPERATOR, releases=tasks_of(99, 0)))
        room.given_back([kind.shape], cell)
        assert room.is_own(cell)
        assert not room.is_short(cell)
        # Nobody waits: nothing can be found.
        room.wanted(kind, -1)
        assert room.is_short(cell)

    @pytest.mark.parametrize(
        ("preempts", "kind_preempts", "precedence", "lacks"),
        [
            (True, True, 1, False),
            (True, True, 0, True),
            (False, True, 1, True),
            (True, False, 1, True),
        ],
    )
    def test_room_that_others_would_have_to_leave_counts_for_those_who_may_preempt(
        self, preempts: bool, kind_preempts: bool, precedence: int, lacks: bool
    ) -> None:
        cell, room = cell_of(1), Room(preempts=preempts)
        shape = cell.shape(Resources(1_000, GIB), (), precedence)
        kind = TaskKind(shape, precedence, {}, preempts=kind_preempts)
        room.found_none(kind, Explanation(), cell, 0)
        take(cell, 0, 1)
        assert (room.look_again(kind, cell) is not None) is lacks
