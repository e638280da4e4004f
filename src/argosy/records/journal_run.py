"""A run known only from its journal, and opening whatever a user names as a run."""

from __future__ import annotations

from pathlib import Path

from argosy.model.errors import RunDirectoryError
from argosy.model.scenario import Scenario
from argosy.records.directory import RunDirectory, open_run
from argosy.records.journal_file import JournalFile
from argosy.records.observed import observed_scenario
from argosy.records.record import Columns, RunRecord, RunStatus
from argosy.records.summary import Summary


class JournalRun(RunRecord):
    """Everything is computed from the journal, which does not say whether the run is finished."""

    status = RunStatus.JOURNAL

    def __init__(self, journal: JournalFile) -> None:
        self._read = journal

    @property
    def path(self) -> Path:
        return Path(self._read.name)

    def scenario(self) -> Scenario:
        """Rebuilt from the journal: tasks run as long as they were observed to."""
        return observed_scenario(self.state)

    def read_journal(self) -> JournalFile:
        return self._read

    def summary(self) -> Summary:
        raise self._not_saved("summary")

    def kept_tasks(self) -> Columns:
        raise self._not_saved("columns of tasks")

    def kept_jobs(self) -> Columns:
        raise self._not_saved("columns of jobs")

    def _not_saved(self, what: str) -> RunDirectoryError:
        return RunDirectoryError(f"a journal has no {what}", file=self._read.name)


def open_recording(path: Path) -> RunDirectory | JournalRun:
    """The run in a directory, finished or not, or in a journal file."""
    return JournalRun(JournalFile.read(path)) if path.is_file() else open_run(path)
