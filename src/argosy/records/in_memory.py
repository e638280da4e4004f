"""A run in memory, which answers the same questions as a run directory."""

from __future__ import annotations

from argosy.model.errors import RunDirectoryError
from argosy.model.scenario import Scenario
from argosy.records.journal_file import JournalFile
from argosy.records.record import KEEP_THEM, Columns, RunRecord
from argosy.records.summary import Summary


class RunInMemory(RunRecord):
    """`journal` contains the lines; None if the scenario asks for no journal."""

    def __init__(
        self,
        scenario: Scenario,
        summary: Summary,
        journal: bytes | None,
        tasks: Columns,
        jobs: Columns,
    ) -> None:
        self._scenario = scenario
        self._summary = summary
        self._data = journal
        self._tasks = tasks
        self._jobs = jobs

    def summary(self) -> Summary:
        return self._summary

    def scenario(self) -> Scenario:
        return self._scenario

    def read_journal(self) -> JournalFile:
        if self._data is None:
            raise RunDirectoryError("this run has no journal", hint=KEEP_THEM)
        return JournalFile(self._data)

    def kept_tasks(self) -> Columns:
        return dict(self._tasks)

    def kept_jobs(self) -> Columns:
        return dict(self._jobs)
