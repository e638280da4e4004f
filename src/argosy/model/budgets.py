"""Budgets: limits on what a decision may cost.

A world gives an engine `Budgets`; the engine starts one for each decision that could take long, and
its solvers stop when it is over. A budget counts steps, which are the same on every computer, or
uses a clock (`argosy.worlds.clocks`). An engine learns no more of either than whether it is over; one
without a limit never is, and tells nothing.
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from argosy._core import Budget, WorkBudget

__all__ = ["UNTIMED", "Budget", "Budgets", "WorkBudget", "WorkBudgets"]


class Budgets(Protocol):
    def start(self, limit: int) -> Budget:
        """A budget that starts now and should last `limit` microseconds; 0: no limit."""


class WorkBudgets(msgspec.Struct, frozen=True):
    """Budgets that count steps instead of time, for tests and reproducible runs."""

    #: Steps per microsecond; 0: budgets never run out.
    rate: int = 0

    def start(self, limit: int) -> Budget:
        return WorkBudget(limit * self.rate if limit and self.rate else -1)


UNTIMED: Final = WorkBudgets()
