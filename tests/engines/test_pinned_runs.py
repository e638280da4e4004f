"""Whole runs of every engine under drawn settings, in full cells, with faults, and users who act: the
journal with messages and timers, every refusal, and the state at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from eventful_runs import run_text
from pinned_digests import require_digests

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
