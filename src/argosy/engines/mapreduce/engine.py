from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import structs

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.mapreduce.scaling import TIMER, Scaling, ScalingSettings
from argosy.engines.shared.serial import CommitTerms, PendingJob, SerialScheduler
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


class MapReduceSettings(ScalingSettings, frozen=True):
    """How a job's own workers are placed, and how many extra ones it may get."""


class MapReduce(SerialScheduler):
    """A serial scheduler places the workers that jobs ask for; `Scaling` adds and releases extra
    ones."""

    name: ClassVar[str] = "mapreduce"
    summary: ClassVar[str] = "Shared state; MapReduce jobs get extra workers from idle resources."
    settings_type: ClassVar[type[Settings]] = MapReduceSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, preemption=True, wishes=True, malleable=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MapReduceSettings)
        super().__init__(settings, context)
        self._preempts = settings.preempt
        self._scaling = Scaling(settings, context, self._rule)

    def terms(self, work: PendingJob) -> CommitTerms:
        return CommitTerms(atomic=work.job.gang, preempt=self._preempts)

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        scaling = self._scaling
        match event:
            case PhaseFinished(number, phase, duration):
                return scaling.end_phase(number, phase, duration, view, now)
            case TimerFired(name) if name == TIMER:
                return scaling.look_again(view, now)
            case DecisionDue(token) if token < 0:
                return scaling.commit(token, view, now)
            case Committed(token, outcome) if scaling.is_mine(token):
                return scaling.added(outcome, view, now)
            case Committed(token, outcome):
                if (claims := self._claims_of(token)) is None:
                    return ()
                effects = super().handle(event, view, now)
                placed = claims.tasks[outcome.accepted]
                return (*effects, *scaling.placed(placed, view, now))
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
