"""One value of a scenario varied: each engine's metric at every value, and where the best changes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

import msgspec

from argosy.papers.charts import Axis, Chart, Figure, Line, Mark
from argosy.report.comparison import Ranking
from argosy.report.html import document, html_figure, html_table
from argosy.report.metrics import Metric
from argosy.report.tables import Column, Table, Unit, Value


class SweepRow(msgspec.Struct, frozen=True):
    """All engines at one value."""

    value: Any
    ranking: Ranking


class BestChange(msgspec.Struct, frozen=True, kw_only=True):
    """The best engine changes between two values."""

    after: Any
    before: Any
    was: tuple[str, ...]
    now: tuple[str, ...]
    #: Where their medians cross, if the values are numbers; None if they do not.
    crossing: float | None = None


class SweepResult(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    #: The name of the value that is varied.
    varied: str
    metric: str
    rows: tuple[SweepRow, ...]

    def engines(self) -> list[str]:
        names = [s.engine for row in self.rows for s in row.ranking.standings]
        return list(dict.fromkeys(names))

    def changes(self) -> list[BestChange]:
        found = []
        for one, other in pairwise(row for row in self.rows if row.ranking.best is not None):
            was, now = one.ranking.leaders, other.ranking.leaders
            if not set(was) & set(now):
                found.append(
                    BestChange(
                        after=one.value,
                        before=other.value,
                        was=was,
                        now=now,
                        crossing=_crossing(one, other, was[0], now[0]),
                    )
                )
        return found


def _crossing(one: SweepRow, other: SweepRow, was: str, now: str) -> float | None:
    """By straight lines between the medians."""
    ends = (one.value, other.value)
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
        return None
    gaps = []
    for row in (one, other):
        values = [_median(row.ranking, engine) for engine in (was, now)]
        if values[0] is None or values[1] is None:
            return None
        gaps.append(values[0] - values[1])
    first, last = gaps
    return float(ends[0] + (ends[1] - ends[0]) * first / (first - last)) if first != last else None


def _median(ranking: Ranking, engine: str) -> float | None:
    for standing in ranking.standings:
        if standing.engine == engine and standing.estimate is not None:
            return standing.estimate.value
    return None


def sweep_table(found: SweepResult, metric: Metric) -> Table:
    engines = found.engines()
    columns = (
        Column("value", found.varied),
        *(Column(engine, engine, metric.unit) for engine in engines),
        Column("best", "best"),
    )
    rows: list[tuple[Value, ...]] = [
        (
            _shown(row.value),
            *(_median(row.ranking, engine) for engine in engines),
            ", ".join(row.ranking.leaders) or None,
        )
        for row in found.rows
    ]
    return Table(columns, tuple(rows))


def _shown(value: Any) -> str:
    return (
        value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value}"
    )


def sweep_lines(found: SweepResult, metric: Metric) -> list[str]:
    """Who is best where, in sentences."""
    changes = found.changes()
    lines = []
    for change in changes:
        place = (
            f"at about {found.varied} = {change.crossing:.3g}"
            if change.crossing is not None
            else f"between {found.varied} = {_shown(change.after)} and {_shown(change.before)}"
        )
        lines.append(
            f"The best engine by {metric.title} changes {place}, from {', '.join(change.was)} to"
            f" {', '.join(change.now)}."
        )
    if not changes:
        leaders = [set(row.ranking.leaders) for row in found.rows if row.ranking.best is not None]
        always = set.intersection(*leaders) if leaders else set()
        names = ", ".join(engine for engine in found.engines() if engine in always)
        lines.append(
            f"Best by {metric.title} at every value: {names}."
            if names
            else f"No engine is best by {metric.title} at every value; from one to the next they tie."
        )
    for row in found.rows:
        lines += [
            f"{engine} failed at {_shown(row.value)}: {error}"
            for engine, error in row.ranking.failures.items()
        ]
    return lines


def sweep_figure(found: SweepResult, metric: Metric) -> Figure:
    is_number = all(
        isinstance(row.value, int | float) and not isinstance(row.value, bool) for row in found.rows
    )
    unit, scale = ("s", 1e6) if metric.unit is Unit.TIME else ("", 1.0)
    lines = []
    for colour, engine in enumerate(found.engines()):
        marks = []
        for place, row in enumerate(found.rows):
            standing = next((s for s in row.ranking.standings if s.engine == engine), None)
            if standing is None or standing.estimate is None:
                continue
            estimate = standing.estimate
            marks.append(
                Mark(
                    float(row.value) if is_number else float(place),
                    estimate.value / scale,
                    (estimate.high - estimate.low) / 2 / scale,
                )
            )
        lines.append(Line(label=engine, marks=tuple(marks), colour=colour))
    heights = [mark.y for line in lines for mark in line.marks if mark.y > 0]
    chart = Chart(
        title=f"{metric.title}{f' ({unit})' if unit else ''}",
        x=Axis(label=found.varied if is_number else f"{found.varied}, in the order given"),
        y=Axis(
            label=metric.title,
            logarithmic=bool(heights) and max(heights) > 20 * min(heights),
        ),
        lines=tuple(lines),
    )
    return Figure(
        number="1",
        title=f"{metric.title} by {found.varied}",
        caption=f"{found.scenario}: medians over the seeds, with 95 % intervals.",
        panels=(chart,),
    )


def sweep_page(found: Sequence[tuple[SweepResult, Metric]], command: str) -> str:
    """One HTML file that needs nothing from elsewhere."""
    first = found[0][0]
    body = [f"<h1>{escape(first.scenario)} by {escape(first.varied)}</h1>"]
    for sweep, metric in found:
        body += [f"<p>{escape(line)}</p>" for line in sweep_lines(sweep, metric)]
        body += [html_figure(sweep_figure(sweep, metric)), html_table(sweep_table(sweep, metric))]
    body.append(f'<p class="soft">Made by <code>{escape(command)}</code></p>')
    return document(f"{first.scenario} by {first.varied}", body)
