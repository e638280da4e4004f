"""A run's summary as tables, and as one flat row that runs of all engines share."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from argosy.records.summary import Distribution, SpeedUp, Summary
from argosy.report.tables import Column, Table, Unit, Value

#: Fields of `Summary` that are distributions of times, with their headings.
TIMES: Final = {
    "wait_time": "wait time",
    "placement_latency": "placement latency",
    "jct": "JCT",
    "response_time": "response time",
}
#: Fields of `Distribution` except the count, with their headings.
STATISTICS: Final = {
    "mean": "mean",
    "p50": "median",
    "p90": "p90",
    "p99": "p99",
    "largest": "largest",
}


def counts(summary: Summary) -> Table:
    """Where all tasks are when the run ends, and what happened to them on the way."""
    c = summary.counts
    columns = (
        Column("state", "at the end"),
        Column("jobs", "jobs", Unit.COUNT),
        Column("tasks", "tasks", Unit.COUNT),
    )
    rows: list[tuple[Value, ...]] = [
        ("submitted", c.jobs, c.tasks),
        ("finished", c.jobs_finished, c.tasks_finished),
    ]
    if c.jobs_endless:
        rows.append(("run until stopped", c.jobs_endless, None))
    if c.jobs_passed_over:
        rows.append(("passed over", c.jobs_passed_over, None))
    # States without tasks would only distract.
    rows += [
        (state, jobs, count)
        for state, jobs, count in (
            ("running", None, c.tasks_running),
            ("queued", None, c.tasks_queued),
            ("pending", None, c.tasks_pending),
            ("abandoned", c.jobs_abandoned or None, c.tasks_abandoned),
            ("failed", None, c.tasks_failed),
            ("cancelled", None, c.tasks_cancelled),
            ("preemptions", None, c.preemptions),
            ("losses", None, c.losses),
        )
        if count
    ]
    return Table(columns, tuple(rows))


def times(summary: Summary) -> Table:
    columns = (
        Column("time", "time"),
        *(Column(name, title, Unit.TIME) for name, title in STATISTICS.items()),
    )
    rows = []
    found: list[tuple[str, Distribution]] = [
        (title, getattr(summary, field)) for field, title in TIMES.items()
    ]
    if summary.placement.latency.count:
        found.append(("placing under constraints", summary.placement.latency))
    for title, observed in found:
        known = observed.count > 0
        rows.append((title, *(getattr(observed, name) if known else None for name in STATISTICS)))
    return Table(columns, tuple(rows))


#: The parts of `Timeline` in chronological order, with descriptions.
LIVES: Final = {
    "w2s": "w2s, waiting for a decision",
    "s": "s, deciding",
    "tst": "TST, at the scheduler",
    "w2x": "w2x, waiting at the machine",
    "x": "x, running",
    "tct": "TCT, total",
}


def lives(summary: Summary) -> Table:
    """The parts of tasks' lives, and how far those of one job drift apart; empty if not kept."""
    columns = (
        Column("part", "life of tasks"),
        *(Column(name, title, Unit.TIME) for name, title in STATISTICS.items()),
    )
    life = summary.timeline
    found: list[tuple[str, Distribution]] = [
        (title, getattr(life, field)) for field, title in LIVES.items()
    ]
    found += [(f"spread of a job when {stage}", of) for stage, of in life.spread.items()]
    rows = tuple(
        (title, *(getattr(observed, name) for name in STATISTICS))
        for title, observed in found
        if observed.count
    )
    return Table(columns, rows)


def schedulers(summary: Summary) -> Table:
    """One row per scheduler, without columns in which all are equal."""
    columns = (
        Column("name", "scheduler"),
        Column("engine", "engine"),
        Column("jobs", "jobs", Unit.COUNT),
        Column("busyness", "busy", Unit.SHARE),
        Column("transactions", "commits", Unit.COUNT),
        Column("conflicts", "conflicts", Unit.COUNT),
        Column("refused", "refused", Unit.COUNT),
        Column("messages_sent", "sent", Unit.COUNT),
        Column("crashes", "crashes", Unit.COUNT),
    )
    rows = tuple(
        (
            s.name,
            s.engine,
            s.jobs,
            s.busyness,
            s.transactions,
            s.conflicts,
            sum(s.refused.values()),
            s.messages_sent,
            s.crashes,
        )
        for s in summary.schedulers
    )
    hidden = set()
    if len({s.engine for s in summary.schedulers}) == 1:
        hidden.add("engine")
    if not any(s.crashes for s in summary.schedulers):
        hidden.add("crashes")
    if not summary.network:
        hidden.add("messages_sent")
    return Table(columns, rows).without(hidden)


