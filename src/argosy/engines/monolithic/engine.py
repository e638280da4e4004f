from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.shared.precedence_queue import PrecedenceQueue
from argosy.engines.shared.serial import (
    CommitTerms,
    JobQueue,
    KindTime,
    PendingJob,
    SerialScheduler,
    SerialSettings,
)


class MonolithicSettings(SerialSettings, frozen=True):
    """Decision times, the same for all jobs or by kind, and what precedence means."""

    #: Decision times by kind of job; all other kinds take t_job and t_task.
    paths: dict[str, KindTime] = msgspec.field(default_factory=dict)
    #: Which job is next: the one that has waited longest, or the one of the highest precedence.
    order: Literal["arrival", "precedence"] = "arrival"
    #: Whether jobs may preempt tasks of lower precedence.
    preempt: bool = False


class Monolithic(SerialScheduler):
    name: ClassVar[str] = "monolithic"
    summary: ClassVar[str] = "One scheduler, one queue; slow decisions block the jobs behind them."
    settings_type: ClassVar[type[Settings]] = MonolithicSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, wishes=True, preemption=True, alone=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MonolithicSettings)
        self._monolithic = settings
        super().__init__(settings, context)

    def decision_time(self, work: PendingJob) -> int:
        path = self._monolithic.paths.get(work.job.kind)
        return super().decision_time(work) if path is None else path.of(len(work.tasks))

    def terms(self, work: PendingJob) -> CommitTerms:
        return CommitTerms(atomic=work.job.gang, preempt=self._monolithic.preempt)

    def queue_of(self, works: Iterable[PendingJob]) -> JobQueue:
        if self._monolithic.order == "precedence":
            return PrecedenceQueue(works)
        return super().queue_of(works)
