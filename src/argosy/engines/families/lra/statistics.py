"""Statistics of the batches placed, for the summary of a run."""

from __future__ import annotations

from argosy.engines.families.lra.plans import BatchDecision


class SolverStatistics:
    def __init__(self) -> None:
        self._batches = 0
        self._optimal = 0
        self._solved = 0
        self._largest_gap = 0.0

    def add(self, decision: BatchDecision) -> None:
        self._batches += 1
        self._optimal += decision.is_optimal
        self._solved += decision.candidates > 0
        self._largest_gap = max(self._largest_gap, decision.gap or 0.0)

    def figures(self) -> dict[str, float]:
        """Number of batches, of answers proven optimal and of programs solved; and the largest gap to a
        bound, in units of the objective."""
        return {
            "batches": self._batches,
            "optimal": self._optimal,
            "solved": self._solved,
            "largest_gap": self._largest_gap,
        }
