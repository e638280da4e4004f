"""Flow schedulers: timers, answers and observations that concern no round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_firmament_rounds import Rounds, submitted

from argosy.engines.families.flow.admission import FlowPlan
from argosy.engines.families.flow.gangs import RoundDecision
from argosy.engines.families.flow.scheduler import RoundQuestion
from argosy.model.effects import Deliberate, WakeMe
from argosy.model.events import Committed, Deliberated, Event, TimerFired, UsageObserved
from argosy.testing.builders import job


def crowded() -> tuple[Rounds, WakeMe]:
    """A task waits that fits nowhere; when it is tried again."""
    rounds = Rounds(1)
    asked = rounds.begin(submitted(job("giant", 1, cpu=64_000), 0))
    assert isinstance(asked.question, RoundQuestion)
    decision = rounds.engine.deliberate_in_place(asked.question)
    effects = rounds.engine.handle(Deliberated(asked.token, decision), rounds.cell, 0)
    [wake] = [effect for effect in effects if isinstance(effect, WakeMe)]
    return rounds, wake


def begins_round(rounds: Rounds, event: Event, now: int) -> bool:
    effects = rounds.engine.handle(event, rounds.cell, now)
    return any(isinstance(effect, Deliberate) for effect in effects)


def test_waiting_tasks_are_tried_again_at_the_time_that_was_set_and_at_no_other() -> None:
    rounds, wake = crowded()
    assert not begins_round(rounds, TimerFired(wake.name), wake.at - 1)
    assert begins_round(rounds, TimerFired(wake.name), wake.at)


def test_a_pause_that_is_over_begins_no_round_unless_one_waits_for_it() -> None:
    rounds, wake = crowded()
    assert not begins_round(rounds, TimerFired("pause"), wake.at - 1)


@pytest.mark.parametrize("resource", ["bandwidth", "cpu"])
def test_what_the_policy_does_not_want_to_know_begins_no_round(resource: str) -> None:
    rounds, wake = crowded()
    nothing: Any = np.zeros(1, np.int64)
    seen = UsageObserved(resource, np.zeros(1, np.int32), nothing)
    assert not rounds.engine.handle(seen, rounds.cell, wake.at - 1)


def test_a_decision_or_an_answer_of_another_round_is_dropped() -> None:
    rounds = Rounds(1)
    asked = rounds.begin(submitted(job("a"), 0))
    none = np.zeros(0, np.int64)
    stale = RoundDecision(0, FlowPlan(none, none, none, none, none, False))
    assert not rounds.engine.handle(Deliberated(asked.token - 1, stale), rounds.cell, 0)
    placing = rounds.decide(asked)
    assert placing is not None
    outcome = rounds.cell.commit(placing.transaction)
    assert not rounds.engine.handle(Committed(placing.token - 1, outcome), rounds.cell, 0)
    assert rounds.engine.graph.waiting == 1
    rounds.engine.handle(Committed(placing.token, outcome), rounds.cell, 0)
    assert rounds.engine.graph.waiting == 0
