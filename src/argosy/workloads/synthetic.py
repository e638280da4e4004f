"""A synthetic workload: kinds of jobs drawn until they would fill a given share of the cell.

The work of a task is its request times its running time within the span: for a task of length d
submitted uniformly within a span T, that is d - d^2 / 2T (T / 2 for d of T or more); for one that is
there from the start, min(d, T). Jobs are drawn until the scarcest resource's work is `utilisation` x
capacity x span; the kind furthest behind its `share` always draws next. So the offered load is exact to
within the last job, whatever the shapes; the load achieved depends on the scheduler.

Each kind has its own streams for jobs and arrivals: changing one kind's shapes does not change the
draws of others, only how many of them are used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from itertools import chain, repeat
from operator import attrgetter
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec

from argosy.model.constraints import Constraint
from argosy.model.errors import ModelError, excerpt
from argosy.model.jobs import MOST_TASKS, PRECEDENCE_RANGE, is_name
from argosy.model.machine_model import Probability
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import Factor, Weight
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.model.units import LARGEST, Micros, Time, format_duration
from argosy.workloads.arrivals import Arrivals, Poisson
from argosy.workloads.distributions import RandomShape, least_parameter
from argosy.workloads.job_tables import check_labels

#: Limit against parameters that would draw forever, such as tasks of zero length.
MOST_JOBS_DRAWN: Final = 1_000_000
#: Limit on all jobs together: what a run can hold.
MOST_TASKS_DRAWN: Final = 50_000_000
Utilisation: TypeAlias = Annotated[
    float, msgspec.Meta(gt=0, le=10, description="a share of the cell above 0, at most 10")
]


class WeightedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One of the resource vectors of a kind's jobs, drawn in proportion to its `weight`."""

    request: Resources
    weight: Weight = 1.0

    def __post_init__(self) -> None:
        if not any(amount for _, amount in self.request.items()):
            raise ModelError("an empty request", expected="an amount above 0")


class Estimates(msgspec.Struct, frozen=True, kw_only=True):
    """Submitters' estimates: the mean duration times a factor between `low` and `high`."""

    low: Factor
    high: Factor

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ModelError(f"low {self.low} and high {self.high}", expected="low <= high")


class JobKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of job. `share` is its part of all work, relative to the other kinds' shares."""

    requests: tuple[WeightedRequest, ...]
    tasks: RandomShape[int]
    #: One draw per job; None: its tasks run until stopped.
    duration: RandomShape[Micros] | None = None
    #: Each task runs for the job's duration times a factor from 1 - variation to 1 + variation.
    variation: Probability = 0.0
    share: Weight = 1.0
    arrivals: Arrivals = Poisson()
    #: Share of the jobs that are there from the start instead of arriving.
    standing: Probability = 0.0
    precedence: int = 0
    #: Share of the jobs that are gangs.
    gang: Probability = 0.0
    estimates: Estimates | None = None
    tags: tuple[str, ...] = ()
    requires: dict[str, str] = {}
    owner: str = ""
    #: Placement constraints of each of its jobs.
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        if not self.requests:
            raise ModelError(
                "no requests", field="requests", expected="at least one resource vector"
            )
        if least_parameter(self.tasks) < 1:
            raise ModelError(
                "jobs without tasks", field="tasks", expected="parameters of 1 or more"
            )
        low, high = PRECEDENCE_RANGE
        if not low <= self.precedence <= high:
            raise ModelError(
                f"precedence {self.precedence}", field="precedence", expected=f"{low} to {high}"
            )
        if not self.owner.isprintable():
            raise ModelError(
                f"owner {excerpt(self.owner)}", field="owner", expected="printable characters"
            )
        check_labels(self.tags, self.requires)


class Synthetic(msgspec.Struct, frozen=True, kw_only=True):
    span: Time
    utilisation: Utilisation
    kinds: dict[str, JobKind]

    def __post_init__(self) -> None:
        if not self.kinds:
            raise ModelError(
                "no kinds of jobs", field="kinds", expected="at least one, such as kinds.batch"
            )
        for name in self.kinds:
            # The ids of its jobs begin with it.
            if "/" in name or not is_name(name):
                raise ModelError(
                    f"kind {excerpt(name)}",
                    field="kinds",
                    expected="a printable name without spaces or slashes",
                )
        if self.span <= 0:
            raise ModelError("a span of 0", field="span", expected='a span such as "1h"')


def generate(
    synthetic: Synthetic, capacity: Mapping[str, int], random: Random
) -> Iterator[SimulatedJob]:
    """Jobs in order of submission that offer `utilisation` of the cell's total `capacity`.

    How many there are decides when they arrive, so they are drawn twice: first only to be counted, then
    one by one as they are asked for."""
    kinds = [
        _KindDraws(name, kind, synthetic.span, random.child(name))
        for name, kind in synthetic.kinds.items()
    ]
    room = {name: amount for name, amount in capacity.items() if amount}
    offered = dict.fromkeys(room, 0)
    goal = synthetic.utilisation * synthetic.span
    drawn = tasks = 0
    while max((offered[name] / room[name] for name in room), default=goal) < goal:
        if drawn == MOST_JOBS_DRAWN:
            raise ModelError(
                f"{drawn} jobs do not reach a utilisation of {synthetic.utilisation}",
                field="utilisation",
                expected="longer or larger tasks, a shorter span, or fewer machines",
            )
        if tasks > MOST_TASKS_DRAWN:
            raise ModelError(
                f"a utilisation of {synthetic.utilisation} over a span of"
                f" {format_duration(synthetic.span)} takes more than {MOST_TASKS_DRAWN:,} tasks",
                field="utilisation",
                expected="longer or larger tasks, a shorter span, or fewer machines",
            )
        kind = min(kinds, key=lambda kind: kind.work / kind.kind.share)
        job = kind.count()
        tasks += job.tasks
        work = kind.offer(job, room)
        for name in room:
            offered[name] += work[name]
        drawn += 1
    # At the same time, kinds in the order of the scenario.
    return merge(*[kind.jobs(kind.times()) for kind in kinds], key=attrgetter("submit"))


