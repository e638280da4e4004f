from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.engines.api import Capabilities, Context, PaperPreset, Settings
from argosy.engines.shared.queueing import QueueingScheduler, QueueingSettings
from argosy.model.machine_model import MachineModel
from argosy.model.units import Micros


class YaqDSettings(QueueingSettings, frozen=True):
    """Which machines schedulers may choose. How often machines report is set by `[machines]
    heartbeat`."""

    moved: ClassVar[Mapping[str, str]] = {
        "heartbeat": "heartbeat of [machines]",
        "count_sent": "heartbeat_counts_sent of [machines]",
    }

    #: Largest random amount added to each machine's wait, per job; usually one heartbeat.
    jitter: Micros = Micros(0)
    #: Random amounts are multiples of this; ties go to the machine with the lower number.
    jitter_step: Annotated[Micros, Meta(ge=1)] = Micros(1)


class YaqD(QueueingScheduler):
    name: ClassVar[str] = "yaq-d"
    summary: ClassVar[str] = "Several schedulers that place by the machines' last heartbeats."
    settings_type: ClassVar[type[Settings]] = YaqDSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, queues=True, machine_events=True
    )

    asks_latest = True

    published: ClassVar[Mapping[str, PaperPreset]] = {
        name: PaperPreset(
            {"jitter": heartbeat, "jitter_step": step, "share": share},
            MachineModel(
                queue="shortest-remaining",
                slack=5,
                start_delay=1_000,
                heartbeat=heartbeat,
                heartbeat_counts_sent=True,
            ),
        )
        for name, heartbeat, step, share in (
            ("yaq-d", 8_000, 1, 0.98),
            ("yaq-d-cloudera", 8_000, 1, 0.91),
            ("yaq-d-8s", 8_000_000, 1_000_000, 0.98),
            ("yaq-d-8s-cloudera", 8_000_000, 1_000_000, 0.91),
        )
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, YaqDSettings)
        super().__init__(settings, context)
        self._settings = settings

    def noise(self, machines: int) -> NDArray[np.int64] | None:
        if not self._settings.jitter:
            return None
        step = self._settings.jitter_step
        draws = self._context.random.integers(machines, self._settings.jitter // step + 1)
        # Coarse steps give many equal draws; among these, the machine with the lower number comes
        # first.
        return draws if step == 1 else draws * step + np.arange(machines)
