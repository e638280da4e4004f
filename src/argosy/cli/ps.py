"""`argosy ps`: the tasks of a live cluster that run or wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from argosy.cli.live import ServerChoice, complete_job, live_options
from argosy.cli.output import emit, limit_options, note, output_option

if TYPE_CHECKING:
    from argosy.api.values import JobSummary, TaskSummary
    from argosy.client import Client

_STATES: Final = ("running", "queued", "pending")
_LIMIT: Final = 200


@click.command(epilog="Example: argosy ps --state running")
@click.argument("job", required=False, shell_complete=complete_job)
@click.option("--state", type=click.Choice(_STATES), help="Only tasks in this state.")
@limit_options("tasks", _LIMIT)
@live_options
@output_option
def command(
    job: str | None,
    state: str | None,
    most: int | None,
    where: ServerChoice,
    output: str,
) -> None:
    """List the tasks that run or wait, of all jobs or of JOB; those of the newest jobs first.

    A queued task waits at a machine, a pending one for its scheduler.
    """
    import msgspec

    from argosy.cli.job_tables import TASK_COLUMNS, task_row
    from argosy.report.tables import Table

    with where.client() as client:
        tasks: list[TaskSummary] = []
        # One more than wanted shows that there are more.
        wanted = None if most is None else most + 1
        if job is None:
            found = client.open_tasks(state=state, limit=wanted)
        else:
            found = _tasks_of(client, client.job(job), (state,) if state else _STATES, wanted)
        for task in found:
            if most is not None and len(tasks) == most:
                note(f"note: there are more than {most:,} tasks; --all lists them")
                break
            tasks.append(task)
    table = Table(TASK_COLUMNS, tuple(map(task_row, tasks)))
    emit(
        output,
        sections=lambda width: [table.lines(width)],
        document=lambda: msgspec.to_builtins(tasks),
        csv=table.csv,
    )


def _tasks_of(
    client: Client, job: JobSummary, states: tuple[str, ...], limit: int | None
) -> Iterator[TaskSummary]:
    for state in states:
        if getattr(job.tasks, state):
            yield from client.tasks(job.id, state=state, limit=limit)
