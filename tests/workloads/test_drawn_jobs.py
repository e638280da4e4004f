"""Drawn workloads as text: the same on every platform, and a change in how they are drawn is seen."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from golden_log import require_golden

from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob
from argosy.model.units import Micros
from argosy.testing.builders import GIB, SECOND
from argosy.workloads import fanout, mapreduce
from argosy.workloads.arrivals import Bursty
from argosy.workloads.cluster_specs import cluster
from argosy.workloads.distributions import Constant, Exponential, Lognormal, Pareto, Uniform
from argosy.workloads.fanout import PATTERNS, SHAPES
from argosy.workloads.synthetic import (
    Estimates,
    JobKind,
    Synthetic,
    WeightedRequest,
    generate,
)

HOUR = 3_600 * SECOND


def drawn() -> Iterator[tuple[str, Iterable[SimulatedJob]]]:
    for name, shape in SHAPES.items():
        yield f"fan-out {name}", fanout.generate(shape, 400, Random(1))
        guessed = Estimates(low=0.5, high=2.0)
        tasks = fanout.generate(
            shape, 400, Random(2), speedup=3.0, scale=0.1, estimates=guessed, kind="guessed"
        )
        yield f"fan-out {name}, scaled", tasks
    for pattern in PATTERNS:
        jobs = list(fanout.generate(SHAPES["yahoo"], 200, Random(3), pattern=pattern))
        yield f"fan-out in pattern {pattern}", jobs
        moved = fanout.by_pattern(jobs, pattern, Random(4))
        yield f"fan-out in pattern {pattern}, moved", moved
    for name in ("A", "B"):
        spec = cluster(name)
        yield f"MapReduce in {name}", islice(mapreduce.jobs(spec, HOUR, Random(5)), 300)
        scaled = mapreduce.jobs(spec, HOUR, Random(5), rate={"mapreduce": 3.0}, scale=0.5)
        yield f"more MapReduce in {name}", islice(scaled, 300)
    yield "synthetic", generate(SYNTHETIC, {"cpu": 400_000, "memory": 1_000 * GIB}, Random(6))


def requests(*amounts: tuple[int, float]) -> tuple[WeightedRequest, ...]:
    return tuple(
        WeightedRequest(request=Resources(cpu, GIB), weight=weight) for cpu, weight in amounts
    )


SYNTHETIC = Synthetic(
    span=HOUR,
    utilisation=0.6,
    kinds={
        "batch": JobKind(
            requests=requests((500, 1.0), (2_000, 3.0)),
            tasks=Uniform(1, 9),
            duration=Lognormal(Micros(60 * SECOND), 1.0),
            variation=0.3,
            share=2.0,
            arrivals=Bursty(factor=5.0, burst=60 * SECOND, every=600 * SECOND),
            gang=0.2,
            estimates=Estimates(low=0.5, high=2.0),
            tags=("b",),
            owner="ann",
        ),
        "heavy": JobKind(
            requests=requests((1_000, 1.0)),
            tasks=Pareto(1, 100, 1.1),
            duration=Exponential(Micros(30 * SECOND)),
            standing=0.3,
            precedence=3,
        ),
        "service": JobKind(requests=requests((250, 1.0)), tasks=Constant(4), share=0.5),
    },
)


def described(title: str, jobs: Iterable[SimulatedJob]) -> Iterator[str]:
    """The sums, and the first jobs."""
    made = list(jobs)
    truths = [truth for job in made for truth in job.truth]
    work = sum(sum(truth.durations) + sum(truth.phases) for truth in truths)
    kinds = {kind: sum(job.kind == kind for job in made) for kind in sorted({j.kind for j in made})}
    guesses = sum(group.estimate or 0 for job in made for group in job.groups)
    cpu = sum(group.request.cpu * group.count for job in made for group in job.groups)
    tasks, gangs = sum(job.tasks for job in made), sum(job.job.gang for job in made)
    yield f"{title}: {len(made)} jobs {kinds}, {tasks} tasks, {gangs} gangs, {cpu} milli-cores"
    yield f"    {work} us in all, estimates of {guesses} us, the last at {made[-1].submit} us"
    for job in made[:4]:
        (group, *_), (truth, *_) = job.groups, job.truth
        times = truth.durations[:3] or truth.phases
        yield (
            f"    {job.submit:>12} {job.id}: {job.tasks} x {group.request.cpu}m, {times} us, "
            f"estimate {group.estimate}, precedence {job.job.precedence}, {group.activities}"
        )


def test_drawn_workloads_are_pinned_as_text(request: pytest.FixtureRequest) -> None:
    lines = [line for title, jobs in drawn() for line in described(title, jobs)]
    update = request.config.getoption("--update-golden")
    require_golden("drawn", "\n".join(lines) + "\n", update=update, folder=Path(__file__).parent)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_submits_a_job_when_all_tasks_before_it_were_offered(pattern: str) -> None:
    jobs = list(fanout.generate(SHAPES["yahoo"], 200, Random(3), pattern=pattern))
    moved = list(fanout.by_pattern(jobs, pattern, Random(4)))
    assert [job.job for job in moved] == [job.job for job in jobs]
    assert [job.truth for job in moved] == [job.truth for job in jobs]
    times = [job.submit for job in moved]
    assert times[0] == 0
    assert times == sorted(times)
    for before, after, job in zip(times, times[1:], moved, strict=False):
        assert (after - before) / SECOND * PATTERNS[pattern].peak >= job.tasks - 0.01
