"""Reports about results that are drawn, whatever they say: all of it is kept as digests. See
`pinned_digests` for how to compare before and after a change."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from drawn_values import drawn_value
from msgspec import structs
from pinned_commands import plain as plain_text
from pinned_digests import require_digests
from rich_jobs import Stream

from argosy.cli import compare as comparing
from argosy.model.errors import ArgosyError
from argosy.papers.charts import Axis, Chart, Figure, HeatMap, Line, Mark, ReferenceLine
from argosy.records.summary import KindSummary, Summary
from argosy.report import comparison, figures, html, markdown, plots, sweeps, tables, verdicts
from argosy.report import summaries as report
from argosy.report.compare_report import compare_page
from argosy.report.metrics import METRICS, find_metric
from argosy.report.overall import overall, overall_lines, overall_table
from argosy.report.tables import Column, Table, Unit
from argosy.scenarios.ignored_demands import IgnoredDemand
from argosy.version import __version__

PINNED: Final = Path(__file__).parent / "pinned"
WIDTHS: Final = (None, 10, 40, 60, 79, 120)
_PYTHON: Final = f"Python {platform.python_version()}"
Told = Callable[[], Any]


def told(make: Told) -> str:
    """What a function returns, or says that is wrong."""
    try:
        found = make()
    except (ArgosyError, ValueError, ZeroDivisionError, StopIteration) as error:
        return f"{type(error).__name__}: {error}"
    text = found if isinstance(found, str) else plain_text(found)
    return text.replace(f"Argosy {__version__}", "Argosy").replace(_PYTHON, "PYTHON")


def require_told(
    name: str, parts: Callable[[int], list[Told]], count: int, config: pytest.Config
) -> None:
    outcomes = {str(number): "\n\n".join(map(told, parts(number))) for number in range(count)}
    require_digests(PINNED / f"{name}.txt", outcomes, config)


def drawn_summary(stream: Stream, seed: int, name: str, scale: float) -> Summary:
    summary: Summary = drawn_value(Summary, stream)
    jobs = stream.pick((1, 10, 100, 1000))
    endless = stream.pick((0, 0, jobs // 4))
    finished = stream.pick((jobs - endless, jobs - endless, (jobs - endless) // 2, 0))
    counts = structs.replace(
        summary.counts, jobs=jobs, jobs_endless=endless, jobs_finished=finished, gangs_split=0
    )
    median = scale * (900_000 + stream.below(200_000))
    jct = structs.replace(
        summary.jct, count=finished, p50=median, p90=2 * median, p99=3 * median, mean=median * 1.2,
        largest=median * 5,
    )  # fmt: skip
    parts = {"waiting": median / 4, "placing": median / 2 * stream.below(3), "running": median / 3}
    utilisation = {"cpu": stream.below(100) / 100, "memory": stream.below(100) / 100}
    return structs.replace(
        summary,
        scenario="drawn",
        seed=seed,
        fleet=f"{name} x2",
        counts=counts,
        jct=jct,
        breakdown=parts if finished else {},
        utilisation=utilisation,
    )


def summaries_parts(number: int) -> list[Told]:
    stream = Stream(f"summary {number}")
    summary: Summary = drawn_value(Summary, stream)
    if number % 2:
        summary = drawn_summary(stream, number, "omega", stream.pick((1e-4, 1.0, 70.0, 9e5)))
    return [
        lambda: report.sections(summary, stream.pick(WIDTHS)),
        lambda: report.flat(summary),
        lambda: report.document(summary),
        lambda: markdown.run_markdown(None, summary, ["a note", "of | two"], "argosy run x"),
        lambda: [(name, metric.value(summary)) for name, metric in METRICS.items()],
        lambda: [report.messages(summary), report.notices(summary)],
    ]


def test_summaries(pytestconfig: pytest.Config) -> None:
    require_told("summaries", summaries_parts, 60, pytestconfig)


def drawn_part(stream: Stream) -> KindSummary:
    part: KindSummary = drawn_value(KindSummary, stream)
    jobs = stream.pick((0, 10, 40))
    finished = stream.pick((jobs, jobs, jobs // 2, 0))
    median = stream.pick((1e6, 1.01e6, 2e6, 0.5e6))
    jct = structs.replace(part.jct, count=finished, p50=median)
    endless = jobs if not finished and stream.has(0.5) else 0
    return structs.replace(part, jobs=jobs, jobs_finished=finished, jobs_endless=endless, jct=jct)


def drawn_runs(stream: Stream) -> dict[str, list[Summary]]:
    seeds = stream.pick(((1,), (4, 5), (1, 2, 3), (9, 2, 30, 31)))
    kinds = stream.pick(((), ("batch",), ("batch", "service"), ("a", "b", "c")))
    owners = stream.pick(((), ("", "ann"), ("ann", "bob")))
    names = ("omega", "kube", "sparrow", "eagle", "medea", "yarn", "mesos")[: stream.among(1, 7)]
    scales = (1.0, 1.0, 1.01, 1.03, 1.5, 4.0, 0.0)
    runs = {}
    for name in names:
        scale = stream.pick(scales)
        runs[name] = [
            structs.replace(
                drawn_summary(stream, seed, name, scale),
                kinds={kind: drawn_part(stream) for kind in kinds},
                owners={owner: drawn_part(stream) for owner in owners},
            )
            for seed in seeds
        ]
    return runs


def drawn_demands(stream: Stream, names: list[str]) -> dict[str, tuple[IgnoredDemand, ...]]:
    kinds = ("gangs", "placement constraints", "priorities", "limits")
    return {
        name: tuple(
            IgnoredDemand(engine=name, what=what, asked=f"{stream.among(1, 3)} jobs ask")
            for what in kinds
            if stream.has(0.15)
        )
        for name in names
    }


def ranked(stream: Stream) -> tuple[list[comparison.Ranking], dict[str, list[Summary]]]:
    runs = drawn_runs(stream)
    ignores = drawn_demands(stream, list(runs))
    chosen = [stream.pick(list(METRICS)) for _ in range(stream.among(0, 2))]
    rule = comparison.RankingRule(threshold=stream.pick((0.0, 0.02, 0.5)), everyone=stream.has(0.3))
    failures = {"quincy": "no solver"} if stream.has(0.2) else None
    rankings = [
        comparison.compare(runs, METRICS[name], ignores, failures=failures, rule=rule)
        for name in dict.fromkeys(("jct", *chosen))
    ]
    return rankings, runs


def comparisons_parts(number: int) -> list[Told]:
    stream = Stream(f"comparison {number}")
    rankings, runs = ranked(stream)
    first, metric = rankings[0], find_metric("jct")
    width = stream.pick((20, 60, 100))
    most = stream.pick((None, 1, 3))
    by_all = overall(rankings)
    some = first.standings
    return [
        lambda: msgspec.to_builtins(rankings),
        lambda: verdicts.verdict(first, metric, most=most, has_seeds=number % 3 > 0),
        lambda: verdicts.reasons(first, most),
        lambda: [overall_lines(by_all), overall_table(by_all).lines(width)],
        lambda: comparing.sections(rankings, width, overall=by_all, most=most),
        lambda: comparing.sections(rankings, None, has_seeds=False),
        lambda: comparing.csv(runs),
        lambda: markdown.compare_markdown(rankings, ["note"], "argosy compare x", by_all),
        lambda: compare_page(rankings, {}, ["<note>"], "argosy compare x", by_all),
        lambda: comparison.kinds_table(some, "owners"),
        lambda: [comparison.breakdown(some, width), comparison.spread(some, width)],
    ]


def test_comparisons(pytestconfig: pytest.Config) -> None:
    require_told("comparisons", comparisons_parts, 36, pytestconfig)


def sweeps_parts(number: int) -> list[Told]:
    values: tuple[tuple[Any, ...], ...] = (
        (1, 2, 30),
        ("1s", "2s"),
        (0.5, 7.25),
        (True, False),
        (3,),
    )
    stream = Stream(f"sweep {number}")
    rows, found = [], []
    for value in stream.pick(values):
        rankings, _ = ranked(stream)
        rows.append(sweeps.SweepRow(value, rankings[0]))
    metric = find_metric("jct")
    made = sweeps.SweepResult(scenario="drawn", varied="a.b", metric="jct", rows=tuple(rows))
    found.append((made, metric))
    return [
        lambda: sweeps.sweep_lines(made, metric),
        lambda: [msgspec.to_builtins(each) for each in made.changes()],
        lambda: sweeps.sweep_table(made, metric).csv(),
        lambda: sweeps.sweep_page(found, "argosy sweep <x>"),
    ]


def test_sweeps(pytestconfig: pytest.Config) -> None:
    require_told("sweeps", sweeps_parts, 15, pytestconfig)


TEXTS: Final = ("", "a", "gang", "µ ± …", "a | b", "<b>&", "x" * 30, "two words and more of them")


def drawn_cell(stream: Stream, unit: Unit) -> tables.Value:
    if stream.has(0.15):
        return None
    if unit is Unit.TEXT:
        return stream.pick(TEXTS)
    if unit is Unit.COUNT:
        return stream.pick((0, 1, 999, 1000, 1_234_567, 2.5))
    if unit is Unit.TIME:
        times = (0, 1, 999, 1000, 59_999_999, 60_000_000, 3_599_000_000, 86_400_000_000, 1.5)
        return stream.pick((*times, stream.below(10**9), stream.below(10**13)))
    if unit is Unit.SHARE:
        return stream.pick((0, 0.5, 1, 0.9994, 0.9996, 0.009, 0.01, 0.0999, stream.below(99) / 100))
    return stream.pick((0, -1.5, 999.9, 1000, 0.00012, 12.3456, -5000, stream.below(10**6) / 7))


def tables_parts(number: int) -> list[Told]:
    stream = Stream(f"table {number}")
    columns = tuple(
        Column(f"c{at}", stream.pick(TEXTS), stream.pick(list(Unit)))
        for at in range(stream.among(1, 6))
    )
    rows = tuple(
        tuple(drawn_cell(stream, column.unit) for column in columns)
        for _ in range(stream.pick((0, 1, 2, 5)))
    )
    table = Table(columns, rows)
    width = stream.pick(WIDTHS)
    return [
        lambda: table.lines(width),
        lambda: table.wrapped(width),
        table.csv,
        lambda: json.dumps(table.records()),
        lambda: table.without(["c0", "c3"]).lines(),
        lambda: html.html_table(table),
        lambda: markdown.markdown_table(table),
        lambda: tables.plain("\n".join(table.lines())),
    ]


def test_tables(pytestconfig: pytest.Config) -> None:
    require_told("tables", tables_parts, 80, pytestconfig)


def drawn_amount(stream: Stream) -> float:
    return stream.pick((0.0, 1.0, 0.5, 3e6, 12.5, 1e-5, 250_000.0, stream.below(10**6) / 9))


def plots_parts(number: int) -> list[Told]:
    stream = Stream(f"plot {number}")
    names = [f"engine-{at}"[: stream.among(3, 8)] + str(at) for at in range(stream.below(6))]
    width = stream.pick((5, 30, 61, 100))
    bars = []
    for name in names:
        low, value, high = sorted(drawn_amount(stream) for _ in range(3))
        bars.append(plots.Bar(name, value, low, high, f"{value:g}"))
    parts_of = {name: [drawn_amount(stream) for _ in range(3)] for name in names}
    points = {name: sorted(drawn_amount(stream) for _ in range(4)) for name in names}
    four = ("median", "p90", "p99", "largest")
    return [
        lambda: plots.bars(bars, width),
        lambda: plots.stacked(parts_of, ("a", "b", "c"), "{:.3g}".format, width),
        lambda: plots.quantiles(points, four, "{:.3g}".format, width),
    ]


def test_plots(pytestconfig: pytest.Config) -> None:
    require_told("plots", plots_parts, 80, pytestconfig)


def drawn_axis(stream: Stream, label: str) -> Axis:
    ends = stream.pick(((None, None), (0.0, None), (None, 10.0), (0.1, 1000.0), (0.0, 1.0)))
    is_logarithmic = stream.has(0.4)
    low, high = ends
    return Axis(label=label, logarithmic=is_logarithmic, low=low, high=high)


def drawn_chart(stream: Stream) -> Chart:
    lines = [
        Line(
            label=f"line <{at}>",
            marks=tuple(
                Mark(drawn_amount(stream), drawn_amount(stream), stream.pick((0.0, 0.0, 2.5)))
                for _ in range(stream.pick((0, 1, 3, 6)))
            ),
            colour=stream.below(8),
            dashed=stream.has(0.3),
            stepped=stream.has(0.3),
        )
        for at in range(stream.below(4))
    ]
    rules = [
        ReferenceLine(
            at=drawn_amount(stream),
            label=f"rule {at}",
            vertical=stream.has(0.5),
            colour=stream.pick((None, 1, 7)),
        )
        for at in range(stream.below(3))
    ]
    return Chart(
        title="a & b",
        x=drawn_axis(stream, "x <s>"),
        y=drawn_axis(stream, "y"),
        lines=tuple(lines),
        rules=tuple(rules),
    )


def drawn_heat_map(stream: Stream) -> HeatMap:
    wide, tall = stream.among(0, 4), stream.among(0, 4)
    shares = (None, 0.0, 0.55, 0.56, 1.0, 2.0, -1.0, 0.3)
    return HeatMap(
        title="heat",
        x="load",
        y="size",
        value="busy <share>",
        xs=tuple(map(str, range(wide))),
        ys=tuple(map(str, range(tall))),
        rows=tuple(tuple(stream.pick(shares) for _ in range(wide)) for _ in range(tall)),
        struck=tuple(tuple(stream.has(0.3) for _ in range(wide)) for _ in range(tall)),
        struck_label="did not end",
        high=stream.pick((1.0, 2.0)),
    )


def figures_parts(number: int) -> list[Told]:
    stream = Stream(f"figure {number}")
    chart, heat = drawn_chart(stream), drawn_heat_map(stream)
    panels = stream.pick(((chart,), (chart, heat), (heat,), ()))
    figure = Figure(number="4", title="t", caption="c", panels=panels, note=stream.pick(("", "n")))
    return [
        lambda: figures.draw_chart(chart, "name"),
        lambda: figures.draw_heat_map(heat, "name"),
        lambda: figures.heat_key(heat),
        lambda: [figures.key(line) for line in chart.lines],
        lambda: html.html_figure(figure),
        lambda: [figures.number(drawn_amount(stream) - 1) for _ in range(6)],
    ]


def test_figures(pytestconfig: pytest.Config) -> None:
    require_told("figures", figures_parts, 90, pytestconfig)
