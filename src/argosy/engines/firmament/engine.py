from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from argosy.engines.api import PaperPreset, RunFacts, SettingMismatch, Settings
from argosy.engines.families.flow.policies import policy_mismatch
from argosy.engines.families.flow.scheduler import FlowScheduler
from argosy.engines.families.flow.settings import FlowSettings
from argosy.model.machine_model import MachineModel
from argosy.model.units import Micros


class FirmamentSettings(FlowSettings, frozen=True):
    """Policy, costs and solver."""


class Firmament(FlowScheduler):
    name: ClassVar[str] = "firmament"
    summary: ClassVar[str] = (
        "Min-cost max-flow over all tasks, re-optimised from the last flow after every change."
    )
    settings_type: ClassVar[type[Settings]] = FirmamentSettings
    #: As the paper describes its solver, which was never published: relaxation from scratch races
    #: against cost scaling from the last flow, which starts at the worst reduced cost of a changed arc.
    published: ClassVar[Mapping[str, PaperPreset]] = {
        "firmament-paper": PaperPreset(
            {
                "policy": "quincy",
                "algorithm": "race",
                "heuristics": {"depth_first": False, "fresh_prices": False, "alpha": 9},
                "task_removal": True,
                "evenness": 0,
            },
            MachineModel(),
            hop=Micros(0),
            is_compared=False,
        )
    }

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        assert isinstance(settings, FlowSettings)
        return policy_mismatch(settings, facts)
