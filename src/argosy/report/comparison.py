"""Engines x seeds: which is best by a metric, by how much, how surely, and why.

Every engine runs under the same seeds, so runs are paired by seed. The bootstrap's stream is named
after the metric and the engines compared: a result does not depend on who else took part.
"""

from __future__ import annotations

import statistics as middle
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from argosy.measures.statistics import CONFIDENCE, Estimate, Ratio, median, ratio_of_medians
from argosy.model.errors import CommandError
from argosy.model.random import Random
from argosy.model.units import format_duration
from argosy.records.summary import KindSummary, Summary
from argosy.report import plots
from argosy.report.metrics import Metric, related_metrics
from argosy.report.priorities import ignored_words, mattering_demands, share_passed_over
from argosy.report.summaries import messages, notices
from argosy.report.tables import Column, Table, Unit, Value
from argosy.scenarios.ignored_demands import IgnoredDemand

_STREAM: Final = 0
#: An engine that finishes less than this share of the jobs another finishes cannot be best, because its
#: times leave out the jobs it starved.
NEARLY_ALL: Final = 0.99
#: Why an engine is not ranked begins with this if it ignores demands.
IGNORES: Final = "ignores"
#: Medians closer than this are a tie.
DEFAULT_THRESHOLD: Final = 0.02


class Breakdown(msgspec.Struct, frozen=True):
    """The mean JCT of finished jobs in three parts, in microseconds; means add up, medians do not."""

    waiting: float
    placing: float
    #: From the last task placed to the last one done.
    running: float

    def parts(self) -> tuple[float, float, float]:
        return (self.waiting, self.placing, self.running)


BREAKDOWN_NAMES: Final = ("wait for an attempt", "placing", "placed, until done")


class KindRank(msgspec.Struct, frozen=True):
    """One engine's jobs of one kind or owner; medians over the seeds."""

    #: Median JCT; None if no job finished.
    jct: float | None
    #: Share of the jobs that can finish; None if all run until stopped.
    finished: float | None


class EngineRank(msgspec.Struct, frozen=True, kw_only=True):
    """One engine's rank. Numbers are medians over the seeds, except the means in `breakdown`."""

    engine: str
    fleet: str
    #: 1 for the best engine and those that tie with it, 2 for the next; None if it is not ranked.
    place: int | None = None
    #: Why it is not ranked; empty if it is.
    apart: str = ""
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
    #: The share of gangs whose tasks did not start together; None without any.
    split_gangs: float | None
    #: The share of the jobs of higher precedence than others that were passed over; None without any.
    passed_over: float | None
    utilisation: dict[str, float]
    #: Sent by schedulers, and by machines to schedulers.
    messages: float
    notices: float
    #: Median, p90, p99 and largest JCT.
    quantiles: tuple[float, float, float, float]
    kinds: dict[str, KindRank] = {}
    owners: dict[str, KindRank] = {}
    #: Demands of the scenario that this engine ignores; priorities only if a job was passed over.
    ignores: tuple[IgnoredDemand, ...] = ()


class RankingRule(msgspec.Struct, frozen=True, kw_only=True):
    """When engines differ, and which of them are ranked."""

    #: Medians that differ by less than this share are a tie, as are those that may differ by chance.
    threshold: float = DEFAULT_THRESHOLD
    #: Rank engines that ignore demands of the scenario like the others.
    everyone: bool = False


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    metric: str
    seeds: tuple[int, ...]
    threshold: float = DEFAULT_THRESHOLD
    #: The first of `leaders`; None if no engine finished anything.
    best: str | None
    #: The best engine and those that tie with it.
    leaders: tuple[str, ...] = ()
    #: By place, then by the metric; engines that are not ranked come last.
    standings: tuple[EngineRank, ...]
    #: The leaders by the mean, the median and the tail of the same times, if the metric is one of them.
    elsewhere: dict[str, tuple[str, ...]] = {}
    #: Engines that failed, with their errors.
    failures: dict[str, str] = {}

    def standing(self, engine: str) -> EngineRank:
        return next(s for s in self.standings if s.engine == engine)

    def ranked(self) -> list[EngineRank]:
        return [s for s in self.standings if s.place is not None]


