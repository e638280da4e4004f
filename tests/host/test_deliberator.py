"""Long decisions beside the loop: the answer comes when it comes, and is an input like any other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
from deliberating import Run

from argosy.cell import Snapshot
from argosy.engines.api import Context
from argosy.engines.families.lra.plans import BatchDecision
from argosy.engines.registry import ENGINES
from argosy.model.budgets import Budget
from argosy.model.constraints.text import parse_constraint
from argosy.model.effects import Deliberate, Effect, Question
from argosy.model.errors import EngineFault, ReplayDiverged
from argosy.model.events import Decision, Deliberated, JobSubmitted, Started
from argosy.model.scenario import SchedulerCrash
from argosy.model.tasks import first_tasks
from argosy.model.truth import SimulatedJob
from argosy.model.wire import from_plain
from argosy.records.journal_file import JournalFile
from argosy.records.replay import Replay
from argosy.testing import scripted_world
from argosy.testing.builders import SECOND, cell, job
from argosy.testing.scripted_world import ScriptedWorld

APART = (parse_constraint("w -> {w, 0, 0} in machine"),)


@pytest.fixture(autouse=True)
def no_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries that fail would only blur who decided what."""
    monkeypatch.setattr(scripted_world, "FAILING", 0.0)


def service(tasks: int = 3, cpu: int = 3_000, **fields: Any) -> SimulatedJob:
    return job(
        "a", tasks, cpu=cpu, seconds=40, kind="service", constraints=APART, tags=("w",), **fields
    )


@pytest.mark.parametrize("engine", ["medea", "ilp-all"])
def test_the_loop_goes_on_until_the_answer_comes(engine: str) -> None:
    jobs = [service(), job("b", 2, submit=11, seconds=1, kind="batch")]
    run = Run(ENGINES[engine], jobs, answers=[17, 27])
    placed = {line["job"]: line["at"] for line in run.told("placed")}
    answered, *others = run.told("answered")
    assert answered["at"] == 17 * SECOND <= placed["a"]
    # One engine places tasks beside, the other has them wait for the next batch.
    assert placed["b"] < 12 * SECOND if engine == "medea" else others
    assert from_plain(answered["decision"], BatchDecision).placed[0]
    (attempt,) = (line for line in run.told("attempt") if line["job"] == "a")
    assert attempt["at"] + attempt["takes"] == 17 * SECOND
    assert run.lines[0]["deliberated_beside"]
    assert run.world.runtime.open_tasks == 0
    run.replay()


def test_the_time_until_the_answer_is_spent_on_deciding() -> None:
    run = Run(ENGINES["medea"], [service()], answers=[17])
    (attempt,) = run.told("attempt")
    (scheduler,) = run.world.host.schedulers
    assert scheduler.lanes["lra"].total(run.world.runtime.now) == attempt["takes"] == 7 * SECOND


def test_what_others_took_in_between_is_a_conflict_and_asked_about_again() -> None:
    # Each machine has room for either. Tasks are placed while the service is deliberated on.
    jobs = [service(4), job("b", 4, cpu=3_000, submit=11, seconds=6, kind="batch")]
    run = Run(ENGINES["medea"], jobs, answers=[14, 24, 34], cell=cell(4))
    first, *others = run.told("answered")
    refused = [line for line in run.told("refused") if line["job"] == "a"]
    assert refused[0]["at"] >= first["at"] == 14 * SECOND
    assert others
    placed = [line for line in run.told("placed") if line["job"] == "a"]
    assert sorted(index for line in placed for index in line["indices"]) == [0, 1, 2, 3]
    assert placed[0]["at"] > refused[0]["at"]
    run.replay()


def test_the_cell_that_is_decided_on_is_that_of_the_question() -> None:
    decisions: list[Decision] = []
    for is_late in (False, True):
        run = Run(
            ENGINES["medea"],
            [service(2), job("b", 3, submit=11, seconds=30, kind="batch")],
            script=partial(_decide, decisions, is_late),
            cell=cell(6),
        )
        run.replay()
    assert decisions[0] == decisions[1]


def _decide(decisions: list[Any], is_late: bool, world: ScriptedWorld) -> None:
    """The decision is made at 10.5 s or at 14 s, and reported at 15 s."""
    made: list[Decision] = []
    given: Any = world.host._deliberations._deliberator

    def make() -> None:
        made.append(given.open[0][0]())

    def tell() -> None:
        decisions.append(made[0])
        given.open.pop(0)[1](made[0])

    world.inject(int((14 if is_late else 10.5) * SECOND), make)
    world.inject(15 * SECOND, tell)


