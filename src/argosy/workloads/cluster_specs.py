"""Cluster specifications, read from `clusters.toml`.

A cluster is machines, an initial fill, and kinds of jobs that arrive. Every attribute of a job is drawn
independently: when it arrives, how many tasks it has, how long they run and how large they are. A table
names the source of each of its values; `docs/workloads.md` describes the sources.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from argosy.model.errors import ModelError, ScenarioError, UnknownName
from argosy.model.jobs import MOST_TASKS
from argosy.model.machine_model import Probability
from argosy.model.random import Random, exact_exp, exact_log
from argosy.model.resources import Resources, Share
from argosy.model.scenario import Factor, Positive
from argosy.model.units import LARGEST, MICROS_PER_SECOND, Time
from argosy.workloads.synthetic import WeightedRequest
from argosy.workloads.tables import Converter, Misfit, path_text

#: A curve is divided into this many equally likely values; the largest is drawn once in this many jobs.
STEPS: Final = 4096
#: Exponential times are drawn so many at once.
DRAWN_AHEAD: Final = 256
SOURCES: Final = ("paper", "simulator", "public trace", "literature", "derived", "estimate")
ValueT = TypeVar("ValueT")


class WholeExponential(msgspec.Struct, frozen=True, tag="exponential", tag_field="shape"):
    """Exponential draws, rounded up to a whole number."""

    mean: Positive

    @property
    def average(self) -> float:
        """The mean of the draws: rounding up adds about a half."""
        return 1 / (1 - exact_exp(-1 / self.mean))

    def drawer(self, random: Random, most: int) -> Callable[[], int]:
        """The stream must not be used for anything else, because draws are made ahead."""
        return self._drawn(random, most).__next__

    def _drawn(self, random: Random, most: int) -> Iterator[int]:
        mean = self.mean
        while True:
            for unit in random.exponentials(DRAWN_AHEAD):
                value = int(mean * unit) + 1
                yield value if value < most else most


class TimeExponential(WholeExponential, frozen=True, tag="exponential", tag_field="shape"):
    mean: Time

    def __post_init__(self) -> None:
        if self.mean <= 0:
            raise ModelError("a mean of 0", expected='a mean such as "100s"')


class Curve(msgspec.Struct, frozen=True, tag="cdf", tag_field="shape", dict=True):
    """A cumulative distribution read off at a few points: the share `at[i]` of all draws is at most
    `values[i]`. Between two points it is linear in the logarithm, as on the papers' log-scaled axes."""

    at: tuple[Share, ...]
    values: tuple[Positive, ...]

    def __post_init__(self) -> None:
        if len(self.at) != len(self.values) or len(self.at) < 2:
            raise ModelError(
                f"{len(self.at)} shares and {len(self.values)} values",
                expected="as many of one as of the other, two or more",
            )
        rises = all(a < b for a, b in zip(self.at, self.at[1:], strict=False))
        if not rises or self.at[0] != 0 or self.at[-1] != 1:
            raise ModelError(f"shares {list(self.at)}", expected="rising from 0 to 1")
        if any(a > b for a, b in zip(self.values, self.values[1:], strict=False)):
            raise ModelError(f"values {list(self.values)}", expected="values that never fall")
        if self.values[0] < 1:
            raise ModelError(f"a value of {self.values[0]}", expected="values of 1 or more")

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The equally likely values, from smallest to largest."""
        return tuple(self._quantile((step + 0.5) / STEPS) for step in range(STEPS))

    def _quantile(self, share: float) -> int:
        place = bisect_right(self.at, share) - 1
        low, high = self.values[place], self.values[place + 1]
        part = (share - self.at[place]) / (self.at[place + 1] - self.at[place])
        value = exact_exp(exact_log(low) + part * (exact_log(high) - exact_log(low)))
        return min(max(int(value + 0.5), low), high)

    @property
    def average(self) -> float:
        return sum(self.steps) / STEPS

    def above(self, value: int) -> float:
        """The share of draws above `value`."""
        return 1 - bisect_right(self.steps, value) / STEPS

    def drawer(self, random: Random, most: int) -> Callable[[], int]:
        steps, below = tuple(min(step, most) for step in self.steps), random.below
        return lambda: steps[below(STEPS)]


class TimeCurve(Curve, frozen=True, tag="cdf", tag_field="shape", dict=True):
    values: tuple[Time, ...]


Tasks: TypeAlias = WholeExponential | Curve
Durations: TypeAlias = TimeExponential | TimeCurve


class Sourced(msgspec.Struct, frozen=True, kw_only=True):
    #: The source of each key's value.
    sources: dict[str, str]

    def __post_init__(self) -> None:
        for field in self.__struct_fields__:
            is_value = not isinstance(getattr(self, field), Sourced | dict)
            if is_value and getattr(self, field) is not None and field != "about":
                source = self.sources.get(field, "")
                if not source.startswith(SOURCES):
                    raise ModelError(
                        f"the source of {field} is {source!r}",
                        expected="one that begins with " + ", ".join(SOURCES),
                    )


class PickyJobs(msgspec.Struct, frozen=True, kw_only=True):
    """A share of a kind's jobs that may not run anywhere."""

    share: Share
    #: Attributes that their machines have.
    requires: dict[str, str] = {}
    #: Whether their tasks are on different machines.
    apart: bool = False


