"""Helpers shared by the modules of the Omega paper's figures: measures along a parameter, and axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.papers.charts import Axis, Line, Mark, ReferenceLine
from argosy.papers.experiment import Findings, Parameter
from argosy.papers.omega.points import CLUSTERS
from argosy.papers.omega.world import KINDS

#: The service level objective of section 4, in seconds.
SLO: Final = 30.0
#: A larger share of unscheduled jobs means that a scheduler could not keep up.
KEEPS_UP: Final = 0.02
SERVICE_T_JOB: Final = "t_job(service) [s]"
SERVICE_T_TASK: Final = "t_task(service) [s]"
_HIGH_FIDELITY: Final = (
    "The paper's high-fidelity simulator ran Google's own placement on a trace, and neither was "
    "published. Here best fit on the cluster's synthetic workload, with machines of several kinds and "
    "picky jobs, stands in for it: like a scoring algorithm, it makes schedulers want the same machines."
)
STAND_IN: Final = (
    "best fit on a synthetic workload, with machines of several kinds and picky jobs, stands in for the "
    "high-fidelity simulator"
)


_ON_TRACE: Final = (
    "best fit on cluster C's public trace, with its machines and constraints, stands in for the "
    "high-fidelity simulator"
)


def is_on_trace(found: Findings, figure: str) -> bool:
    return bool(found.values(figure, "trace"))


def stand_in(found: Findings, figure: str) -> str:
    """What a claim about the paper's high-fidelity simulator rests on."""
    return _ON_TRACE if is_on_trace(found, figure) else STAND_IN


def high_fidelity(found: Findings, figure: str) -> str:
    """The same for a figure, in full sentences."""
    if not is_on_trace(found, figure):
        return _HIGH_FIDELITY
    return (
        "The paper's high-fidelity simulator ran Google's own placement, which was never published. "
        "Here best fit on the public trace of cluster C stands in for it."
    )


def marks(
    found: Findings, figure: str, along: str, name: str, **where: Parameter
) -> tuple[Mark, ...]:
    """A measure along a parameter. With one seed, the error is the deviation between days; with
    several, the mark is their median (mean for times) and the error their median absolute deviation."""
    made = []
    for x in found.values(figure, along):
        results = [result for _, result in found.select(figure, **{along: x}, **where)]
        values = [result.values[name] for result in results if name in result.values]
        if not values:
            continue
        if len(values) == 1:
            made.append(Mark(float(x), values[0], results[0].values.get(f"{name}_mad", 0.0)))
            continue
        middle = float(np.median(values))
        shown = float(np.mean(values)) if name.endswith("wait") else middle
        made.append(Mark(float(x), shown, float(np.median(np.abs(np.array(values) - middle)))))
    return tuple(sorted(made, key=lambda mark: mark.x))


def saturation(
    found: Findings, figure: str, along: str, kind: str, **where: Parameter
) -> float | None:
    """Where a kind's jobs start to stay unscheduled: halfway between the last point that keeps up and
    the first that does not. None if every point keeps up."""
    last = None
    for mark in marks(found, figure, along, f"{kind}.unscheduled", **where):
        if mark.y > KEEPS_UP:
            return mark.x if last is None else (last + mark.x) / 2
        last = mark.x
    return None


def has_trend(found: Findings, sweep: str, along: str, **where: Parameter) -> bool:
    """Whether a sweep has several values of a parameter: one alone shows no trend."""
    return len({point.parameters.get(along) for point, _ in found.select(sweep, **where)}) > 1


def on_every_cluster(found: Findings, *sweeps: str) -> bool:
    """Whether sweeps vary the services' decision time on every cluster."""
    return all(
        has_trend(found, sweep, "service_t_job", cluster=cluster)
        for sweep in sweeps
        for cluster in CLUSTERS
    )


def along(found: Findings, sweep: str, name: str, cluster: str) -> dict[float, float]:
    chosen = marks(found, sweep, "service_t_job", name, cluster=cluster)
    return {mark.x: mark.y for mark in chosen}


def growth(values: dict[float, float]) -> float:
    """The largest value relative to the first."""
    ordered = [values[x] for x in sorted(values)]
    return max(ordered) / max(ordered[0], 1e-6) if ordered else 1.0


def listed(values: dict[str, float], form: str) -> str:
    return ", ".join(f"{form.format(value)} ({name})" for name, value in values.items())


def by_cluster(
    found: Findings, sweep: str, measure: str, kinds: Sequence[str] = KINDS
) -> tuple[Line, ...]:
    return tuple(
        Line(
            label=f"{kind if len(kinds) > 1 else 'all jobs,'} {cluster}",
            marks=marks(found, sweep, "service_t_job", f"{kind}.{measure}", cluster=cluster),
            colour=number,
            dashed=kind == "service",
        )
        for kind in kinds
        for number, cluster in enumerate(CLUSTERS)
    )


def time_axis(label: str = SERVICE_T_JOB) -> Axis:
    return Axis(label=label, logarithmic=True)


def wait_axis() -> Axis:
    return Axis(label="mean job wait time [s]", logarithmic=True, low=0.01, high=1000.0)


def busyness_axis() -> Axis:
    return Axis(label="scheduler busyness", low=0.0, high=1.0)


def conflicts_axis(high: float | None = None) -> Axis:
    return Axis(label="conflict fraction", low=0.0, high=high)


def slo_rule() -> tuple[ReferenceLine, ...]:
    return (ReferenceLine(at=SLO, label="SLO 30 s"),)
