"""What a finished run can be asked for, wherever it is kept: in a directory or in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from argosy.model.errors import CommandError, UnknownName
from argosy.model.scenario import Scenario
from argosy.records.summary import Summary

Columns: TypeAlias = dict[str, NDArray[Any]]

#: Of finished tasks in the order in which they ended, then of those that run when the run ends, with
#: -1 for the time they finished. Times in microseconds.
TASK_COLUMNS: Final = ("task", "machine", "placed", "started", "finished")
#: Of submitted jobs by number: when each was submitted and first attempted, when its last task was
#: placed and when its last task finished; -1 for what did not happen. Times in microseconds.
JOB_COLUMNS: Final = ("submitted", "attempted", "placed", "finished")
#: Jobs that an error message may list.
_FEW: Final = 20


class RunRecord(ABC):
    """A finished run."""

    @abstractmethod
    def summary(self) -> Summary: ...

    @abstractmethod
    def scenario(self) -> Scenario: ...

    @abstractmethod
    def log_lines(self) -> Iterator[dict[str, Any]]:
        """The decision log, line by line."""

    @abstractmethod
    def task_rows(self) -> Columns:
        """The columns of tasks that started; finished ones are missing where they were not kept."""

    @abstractmethod
    def job_rows(self) -> Columns:
        """The columns of jobs that were submitted."""

    def resolve(self, task: str) -> tuple[str, int]:
        """``job/index`` (or ``job`` for its first task), checked against the scenario."""
        job_id, _, index_text = task.partition("/")
        jobs = {job.id: job for job in self.scenario().jobs}
        if job_id not in jobs:
            error = UnknownName("job", job_id, jobs)
            if len(jobs) > _FEW:
                # The list of all would bury the message.
                error.expected = f"one of the run's {len(jobs)} jobs"
            raise error
        count = jobs[job_id].tasks
        is_number = index_text.isascii() and index_text.isdecimal()
        index = int(index_text) if is_number else 0 if task == job_id else count
        if index >= count:
            raise CommandError(
                f"unknown task {task!r}", expected=f"{job_id}/0 to {job_id}/{count - 1}"
            )
        return job_id, index
