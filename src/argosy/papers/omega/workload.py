"""Figures 2 to 4: the clusters' workloads, which are ours, beside what the paper says of Google's."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from argosy.model.random import Random
from argosy.model.truth import SimulatedJob
from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, PointResult
from argosy.workloads import clusters

_SECOND: Final = 1_000_000
_HOUR: Final = 3_600 * _SECOND
#: What the paper observes: a job that runs for longer has no known end.
_MONTH: Final = 30 * 24 * _HOUR
_KINDS: Final = ("batch", "service")
_CLUSTERS: Final = ("A", "B", "C")
_PARTS: Final = ("jobs", "tasks", "cpu", "memory")
_SHARES: Final = np.linspace(0, 1, 101)


def described(cluster: str, hours: float, seed: int) -> PointResult:
    """The jobs that arrive at a cluster within some hours, by kind. Resources are requests times running
    time, of at most a month."""
    spec = clusters.cluster(cluster)
    arrived: dict[str, list[SimulatedJob]] = {kind: [] for kind in _KINDS}
    for job in clusters.jobs(spec, int(hours * _HOUR), Random(seed).child("workload")):
        arrived[job.kind].append(job)
    values: dict[str, float] = {}
    series: dict[str, list[float]] = {}
    for kind, jobs in arrived.items():
        counts = np.array([job.tasks for job in jobs])
        runs = np.array([min(_longest(job), _MONTH) for job in jobs]) / _SECOND
        requests = [job.groups[0].request for job in jobs]
        work = counts * runs
        values[f"{kind}.jobs"] = float(len(jobs))
        values[f"{kind}.tasks"] = float(counts.sum())
        values[f"{kind}.cpu"] = float((work * [r.cpu / 1_000 for r in requests]).sum())
        values[f"{kind}.memory"] = float((work * [r.memory / 1e9 for r in requests]).sum())
        values[f"{kind}.month"] = float((runs >= _MONTH / _SECOND).mean())
        gaps = np.array([b.submit - a.submit for a, b in pairwise(jobs)]) / _SECOND
        for name, found in (("runtime", runs), ("gap", gaps), ("count", counts)):
            series[f"{kind}.{name}"] = np.quantile(found, _SHARES).tolist()
    return PointResult(values, series)


def _longest(job: SimulatedJob) -> int:
    """How long its longest task runs; a month if until stopped."""
    return max((max(truth.durations) if truth.durations else _MONTH) for truth in job.truth)


def _results(found: Findings) -> dict[str, PointResult]:
    return {
        str(point.parameters["cluster"]): result
        for point, result in found.select("2")
        if str(point.parameters["cluster"]) in _CLUSTERS
    }


def _share(result: PointResult, kind: str, part: str) -> float:
    total = sum(result[f"{each}.{part}"] for each in _KINDS)
    return result[f"{kind}.{part}"] / total if total else 0.0


def draw_2(found: Findings) -> Figure:
    lines = []
    for colour, (cluster, result) in enumerate(_results(found).items()):
        marks = tuple(
            Mark(float(at), _share(result, "service", part)) for at, part in enumerate(_PARTS)
        )
        lines.append(Line(label=cluster, marks=marks, colour=colour))
    return Figure(
        number="2",
        title="Batch and service jobs",
        caption="The part of service jobs in jobs (0), tasks (1), CPU-seconds (2) and RAM-seconds (3).",
        panels=(
            Chart(
                title="services",
                x=Axis(label="jobs, tasks, CPU, RAM"),
                y=Axis(label="share of services", low=0.0, high=1.0),
                lines=tuple(lines),
            ),
        ),
    )


def _curves(found: Findings, name: str, title: str, label: str) -> Chart:
    lines = []
    for colour, (cluster, result) in enumerate(_results(found).items()):
        for kind in _KINDS:
            marks = tuple(
                Mark(max(value, 1e-3), float(at))
                for value, at in zip(result.series[f"{kind}.{name}"], _SHARES, strict=True)
            )
            lines.append(
                Line(
                    label=f"{kind} {cluster}",
                    marks=marks,
                    colour=colour,
                    dashed=kind == "service",
                    stepped=True,
                )
            )
    return Chart(
        title=title,
        x=Axis(label=label, logarithmic=True),
        y=Axis(label="share of jobs", low=0.0, high=1.0),
        lines=tuple(lines),
    )


def draw_3(found: Findings) -> Figure:
    return Figure(
        number="3",
        title="Running times and arrivals",
        caption="Solid: batch; dashed: service. Running times end at 30 days.",
        panels=(
            _curves(found, "runtime", "(a) Job runtime", "runtime [s]"),
            _curves(found, "gap", "(b) Inter-arrival time", "inter-arrival time [s]"),
        ),
    )


def draw_4(found: Findings) -> Figure:
    return Figure(
        number="4",
        title="Tasks per job",
        caption="Solid: batch; dashed: service.",
        panels=(_curves(found, "count", "tasks", "tasks in a job"),),
    )


def claims_2(found: Findings) -> Iterator[Claim]:
    results = _results(found)
    if not results:
        return
    batch = {cluster: _share(result, "batch", "jobs") for cluster, result in results.items()}
    yield Claim(
        id="omega-2-most-jobs-are-batch",
        figure="2",
        paper="most jobs, more than 80 %, are batch jobs",
        here=_listed(batch),
        tolerance="more than 80 % on every cluster",
        holds=min(batch.values()) > 0.8,
        note="the workload is ours",
    )
    for part, name in (("cpu", "CPU"), ("memory", "RAM")):
        service = {cluster: _share(result, "service", part) for cluster, result in results.items()}
        yield Claim(
            id=f"omega-2-services-have-most-{part}",
            figure="2",
            paper=f"55 to 80 % of resources are allocated to service jobs ({name}-seconds)",
            here=_listed(service),
            tolerance="50 to 85 % on every cluster",
            holds=all(0.5 <= value <= 0.85 for value in service.values()),
            note="the workload is ours; running times count up to a month",
        )


def claims_3(found: Findings) -> Iterator[Claim]:
    results = _results(found)
    if not results:
        return
    longer = {
        cluster: result.series["service.runtime"][50] / result.series["batch.runtime"][50]
        for cluster, result in results.items()
    }
    yield Claim(
        id="omega-3-services-run-longer",
        figure="3",
        paper="service jobs run for much longer than batch jobs",
        here=", ".join(f"{value:,.0f}x ({cluster})" for cluster, value in longer.items()),
        tolerance="10x or more in the median on every cluster",
        holds=min(longer.values()) >= 10,
        note="the workload is ours",
    )
    month = {cluster: result["service.month"] for cluster, result in results.items()}
    yield Claim(
        id="omega-3-services-of-a-month",
        figure="3",
        paper="20 to 40 % of service jobs run for over a month",
        here=_listed(month),
        tolerance="15 to 45 % on every cluster",
        holds=all(0.15 <= value <= 0.45 for value in month.values()),
        note="the workload is ours",
    )


def claims_4(found: Findings) -> Iterator[Claim]:
    results = _results(found)
    if not results:
        return
    means = {
        cluster: [result[f"{kind}.tasks"] / result[f"{kind}.jobs"] for kind in _KINDS]
        for cluster, result in results.items()
    }
    yield Claim(
        id="omega-4-services-have-fewer-tasks",
        figure="4",
        paper="service jobs have fewer tasks than batch jobs",
        here=", ".join(
            f"{service:.1f} and {batch:.1f} ({cluster})"
            for cluster, (batch, service) in means.items()
        ),
        tolerance="fewer in the mean on every cluster",
        holds=all(service < batch for batch, service in means.values()),
        note="the workload is ours",
    )


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{value:.0%} ({cluster})" for cluster, value in values.items())
