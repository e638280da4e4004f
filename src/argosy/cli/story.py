"""`argosy story`: what happened to a task."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from argosy.cli.kept import kept_run, run_option
from argosy.cli.live import ServerChoice, complete_task, live_options
from argosy.cli.live_answers import answered
from argosy.cli.output import emit, output_option

if TYPE_CHECKING:
    from argosy.client import Client
    from argosy.model.answers import StoryLine


class _Story(NamedTuple):
    heading: str
    lines: Sequence[StoryLine]
    #: The date of time 0 in a live cluster; a simulation has none.
    origin: datetime | None


@click.command(epilog="Example: argosy story crawl/3 --run runs/quickstart-1")
@click.argument("task", shell_complete=complete_task)
@run_option
@live_options
@output_option
def command(task: str, path: Path | None, where: ServerChoice, output: str) -> None:
    """Show what happened to TASK, line by line, from submission to end.

    Without --run, a live cluster answers if its server can be reached and knows the job; otherwise the
    latest run under runs/ does.
    """
    from argosy.report.tables import Column, Table, Unit

    def saved() -> _Story:
        from argosy.records.answers import TaskAnswers

        run = kept_run(path)
        answers = TaskAnswers(run, task)
        return _Story(f"{answers.task} in {run.path}", answers.story(), None)

    def live(client: Client, job: str, index: int) -> _Story:
        told = client.story(job, index)
        origin = datetime.fromisoformat(told.origin)
        return _Story(f"{told.task} at {client.endpoint}", told.lines, origin)

    story = answered(task, path, where, live, saved)
    at = Column("at", "at", Unit.TIME) if story.origin is None else Column("at", "at")
    shown = Table(
        (at, Column("what", "what"), Column("text", "")),
        tuple((_when(line.at, story.origin), line.what, line.text) for line in story.lines),
    )
    whole = Table(
        (Column("at", "at", Unit.TIME), *shown.columns[1:], Column("detail", "")),
        tuple((line.at, line.what, line.text, json.dumps(line.detail)) for line in story.lines),
    )
    emit(
        output,
        sections=lambda width: [[story.heading], shown.wrapped(width)],
        document=lambda: [
            {"at": line.at, "what": line.what, "text": line.text, "detail": line.detail}
            for line in story.lines
        ],
        csv=whole.csv,
    )


def _when(at: int, origin: datetime | None) -> int | str:
    if origin is None:
        return at
    moment = (origin + timedelta(microseconds=at)).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
