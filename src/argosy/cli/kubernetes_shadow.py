"""`argosy kubernetes --shadow`: engines beside the scheduler of a cluster."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

from argosy.cli.output import emit, note

if TYPE_CHECKING:
    from argosy.kubernetes.connection import Connection
    from argosy.service.kubernetes.shadow.session import ShadowReport, ShadowSession


def shadow_cluster(
    connection: Connection, fleet: list[dict[str, Any]], duration: str | None, *, as_json: bool
) -> None:
    """Until it is interrupted, or `duration` is over."""
    import asyncio

    from argosy.model.units import format_count, parse_duration
    from argosy.service.kubernetes.shadow.session import ShadowOptions, run_shadow

    seconds = None if duration is None else parse_duration(duration) / 1e6

    def ready(session: ShadowSession) -> None:
        engines = ", ".join(engine.name for engine in session.engines)
        until = "until Ctrl-C" if duration is None else f"for {duration}"
        nodes = format_count(session.nodes, "node")
        note(f"argosy: watching {nodes} {until}, changing nothing; in the shadow: {engines}")

    async def main() -> ShadowReport:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        if seconds is not None:
            loop.call_later(seconds, stop.set)
        options = ShadowOptions(connection=connection, fleet=tuple(fleet))
        return await run_shadow(options, stop, ready, lambda line: note(f"argosy: {line}"))

    show_report(asyncio.run(main()), "json" if as_json else "table")


def show_report(report: ShadowReport, output: str) -> None:
    import msgspec

    from argosy.model.units import format_count, format_duration
    from argosy.report.tables import Column, Table, Unit

    def micros(seconds: float | None) -> int | None:
        return None if seconds is None else round(seconds * 1e6)

    rows = report.schedulers
    waits = Table(
        (
            Column("scheduler", "scheduler"),
            Column("placed", "placed", Unit.COUNT),
            Column("waiting", "waiting", Unit.COUNT),
            Column("unsupported", "not taken", Unit.COUNT),
            Column("missed", "too late", Unit.COUNT),
            Column("wait_median", "median wait", Unit.TIME),
            Column("wait_90", "90 %", Unit.TIME),
            Column("wait_longest", "longest", Unit.TIME),
            Column("evictions", "evictions", Unit.COUNT),
            Column("same_node", "same node", Unit.SHARE),
        ),
        tuple(
            (
                row.scheduler,
                row.placed,
                row.waiting,
                row.unsupported,
                row.missed,
                micros(row.wait_median),
                micros(row.wait_90),
                micros(row.wait_longest),
                row.evictions,
                row.same_node,
            )
            for row in rows
        ),
    )
    nodes = Table(
        (
            Column("scheduler", "scheduler"),
            Column("cpu_used", "cpu", Unit.SHARE),
            Column("memory_used", "memory", Unit.SHARE),
            Column("broken_rules", "broken rules", Unit.COUNT),
            Column("overcommitted_nodes", "overcommitted", Unit.COUNT),
            Column("nodes_used", "in use", Unit.COUNT),
            Column("nodes_spare", "could be emptied", Unit.COUNT),
        ),
        tuple(
            (
                row.scheduler,
                row.cpu_used,
                row.memory_used,
                row.broken_rules,
                row.overcommitted_nodes,
                row.nodes_used,
                row.nodes_spare,
            )
            for row in rows
        ),
    )

    def sections(width: int | None) -> list[list[str]]:
        time = format_duration(round(report.seconds * 1e6))
        return [
            [f"{format_count(report.pods, 'pod')} in {time}", *waits.lines(width)],
            [
                f"{format_count(report.nodes, 'node')}: requested on average, and at the end",
                *nodes.lines(width),
            ],
        ]

    emit(output, sections=sections, document=lambda: msgspec.to_builtins(report), csv=waits.csv)
