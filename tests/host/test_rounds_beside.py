"""Rounds of the flow engines beside the loop: the graph is lent to one decision at a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
from deliberating import LateAnswers, Run
from msgspec import structs

from argosy.engines.api import Context, DeliberatesInPlace
from argosy.engines.registry import ENGINES
from argosy.host.runtime import build_cell
from argosy.host.setup import HostSetup
from argosy.model.effects import Commit, Deliberate, Effect, Question
from argosy.model.errors import EngineFault, ReplayDiverged
from argosy.model.events import (
    Committed,
    Decision,
    Deliberated,
    JobChanged,
    JobSubmitted,
    Started,
    TimedDecision,
)
from argosy.model.jobs import Job
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import SchedulerCrash
from argosy.model.tasks import first_tasks
from argosy.model.transactions import AddMachine, Claims, RemoveMachine, Transaction
from argosy.model.truth import SimulatedJob
from argosy.model.wire import from_plain, same, to_plain
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.testing import scripted_world
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun
from argosy.testing.scripted_world import ScriptedWorld

FLOW = pytest.mark.parametrize("engine", ["firmament", "quincy"])


@pytest.fixture
def no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries that fail would only blur who decided what."""
    monkeypatch.setattr(scripted_world, "FAILING", 0.0)


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at(seconds: float, act: Callable[[ScriptedWorld], Any]) -> Callable[[ScriptedWorld], None]:
    return lambda world: world.inject(int(seconds * SECOND), lambda: act(world))


def resized(made: Job, count: int) -> Job:
    return structs.replace(made, groups=(structs.replace(made.groups[0], count=count),))


def placed(run: Run, name: str) -> list[int]:
    lines = (line for line in run.told("placed") if line["job"] == name)
    return sorted(index for line in lines for index in line["indices"])


@FLOW
@pytest.mark.usefixtures("no_failures")
def test_the_loop_goes_on_until_the_round_is_decided(engine: str) -> None:
    jobs = [job("a", 3, submit=1, seconds=5), job("b", 2, submit=2), job("c", 1, submit=2)]
    run = Run(ENGINES[engine], jobs, answers=[4, 6, 8, 10, 30])
    first, second, *_ = run.told("answered")
    assert (first["at"], second["at"]) == (4 * SECOND, 6 * SECOND)
    where = {line["job"]: line["at"] for line in run.told("placed")}
    assert 4 * SECOND <= where["a"] < 6 * SECOND <= where["b"]
    attempts = {line["job"]: (line["at"], line["takes"]) for line in run.told("attempt")}
    began = attempts["a"][0]
    assert attempts["a"] == (began, 4 * SECOND - began)
    # The first job of a round spends its time, the others come along.
    assert attempts["c"][1] == 0 < attempts["b"][1]
    assert run.world.runtime.open_tasks == 0
    run.replay()


@FLOW
@pytest.mark.parametrize("left", [0, 2])
@pytest.mark.usefixtures("no_failures")
def test_what_was_cancelled_during_the_round_is_not_claimed(engine: str, left: int) -> None:
    cancel = at(2, lambda world: world.host.cancel(0, first_tasks(0, 3)[left:]))
    jobs = [job("a", 3, submit=1), job("b", 1, submit=9)]
    run = Run(ENGINES[engine], jobs, answers=range(4, 30, 2), script=cancel)
    assert placed(run, "a") == [*range(left)]
    assert run.told("refused") == []
    assert run.world.runtime.open_tasks == 0
    run.replay()


