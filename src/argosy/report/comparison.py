"""Engines x seeds: which is best by a metric, by how much, how surely, and why.

Every engine runs under the same seeds, so runs are paired by seed. The bootstrap's stream is named
after the metric and the engines compared: a result does not depend on who else took part.
"""

from __future__ import annotations

import statistics as middle
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from argosy.measures.statistics import Estimate, Ratio, median, ratio_of_medians
from argosy.model.errors import CommandError
from argosy.model.random import Random
from argosy.model.units import format_duration
from argosy.records.summary import Summary
from argosy.report import plots
from argosy.report.metrics import Metric
from argosy.report.summaries import messages, notices
from argosy.report.tables import Column, Table, Unit, Value

_STREAM: Final = 0
#: An engine that finishes less than this share of the jobs another finishes cannot be best, because its
#: times leave out the jobs it starved.
NEARLY_ALL: Final = 0.99


class Breakdown(msgspec.Struct, frozen=True):
    """The mean JCT of finished jobs in three parts, in microseconds; means add up, medians do not."""

    waiting: float
    placing: float
    #: From the last task placed to the last one done.
    running: float

    def parts(self) -> tuple[float, float, float]:
        return (self.waiting, self.placing, self.running)


BREAKDOWN_NAMES: Final = ("wait for an attempt", "placing", "placed, until done")


class EngineRank(msgspec.Struct, frozen=True, kw_only=True):
    """One engine's rank. Numbers are medians over the seeds, except the means in `breakdown`."""

    engine: str
    fleet: str
    #: None if a run had nothing to measure; such engines come last.
    estimate: Estimate | None
    #: The ratio to the best engine's median; None for the best itself, or if unknown.
    ratio: Ratio | None
    #: Share of the submitted jobs.
    finished: float
    mean_jct: float
    #: None if no job finished.
    breakdown: Breakdown | None
    conflict_fraction: float
    #: The share of containers under placement constraints that violate one, over time; None without
    #: any.
    violating: float | None
    utilisation: dict[str, float]
    #: Sent by schedulers, and by machines to schedulers.
    messages: float
    notices: float
    #: Median, p90, p99 and largest JCT.
    quantiles: tuple[float, float, float, float]
    #: Demands of the scenario that this engine ignores, one sentence each.
    notes: tuple[str, ...] = ()


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    metric: str
    seeds: tuple[int, ...]
    #: None if no engine finished anything.
    best: str | None
    #: By the metric, lowest first.
    standings: tuple[EngineRank, ...]

    def standing(self, engine: str) -> EngineRank:
        return next(s for s in self.standings if s.engine == engine)


def compare(
    runs: Mapping[str, Sequence[Summary]],
    metric: Metric,
    notes: Mapping[str, Sequence[str]] | None = None,
) -> Ranking:
    """`runs` has each engine's summaries under the same seeds in the same order, `notes` what each
    engine ignores."""
    seeds = {tuple(summary.seed for summary in summaries) for summaries in runs.values()}
    if len(seeds) != 1 or seeds == {()}:
        raise CommandError("the engines did not run under the same seeds")
    values = {engine: [metric.value(s) for s in summaries] for engine, summaries in runs.items()}
    known = {
        engine: [value for value in observed if value is not None]
        for engine, observed in values.items()
        if None not in observed
    }
    finished = {engine: _finished(summaries) for engine, summaries in runs.items()}
    best = _best(known, runs, finished)
    standings = [
        msgspec.structs.replace(
            _standing(engine, summaries, metric, known, best, finished[engine]),
            notes=tuple((notes or {}).get(engine, ())),
        )
        for engine, summaries in runs.items()
    ]
    standings.sort(key=_place)
    return Ranking(
        scenario=next(iter(runs.values()))[0].scenario,
        metric=metric.name,
        seeds=seeds.pop(),
        best=best,
        standings=tuple(standings),
    )


def _place(standing: EngineRank) -> tuple[bool, float, float, str]:
    """By the metric, then by mean JCT, so that ties are not decided alphabetically."""
    estimate = standing.estimate
    value = estimate.value if estimate else 0.0
    return (estimate is None, value, standing.mean_jct, standing.engine)


def _best(
    known: Mapping[str, Sequence[float]],
    runs: Mapping[str, Sequence[Summary]],
    finished: Mapping[str, float],
) -> str | None:
    most = max(finished.values())
    able = [engine for engine in known if finished[engine] >= NEARLY_ALL * most]

    def rank(engine: str) -> tuple[float, float, str]:
        mean = middle.median(summary.jct.mean for summary in runs[engine])
        return (middle.median(known[engine]), mean, engine)

    return min(able, key=rank, default=None)


