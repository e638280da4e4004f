"""The result of a campaign as text, JSON and CSV."""

from __future__ import annotations

import textwrap
from typing import Any, Final

import msgspec

from argosy.campaign.campaign import CampaignResult
from argosy.campaign.findings import CHECKS
from argosy.report.tables import Column, Table, Unit

_INDENT: Final = "  "


def table(result: CampaignResult) -> Table:
    """A row an engine; a column for each check that failed at all."""
    failing = [check for check in CHECKS if any(check in row.checks for row in result.rows)]
    is_refused = any(row.refused for row in result.rows)
    return Table(
        (
            Column("engine", "engine"),
            Column("runs", "runs", Unit.COUNT),
            Column("failed", "failed", Unit.COUNT),
            *((Column("refused", "refused", Unit.COUNT),) if is_refused else ()),
            *(Column(check, check, Unit.COUNT) for check in failing),
        ),
        tuple(
            (
                row.engine,
                row.runs,
                row.failed,
                *((row.refused,) if is_refused else ()),
                *(row.checks.get(check, 0) for check in failing),
            )
            for row in result.rows
        ),
    )


def sections(result: CampaignResult, width: int | None) -> list[list[str]]:
    found = [table(result).lines(width)]
    for failure in result.failures:
        often = "once" if failure.times == 1 else f"{failure.times} times"
        lines = [f"{failure.engine}: {failure.check}, {often}"]
        lines += _wrapped(f"{CHECKS[failure.check]}: {failure.detail.splitlines()[0]}", width)
        if failure.command:
            lines.append(f"{_INDENT}{failure.command}")
        found.append(lines)
    return found


def verdict(result: CampaignResult) -> str:
    if not result.failures:
        return f"{result.runs:,} runs, nothing wrong"
    runs, kinds = sum(row.failed for row in result.rows), len(result.failures)
    ways = "in one way" if kinds == 1 else f"in {kinds} ways"
    return f"{result.runs:,} runs, {runs:,} failed, {ways}"


def document(result: CampaignResult) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.to_builtins(result)
    return {"runs": result.runs, **value}


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None:
        return [f"{_INDENT}{text}"]
    return textwrap.wrap(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT)
