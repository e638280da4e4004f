"""`argosy scale`: change how many tasks a job of a live cluster has."""

from __future__ import annotations

import click

from argosy.cli.live import ServerChoice, complete_job, live_options
from argosy.cli.output import emit, output_option


@click.command(epilog="Example: argosy scale web 5")
@click.argument("job", shell_complete=complete_job)
@click.argument("tasks", type=click.IntRange(1))
@live_options
@output_option
def command(job: str, tasks: int, where: ServerChoice, output: str) -> None:
    """Give JOB this many TASKS in all; those of its last group come and go.

    New tasks are placed like those of a new job; the ones with the highest indices end first.
    """
    import msgspec

    from argosy.cli.job_tables import JOB_COLUMNS, job_row
    from argosy.model.units import format_count
    from argosy.report.tables import Table

    with where.client() as client:
        scaled = client.scale(job, tasks)
    table = Table(JOB_COLUMNS, (job_row(scaled),))
    emit(
        output,
        sections=lambda _: [[f"{scaled.id}: {format_count(tasks, 'task')}"]],
        document=lambda: msgspec.to_builtins(scaled),
        csv=table.csv,
    )
