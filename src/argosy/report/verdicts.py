"""A comparison in sentences: who is best, by how much, how surely, and where the others lose."""

from __future__ import annotations

from typing import Final

from argosy.model.units import format_duration
from argosy.report.comparison import Comparison
from argosy.report.metrics import Metric
from argosy.report.tables import format_share
from argosy.runs.statistics import Ratio

_PLACES: Final = ("waiting for an attempt", "being placed", "at the machine")


def verdict(comparison: Comparison, metric: Metric) -> list[str]:
    """Who is best and by how much, as hyperfine would say it."""
    if comparison.best is None:
        return [f"No engine has a {metric.title}: no job finished."]
    others = [s for s in comparison.standings if s.ratio is not None]
    lines = [_winner(comparison, metric) + (":" if others else ".")]
    for s in others:
        assert s.ratio is not None
        lines.append("  " + _times(comparison, s.engine, s.ratio, metric))
    lines += [
        f"  {s.engine} has no {metric.title}: under some seed no job finished"
        for s in comparison.standings
        if s.estimate is None
    ]
    most = max(s.finished for s in comparison.standings)
    lines += [
        f"  {s.engine} finished {format_share(s.finished)} of all jobs; its times omit the rest"
        for s in comparison.standings
        if s.finished < most
    ]
    if len(comparison.seeds) == 1:
        lines.append("  one seed says nothing about uncertainty; try --seeds 5")
    return lines


def _winner(comparison: Comparison, metric: Metric) -> str:
    ratios = [s.ratio for s in comparison.standings if s.ratio is not None]
    if ratios and all(ratio.value == 1 for ratio in ratios):
        return f"All engines are equal by {metric.title}; {comparison.best} has the least mean JCT"
    if len(comparison.seeds) > 1 and ratios and not any(ratio.is_clear for ratio in ratios):
        return f"No engine is clearly best by {metric.title}; {comparison.best} has the least"
    return f"{comparison.best} is best by {metric.title}"


def _times(comparison: Comparison, engine: str, ratio: Ratio, metric: Metric) -> str:
    seeds = len(comparison.seeds)
    if ratio.value < 1:
        return f"{engine} has a smaller value, but finished fewer jobs"
    if ratio.value == float("inf"):
        return f"{metric.better} than {engine} beyond any ratio: {comparison.best} is at zero"
    if ratio.value == 1 and not ratio.is_clear:
        return f"the same as {engine}"
    uncertainty = f" ± {ratio.uncertainty:.2f}" if seeds > 1 else ""
    line = f"{ratio.value:.2f}{uncertainty} times {metric.better} than {engine}"
    if seeds > 1 and not ratio.is_clear:
        line += f" (no clear difference: 95 % from {ratio.low:.2f} to {ratio.high:.2f})"
    return line


def reasons(comparison: Comparison) -> list[str]:
    """Where each engine loses (or wins back) time against the best, in one sentence each."""
    if comparison.best is None:
        return []
    best = comparison.standing(comparison.best)
    lines = []
    for other in comparison.standings:
        if other.engine == best.engine:
            continue
        pairs = zip(best.breakdown.parts(), other.breakdown.parts(), _PLACES, strict=True)
        changes = [(theirs - ours, name) for ours, theirs, name in pairs]
        total = sum(change for change, _ in changes)
        more = "more" if total >= 0 else "less"
        parts = ", ".join(f"{_signed(change)} {name}" for change, name in changes if change)
        lines.append(
            f"A job takes {format_duration(abs(total))} {more} on average with {other.engine}"
            + (f": {parts}." if parts else ".")
        )
    return lines


def _signed(change: float) -> str:
    return ("+" if change >= 0 else "-") + format_duration(abs(change))
