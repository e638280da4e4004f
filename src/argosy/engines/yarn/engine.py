from __future__ import annotations

from typing import ClassVar

from msgspec import structs

from argosy.engines.api import Capabilities
from argosy.engines.lra import sight
from argosy.engines.lra.manager import Sight
from argosy.engines.lra.scheduler import TwoSchedulers
from argosy.solvers.placement import Answer, Problem, place


class Yarn(TwoSchedulers):
    name: ClassVar[str] = "yarn"
    summary: ClassVar[str] = (
        "Containers to whichever machine reports next; constraints are not seen."
    )
    capabilities: ClassVar[Capabilities] = structs.replace(
        TwoSchedulers.capabilities, constraints=False
    )

    def sight(self) -> Sight | None:
        return sight.nothing

    def decide(self, problem: Problem) -> Answer:
        return place(problem, "heartbeat", self._context.random, self._lra.objective)
