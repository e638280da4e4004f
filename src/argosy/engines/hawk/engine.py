from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from argosy.engines.api import Capabilities, Context, PaperPreset, Settings
from argosy.engines.shared.long_short import HybridScheduler, HybridSettings
from argosy.model.machine_model import MachineModel, Steal


class HawkSettings(HybridSettings, frozen=True):
    """How a Hawk scheduler tells jobs apart and probes."""


class Hawk(HybridScheduler):
    name: ClassVar[str] = "hawk"
    summary: ClassVar[str] = (
        "Long jobs are placed centrally in their partition, short ones by probes; idle machines steal."
    )
    settings_type: ClassVar[type[Settings]] = HawkSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, queues=True, machine_events=True
    )

    published: ClassVar[Mapping[str, PaperPreset]] = {
        name: PaperPreset(
            {"cutoff": cutoff, "long_share": share},
            MachineModel(
                start_delay=1_000,
                long_above=cutoff,
                steal=Steal(attempts=10, most=10_000, after=round(1 - share, 9)),
            ),
        )
        for name, cutoff, share in (
            ("hawk", 90_581_100, 0.98),
            ("hawk-cloudera", 272_783_000, 0.91),
        )
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, HawkSettings)
        super().__init__(settings, context)
