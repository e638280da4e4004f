"""`argosy cancel`: end jobs or tasks of a live cluster."""

from __future__ import annotations

import click

from argosy.cli.live import ServerChoice, complete_task, live_options, split_task
from argosy.cli.output import emit, output_option


@click.command(epilog="Example: argosy cancel crawl nightly/3")
@click.argument("names", nargs=-1, required=True, shell_complete=complete_task, metavar="NAME...")
@live_options
@output_option
def command(names: tuple[str, ...], where: ServerChoice, output: str) -> None:
    """Cancel jobs, or single tasks as JOB/INDEX.

    Running tasks are asked to stop, and killed after their job's `grace`.
    """
    import msgspec

    from argosy.model.units import format_count
    from argosy.report.tables import Column, Table, Unit

    wanted: dict[str, list[int] | None] = {}
    for job, index in map(split_task, names):
        if index is None:
            wanted[job] = None
        elif (tasks := wanted.setdefault(job, [])) is not None:
            tasks.append(index)
    with where.client() as client:
        results = [client.cancel(job, tasks) for job, tasks in wanted.items()]
    table = Table(
        (
            Column("job", "job"),
            Column("cancelled", "cancelled", Unit.COUNT),
            Column("state", "state"),
        ),
        tuple((result.job.id, result.cancelled, result.job.state) for result in results),
    )
    emit(
        output,
        sections=lambda _: [
            [f"{each.job.id}: {format_count(each.cancelled, 'task')} cancelled" for each in results]
        ],
        document=lambda: msgspec.to_builtins(results),
        csv=table.csv,
    )
