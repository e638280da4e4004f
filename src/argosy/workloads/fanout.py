"""Data-parallel jobs with the characteristics of the Murmuration paper's table 2, and its arrivals.

The paper gives medians and 99th percentiles of fan-out, job inter-arrival time and task duration for
the Yahoo and Cloudera workloads. The other points of each curve are of the first 10,000 jobs of the
traces behind them. Between two points the logarithm grows evenly. Tasks of one job vary about its mean
with a variance of 2 x mean (in seconds), as the public slices of the Yahoo trace do.

Jobs arrive one after the other at the workload's own gaps, or by one of the patterns A to D of figure
2: the number of tasks offered per second has the pattern's median and peak.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import structs

from argosy.model.errors import ModelError, UnknownName
from argosy.model.jobs import BATCH, MOST_TASKS
from argosy.model.random import Random, exact_exp, exact_log
from argosy.model.resources import Resources
from argosy.model.truth import GroupTruth, SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import LARGEST, MICROS_PER_SECOND
from argosy.workloads.cluster_specs import Curve
from argosy.workloads.eagle import SLOT, Draws
from argosy.workloads.synthetic import Estimates

_SHARES: Final = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
_DURATION_SHARES: Final = (
    0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 0.9995, 1.0,
)  # fmt: skip


def _curve(*values: int) -> Curve:
    """A curve through values that the fixed shares of all draws do not exceed."""
    return Curve(_SHARES, values)


class FanoutShape(msgspec.Struct, frozen=True, kw_only=True):
    """A workload's three distributions; times are in microseconds."""

    #: Fan-out of jobs whose tasks run longer than a time, shortest first. In both traces the longest
    #: tenth or twentieth of jobs has far more tasks and nearly all of the work, and the longest
    #: thousandth differs again: in Yahoo's trace it is a third of all work.
    fanouts: tuple[tuple[int, Curve], ...]
    duration: Curve
    #: The smallest and largest gap between two jobs; uniform in between.
    gaps: tuple[int, int]


SHAPES: Final = {
    "yahoo": FanoutShape(
        fanouts=(
            (0, _curve(1, 1, 3, 7, 15, 30, 49, 64, 104, 638, 3_991)),
            (84_787_421, _curve(1, 1, 3, 6, 18, 147, 572, 904, 1_724, 2_853, 3_511)),
            (6_833_841_707, _curve(5, 7, 24, 257, 564, 1_214, 1_732, 2_095, 2_385, 2_451, 2_458)),
        ),
        duration=Curve(
            _DURATION_SHARES,
            (
                4_283, 527_041, 2_600_373, 6_444_618, 15_666_336, 34_674_576, 84_787_422,
                659_519_563, 1_178_864_210, 1_651_342_629, 2_409_844_857, 3_334_847_783,
                6_833_841_708, 9_269_792_373, 20_512_714_086,
            ),
        ),
        gaps=(7_200_000, 7_760_000),
    ),
    "cloudera": FanoutShape(
        fanouts=(
            (0, _curve(1, 2, 19, 51, 122, 239, 407, 539, 1_016, 4_423, 14_915)),
            (277_804_126, _curve(1, 3, 34, 111, 568, 2_387, 5_073, 7_902, 13_448, 39_689, 51_834)),
            (12_799_794_981, _curve(4, 5, 12, 18, 112, 272, 888, 1_344, 1_708, 1_790, 1_799)),
        ),
        duration=Curve(
            _DURATION_SHARES,
            (
                73_148, 1_124_272, 7_356_371, 19_458_833, 47_791_695, 98_185_977, 178_508_968,
                277_804_126, 571_610_957, 1_138_565_328, 2_514_659_360, 4_724_969_676,
                12_799_794_981, 15_985_477_523, 96_821_360_129,
            ),
        ),
        gaps=(11_900_000, 12_760_000),
    ),
}  # fmt: skip


class Pattern(msgspec.Struct, frozen=True):
    """Tasks offered per second: their median over the run, and their peak."""

    median: float
    peak: float

    @property
    def sigma(self) -> float:
        """Standard deviation of the rate's logarithm."""
        return exact_log(self.peak / self.median) / _PEAK_AT

    @property
    def mean(self) -> float:
        """The mean rate, ignoring the cut at the peak."""
        return self.median * exact_exp(self.sigma * self.sigma / 2)


#: Figure 2: "a median value of 8 - 10 pods per second", peaks of 28, 40, 195 and 373. A's median is
#: given as 8; the others are our choice, within the range.
PATTERNS: Final = {
    "A": Pattern(8, 28),
    "B": Pattern(9, 40),
    "C": Pattern(9, 195),
    "D": Pattern(10, 373),
}
PatternName: TypeAlias = Literal["A", "B", "C", "D"]
#: How long a pattern's rate lasts before another is drawn.
PERIOD: Final = 60 * MICROS_PER_SECOND
#: The same for tasks that come one by one: no longer than the largest job of the trace takes at the
#: highest peak.
BURST: Final = 10 * MICROS_PER_SECOND
#: The peak is this many standard deviations above the median: one period in a thousand.
_PEAK_AT: Final = 3.09


