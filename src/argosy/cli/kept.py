"""Which kept run a command is about: the one named with `--run`, or the latest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from argosy.records.directory import RunDirectory

Command = TypeVar("Command", bound=Callable[..., Any])


def run_option(command: Command) -> Command:
    return click.option(
        "--run",
        "directory",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The run's directory.  [default: the latest under runs/]",
    )(command)


def kept_run(directory: Path | None) -> RunDirectory:
    from argosy.records.directory import latest_directory, open_run

    return open_run(latest_directory() if directory is None else directory)