@pytest.mark.parametrize("left", [0, 1])
def test_what_was_cancelled_in_between_is_not_claimed(left: int) -> None:
    def cancel(world: ScriptedWorld) -> None:
        def act() -> None:
            world.host.cancel(0, first_tasks(0, 3)[left:])

        world.inject(12 * SECOND, act)

    jobs = [service(), job("b", seconds=40, kind="batch")]
    run = Run(ENGINES["medea"], jobs, answers=[14], script=cancel)
    assert len(run.told("answered")) == 1
    placed = (line for line in run.told("placed") if line["job"] == "a")
    assert sum(len(line["indices"]) for line in placed) == left
    assert run.told("refused") == []
    run.replay()


def test_an_answer_after_a_crash_is_not_an_input() -> None:
    crash = SchedulerCrash(at=12 * SECOND, scheduler="s", down=SECOND)
    run = Run(ENGINES["medea"], [service()], answers=[14, 25], faults=(crash,))
    assert [line["at"] for line in run.told("answered")] == [25 * SECOND]
    assert run.world.runtime.open_tasks == 0
    run.replay()


def test_a_journal_that_ends_before_the_answer_is_replayed() -> None:
    run = Run(ENGINES["medea"], [service()], horizon=20 * SECOND)
    assert run.hand.open
    assert run.told("answered") == []
    run.replay()


def test_a_replay_takes_the_answer_from_the_journal() -> None:
    class Forgetful(ENGINES["medea"]):  # type: ignore[name-defined,misc]
        def deliberate(self, question: Question, snapshot: Snapshot, budget: Budget) -> Decision:
            raise AssertionError("the answer is known")

    run = Run(ENGINES["medea"], [service()], answers=[14])
    run.engines = {"medea": Forgetful}
    run.replay()
    other = run.journal.replace(b'"token":-1,"decision"', b'"token":-2,"decision"')
    assert other != run.journal
    with pytest.raises(ReplayDiverged):
        Replay(JournalFile(other), run.engines).run()


class Number(Decision, frozen=True):
    number: int


class Counts:
    """Asks itself for numbers, and gets them in the order in which they arrive."""

    name = "counts"
    summary = "For this test."
    settings_type = ENGINES["omega"].settings_type
    capabilities = ENGINES["omega"].capabilities
    question_type = Question
    decision_type: type[Decision] = Number
    tokens: tuple[int, ...] = (1, 2, 3)
    heard: list[tuple[int, int]]

    def __init__(self, settings: Any, context: Context) -> None:
        type(self).heard = []
        self._numbers = 0

    def handle(self, event: Any, view: Any, now: int) -> Sequence[Effect]:
        match event:
            case Deliberated(token, Number(number)):
                self.heard.append((token, number))
            case Started():
                return [Deliberate(token, Question()) for token in self.tokens]
            case JobSubmitted():
                return ()
        return ()

    def deliberate(self, question: Question, snapshot: Snapshot, budget: Budget) -> Decision:
        self._numbers += 1
        return Number(self._numbers)


def test_answers_may_come_in_any_order() -> None:
    def script(world: ScriptedWorld) -> None:
        hand: Any = world.host._deliberations._deliberator
        for at, which in enumerate((1, 1, 0), 2):
            world.inject(at * SECOND, partial(hand.answer, which))

    run = Run(Counts, [job("a", submit=1)], script=script, horizon=9 * SECOND)
    assert Counts.heard == [(2, 1), (3, 2), (1, 3)]
    run.replay()
    assert Counts.heard == [(2, 1), (3, 2), (1, 3)]


def test_a_token_stands_for_one_question() -> None:
    class Twice(Counts):
        tokens = (1, 1)

    with pytest.raises(EngineFault, match="asks two open questions with token 1"):
        Run(Twice, [job("a", submit=1)], horizon=9 * SECOND)


def test_a_decision_of_another_type_is_a_fault() -> None:
    class Other(Counts):
        decision_type = BatchDecision

    with pytest.raises(EngineFault, match="decided on Number"):
        Run(Other, [job("a", submit=1)], answers=[2], horizon=9 * SECOND)
