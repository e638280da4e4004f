"""A comparison in sentences: which engine is best, by how much, how certain it is, and where others
lose."""

from __future__ import annotations

from collections import Counter
from typing import Final

from argosy.measures.statistics import Ratio
from argosy.model.units import format_duration
from argosy.report.comparison import EngineRank, Ranking
from argosy.report.metrics import Metric
from argosy.report.tables import format_share

_PLACES: Final = ("waiting for an attempt", "being placed", "placed and not yet done")
#: If one side of an interval is this many times the other, a standard error alone would mislead.
_SKEWED: Final = 2.0


def verdict(comparison: Ranking, metric: Metric, *, has_seeds: bool = True) -> list[str]:
    """Which engine is best and by how much, in the style of hyperfine. `has_seeds`: whether more than
    one seed is possible."""
    if comparison.best is None:
        return [f"No engine has a {metric.title}: no job finished."]
    best = comparison.standing(comparison.best)
    others = [s for s in comparison.standings if s.ratio is not None]
    equals = [s for s in others if s.ratio is not None and s.ratio.value == 1]
    if equals:
        lines = _equal(comparison, [best, *equals], metric)
    else:
        lines = [_winner(comparison, metric) + (":" if others else ".")]
    lines += [f"  {_times(comparison, s, metric)}" for s in others if s not in equals]
    lines += [
        f"  {s.engine} has no {metric.title}: with some seed, no job finished"
        for s in comparison.standings
        if s.estimate is None
    ]
    most = max(s.finished for s in comparison.standings)
    lines += [
        f"  {s.engine} finished {format_share(s.finished)} of all jobs; its times omit the rest"
        for s in comparison.standings
        # A difference too small to show is not worth a line.
        if format_share(s.finished) != format_share(most)
    ]
    lines += [
        f"  {note}" for note in _notes(comparison, {best.engine, *(s.engine for s in equals)})
    ]
    if len(comparison.seeds) == 1 and has_seeds:
        lines.append("  one seed says nothing about uncertainty; try --seeds 5")
    return lines


def _notes(comparison: Ranking, best: set[str]) -> list[str]:
    """What the best engines ignore, and what only some of the others do."""
    passed_over = [
        (s.engine, note, note.removeprefix(s.engine))
        for s in comparison.standings
        for note in s.notes
    ]
    times = Counter(what for _, _, what in passed_over)
    return [
        note
        for engine, note, what in passed_over
        if engine in best or times[what] < len(comparison.standings)
    ]


def _equal(comparison: Ranking, equals: list[EngineRank], metric: Metric) -> list[str]:
    """For engines equal by the metric: what else could distinguish them."""
    if len(equals) == len(comparison.standings):
        first = f"All engines are equal by {metric.title}."
    else:
        *names, last = (s.engine for s in equals)
        first = f"{', '.join(names)} and {last} are equal by {metric.title}, and best."
    if len({s.mean_jct for s in equals}) == 1:
        return [first]
    means = ", ".join(f"{s.engine} {format_duration(s.mean_jct)}" for s in equals)
    return [f"{first} The mean JCT differs: {means}."]


def _winner(comparison: Ranking, metric: Metric) -> str:
    # An engine that finished fewer jobs does not count, however fast it was.
    ratios = [s.ratio for s in comparison.standings if s.ratio is not None and s.ratio.value >= 1]
    if len(comparison.seeds) > 1 and ratios and not any(ratio.is_clear for ratio in ratios):
        return f"No engine is clearly best by {metric.title}; {comparison.best} has the lowest"
    return f"{comparison.best} is best by {metric.title}"


def _times(comparison: Ranking, standing: EngineRank, metric: Metric) -> str:
    ratio, engine = standing.ratio, standing.engine
    assert ratio is not None
    seeds = len(comparison.seeds)
    if ratio.value < 1:
        return (
            f"{engine} has only {ratio.value:.3g} times the {metric.title}, but is not best because it"
            " finished fewer jobs"
        )
    if ratio.value == float("inf"):
        return f"{metric.better} than {engine}: {comparison.best} is at zero"
    uncertainty = f" ± {ratio.uncertainty:.2f}" if seeds > 1 else ""
    line = f"{ratio.value:.2f}{uncertainty} times {metric.better} than {engine}"
    interval = f"95 % from {ratio.low:.2f} to {ratio.high:.2f}"
    if seeds > 1 and not ratio.is_clear:
        line += f" (no clear difference: {interval})"
    elif seeds > 1 and _is_skewed(ratio):
        line += f" ({interval})"
    return line


def _is_skewed(ratio: Ratio) -> bool:
    below, above = ratio.value - ratio.low, ratio.high - ratio.value
    # Differences that two decimals do not show are not worth mentioning.
    return abs(above - below) >= 0.01 and max(below, above) > _SKEWED * min(below, above)


def reasons(comparison: Ranking) -> list[str]:
    """Where each engine loses (or regains) time against the best, in one sentence each."""
    if comparison.best is None:
        return []
    best = comparison.standing(comparison.best)
    lines = []
    for other in comparison.standings:
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
