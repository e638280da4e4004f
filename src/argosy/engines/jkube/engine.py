from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from argosy.engines.api import Context, PaperPreset, RunFacts, SettingMismatch, Settings
from argosy.engines.families.lra import sight
from argosy.engines.families.lra.manager import Sight, not_simple
from argosy.engines.families.lra.scheduler import LraScheduler
from argosy.engines.families.lra.settings import LraSettings
from argosy.model.budgets import Budget
from argosy.model.machine_model import MachineModel
from argosy.model.random import Random
from argosy.model.units import Micros
from argosy.solvers.placement import PlacementAnswer, PlacementProblem, place
from argosy.solvers.placement.plain import read_plainly


class JKubeSettings(LraSettings, frozen=True):
    """How applications are placed, in addition to the settings of both schedulers."""

    #: Kubernetes also weighs the affinities of containers already placed; in the plainest reading of
    #: the Medea paper, only those of the container that is placed, without alternatives.
    reading: Literal["kubernetes", "plain"] = "kubernetes"


class JKube(LraScheduler):
    name: ClassVar[str] = "jkube"
    summary: ClassVar[str] = "Kubernetes' scoring, one container at a time; affinities only."
    settings_type: ClassVar[type[Settings]] = JKubeSettings
    published: ClassVar[Mapping[str, PaperPreset]] = {
        "jkube-plain": PaperPreset(
            {"reading": "plain", "routing": "constraints"},
            MachineModel(),
            hop=Micros(0),
            is_compared=False,
        )
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, JKubeSettings)
        super().__init__(settings, context)
        self._is_plain = settings.reading == "plain"

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        assert isinstance(settings, JKubeSettings)
        found = super().mismatch(settings, facts)
        if found is None and settings.reading == "plain":
            operator = (*facts.constraints, *settings.operator)
            return not_simple(settings.reading, ("reading",), operator, facts)
        return found

    @classmethod
    def sight(cls) -> Sight | None:
        return sight.kube

    def decide(self, problem: PlacementProblem, random: Random, budget: Budget) -> PlacementAnswer:
        if self._is_plain:
            return read_plainly(problem, "jkube-plain", self._lra.objective)
        return place(problem, "kube", random, self._lra.objective)


class JKubePlus(JKube):
    name: ClassVar[str] = "jkube++"
    summary: ClassVar[str] = "As jkube, with cardinality constraints."
    published: ClassVar[Mapping[str, PaperPreset]] = {}

    @classmethod
    def sight(cls) -> Sight | None:
        return sight.kube_plus


class KubeModern(JKube):
    name: ClassVar[str] = "kube-modern"
    summary: ClassVar[str] = "As jkube, with hard upper limits, like topology spread constraints."
    published: ClassVar[Mapping[str, PaperPreset]] = {}

    @classmethod
    def sight(cls) -> Sight | None:
        return sight.kube_modern
