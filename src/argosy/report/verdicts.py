"""A comparison in sentences: which engine is best, by how much, how certain it is, and where others
lose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from argosy.measures.statistics import Ratio
from argosy.model.units import format_duration
from argosy.report.comparison import IGNORES, NEARLY_ALL, EngineRank, KindRank, Ranking
from argosy.report.metrics import Metric, find_metric
from argosy.report.priorities import ignored_words
from argosy.report.tables import format_share
from argosy.scenarios.ignored_demands import PRIORITIES

_PLACES: Final = ("waiting for an attempt", "being placed", "placed and not yet done")
#: If one side of an interval is this many times the other, a standard error alone would mislead.
_SKEWED: Final = 2.0


def verdict(
    comparison: Ranking, metric: Metric, *, has_seeds: bool = True, most: int | None = None
) -> list[str]:
    """Which engine is best and by how much, in the style of hyperfine. `has_seeds`: whether more than
    one seed is possible; `most`: how many of the slower engines to list."""
    if comparison.best is None:
        lines = [f"No engine has a {metric.title}: no job finished."]
        return lines + _failures(comparison)
    slower = [s for s in comparison.ranked() if s.place != 1]
    lines = [_first(comparison, metric, is_last=not slower)]
    lines += [f"  {_times(comparison, s, metric)}" for s in slower[:most]]
    if most is not None and len(slower) > most:
        lines.append(f"  ... and {len(slower) - most} more")
    lines += _other_statistics(comparison, metric)
    lines += _parts(comparison, "kinds", "jobs of kind {}")
    lines += _parts(comparison, "owners", "jobs of {}")
    lines += [
        f"  {s.engine} has no {metric.title}: with some seed, no job finished"
        for s in comparison.standings
        if s.estimate is None
    ]
    lines += _unfinished(comparison)
    lines += _ignored(comparison)
    lines += _failures(comparison)
    if len(comparison.seeds) == 1 and has_seeds:
        lines.append("  one seed says nothing about uncertainty; try --seeds 5")
    return lines


def _first(comparison: Ranking, metric: Metric, *, is_last: bool) -> str:
    """Who leads."""
    leaders = [comparison.standing(engine) for engine in comparison.leaders]
    end = "." if is_last else ":"
    if len(leaders) == 1:
        return f"{comparison.best} is best by {metric.title}{end}"
    if is_last:
        who = "All ranked engines" if len(leaders) < len(comparison.standings) else "All engines"
    else:
        who = _listed(s.engine for s in leaders)
    means = _means(comparison, leaders)
    if len({s.estimate.value for s in leaders if s.estimate}) == 1:
        best = "" if is_last else ", and best"
        return f"{who} are equal by {metric.title}{best}{means}{end}"
    best = "" if is_last else " for first place"
    chance = ", or no more than chance would explain" if len(comparison.seeds) > 1 else ""
    why = f"less than {format_share(comparison.threshold)} apart{chance}"
    return f"{who} tie{best} by {metric.title} ({why}){means}{end}"


def _means(comparison: Ranking, leaders: Sequence[EngineRank]) -> str:
    """What else distinguishes engines that tie: the extremes of their mean JCT, if far enough apart."""
    ordered = sorted(leaders, key=lambda s: (s.mean_jct, s.engine))
    low, high = ordered[0], ordered[-1]
    if high.mean_jct < (1 + comparison.threshold) * low.mean_jct or low.mean_jct == high.mean_jct:
        return ""
    means = [f"{s.engine} {format_duration(s.mean_jct)}" for s in (low, high)]
    return f"; their mean JCT differs, from {means[0]} to {means[1]}"


def _other_statistics(comparison: Ranking, metric: Metric) -> list[str]:
    """Where the mean or the tail of the same times has other leaders."""
    lines = []
    for name, engines in comparison.elsewhere.items():
        title = find_metric(name).title
        if title != metric.title and not set(engines) & set(comparison.leaders):
            are = "is" if len(engines) == 1 else "are"
            lines.append(f"  by {title}, {_listed(engines)} {are} best")
    return lines


def _parts(comparison: Ranking, parts: str, title: str) -> list[str]:
    """The kinds of jobs, or owners, for which the best engine is not the best."""
    assert comparison.best is not None
    best: dict[str, KindRank] = getattr(comparison.standing(comparison.best), parts)
    lines = []
    for name, mine in best.items():
        ranks: dict[str, KindRank] = {
            s.engine: getattr(s, parts)[name]
            for s in comparison.ranked()
            if name in getattr(s, parts)
        }
        who = title.format(name or "nobody")
        shares = {engine: rank.finished or 0.0 for engine, rank in ranks.items()}
        finisher = max(shares, key=lambda engine: shares[engine])
        enough = NEARLY_ALL * shares[finisher]
        if shares[comparison.best] < enough:
            lines.append(
                f"  of {who}, {comparison.best} finishes only"
                f" {format_share(shares[comparison.best])}, {finisher}"
                f" {format_share(shares[finisher])}"
            )
            continue
        times = {e: rank.jct for e, rank in ranks.items() if rank.jct and shares[e] >= enough}
        fastest = min(times, key=lambda engine: times[engine], default=comparison.best)
        if mine.jct and mine.jct >= (1 + comparison.threshold) * times[fastest]:
            ratio = mine.jct / times[fastest]
            lines.append(
                f"  for {who}, {fastest} is {ratio:.2f} times faster than {comparison.best}"
            )
    return lines


def _unfinished(comparison: Ranking) -> list[str]:
    most = max(s.finished for s in comparison.standings)
    return [
        f"  {s.engine} finished {format_share(s.finished)} of all jobs; its times omit the rest"
        for s in comparison.standings
        # A difference too small to show is not worth a line.
        if format_share(s.finished) != format_share(most)
    ]


def _ignored(comparison: Ranking) -> list[str]:
    """What engines ignore, once for all of them."""
    asked = {demand.what: demand.asked for s in comparison.standings for demand in s.ignores}
    if not asked:
        return []
    demands = ", ".join(f"{what} ({who})" for what, who in asked.items())
    apart = [s for s in comparison.standings if s.place is None and s.apart.startswith(IGNORES)]
    if apart:
        are, they = (
            ("engine is", "it ignores") if len(apart) == 1 else ("engines are", "they ignore")
        )
        return [
            f"  {len(apart)} {are} not ranked because {they} what the scenario asks for: {demands}"
        ]
    return [
        f"  {standing.engine} {IGNORES} {ignored_words([demand], standing.passed_over)}"
        if demand.what == PRIORITIES
        else f"  {standing.engine} {IGNORES} {demand.what} ({demand.asked})"
        for standing in comparison.standings
        for demand in standing.ignores
    ]


def _failures(comparison: Ranking) -> list[str]:
    return [f"  {engine} failed: {error}" for engine, error in comparison.failures.items()]


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _times(comparison: Ranking, standing: EngineRank, metric: Metric) -> str:
    ratio, engine = standing.ratio, standing.engine
    assert ratio is not None
    seeds = len(comparison.seeds)
    if ratio.value == float("inf"):
        return f"{metric.better} than {engine}: {comparison.best} is at zero"
    uncertainty = f" ± {ratio.uncertainty:.2f}" if seeds > 1 else ""
    line = f"{ratio.value:.2f}{uncertainty} times {metric.better} than {engine}"
    if seeds > 1 and _is_skewed(ratio):
        line += f" (95 % from {ratio.low:.2f} to {ratio.high:.2f})"
    return line


def _is_skewed(ratio: Ratio) -> bool:
    below, above = ratio.value - ratio.low, ratio.high - ratio.value
    # Differences that two decimals do not show are not worth mentioning.
    return abs(above - below) >= 0.01 and max(below, above) > _SKEWED * min(below, above)


def reasons(comparison: Ranking, most: int | None = None) -> list[str]:
    """Where each engine loses (or regains) time against the best, in one sentence each; only for the
    first `most` engines."""
    if comparison.best is None:
        return []
    best = comparison.standing(comparison.best)
    lines = []
    for other in comparison.standings[:most]:
        if other.engine == best.engine or best.breakdown is None or other.breakdown is None:
            continue
        pairs = zip(best.breakdown.parts(), other.breakdown.parts(), _PLACES, strict=True)
        changes = [(theirs - ours, name) for ours, theirs, name in pairs]
        total = sum(change for change, _ in changes)
        more = "more" if total >= 0 else "less"
        parts = ", ".join(f"{_signed(change)} {name}" for change, name in changes if change)
        lines.append(
            f"A finished job took {format_duration(abs(total))} {more} on average with"
            f" {other.engine} than with {best.engine}: {parts}."
            if parts
            else f"A finished job took as long with {other.engine} as with {best.engine}."
        )
    return lines


def _signed(change: float) -> str:
    return ("+" if change >= 0 else "-") + format_duration(abs(change))
