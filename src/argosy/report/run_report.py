"""One run as one HTML file, which needs nothing from elsewhere."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from html import escape

from argosy.papers.charts import Chart
from argosy.records.record import RunRecord
from argosy.records.summary import Summary
from argosy.report import summaries
from argosy.report.figures import draw_chart, key
from argosy.report.html import document, html_table
from argosy.report.notable_jobs import NotableJob, notable_jobs
from argosy.report.over_time import (
    RunCurves,
    curves_of,
    distribution_chart,
    machine_heat,
    time_chart,
)
from argosy.report.tables import Column, Table, Unit
from argosy.report.wide_figures import MOST_MACHINES, draw_gantt, draw_machine_heat
from argosy.version import __version__


def run_page(run: RunRecord, summary: Summary, notes: Sequence[str], command: str) -> str:
    """The whole document; the run needs a journal with starts and ends of tasks."""
    curves = curves_of(run)
    kinds = list(curves.jct)
    body = [
        f"<h1>{escape(summary.scenario)}: {escape(summary.fleet)}</h1>",
        f'<p class="soft">seed {summary.seed}</p>',
        *(f'<p class="note">{escape(text)}</p>' for text in notes),
        section("At the end", html_table(summaries.counts(summary))),
        section("Times", html_table(summaries.times(summary))),
        *notable_parts(notable_jobs(run, slowest=5, unfinished=10)),
        section("How long jobs took", charts(_distributions(curves, kinds))),
        section("Over time", charts(_over_time(curves))),
        section(
            "Tasks on machines",
            f'<div class="legend">{"".join(_swatch(kind, n) for n, kind in enumerate(kinds))}</div>',
            draw_gantt(run, kinds),
            _cut(run),
        ),
    ]
    heat = machine_heat(run)
    body.append(
        section(
            "How full machines are",
            '<p class="soft">By the resource that is used most on each; darker is fuller.</p>',
            draw_machine_heat(heat),
        )
    )
    if (parts := _kinds(summary)) is not None:
        body.append(section("By kind of job", html_table(parts)))
    body.append(section("Schedulers", html_table(summaries.schedulers(summary))))
    body.append(section("Over the run", html_table(summaries.totals(summary))))
    if summary.placement.looks:
        body.append(section("Placement", html_table(summaries.placement(summary))))
    body.append(reproduce(command, summary.log_digest))
    return document(f"{summary.scenario}: {summary.fleet}", body)


def section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def charts(drawn: Sequence[Chart], name: str = "c") -> str:
    """Charts side by side, with one legend for all."""
    keys = dict.fromkeys(key(line) for chart in drawn for line in chart.lines if line.marks)
    panels = "".join(draw_chart(chart, f"{name}-{n}-{len(keys)}") for n, chart in enumerate(drawn))
    return f'<div class="legend">{"".join(keys)}</div><div class="panels fill">{panels}</div>'


def _distributions(curves: RunCurves, kinds: Sequence[str]) -> list[Chart]:
    return [
        distribution_chart("job completion time", curves.jct, kinds),
        distribution_chart("until all tasks had a machine", curves.wait, kinds),
    ]


def _over_time(curves: RunCurves) -> list[Chart]:
    resources = list(curves.used)
    states = ["waiting", "running"]
    lines = dict(zip(states, (curves.waiting, curves.running), strict=True))
    # Resources and states are different things, so they get different colours.
    return [
        time_chart("used share", "share", curves.at, curves.used, resources, high=1.0),
        time_chart("tasks", "tasks", curves.at, lines, [*resources, *states]),
    ]


def _swatch(name: str, number: int) -> str:
    return (
        f'<span class="key"><svg viewBox="0 0 14 14" style="width:14px">'
        f'<rect width="14" height="14" fill="var(--c{number % 6})"/></svg>{escape(name)}</span>'
    )


def _cut(run: RunRecord) -> str:
    machines = len(run.state.setup.cell.machines)
    if machines <= MOST_MACHINES:
        return ""
    return f'<p class="soft">The first {MOST_MACHINES} machines in use, of {machines:,}.</p>'


def _kinds(summary: Summary) -> Table | None:
    if len(summary.kinds) < 2:
        return None
    columns = (
        Column("kind", "kind"),
        Column("jobs", "jobs", Unit.COUNT),
        Column("finished", "finished", Unit.COUNT),
        Column("p50", "median JCT", Unit.TIME),
        Column("p99", "p99 JCT", Unit.TIME),
    )
    rows = tuple(
        (
            name,
            kind.jobs,
            kind.jobs_finished,
            kind.jct.p50 if kind.jct.count else None,
            kind.jct.p99 if kind.jct.count else None,
        )
        for name, kind in summary.kinds.items()
    )
    return Table(columns, rows)


def notable_parts(jobs: Sequence[NotableJob], who: str = "") -> list[str]:
    """Slow and unfinished jobs with their reasons."""
    parts = []
    for state, title in (("slow", "Slowest jobs"), ("unfinished", "Unfinished jobs")):
        mine = [each for each in jobs if each.state == state]
        if not mine:
            continue
        heading = "JCT" if state == "slow" else "so far"
        columns = (Column("job", "job"), Column("took", heading, Unit.TIME), Column("why", "why"))
        rows = tuple((each.job, each.took, each.reason) for each in mine)
        of = f"{title} with {who}" if who else title
        parts.append(section(of, html_table(Table(columns, rows))))
    return parts


def reproduce(command: str, digest: str = "") -> str:
    """How to get the same again."""
    journal = f" The journal's digest is <code>{escape(digest)}</code>." if digest else ""
    return section(
        "How to reproduce",
        f"<p><code>{escape(command)}</code></p>",
        f'<p class="soft">Argosy {escape(__version__)}, Python {platform.python_version()}.'
        f"{journal}</p>",
    )
