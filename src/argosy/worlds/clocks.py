"""Budgets of real time. Worlds hand them to engines, and nothing below worlds imports this module."""

from __future__ import annotations

import msgspec

from argosy._core import Budget, ClockBudget

__all__ = ["ClockBudget", "ClockBudgets"]


class ClockBudgets(msgspec.Struct, frozen=True):
    """Every budget lasts as long as requested, by a monotonic clock. It does not tell the time."""

    def start(self, limit: int) -> Budget:
        return ClockBudget(limit or -1, measures=False)
