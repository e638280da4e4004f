"""`argosy submit`: give jobs to a live cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from argosy.cli.job_arguments import CommandAfterDashes, GivenJobs, job_arguments
from argosy.cli.live import ServerChoice, elapsed, live_options
from argosy.cli.output import emit, note, output_option, tell_unmet
from argosy.model.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.api.values import JobDetails
    from argosy.client import Client


@click.command(cls=CommandAfterDashes, epilog="Example: argosy submit --count 4 --wait -- sleep 5")
@click.option("--wait", is_flag=True, help="Wait until the job is over; exit with its exit code.")
@click.option(
    "--key",
    metavar="TEXT",
    help="A name for this submission: repeated with the same key, it does nothing.",
)
@job_arguments
@live_options
@output_option
def command(
    given: GivenJobs, where: ServerChoice, wait: bool, key: str | None, output: str
) -> None:
    """Submit the jobs in FILE (TOML or YAML; - is standard input), or a command after --.

    Prints the id of each job. Tasks of an array find their index in the variable ARGOSY_TASK, and how
    many there are in ARGOSY_TASKS. Nothing is submitted if there is a mistake in the file. With --wait,
    Ctrl-C leaves the job running.
    """
    with where.client() as client:
        jobs = _submitted(client, given, key)
        try:
            if output == "table":
                for job in jobs:
                    click.echo(job.id)
                sys.stdout.flush()
            if wait:
                jobs = [_awaited(client, job.id) for job in jobs]
        except KeyboardInterrupt:
            ids = " ".join(job.id for job in jobs)
            note(f"what was submitted goes on; `argosy cancel {ids}` cancels it")
            raise
    if output != "table":
        import msgspec

        from argosy.cli.job_tables import JOB_COLUMNS, job_row
        from argosy.report.tables import Table

        table = Table(JOB_COLUMNS, tuple(map(job_row, jobs)))
        emit(
            output, sections=lambda _: [], document=lambda: msgspec.to_builtins(jobs), csv=table.csv
        )
    code = next((job.exit_code for job in jobs if job.exit_code), 0)
    if wait and code:
        raise click.exceptions.Exit(code)


def _submitted(client: Client, given: GivenJobs, key: str | None) -> list[JobDetails]:
    if len(given.documents) > 1:
        # What the cluster cannot run is found out before the first job is submitted.
        try:
            client.plan(given.documents)
        except ArgosyError as error:
            raise given.located(error) from None
    jobs: list[JobDetails] = []
    for number, document in enumerate(given.documents):
        try:
            each = key if key is None or len(given.documents) == 1 else f"{key}-{number}"
            job = client.submit(document, key=each)
        except ArgosyError as error:
            if jobs:
                note("submitted before: " + " ".join(job.id for job in jobs))
            raise given.located(error, number) from None
        jobs.append(job)
        tell_unmet(job.notes)
    return jobs


def _awaited(client: Client, job_id: str) -> JobDetails:
    line = _ProgressLine()
    try:
        for job in client.watch(job_id):
            line.show(job)
    finally:
        line.clear()
    note(f"{job.id}: {_ended(job)}")
    return job


def _ended(job: JobDetails) -> str:
    from argosy.model.units import format_duration

    took = elapsed(job.submitted, job.ended)
    after = f" after {format_duration(took)}" if took is not None else ""
    code = f", exit code {job.exit_code}" if job.exit_code else ""
    return f"{job.state}{after}{code}"


class _ProgressLine:
    """One line on stderr that is written again and again; only for a terminal."""

    def __init__(self) -> None:
        self._is_shown = False

    def show(self, job: JobDetails) -> None:
        if not sys.stderr.isatty():
            return
        states = reversed(job.tasks.__struct_fields__)
        parts = [f"{count:,} {state}" for state in states if (count := getattr(job.tasks, state))]
        click.echo(f"\r\x1b[K{job.id}: {', '.join(parts)}", err=True, nl=False, color=True)
        self._is_shown = True

    def clear(self) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", err=True, nl=False, color=True)
            self._is_shown = False
