"""What came of priorities that engines ignore."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from argosy.records.summary import Summary
from argosy.report.tables import format_share
from argosy.scenarios.ignored_demands import PRIORITIES, IgnoredDemand

#: Up to this share, jobs that were passed over do not set an engine apart: a scheduler that decides
#: while others do passes a job over now and then.
FEW: Final = 0.01


def share_passed_over(summaries: Iterable[Summary]) -> float | None:
    """Of the jobs of higher precedence than others; None without any."""
    counts = [summary.counts for summary in summaries]
    preceding = sum(each.jobs_preceding for each in counts)
    return sum(each.jobs_passed_over for each in counts) / preceding if preceding else None


def mattering_demands(
    ignored: Sequence[IgnoredDemand], summaries: Sequence[Summary]
) -> tuple[IgnoredDemand, ...]:
    """Without priorities if hardly a job was passed over in these runs."""
    if (share_passed_over(summaries) or 0.0) > FEW:
        return tuple(ignored)
    return tuple(demand for demand in ignored if demand.what != PRIORITIES)


def ignored_words(ignored: Iterable[IgnoredDemand], passed_over: float | None) -> str:
    """Such as ``gangs, priorities: 12 % of the jobs of higher precedence were passed over``."""
    share = format_share(passed_over or 0.0)
    return ", ".join(
        f"{demand.what}: {share} of the jobs of higher precedence were passed over"
        if demand.what == PRIORITIES
        else demand.what
        for demand in ignored
    )


def ignored_notes(ignored: Sequence[IgnoredDemand], summary: Summary) -> list[str]:
    """What a run's engines ignored, a sentence each."""
    share = share_passed_over([summary])
    return [
        f"{demand.engine} ignores {ignored_words([demand], share)}"
        if demand.what == PRIORITIES
        else str(demand)
        for demand in mattering_demands(ignored, [summary])
    ]
