"""Long decisions, computed at once with a modelled duration, or in the background.

If a world gives its host a `Deliberator`, an answer is an input like any other: it is recorded when
it arrives, and a replay takes it from the journal. A decision made in place is made again instead,
because the state that it left is not in the journal; what is recorded of it must be the same.
Without a deliberator the answer is computed when it is asked for, in a replay too; the result is the
same unless a clock ended a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from argosy.cell import Snapshot
from argosy.engines import faults
from argosy.engines.api import Deliberates, DeliberatesInPlace
from argosy.host import records
from argosy.host.effect_checks import require_not_negative
from argosy.host.protocols import Deliberator
from argosy.host.scheduler import Scheduler
from argosy.model import wire
from argosy.model.effects import Deliberate, Think
from argosy.model.errors import EngineFault
from argosy.model.events import Decision, Deliberated, TimedDecision

if TYPE_CHECKING:
    from argosy.host.host import Host

Decide: TypeAlias = Callable[[], Decision]


class _Asked(msgspec.Struct, frozen=True):
    effect: Deliberate
    epoch: int
    at: int
    #: Makes the decision, if that is done in place.
    in_place: Decide | None


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

    def begin(self, scheduler: Scheduler, effect: Deliberate, now: int) -> None:
        require_not_negative(scheduler, effect, "duration", effect.duration)
        require_not_negative(scheduler, effect, "limit", effect.limit)
        engine: object = scheduler.engine
        is_in_place = scheduler.in_place is not None
        run: Decide
        if scheduler.in_place is not None:
            _check_unlimited(scheduler, effect)
            decide = partial(scheduler.in_place.deliberate_in_place, effect.question)
            run = partial(_checked, scheduler, scheduler.in_place, decide, now)
        elif isinstance(engine, Deliberates):
            snapshot = self._host.cell.snapshot()
            decide = partial(_within_budget, scheduler, engine, effect, snapshot)
            run = partial(_checked, scheduler, engine, decide, now)
        else:
            raise EngineFault(f"{scheduler.label} cannot deliberate")
        if self._deliberator is None:
            decision = self._host.timed(scheduler, run)
            duration = self._spend(scheduler, _thought(effect, decision), now)
            self._host.post(now + duration, scheduler, Deliberated(effect.token, decision))
            return
        self._check_open(scheduler, effect.token, is_in_place=is_in_place)
        asked = _Asked(effect, scheduler.epoch, now, run if is_in_place else None)
        self._asked[scheduler.name, effect.token] = asked
        self._deliberator.start(run, partial(self._done, scheduler, asked))

    def _check_open(self, scheduler: Scheduler, token: int, *, is_in_place: bool) -> None:
        """A question has its own token, and one that is decided in place is the only one."""
        for (name, other), asked in [*self._asked.items()]:
            if name != scheduler.name:
                continue
            if asked.epoch != scheduler.epoch:
                # It crashed: nobody waits for the answer any more.
                del self._asked[name, other]
            elif other == token:
                raise EngineFault(
                    f"{scheduler.label} asks two open questions with token {token}",
                    expected="a different token for each open question",
                )
            elif is_in_place:
                raise EngineFault(
                    f"{scheduler.label} asks a question while another is decided in place",
                    expected="one open question at a time",
                )

    def _done(self, scheduler: Scheduler, asked: _Asked, decision: Decision) -> None:
        if self._asked.get((scheduler.name, asked.effect.token)) is asked:
            self._answer(scheduler, asked, decision)

    def answer(self, scheduler: Scheduler, token: int, decision: Decision) -> None:
        """The journal says that this was decided. What is decided in place is decided again, and must
        be the same."""
        asked = self._asked.get((scheduler.name, token))
        if asked is not None and asked.epoch == scheduler.epoch:
            self._answer(scheduler, asked, asked.in_place() if asked.in_place else decision)

    def _answer(self, scheduler: Scheduler, asked: _Asked, decision: Decision) -> None:
        """What ran beside the loop has come to an end. A scheduler that crashed meanwhile has forgotten
        its question."""
        effect, token = asked.effect, asked.effect.token
        del self._asked[scheduler.name, token]
        if asked.epoch != scheduler.epoch:
            return
        now = self._host.runtime.now
        self._host.decisions.input(
            records.AnsweredRecord(now, scheduler.name, token, wire.to_plain(decision))
        )
        # It is over: nothing is modelled, and nothing is to come.
        took = now - asked.at
        scheduler.lanes[effect.lane].think(now, 0, took)
        if effect.job >= 0:
            self._host.runtime.attempt(effect.job, -1, took)
            self._host.decisions.attempt(asked.at, effect.job, scheduler.name, took, 0)
        self._host.post(now, scheduler, Deliberated(token, decision))


def _check_unlimited(scheduler: Scheduler, effect: Deliberate) -> None:
    if effect.limit:
        raise EngineFault(
            f"{scheduler.label} limits what it decides in place to {effect.limit} µs",
            expected="no limit: a decision that a clock ended could not be replayed",
        )


def _thought(effect: Deliberate, decision: Decision) -> Think:
    duration = decision.duration if isinstance(decision, TimedDecision) else effect.duration
    return Think(duration, effect.token, effect.job, effect.lane)


def _within_budget(
    scheduler: Scheduler, engine: Deliberates, effect: Deliberate, snapshot: Snapshot
) -> Decision:
    budget = scheduler.budgets.start(effect.limit)
    return engine.deliberate(effect.question, snapshot, budget)


def _checked(
    scheduler: Scheduler, engine: Deliberates | DeliberatesInPlace, decide: Decide, now: int
) -> Decision:
    try:
        decision = decide()
    except Exception as error:
        doing = f"to deliberate at {now} µs"
        raise faults.failure(scheduler.label, doing, error, type(engine)) from error
    if not isinstance(decision, engine.decision_type):
        raise EngineFault(
            f"{scheduler.label} decided on {type(decision).__name__}",
            expected=engine.decision_type.__name__,
        )
    return decision
