from __future__ import annotations

from typing import ClassVar

import numpy as np

from argosy.cell import Bitmap, View
from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.shared.serial import SerialScheduler, SerialSettings
from argosy.model.resources import Share


class PartitionedSettings(SerialSettings, frozen=True):
    """The part of the machines for a fleet entry's schedulers; replicas divide it equally."""

    #: Where this scheduler's part of the machines begins and ends, as shares of all, in order.
    begin: Share = 0.0
    end: Share = 1.0


class Partitioned(SerialScheduler):
    name: ClassVar[str] = "partitioned"
    summary: ClassVar[str] = (
        "Each scheduler has its own fixed part of the machines; no interference."
    )
    settings_type: ClassVar[type[Settings]] = PartitionedSettings
    capabilities: ClassVar[Capabilities] = Capabilities(transactions=True, gang=True, wishes=True)

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, PartitionedSettings)
        super().__init__(settings, context)
        self._settings = settings
        replicas = sorted((context.name, *context.peers))
        self._replica, self._replicas = replicas.index(context.name), len(replicas)
        self._part = np.zeros(0, np.uint64)
        self._known = 0

    def machines(self, view: View) -> Bitmap | None:
        if self._known != view.machines:
            self._known = view.machines
            self._part = self._cut(view)
        return self._part

    def _cut(self, view: View) -> Bitmap:
        """This replica's part, as a bitmap."""
        begin, end = (
            round(share * view.machines) for share in (self._settings.begin, self._settings.end)
        )
        span = max(0, end - begin)
        first = begin + span * self._replica // self._replicas
        last = begin + span * (self._replica + 1) // self._replicas
        return view.between(first, last)
