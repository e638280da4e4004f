from __future__ import annotations

from typing import ClassVar

import msgspec

from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.shared.serial import KindTime, PendingJob, SerialScheduler, SerialSettings


class MonolithicSettings(SerialSettings, frozen=True):
    """Decision times: the same for all jobs, or by kind."""

    #: Decision times by kind of job; all other kinds take t_job and t_task.
    paths: dict[str, KindTime] = msgspec.field(default_factory=dict)


class Monolithic(SerialScheduler):
    name: ClassVar[str] = "monolithic"
    summary: ClassVar[str] = "One scheduler, one queue; slow decisions block the jobs behind them."
    settings_type: ClassVar[type[Settings]] = MonolithicSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, wishes=True, alone=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MonolithicSettings)
        super().__init__(settings, context)
        self._paths = settings.paths

    def decision_time(self, work: PendingJob) -> int:
        path = self._paths.get(work.job.kind)
        return super().decision_time(work) if path is None else path.of(len(work.tasks))
