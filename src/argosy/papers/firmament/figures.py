"""The figures as charts: most are one measure along a parameter, a line for each scheduler or solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.experiment import Findings, Parameter


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """How a figure is drawn."""

    title: str
    caption: str
    x: str
    y: str
    by: str
    along: str = ""
    measure: str = ""
    #: Names of the series that hold x and y of curves, instead of a parameter and a measure.
    curve: tuple[str, str] | None = None
    logarithmic: tuple[bool, bool] = (False, True)
    #: A parameter for each value of which there is a chart.
    panels: str = ""


_SECONDS: Final = "solver time [s]"
_LATENCY: Final = "placement latency [s]"
SHOWN: Final = {
    "3": Shown(
        title="Quincy's approach grows with the cluster",
        caption="Cost scaling from scratch at 50 % utilisation.",
        x="machines", y=_SECONDS, by="algorithm", along="machines", measure="seconds",
        logarithmic=(True, True),
    ),
    "7": Shown(
        title="Four algorithms from scratch",
        caption="Quincy's policy at 50 % utilisation.",
        x="machines", y=_SECONDS, by="algorithm", along="machines", measure="seconds",
        logarithmic=(True, True),
    ),
    "8": Shown(
        title="Close to full utilisation",
        caption="A job comes to a cluster of which 90 % is in use.",
        x="utilisation", y=_SECONDS, by="algorithm", along="utilisation", measure="seconds",
    ),
    "9": Shown(
        title="A large job under load spreading",
        caption="All tasks want the machines that have least.",
        x="tasks of the job", y=_SECONDS, by="algorithm", along="tasks", measure="seconds",
    ),
    "10": Shown(
        title="Stopped early",
        caption="Tasks that are not where the optimum has them, by how much of the work was done.",
        x="share of the work [%]", y="misplaced tasks", by="algorithm",
        curve=("share", "misplaced"), logarithmic=(False, False),
    ),
    "11": Shown(
        title="From the last flow",
        caption="Cost scaling after 1 % of the tasks changed: solve after solve, from the last flow.",
        x="solve", y=_SECONDS, by="algorithm", curve=("", "warm"), logarithmic=(False, False),
    ),
    "12": Shown(
        title="Arc prioritisation",
        caption="Relaxation from scratch at 97 % utilisation.",
        x="machines", y=_SECONDS, by="prioritised", along="machines", measure="seconds",
    ),
    "13": Shown(
        title="Price refine",
        caption="Cost scaling from the flow and prices that relaxation left.",
        x="solve", y=_SECONDS, by="refined", curve=("", "warm"),
    ),
    "14": Shown(
        title="Placement latency at 90 % utilisation",
        caption="The share of tasks placed within a time.",
        x=_LATENCY, y="share of tasks [%]", by="scheduler", curve=("latency", ""),
        logarithmic=(True, False),
    ),
    "15": Shown(
        title="More preference arcs",
        caption="The threshold is the share of its input that a task must find to prefer a machine.",
        x="threshold", y="mean round [s]", by="scheduler", along="threshold", measure="round",
    ),
    "16": Shown(
        title="Oversubscribed",
        caption="Each round's computing time while more tasks want to run than there are slots.",
        x="round", y="computing time [s]", by="scheduler", curve=("", "round"),
    ),
    "17": Shown(
        title="Short tasks only",
        caption="Job response time over task duration, at 80 % utilisation: 1 is ideal.",
        x="task duration [ms]", y="response / duration", by="machines", along="milliseconds",
        measure="p50", logarithmic=(True, False),
    ),
    "18": Shown(
        title="An accelerated workload",
        caption="99th percentile of placement latency.",
        x="speed-up", y=_LATENCY, by="scheduler", along="speed_up", measure="p99",
    ),
    "19": Shown(
        title="Shared links",
        caption="Response times of short batch tasks on 40 machines, without and with other traffic.",
        x="response time [s]", y="share of tasks [%]", by="scheduler", curve=("response", ""),
        logarithmic=(True, False), panels="background",
    ),
}  # fmt: skip


def draw(found: Findings, figures: Sequence[str]) -> list[Figure]:
    return [_figure(found, figure) for figure in figures if figure in SHOWN]


def _figure(found: Findings, figure: str) -> Figure:
    shown = SHOWN[figure]
    values: list[Parameter | None] = [None]
    if shown.panels:
        values = list(found.values(figure, shown.panels)) or [None]
    return Figure(
        number=figure,
        title=shown.title,
        caption=shown.caption,
        panels=tuple(_chart(found, figure, shown, value) for value in values),
    )


def _chart(found: Findings, figure: str, shown: Shown, panel: Parameter | None) -> Chart:
    where = {} if panel is None else {shown.panels: panel}
    lines = [
        Line(
            label=f"{shown.by} {label}" if label in ("yes", "no") else str(label),
            marks=_marks(found, figure, shown, {**where, shown.by: label}),
            colour=number,
            stepped=bool(shown.curve and not shown.curve[1]),
        )
        for number, label in enumerate(found.values(figure, shown.by))
    ]
    return Chart(
        title=shown.title if panel is None else f"{shown.panels}: {panel}",
        x=Axis(label=shown.x, logarithmic=shown.logarithmic[0]),
        y=Axis(label=shown.y, logarithmic=shown.logarithmic[1]),
        lines=tuple(lines),
    )


def _marks(
    found: Findings, figure: str, shown: Shown, where: dict[str, Parameter]
) -> tuple[Mark, ...]:
    picked = found.select(figure, **where)
    if shown.curve is None:
        marks = [
            Mark(float(point.parameters[shown.along]), result.values[shown.measure])
            for point, result in picked
        ]
        return tuple(sorted(marks, key=lambda mark: mark.x))
    marks = []
    for _, result in picked[:1]:
        series = [result.series[name] if name else None for name in shown.curve]
        length = len(next(each for each in series if each is not None))
        xs, ys = (each if each is not None else [*range(1, length + 1)] for each in series)
        marks = [Mark(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]
    return tuple(marks)
