"""Room on machines, and who is admitted to it, against slow twins."""

from __future__ import annotations

import pytest
from room_bench import RoomsAndTwin


@pytest.mark.parametrize("seed", range(60))
def test_rooms_and_admission_are_what_a_recount_says(seed: int) -> None:
    both = RoomsAndTwin(seed)
    for _ in range(40):
        both.step()
        if both.below(2):
            both.look()
    both.look()
    both.compare()