def shape(name: str) -> FanoutShape:
    if name not in SHAPES:
        raise UnknownName("workload", name, SHAPES)
    return SHAPES[name]


def generate(
    spec: FanoutShape,
    count: int,
    random: Random,
    *,
    speedup: float = 1.0,
    pattern: str | None = None,
    request: Resources = SLOT,
    estimates: Estimates | None = None,
    scale: float = 1.0,
    kind: str = BATCH,
) -> Iterator[SimulatedJob]:
    """`count` jobs in order of submission, `speedup` times as fast, each with `scale` times the
    tasks."""
    fanouts = _fanouts(spec, random.child("fanouts"))
    means = spec.duration.drawer(random.child("means"), LARGEST)
    draws = Draws(random.child("durations"), random.child("estimates"), estimates)
    arrivals: FanoutArrivals = (
        _Gaps(spec, random.child("gaps"))
        if pattern is None
        else _Rates(PATTERNS[pattern], random.child("rates"))
    )
    digits = len(str(count))
    for index in range(count):
        mean = means()
        tasks = max(1, int(fanouts(mean) * scale + 0.5))
        if tasks > MOST_TASKS:
            raise ModelError(
                f"a job of {tasks:,} tasks", field="scale", expected=f"at most {MOST_TASKS:,}"
            )
        durations = draws.durations(mean, tasks)
        group = group_with_truth(tasks, request, durations, draws.estimate(mean))
        submit = min(int(arrivals.after(tasks) / speedup), LARGEST)
        yield simulated_job(f"job-{index:0{digits}}", group, submit=submit, kind=kind)


def by_pattern(
    jobs: Iterable[SimulatedJob], pattern: str, random: Random
) -> Iterator[SimulatedJob]:
    """The same jobs, submitted at a pattern's rates instead of their own times."""
    rates = _Rates(PATTERNS[pattern], random)
    for job in jobs:
        submit = min(rates.after(job.tasks), LARGEST)
        yield SimulatedJob(job.job, submit, job.truth)


def one_by_one(
    jobs: Sequence[SimulatedJob], pattern: str, random: Random, *, burst: int = BURST
) -> Iterator[SimulatedJob]:
    """Each task as a job of its own, one after another at a pattern's rates, as a control plane creates
    the pods of one job after another. The owner is the id of the job it is from. Another rate is drawn
    every `burst` microseconds, and one such period has the peak."""
    rates, total = PATTERNS[pattern], sum(job.tasks for job in jobs)
    periods = total / rates.mean * MICROS_PER_SECOND / burst
    busiest = random.child("peak").below(max(1, int(periods / 2)))
    arrivals = _Rates(rates, random, burst, busiest)
    for job in jobs:
        for group, truth in zip(job.groups, job.truth, strict=True):
            one = structs.replace(group, count=1)
            for index in range(group.count):
                duration = truth.duration(index)
                yield SimulatedJob(
                    structs.replace(job.job, id=f"{job.id}.{index}", owner=job.id, groups=(one,)),
                    min(arrivals.after(1), LARGEST),
                    (GroupTruth(() if duration is None else (duration,)),),
                )


def _fanouts(spec: FanoutShape, random: Random) -> Callable[[int], int]:
    """Draws the fan-out of a job, depending on how long its tasks run."""
    above = [least for least, _ in spec.fanouts]
    drawers = [curve.drawer(random, MOST_TASKS) for _, curve in spec.fanouts]
    return lambda mean: drawers[max(0, bisect_left(above, mean) - 1)]()


class _Gaps:
    """Each job arrives a gap after the previous one; the first, a gap after the start."""

    def __init__(self, spec: FanoutShape, random: Random) -> None:
        self._low, self._high = spec.gaps
        self._random = random
        self._at = 0

    def after(self, tasks: int) -> int:
        self._at += self._low + self._random.below(self._high - self._low + 1)
        return self._at


class _Rates:
    """A job arrives when all tasks of the jobs before it have been offered, at a rate that is drawn
    again for each period: log-normal about the pattern's median, and never above its peak, which the
    `busiest` period has."""

    def __init__(
        self, pattern: Pattern, random: Random, period: int = PERIOD, busiest: int | None = None
    ) -> None:
        self._period = period
        self._left = -1 if busiest is None else busiest
        self._median = pattern.median
        self._peak = pattern.peak
        self._sigma = pattern.sigma
        self._random = random
        #: When the last job's tasks will all have been offered, and the period of that time.
        self._offered = 0.0
        self._period_ends = 0.0
        self._rate = 0.0

    def after(self, tasks: int) -> int:
        submit, left = int(self._offered), float(tasks)
        while left > 0:
            if self._offered >= self._period_ends:
                self._begin_period()
            room = (self._period_ends - self._offered) / MICROS_PER_SECOND * self._rate
            if room >= left:
                self._offered += left / self._rate * MICROS_PER_SECOND
                break
            self._offered = self._period_ends
            left -= room
        return submit

    def _begin_period(self) -> None:
        self._period_ends += self._period
        rate = self._median * exact_exp(self._sigma * self._random.normal())
        self._rate = self._peak if self._left == 0 else min(rate, self._peak)
        self._left -= 1


FanoutArrivals: TypeAlias = _Gaps | _Rates
