"""Long decisions, computed at once with a modelled duration, or in the background.

If a world gives its host a `Deliberator`, an answer is an input like any other: it is recorded when
it arrives, and a replay takes it from the journal. Otherwise the answer is computed when it is
asked for, in a replay too; the result is the same unless a clock ended a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from argosy.cell import Snapshot
from argosy.engines import faults
from argosy.engines.api import Deliberates
from argosy.host import records
from argosy.host.protocols import Deliberator
from argosy.host.scheduler import Scheduler
from argosy.model import wire
from argosy.model.effects import Deliberate, Think
from argosy.model.errors import EngineFault
from argosy.model.events import Decision, Deliberated

if TYPE_CHECKING:
    from argosy.host.host import Host


class _Asked(msgspec.Struct, frozen=True):
    effect: Deliberate
    epoch: int
    at: int


class Deliberations:
    def __init__(
        self,
        host: Host,
        deliberator: Deliberator | None,
        spend: Callable[[Scheduler, Think, int], int],
    ) -> None:
        self._host = host
        self._deliberator = deliberator
        #: Records how long a decision takes, and returns it.
        self._spend = spend
        #: Decisions running in the background, by scheduler and token.
        self._asked: dict[tuple[str, int], _Asked] = {}

    def begin(self, scheduler: Scheduler, effect: Deliberate, snapshot: Snapshot, now: int) -> None:
        engine: object = scheduler.engine
        if not isinstance(engine, Deliberates):
            raise EngineFault(f"{scheduler.label} cannot deliberate")
        if effect.duration < 0:
            raise EngineFault(f"{scheduler.name} wants to deliberate for {effect.duration} µs")
        run = partial(_decide, scheduler, engine, effect, snapshot, now)
        if self._deliberator is None:
            decision = self._host.timed(scheduler, run)
            duration = self._spend(scheduler, _thought(effect, effect.duration), now)
            self._host.post(now + duration, scheduler, Deliberated(effect.token, decision))
            return
        key = scheduler.name, effect.token
        known = self._asked.get(key)
        if known is not None and known.epoch == scheduler.epoch:
            raise EngineFault(
                f"{scheduler.label} asks two open questions with token {effect.token}",
                expected="a different token for each open question",
            )
        asked = self._asked[key] = _Asked(effect, scheduler.epoch, now)
        self._deliberator.start(run, partial(self._done, scheduler, asked))

    def _done(self, scheduler: Scheduler, asked: _Asked, decision: Decision) -> None:
        token = asked.effect.token
        if self._asked.get((scheduler.name, token)) is asked:
            self.answer(scheduler, token, decision)

    def answer(self, scheduler: Scheduler, token: int, decision: Decision) -> None:
        """A background decision is complete. The answer is dropped if the scheduler has crashed since
        it asked."""
        asked = self._asked.pop((scheduler.name, token), None)
        if asked is None or asked.epoch != scheduler.epoch:
            return
        now = self._host.runtime.now
        self._host.decisions.input(
            records.AnsweredRecord(now, scheduler.name, token, wire.to_plain(decision))
        )
        # The time has already passed, so none is modelled or still to come.
        effect, took = asked.effect, now - asked.at
        scheduler.lanes[effect.lane].think(now, 0, took)
        if effect.job >= 0:
            self._host.runtime.attempt(effect.job, took)
            self._host.decisions.attempt(asked.at, effect.job, scheduler.name, took, 0)
        self._host.post(now, scheduler, Deliberated(token, decision))


def _thought(effect: Deliberate, duration: int) -> Think:
    return Think(duration, effect.token, effect.job, effect.lane)


def _decide(
    scheduler: Scheduler, engine: Deliberates, effect: Deliberate, snapshot: Snapshot, now: int
) -> Decision:
    budget = scheduler.budgets.start(effect.limit)
    try:
        decision = engine.deliberate(effect.question, snapshot, budget)
    except Exception as error:
        doing = f"to deliberate at {now} µs"
        raise faults.failure(scheduler.label, doing, error, type(engine)) from error
    if not isinstance(decision, engine.decision_type):
        raise EngineFault(
            f"{scheduler.label} decided on {type(decision).__name__}",
            expected=engine.decision_type.__name__,
        )
    return decision
