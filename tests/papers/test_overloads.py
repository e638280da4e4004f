"""How a scheduler copes with a time of overload: rounds before and during it, and when it is over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.papers.firmament import replays
from argosy.papers.firmament.world import MeasuredReplay


def replayed(*spent: tuple[float, float]) -> MeasuredReplay:
    nothing: Any = None
    return MeasuredReplay(np.empty(0), np.empty(0), 0, 0, list(spent), 0.0, nothing)


#: Rounds before an overload from 10 to 20, 2 s on average, and during it.
BEFORE = ((0.0, 1.0), (9.9, 3.0))
DURING = ((10.0, 6.0), (19.9, 10.0))
LIMIT = 2.0 * replays._SLOW


@pytest.mark.parametrize(
    ("after", "recovery"),
    [
        ((), 0.0),
        (((20.0, LIMIT),), 0.0),
        (((20.0, LIMIT + 0.5),), LIMIT + 0.5),
        (((20.0, LIMIT + 0.5), (40.0, LIMIT + 1.0), (90.0, LIMIT)), 20.0 + LIMIT + 1.0),
    ],
)
def test_rounds_are_slow_compared_with_those_before(
    after: tuple[tuple[float, float], ...], recovery: float
) -> None:
    found = replays._coping(replayed(*BEFORE, *DURING, *after), 10.0, 20.0)
    assert found == {"calm": 2.0, "surge": 8.0, "recovery": pytest.approx(recovery)}


def test_without_rounds_there_is_nothing_to_recover_from() -> None:
    assert replays._coping(replayed(), 10.0, 20.0) == {"calm": 0.0, "surge": 0.0, "recovery": 0.0}