class KindSpec(Sourced, frozen=True, kw_only=True):
    """One kind of job. Gaps between arrivals are exponential with mean `interarrival`, unless they are
    asked to be burstier."""

    interarrival: Time
    tasks: Tasks
    duration: Durations
    requests: tuple[WeightedRequest, ...]
    precedence: int = 0
    #: The multiple of the arrival rate at which one scheduler of the paper's speed saturates.
    saturates_at: Factor | None = None
    #: In a varied cluster; others are not picky.
    picky: tuple[PickyJobs, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(each.share for each in self.picky or ()) > 1:
            raise ModelError("shares of picky jobs above 1", expected="1 or less together")
        if self.interarrival <= 0:
            raise ModelError("no time between arrivals", expected='a mean such as "1s"')
        if not self.requests:
            raise ModelError("no requests", expected="at least one resource vector")

    def busyness(self, t_job: int = 100_000, t_task: int = 5_000, rate: float = 1.0) -> float:
        """The share of its time that one scheduler spends on these jobs, if a decision takes `t_job +
        t_task x tasks` and is never repeated. At 1 or more it cannot keep up."""
        return rate * (t_job + t_task * self.tasks.average) / self.interarrival

    def cores_asked(self) -> float:
        """Milli-cores requested per second by all arriving jobs."""
        return self._mean("cpu") * self.tasks.average / self.interarrival * MICROS_PER_SECOND

    def memory_asked(self) -> float:
        """Bytes requested per second by all arriving jobs."""
        return self._mean("memory") * self.tasks.average / self.interarrival * MICROS_PER_SECOND

    def _mean(self, name: str) -> float:
        weights = total = 0.0
        for choice in self.requests:
            weights += choice.weight
            total += choice.weight * dict(choice.request.items())[name]
        return total / weights


class MachineKind(msgspec.Struct, frozen=True, kw_only=True):
    weight: Positive
    capacity: Resources
    attributes: dict[str, str] = {}


class MachineSpec(Sourced, frozen=True, kw_only=True):
    count: Positive
    capacity: Resources
    #: In a varied cluster: kinds of machines instead of one.
    mix: tuple[MachineKind, ...] | None = None


class FillSpec(Sourced, frozen=True, kw_only=True):
    """Tasks that are in the cell from the start and take `share` of its scarcest resource."""

    share: Probability
    #: Tasks per job of the fill.
    tasks: Positive
    requests: tuple[WeightedRequest, ...]
    precedence: int = 0


class ClusterSpec(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    about: str
    machines: MachineSpec
    fill: FillSpec
    kinds: dict[str, KindSpec]


def cluster(name: str) -> ClusterSpec:
    """The cluster of this name: ``A``, ``B``, ``C``, ``D`` or ``lightweight``."""
    specs = _specs()
    if name not in specs:
        raise UnknownName("cluster", name, specs)
    return specs[name]


def cluster_names() -> tuple[str, ...]:
    return tuple(_specs())


@cache
def _specs() -> dict[str, ClusterSpec]:
    text = files("argosy.workloads").joinpath("clusters.toml").read_text("utf-8")
    return read_specs(tomllib.loads(text))


def read_specs(document: dict[str, Any]) -> dict[str, ClusterSpec]:
    """The clusters of a parsed file like `clusters.toml`, by name."""
    try:
        return {
            name: Converter(ScenarioError).convert({"name": name, **table}, ClusterSpec, (name,))
            for name, table in document.items()
        }
    except Misfit as misfit:
        raise misfit.error.located(field=path_text(misfit.path) or None) from None


#: The largest count and time a draw may have.
BOUNDS: Final = {"tasks": MOST_TASKS, "duration": LARGEST}