def _standing(
    engine: str,
    summaries: Sequence[Summary],
    metric: Metric,
    known: Mapping[str, Sequence[float]],
    best: str | None,
    finished: float,
) -> EngineRank:
    stream = Random(_STREAM).child(metric.name).child(engine)
    ratio = None
    if best is not None and engine != best and engine in known:
        ratio = ratio_of_medians(known[engine], known[best], stream.child(best))
    return EngineRank(
        engine=engine,
        fleet=summaries[0].fleet,
        estimate=median(known[engine], stream) if engine in known else None,
        ratio=ratio,
        finished=finished,
        mean_jct=middle.median(s.jct.mean for s in summaries),
        breakdown=_breakdown(summaries),
        conflict_fraction=middle.median(s.conflict_fraction for s in summaries),
        violating=_violating(summaries),
        utilisation={
            name: middle.median(s.utilisation.get(name, 0.0) for s in summaries)
            for name in summaries[0].utilisation
        },
        messages=middle.median(messages(s) for s in summaries),
        notices=middle.median(notices(s) for s in summaries),
        quantiles=(
            middle.median(s.jct.p50 for s in summaries),
            middle.median(s.jct.p90 for s in summaries),
            middle.median(s.jct.p99 for s in summaries),
            middle.median(s.jct.largest for s in summaries),
        ),
    )


def _violating(summaries: Sequence[Summary]) -> float | None:
    known = [s.placement.mean for s in summaries if s.placement.mean.concerned]
    return middle.median(use.violating / use.concerned for use in known) if known else None


def _finished(summaries: Sequence[Summary]) -> float:
    """The share of jobs that finished, of those that can finish at all."""
    able = sum(s.counts.jobs - s.counts.jobs_endless for s in summaries)
    return sum(s.counts.jobs_finished for s in summaries) / able if able else 1.0


def _breakdown(summaries: Sequence[Summary]) -> Breakdown | None:
    known = [s.breakdown for s in summaries if s.breakdown]
    if not known:
        return None
    return Breakdown(
        *(
            middle.fmean(parts[name] for parts in known)
            for name in ("waiting", "placing", "running")
        )
    )


def table(comparison: Ranking, metric: Metric) -> Table:
    columns = (
        Column("engine", "engine"),
        Column("median", "median", metric.unit),
        Column("low", "95 % from", metric.unit),
        Column("high", "to", metric.unit),
        Column("ratio", "times best", Unit.NUMBER),
        Column("finished", "jobs finished", Unit.SHARE),
        Column("note", ""),
    )
    rows: list[tuple[Value, ...]] = []
    for s in comparison.standings:
        e = s.estimate
        numbers = (e.value, e.low, e.high) if e else (None, None, None)
        ratio = 1.0 if s.engine == comparison.best else s.ratio.value if s.ratio else None
        fewer = "not best: finished fewer" if _is_disqualified(s, comparison) else None
        rows.append((s.engine, *numbers, ratio, s.finished, fewer))
    shown = Table(columns, tuple(rows))
    return shown if any(row[-1] for row in rows) else shown.without(["note"])


def _is_disqualified(standing: EngineRank, comparison: Ranking) -> bool:
    """Whether it would be best if it had finished as many jobs as the best."""
    return (
        standing.engine != comparison.best
        and standing.ratio is not None
        and standing.ratio.value < 1
    )


def causes(comparison: Ranking) -> Table:
    """What contributes to the metric: the parts of the mean JCT, conflicts, messages, utilisation."""
    dimensions = comparison.standings[0].utilisation
    columns = (
        Column("engine", "engine"),
        Column("waiting", "wait", Unit.TIME),
        Column("placing", "placing", Unit.TIME),
        Column("running", "running", Unit.TIME),
        Column("conflict_fraction", "conflicts", Unit.NUMBER),
        Column("violating", "violating", Unit.SHARE),
        Column("messages", "messages", Unit.COUNT),
        Column("notices", "notices", Unit.COUNT),
        *(Column(f"utilisation_{name}", name, Unit.SHARE) for name in dimensions),
    )
    rows: list[tuple[Value, ...]] = [
        (
            s.engine,
            *(s.breakdown.parts() if s.breakdown else (None, None, None)),
            s.conflict_fraction,
            s.violating,
            s.messages,
            s.notices,
            *(s.utilisation.get(name) for name in dimensions),
        )
        for s in comparison.standings
    ]
    shown = Table(columns, tuple(rows))
    is_judged = any(s.violating is not None for s in comparison.standings)
    return shown if is_judged else shown.without(["violating"])


def bars(comparison: Ranking, metric: Metric, width: int) -> list[str]:
    text = Column("", "", metric.unit).text
    return plots.bars(
        [
            plots.Bar(
                s.engine, s.estimate.value, s.estimate.low, s.estimate.high, text(s.estimate.value)
            )
            for s in comparison.standings
            if s.estimate is not None
        ],
        width,
    )


def breakdown(comparison: Ranking, width: int) -> list[str]:
    """Empty if no engine finished a job."""
    rows = {s.engine: s.breakdown.parts() for s in comparison.standings if s.breakdown}
    if not rows:
        return []
    return plots.stacked(rows, BREAKDOWN_NAMES, format_duration, width)


def spread(comparison: Ranking, width: int) -> list[str]:
    rows = {s.engine: s.quantiles for s in comparison.standings}
    return plots.quantiles(rows, ("median", "p90", "p99", "largest"), format_duration, width)
