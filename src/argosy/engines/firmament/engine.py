from __future__ import annotations

from typing import ClassVar

from argosy.engines.api import RunFacts, SettingMismatch, Settings
from argosy.engines.families.flow.policies import policy_mismatch
from argosy.engines.families.flow.scheduler import FlowScheduler
from argosy.engines.families.flow.settings import FlowSettings


class FirmamentSettings(FlowSettings, frozen=True):
    """Policy, costs and solver."""


class Firmament(FlowScheduler):
    name: ClassVar[str] = "firmament"
    summary: ClassVar[str] = (
        "Min-cost max-flow over all tasks, re-optimised from the last flow after every change."
    )
    settings_type: ClassVar[type[Settings]] = FirmamentSettings

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        assert isinstance(settings, FlowSettings)
        return policy_mismatch(settings, facts)
