"""Claims on which another system has the last word: confirmed, forgotten, and what the journal says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from host_bench import Bench, web
from msgspec import structs
from scripted_engine import Scripted, claim

from argosy.cell import Cell, View
from argosy.host import TaskState
from argosy.host.late_claims import drop_late_claims, with_refusals
from argosy.host.records import ConfirmedRecord, ForgottenRecord, LostRecord, ReleasedRecord
from argosy.model.effects import Commit, Effect
from argosy.model.events import Committed, Event, JobSubmitted, TasksLost
from argosy.model.explanations import Why
from argosy.model.transactions import Claims, RemoveMachine, Transaction
from argosy.records.answers import TaskAnswers
from argosy.records.journal_file import JournalFile
from argosy.records.state import RunState
from argosy.testing.builders import SECOND

SOMEWHERE = np.zeros(1, np.int32)


def assumed(view: View, event: JobSubmitted, machine: int, scheduler: str) -> Commit:
    made = claim(view, event, machine, scheduler)
    return structs.replace(made, transaction=structs.replace(made.transaction, assume=True))


def hopeful(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
    """Assumes that every task may run on the first machine, and then on the second."""
    match event:
        case JobSubmitted():
            return [assumed(view, event, 0, engine.context.name)]
        case TasksLost(job, number, tasks):
            return [assumed(view, JobSubmitted(job, number, tasks), 1, engine.context.name)]
    return ()


def test_an_assumed_claim_starts_at_once_and_is_confirmed() -> None:
    bench = Bench(hopeful)
    bench.host.submit(web(2))
    bench.go(1)
    assert sorted(bench.machines.running) == [0, 1], "the start is what asks the other system"
    assert bench.host.cell.assumed().tolist() == [0, 1]
    incarnations = [bench.machines.running[task][1] for task in (0, 1)]
    settled = bench.host.confirm(np.array([0], np.int64), np.array(incarnations[:1], np.int64))
    assert settled.tolist() == [0]
    again = bench.host.confirm(np.array([0, 1, 7], np.int64), np.array([*incarnations, 3]))
    assert again.tolist() == [1], "confirmed already, or without a claim"
    assert not len(bench.host.cell.assumed())
    confirmed = [r for r in bench.replay().facts() if isinstance(r, ConfirmedRecord)]
    assert [record.tasks for record in confirmed] == [[0], [1]]


def test_a_forgotten_claim_stops_its_task_and_tells_the_scheduler() -> None:
    bench = Bench(hopeful)
    bench.host.submit(web(2))
    bench.go(1)
    _, incarnation = bench.machines.running[1]
    task = np.array([1], np.int64)
    forgotten = bench.host.forget(task, np.array([incarnation], np.int64), Why.NO_ROOM)
    assert forgotten.tolist() == [1]
    assert bench.machines.stopped == [(1, incarnation, Why.NO_ROOM)]
    assert bench.host.board.state(1) is TaskState.PENDING
    assert bench.host.cell.claims() == 1
    bench.go(2)
    (lost,) = bench.told(TasksLost)
    assert isinstance(lost, TasksLost)
    assert (lost.tasks.tolist(), lost.machines.tolist(), lost.why) == ([1], [0], Why.NO_ROOM)
    machine, second = bench.machines.running[1]
    assert (machine, bench.host.board.state(1)) == (1, TaskState.RUNNING)
    late = bench.host.forget(task, np.array([incarnation], np.int64), Why.NO_ROOM)
    assert not len(late), "an answer about the first claim does not concern the second"
    bench.host.confirm(task, np.array([second], np.int64))
    assert not len(bench.host.forget(task, np.array([second], np.int64), Why.NO_ROOM))
    facts = list(bench.replay().facts())
    assert [r.tasks for r in facts if isinstance(r, ForgottenRecord)] == [[1]]
    assert [r.why for r in facts if isinstance(r, LostRecord)] == ["no_room"]


def test_the_answer_about_a_claim_that_is_gone_changes_nothing() -> None:
    bench = Bench(lambda *event: hopeful(*event) if isinstance(event[1], JobSubmitted) else ())
    bench.host.submit(web(1))
    bench.go(1)
    task, incarnation = np.array([0], np.int64), np.array([bench.machines.running[0][1]], np.int64)
    bench.host.change_machine(RemoveMachine(0))
    assert not len(bench.host.confirm(task, incarnation))
    assert not len(bench.host.forget(task, incarnation, Why.NO_ROOM))
    assert bench.host.board.state(0) is TaskState.PENDING
    assert not [r for r in bench.replay().facts() if isinstance(r, ConfirmedRecord)]


@pytest.mark.parametrize("waits", [True, False])
def test_tasks_whose_claims_their_scheduler_forgets_are_pending_again(waits: bool) -> None:
    def changes_its_mind(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        name = engine.context.name
        match event:
            case JobSubmitted():
                forgets = Commit(1, Transaction(name, forgets=event.tasks))
                return [assumed(view, event, 0, name), *([] if waits else [forgets])]
            case Committed(token=0) if waits:
                return [Commit(1, Transaction(name, forgets=np.arange(2)))]
        return ()

    bench = Bench(changes_its_mind)
    number = bench.host.submit(web(2))
    bench.go(1)
    assert bench.host.board.tasks_in(number, TaskState.PENDING).tolist() == [0, 1]
    assert not bench.machines.running
    assert bench.host.cell.claims() == 0
    journal = bench.replay()
    assert [r.indices for r in journal.facts() if isinstance(r, ReleasedRecord)] == [[0, 1]]
    assert [*RunState.of(journal).counts.values()] == bench.host.board.counts().tolist()


class JournalAlone:
    """As much of a run as answers about tasks need."""

    is_finished = True

    def __init__(self, journal: JournalFile) -> None:
        self.journal = journal


def test_the_story_tells_of_claims_that_were_not_accepted() -> None:
    bench = Bench(hopeful)
    bench.host.submit(web(1))
    bench.go(1)
    task = np.array([0], np.int64)
    for answer in (
        lambda now: bench.host.forget(task, now, Why.NO_ROOM),
        lambda now: bench.host.confirm(task, now),
    ):
        answer(np.array([bench.machines.running[0][1]], np.int64))
        bench.go(bench.host.runtime.now / SECOND + 1)
    run: Any = JournalAlone(bench.replay())
    answers = TaskAnswers(run, "web/0")
    assert [line.text for line in answers.story()] == [
        "submitted with 1 task, goes to s",
        "placed on m0 by s, if it is confirmed",
        "starts on m0",
        "not confirmed",
        "lost m0: no room",
        "placed on m1 by s, if it is confirmed",
        "starts on m1",
        "confirmed",
    ]
    assert answers.why().state == "running"


def test_an_atomic_transaction_with_a_late_claim_settles_nothing() -> None:
    tasks = np.array([4], np.int64)
    claims = Claims(tasks, SOMEWHERE, SOMEWHERE, np.zeros(1, np.uint32))
    whole = Transaction("s", claims, tasks + 1, atomic=True, confirms=tasks + 2, forgets=tasks + 3)
    late = np.array([Why.CANCELLED], np.uint8)
    left = drop_late_claims(whole, late)
    assert (left.releases, left.confirms, left.forgets) == (None, None, None)
    outcome = with_refusals(whole, late, Cell(("cpu",)).commit(left))
    unsettled = (*outcome.unreleased, *outcome.unconfirmed, *outcome.unforgotten)
    assert [refusal.task for refusal in unsettled] == [5, 6, 7]
    assert {refusal.why for refusal in unsettled} == {Why.TOGETHER}
