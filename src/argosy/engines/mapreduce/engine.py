from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import structs

from argosy.cell import Draft, View
from argosy.cell.draft import room_without
from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.mapreduce.scaling import TIMER, Scaling, ScalingSettings
from argosy.engines.shared.serial import CommitTerms, PendingJob, SerialScheduler
from argosy.engines.shared.withdrawal import Withdrawal
from argosy.model.effects import Effect
from argosy.model.events import (
    Committed,
    DecisionDue,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    PhaseFinished,
    TaskFailed,
    TasksLost,
    TimerFired,
)
from argosy.model.transactions import Claims, Outcome


class MapReduceSettings(ScalingSettings, frozen=True):
    """How a job's own workers are placed, and how many extra ones it may get."""


class MapReduce(SerialScheduler):
    """A serial scheduler places the workers that jobs ask for; `Scaling` adds and releases extra
    ones. There is one decision at a time."""

    name: ClassVar[str] = "mapreduce"
    summary: ClassVar[str] = "Shared state; MapReduce jobs get extra workers from idle resources."
    settings_type: ClassVar[type[Settings]] = MapReduceSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, preemption=True, wishes=True, malleable=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MapReduceSettings)
        super().__init__(settings, context)
        self._settings = settings
        self._scaling = Scaling(settings, context, self._rule)
        self._now = 0
        #: How many extra workers the current decision claims beside those that the job asked for.
        self._extra = 0

    def decision_time(self, work: PendingJob) -> int:
        return super().decision_time(work) + self._settings.t_task * self._extra

    def terms(self, work: PendingJob) -> CommitTerms:
        return CommitTerms(atomic=work.job.gang, preempt=self._settings.preempt)

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        scaling = self._scaling
        self._now = now
        match event:
            case PhaseFinished(number, phase, duration):
                released = scaling.end_phase(number, phase, duration, now)
                return (*released, *self._go_on(view))
            case TimerFired(name) if name == TIMER:
                scaling.look_again()
                return self._go_on(view)
            case DecisionDue(token) if token < 0:
                return scaling.commit(token) or self._go_on(view)
            case Committed(token, outcome) if scaling.is_mine(token):
                released = scaling.added(outcome, now)
                return (*released, *self._go_on(view))
            case JobSubmitted(job, number, tasks) if job.activities:
                scaling.take(job, number, len(tasks))
            case TasksLost(job, number, tasks) if job.activities:
                scaling.lose(number, tasks, now)
                is_own = job.is_own(tasks)
                if not is_own.any():
                    return ()
                event = structs.replace(event, tasks=tasks[is_own], machines=event.machines[is_own])
            case TaskFailed(job, number, tasks, again=False) if job.activities:
                scaling.lose(number, tasks, now)
            case JobCancelled(_, number):
                scaling.forget(number)
            case JobChanged(job, number):
                scaling.change(job, number)
        return super().handle(event, view, now)

    @property
    def _is_busy(self) -> bool:
        return self._deciding is not None or self._scaling.is_deciding

    def _go_on(self, view: View) -> Sequence[Effect]:
        return () if self._is_busy else self._begin(view)

    def _accept(self, work: PendingJob, view: View) -> Sequence[Effect]:
        self._queue.append(work)
        return self._go_on(view)

    def _begin(self, view: View) -> Sequence[Effect]:
        """Jobs that wait to be placed come before more workers for those that run."""
        effects = super()._begin(view)
        if self._deciding is None:
            return (*effects, *self._scaling.decide(view, self._now))
        return effects

    def _choose(self, work: PendingJob, view: View) -> Claims | None:
        claims = super()._choose(work, view)
        self._extra = 0
        is_whole = claims is not None and len(claims) == work.job.tasks
        if claims is None or not is_whole or not work.job.activities or work.job.gang:
            return claims
        draft = Draft(view, room_without(claims, view))
        extras = self._scaling.extras_at_start(
            work.number, draft, view, self._now, pending=len(self._queue)
        )
        if extras is None:
            return claims
        self._extra = len(extras)
        return Claims.joined([claims, extras])

    def _withdraw(self, event: Withdrawal) -> None:
        """A job that changes while it is decided on gets its extra workers later."""
        super()._withdraw(event)
        work, claims = self._deciding, self._claims
        if work is None or work.number != event.number or claims is None or self._is_committing:
            return
        if self._extra:
            own = claims.where(work.job.is_own(claims.tasks))
            self._claims = own if len(own) else None

    def _committed(self, outcome: Outcome, now: int, view: View) -> Sequence[Effect]:
        work, claims = self._deciding, self._claims
        assert work is not None
        assert claims is not None
        if work.job.activities:
            is_own = work.job.is_own(claims.tasks)
            extras = claims.tasks[outcome.accepted & ~is_own]
            self._scaling.placed(work.number, int((outcome.accepted & is_own).sum()), extras, now)
            if not is_own.all():
                self._claims = claims.where(is_own)
                outcome = outcome.where(is_own)
        return super()._committed(outcome, now, view)
