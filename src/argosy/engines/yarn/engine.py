from __future__ import annotations

from typing import ClassVar

from msgspec import structs

from argosy.engines.api import Capabilities
from argosy.engines.families.lra import sight
from argosy.engines.families.lra.manager import Sight
from argosy.engines.families.lra.scheduler import LraScheduler
from argosy.model.budgets import Budget
from argosy.model.random import Random
from argosy.solvers.placement import PlacementAnswer, PlacementProblem, place


class Yarn(LraScheduler):
    name: ClassVar[str] = "yarn"
    summary: ClassVar[str] = "Containers go to whichever machine reports next; ignores constraints."
    capabilities: ClassVar[Capabilities] = structs.replace(
        LraScheduler.capabilities, constraints=False
    )

    @classmethod
    def sight(cls) -> Sight | None:
        return sight.nothing

    def decide(self, problem: PlacementProblem, random: Random, budget: Budget) -> PlacementAnswer:
        return place(problem, "heartbeat", random, self._lra.objective)
