"""The run that a command reads: the one that the user names, or the latest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from argosy.cli.output import note

if TYPE_CHECKING:
    from argosy.records.directory import RunDirectory
    from argosy.records.journal_run import JournalRun
    from argosy.records.record import RunRecord
    from argosy.records.summary import Summary

Command = TypeVar("Command", bound=Callable[..., Any])


def run_option(command: Command) -> Command:
    return click.option(
        "--run",
        "path",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="A run directory, finished or in progress, or a journal file.  "
        "[default: the latest run under runs/]",
    )(command)


def kept_run(path: Path | None) -> RunDirectory | JournalRun:
    """The run; if it is not finished, a note on stderr says how far it has got."""
    from argosy.records.directory import latest_directory
    from argosy.records.journal_run import open_recording

    run = open_recording(latest_directory() if path is None else path)
    if run.note:
        note(f"note: {run.note}")
    return run


def summary_of(run: RunRecord, *, recount: bool = False) -> Summary:
    """The saved summary, or one computed from the journal."""
    from argosy.measures.from_journal import summarise_state

    return run.summary() if run.is_finished and not recount else summarise_state(run.state)
