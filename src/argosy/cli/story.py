"""`argosy story`: what happened to a task."""

from __future__ import annotations

import json
from pathlib import Path

import click

from argosy.cli.kept import kept_run, run_option
from argosy.cli.output import emit, output_option


@click.command(epilog="Example: argosy story crawl/3 --run runs/quickstart-1")
@click.argument("task")
@run_option
@output_option
def command(task: str, path: Path | None, output: str) -> None:
    """Show what happened to TASK, line by line, from submission to end."""
    from argosy.records.answers import TaskAnswers
    from argosy.report.tables import Column, Table, Unit

    run = kept_run(path)
    answers = TaskAnswers(run, task)
    story = answers.story()
    shown = Table(
        (Column("at", "at", Unit.TIME), Column("what", "what"), Column("text", "")),
        tuple((line.at, line.what, line.text) for line in story),
    )
    whole = Table(
        (*shown.columns, Column("detail", "")),
        tuple((line.at, line.what, line.text, json.dumps(line.detail)) for line in story),
    )
    emit(
        output,
        sections=lambda width: [[f"{answers.task} in {run.path}"], shown.wrapped(width)],
        document=lambda: [
            {"at": line.at, "what": line.what, "text": line.text, "detail": line.detail}
            for line in story
        ],
        csv=whole.csv,
    )
