from __future__ import annotations

from typing import ClassVar

from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.engines.lra import sight
from argosy.engines.lra.manager import Sight
from argosy.engines.lra.scheduler import LraSettings, TwoSchedulers
from argosy.solvers.placement import Answer, Problem, place


class Yarn(TwoSchedulers):
    name: ClassVar[str] = "yarn"
    summary: ClassVar[str] = (
        "Containers to whichever machine reports next; constraints are not seen."
    )
    settings_type: ClassVar[type[Settings]] = LraSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, preemption=True, finishes=Finishes.OWN, alone=True
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, LraSettings)
        super().__init__(settings, context)

    def sight(self) -> Sight | None:
        return sight.nothing

    def decide(self, problem: Problem) -> Answer:
        return place(problem, "heartbeat", self._context.random, self._lra.objective)
