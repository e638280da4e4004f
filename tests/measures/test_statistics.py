"""Distributions, medians with intervals, ratios with uncertainty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.measures.statistics import Ratio, _draws, distribution, median, ratio_of_medians
from argosy.model.random import Random
from argosy.records.summary import Distribution

observations = st.lists(st.floats(0.0, 1e12), min_size=1, max_size=8)


def test_no_values_are_an_empty_distribution() -> None:
    assert distribution(np.array([], dtype=np.int64)) == Distribution()


def test_a_distribution_has_the_textbook_quantiles() -> None:
    observed = distribution(np.arange(1, 102, dtype=np.int64))
    assert observed == Distribution(
        count=101, mean=51.0, p50=51.0, p90=91.0, p99=100.0, largest=101.0
    )


@given(observations)
def test_quantiles_rise(values: list[float]) -> None:
    observed = distribution(np.array(values))
    assert observed.p50 <= observed.p90 <= observed.p99 <= observed.largest


def test_one_observation_has_an_interval_without_width() -> None:
    estimate = median([3.0], Random(0))
    assert (estimate.low, estimate.value, estimate.high) == (3.0, 3.0, 3.0)


@given(observations)
def test_the_interval_holds_the_median_and_stays_within_the_values(values: list[float]) -> None:
    estimate = median(values, Random(0))
    assert min(values) <= estimate.low <= estimate.value <= estimate.high <= max(values)


def test_the_interval_is_as_wide_as_95_percent_confidence_needs() -> None:
    """The median of n evenly spaced values has a standard error of half the root of n: here 10."""
    estimate = median(np.arange(401.0), Random(0))
    assert estimate.low == pytest.approx(200 - 19.6, abs=1.5)
    assert estimate.high == pytest.approx(200 + 19.6, abs=1.5)


def test_the_same_stream_gives_the_same_interval() -> None:
    values = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0]
    assert median(values, Random(4)) == median(values, Random(4))


def test_less_confidence_is_a_narrower_interval() -> None:
    above = [1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0]
    wide, narrow = (
        ratio_of_medians(above, [1.0] * 7, Random(4), confidence) for confidence in (0.95, 0.5)
    )
    assert (wide.value, narrow.value, wide.uncertainty) == (5.0, 5.0, narrow.uncertainty)
    assert wide.low < narrow.low < 5.0 < narrow.high < wide.high


def test_a_ratio_of_paired_runs_ignores_what_a_seed_does_to_both() -> None:
    easy_to_hard = [10.0, 20.0, 40.0, 80.0, 160.0]
    ratio = ratio_of_medians([2 * value for value in easy_to_hard], easy_to_hard, Random(0))
    assert ratio == Ratio(2.0, 0.0, 2.0, 2.0)
    assert ratio.is_clear


def test_a_ratio_within_the_noise_is_not_clear() -> None:
    ratio = ratio_of_medians([9.0, 11.0, 10.0, 12.0], [11.0, 9.0, 12.0, 10.0], Random(0))
    assert ratio.low < 1.0 < ratio.high
    assert not ratio.is_clear


def test_a_ratio_covers_the_true_one_about_as_often_as_it_says() -> None:
    stream, covered, trials = Random(1), 0, 60
    for _ in range(trials):
        ours = [100.0 + 10.0 * stream.normal() for _ in range(15)]
        theirs = [150.0 + 15.0 * stream.normal() for _ in range(15)]
        ratio = ratio_of_medians(theirs, ours, stream)
        covered += ratio.low <= 1.5 <= ratio.high
    assert covered / trials > 0.85


def test_ratios_with_zero_medians_are_defined() -> None:
    assert ratio_of_medians([0.0, 0.0], [0.0, 0.0], Random(0)).value == 1.0
    assert ratio_of_medians([1.0, 2.0], [0.0, 0.0], Random(0)).value == float("inf")
    assert ratio_of_medians([0.0, 0.0], [1.0, 2.0], Random(0)).value == 0.0


def test_an_infinite_ratio_now_and_then_does_not_spoil_the_uncertainty() -> None:
    ratio = ratio_of_medians([2.0, 2.0, 4.0], [0.0, 1.0, 1.0], Random(0))
    assert ratio.high == float("inf")
    assert 0 < ratio.uncertainty < 1


def test_unpaired_or_missing_observations_are_refused() -> None:
    with pytest.raises(ValueError, match="not pairs"):
        ratio_of_medians([1.0], [1.0, 2.0], Random(0))
    with pytest.raises(ValueError, match="at least one"):
        median([], Random(0))


@pytest.mark.parametrize(
    ("low", "high", "is_clear"),
    [
        (1.0, 2.0, False),
        (1.001, 2.0, True),
        (0.5, 1.0, False),
        (0.5, 0.999, True),
        (0.9, 1.1, False),
    ],
)
def test_a_ratio_is_clear_if_its_interval_leaves_out_one(
    low: float, high: float, is_clear: bool
) -> None:
    assert Ratio(1.0, 0.0, low, high).is_clear is is_clear


def test_the_uncertainty_of_a_ratio_is_the_spread_of_its_resamples() -> None:
    above, below = np.array([3.0, 5.0, 4.0, 9.0]), np.array([2.0, 2.5, 1.0, 3.0])
    found = ratio_of_medians(above, below, Random(7), 0.8)
    draws = _draws(4, Random(7))
    ratios = np.sort(np.median(above[draws], axis=1) / np.median(below[draws], axis=1))
    assert found.uncertainty == pytest.approx(ratios.std(), rel=1e-9)
    assert found.value == 4.5 / 2.25
    # A tenth of the resamples is on either side.
    assert (found.low, found.high) == (ratios[200], ratios[1_799])
