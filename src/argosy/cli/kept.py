"""The run that a command reads: the one named with `--run`, or the latest."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from argosy.cli.output import note

if TYPE_CHECKING:
    from argosy.records.directory import RunDirectory
    from argosy.records.journal_file import JournalFile
    from argosy.records.state import RunState
    from argosy.records.summary import Summary

Command = TypeVar("Command", bound=Callable[..., Any])


def run_option(command: Command) -> Command:
    return click.option(
        "--run",
        "directory",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The run's directory, finished or in progress.  [default: the latest under runs/]",
    )(command)


def kept_run(directory: Path | None) -> RunDirectory:
    """The run; if it is not finished, a note on stderr says how far it has got."""
    from argosy.records.directory import latest_directory, open_run

    run = open_run(latest_directory() if directory is None else directory)
    if run.note:
        note(f"note: {run.note}")
    return run


class Recording:
    """A run directory or a journal file."""

    def __init__(self, path: Path | None) -> None:
        is_file = path is not None and path.is_file()
        self.run = None if is_file else kept_run(path)
        self._path = path

    @property
    def path(self) -> Path:
        path = self._path if self.run is None else self.run.path
        assert path is not None
        return path

    @property
    def is_finished(self) -> bool:
        """False for a journal file, which does not contain this."""
        return self.run is not None and self.run.is_finished

    @cached_property
    def journal(self) -> JournalFile:
        from argosy.records.journal_file import JournalFile

        return JournalFile.read(self.path) if self.run is None else self.run.journal

    @cached_property
    def state(self) -> RunState:
        from argosy.records.state import RunState

        return RunState.of(self.journal) if self.run is None else self.run.state

    def summary(self, *, recount: bool = False) -> Summary:
        """The saved summary, or one computed from the journal."""
        from argosy.measures.from_journal import summarise_state

        if self.run is not None and self.run.is_finished and not recount:
            return self.run.summary()
        return summarise_state(self.state)
