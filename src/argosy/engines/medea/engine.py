from __future__ import annotations

from typing import ClassVar, Final, Literal

from argosy.engines.api import Context, NeededExtra, Settings
from argosy.engines.families.lra.program import ByProgram, ProgramSettings
from argosy.model.budgets import Budget
from argosy.model.random import Random
from argosy.solvers.placement import PlacementAnswer, PlacementProblem, place
from argosy.solvers.placement.printed import solve_printed

_PROGRAMS: Final = ("ilp", "ilp-printed")


class MedeaSettings(ProgramSettings, frozen=True):
    """How applications are placed, in addition to the settings of both schedulers."""

    #: The integer program (needs the extra `ilp`), or one of the heuristics, also as first fit.
    #: `ilp-printed` is the program as the paper prints it, with only obviously wrong signs corrected;
    #: for small cells and simple constraints.
    algorithm: Literal[
        "ilp",
        "ilp-printed",
        "tag-popularity",
        "node-candidates",
        "serial",
        "tag-popularity-first-fit",
        "node-candidates-first-fit",
        "serial-first-fit",
    ] = "ilp"


class Medea(ByProgram):
    name: ClassVar[str] = "medea"
    summary: ClassVar[str] = (
        "Two schedulers: an integer program for constrained applications, queues for tasks."
    )
    settings_type: ClassVar[type[Settings]] = MedeaSettings

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MedeaSettings)
        super().__init__(settings, context)
        self._settings = settings

    @classmethod
    def lack(cls, settings: Settings) -> NeededExtra | None:
        assert isinstance(settings, MedeaSettings)
        lack = super().lack(settings) if settings.algorithm in _PROGRAMS else None
        return lack and NeededExtra(lack.extra, "set algorithm to another, such as tag-popularity")

    @property
    def is_long(self) -> bool:
        return super().is_long and self._settings.algorithm in _PROGRAMS

    def decide(self, problem: PlacementProblem, random: Random, budget: Budget) -> PlacementAnswer:
        settings = self._settings
        if settings.algorithm == "ilp":
            return super().decide(problem, random, budget)
        if settings.algorithm == "ilp-printed":
            return solve_printed(problem, settings.objective, budget)
        return place(problem, settings.algorithm, random, settings.objective)