class _Drawn(NamedTuple):
    """What is drawn for one job, except when it arrives."""

    stands: bool
    is_gang: bool
    request: Resources
    tasks: int
    durations: tuple[int, ...]
    estimate: int | None


class _KindDraws:
    """The jobs of one kind, of which the first `standing + arriving` are used; `work` is the sum of
    their largest shares of the cell."""

    def __init__(self, name: str, kind: JobKind, span: int, random: Random) -> None:
        self.name = name
        self.kind = kind
        self.span = span
        self._root = random
        self.random = random.child("jobs")
        self.work = 0.0
        self.standing = 0
        self.arriving = 0

    def count(self) -> _Drawn:
        """The next job, as one of those used."""
        drawn = self._draw()
        if drawn.stands:
            self.standing += 1
        else:
            self.arriving += 1
        return drawn

    def _draw(self) -> _Drawn:
        stands = self.random.uniform() < self.kind.standing
        is_gang = self.random.uniform() < self.kind.gang
        request = self._request()
        # A job has at least one task, even if rounding gives none.
        count = max(1, self.kind.tasks.draw(self.random))
        if count > MOST_TASKS:
            raise ModelError(
                f"a job of {count:,} tasks was drawn",
                field=f"kinds.{self.name}.tasks",
                expected=f"parameters that give at most {MOST_TASKS:,}",
            )
        durations = self._durations(count)
        return _Drawn(stands, is_gang, request, count, durations, self._estimate(durations))

    def offer(self, drawn: _Drawn, room: dict[str, int]) -> dict[str, int]:
        """Adds the job to `work`; returns its work for each resource."""
        time = self._time_within(drawn.durations, drawn.tasks, drawn.stands)
        amounts = dict(drawn.request.items())
        work = {name: amounts.get(name, 0) * time for name in room}
        self.work += max(work[name] / room[name] for name in room)
        return work

    def _request(self) -> Resources:
        total = 0.0
        # Not `sum`, which rounds floats differently between versions of Python.
        for choice in self.kind.requests:
            total += choice.weight
        at = self.random.uniform() * total
        for choice in self.kind.requests:
            at -= choice.weight
            if at < 0:
                return choice.request
        return self.kind.requests[-1].request

    def _durations(self, count: int) -> tuple[int, ...]:
        if self.kind.duration is None:
            return ()
        # A task takes at least a microsecond, even if rounding gives zero.
        whole = max(1, self.kind.duration.draw(self.random))
        variation = self.kind.variation
        if not variation:
            return (whole,)
        return tuple(
            min(
                max(1, int(whole * (1 - variation + 2 * variation * self.random.uniform()))),
                LARGEST,
            )
            for _ in range(count)
        )

    def _estimate(self, durations: tuple[int, ...]) -> int | None:
        if self.kind.estimates is None or not durations:
            return None
        low, high = self.kind.estimates.low, self.kind.estimates.high
        mean = sum(durations) // len(durations)
        return min(max(1, int(mean * (low + (high - low) * self.random.uniform()))), LARGEST)

    def _time_within(self, durations: tuple[int, ...], count: int, stands: bool) -> int:
        """The expected running time of all tasks within the span, over their submission times."""
        total = 0
        for duration in durations or (self.span,):
            within = min(duration, self.span)
            total += within if stands else within - within * within // (2 * self.span)
        return total if len(durations) > 1 else total * count

    def times(self) -> Iterator[int]:
        """When the arriving jobs are submitted, in order."""
        try:
            random = self._root.child("arrivals")
            return self.kind.arrivals.times(self.arriving, self.span, random)
        except ModelError as error:
            raise error.located(field=f"kinds.{self.name}.arrivals") from None

    def jobs(self, times: Iterator[int]) -> Iterator[SimulatedJob]:
        """All jobs in order of submission: those that are there from the start come first."""
        digits = len(str(self.standing + self.arriving))
        standing = self._again(stands=True) if self.standing else ()
        arriving = self._again(stands=False) if self.arriving else ()
        drawn = chain(zip(standing, repeat(0), strict=False), zip(arriving, times, strict=True))
        for index, (job, submit) in enumerate(drawn):
            yield simulated_job(
                f"{self.name}-{index:0{digits}}",
                group_with_truth(
                    job.tasks,
                    job.request,
                    job.durations,
                    job.estimate,
                    tags=self.kind.tags,
                    requires=self.kind.requires,
                ),
                submit=submit,
                kind=self.name,
                precedence=self.kind.precedence,
                gang=job.is_gang,
                owner=self.kind.owner,
                constraints=self.kind.constraints,
            )

    def _again(self, *, stands: bool) -> Iterator[_Drawn]:
        """Draws the jobs that are used once more; those that stand, or the others."""
        again = _KindDraws(self.name, self.kind, self.span, self._root)
        for _ in range(self.standing + self.arriving):
            drawn = again._draw()
            if drawn.stands == stands:
                yield drawn