@FLOW
@pytest.mark.usefixtures("no_failures")
def test_what_was_added_during_the_round_comes_with_the_next(engine: str) -> None:
    made = job("a", 3, submit=1, seconds=30)

    def shrink_and_grow(world: ScriptedWorld) -> None:
        at(2, lambda world: world.host.scale(0, resized(made.job, 1)))(world)
        at(2.5, lambda world: world.host.scale(0, resized(made.job, 4)))(world)

    run = Run(
        ENGINES[engine], [made], answers=[4, 6, 8], script=shrink_and_grow, horizon=20 * SECOND
    )
    by_time = [(line["at"] // SECOND, line["indices"]) for line in run.told("placed")]
    assert by_time == [(4, [0]), (6, [1, 2, 3])]
    run.replay()


@FLOW
@pytest.mark.usefixtures("no_failures")
def test_the_decision_of_a_scheduler_that_crashed_does_not_reach_the_next(engine: str) -> None:
    """Both ask their first question: the answers have one token."""

    def script(world: ScriptedWorld) -> None:
        hand: Any = world.host._deliberations._deliberator
        at(4, lambda world: hand.answer(0))(world)
        at(6, lambda world: hand.answer(0))(world)

    crash = SchedulerCrash(at=2 * SECOND, scheduler="s", down=SECOND)
    run = Run(
        ENGINES[engine], [job("a", 3, submit=1)], script=script, faults=(crash,), horizon=7 * SECOND
    )
    assert [line["at"] for line in run.told("answered")] == [6 * SECOND]
    assert [line["at"] // SECOND for line in run.told("placed")] == [6]
    run.replay()


@FLOW
def test_a_journal_that_ends_during_a_round_is_replayed(engine: str) -> None:
    run = Run(ENGINES[engine], [job("a", 3, submit=1)], horizon=20 * SECOND)
    assert run.hand.open
    assert run.told("answered") == []
    run.replay()


def busy_jobs() -> list[SimulatedJob]:
    random = Random(11)
    return [
        job(
            f"j{number}",
            1 + random.below(6),
            cpu=500 * (1 + random.below(6)),
            seconds=1 + random.below(12),
            submit=1 + random.below(30),
            precedence=random.below(3),
            gang=random.uniform() < 0.2,
        )
        for number in range(30)
    ]


def change_much(world: ScriptedWorld) -> None:
    """Users and machines act whenever they like, mostly during rounds."""
    host, random = world.host, Random(12)

    def change() -> None:
        number = random.below(len(host.jobs))
        if host.jobs.is_done(number):
            return
        if random.uniform() < 0.5:
            host.cancel(number, first_tasks(number, 1))
        else:
            host.scale(number, resized(host.jobs.job(number), 1 + random.below(6)))

    for _ in range(25):
        world.inject(3 * SECOND + random.below(40 * SECOND), change)
    machine = Machine("new", Resources(4_000, 16 * GIB), joins={"rack": ("r0",)})
    world.inject(9 * SECOND, partial(host.change_machine, AddMachine(machine)))
    world.inject(14 * SECOND, partial(host.change_machine, RemoveMachine(2)))


def busy_run(engine: Any, when: Any, **settings: Any) -> Run:
    crash = SchedulerCrash(at=20 * SECOND, scheduler="s", down=2 * SECOND)
    return Run(
        engine,
        busy_jobs(),
        script=change_much,
        hand=LateAnswers(when),
        cell=cell(5),
        faults=(crash,),
        horizon=300 * SECOND,
        settings=settings,
    )


@FLOW
@pytest.mark.usefixtures("eager_threads")
def test_whenever_and_wherever_a_round_is_decided_it_decides_the_same(engine: str) -> None:
    """At once, when the answer is due, or in a thread while the loop goes on: whatever `handle` did
    meanwhile to what is lent would show."""
    at_once, late, in_thread = (
        busy_run(ENGINES[engine], when) for when in ("asked", "due", "thread")
    )
    assert isinstance(in_thread.hand, LateAnswers)
    assert len(in_thread.hand.threads) > 20
    assert at_once.world.runtime.open_tasks == 0
    assert at_once.journal == late.journal == in_thread.journal
    in_thread.replay()


@FLOW
@pytest.mark.usefixtures("no_failures")
def test_the_loop_handles_events_while_a_thread_decides(engine: str) -> None:
    """The decision on the first round ends only after the loop has heard of another job."""
    heard, order = threading.Event(), list[str]()

    class Slow(ENGINES[engine]):  # type: ignore[name-defined,misc]
        def handle(self, event: Any, view: Any, now: int) -> Any:
            effects = super().handle(event, view, now)
            if isinstance(event, JobSubmitted) and event.number == 1:
                order.append("heard")
                heard.set()
            return effects

        def deliberate_in_place(self, question: Question) -> Decision:
            assert heard.wait(60)
            decision: Decision = super().deliberate_in_place(question)
            order.append("decided")
            return decision

    jobs = [job("a", 3, submit=1), job("b", 2, submit=1.5)]
    in_thread = Run(Slow, jobs, hand=LateAnswers("thread"))
    assert order[:2] == ["heard", "decided"]
    assert in_thread.told("answered")[0]["at"] > 2 * SECOND
    on_loop = Run(ENGINES[engine], jobs, hand=LateAnswers("due"))
    assert in_thread.journal == on_loop.journal


@FLOW
def test_a_replay_decides_again_and_names_the_answer_that_differs(engine: str) -> None:
    run = Run(ENGINES[engine], [job("a", 3, submit=1)], answers=range(4, 60))
    (machine, *_) = run.told("answered")[0]["decision"]["plan"]["machines"]
    other = run.journal.replace(b'"machines":[%d,' % machine, b'"machines":[7,', 1)
    assert other != run.journal
    answered = 1 + next(n for n, line in enumerate(run.lines) if line["what"] == "answered")
    with pytest.raises(ReplayDiverged, match=f"journal:{answered}: the replay decided otherwise"):
        Replay(JournalFile(other), run.engines).run()


@FLOW
def test_questions_and_decisions_of_rounds_are_plain_values(engine: str) -> None:
    found: list[tuple[Question, Decision]] = []

    class Noted(ENGINES[engine]):  # type: ignore[name-defined,misc]
        def deliberate_in_place(self, question: Question) -> Decision:
            decision: Decision = super().deliberate_in_place(question)
            found.append((question, decision))
            return decision

    ConformanceRun(Noted, scenario(engine, busy_jobs()[:8], replicas=1))
    kind: Any = ENGINES[engine]
    assert isinstance(kind, DeliberatesInPlace)
    assert len(found) > 8
    for question, decision in found:
        assert same(from_plain(to_plain(question), kind.question_type), question)
        assert same(from_plain(to_plain(decision), kind.decision_type), decision)


def test_tasks_that_were_removed_and_added_between_two_rounds_are_placed() -> None:
    kind, made = ENGINES["firmament"], job("a", 3).job
    engine: Any = kind(kind.settings_type(), Context("s", (), Random(1)))
    held = build_cell(HostSetup.of(scenario("firmament", [], cell=cell(4))))
    tasks, none = first_tasks(0, 3), first_tasks(0, 0)

    def claims(effects: Sequence[Effect]) -> Commit:
        (asked,) = (effect for effect in effects if isinstance(effect, Deliberate))
        decision = engine.deliberate_in_place(asked.question)
        told = engine.handle(Deliberated(asked.token, decision), held.view(), 2)
        (commit,) = (effect for effect in told if isinstance(effect, Commit))
        return commit

    first = claims(engine.handle(JobSubmitted(made, 0, tasks), held.view(), 1))
    assert engine.handle(JobChanged(resized(made, 1), 0, none, tasks[1:]), held.view(), 3) == ()
    assert engine.handle(JobChanged(made, 0, tasks[1:], none), held.view(), 3) == ()
    # Somebody else has all the room, for as long as it takes to refuse the claims.
    where, shape = np.arange(4, dtype=np.int32), held.shape(Resources(4_000, GIB))
    rival = Claims(first_tasks(9, 4), where, np.full(4, shape, np.int32), held.versions(where))
    assert held.commit(Transaction("other", rival)).all_accepted
    outcome = held.commit(first.transaction)
    assert not outcome.accepted.any()
    held.commit(Transaction("other", releases=rival.tasks))
    second = claims(engine.handle(Committed(first.token, outcome), held.view(), 4))
    assert second.transaction.claims is not None
    assert sorted(second.transaction.claims.tasks.tolist()) == tasks.tolist()


class Ticks(TimedDecision, frozen=True):
    count: int


class Lends:
    """Counts in place, and notes when it hears the count."""

    name = "lends"
    summary = "For this test."
    settings_type = ENGINES["omega"].settings_type
    capabilities = ENGINES["omega"].capabilities
    question_type = Question
    decision_type: type[Decision] = Ticks
    asks: ClassVar[tuple[Deliberate, ...]] = (Deliberate(1, Question(), duration=9 * SECOND),)
    duration = 3 * SECOND
    heard: ClassVar[list[tuple[int, int]]] = []

    def __init__(self, settings: Any, context: Context) -> None:
        self._count = 0
        self.heard.clear()

    def handle(self, event: Any, view: Any, now: int) -> Sequence[Effect]:
        match event:
            case Started():
                return self.asks
            case Deliberated(_, Ticks(_, count)):
                self.heard.append((now, count))
        return ()

    def deliberate_in_place(self, question: Question) -> Decision:
        self._count += 1
        return Ticks(self.duration, self._count)


def lend(engine: Any) -> None:
    ConformanceRun(
        engine, scenario("lends", [job("a", submit=10)], replicas=1, horizon=60 * SECOND)
    )


def test_a_decision_may_say_how_long_it_took() -> None:
    lend(Lends)
    assert Lends.heard == [(3 * SECOND, 1)]


def test_a_decision_that_took_less_than_no_time_is_a_fault() -> None:
    class Early(Lends):
        duration = -1

    with pytest.raises(EngineFault, match="wants to think for -1 µs"):
        lend(Early)


def test_a_decision_in_place_has_no_limit() -> None:
    class Limited(Lends):
        asks = (Deliberate(1, Question(), limit=SECOND),)

    with pytest.raises(EngineFault, match=r"s \(lends\) limits what it decides in place"):
        lend(Limited)


def test_what_is_lent_is_lent_once() -> None:
    class Twice(Lends):
        asks = (Deliberate(1, Question()), Deliberate(2, Question()))

    with pytest.raises(EngineFault, match="asks a question while another is decided in place"):
        Run(Twice, [job("a", submit=1)], horizon=9 * SECOND)


def test_a_decision_in_place_is_made_once_and_once_in_a_replay() -> None:
    run = Run(Lends, [job("a", submit=1)], answers=[2], horizon=9 * SECOND)
    assert Lends.heard == [(2 * SECOND, 1)]
    run.replay()
    assert Lends.heard == [(2 * SECOND, 1)]
