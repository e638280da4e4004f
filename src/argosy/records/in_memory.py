"""A run that was not written to a directory, and can be asked the same questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from argosy.model.errors import RunDirectoryError
from argosy.model.scenario import Scenario
from argosy.records.record import Columns, RunRecord
from argosy.records.summary import Summary


class RunInMemory(RunRecord):
    """`log` holds the lines of the decision log; none, where the scenario asks for no log."""

    def __init__(
        self, scenario: Scenario, summary: Summary, log: bytes | None, tasks: Columns, jobs: Columns
    ) -> None:
        self._scenario = scenario
        self._summary = summary
        self._log = log
        self._tasks = tasks
        self._jobs = jobs

    def summary(self) -> Summary:
        return self._summary

    def scenario(self) -> Scenario:
        return self._scenario

    def log_lines(self) -> Iterator[dict[str, Any]]:
        if self._log is None:
            raise RunDirectoryError(
                "this run kept no decision log", hint='run it with output.log = "decisions"'
            )
        decoder = msgspec.json.Decoder(dict[str, Any])
        return map(decoder.decode, self._log.splitlines())

    def task_rows(self) -> Columns:
        return dict(self._tasks)

    def job_rows(self) -> Columns:
        return dict(self._jobs)
