from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

from argosy.engines.api import (
    Context,
    NeededExtra,
    PaperPreset,
    RunFacts,
    SettingMismatch,
    Settings,
)
from argosy.engines.families.lra.manager import not_simple
from argosy.engines.families.lra.program import ByProgram, ProgramSettings
from argosy.model.budgets import Budget
from argosy.model.machine_model import MachineModel
from argosy.model.random import Random
from argosy.model.units import Micros
from argosy.solvers.placement import PlacementAnswer, PlacementProblem, place
from argosy.solvers.placement.plain import READINGS, read_plainly
from argosy.solvers.placement.printed import MOST_PLACES, solve_printed

PRINTED: Final = "ilp-printed"
_PROGRAMS: Final = ("ilp", PRINTED)


class MedeaSettings(ProgramSettings, frozen=True):
    """How applications are placed, in addition to the settings of both schedulers."""

    #: The integer program (needs the extra `ilp`), or one of the heuristics, also as first fit or in the
    #: plainest reading of the paper. `ilp-printed` is the program as the paper prints it, with only
    #: obviously wrong signs corrected; for small cells. It and the plain readings are for constraints
    #: without alternatives.
    algorithm: Literal[
        "ilp",
        "ilp-printed",
        "tag-popularity",
        "node-candidates",
        "serial",
        "tag-popularity-first-fit",
        "node-candidates-first-fit",
        "serial-first-fit",
        "tag-popularity-plain",
        "node-candidates-plain",
        "serial-plain",
    ] = "ilp"


class Medea(ByProgram):
    name: ClassVar[str] = "medea"
    summary: ClassVar[str] = (
        "Two schedulers: an integer program for constrained applications, queues for tasks."
    )
    settings_type: ClassVar[type[Settings]] = MedeaSettings
    #: The integer program as the paper prints it, and the plainest readings of its heuristics; jobs with
    #: constraints are applications.
    published: ClassVar[Mapping[str, PaperPreset]] = {
        name: PaperPreset(
            {"algorithm": algorithm, "routing": "constraints"},
            MachineModel(),
            hop=Micros(0),
            is_compared=False,
        )
        for name, algorithm in (
            ("medea-printed", PRINTED),
            ("medea-tag-popularity", "tag-popularity-plain"),
            ("medea-node-candidates", "node-candidates-plain"),
            ("medea-serial", "serial-plain"),
        )
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MedeaSettings)
        super().__init__(settings, context)
        self._settings = settings

    @classmethod
    def lack(cls, settings: Settings) -> NeededExtra | None:
        assert isinstance(settings, MedeaSettings)
        lack = super().lack(settings) if settings.algorithm in _PROGRAMS else None
        return lack and NeededExtra(lack.extra, "set algorithm to another, such as tag-popularity")

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        assert isinstance(settings, MedeaSettings)
        found = super().mismatch(settings, facts)
        if found is None and settings.algorithm == PRINTED:
            found = _too_large(settings, facts)
        if found is None and settings.algorithm in (PRINTED, *READINGS):
            operator = (*facts.constraints, *settings.operator)
            return not_simple(settings.algorithm, ("algorithm",), operator, facts)
        return found

    @property
    def is_long(self) -> bool:
        return super().is_long and self._settings.algorithm in _PROGRAMS

    def decide(self, problem: PlacementProblem, random: Random, budget: Budget) -> PlacementAnswer:
        settings = self._settings
        if settings.algorithm == "ilp":
            return super().decide(problem, random, budget)
        if settings.algorithm == PRINTED:
            return solve_printed(problem, settings.objective, budget)
        if settings.algorithm in READINGS:
            return read_plainly(problem, settings.algorithm, settings.objective)
        return place(problem, settings.algorithm, random, settings.objective)


def _too_large(settings: MedeaSettings, facts: RunFacts) -> SettingMismatch | None:
    for job in facts.jobs:
        places = job.tasks * facts.machines
        if settings.is_lra(job) and places > MOST_PLACES:
            return SettingMismatch(
                ("algorithm",),
                f"job {job.id} on {facts.machines:,} machines has {places:,} places",
                f"at most {MOST_PLACES:,} for an application with the algorithm ilp-printed",
                "choose the algorithm ilp",
            )
    return None
