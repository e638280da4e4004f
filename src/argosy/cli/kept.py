"""Which run a command is about: the one named with `--run`, or the latest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from argosy.cli.output import note

if TYPE_CHECKING:
    from argosy.records.directory import RunDirectory

Command = TypeVar("Command", bound=Callable[..., Any])


def run_option(command: Command) -> Command:
    return click.option(
        "--run",
        "directory",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The run's directory; the run may still go on.  [default: the latest under runs/]",
    )(command)


def kept_run(directory: Path | None) -> RunDirectory:
    """The run; if it is not finished, a note on stderr says how far it has come."""
    from argosy.records.directory import latest_directory, open_run

    run = open_run(latest_directory() if directory is None else directory)
    if run.note:
        note(f"note: {run.note}")
    return run
