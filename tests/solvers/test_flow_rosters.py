"""The roster of a flow scheduler against its slow twin, and what it refuses."""

from __future__ import annotations

import pytest
from roster_bench import RosterAndTwin


@pytest.mark.parametrize("seed", range(150))
def test_the_roster_agrees_with_its_slow_twin(seed: int) -> None:
    both = RosterAndTwin(seed)
    for _ in range(25):
        both.step()
        both.compare()
    both.sync()
    both.compare()