def compare(
    runs: Mapping[str, Sequence[Summary]],
    metric: Metric,
    ignores: Mapping[str, Sequence[IgnoredDemand]] | None = None,
    *,
    failures: Mapping[str, str] | None = None,
    rule: RankingRule | None = None,
) -> Ranking:
    """`runs` has each engine's summaries under the same seeds in the same order, `ignores` what each
    engine ignores, `failures` the errors of engines that have no runs."""
    seeds = {tuple(summary.seed for summary in summaries) for summaries in runs.values()}
    if len(seeds) != 1 or seeds == {()}:
        raise CommandError("the engines did not run under the same seeds")
    rule = rule or RankingRule()
    contest = _Grouping(runs, metric, ignores or {}, rule)
    standings = [_standing(engine, contest) for engine in runs]
    standings.sort(key=_order)
    return Ranking(
        scenario=next(iter(runs.values()))[0].scenario,
        metric=metric.name,
        seeds=seeds.pop(),
        threshold=rule.threshold,
        best=contest.groups[0][0] if contest.groups else None,
        leaders=tuple(contest.groups[0]) if contest.groups else (),
        standings=tuple(standings),
        elsewhere={
            other.name: tuple(groups[0])
            for other in related_metrics(metric)
            if (groups := _Grouping(runs, other, ignores or {}, rule).groups)
        },
        failures=dict(failures or {}),
    )


class _Grouping:
    """Who is ranked by a metric, and in which groups."""

    def __init__(
        self,
        runs: Mapping[str, Sequence[Summary]],
        metric: Metric,
        ignores: Mapping[str, Sequence[IgnoredDemand]],
        rule: RankingRule,
    ) -> None:
        self.runs = runs
        self.metric = metric
        self.ignores = {
            engine: mattering_demands(ignores.get(engine, ()), ran) for engine, ran in runs.items()
        }
        values = {engine: [metric.value(s) for s in ran] for engine, ran in runs.items()}
        #: The values of engines that have one with every seed.
        self.known = {
            engine: [value for value in observed if value is not None]
            for engine, observed in values.items()
            if None not in observed
        }
        self.finished = {engine: _finished(ran) for engine, ran in runs.items()}
        self.apart = self._apart(rule.everyone)
        self.groups = self._groups(rule.threshold)

    def _apart(self, everyone: bool) -> dict[str, str]:
        """Why engines are not ranked."""
        apart = {engine: "no job finished" for engine in self.runs if engine not in self.known}
        able = [engine for engine in self.known if not self.ignores[engine]]
        if able and not everyone:
            apart |= {
                engine: f"{IGNORES} {ignored_words(self.ignores[engine], share_passed_over(ran))}"
                for engine, ran in self.runs.items()
                if engine in self.known and engine not in able
            }
        else:
            able = list(self.known)
        most = max((self.finished[engine] for engine in able), default=0.0)
        starving = [engine for engine in able if self.finished[engine] < NEARLY_ALL * most]
        return apart | dict.fromkeys(starving, "finished fewer jobs")

    def _groups(self, threshold: float) -> list[list[str]]:
        """Ranked engines, lowest first; those that tie with the first of a group belong to it."""
        left = sorted((engine for engine in self.known if engine not in self.apart), key=self.key)
        # Every engine is compared with the best: the more there are, the more chance would find.
        confidence = 1 - (1 - CONFIDENCE) / max(1, len(left) - 1)
        groups = []
        while left:
            first = left[0]
            ties = [
                engine
                for engine in left[1:]
                if not self._is_worse(engine, first, threshold, confidence)
            ]
            groups.append([first, *ties])
            left = [engine for engine in left if engine not in groups[-1]]
        return groups

    def key(self, engine: str) -> tuple[float, float, str]:
        """By the metric, then by mean JCT, so that ties are not decided alphabetically."""
        return (middle.median(self.known[engine]), _mean_jct(self.runs[engine]), engine)

    def _is_worse(self, engine: str, than: str, threshold: float, confidence: float) -> bool:
        ratio = self.ratio(engine, than, confidence)
        # With one seed the interval has no width, and only the size counts.
        return ratio.value >= 1 + threshold and ratio.low > 1

    def ratio(self, engine: str, to: str, confidence: float = CONFIDENCE) -> Ratio:
        stream = self.stream(engine).child(to)
        return ratio_of_medians(self.known[engine], self.known[to], stream, confidence)

    def stream(self, engine: str) -> Random:
        return Random(_STREAM).child(self.metric.name).child(engine)


