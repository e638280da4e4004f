"""`argosy plan`: what would happen if jobs were submitted."""

from __future__ import annotations

import click

from argosy.cli.job_arguments import CommandAfterDashes, GivenJobs, job_arguments
from argosy.cli.live import ServerChoice, live_options
from argosy.cli.output import emit, output_option, tell_unmet
from argosy.model.errors import ArgosyError


@click.command(cls=CommandAfterDashes, epilog="Example: argosy plan --cpu 4 -- make -j4")
@job_arguments
@live_options
@output_option
def command(given: GivenJobs, where: ServerChoice, output: str) -> None:
    """Say what would happen if the jobs in FILE, or the command after --, were submitted now, and why.

    Nothing is changed. The exit code is 0 if every task would get a machine or a place in a machine's
    queue, and 1 if not.
    """
    import msgspec

    from argosy.report.tables import Column, Table

    with where.client() as client:
        try:
            result = client.plan(given.documents)
        except ArgosyError as error:
            raise given.located(error) from None
    tell_unmet(result.notes)
    tasks = Table(
        (
            Column("task", "task"),
            Column("state", "state"),
            Column("machine", "machine"),
            Column("why", "why"),
        ),
        tuple(
            (
                f"{task.job}/{task.index}",
                task.state,
                task.machine,
                f"{task.sentence} What would help: {task.remedy}" if task.remedy else task.sentence,
            )
            for task in result.tasks
        ),
    )
    displaced = Table(
        (
            Column("task", "gives way"),
            Column("machine", "on"),
            Column("outcome", ""),
            Column("to", "to"),
        ),
        tuple((each.task, each.machine, each.outcome, each.to) for each in result.displaced),
    )

    def sections(width: int | None) -> list[list[str]]:
        waiting = sum(task.state == "pending" for task in result.tasks)
        verdict = "fits" if result.fits else f"does not fit: {waiting:,} of {len(result.tasks):,}"
        parts = [[verdict if result.fits else f"{verdict} tasks would wait"], tasks.wrapped(width)]
        return parts + ([displaced.lines(width)] if result.displaced else [])

    emit(output, sections=sections, document=lambda: msgspec.to_builtins(result), csv=tasks.csv)
    if not result.fits:
        raise click.exceptions.Exit(1)
