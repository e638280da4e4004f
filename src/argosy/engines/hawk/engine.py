from __future__ import annotations

from typing import ClassVar

from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.hybrid import HybridScheduler, HybridSettings


class HawkSettings(HybridSettings, frozen=True):
    """How a Hawk scheduler tells jobs apart and probes."""


class Hawk(HybridScheduler):
    name: ClassVar[str] = "hawk"
    summary: ClassVar[str] = (
        "Long jobs placed on their partition, short ones by probes; idle machines steal."
    )
    settings_type: ClassVar[type[Settings]] = HawkSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, queues=True, machine_events=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, HawkSettings)
        super().__init__(settings, context)
