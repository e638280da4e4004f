"""Distributions as typed values: of task counts (`RandomShape[int]`) or times
(`RandomShape[Micros]`).

Every draw is a whole number, computed with additions, multiplications and the exact functions of
the native core alone, and so the same on every platform.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec

from argosy.model.errors import ModelError
from argosy.model.random import Random, exact_exp
from argosy.model.units import LARGEST

#: `int` for counts, `Micros` for times: the unit of the parameters.
UnitT = TypeVar("UnitT", bound=int)
ShapeParameter: TypeAlias = Annotated[
    float, msgspec.Meta(gt=0, le=20, description="a number above 0, at most 20")
]


class Constant(msgspec.Struct, Generic[UnitT], frozen=True, tag="constant", tag_field="shape"):
    value: UnitT

    def draw(self, random: Random) -> int:
        return self.value


class Uniform(msgspec.Struct, Generic[UnitT], frozen=True, tag="uniform", tag_field="shape"):
    """Every whole number from `low` to `high` with equal probability."""

    low: UnitT
    high: UnitT

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high:
            raise ModelError("low is above high or below 0", expected="0 <= low <= high")

    def draw(self, random: Random) -> int:
        return int(self.low + random.below(self.high - self.low + 1))


class Exponential(
    msgspec.Struct, Generic[UnitT], frozen=True, tag="exponential", tag_field="shape"
):
    mean: UnitT

    def draw(self, random: Random) -> int:
        return _bounded(self.mean * random.exponential())


class Lognormal(msgspec.Struct, Generic[UnitT], frozen=True, tag="lognormal", tag_field="shape"):
    """`median * exp(sigma * z)` with standard normal z: its mean is `median * exp(sigma^2 / 2)`."""

    median: UnitT
    sigma: ShapeParameter

    def draw(self, random: Random) -> int:
        return _bounded(self.median * exact_exp(self.sigma * random.normal()))


class Pareto(msgspec.Struct, Generic[UnitT], frozen=True, tag="pareto", tag_field="shape"):
    """Bounded Pareto: a few values near `high` make up much of the sum; the smaller `alpha`, the
    more."""

    low: UnitT
    high: UnitT
    alpha: ShapeParameter

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            raise ModelError("low is 0 or not below high", expected="0 < low < high")

    def draw(self, random: Random) -> int:
        return _bounded(random.bounded_pareto(self.low, self.high, self.alpha))


RandomShape: TypeAlias = (
    Constant[UnitT] | Uniform[UnitT] | Exponential[UnitT] | Lognormal[UnitT] | Pareto[UnitT]
)


def least_parameter(distribution: RandomShape[Any]) -> int:
    """The smallest parameter of a distribution, apart from its spread."""
    match distribution:
        case Constant(value=least) | Exponential(mean=least) | Lognormal(median=least):
            return int(least)
        case Uniform(low=least) | Pareto(low=least):
            return int(least)


def _bounded(value: float) -> int:
    return int(value) if value < LARGEST else LARGEST
