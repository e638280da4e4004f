"""What the modules of the Murmuration paper's figures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.model.units import format_duration
from argosy.papers.charts import Axis, Line, Mark
from argosy.papers.experiment import Findings, Parameter, Result

JCT: Final = Axis(label="job completion time [s]", logarithmic=True)


def share() -> Axis:
    return Axis(label="share of jobs", low=0.0, high=1.0)


def seconds(value: float) -> str:
    return format_duration(value * 1e6)


def one(found: Findings, figure: str, **where: Parameter) -> Result | None:
    """The result of a case, of its first seed."""
    selected = found.select(figure, **where)
    return selected[0][1] if selected else None


def cumulative(label: str, quantiles: Sequence[float], colour: int) -> Line:
    marks = tuple(Mark(max(value, 1e-3), at / 100) for at, value in enumerate(quantiles))
    return Line(label=label, marks=marks, colour=colour)
