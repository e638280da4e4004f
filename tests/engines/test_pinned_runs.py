"""Whole runs of every engine under drawn settings, in full cells, with faults, and users who act: the
journal with messages and timers, every refusal, and the state at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from drawn_clusters import SECOND, dice_of
from eventful_runs import run_text
from pinned_digests import require_digests
from told_values import told

from argosy.engines.families.flow.move_budget import MoveBudget
from argosy.engines.registry import ENGINES

PINNED: Final = Path(__file__).parent / "pinned"
#: Runs of each engine.
RUNS: Final = 30
#: Those that take seconds.
SLOW: Final = frozenset({("quincy", 4), ("quincy", 15)})


@pytest.mark.parametrize("engine", ENGINES)
def test_whole_runs_are_pinned(engine: str, request: pytest.FixtureRequest) -> None:
    numbers = [number for number in range(RUNS) if (engine, number) not in SLOW]
    outcomes = {f"{engine} {number}": run_text(engine, number) for number in numbers}
    file = PINNED / f"runs_{engine.replace('+', '-plus')}.txt"
    require_digests(file, outcomes, request.config)


def test_runs_with_tasks_that_fail_for_good_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {
        f"{engine} {number}": run_text(engine, number, fails=True)
        for engine in ENGINES
        for number in (100, 101, 102)
    }
    require_digests(PINNED / "runs_that_fail.txt", outcomes, request.config)


def test_budgets_of_moves_over_minutes_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(20):
        dice = dice_of("moves", number)
        budget, now, lines = MoveBudget(dice.one_of((0, 1, 5))), 0, []
        for _ in range(30):
            now += dice.one_of((0, 1, SECOND, 29 * SECOND, 30 * SECOND, 59 * SECOND))
            left = budget.left(now, dice.one_of((0, 1, 3, 9)))
            budget.spend(dice.among(0, left), now)
            lines.append(told([now, left, budget.more_at]))
        outcomes[f"{number}"] = "\n".join(lines)
    require_digests(PINNED / "move_budgets.txt", outcomes, request.config)
