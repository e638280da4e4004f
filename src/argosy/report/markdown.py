"""Runs and comparisons as Markdown, for issues, wikis and chats."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.records.record import RunRecord
from argosy.records.summary import Summary
from argosy.report import comparison, summaries, verdicts
from argosy.report.comparison import Ranking
from argosy.report.metrics import find_metric
from argosy.report.notable_jobs import notable_jobs
from argosy.report.overall import Overall, overall_lines, overall_table
from argosy.report.tables import Column, Table, Unit
from argosy.version import __version__


def run_markdown(
    run: RunRecord | None, summary: Summary, notes: Sequence[str], command: str
) -> str:
    parts = [f"# {_plain(summary.scenario)}: {_plain(summary.fleet)}", f"Seed {summary.seed}."]
    parts += [f"> {_plain(text)}" for text in notes]
    for title, table in (
        ("At the end", summaries.counts(summary)),
        ("Times", summaries.times(summary)),
        ("Over the run", summaries.totals(summary)),
        ("Schedulers", summaries.schedulers(summary)),
    ):
        parts += [f"## {title}", markdown_table(table)]
    if summary.placement.looks:
        parts += ["## Placement", markdown_table(summaries.placement(summary))]
    jobs = [] if run is None else notable_jobs(run)
    for state, title in (("slow", "Slowest jobs"), ("unfinished", "Unfinished jobs")):
        mine = [each for each in jobs if each.state == state]
        if mine:
            columns = (
                Column("job", "job"),
                Column("took", "time", Unit.TIME),
                Column("why", "why"),
            )
            rows = tuple((each.job, each.took, each.reason) for each in mine)
            parts += [f"## {title}", markdown_table(Table(columns, rows))]
    return _document(parts, command)


def compare_markdown(
    rankings: Sequence[Ranking], notes: Sequence[str], command: str, overall: Overall | None = None
) -> str:
    first = rankings[0]
    seeds = ", ".join(map(str, first.seeds))
    parts = [f"# {_plain(first.scenario)}: engines compared", f"Seeds {seeds}."]
    parts += [f"> {_plain(text)}" for text in notes]
    for ranking in rankings:
        metric = find_metric(ranking.metric)
        lines = [f"- {_plain(line.strip())}" for line in verdicts.verdict(ranking, metric)]
        table = markdown_table(comparison.table(ranking, metric))
        parts += [f"## By {metric.title}", "\n".join(lines), table]
    apart = comparison.apart_table(first, find_metric(first.metric))
    if apart.rows:
        parts += ["## Not ranked", markdown_table(apart)]
    if overall is not None:
        lines = [f"- {_plain(line)}" for line in overall_lines(overall)]
        parts += [
            "## All objectives together",
            markdown_table(overall_table(overall)),
            "\n".join(lines),
        ]
    for kind, words in (("kinds", "kind of job"), ("owners", "owner")):
        if (table_ := comparison.kinds_table(first.standings, kind)) is not None:
            parts += [f"## Median JCT and finished jobs by {words}", markdown_table(table_)]
    parts += ["## Why", *map(_plain, verdicts.reasons(first, None))]
    parts.append(markdown_table(comparison.causes(first.standings)))
    return _document(parts, command)


def _document(parts: Sequence[str], command: str) -> str:
    made = f"Made by Argosy {__version__}: `{command}`"
    return "\n\n".join([*parts, made]) + "\n"


def markdown_table(table: Table) -> str:
    """Numbers are aligned to the right."""
    heads = [_cell(column.title) for column in table.columns]
    rules = ["---" if column.unit is Unit.TEXT else "---:" for column in table.columns]
    rows = [
        [_cell(column.text(value)) for column, value in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows))


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|").replace("\n", " ")


def _plain(text: str) -> str:
    """Text in which nothing is markup."""
    for character in "\\`*_[]<>":
        text = text.replace(character, f"\\{character}")
    return text
