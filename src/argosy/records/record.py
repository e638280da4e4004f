"""The interface of a run, on disk or in memory, finished or not.

Everything can be computed from the journal. A finished run also has its summary and columns of tasks and
jobs saved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy.model.errors import RunDirectoryError
from argosy.model.scenario import Scenario
from argosy.model.units import format_duration
from argosy.records.journal_file import JournalFile
from argosy.records.state import RunState
from argosy.records.steps import read_steps
from argosy.records.summary import Summary

Columns: TypeAlias = dict[str, NDArray[Any]]

#: Finished tasks in the order in which they ended, then tasks still running at the end of the run,
#: whose finish time is -1. Times in microseconds.
TASK_COLUMNS: Final = ("task", "machine", "placed", "started", "finished")
#: Submitted jobs by number: when each was submitted and first attempted, when its last task was placed
#: and when its last task finished; -1: did not happen. Times in microseconds.
JOB_COLUMNS: Final = ("submitted", "attempted", "placed", "finished")
KEEP_THEM: Final = 'run it with output.log = "replayable", which is the default'


class RunStatus(Enum):
    FINISHED = "finished"
    RUNNING = "running"
    #: Its process ended before the run did.
    CUT_SHORT = "cut short"
    #: There is only a journal file, which does not say.
    JOURNAL = "journal"


class RunRecord(ABC):
    """A run; if it is in progress, up to the point reached when its journal was first read."""

    status = RunStatus.FINISHED

    @abstractmethod
    def scenario(self) -> Scenario: ...

    @abstractmethod
    def summary(self) -> Summary:
        """Only for a finished run."""

    @abstractmethod
    def read_journal(self) -> JournalFile: ...

    @abstractmethod
    def kept_tasks(self) -> Columns:
        """Only for a finished run; finished tasks are missing if they were not saved."""

    @abstractmethod
    def kept_jobs(self) -> Columns:
        """Only for a finished run."""

    @property
    def is_finished(self) -> bool:
        return self.status is RunStatus.FINISHED

    @cached_property
    def journal(self) -> JournalFile:
        return self.read_journal()

    @cached_property
    def reached(self) -> int:
        """The time up to which the run is known."""
        return self.summary().ended_at if self.is_finished else self.journal.reached()

    @cached_property
    def state(self) -> RunState:
        """Where all tasks are, from the journal. If it contains only decisions, the starts and ends of
        a finished run's tasks come from the saved columns."""
        steps = read_steps(self.journal)
        if not self.journal.has_ends:
            if not self.is_finished or not steps.setup.output.tasks:
                raise RunDirectoryError(
                    "this run kept no starts and ends of tasks",
                    file=self.journal.name,
                    hint=KEEP_THEM,
                )
            steps.add_task_rows(self.kept_tasks())
        return RunState(steps, self.reached)

    @property
    def note(self) -> str:
        """A sentence on what is missing from an unfinished run; empty if it is finished, or if that is
        unknown."""
        match self.status:
            case RunStatus.FINISHED | RunStatus.JOURNAL:
                return ""
            case RunStatus.RUNNING:
                what = "run in progress"
            case RunStatus.CUT_SHORT:
                what = "the run was cut short"
        return f"{what}: this is what had happened at {format_duration(self.reached)}"

    def task_rows(self) -> Columns:
        """The columns of tasks that started."""
        if self.is_finished:
            return self.kept_tasks()
        done, running = self.state.finished, self.state.running
        names = ("tasks", "machines", "placed", "started", "finished")
        return {
            column: np.concatenate([getattr(done, name), getattr(running, name)])
            for column, name in zip(TASK_COLUMNS, names, strict=True)
        }

    def job_rows(self) -> Columns:
        """The columns of submitted jobs."""
        if self.is_finished:
            return self.kept_jobs()
        jobs = self.state.jobs
        columns = (jobs.submitted, jobs.first_attempt, jobs.all_placed, jobs.done)
        return dict(zip(JOB_COLUMNS, columns, strict=True))
