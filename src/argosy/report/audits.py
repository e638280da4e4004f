"""An audit as tables: what each scheduler held, and how schedulers got along."""

from __future__ import annotations

from typing import Final

from argosy.model.units import format_amount
from argosy.records.audit import Audit
from argosy.report.tables import Column, Table, Unit, Value, csv_text

#: Units of resource-time, by resource; others are in plain units.
_HOURS: Final = {"cpu": "core-hours", "memory": "GiB-hours"}
#: Fields of `SchedulerAudit` that are counts, with their headings.
_COUNTS: Final = {
    "claims": "claims",
    "jobs_admitted": "jobs admitted",
    "peak_jobs": "at once",
    "preemptions_made": "preempted",
    "preemptions_suffered": "was preempted",
    "conflicts_lost": "conflicts lost",
    "conflicts_caused": "caused",
}


def holdings(audit: Audit) -> Table:
    """One row per scheduler and resource."""
    columns = (
        Column("name", "scheduler"),
        Column("resource", "resource"),
        Column("hours", "claimed"),
        Column("share", "of the cell", Unit.SHARE),
        Column("peak", "peak"),
        Column("peak_share", "of the cell", Unit.SHARE),
        Column("limit", "limit"),
        Column("peak_of_limit", "peak of limit", Unit.SHARE),
    )
    rows: list[tuple[Value, ...]] = [
        (
            scheduler.name,
            name,
            f"{held.hours:,.6g} {_HOURS.get(name, f'{name}-hours')}",
            held.share,
            format_amount(name, held.peak),
            held.peak_share,
            None if held.limit is None else format_amount(name, held.limit),
            held.peak_of_limit,
        )
        for scheduler in audit.schedulers
        for name, held in scheduler.resources.items()
    ]
    is_limited = any(row[-1] is not None for row in rows)
    table = Table(columns, tuple(rows))
    return table if is_limited else table.without({"limit", "peak_of_limit"})


def dealings(audit: Audit) -> Table:
    """One row per scheduler: its admissions, preemptions, conflicts and refusals."""
    columns = (
        Column("name", "scheduler"),
        *(Column(name, title, Unit.COUNT) for name, title in _COUNTS.items()),
        Column("limit_refusals", "refused by limits", Unit.COUNT),
    )
    rows = tuple(
        (
            scheduler.name,
            *(getattr(scheduler, name) for name in _COUNTS),
            sum(scheduler.limit_refusals.values()),
        )
        for scheduler in audit.schedulers
    )
    return Table(columns, rows)


def sections(audit: Audit, width: int | None) -> list[list[str]]:
    found = [
        [f"{audit.scenario}, seed {audit.seed}: who used what"],
        holdings(audit).lines(width),
        dealings(audit).lines(width),
    ]
    if audit.claims_lost_to_nobody:
        count = f"{audit.claims_lost_to_nobody:,}"
        found.append([f"claims refused although nobody had claimed the machine: {count}"])
    return found


def csv(audit: Audit) -> str:
    """One row per scheduler."""
    records: list[dict[str, Value]] = []
    for scheduler in audit.schedulers:
        record: dict[str, Value] = {"name": scheduler.name, "engine": scheduler.engine}
        for resource, held in scheduler.resources.items():
            for field in held.__struct_fields__:
                record[f"{resource}_{field}"] = getattr(held, field)
        for field in (*_COUNTS, "job_limit", "claims_lost", "claims_caused"):
            record[field] = getattr(scheduler, field)
        record["limit_refusals"] = sum(scheduler.limit_refusals.values())
        records.append(record)
    return csv_text(records, list(records[0]))
