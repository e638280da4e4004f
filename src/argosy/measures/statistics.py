"""Statistics of runs: distributions, and the uncertainty of medians and their ratios.

Uncertainty comes from the bootstrap, because waiting times are far from normal and seeds are few:
resample the observations with replacement, recompute the statistic, and look at its spread. The
stream of random numbers is an argument, so the same observations give the same interval everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.random import Random
from argosy.records.summary import Distribution

Observations: TypeAlias = NDArray[Any] | Sequence[float]

#: Enough for a 95 % interval whose ends change by less than its width if the stream changes.
RESAMPLES: Final = 2_000
CONFIDENCE: Final = 0.95


class Estimate(msgspec.Struct, frozen=True):
    """A median and the interval that contains it with `CONFIDENCE`. With one observation, the width is
    zero."""

    value: float
    low: float
    high: float


class Ratio(msgspec.Struct, frozen=True):
    """The ratio of two medians; `uncertainty` is the standard error of `value`.

    It is infinite if only the denominator is zero, and 1 if both are.
    """

    value: float
    uncertainty: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 1, that is, "no difference"."""
        return self.low > 1.0 or self.high < 1.0


def distribution(values: NDArray[Any], *, is_spare: bool = False) -> Distribution:
    """Count, mean, quantiles (linearly interpolated) and maximum; zeros without values. If the array is
    spare, it is reordered instead of copied."""
    if len(values) == 0:
        return Distribution()
    observed = np.array(values, dtype=np.float64, copy=None if is_spare else True)
    mean, largest = float(observed.mean()), float(observed.max())
    p50, p90, p99 = np.percentile(observed, (50, 90, 99), overwrite_input=True)
    return Distribution(
        count=len(observed),
        mean=mean,
        p50=float(p50),
        p90=float(p90),
        p99=float(p99),
        largest=largest,
    )


def median(values: Observations, random: Random) -> Estimate:
    """The median of independent observations, with its percentile-bootstrap interval."""
    observed = _observed(values)
    middle = float(np.median(observed))
    if len(observed) == 1:
        return Estimate(middle, middle, middle)
    low, high = _interval(np.median(observed[_draws(len(observed), random)], axis=1))
    return Estimate(middle, low, high)


def ratio_of_medians(
    numerator: Observations,
    denominator: Observations,
    random: Random,
    confidence: float = CONFIDENCE,
) -> Ratio:
    """`median(numerator) / median(denominator)` of paired observations, with its uncertainty.

    Pairs (the same seed under two engines) are drawn together, so that effects of a seed on both
    engines cancel out instead of widening the interval.
    """
    above, below = _observed(numerator), _observed(denominator)
    if len(above) != len(below):
        raise ValueError(f"{len(above)} and {len(below)} observations are not pairs")
    value = float(_divide(np.median(above), np.median(below)))
    if len(above) == 1:
        return Ratio(value, 0.0, value, value)
    draws = _draws(len(above), random)
    ratios = _divide(np.median(above[draws], axis=1), np.median(below[draws], axis=1))
    low, high = _interval(ratios, confidence)
    finite = ratios[np.isfinite(ratios)]
    return Ratio(value, float(finite.std()) if len(finite) else 0.0, low, high)


def _observed(values: Observations) -> NDArray[np.float64]:
    observed = np.asarray(values, dtype=np.float64)
    if observed.ndim != 1 or len(observed) == 0:
        raise ValueError("a median needs at least one observation")
    return observed


def _draws(count: int, random: Random) -> NDArray[np.int64]:
    """One row of `count` indices per resample."""
    drawn = [random.below(count) for _ in range(RESAMPLES * count)]
    return np.array(drawn, dtype=np.int64).reshape(RESAMPLES, count)


def _interval(
    statistics: NDArray[np.float64], confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The ends are sorted values themselves, because infinities cannot be interpolated."""
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(statistics, (tail, 1.0 - tail), method="nearest")
    return float(low), float(high)


def _divide(above: Any, below: Any) -> Any:
    above, below = np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = above / below
    return np.where((above == 0) & (below == 0), 1.0, ratios)
