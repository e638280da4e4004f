from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from argosy.engines.api import Capabilities, Context, PaperPreset, Settings
from argosy.engines.shared.long_short import HybridScheduler, HybridSettings
from argosy.engines.shared.probing import draw
from argosy.model.machine_model import MachineModel
from argosy.model.transactions import MachineArray


class EagleSettings(HybridSettings, frozen=True):
    """How an Eagle scheduler tells jobs apart and probes."""

    #: Whether schedulers learn where long tasks are only from the machines they probe, as of when one
    #: of these last got a long task; otherwise they know the current state.
    stale_state: bool = False
    #: Whether a job may probe the same machine several times.
    repeated: bool = False
    #: Eagle takes long jobs by the total time of their tasks.
    order: Literal["fcfs", "shortest-job"] = "shortest-job"


class Eagle(HybridScheduler):
    name: ClassVar[str] = "eagle"
    summary: ClassVar[str] = (
        "As hawk, but short jobs avoid machines with long tasks, and probes are sticky."
    )
    settings_type: ClassVar[type[Settings]] = EagleSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, queues=True, machine_events=True
    )
    is_sticky = True
    asks_for_short = True

    published: ClassVar[Mapping[str, PaperPreset]] = {
        name: PaperPreset(
            {
                "cutoff": cutoff,
                "long_share": share,
                "least": 20,
                "stale_state": True,
                "repeated": True,
            },
            MachineModel(queue="shortest-remaining", slack=5, start_delay=1_000, long_above=cutoff),
        )
        for name, cutoff, share in (
            ("eagle", 90_581_100, 0.98),
            ("eagle-cloudera", 272_783_000, 0.91),
        )
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, EagleSettings)
        super().__init__(settings, context)
        self._settings = settings
        #: The machines with long tasks after each placement of a long job; the index of each machine's
        #: latest such state.
        self._states: list[NDArray[np.bool_]] = []
        self._last = np.zeros(0, np.int64)

    def placed_long(self, machines: MachineArray, lengths: NDArray[np.int64]) -> None:
        if not self._settings.stale_state:
            return
        state = lengths > 0
        state[machines] = True
        self._make_room(len(lengths))
        self._last[machines] = len(self._states)
        self._states.append(state)

    def _make_room(self, machines: int) -> None:
        """Machines that have joined are in no state yet, and without long tasks in those of others."""
        missing = machines - len(self._last)
        if missing:
            self._last = np.concatenate([self._last, np.full(missing, -1, np.int64)])
            empty = np.zeros(missing, np.bool_)
            self._states = [np.concatenate([state, empty]) for state in self._states]

    def probed(
        self, machines: MachineArray, apart: MachineArray, count: int, lengths: NDArray[np.int64]
    ) -> MachineArray:
        random, repeated = self._context.random, self._settings.repeated
        accepted = []
        chosen = draw(machines, count, random, repeated=repeated)
        has_long = lengths > 0
        freshest = -1
        if self._states:
            self._make_room(len(lengths))
        for _ in range(2):
            if self._states:
                freshest = max(freshest, int(self._last[chosen].max()))
            refused = has_long[chosen]
            accepted.append(chosen[~refused])
            chosen = chosen[refused]
            # Every machine asked returns its latest known state; the most recent one is used.
            told = self._states[freshest] if freshest >= 0 else has_long
            free = machines[~told[machines]]
            if not len(chosen) or not len(free):
                break
            chosen = draw(free, len(chosen), random, repeated=repeated)
        if len(chosen):
            last_resort = apart if len(apart) else machines
            accepted.append(draw(last_resort, len(chosen), random, repeated=repeated))
        return np.concatenate(accepted)
