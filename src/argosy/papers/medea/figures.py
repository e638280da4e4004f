"""The Medea paper's figures, drawn from what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.experiment import Findings
from argosy.papers.medea.points import ALGORITHMS
from argosy.papers.medea.world import STEPS


def mean(found: Findings, figure: str, name: str, **where: str | int | float) -> float | None:
    """Over the seeds; none if nothing was measured."""
    values = [r.values[name] for _, r in found.select(figure, **where) if name in r.values]
    return float(np.mean(values)) if values else None


def _along(
    found: Findings, figure: str, along: str, name: str, scale: float = 1.0
) -> tuple[Line, ...]:
    lines = []
    for number, algorithm in enumerate(ALGORITHMS):
        marks = []
        for x in found.values(figure, along):
            y = mean(found, figure, name, algorithm=algorithm, **{along: x})
            if y is not None:
                marks.append(Mark(float(x), scale * y))
        if marks:
            lines.append(Line(label=algorithm, marks=tuple(marks), colour=number))
    return tuple(lines)


def _steps(found: Findings, name: str, scale: float = 1.0) -> tuple[Line, ...]:
    lines = []
    for number, algorithm in enumerate(ALGORITHMS):
        marks = []
        for step in STEPS:
            y = mean(found, "9a", f"{name}.{step}", algorithm=algorithm)
            if y is not None:
                marks.append(Mark(float(step), scale * y))
        if marks:
            lines.append(Line(label=algorithm, marks=tuple(marks), colour=number))
    return tuple(lines)


def _violations(x: str, lines: tuple[Line, ...], title: str) -> Chart:
    y = Axis(label="containers that violate a constraint [%]", low=0)
    return Chart(title=title, x=Axis(label=x), y=y, lines=lines)


def draw(found: Findings, figures: Sequence[str]) -> list[Figure]:
    return [_draw(found, figure) for figure in figures]


def _draw(found: Findings, figure: str) -> Figure:
    caption = "500 machines of 16 GB in 10 racks; HBase-like applications."
    note = ""
    panels: tuple[Chart, ...]
    match figure:
        case "9a":
            title = "Constraint violations with growing use by applications"
            panels = (_violations("memory used [%]", _steps(found, "violating", 100), "(a)"),)
        case "9b":
            title = "Constraint violations of 10 % applications beside tasks"
            lines = _along(found, "9b", "tasks", "violating", 100)
            panels = (_violations("memory used by tasks", lines, "(b)"),)
        case "9c":
            title = "Constraint violations by applications per interval"
            note = "Families of four applications that want each other in one rack stand in."
            lines = _along(found, "9c", "period", "violating", 100)
            panels = (_violations("applications per interval", lines, "(c)"),)
        case "9d":
            title = "Constraint violations by the complexity of constraints"
            note = "Complexity X: families of X applications that want each other in one rack."
            lines = _along(found, "9d", "complexity", "violating", 100)
            panels = (_violations("complexity", lines, "(d)"),)
        case "10":
            title = "Fragmented machines and load imbalance"
            used = Axis(label="memory used [%]")
            panels = (
                Chart(
                    title="(a) Fragmentation",
                    x=used,
                    y=Axis(label="fragmented machines [%]", low=0),
                    lines=_steps(found, "fragmented", 100),
                ),
                Chart(
                    title="(b) Load imbalance",
                    x=used,
                    y=Axis(label="coefficient of variation", low=0),
                    lines=_steps(found, "imbalance"),
                ),
            )
        case "8":
            title = "Unavailability of the worst application, hour by hour"
            caption = "Applications of 100 containers, spread over 25 service units."
            note = "Failures are generated to the paper's description of figure 3."
            panels = (_unavailability(found),)
        case "11a":
            title, caption = "Time to place one application", "Applications fill the cell to 20 %."
            x = Axis(label="machines", logarithmic=True)
            y = Axis(label="CPU time [ms]", logarithmic=True)
            lines = _along(found, "11a", "machines", "milliseconds")
            solved = [
                Mark(float(m), value)
                for m in found.values("11a", "machines")
                if (value := mean(found, "11a", "milliseconds", machines=m, algorithm="ilp-solved"))
            ]
            if solved:
                label = "ilp, solver always run"
                lines += (Line(label=label, marks=tuple(solved), colour=0, dashed=True),)
            panels = (Chart(title="(a)", x=x, y=y, lines=lines),)
        case _:
            title, caption = "One scheduler or two", "256 machines, full in the end."
            lines = tuple(
                Line(
                    label=design,
                    marks=tuple(
                        Mark(float(share), value)
                        for share in found.values("11b", "share")
                        if (value := mean(found, "11b", "milliseconds", share=share, design=design))
                    ),
                    colour=number,
                )
                for number, design in enumerate(("medea", "ilp-all"))
            )
            x = Axis(label="share of applications")
            y = Axis(label="CPU time per application [ms]", logarithmic=True)
            panels = (Chart(title="(b)", x=x, y=y, lines=lines),)
    return Figure(number=figure, title=title, caption=caption, note=note, panels=panels)


def _unavailability(found: Findings) -> Chart:
    lines = []
    for number, algorithm in enumerate(("ilp", "jkube", "yarn")):
        worst = [v for _, r in found.select("8", algorithm=algorithm) for v in r.series["worst"]]
        if worst:
            ordered = np.sort(worst)
            marks = tuple(
                Mark(100 * float(value), (rank + 1) / len(ordered))
                for rank, value in enumerate(ordered.tolist())
            )
            lines.append(Line(label=algorithm, marks=marks, colour=number, stepped=True))
    x = Axis(label="unavailable containers [%]", low=0)
    return Chart(title="", x=x, y=Axis(label="share of hours"), lines=tuple(lines))
