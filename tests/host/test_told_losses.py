"""Who is told of tasks that lost their machines or inherits them, and what changes of machines do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

import numpy as np
import pytest

from argosy.host import records
from argosy.host.membership import Membership
from argosy.host.protocols import CELL
from argosy.model.events import MachineChanged, MachineJoined, MachineLost, TasksLost
from argosy.model.explanations import Why
from argosy.model.jobs import Job, task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    DrainMachine,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
    Transaction,
)
from argosy.testing.builders import job, shared_job

NOW = 1_000
EMPTY = np.empty(0, np.int64)


class Bench:
    """A host of stand-ins with two schedulers, of which the second owns every job."""

    def __init__(self, *jobs: Job) -> None:
        self.posted: list[tuple[int, str, Any]] = []
        self.inherited: list[tuple[int, int]] = []
        self.lost: list[tuple[int, list[int], list[int]]] = []
        self.owner = scheduler("owner")
        self.other = scheduler("other")
        self.done: set[int] = set()
        self.host: Any = Mock()
        self.host.schedulers = [self.other, self.owner]
        self.host.setup.is_overruled = False
        self.host.runtime.now = NOW
        self.host.runtime.is_hold = lambda task: task < 0
        self.host.runtime.lose_queue.return_value = EMPTY
        self.host.links.reliable_delay = lambda sender, name, now: (
            {"owner": 30, "other": 7}[name] if (sender, now) == (CELL, NOW) else 0
        )
        self.host.board.owner.return_value = 1
        self.host.jobs.job = lambda number: jobs[number]
        self.host.jobs.is_done = lambda number: number in self.done
        self.host.post = lambda at, scheduler, event: self.posted.append(
            (at, scheduler.name, event)
        )
        self.host.inherit = lambda number, now: self.inherited.append((number, now))
        self.host.decisions.lost = lambda now, number, tasks, machines, why: self.lost.append(
            (number, tasks.tolist(), machines.tolist())
        )
        self.membership = Membership(self.host)

    def lose(self, *tasks: int, why: Why = Why.MACHINE_GONE, **options: Any) -> None:
        """The first was at machine 10, the next at 11, and so on."""
        machines = np.arange(10, 10 + len(tasks), dtype=np.int32)
        self.membership.lose(np.array(tasks, np.int64), machines, why, NOW, **options)

    def told(self) -> list[tuple[int, str, int, list[int], list[int], Why]]:
        return [
            (at, name, event.number, event.tasks.tolist(), event.machines.tolist(), event.why)
            for at, name, event in self.posted
            if isinstance(event, TasksLost)
        ]


def scheduler(name: str) -> Any:
    return SimpleNamespace(
        name=name,
        is_alive=True,
        is_given_up=False,
        capabilities=SimpleNamespace(malleable=False, machine_events=True),
    )


def workers() -> Job:
    """Two workers of its own; those with higher numbers are extra."""
    return shared_job("shared", 2, (8,), (5.0,)).job


def test_schedulers_are_told_a_hop_later_of_each_job_apart() -> None:
    bench = Bench(job("a", 3).job, job("b", 2).job)
    first, second, third = task_number(1, 0), task_number(0, 2), task_number(1, 1)
    bench.lose(first, second, third, why=Why.NO_ROOM)
    assert bench.lost == [(0, [second], [11]), (1, [first, third], [10, 12])]
    assert bench.told() == [
        (NOW + 30, "owner", 0, [second], [11], Why.NO_ROOM),
        (NOW + 30, "owner", 1, [first, third], [10, 12], Why.NO_ROOM),
    ]
    assert [event.job.id for _, _, event in bench.posted] == ["a", "b"]


def test_preemptions_are_counted_apart_from_other_losses() -> None:
    bench = Bench(job("a", 9).job)
    for why, count in ((Why.PREEMPTED, 2), (Why.MACHINE_GONE, 1), (Why.NO_ROOM, 3)):
        bench.lose(*(task_number(0, index) for index in range(count)), why=why)
    bench.lose(task_number(0, 0), why=Why.PREEMPTED, is_told=False)
    assert (bench.membership.preemptions, bench.membership.losses) == (3, 4)


@pytest.mark.parametrize("reason", ["untold", "done"])
def test_a_loss_of_which_nobody_is_told_is_written_down(reason: str) -> None:
    bench = Bench(job("a", 2).job, job("b", 2).job)
    bench.owner.is_given_up, bench.done = True, {0} if reason == "done" else set()
    bench.lose(task_number(0, 1), is_told=reason != "untold")
    assert bench.lost == [(0, [task_number(0, 1)], [10])]
    assert (bench.posted, bench.inherited) == ([], [])
    assert bench.membership.losses == 1


def test_the_end_of_one_job_keeps_nobody_from_hearing_of_the_next() -> None:
    bench = Bench(job("a", 2).job, job("b", 2).job)
    bench.done = {0}
    bench.lose(task_number(0, 0), task_number(1, 1))
    assert bench.told() == [
        (NOW + 30, "owner", 1, [task_number(1, 1)], [11], Why.MACHINE_GONE),
    ]


def test_the_tasks_of_a_scheduler_that_is_down_wait_for_it_unless_it_is_given_up() -> None:
    bench = Bench(job("a", 2).job, job("b", 2).job)
    bench.owner.is_alive = False
    bench.lose(task_number(0, 0), task_number(1, 0))
    assert (bench.posted, bench.inherited) == ([], [])
    bench.owner.is_given_up = True
    bench.lose(task_number(0, 0), task_number(1, 0))
    assert (bench.posted, bench.inherited) == ([], [(0, NOW), (1, NOW)])


@pytest.mark.parametrize("is_malleable", [False, True])
@pytest.mark.parametrize("is_alive", [False, True])
def test_only_a_living_malleable_scheduler_hears_of_extra_workers(
    is_malleable: bool, is_alive: bool
) -> None:
    bench = Bench(workers())
    bench.owner.capabilities.malleable, bench.owner.is_alive = is_malleable, is_alive
    bench.owner.is_given_up = not is_alive
    own, extra = task_number(0, 1), task_number(0, 2)
    bench.lose(extra, own)
    hears_all = is_malleable and is_alive
    tasks, machines = ([extra, own], [10, 11]) if hears_all else ([own], [11])
    known = [(NOW + 30, "owner", 0, tasks, machines, Why.MACHINE_GONE)]
    assert bench.told() == (known if is_alive else [])
    assert bench.inherited == ([] if is_alive else [(0, NOW)])
    # All are written down.
    assert bench.lost == [(0, [extra, own], [10, 11])]
    bench.posted.clear()
    bench.inherited.clear()
    bench.lose(extra)
    assert (len(bench.posted), bench.inherited) == (int(hears_all), [])


def outcome(added: tuple[int, ...] = ()) -> Any:
    return SimpleNamespace(added=added, evicted=EMPTY, evicted_from=np.empty(0, np.int32))


SIZE = Resources(1_000, 1_000)
NEW = Machine("new", SIZE)


@pytest.mark.parametrize(
    ("change", "event", "calls"),
    [
        (AddMachine(NEW), MachineJoined(4), []),
        (ReviveMachine(2), MachineJoined(2), []),
        (RemoveMachine(2), MachineLost(2), [call.lose_queue(2)]),
        (ResizeMachine(2, SIZE), MachineChanged(2), [call.lose_queue(2)]),
        (DrainMachine(2, True), MachineChanged(2), [call.lose_probes(2)]),
        (DrainMachine(2, False), MachineChanged(2), []),
        (RelabelMachine(2, NEW), MachineChanged(2), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_change_is_told_as_what_it_is(change: Any, event: Any, calls: list[Any]) -> None:
    bench = Bench()
    bench.host.cell.commit.return_value = outcome((4, 5))
    bench.membership.change(change)
    assert bench.host.cell.commit.mock_calls == [call(Transaction(OPERATOR, machines=(change,)))]
    assert bench.host.decisions.input.mock_calls == [call(records.MachineRecord(NOW, change))]
    assert bench.posted == [(NOW + 7, "other", event), (NOW + 30, "owner", event)]
    assert bench.host.runtime.method_calls == calls
    assert bench.membership.changes == 1


def test_a_change_is_told_to_those_who_are_up_and_listen() -> None:
    bench = Bench()
    bench.host.cell.commit.return_value = outcome()
    bench.owner.is_alive = False
    bench.membership.change(ReviveMachine(2))
    bench.owner.is_alive, bench.other.capabilities.machine_events = True, False
    bench.membership.change(RemoveMachine(2))
    assert [(name, event) for _, name, event in bench.posted] == [
        ("other", MachineJoined(2)),
        ("owner", MachineLost(2)),
    ]
    assert bench.membership.changes == 2


def test_a_change_that_the_cell_refuses_has_not_happened() -> None:
    bench = Bench()
    bench.host.cell.commit.side_effect = ValueError
    with pytest.raises(ValueError):  # noqa: PT011
        bench.membership.change(RemoveMachine(2))
    assert bench.membership.changes == 0
    assert (bench.posted, bench.host.decisions.mock_calls) == ([], [])


@pytest.mark.parametrize(
    ("change", "why"),
    [(RemoveMachine(2), Why.MACHINE_GONE), (ResizeMachine(2, SIZE), Why.NO_ROOM)],
    ids=["gone", "resized"],
)
def test_what_stood_in_the_queue_is_lost_before_what_ran(change: Any, why: Why) -> None:
    bench = Bench(job("a", 9).job)
    queued, ran, hold = task_number(0, 4), task_number(0, 6), -1
    bench.host.runtime.lose_queue.return_value = np.array([queued], np.int64)
    bench.host.cell.commit.return_value = SimpleNamespace(
        added=(), evicted=np.array([hold, ran]), evicted_from=np.array([3, 2], np.int32)
    )
    bench.membership.change(change)
    assert [each[3:] for each in bench.told()] == [([queued], [2], why), ([ran], [2], why)]
    [stopped] = bench.host.stop.mock_calls
    assert (stopped.args[0].tolist(), stopped.args[1]) == ([ran], why)
    [pending] = bench.host.runtime.set_pending.mock_calls
    assert pending.args[0].tolist() == [ran]
    # A probe's hold leaves room as well.
    assert sorted(each.args[0] for each in bench.host.runtime.pump.mock_calls) == [2, 3]
    assert bench.membership.losses == 2


def test_where_others_have_the_last_word_nobody_is_told_of_evictions() -> None:
    bench = Bench(job("a", 9).job)
    bench.host.setup.is_overruled = True
    found = SimpleNamespace(
        evicted=np.array([task_number(0, 1)]), evicted_from=np.array([2], np.int32)
    )
    bench.membership.evict(found, Why.PREEMPTED, NOW)  # type: ignore[arg-type]
    assert (bench.posted, len(bench.lost), bench.membership.preemptions) == ([], 1, 1)
