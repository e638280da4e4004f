"""Helpers shared by the modules of the Murmuration paper's figures."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from argosy.model.units import format_duration
from argosy.papers.charts import Axis, Line, Mark
from argosy.papers.experiment import Findings, Parameter, PointResult

JCT: Final = Axis(label="job completion time [s]", logarithmic=True)
TIME: Final = Axis(label="time [s]", logarithmic=True)
#: Shorter times are drawn at this value.
_SHORTEST: Final = 1e-3


def share(of: str = "jobs") -> Axis:
    return Axis(label=f"share of {of}", low=0.0, high=1.0)


def seconds(value: float) -> str:
    return format_duration(value * 1e6)


def one(found: Findings, figure: str, **where: Parameter) -> PointResult | None:
    """The result of a case; with several seeds, the median of each number."""
    results = [result for _, result in found.select(figure, **where)]
    if len(results) < 2:
        return results[0] if results else None
    first = results[0]
    return PointResult(
        {name: median(result.values[name] for result in results) for name in first.values},
        {
            name: [
                median(at) for at in zip(*(result.series[name] for result in results), strict=False)
            ]
            for name in first.series
        },
    )


def on_trace(found: Findings, figure: str) -> str:
    """A note on the workload: the trace, or jobs generated like it."""
    if found.values(figure, "trace"):
        return "jobs of the trace"
    return "jobs drawn with the traces' characteristics"


def cumulative(
    label: str, quantiles: Sequence[float], colour: int, *, dashed: bool = False
) -> Line:
    last = max(1, len(quantiles) - 1)
    marks = tuple(Mark(max(value, _SHORTEST), at / last) for at, value in enumerate(quantiles))
    return Line(label=label, marks=marks, colour=colour, dashed=dashed, stepped=True)