def _order(standing: EngineRank) -> tuple[bool, bool, int, float, float, str]:
    estimate = standing.estimate
    value = estimate.value if estimate else 0.0
    place = standing.place or 0
    return (not place, estimate is None, place, value, standing.mean_jct, standing.engine)


def _mean_jct(summaries: Sequence[Summary]) -> float:
    return middle.median(summary.jct.mean for summary in summaries)


def _standing(engine: str, contest: _Grouping) -> EngineRank:
    summaries = contest.runs[engine]
    best = contest.groups[0][0] if contest.groups else None
    is_known = engine in contest.known
    places = (n for n, group in enumerate(contest.groups, 1) if engine in group)
    return EngineRank(
        engine=engine,
        fleet=summaries[0].fleet,
        place=next(places, None),
        apart=contest.apart.get(engine, ""),
        estimate=median(contest.known[engine], contest.stream(engine)) if is_known else None,
        ratio=contest.ratio(engine, best) if best not in (None, engine) and is_known else None,
        finished=contest.finished[engine],
        mean_jct=_mean_jct(summaries),
        breakdown=_breakdown(summaries),
        conflict_fraction=middle.median(s.conflict_fraction for s in summaries),
        violating=_violating(summaries),
        split_gangs=_split_gangs(summaries),
        passed_over=share_passed_over(summaries),
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
        kinds=_parts([s.kinds for s in summaries]),
        owners=_parts([s.owners for s in summaries]),
        ignores=contest.ignores[engine],
    )


def _parts(parts: Sequence[Mapping[str, KindSummary]]) -> dict[str, KindRank]:
    """Empty if all jobs are of one kind: the whole says it already."""
    names = sorted({name for part in parts for name in part})
    return {} if len(names) < 2 else {name: _part(name, parts) for name in names}


def _part(name: str, parts: Sequence[Mapping[str, KindSummary]]) -> KindRank:
    mine = [part[name] for part in parts if name in part]
    observed = [each.jct.p50 for each in mine if each.jct.count]
    able = sum(each.jobs - each.jobs_endless for each in mine)
    finished = sum(each.jobs_finished for each in mine) / able if able else None
    return KindRank(middle.median(observed) if observed else None, finished)


def _split_gangs(summaries: Sequence[Summary]) -> float | None:
    gangs = sum(s.counts.gangs for s in summaries)
    return sum(s.counts.gangs_split for s in summaries) / gangs if gangs else None


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


def table(comparison: Ranking, metric: Metric, most: int | None = None) -> Table:
    """A row for each place, at most as many as asked for; engines that tie share theirs."""
    columns = (
        Column("place", "place", Unit.COUNT),
        Column("median", "median", metric.unit),
        Column("low", "95 % from", metric.unit),
        Column("high", "to", metric.unit),
        Column("ratio", "times best", Unit.NUMBER),
        Column("finished", "jobs finished", Unit.SHARE),
        Column("engines", "engines"),
    )
    places: dict[int, list[EngineRank]] = {}
    for standing in comparison.ranked():
        assert standing.place is not None
        places.setdefault(standing.place, []).append(standing)
    rows: list[tuple[Value, ...]] = []
    for place, members in list(places.items())[:most]:
        first = members[0]
        e = first.estimate
        assert e is not None
        ratio = first.ratio.value if first.ratio else 1.0
        least = min(member.finished for member in members)
        names = ", ".join(member.engine for member in members)
        rows.append((place, e.value, e.low, e.high, ratio, least, names))
    return Table(columns, tuple(rows))


