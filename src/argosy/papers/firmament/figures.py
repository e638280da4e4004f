"""The figures as charts: most show one measure along a parameter, with a line per scheduler or
solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import structs

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.experiment import Findings, Parameter
from argosy.papers.firmament.links import STREAMS


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """How a figure is drawn."""

    title: str
    caption: str
    x: str
    y: str
    by: str
    along: str = ""
    measure: str = ""
    #: The series with x and y of curves, instead of a parameter and a measure.
    curve: tuple[str, str] | None = None
    logarithmic: tuple[bool, bool] = (False, True)
    #: A parameter: there is one chart for each of its values.
    panels: str = ""
    #: Lines from one point, as label and name of series, instead of one line per value of `by`.
    series: tuple[tuple[str, str], ...] = ()
    #: Parameters that points must have.
    where: dict[str, Parameter] = {}
    #: The chart's own title, if it is one of several.
    part: str = ""
    #: The colour of the first line without its own.
    first_colour: int = 0
    #: Additional charts of another kind.
    beside: tuple[Shown, ...] = ()


#: Solvers and schedulers look the same in all figures.
_COLOURS: Final = {
    "firmament": 0,
    "race": 1,
    "relaxation": 2,
    "cost-scaling": 3,
    "shortest-paths": 4,
    "textbook-paths": 5,
    "cycle-cancelling": 1,
    "spread": 1,
    "kube": 2,
    "mesos": 3,
    "sparrow": 4,
    "idle": 5,
}
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
        caption="Cost scaling after 1 % of the tasks changed, solve after solve.",
        x="solve", y=_SECONDS, by="algorithm", logarithmic=(False, True), panels="policy",
        series=(("from the last flow", "warm"), ("from scratch", "cold")),
        where={"algorithm": "cost-scaling"},
    ),
    "12": Shown(
        title="Problem-specific heuristics",
        caption="a: relaxation from scratch, with and without arc prioritisation. b: cost scaling after "
        "1 % of the tasks changed, with removed tasks' flow drained or left, by utilisation.",
        part="a: arc prioritisation",
        x="utilisation", y=_SECONDS, by="prioritised", along="utilisation", measure="seconds",
        beside=(
            Shown(
                title="", caption="", part="b", panels="case",
                x=_SECONDS, y="solves within that time [%]", by="drained", curve=("within", "share"),
                logarithmic=(False, False), first_colour=2,
            ),
        ),
    ),
    "13": Shown(
        title="Price refine",
        caption="Cost scaling after 1 % of the tasks changed, from what relaxation left.",
        x="solve", y=_SECONDS, by="refined", curve=("", "warm"), panels="handed",
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
        caption="Computing time of rounds while more tasks want to run than there are slots, and over "
        "time in a cluster at 97 % that is oversubscribed for a while.",
        x="computing time [s]", y="rounds within that time [%]", by="scheduler",
        curve=("round", "share"), logarithmic=(True, False), where={"utilisation": 1.05},
        beside=(
            Shown(
                title="", caption="", part="97 % with a transient overload",
                x="time [s]", y="computing time of the round [s]", by="scheduler",
                curve=("at", "spent"), where={"utilisation": 0.97},
            ),
        ),
    ),
    "17": Shown(
        title="Short tasks only",
        caption="Job response time over task duration, at 80 % utilisation: 1 is ideal.",
        x="task duration [ms]", y="response / duration", by="machines", along="milliseconds",
        measure="p50", logarithmic=(True, True),
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
        logarithmic=(True, False), panels="background", where={"wanted": 0.4, "links": "receivers"},
        beside=(
            *(Shown(
                title="", caption="", part=f"links of senders as well, {how}, background",
                x="response time [s]", y="share of tasks [%]", by="scheduler", curve=("response", ""),
                logarithmic=(True, False), panels="background",
                where={"wanted": 0.4, "links": "both", "streams": streams},
            )
            for streams, how in ((1, "block after block"), (STREAMS, f"{STREAMS} blocks at once"))),
            *(Shown(
                title="", caption="", part=f"Firmament, {name} percentile",
                x="share of a link that a task asks for", y="response time [s]", by="background",
                along="wanted", measure=measure, logarithmic=(False, False),
                where={"scheduler": "firmament", "links": "receivers"}, first_colour=3,
            )
            for measure, name in (("p90", "90th"), ("p99", "99th"))),
        ),
    ),
    "footnote 3": Shown(
        title="How fast cost scaling approaches the optimum",
        caption="Each phase divides the approximation by alpha. From scratch, at 90 % utilisation.",
        x="alpha", y=_SECONDS, by="algorithm", along="alpha", measure="seconds",
    ),
}  # fmt: skip


def draw(found: Findings, figures: Sequence[str]) -> list[Figure]:
    return [_figure(found, figure) for figure in figures if figure in SHOWN]


def _figure(found: Findings, figure: str) -> Figure:
    shown = SHOWN[figure]
    charts = [chart for each in (shown, *shown.beside) for chart in _charts(found, figure, each)]
    return Figure(number=figure, title=shown.title, caption=shown.caption, panels=tuple(charts))


def _charts(found: Findings, figure: str, shown: Shown) -> list[Chart]:
    values: list[Parameter | None] = [None]
    if shown.panels:
        values = list(found.values(figure, shown.panels)) or [None]
    return [_chart(found, figure, shown, value) for value in values]


def _chart(found: Findings, figure: str, shown: Shown, panel: Parameter | None) -> Chart:
    where, title = dict(shown.where), shown.part
    if panel is not None:
        where[shown.panels] = panel
        title = f"{shown.part or shown.panels}: {panel}"
    if shown.series:
        drawn = [
            (label, _marks(found, figure, structs.replace(shown, curve=("", name)), where))
            for label, name in shown.series
        ]
    else:
        drawn = [
            (_label(shown, label), _marks(found, figure, shown, {**where, shown.by: label}))
            for label in found.values(figure, shown.by)
        ]
    is_stepped = bool(shown.curve and shown.curve[1] in ("", "share"))
    return Chart(
        title=title,
        x=Axis(label=shown.x, logarithmic=shown.logarithmic[0]),
        y=Axis(label=shown.y, logarithmic=shown.logarithmic[1]),
        lines=tuple(
            Line(
                label=label,
                marks=marks,
                colour=_COLOURS.get(label, number + shown.first_colour),
                stepped=is_stepped,
            )
            for number, (label, marks) in enumerate(drawn)
        ),
    )


def _label(shown: Shown, value: Parameter) -> str:
    if value in ("yes", "no"):
        return f"{shown.by}: {value}"
    return f"{value:,} machines" if shown.by == "machines" else str(value)


def _marks(
    found: Findings, figure: str, shown: Shown, where: dict[str, Parameter]
) -> tuple[Mark, ...]:
    picked = found.select(figure, **where)
    if shown.curve is None:
        measured: dict[float, list[float]] = {}
        for point, result in picked:
            x = float(point.parameters[shown.along])
            measured.setdefault(x, []).append(result.values[shown.measure])
        # The mean over seeds.
        return tuple(Mark(x, sum(ys) / len(ys)) for x, ys in sorted(measured.items()))
    marks = []
    for _, result in picked[:1]:
        series = [result.series[name] if name else None for name in shown.curve]
        length = len(next(each for each in series if each is not None))
        xs, ys = (each if each is not None else [*range(1, length + 1)] for each in series)
        marks = [Mark(float(x), float(y)) for x, y in zip(xs, ys, strict=True)]
    return tuple(marks)
