"""Figures 5 to 8: times by the number of machines, for a burst of jobs that fit every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import mean, pstdev
from typing import Final

import msgspec

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings

#: By short name: the measure, and the paper's means at 1,000 and 20,000 machines, where the text has
#: them.
TIMES: Final[dict[str, tuple[str, tuple[float, float] | None]]] = {
    "sampling": ("mean sampling ms", (243.3, 902.1)),
    "commit": ("mean commit ms", (53.1, 182.8)),
    "e2e": ("mean end to end ms", None),
    "e2e-nq": ("mean end to end without queue ms", (297.9, 1087.1)),
}
TITLES: Final = {
    "sampling": "sampling",
    "commit": "commit",
    "e2e": "end to end",
    "e2e-nq": "end to end without queue",
}
#: The figure that shows each of them alone.
ALONE: Final = {"6": "sampling", "7": "commit", "8": "e2e-nq"}
#: Between phases that take a quarter more or less, nobody would choose differently.
TOLERANCE: Final = 0.25


class StraightLine(msgspec.Struct, frozen=True):
    """The least-squares line, and how much of the variance it explains (R²)."""

    intercept: float
    slope: float
    explained: float


def fitted(marks: list[tuple[float, float]]) -> StraightLine:
    """Needs marks at two different places at least."""
    middle_x, middle_y = mean(x for x, _ in marks), mean(y for _, y in marks)
    spread = sum((x - middle_x) ** 2 for x, _ in marks)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in marks) / spread
    intercept = middle_y - slope * middle_x
    total = sum((y - middle_y) ** 2 for _, y in marks)
    error = sum((y - intercept - slope * x) ** 2 for x, y in marks)
    return StraightLine(intercept, slope, 1 - error / total if total else 0.0)


def means(found: Findings, time: str, sample: str) -> list[tuple[float, float, float]]:
    """Machines, the mean over repetitions, and their deviation."""
    rows = []
    for size in found.values("5", "machines"):
        values = [
            result[TIMES[time][0]] for _, result in found.select("5", machines=size, sample=sample)
        ]
        if values:
            rows.append((float(size), mean(values), pstdev(values)))
    return rows


def line_of(found: Findings, time: str, sample: str) -> StraightLine | None:
    rows = [(x, y) for x, y, _ in means(found, time, sample)]
    return fitted(rows) if len(rows) > 2 else None


def _drawn(found: Findings, time: str, colour: int) -> list[Line]:
    lines = []
    for sample, label in (("share", "4 % of each cluster"), ("number", "40 of each cluster")):
        marks = tuple(Mark(x, y, error) for x, y, error in means(found, time, sample))
        lines.append(
            Line(
                label=f"{TITLES[time]}, {label}",
                marks=marks,
                colour=colour,
                dashed=sample == "number",
            )
        )
    return lines


def draw_5(found: Findings) -> Figure:
    lines = [line for number, time in enumerate(TIMES) for line in _drawn(found, time, number)]
    return Figure(
        number="5",
        title="Mean scheduling times by the number of machines",
        caption="1,000 jobs within a second, C_p 50 %, 80 samplers.",
        panels=(_chart("Mean times", lines),),
    )


def draw_alone(figure: str) -> Callable[[Findings], Figure]:
    time = ALONE[figure]

    def draw(found: Findings) -> Figure:
        lines = _drawn(found, time, 0)
        paper = TIMES[time][1]
        if paper is not None:
            ends = tuple(Mark(x, y) for x, y in zip((1_000.0, 20_000.0), paper, strict=True))
            lines.append(Line(label="the paper", marks=ends, colour=1))
        title = f"{TITLES[time].capitalize()}: times by the number of machines"
        return Figure(number=figure, title=title, caption="", panels=(_chart(TITLES[time], lines),))

    return draw


def _chart(title: str, lines: list[Line]) -> Chart:
    return Chart(
        title=title,
        x=Axis(label="machines in all clusters", low=0),
        y=Axis(label="milliseconds", low=0),
        lines=tuple(lines),
    )


def claims_5(found: Findings) -> Iterator[Claim]:
    for time in TIMES:
        line = line_of(found, time, "share")
        if line is None:
            continue
        yield Claim(
            id=f"vela-5-linear-{time}",
            figure="5",
            paper=f"the time of {TITLES[time]} grows linearly with the number of machines",
            here=f"{line.intercept:.0f} ms + {1_000 * line.slope:.1f} µs a machine,"
            f" R² {line.explained:.3f}",
            tolerance="R² at least 0.95, growing",
            holds=line.explained >= 0.95 and line.slope > 0,
        )
        fixed = line_of(found, time, "number")
        if fixed is not None:
            yield Claim(
                id=f"vela-5-constant-{time}",
                figure="5",
                paper="larger samples are what takes longer (implied)",
                here=f"{1_000 * fixed.slope:.2f} µs a machine with samples of a fixed size,"
                f" {1_000 * line.slope:.1f} µs otherwise ({TITLES[time]})",
                tolerance="at most a tenth of the growth is left",
                holds=abs(fixed.slope) <= line.slope / 10,
                setup=f"the time of {TITLES[time]}",
            )
    queued, plain = line_of(found, "e2e", "share"), line_of(found, "e2e-nq", "share")
    if queued is not None and plain is not None:
        yield Claim(
            id="vela-5-queue",
            figure="5",
            paper="with the time in the queue, end-to-end times grow much faster",
            here=f"{1_000 * queued.slope:.0f} against {1_000 * plain.slope:.0f} µs a machine",
            tolerance="at least twice as fast",
            holds=queued.slope >= 2 * plain.slope,
        )


def claims_alone(figure: str) -> Callable[[Findings], Iterator[Claim]]:
    time = ALONE[figure]

    def claims(found: Findings) -> Iterator[Claim]:
        paper = TIMES[time][1]
        assert paper is not None
        at = {size: value for size, value, _ in means(found, time, "share")}
        for size, wanted in zip((1_000.0, 20_000.0), paper, strict=True):
            if size in at:
                yield Claim(
                    id=f"vela-{figure}-{time}-{size / 1_000:g}k",
                    figure=figure,
                    paper=f"{TITLES[time]} takes {wanted} ms on {size:,.0f} machines",
                    here=f"{at[size]:.1f} ms",
                    tolerance="25 %",
                    holds=abs(at[size] - wanted) <= TOLERANCE * wanted,
                    note=_CALIBRATED.get((time, size), ""),
                )
        if figure == "8":
            yield from _shares(found)

    return claims


#: Which of the values went into the constants of the test bed.
_CALIBRATED: Final = {
    ("sampling", 1_000.0): "the agents' 70 ms were derived from the paper's line for this",
    ("commit", 20_000.0): "the 4 ms of computing per commit were estimated from this",
}


def _shares(found: Findings) -> Iterator[Claim]:
    whole = {size: value for size, value, _ in means(found, "e2e-nq", "share")}
    part = {size: value for size, value, _ in means(found, "sampling", "share")}
    commit = {size: value for size, value, _ in means(found, "commit", "share")}
    ends = [size for size in (1_000.0, 20_000.0) if size in whole]
    if not ends:
        return
    shares = [part[size] / whole[size] for size in ends]
    yield Claim(
        id="vela-8-sampling-dominates",
        figure="8",
        paper="most of the time is spent in sampling (82 to 83 %)",
        here=" and ".join(f"{100 * share:.0f} %" for share in shares),
        tolerance="75 to 90 %",
        holds=all(0.75 <= share <= 0.9 for share in shares),
    )
    yield Claim(
        id="vela-8-retry-is-cheaper",
        figure="8",
        paper="committing to the next candidate is much cheaper than scheduling anew",
        here=", ".join(f"{commit[size]:.0f} ms against {whole[size]:.0f} ms" for size in ends),
        tolerance="at most half",
        holds=all(2 * commit[size] <= whole[size] for size in ends),
    )
