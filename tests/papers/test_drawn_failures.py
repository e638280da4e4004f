"""How machines of service units fail in the Medea paper's figure 3, as they are drawn here."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.papers.medea.resilience import HOURS, unavailability

UNITS = 200


@pytest.fixture(scope="module")
def down() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return unavailability(UNITS, 3)


def test_an_hour_is_usual_a_spike_or_the_end_of_a_unit(
    down: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    assert down.shape == (HOURS, UNITS)
    usual, spike, whole = down <= 0.03, (down >= 0.05) & (down < 0.25), down == 1.0
    assert (usual | spike | whole).all()
    # Draws of 98 %, 1.7 % and 0.3 %; a spike lasts four to five hours, the end of a unit three.
    assert 0.90 < usual.mean() < 0.95
    assert 0.04 < spike.mean() < 0.09
    assert 0.004 < whole.mean() < 0.015


def test_usual_hours_have_a_hundredth_of_machines_down_on_average_and_three_at_most(
    down: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    usual = down[down <= 0.03]
    # Of an exponential with a mean of 1 %, what exceeds 3 % counts as 3 %.
    assert usual.mean() == pytest.approx(0.01 * (1 - np.exp(-3)), rel=0.05)
    assert (usual == 0.03).mean() == pytest.approx(np.exp(-3), rel=0.1)
    assert down[(down > 0.03) & (down < 1)].mean() == pytest.approx(0.15, rel=0.1)


def test_spikes_last_while_usual_hours_are_each_drawn_anew(
    down: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    same = down[1:] == down[:-1]
    spike, usual = (down[:-1] >= 0.05) & (down[:-1] < 1), down[:-1] < 0.03
    assert 0.6 < same[spike].mean() < 0.85
    assert same[usual].mean() < 0.01


def test_units_fail_independently_and_alike_for_the_same_seed() -> None:
    assert (unavailability(9, 1) == unavailability(9, 1)).all()
    assert (unavailability(9, 1) != unavailability(9, 2)).any()
    # More units change nothing of the first.
    assert (unavailability(9, 1)[:, :4] == unavailability(4, 1)).all()
