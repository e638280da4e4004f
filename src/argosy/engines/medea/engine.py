from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.engines.lra.scheduler import LraSettings, TwoSchedulers
from argosy.model.units import Micros
from argosy.solvers.placement import Answer, Problem, place
from argosy.solvers.placement.ilp import Limits, solve
from argosy.solvers.placement.printed import solve_printed
from argosy.solvers.placement.program import has_solver


class MedeaSettings(LraSettings, frozen=True):
    """How applications are placed; see also the settings of both schedulers."""

    #: The integer program, or one of the heuristics, also in the paper's first-fit form. Without
    #: OR-Tools (the extra `ilp`) the integer program is replaced by tag popularity. `ilp-printed` is the
    #: program as the paper prints it, errors included, for small cells and plain constraints.
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
    #: What the integer program may cost: machines to choose from, nodes of the search tree, and a stop
    #: by the clock, which should not strike: a run in which it does may differ from the next.
    candidates: Annotated[int, Meta(ge=1, le=100_000)] = 64
    nodes: Annotated[int, Meta(ge=1, le=10_000_000)] = 500
    budget: Annotated[Micros, Meta(ge=1_000)] = Micros(10_000_000)


class Medea(TwoSchedulers):
    name: ClassVar[str] = "medea"
    summary: ClassVar[str] = (
        "Two schedulers: an integer program for constrained applications, queues for tasks."
    )
    settings_type: ClassVar[type[Settings]] = MedeaSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True,
        gang=True,
        preemption=True,
        constraints=True,
        finishes=Finishes.OWN,
        alone=True,
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MedeaSettings)
        super().__init__(settings, context)
        self._settings = settings

    def decide(self, problem: Problem) -> Answer:
        settings, random = self._settings, self._context.random
        if settings.algorithm == "ilp-printed":
            return solve_printed(problem, settings.objective, settings.budget / 1e6)
        if settings.algorithm != "ilp":
            return place(problem, settings.algorithm, random, settings.objective)
        if not has_solver():
            return place(problem, "tag-popularity", random, settings.objective)
        limits = Limits(
            machines=settings.candidates, nodes=settings.nodes, seconds=settings.budget / 1e6
        )
        return solve(problem, random, settings.objective, limits)
