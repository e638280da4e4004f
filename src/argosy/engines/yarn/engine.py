from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.api import (
    Capabilities,
    Context,
    Finishes,
    RunFacts,
    SettingMismatch,
    Settings,
)
from argosy.engines.families.lra.queue_scheduler import QueueScheduler
from argosy.engines.families.lra.settings import TaskQueueSettings


class YarnSettings(TaskQueueSettings, frozen=True):
    """The queues, and how machines are chosen."""

    #: Machines take containers one at a time in the order of their heartbeats, which is random; or
    #: `placement` chooses them.
    order: Literal["heartbeat", "placement"] = "heartbeat"


class Yarn(QueueScheduler):
    name: ClassVar[str] = "yarn"
    summary: ClassVar[str] = "Containers go to whichever machine reports next; ignores constraints."
    settings_type: ClassVar[type[Settings]] = YarnSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, finishes=Finishes.OWN, alone=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, YarnSettings)
        super().__init__(settings, context)
        self._is_by_heartbeat = settings.order == "heartbeat"
        if self._is_by_heartbeat:
            self.rule_title = "the machine that reports next"

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        assert isinstance(settings, YarnSettings)
        return settings.queue_mismatch()

    def visits(self, view: View) -> NDArray[np.int64] | None:
        if not self._is_by_heartbeat:
            return None
        order = np.argsort(self._context.random.integers(view.machines, 2**62), kind="stable")
        place = np.empty(view.machines, np.int64)
        place[order] = np.arange(view.machines)
        return place
