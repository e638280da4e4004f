"""Long decisions: made beside the loop on a frozen snapshot, and back as an event."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.cell import Cell, Snapshot
from argosy.engines.api import Context, Deliberates, Engine
from argosy.engines.families.lra.plans import BatchDecision, BatchQuestion
from argosy.engines.registry import ENGINES
from argosy.host.runtime import build_cell
from argosy.host.setup import HostSetup
from argosy.model.budgets import Budget, WorkBudget
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Commit, Deliberate, Effect, Question, Think
from argosy.model.errors import EngineFault
from argosy.model.events import (
    Committed,
    Decision,
    DecisionDue,
    Deliberated,
    Event,
    JobSubmitted,
    Started,
    TimerFired,
)
from argosy.model.jobs import Job, task_number
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, Measured, SchedulerCrash
from argosy.model.transactions import Claims, Transaction
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun

PROGRAMS = ["medea", "ilp-all"]
#: Each worker keeps away from others, and all of an application stay in one rack.
CONSTRAINTS = ("w -> {w, 0, 0} in machine", "w -> {w, 2, inf} in rack")


def service(name: str, tasks: int) -> Job:
    texts = tuple(map(parse_constraint, CONSTRAINTS))
    return job(name, tasks, seconds=None, kind="service", constraints=texts, tags=("w",)).job


class Bench:
    """An engine before a cell, without a world."""

    def __init__(self, engine: str, **settings: Any) -> None:
        kind = ENGINES[engine]
        chosen = msgspec.convert(settings, kind.settings_type)
        self.engine: Engine = kind(chosen, Context("s", (), Random(1)))
        self.cell: Cell = build_cell(HostSetup.of(scenario(engine, [], cell=cell(24))))
        self.view = self.cell.view()

    def submit(self, *jobs: Job) -> None:
        for number, each in enumerate(jobs):
            self.cell.admit(number, each)
            tasks = np.arange(each.tasks, dtype=np.int64) + task_number(number, 0)
            self.engine.handle(JobSubmitted(each, number, tasks), self.view, 0)

    def ask(self) -> Sequence[Effect]:
        return self.engine.handle(TimerFired("interval"), self.view, 10 * SECOND)

    def question(self) -> Deliberate:
        (asked,) = (effect for effect in self.ask() if isinstance(effect, Deliberate))
        return asked

    def decide(self, asked: Deliberate, snapshot: Snapshot | None = None) -> Decision:
        assert isinstance(self.engine, Deliberates)
        on = snapshot or self.cell.snapshot()
        return self.engine.deliberate(asked.question, on, WorkBudget())

    def claims(self, count: int, first: int) -> Claims:
        """Of somebody else, here and there."""
        tasks = np.arange(count, dtype=np.int64) + task_number(900, first)
        machines = (np.arange(count, dtype=np.int32) * 7 + first) % self.cell.machines
        shape = self.cell.shape(Resources(500, 2**20), ("w",))
        versions = self.cell.versions(machines)
        return Claims(tasks, machines, np.full(count, shape, np.int32), versions)


@pytest.mark.parametrize("engine", PROGRAMS)
def test_the_program_is_asked_for_with_all_that_is_known_of_its_cost(engine: str) -> None:
    bench = Bench(engine, budget=2 * SECOND, t_lra=7, t_container=1)
    bench.submit(service("a", 3), service("b", 2))
    asked, along = bench.ask()
    assert isinstance(asked, Deliberate)
    assert (asked.job, asked.lane, asked.duration, asked.limit) == (0, "lra", 19, 2 * SECOND)
    assert isinstance(along, Think)
    assert along.job == 1


@pytest.mark.parametrize("engine", PROGRAMS)
def test_an_answer_becomes_one_transaction(engine: str) -> None:
    bench = Bench(engine)
    bench.submit(service("a", 3), service("b", 2))
    asked = bench.question()
    event = Deliberated(asked.token, bench.decide(asked))
    (commit,) = bench.engine.handle(event, bench.view, 11 * SECOND)
    assert isinstance(commit, Commit)
    outcome = bench.cell.commit(commit.transaction)
    assert outcome.all_accepted
    assert bench.engine.handle(event, bench.view, 11 * SECOND) == ()
    bench.engine.handle(Committed(commit.token, outcome), bench.view, 11 * SECOND)
    assert all(len(bench.cell.tasks_on(machine)) <= 1 for machine in range(24))


@pytest.mark.parametrize("engine", PROGRAMS)
def test_questions_and_decisions_are_plain_values(engine: str) -> None:
    bench = Bench(engine, migrate=4)
    bench.cell.commit(Transaction("s", bench.claims(40, 0)))
    bench.submit(service("a", 3), service("b", 30))
    asked = bench.question()
    assert isinstance(bench.engine, Deliberates)
    decision = bench.decide(asked)
    for value, kind in (
        (asked.question, bench.engine.question_type),
        (decision, bench.engine.decision_type),
    ):
        assert msgspec.json.decode(msgspec.json.encode(value), type=kind) == value


def test_an_answer_that_comes_too_late_is_dropped() -> None:
    bench = Bench("medea")
    bench.submit(service("a", 3))
    asked = bench.question()
    decision = bench.decide(asked)
    assert bench.engine.handle(Deliberated(asked.token - 1, decision), bench.view, 11) == ()
    assert bench.engine.handle(Deliberated(asked.token, decision), bench.view, 11)
    assert bench.engine.handle(Deliberated(asked.token, decision), bench.view, 12) == ()


def test_who_waits_during_a_deliberation_comes_with_the_next() -> None:
    bench = Bench("medea")
    bench.submit(service("a", 3))
    asked = bench.question()
    bench.submit(service("a", 3), service("b", 2))
    assert bench.ask() == ()
    bench.engine.handle(Deliberated(asked.token, bench.decide(asked)), bench.view, 11 * SECOND)


@pytest.mark.parametrize(
    "settings", [{"algorithm": "serial"}, {"algorithm": "tag-popularity"}, {"conflict": "reserve"}]
)
def test_what_is_short_or_must_be_known_at_once_stays_on_the_loop(settings: dict[str, Any]) -> None:
    bench = Bench("medea", **settings)
    bench.submit(service("a", 3))
    assert [type(effect) for effect in bench.ask()] == [Think]


def test_what_is_decided_on_a_snapshot_is_what_is_decided_on_the_cell() -> None:
    """`reserve` decides on the loop, from a memory that was kept; else it is made for the occasion."""
    spots = []
    for conflict in ("resubmit", "reserve"):
        bench = Bench("medea", conflict=conflict)
        bench.cell.commit(Transaction("other", bench.claims(40, 0)))
        bench.submit(service("a", 3), service("b", 5))
        first = bench.ask()[0]
        if isinstance(first, Deliberate):
            event: Event = Deliberated(first.token, bench.decide(first))
        else:
            assert isinstance(first, Think)
            event = DecisionDue(first.token)
        (commit,) = bench.engine.handle(event, bench.view, 11 * SECOND)
        assert isinstance(commit, Commit)
        assert commit.transaction.claims is not None
        spots.append(commit.transaction.claims.machines.tolist())
    assert spots[0] == spots[1]


def test_an_engine_that_has_decided_before_decides_as_a_new_one_does() -> None:
    bench = Bench("medea", migrate=4)
    bench.cell.commit(Transaction("s", bench.claims(60, 0)))
    bench.submit(service("a", 3), service("b", 5))
    asked = bench.question()
    first = bench.cell.snapshot()
    before = bench.decide(asked, first)
    bench.cell.commit(
        Transaction("s", releases=np.arange(20, dtype=np.int64) + task_number(900, 0))
    )
    bench.cell.commit(Transaction("other", bench.claims(30, 100)))
    later = bench.cell.snapshot()
    assert bench.decide(asked, later) == Bench("medea", migrate=4).decide(asked, later) != before
    assert bench.decide(asked, first) == before


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("engine", PROGRAMS)
def test_a_deliberation_in_a_thread_does_not_notice_that_the_cell_goes_on(engine: str) -> None:
    bench = Bench(engine, migrate=4)
    bench.cell.commit(Transaction("s", bench.claims(60, 0)))
    bench.submit(service("a", 3), service("b", 5), service("c", 4))
    asked, snapshot = bench.question(), bench.cell.snapshot()
    alone = bench.decide(asked, snapshot)
    found: list[Decision] = []

    def deliberate() -> None:
        for _ in range(5):
            found.append(bench.decide(asked, snapshot))  # noqa: PERF401

    worker = threading.Thread(target=deliberate)
    worker.start()
    commits, number = 0, 100
    while worker.is_alive() or not commits:
        commits += 1
        claims = bench.claims(20, 1_000 * commits)
        assert bench.cell.commit(Transaction("other", claims)).accepted.any()
        # The loop goes on: task jobs are placed beside the deliberation, and new shapes come up.
        number += 1
        small = job(f"t{number}", 1, tags=(f"new-{number}",)).job
        tasks = np.array([task_number(number, 0)], np.int64)
        bench.engine.handle(JobSubmitted(small, number, tasks), bench.view, 10 * SECOND)
        releases = np.concatenate([claims.tasks, np.arange(3, dtype=np.int64) + 1])
        bench.cell.commit(Transaction("other", releases=releases))
    worker.join()
    assert found == [alone] * 5
    assert isinstance(alone, BatchDecision)
    assert bench.decide(asked, snapshot) == alone


class Ponders:
    """Asks itself one thing and notes when the answer is there."""

    name = "ponders"
    summary = "For this test."
    settings_type = ENGINES["omega"].settings_type
    capabilities = ENGINES["omega"].capabilities
    question_type = BatchQuestion
    decision_type = Decision
    heard: list[int]

    def __init__(self, settings: Any, context: Context) -> None:
        type(self).heard = []

    def handle(self, event: Any, view: Any, now: int) -> Sequence[Effect]:
        if isinstance(event, Deliberated):
            self.heard.append(now)
        asks = isinstance(event, Started | JobSubmitted)
        return (Deliberate(1, BatchQuestion(0, ()), duration=3 * SECOND),) if asks else ()

    def deliberate(self, question: Question, snapshot: Snapshot, budget: Budget) -> Decision:
        return Decision()


def world(engine: Any, **fields: Any) -> ConformanceRun:
    jobs = [job("a", 1, submit=10)] if fields.pop("jobs", False) else []
    return ConformanceRun(
        engine, scenario("ponders", jobs, replicas=1, horizon=60 * SECOND, **fields)
    )


def test_in_simulation_the_answer_comes_when_its_time_has_passed() -> None:
    world(Ponders, jobs=True)
    assert Ponders.heard == [3 * SECOND, 13 * SECOND]


def test_a_scheduler_gets_no_answers_to_questions_from_before_its_crash() -> None:
    crash = SchedulerCrash(at=SECOND, scheduler="s", down=5 * SECOND)
    world(Ponders, jobs=True, faults=(crash,))
    assert Ponders.heard == [9 * SECOND, 13 * SECOND]


def test_what_a_deliberation_computed_is_measured() -> None:
    measured = FleetEntry(name="s", engine="ponders", decision_time=Measured(factor=1.0))
    world(Ponders, jobs=True, fleet=(measured,))
    assert 0 <= Ponders.heard[0] < 3 * SECOND


def test_an_engine_that_asks_but_cannot_deliberate_is_named() -> None:
    class Mute:
        name, summary = Ponders.name, Ponders.summary
        settings_type, capabilities = Ponders.settings_type, Ponders.capabilities
        question_type, decision_type = Ponders.question_type, Ponders.decision_type
        __init__, handle = Ponders.__init__, Ponders.handle

    with pytest.raises(EngineFault, match=r"s \(ponders\) cannot deliberate"):
        world(Mute, jobs=True)


def test_an_engine_that_fails_to_deliberate_is_named() -> None:
    class Lost(Ponders):
        def deliberate(self, question: Question, snapshot: Snapshot, budget: Budget) -> Decision:
            raise KeyError("where was I")

    with pytest.raises(EngineFault, match=r"failed to deliberate.*where was I"):
        world(Lost, jobs=True)
