"""The simulations of up to 15,000 machines, as published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import median
from typing import Final

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import Findings, Parameter
from argosy.papers.murmuration import batching
from argosy.papers.murmuration.points import DELAYS, ERRORS, ORDERS, SIMULATED
from argosy.papers.murmuration.reading import (
    JCT,
    TIME,
    cumulative,
    on_trace,
    one,
    seconds,
    share,
)

_SRJF: Final = "murmuration-srjf"
_STF: Final = "murmuration-sjf-stf"
_READINGS: Final = {
    _SRJF: "machines run the shortest remaining job with a slack of 5, as the authors' simulator",
    _STF: "machines run the shortest task, as the paper's text",
}
_BASELINES: Final = ("sparrow", "yaq-d", "yaq-d-8s", "eagle")


def draw_5(found: Findings) -> Figure:
    result = one(found, "5", system="sparrow")
    lines: tuple[Line, ...] = ()
    if result is not None:
        lines = (
            cumulative("execution", result.series["mean_x"], 0, dashed=True),
            cumulative("average w2x", result.series["mean_w2x"], 1, dashed=True),
            cumulative("average TST", result.series["mean_tst"], 2, dashed=True),
            cumulative("average TCT", result.series["mean_tct"], 2),
            cumulative("tail TCT", result.series["tail_tct"], 3),
        )
    return Figure(
        number="5",
        title="Sparrow",
        caption="The parts of tasks' lives, by job.",
        panels=(Chart(title="Sparrow", x=TIME, y=share(), lines=lines),),
    )


def claims_5(found: Findings) -> Iterator[Claim]:
    result = one(found, "5", system="sparrow")
    if result is None:
        return
    part = result["w2x.mean"] / max(result["tct.mean"], 1e-9)
    yield Claim(
        id="5-sparrow-waits-at-machines",
        figure="5",
        paper="w2x dominates the average TCT",
        here=f"{100 * part:.0f} % of the mean TCT is w2x",
        tolerance="more than half",
        holds=part > 0.5,
        note=on_trace(found, "5"),
    )
    ratio = result.series["tail_tct"][50] / max(result.series["mean_tct"][50], 1e-9)
    yield Claim(
        id="5-tail-close-to-average",
        figure="5",
        paper="the tail TCT closely follows the average TCT",
        here=f"median tail TCT is {ratio:.2f} times the median average TCT",
        tolerance="at most 1.5 times",
        holds=ratio <= 1.5,
        note=on_trace(found, "5"),
    )


def _sizes(found: Findings, figure: str, title: str) -> Figure:
    panels = []
    for name, label in (("jct", "median JCT [s]"), ("utilisation", "utilisation")):
        lines = []
        for colour, system in enumerate(SIMULATED):
            marks = tuple(
                Mark(float(size), result[name])
                for size in found.values(figure, "machines")
                if (result := one(found, figure, system=system, machines=size)) is not None
            )
            lines.append(Line(label=system, marks=marks, colour=colour))
        panels.append(
            Chart(
                title=label,
                x=Axis(label="machines"),
                y=Axis(label=label, logarithmic=name == "jct"),
                lines=tuple(lines),
            )
        )
    return Figure(
        number=figure,
        title=title,
        caption="Median job completion time and utilisation by size.",
        panels=tuple(panels),
    )


def draw_12(found: Findings) -> Figure:
    return _sizes(found, "12", "Yahoo")


def draw_13(found: Findings) -> Figure:
    return _sizes(found, "13", "Cloudera")


def claims_12(found: Findings) -> Iterator[Claim]:
    yield from _far_better(found, "12")
    yield from _utilisation(found, "12")
    for point, result in found.select("12", system=_SRJF)[:1]:
        jobs, tasks = int(point.parameters["jobs"]), result["tasks"]
        schedulers, fanout = result["schedulers"], tasks / jobs
        expected = (1 + fanout) * schedulers - 1
        sent = result["messages"] / jobs + result["notices"] / jobs
        yield Claim(
            id="12-messages",
            figure="12",
            paper="(1 + f) x S - 1 messages a job where updates are batched: 159 for 15 tasks",
            here=f"{sent:.2f} for {fanout:.2f} tasks a job and {schedulers:.0f} schedulers, of which "
            f"{result['messages'] / jobs:.2f} tell of placements",
            tolerance=f"{expected:.2f}, exactly",
            holds=abs(sent - expected) < 1e-6 * expected,
            note="all are counted as sent",
        )
        entries = result["bytes"] / jobs
        paper = 16 * fanout * schedulers
        yield Claim(
            id="12-bytes",
            figure="12",
            paper="16 bytes per task and scheduler: 2.4 KB a job for 15 tasks and 10 schedulers",
            here=f"{entries:,.0f} bytes a job for {fanout:.2f} tasks and {schedulers:.0f} schedulers",
            tolerance=f"{paper:,.0f} within 10 %",
            holds=abs(entries / paper - 1) <= 0.1,
            note="eight bytes for each task that is placed, to every other scheduler, and for each that "
            "has ended, to every scheduler; counted as sent",
        )


def claims_13(found: Findings) -> Iterator[Claim]:
    yield from _far_better(found, "13")
    yield from _utilisation(found, "13")


def _utilisation(found: Findings, figure: str) -> Iterator[Claim]:
    pairs = []
    for size in found.values(figure, "machines"):
        srjf = one(found, figure, system=_SRJF, machines=size)
        fcfs = one(found, figure, system="murmuration-fcfs", machines=size)
        if srjf is not None and fcfs is not None:
            pairs.append((srjf["utilisation"], fcfs["utilisation"]))
    if pairs:
        yield Claim(
            id=f"{figure}-srjf-utilisation",
            figure=figure,
            paper="Murmuration-SRJF's utilisation is low, because its last job takes longer",
            here=", ".join(f"{100 * a:.0f} % (FCFS {100 * b:.0f} %)" for a, b in pairs),
            tolerance="below FCFS's at every size",
            holds=all(a < b for a, b in pairs),
            note=on_trace(found, figure),
        )


def _far_better(found: Findings, figure: str) -> Iterator[Claim]:
    for order, system in product((_SRJF, _STF), _BASELINES):
        ratios = []
        for size in found.values(figure, "machines"):
            mine = one(found, figure, system=order, machines=size)
            theirs = one(found, figure, system=system, machines=size)
            if mine is not None and theirs is not None:
                ratios.append(theirs["jct"] / max(mine["jct"], 1e-9))
        if not ratios:
            continue
        yield Claim(
            id=f"{figure}-{order.removeprefix('murmuration-')}-{system}",
            figure=figure,
            paper=f"Murmuration-SRJF's median JCT is two orders of magnitude below {system}'s",
            here=", ".join(f"{ratio:.0f}x" for ratio in ratios) + " by size",
            tolerance="30 times or more at every size: 100 within half an order of magnitude",
            holds=min(ratios) >= 30,
            note=f"{_READINGS[order]}; {on_trace(found, figure)}",
        )


def draw_14(found: Findings) -> Figure:
    panels = []
    for system in ORDERS:
        lines = []
        for colour, error in enumerate(ERRORS):
            result = one(found, "14", system=system, error=error)
            if result is not None:
                label = f"± {100 * error:.0f} %" if error else "exact"
                lines.append(cumulative(label, result.series["jct"], colour))
        panels.append(Chart(title=system, x=JCT, y=share(), lines=tuple(lines)))
    return Figure(
        number="14",
        title="Wrong estimates",
        caption="Job completion time where every job's estimate is off by up to so much.",
        panels=tuple(panels),
    )


def claims_14(found: Findings) -> Iterator[Claim]:
    for system in ORDERS:
        right = one(found, "14", system=system, error=0.0)
        for error, said, low, high in ((0.15, "3 %", 0.0, 0.08), (0.5, "15 to 18 %", 0.08, 0.30)):
            wrong = one(found, "14", system=system, error=error)
            if right is None or wrong is None:
                continue
            rise = _rise(wrong.series["jct"], right.series["jct"])
            yield Claim(
                id=f"14-error-{100 * error:.0f}{_suffix(system)}",
                figure="14",
                paper=f"± {100 * error:.0f} % of error costs {said} over all percentiles",
                here=f"{100 * rise:+.1f} %, the median over percentiles 10 to 90",
                tolerance=f"{100 * low:.0f} to {100 * high:.0f} %",
                holds=low <= rise <= high,
                note=f"{system}, 5,000 machines at full scale; {on_trace(found, '14')}",
            )


def _suffix(system: str) -> str:
    """A suffix for claims that the paper makes without naming an order: Murmuration's default is
    FCFS."""
    return "" if system == ORDERS[0] else f"-{system.removeprefix('murmuration-')}"


def _rise(values: Sequence[float], base: Sequence[float]) -> float:
    return median(values[at] / max(base[at], 1e-9) - 1 for at in range(10, 91))


def draw_15(found: Findings) -> Figure:
    panels = []
    for system in ORDERS:
        lines = []
        for colour, schedulers in enumerate(found.values("15", "schedulers")):
            base = one(found, "15", system=system, schedulers=schedulers, delay=0.0)
            if base is None:
                continue
            marks = tuple(
                Mark(delay, result["jct"] / base["jct"])
                for delay in DELAYS
                if (result := one(found, "15", system=system, schedulers=schedulers, delay=delay))
            )
            label = f"{100 * float(schedulers):.0f} % as many schedulers as machines"
            lines.append(Line(label=label, marks=marks, colour=colour))
        panels.append(
            Chart(
                title=system,
                x=Axis(label="update delay [s]", logarithmic=True),
                y=Axis(label="relative median JCT", logarithmic=True),
                lines=tuple(lines),
            )
        )
    return Figure(
        number="15",
        title="Late updates",
        caption="Median job completion time relative to that without delay.",
        panels=tuple(panels),
    )


def claims_15(found: Findings) -> Iterator[Claim]:
    shares = sorted(found.values("15", "schedulers"), key=float)
    for system in ORDERS if shares else ():
        most = shares[-1]
        base = one(found, "15", system=system, schedulers=most, delay=0.1)
        note = (
            f"{system}; {100 * float(most):.0f} % as many schedulers as machines; "
            f"{on_trace(found, '15')}"
        )
        for delay, said, low, high in ((1.0, 1.08, 1.0, 1.25), (10.0, 1.85, 1.4, 2.5)):
            result = one(found, "15", system=system, schedulers=most, delay=delay)
            if base is None or result is None:
                continue
            ratio = result["jct"] / base["jct"]
            yield Claim(
                id=f"15-delay-{delay:g}s{_suffix(system)}",
                figure="15",
                paper=f"a delay of {delay:g} s makes the median JCT {said} times that of 0.1 s",
                here=f"{ratio:.2f} times",
                tolerance=f"{low:g} to {high:g} times",
                holds=low <= ratio <= high,
                note=note,
            )
        yield from _more_schedulers(found, system, shares)
    yield from batching.claims(found)


def _more_schedulers(found: Findings, system: str, shares: Sequence[Parameter]) -> Iterator[Claim]:
    ratios = {}
    for delay in (1.0, 10.0):
        few, many = (
            one(found, "15", system=system, schedulers=share, delay=delay)
            for share in (shares[0], shares[-1])
        )
        if few is not None and many is not None:
            ratios[delay] = many["jct"] / max(few["jct"], 1e-9)
    if ratios and len(shares) > 1:
        yield Claim(
            id=f"15-more-schedulers{_suffix(system)}",
            figure="15",
            paper="JCT increases with the number of schedulers",
            here=", ".join(f"{ratio:.2f} times ({delay:g} s)" for delay, ratio in ratios.items())
            + f" with {100 * float(shares[-1]):.0f} % as many schedulers as machines instead of "
            f"{100 * float(shares[0]):.0f} %",
            tolerance="1.02 times or more at both delays",
            holds=min(ratios.values()) >= 1.02,
            note=f"{system}; {on_trace(found, '15')}",
        )


def draw_16(found: Findings) -> Figure:
    panels = []
    for system in ORDERS:
        result = one(found, "16", system=system)
        lines: tuple[Line, ...] = ()
        if result is not None:
            lines = (
                cumulative("restarted scheduler", result.series["new"], 0),
                cumulative("the others", result.series["others"], 1),
            )
        panels.append(Chart(title=system, x=JCT, y=share(), lines=lines))
    return Figure(
        number="16",
        title="A scheduler that starts late",
        caption="Job completion time of jobs submitted after it began, by who placed them.",
        panels=tuple(panels),
    )


def claims_16(found: Findings) -> Iterator[Claim]:
    for system in ORDERS:
        results = [
            result
            for _, result in found.select("16", system=system)
            if result.series["new"] and result.series["others"]
        ]
        ratios = [
            result.series["new"][50] / max(result.series["others"][50], 1e-9) for result in results
        ]
        if not ratios:
            continue
        ratio = median(ratios)
        others = median(result.series["others"][50] for result in results)
        yield Claim(
            id=f"16-restarted{_suffix(system)}",
            figure="16",
            paper="a restarted scheduler places as well as the others",
            here=f"its median JCT is {ratio:.2f} times theirs, the median of {len(ratios)} runs",
            tolerance="0.8 to 1.2 times",
            holds=0.8 <= ratio <= 1.2,
            note=f"{system}, {seconds(others)} for the others; {on_trace(found, '16')}",
        )
        tail = median(
            result.series["new"][99] / max(result.series["others"][99], 1e-9) for result in results
        )
        yield Claim(
            id=f"16-tail{_suffix(system)}",
            figure="16",
            paper="the restarted scheduler is slightly better in the tail",
            here=f"its 99th percentile is {tail:.2f} times theirs",
            tolerance="0.7 to 1 times",
            holds=0.7 <= tail <= 1.0,
            note=f"{system}; {on_trace(found, '16')}",
        )
