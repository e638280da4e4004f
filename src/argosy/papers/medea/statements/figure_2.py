"""Figure 2: the effect of constraints on applications.

Claims whose ids end in `-model` depend on the performance model; the others on placements alone. What
the model was fitted to is drawn, but not claimed: it could not be otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.papers.charts import Axis, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings
from argosy.papers.medea.applications import STORM
from argosy.papers.medea.statements.reading import (
    MODEL_NOTE,
    PREDICTED,
    chart,
    half_of,
    mean,
)

_CELL = "275 machines of 128 GB in 7 racks."


def draw_2a(found: Findings) -> Figure:
    lines = []
    for number, (name, label) in enumerate(
        (("model.whole", "end to end"), ("model.lookup", "lookup in Memcached"))
    ):
        marks = [
            Mark(float(at), value)
            for at, wanted in enumerate(STORM)
            if (value := mean(found, "2a", name, wanted=wanted)) is not None
        ]
        if marks:
            lines.append(Line(label=label, marks=tuple(marks), colour=number))
    x = Axis(label="on one machine: 0 nothing, 1 Storm, 2 all")
    return Figure(
        number="2a",
        title="Storm and Memcached by affinity",
        caption=_CELL,
        note=MODEL_NOTE,
        panels=(chart("(a)", x, "time, best = 1 (model)", lines),),
    )


def claims_2a(found: Findings) -> Iterator[Claim]:
    beside = [mean(found, "2a", "beside", wanted=wanted) for wanted in STORM]
    if any(value is None for value in beside):
        return
    none, within, both = (float(value or 0) for value in beside)
    yield Claim(
        id="medea-2a",
        figure="2a",
        paper="affinity within and between applications puts Storm beside Memcached; affinity within"
        " Storm alone does not",
        here=f"{100 * both:.0f} % of supervisors are beside it, {100 * within:.0f} %"
        f" and {100 * none:.0f} % otherwise",
        tolerance="all with both, less than a fifth otherwise",
        holds=both == 1 and max(within, none) < 0.2,
    )


def draw_2b(found: Findings) -> Figure:
    cases = [(w, s) for s in ("", ".isolated") for w in ("none", "anti-affinity")]
    marks = [
        Mark(float(at), value)
        for at, (wanted, suffix) in enumerate(cases)
        if (value := mean(found, "2b", f"model.throughput{suffix}", wanted=wanted)) is not None
    ]
    best = max((mark.y for mark in marks), default=1.0)
    line = Line(
        label="throughput",
        marks=tuple(Mark(mark.x, mark.y / best) for mark in marks),
    )
    x = Axis(label="0 none, 1 anti-affinity; 2, 3 with groups")
    return Figure(
        number="2b",
        title="HBase by anti-affinity",
        caption=_CELL + " 40 instances of 30 region servers.",
        note=MODEL_NOTE + " 1,200 servers cannot all be apart on 275 machines.",
        panels=(chart("(b)", x, "throughput, best = 1 (model)", [line] if marks else []),),
    )


def claims_2b(found: Findings) -> Iterator[Claim]:
    crowd = [mean(found, "2b", "crowd", wanted=w) for w in ("none", "anti-affinity")]
    if crowd[0] is None or crowd[1] is None:
        return
    yield Claim(
        id="medea-2b",
        figure="2b",
        paper="without constraints region servers are collocated",
        here=f"up to {crowd[0]:.0f} on a machine, {crowd[1]:.0f} with anti-affinity",
        tolerance="fewer with anti-affinity",
        holds=crowd[1] < crowd[0],
    )

    def value(name: str, wanted: str) -> float:
        return mean(found, "2b", f"model.{name}", wanted=wanted) or 0.0

    tail = value("tail", "none") / value("tail", "anti-affinity")
    yield Claim(
        id="medea-2b-tail-model",
        figure="2b",
        paper="the 99th percentile of latency is up to 3.9 times as long without constraints",
        here=f"{tail:.1f} times",
        tolerance=f"at least {half_of(3.9):.2f} times",
        holds=tail >= half_of(3.9),
        note=PREDICTED,
    )


def _limits(found: Findings, figure: str, title: str, what: str) -> Figure:
    lines = []
    for number, load in enumerate((0.05, 0.7)):
        curve = _curve(found, figure, load)
        if curve:
            best = min(curve.values())
            marks = tuple(Mark(float(at), value / best) for at, value in curve.items())
            lines.append(Line(label=f"{100 * load:.0f} % load", marks=marks, colour=number))
    x = Axis(label=f"{what} on a machine", logarithmic=True)
    y = Axis(label="runtime, best = 1 (model)", logarithmic=True)
    return Figure(
        number=figure,
        title=title,
        caption=_CELL,
        note=MODEL_NOTE,
        panels=(chart(f"({figure[-1]})", x, y, lines),),
    )


def _curve(found: Findings, figure: str, load: float) -> dict[int, float]:
    """The runtime for each limit."""
    return {
        int(limit): value
        for limit in found.values(figure, "limit")
        if (value := mean(found, figure, "model.runtime", limit=limit, load=load)) is not None
    }


def _kept(found: Findings, figure: str, workers: int) -> Iterator[Claim]:
    rows = [
        (int(point.parameters["limit"]), result["machines"], result["violating"])
        for point, result in found.select(figure)
    ]
    if rows:
        exact = sum(
            machines == workers // limit and not violating for limit, machines, violating in rows
        )
        yield Claim(
            id=f"medea-{figure}",
            figure=figure,
            paper="cardinality constraints say how many workers share a machine",
            here=f"{exact} of {len(rows)} placements are exact",
            tolerance="all",
            holds=exact == len(rows),
        )


def draw_2c(found: Findings) -> Figure:
    return _limits(found, "2c", "HBase by cardinality", "region servers")


def claims_2c(found: Findings) -> Iterator[Claim]:
    yield from _kept(found, "2c", 10)
    curve = _curve(found, "2c", 0.7)
    if len(curve) > 2:
        best = min(curve, key=lambda limit: curve[limit])
        yield Claim(
            id="medea-2c-model",
            figure="2c",
            paper="neither affinity nor anti-affinity is best in a highly used cell",
            here=f"{best} region servers on a machine are best",
            tolerance="neither 1 nor 10",
            holds=best not in (1, 10),
            note=PREDICTED,
        )


def draw_2d(found: Findings) -> Figure:
    return _limits(found, "2d", "TensorFlow by cardinality", "workers")


def claims_2d(found: Findings) -> Iterator[Claim]:
    yield from _kept(found, "2d", 32)
