from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.hybrid import HybridScheduler, HybridSettings
from argosy.engines.probing import draw
from argosy.model.transactions import MachineArray


class EagleSettings(HybridSettings, frozen=True):
    """How an Eagle scheduler tells jobs apart and probes."""

    #: Where long tasks are is what the machine that refused knows: how it was when it last got a long
    #: task. Otherwise it is how it is now.
    stale_state: bool = False
    #: One machine may be drawn several times for one job.
    repeated: bool = False


class Eagle(HybridScheduler):
    name: ClassVar[str] = "eagle"
    summary: ClassVar[str] = (
        "As hawk, but short jobs avoid machines with long tasks, and probes stick."
    )
    settings_type: ClassVar[type[Settings]] = EagleSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, queues=True, machine_events=True
    )
    is_sticky = True
    asks_for_short = True

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, EagleSettings)
        super().__init__(settings, context)
        self._settings = settings
        #: Where long tasks were after each placement of a long job, and each machine's last such.
        self._states: list[NDArray[np.bool_]] = []
        self._last = np.zeros(0, np.int64)

    def placed_long(self, machines: MachineArray, lengths: NDArray[np.int64]) -> None:
        if not self._settings.stale_state:
            return
        state = lengths > 0
        state[machines] = True
        if len(self._last) < len(lengths):
            self._last = np.full(len(lengths), -1, np.int64)
        self._last[machines] = len(self._states)
        self._states.append(state)

    def probed(
        self, machines: MachineArray, apart: MachineArray, count: int, lengths: NDArray[np.int64]
    ) -> MachineArray:
        random, repeated = self._context.random, self._settings.repeated
        accepted = []
        chosen = draw(machines, count, random, repeated=repeated)
        has_long = lengths > 0
        for _ in range(2):
            refused = has_long[chosen]
            accepted.append(chosen[~refused])
            chosen = chosen[refused]
            told = self._told(chosen, has_long) if len(chosen) else has_long
            free = machines[~told[machines]]
            if not len(chosen) or not len(free):
                break
            chosen = draw(free, len(chosen), random, repeated=repeated)
        if len(chosen):
            last_resort = apart if len(apart) else machines
            accepted.append(draw(last_resort, len(chosen), random, repeated=repeated))
        return np.concatenate(accepted)

    def _told(self, refused: MachineArray, has_long: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Where long tasks are, as the machines that refused know it: the freshest counts."""
        if not self._settings.stale_state or not len(self._last):
            return has_long
        freshest = int(self._last[refused].max())
        return self._states[freshest] if freshest >= 0 else has_long
