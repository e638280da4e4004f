"""A comparison of engines as one HTML file, which needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from argosy.papers.charts import Chart
from argosy.records.record import RunRecord
from argosy.report import comparison, verdicts
from argosy.report.comparison import EngineRank, Ranking
from argosy.report.html import document, html_table
from argosy.report.metrics import find_metric
from argosy.report.notable_jobs import notable_jobs
from argosy.report.over_time import Plotted, RunCurves, curves_of, distribution_chart, time_chart
from argosy.report.overall import Overall, overall_lines, overall_table
from argosy.report.run_report import charts, notable_parts, reproduce, section
from argosy.report.tables import Column, Table, Unit


def compare_page(
    rankings: Sequence[Ranking],
    runs: Mapping[str, RunRecord],
    notes: Sequence[str],
    command: str,
    overall: Overall | None = None,
) -> str:
    """`runs` has a run of the first seed for each engine that is drawn; an engine has the same colour in
    every chart."""
    first = rankings[0]
    curves = {engine: curves_of(run) for engine, run in runs.items()}
    seeds = ", ".join(map(str, first.seeds))
    body = [
        f"<h1>{escape(first.scenario)}: engines compared</h1>",
        f'<p class="soft">seeds {seeds}</p>',
        *(f'<p class="note">{escape(text)}</p>' for text in notes),
    ]
    for ranking in rankings:
        metric = find_metric(ranking.metric)
        told = "".join(
            f"<p>{escape(line.strip())}</p>" for line in verdicts.verdict(ranking, metric)
        )
        body.append(
            section(f"By {metric.title}", told, html_table(comparison.table(ranking, metric)))
        )
    apart = comparison.apart_table(first, find_metric(first.metric))
    if apart.rows:
        body.append(section("Not ranked", html_table(apart)))
    if overall is not None:
        lines = "".join(f"<p>{escape(line)}</p>" for line in overall_lines(overall))
        body.append(section("All objectives together", html_table(overall_table(overall)), lines))
    if curves:
        seed = f'<p class="soft">Runs of seed {first.seeds[0]}.</p>'
        body.append(section("How long jobs took", seed, charts(_distributions(curves), "d")))
        body.append(section("Over time", seed, charts(_over_time(curves), "t")))
    for parts, words in (("kinds", "kind of job"), ("owners", "owner")):
        if (table := comparison.kinds_table(first.standings, parts)) is not None:
            body.append(section(f"Median JCT and finished jobs by {words}", html_table(table)))
    body.append(section("Spread of JCT", html_table(_spread(first.standings))))
    reasons = "".join(f"<p>{escape(line)}</p>" for line in verdicts.reasons(first, None))
    why = html_table(comparison.causes(first.standings))
    title = "Why: parts of the mean JCT, conflicts, messages, share of resources in use"
    body.append(section(title, reasons, why))
    for engine, run in runs.items():
        body += notable_parts(notable_jobs(run, slowest=3, unfinished=3), engine)
    body.append(reproduce(command))
    return document(f"{first.scenario}: engines compared", body)


def _distributions(curves: Mapping[str, RunCurves]) -> list[Chart]:
    engines = list(curves)
    kinds = list(dict.fromkeys(kind for each in curves.values() for kind in each.jct))
    drawn = [
        distribution_chart(
            "job completion time", {e: _all(curves[e].jct) for e in engines}, engines
        ),
        distribution_chart(
            "until all tasks had a machine", {e: _all(curves[e].wait) for e in engines}, engines
        ),
    ]
    if len(kinds) > 1:
        for kind in kinds:
            found = {e: curves[e].jct.get(kind, np.empty(0)) for e in engines}
            if any(len(each) for each in found.values()):
                drawn.append(distribution_chart(f"job completion time: {kind}", found, engines))
    return drawn


def _all(by_kind: Mapping[str, Plotted]) -> Plotted:
    return np.concatenate([*by_kind.values()]) if by_kind else np.empty(0)


def _over_time(curves: Mapping[str, RunCurves]) -> list[Chart]:
    """On the time of the longest run."""
    engines = list(curves)
    at = max((each.at for each in curves.values()), key=lambda times: float(times[-1]))
    resources = list(next(iter(curves.values())).used)
    drawn = [
        time_chart(
            f"used share of {resource}",
            "share",
            at,
            {e: _stretched(curves[e].at, curves[e].used[resource], at) for e in engines},
            engines,
            high=1.0,
        )
        for resource in resources
    ]
    waiting = {e: _stretched(curves[e].at, curves[e].waiting, at) for e in engines}
    return [*drawn, time_chart("tasks that wait", "tasks", at, waiting, engines)]


def _stretched(own: Plotted, values: Plotted, at: Plotted) -> Plotted:
    """Values on another time axis; 0 after the run's own end."""
    found: Plotted = np.interp(at, own, values, right=0.0)
    return found


def _spread(standings: Sequence[EngineRank]) -> Table:
    names = ("median", "p90", "p99", "largest")
    columns = (
        Column("engine", "engine"),
        Column("mean", "mean", Unit.TIME),
        *(Column(name, name, Unit.TIME) for name in names),
    )
    return Table(columns, tuple((s.engine, s.mean_jct, *s.quantiles) for s in standings))
