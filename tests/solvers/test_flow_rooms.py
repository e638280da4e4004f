"""Room on machines, what the flow makes of it and who is admitted, against slow twins."""

from __future__ import annotations

import pytest
from room_bench import RoomsAndTwin


@pytest.mark.parametrize("seed", range(150))
def test_rooms_placements_and_admission_agree_with_their_slow_twins(seed: int) -> None:
    both = RoomsAndTwin(seed)
    for _ in range(40):
        both.step()
        both.admit_anything()
        match both.below(4):
            case 0:
                both.look()
            case 1 | 2:
                both.round()
    both.round()
    both.compare()
