"""How long tries of tasks take that are played, and which of them fail."""

from __future__ import annotations

from collections import Counter

import msgspec

from argosy.model.random import Random
from argosy.model.scenario import Scenario
from argosy.testing.scripted_world import FAILING, RETRIES
from argosy.worlds.sim.ground_truth import running_times


class PlayedEnd(msgspec.Struct, frozen=True):
    after: int
    fails: bool = False


class PlayedEnds:
    """Tries take as long as the scenario says, and some fail before."""

    def __init__(self, scenario: Scenario, random: Random) -> None:
        self._times = {made.id: running_times(made) for made in scenario.jobs}
        self._random = random
        self._failures: Counter[tuple[str, int]] = Counter()

    def draw(self, job: str, index: int) -> PlayedEnd | None:
        """Of a new try of a task; none if it runs until it is stopped."""
        task = job, index
        times = self._times[job] or (-1,)
        duration = times[min(index, len(times) - 1)]
        if duration > 0 and self._failures[task] < RETRIES and self._random.uniform() < FAILING:
            self._failures[task] += 1
            return PlayedEnd(self._random.below(duration), fails=True)
        return PlayedEnd(duration) if duration >= 0 else None
