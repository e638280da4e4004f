"""`argosy jobs`: the jobs of a live cluster."""

from __future__ import annotations

from typing import Any, Final

import click

from argosy.cli.live import ServerChoice, complete_job, live_options, local_time
from argosy.cli.output import emit, limit_options, note, output_option

_LIMIT: Final = 50
#: As in `argosy.api.values.JobStateName`, which is not imported for showing help.
STATES: Final = ("pending", "running", "finished", "failed", "cancelled", "abandoned")


@click.command(epilog="Example: argosy jobs --open")
@click.argument("job", required=False, shell_complete=complete_job)
@click.option("--state", type=click.Choice(STATES), help="Only jobs in this state.")
@click.option("--open/--over", "is_open", default=None, help="Only jobs that are not over, or are.")
@click.option("--kind", metavar="KIND", help="Only jobs of this kind.")
@click.option("--owner", metavar="NAME", help="Only jobs of this owner.")
@limit_options("jobs", _LIMIT)
@live_options
@output_option
def command(
    job: str | None,
    state: str | None,
    is_open: bool | None,
    kind: str | None,
    owner: str | None,
    most: int | None,
    where: ServerChoice,
    output: str,
) -> None:
    """List jobs, newest first; with JOB, everything about that job."""
    import msgspec

    from argosy.cli.job_tables import JOB_COLUMNS, job_row
    from argosy.report.tables import Table

    with where.client() as client:
        if job is not None:
            _describe(msgspec.to_builtins(client.job(job)), output)
            return
        # One more than wanted shows that there are more.
        wanted = None if most is None else most + 1
        found = list(
            client.jobs(state=state, kind=kind, owner=owner, is_open=is_open, limit=wanted)
        )
    if most is not None and len(found) > most:
        found.pop()
        note(f"note: there are more than {most:,} jobs; --all lists them")
    table = Table(JOB_COLUMNS, tuple(map(job_row, found)))
    # Columns that say nothing about these jobs only take room.
    same = {"kind": "batch", "name": "", "owner": "", "precedence": None}
    dull = [
        name for name, usual in same.items() if all(row[name] == usual for row in table.records())
    ]
    emit(
        output,
        sections=lambda width: [table.without(dull).lines(width)],
        document=lambda: msgspec.to_builtins(found),
        csv=table.csv,
    )


def _describe(job: dict[str, Any], output: str) -> None:
    from argosy.report.tables import csv_text
    from argosy.scenarios.toml_text import to_toml

    def sections(_: int | None) -> list[list[str]]:
        counts = ", ".join(f"{count:,} {state}" for state, count in job["tasks"].items() if count)
        rows = [
            ("state", job["state"]),
            ("tasks", counts),
            ("scheduler", job["scheduler"]),
            ("submitted", local_time(job["submitted"])),
            ("ended", local_time(job["ended"])),
            ("exit code", "" if job["exit_code"] is None else str(job["exit_code"])),
            ("isolation", job["isolation"]),
            *(("note", text) for text in job["notes"]),
        ]
        return [
            [job["id"], *(f"{name:<10} {text}" for name, text in rows if text)],
            ["as submitted, times in microseconds", *to_toml(job["document"]).splitlines()],
        ]

    def csv() -> str:
        flat = {
            name: value for name, value in job.items() if not isinstance(value, dict | list | tuple)
        }
        flat |= job["tasks"]
        return csv_text([flat], list(flat))

    emit(output, sections=sections, document=lambda: job, csv=csv)
