from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.engines.lra.scheduler import LraSettings, TwoSchedulers
from argosy.solvers.placement import Answer, Problem, place
from argosy.solvers.placement.ilp import Limits, solve
from argosy.solvers.placement.program import has_solver


class IlpAllSettings(LraSettings, frozen=True):
    """As for Medea, but every kind of job is an application."""

    long_running: tuple[str, ...] = ("*",)
    #: Machines to choose from, and nodes of the search tree.
    candidates: Annotated[int, Meta(ge=1, le=100_000)] = 64
    nodes: Annotated[int, Meta(ge=1, le=10_000_000)] = 10


class IlpAll(TwoSchedulers):
    name: ClassVar[str] = "ilp-all"
    summary: ClassVar[str] = "The integer program for everything: applications and tasks alike."
    settings_type: ClassVar[type[Settings]] = IlpAllSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True,
        gang=True,
        preemption=True,
        constraints=True,
        finishes=Finishes.OWN,
        alone=True,
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, IlpAllSettings)
        super().__init__(settings, context)
        self._settings = settings

    def decide(self, problem: Problem) -> Answer:
        settings, random = self._settings, self._context.random
        if not has_solver():
            return place(problem, "tag-popularity", random, settings.objective)
        limits = Limits(machines=settings.candidates, nodes=settings.nodes, seconds=10.0)
        return solve(problem, random, settings.objective, limits)
