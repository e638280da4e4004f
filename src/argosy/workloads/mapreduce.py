"""MapReduce jobs in the clusters of `workloads.clusters`, by the numbers of `mapreduce.toml`.

    jobs        what arrives at a cluster, some of it MapReduce jobs in place of batch jobs
    shape       the numbers

A job is a run of a program, whose activities take about as long in all its runs, so that a scheduler
can learn. As in other generators, every attribute has its own stream.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from heapq import merge
from importlib.resources import files
from operator import attrgetter
from typing import Final

import msgspec

from argosy.model.errors import ScenarioError
from argosy.model.jobs import MOST_TASKS
from argosy.model.machine_model import Probability
from argosy.model.random import Random
from argosy.model.scenario import Positive, Weight
from argosy.model.truth import SimulatedJob, simulated_job, workers_with_truth
from argosy.workloads import clusters
from argosy.workloads.cluster_specs import (
    BOUNDS,
    ClusterSpec,
    Curve,
    Durations,
    Sourced,
    TimeCurve,
)
from argosy.workloads.tables import Converter

MAPREDUCE: Final = "mapreduce"
DAY: Final = 86_400_000_000


class WorkerChoice(msgspec.Struct, frozen=True, kw_only=True):
    count: Positive
    weight: Weight = 1.0


class MapReduceShape(Sourced, frozen=True, kw_only=True):
    #: The share of all jobs.
    share: Probability
    workers: tuple[WorkerChoice, ...]
    maps_per_hundred: Curve
    reduces_per_hundred: Curve
    map_duration: TimeCurve
    reduce_duration: TimeCurve
    #: A run's durations are its program's, times a factor from 1 - spread to 1 + spread.
    spread: Probability
    #: Mean runs of one program per day.
    runs_per_day: Positive

    def mean_workers(self) -> float:
        weights = total = 0.0
        for choice in self.workers:
            weights += choice.weight
            total += choice.weight * choice.count
        return total / weights

    def interarrival(self, cluster: ClusterSpec) -> float:
        """Mean time between MapReduce jobs of a whole cluster, in microseconds."""
        return 1 / (self.share * sum(1 / kind.interarrival for kind in cluster.kinds.values()))


@cache
def shape() -> MapReduceShape:
    text = files("argosy.workloads").joinpath("mapreduce.toml").read_text("utf-8")
    read: MapReduceShape = Converter(ScenarioError).convert(tomllib.loads(text), MapReduceShape)
    return read


def jobs(
    cluster: ClusterSpec,
    span: int,
    random: Random,
    *,
    rate: Mapping[str, float] | float = 1.0,
    scale: float = 1.0,
    varied: bool = False,
    burstiness: float = 1.0,
) -> Iterator[SimulatedJob]:
    """As `clusters.jobs`, with each MapReduce job replacing a batch job. `rate` may also name the kind
    ``mapreduce``."""
    gap = shape().interarrival(cluster)
    rates = (
        dict(rate)
        if isinstance(rate, Mapping)
        else dict.fromkeys((*cluster.kinds, MAPREDUCE), rate)
    )
    multiple = rates.pop(MAPREDUCE, 1.0)
    rates["batch"] = rates.get("batch", 1.0) * (1 - cluster.kinds["batch"].interarrival / gap)
    others = clusters.jobs(
        cluster, span, random, rate=rates, scale=scale, varied=varied, burstiness=burstiness
    )
    if not multiple:
        return others
    gap /= clusters.positive("rate", multiple) * clusters.positive("scale", scale)
    own = _arrivals(cluster, span, gap, random, burstiness)
    return merge(others, own, key=attrgetter("submit"))


def _arrivals(
    cluster: ClusterSpec, span: int, gap: float, random: Random, burstiness: float
) -> Iterator[SimulatedJob]:
    made, random = shape(), random.child(MAPREDUCE)
    batch = cluster.kinds["batch"]
    exponential = clusters.gap_drawer(random, burstiness)
    draw_program = random.child("programs")
    draw_workers = _worker_drawer(made, random.child("workers"))
    draw_maps = made.maps_per_hundred.drawer(random.child("maps"), BOUNDS["tasks"])
    draw_reduces = made.reduces_per_hundred.drawer(random.child("reduces"), BOUNDS["tasks"])
    draw_request = clusters.request_drawer(batch.requests, random.child("requests"))
    draw_spread = random.child("spread").uniform
    programs = _programs(made, max(1, round(DAY / gap / made.runs_per_day)), random)
    at, number = gap * exponential(), 0
    while at < span:
        program = draw_program.below(len(programs))
        workers = draw_workers()
        activities = tuple(
            min(max(1, per_hundred * workers // 100), MOST_TASKS)
            for per_hundred in (draw_maps(), draw_reduces())
        )
        durations = tuple(
            max(1, int(mean * (1 + made.spread * (2 * draw_spread() - 1))))
            for mean in programs[program]
        )
        group = workers_with_truth(workers, draw_request(), activities, durations)
        yield simulated_job(
            f"{MAPREDUCE}-{number}",
            group,
            submit=int(at),
            kind=MAPREDUCE,
            precedence=batch.precedence,
            program=f"program-{program}",
        )
        number += 1
        at += gap * exponential()


def _programs(made: MapReduceShape, count: int, random: Random) -> list[tuple[int, int]]:
    """Mean durations of a map and of a reduce, by program."""

    def drawer(durations: Durations, name: str) -> Callable[[], int]:
        return durations.drawer(random.child(name), BOUNDS["duration"])

    draw_map = drawer(made.map_duration, "map durations")
    draw_reduce = drawer(made.reduce_duration, "reduce durations")
    return [(draw_map(), draw_reduce()) for _ in range(count)]


def _worker_drawer(made: MapReduceShape, random: Random) -> Callable[[], int]:
    total = 0.0
    for choice in made.workers:
        total += choice.weight

    def draw() -> int:
        left = total * random.uniform()
        for choice in made.workers:
            left -= choice.weight
            if left < 0:
                return choice.count
        return made.workers[-1].count

    return draw
