"""What a decision may cost: budgets, and who starts them.

Whoever runs an engine hands it `Budgets`; the engine starts one for each decision that could take long,
and its solvers stop when it is over. Behind a budget is a count of steps, the same on every computer, or
a clock (`argosy.worlds.clocks`); neither engine nor solver can tell.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from argosy._core import Budget, WorkBudget

__all__ = ["UNTIMED", "Budget", "Budgets", "WorkBudget", "WorkBudgets"]


class Budgets(Protocol):
    def start(self, limit: int) -> Budget:
        """A budget that begins now and is meant to last `limit` microseconds; 0 means no limit."""


class WorkBudgets(msgspec.Struct, frozen=True):
    """Budgets that count steps instead of time: for tests, and where runs must be reproducible."""

    #: Steps that stand for one microsecond; 0: nothing is ever over.
    rate: int = 0

    def start(self, limit: int) -> Budget:
        return WorkBudget(limit * self.rate if limit and self.rate else -1)


UNTIMED: Final = WorkBudgets()
