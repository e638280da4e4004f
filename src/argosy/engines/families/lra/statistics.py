"""Numbers about the batches that were decided on, for the summary of a run."""

from __future__ import annotations

import math

from argosy.solvers.placement import PlacementAnswer


class SolverStatistics:
    def __init__(self) -> None:
        self._batches = 0
        self._optimal = 0
        self._solved = 0
        self._largest_gap = 0.0

    def add(self, answer: PlacementAnswer) -> None:
        self._batches += 1
        self._optimal += answer.status == "optimal"
        self._solved += answer.candidates > 0
        if math.isfinite(answer.gap):
            self._largest_gap = max(self._largest_gap, answer.gap)

    def figures(self) -> dict[str, float]:
        """How many batches there were, how many answers are proven best, for how many a program was
        solved, and the largest gap to a bound, in units of the objective."""
        return {
            "batches": self._batches,
            "optimal": self._optimal,
            "solved": self._solved,
            "largest_gap": self._largest_gap,
        }
