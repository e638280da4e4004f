from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from argosy.engines.api import Capabilities, Context, PaperPreset, Settings
from argosy.engines.shared.queueing import QueueingScheduler, QueueingSettings
from argosy.model.machine_model import MachineModel


class YaqCSettings(QueueingSettings, frozen=True):
    """Which machines the central scheduler may choose."""


class YaqC(QueueingScheduler):
    name: ClassVar[str] = "yaq-c"
    summary: ClassVar[str] = "One scheduler that asks all machines for the length of their queues."
    settings_type: ClassVar[type[Settings]] = YaqCSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, queues=True, alone=True, machine_events=True
    )

    published: ClassVar[Mapping[str, PaperPreset]] = {
        name: PaperPreset({"share": share}, MachineModel(start_delay=1_000))
        for name, share in (("yaq-c", 0.98), ("yaq-c-cloudera", 0.91))
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, YaqCSettings)
        super().__init__(settings, context)
