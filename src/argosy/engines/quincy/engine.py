from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from msgspec import Meta

from argosy.engines.api import PaperPreset, RunFacts, SettingMismatch, Settings
from argosy.engines.families.flow.policies import policy_mismatch
from argosy.engines.families.flow.scheduler import FlowScheduler
from argosy.engines.families.flow.settings import Cost, FlowSettings, PolicyName
from argosy.model.machine_model import MachineModel
from argosy.model.units import Micros
from argosy.solvers.flow import Algorithm


class QuincySettings(FlowSettings, frozen=True):
    """As for Firmament, with cost scaling from scratch."""

    policy: PolicyName = "quincy"
    algorithm: Algorithm = Algorithm.COST_SCALING
    warm: bool = False
    migration: Cost = 50
    scratch_every: Annotated[int, Meta(ge=1, le=1_000_000)] = 16


class Quincy(FlowScheduler):
    name: ClassVar[str] = "quincy"
    summary: ClassVar[str] = (
        "Min-cost max-flow over all tasks, solved from scratch by cost scaling after every change."
    )
    settings_type: ClassVar[type[Settings]] = QuincySettings
    published: ClassVar[Mapping[str, PaperPreset]] = {
        "quincy-paper": PaperPreset(
            {"heuristics": {"alpha": 2}, "scratch_every": 1, "evenness": 0},
            MachineModel(),
            hop=Micros(0),
            is_compared=False,
        )
    }

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        assert isinstance(settings, FlowSettings)
        return policy_mismatch(settings, facts)
