"""Helpers shared by the modules of figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from argosy.papers.charts import Axis, Chart, Line, Mark
from argosy.papers.experiment import Findings, Parameter

#: Note on claims that depend on the performance model.
PREDICTED: Final = "model, not fitted to this number"
MODEL_NOTE: Final = (
    "The times are a model's, fitted to figure 2 and its text; placements are the algorithms'."
)


def mean(found: Findings, figure: str, name: str, **where: Parameter) -> float | None:
    """The mean over seeds; None if nothing was measured."""
    values = [r.values[name] for _, r in found.select(figure, **where) if name in r.values]
    return float(np.mean(values)) if values else None


def series(found: Findings, figure: str, name: str, **where: Parameter) -> list[float]:
    """The series of all seeds, concatenated in order."""
    return sorted(v for _, r in found.select(figure, **where) for v in r.series[name])


def along(
    found: Findings,
    figure: str,
    x: str,
    name: str,
    by: str,
    labels: Sequence[str],
    scale: float = 1.0,
    *,
    dashed: bool = False,
    **where: Parameter,
) -> tuple[Line, ...]:
    """A line for each measured value of `by`, over the parameter `x`."""
    lines = []
    for number, label in enumerate(labels):
        marks = [
            Mark(float(at), scale * y)
            for at in found.values(figure, x)
            if (y := mean(found, figure, name, **{**where, by: label, x: at})) is not None
        ]
        if marks:
            lines.append(Line(label=label, marks=tuple(marks), colour=number, dashed=dashed))
    return tuple(lines)


def distribution(values: Sequence[float], label: str, colour: int) -> Line:
    """The cumulative distribution of values."""
    marks = tuple(
        Mark(value, (rank + 1) / len(values)) for rank, value in enumerate(sorted(values))
    )
    return Line(label=label, marks=marks, colour=colour, stepped=True)


def chart(title: str, x: Axis | str, y: Axis | str, lines: Sequence[Line]) -> Chart:
    return Chart(
        title=title,
        x=Axis(label=x) if isinstance(x, str) else x,
        y=Axis(label=y, low=0) if isinstance(y, str) else y,
        lines=tuple(lines),
    )


def shares(values: Sequence[float]) -> str:
    return f"{100 * min(values):.1f} % to {100 * max(values):.1f} %"


def half_of(factor: float) -> float:
    """The least that a measured factor must be: half of the paper's difference from 1."""
    return 1 + (factor - 1) / 2
