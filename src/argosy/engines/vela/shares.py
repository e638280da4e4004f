"""How much of the federation a sample covers, and how that adapts."""

from __future__ import annotations

from argosy.engines.vela.settings import VelaSettings

#: A task that finds no machine widens samples by this factor; every task that is placed narrows them
#: back by a small one, so that about a hundred placements undo one failure.
_WIDER = 1.5
_NARROWER = 0.996


class SampleShares:
    """C_p and N_p. With `adapt`, a failure first brings in more clusters, because other clusters are
    other machines, while a larger share of full ones is not. Once all are asked, samples grow. If tasks
    wait for samplers, failures do not widen: a wide sample keeps its sampler for longer."""

    def __init__(self, settings: VelaSettings) -> None:
        self._settings = settings
        self.clusters = settings.clusters
        self.machines = settings.machines

    def found_none(self, waiting: int) -> None:
        settings = self._settings
        if not settings.adapt or waiting > settings.samplers:
            return
        if self.clusters < 1:
            self.clusters = min(1.0, self.clusters * _WIDER)
        else:
            most = max(settings.most_machines, settings.machines)
            self.machines = min(most, self.machines * _WIDER)

    def placed(self) -> None:
        settings = self._settings
        if settings.adapt:
            self.clusters = max(settings.clusters, self.clusters * _NARROWER)
            self.machines = max(settings.machines, self.machines * _NARROWER)
