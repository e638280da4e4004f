"""Engines that place applications by the integer program: its settings, and what it needs."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from argosy.cell import Snapshot
from argosy.engines.api import Context, NeededExtra, Settings
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.plans import BatchDecision, BatchQuestion
from argosy.engines.families.lra.scheduler import LraScheduler
from argosy.engines.families.lra.settings import LraSettings
from argosy.model.budgets import Budget
from argosy.model.effects import Question
from argosy.model.events import Decision
from argosy.model.random import Random
from argosy.model.units import Micros
from argosy.solvers.placement import PlacementAnswer, PlacementProblem
from argosy.solvers.placement.ilp import SolverLimits, solve
from argosy.solvers.placement.program import has_solver


class ProgramSettings(LraSettings, frozen=True):
    """Limits on the integer program."""

    #: Largest number of machines and of search-tree nodes, and a time limit. A run that reaches the
    #: time limit may not be repeatable; it uses the best answer so far.
    candidates: Annotated[int, Meta(ge=1, le=100_000)] = 64
    nodes: Annotated[int, Meta(ge=1, le=10_000_000)] = 500
    budget: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)


class ByProgram(LraScheduler):
    settings_type: ClassVar[type[Settings]] = ProgramSettings
    question_type: ClassVar[type[Question]] = BatchQuestion
    decision_type: ClassVar[type[Decision]] = BatchDecision

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, ProgramSettings)
        super().__init__(settings, context)
        self._program = settings
        #: Memories of finished deliberations, for reuse: updating one costs a hundredth of building it.
        #: `handle` never touches them, and each is used by one deliberation at a time.
        self._idle: list[Memory] = []
        self._limits = SolverLimits(machines=settings.candidates, nodes=settings.nodes)

    @property
    def is_long(self) -> bool:
        return self._lra.conflict != "reserve"

    @property
    def time_limit(self) -> int:
        return self._program.budget

    def deliberate(self, question: Question, snapshot: Snapshot, budget: Budget) -> Decision:
        assert isinstance(question, BatchQuestion)
        memory = self._memory_of(snapshot)
        stream = Random(question.seed)
        decision = self._planner.decide(question, memory, snapshot, stream, budget)
        self._idle.append(memory)
        return decision

    def _memory_of(self, snapshot: Snapshot) -> Memory:
        try:
            memory = self._idle.pop()
        except IndexError:
            return self.remember(snapshot)
        if memory.is_outgrown(snapshot):
            return self.remember(snapshot)
        memory.refresh(snapshot)
        return memory

    @classmethod
    def lack(cls, settings: Settings) -> NeededExtra | None:
        return (
            None if has_solver() else NeededExtra("ilp", "choose an engine that solves no program")
        )

    def decide(self, problem: PlacementProblem, random: Random, budget: Budget) -> PlacementAnswer:
        return solve(problem, random, self._lra.objective, self._limits, budget)