def totals(summary: Summary) -> Table:
    """Totals: how full the cell was, how often schedulers conflicted, what they sent."""
    used = (
        (f"{name} used", Column("", "", Unit.SHARE).text(share))
        for name, share in summary.utilisation.items()
    )
    refused: dict[str, int] = {}
    for scheduler in summary.schedulers:
        for why, count in scheduler.refused.items():
            refused[why] = refused.get(why, 0) + count
    rows: list[tuple[Value, ...]] = [
        ("virtual time", Column("", "", Unit.TIME).text(summary.ended_at)),
        *used,
        ("conflicts", f"{summary.conflict_fraction:.3g} per successful transaction"),
    ]
    if summary.speed_up is not None:
        rows.append(("speed-up", _speed_up(summary.speed_up)))
    if refused:
        rows.append(("refused claims", _listed(refused)))
    if summary.network:
        sent = {"by schedulers": messages(summary), "notices from machines": notices(summary)}
        rows.append(("messages", _listed(sent | _mishaps(summary)) or "none"))
    return Table((Column("what", "over the run"), Column("value", "")), tuple(rows))


def placement(summary: Summary) -> Table:
    """Violations, fragmentation and balance over the run and at its end."""
    found = summary.placement
    columns = (
        Column("what", "placement"),
        Column("mean", "over the run", Unit.NUMBER),
        Column("end", "at the end", Unit.NUMBER),
    )
    rows: list[tuple[Value, ...]] = []
    if found.mean.concerned or found.end.concerned:
        rows = [
            ("containers under constraints", found.mean.concerned, found.end.concerned),
            ("violating containers", found.mean.violating, found.end.violating),
            ("extent of violations", found.mean.extent, found.end.extent),
        ]
    rows += [
        ("machines used", found.mean.machines_used, found.end.machines_used),
        ("fragmented machines", found.mean.fragmented, found.end.fragmented),
    ]
    rows += [
        (f"imbalance of {name}", value, found.end.imbalance.get(name, 0.0))
        for name, value in found.mean.imbalance.items()
    ]
    rows += [
        (f"{name} used in {cluster}", share, found.end.clusters.get(cluster, {}).get(name, 0.0))
        for cluster, shares in found.mean.clusters.items()
        for name, share in shares.items()
    ]
    return Table(columns, tuple(rows))


def _speed_up(found: SpeedUp) -> str:
    jobs = "1 job" if found.jobs == 1 else f"{found.jobs:,} jobs"
    return (
        f"{found.faster:.0%} of {jobs} with phases are faster than with the workers asked for; "
        f"median {found.p50:.2f}x, p80 {found.p80:.2f}x, largest {found.largest:.3g}x"
    )


def messages(summary: Summary) -> int:
    """Sent by schedulers to each other."""
    return sum(scheduler.messages_sent for scheduler in summary.schedulers)


def notices(summary: Summary) -> int:
    """Sent by machines to schedulers, over the same network."""
    return max(0, summary.network.get("sent", 0) - messages(summary))


def _mishaps(summary: Summary) -> dict[str, int]:
    """What went wrong with messages and notices."""
    return {name: count for name, count in summary.network.items() if name != "sent"}


def _listed(amounts: dict[str, int]) -> str:
    parts = [f"{name.replace('_', ' ')} {count:,}" for name, count in amounts.items() if count]
    return ", ".join(parts)


def sections(summary: Summary, width: int | None = None) -> list[list[str]]:
    """The whole summary as readable text; each section begins with its heading."""
    return [
        [f"{summary.scenario}, seed {summary.seed}: {summary.fleet}"],
        *(
            table(summary).lines(width)
            for table in (counts, times, lives, totals, placement, schedulers)
            if (table is not placement or summary.placement.looks)
            and (table is not lives or summary.timeline.tct.count)
        ),
    ]


def flat(summary: Summary) -> dict[str, Value]:
    """One row of plain values, named after the summary's fields; times in microseconds."""
    row: dict[str, Value] = {
        "scenario": summary.scenario,
        "fleet": summary.fleet,
        "seed": summary.seed,
        "ended_at": summary.ended_at,
    }
    row.update({name: getattr(summary.counts, name) for name in summary.counts.__struct_fields__})
    for field in TIMES:
        observed: Distribution = getattr(summary, field)
        row.update({f"{field}_{name}": getattr(observed, name) for name in STATISTICS})
    row.update({f"utilisation_{name}": share for name, share in summary.utilisation.items()})
    use = summary.placement.mean
    for name in ("concerned", "violating", "extent", "machines_used", "fragmented"):
        row[name] = getattr(use, name)
        row[f"{name}_at_end"] = getattr(summary.placement.end, name)
    row.update({f"imbalance_{name}": value for name, value in use.imbalance.items()})
    latency = summary.placement.latency
    row.update({f"constrained_latency_{name}": getattr(latency, name) for name in STATISTICS})
    row["conflict_fraction"] = summary.conflict_fraction
    row["transactions"] = sum(s.transactions for s in summary.schedulers)
    row["conflicts"] = sum(s.conflicts for s in summary.schedulers)
    row["busyness_largest"] = max((s.busyness for s in summary.schedulers), default=0.0)
    row["messages"] = messages(summary)
    row["notices"] = notices(summary)
    row.update({f"network_{name}": count for name, count in _mishaps(summary).items()})
    row["events"] = summary.events
    row["log_digest"] = summary.log_digest
    return row


def document(summary: Summary) -> dict[str, Any]:
    """The whole summary, with messages counted as everywhere else."""
    built: dict[str, Any] = msgspec.to_builtins(summary)
    built["messages"] = messages(summary)
    built["notices"] = notices(summary)
    built["network"] = _mishaps(summary)
    return built
