from __future__ import annotations

from typing import ClassVar, Final, Literal

from argosy.engines.api import Context, NeededExtra, RunFacts, SettingMismatch, Settings
from argosy.engines.families.lra.program import ByProgram, ProgramSettings
from argosy.model.budgets import Budget
from argosy.model.constraints.text import format_constraint
from argosy.model.random import Random
from argosy.solvers.placement import PlacementAnswer, PlacementProblem, place
from argosy.solvers.placement.printed import MOST_PLACES, has_printed_form, solve_printed

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

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        assert isinstance(settings, MedeaSettings)
        found = super().mismatch(settings, facts)
        if found is None and settings.algorithm == "ilp-printed":
            return _not_printed(settings, facts)
        return found

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


def _not_printed(settings: MedeaSettings, facts: RunFacts) -> SettingMismatch | None:
    """What the program as printed has no form for, or is too large for it."""
    operator = (*facts.constraints, *settings.operator)
    whose = [(constraint, "the operator's") for constraint in operator]
    for job in facts.jobs:
        whose.extend((constraint, f"of job {job.id}") for constraint in job.constraints)
        places = job.tasks * facts.machines
        if settings.is_lra(job) and places > MOST_PLACES:
            return _printed_mismatch(
                f"job {job.id} on {facts.machines:,} machines has {places:,} places",
                f"at most {MOST_PLACES:,} for an application with the algorithm ilp-printed",
            )
    for constraint, owner in whose:
        if not has_printed_form(constraint, facts.overlapping):
            return _printed_mismatch(
                f"'{format_constraint(constraint)}', {owner}, has no printed form",
                "constraints without spreads, alternatives and overlapping sets with the algorithm"
                " ilp-printed",
            )
    return None


def _printed_mismatch(problem: str, expected: str) -> SettingMismatch:
    return SettingMismatch(("algorithm",), problem, expected, "choose the algorithm ilp")