def apart_table(comparison: Ranking, metric: Metric) -> Table:
    """The engines that are not ranked, and why."""
    columns = (
        Column("engine", "engine"),
        Column("median", "median", metric.unit),
        Column("finished", "jobs finished", Unit.SHARE),
        Column("split_gangs", "gangs split", Unit.SHARE),
        Column("passed_over", "passed over", Unit.SHARE),
        Column("violating", "violating", Unit.SHARE),
        Column("apart", "why"),
    )
    rows: list[tuple[Value, ...]] = [
        (
            s.engine,
            s.estimate.value if s.estimate else None,
            s.finished,
            s.split_gangs,
            s.passed_over,
            s.violating,
            s.apart,
        )
        for s in comparison.standings
        if s.place is None
    ]
    rows += [
        (engine, None, None, None, None, None, f"failed: {error}")
        for engine, error in comparison.failures.items()
    ]
    return _without_empty(Table(columns, tuple(rows)))


def kinds_table(standings: Sequence[EngineRank], parts: str) -> Table | None:
    """Median JCT and finished jobs by kind (`parts` is "kinds") or owner; None if there is only one."""
    names = [
        name
        for name in (getattr(standings[0], parts) if standings else {})
        if any(getattr(s, parts)[name].finished is not None for s in standings)
    ]
    if len(names) < 2:
        return None
    columns = [Column("engine", "engine")]
    for name in names:
        columns += [
            Column(f"{name}_jct", name or "(no owner)", Unit.TIME),
            Column(f"{name}_finished", "finished", Unit.SHARE),
        ]
    rows: list[tuple[Value, ...]] = []
    for standing in standings:
        ranks: dict[str, KindRank] = getattr(standing, parts)
        cells: list[Value] = [standing.engine]
        for name in names:
            rank = ranks.get(name, KindRank(None, None))
            cells += [rank.jct, rank.finished]
        rows.append(tuple(cells))
    return _without_empty(Table(tuple(columns), tuple(rows)))


def _without_empty(table: Table) -> Table:
    columns = enumerate(table.columns)
    return table.without(
        [c.name for at, c in columns if all(row[at] is None for row in table.rows)]
    )


def causes(standings: Sequence[EngineRank]) -> Table:
    """What contributes to the metric: the parts of the mean JCT, conflicts, messages, utilisation."""
    dimensions = standings[0].utilisation
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
        for s in standings
    ]
    shown = Table(columns, tuple(rows))
    is_judged = any(s.violating is not None for s in standings)
    return shown if is_judged else shown.without(["violating"])


def bars(standings: Sequence[EngineRank], metric: Metric, width: int) -> list[str]:
    text = Column("", "", metric.unit).text
    return plots.bars(
        [
            plots.Bar(
                s.engine, s.estimate.value, s.estimate.low, s.estimate.high, text(s.estimate.value)
            )
            for s in standings
            if s.estimate is not None
        ],
        width,
    )


def breakdown(standings: Sequence[EngineRank], width: int) -> list[str]:
    """Empty if no engine finished a job."""
    rows = {s.engine: s.breakdown.parts() for s in standings if s.breakdown}
    if not rows:
        return []
    return plots.stacked(rows, BREAKDOWN_NAMES, format_duration, width)


def spread(standings: Sequence[EngineRank], width: int) -> list[str]:
    rows = {s.engine: s.quantiles for s in standings}
    return plots.quantiles(rows, ("median", "p90", "p99", "largest"), format_duration, width)
