"""Where every task is and since when, computed from a journal alone.

The computation is pure: the same records give the same state, during a run or after it, and it agrees
with what the host counted. The steps of a task are adjacent, in the order of the journal, so its state
before a step, and since when it has had a machine, are in neighbouring rows. O(steps log steps), about
200 bytes per step.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.host import TaskState
from argosy.model.tasks import indices_of, jobs_of
from argosy.records.journal_file import JournalFile
from argosy.records.steps import STATE_AFTER, JournalSteps, Step, StepColumns, read_steps

IntColumn = NDArray[np.int64]
_STATES: Final = len(TaskState)
#: Steps by which a task gets a machine; steps by which it takes room there.
_GIVES_MACHINE: Final = (Step.PLACED, Step.ENQUEUED, Step.PROBED)
_TAKES_ROOM: Final = (Step.PLACED, Step.STARTED)
_HAS_MACHINE: Final = np.array(
    [
        state in (TaskState.QUEUED, TaskState.RUNNING, TaskState.FINISHED)
        for state in map(TaskState, range(_STATES))
    ]
)


class JobColumns(msgspec.Struct, frozen=True):
    """By job number, in microseconds; -1 if it was not reached."""

    submitted: IntColumn
    first_attempt: IntColumn
    all_placed: IntColumn
    done: IntColumn
    #: Decision time spent on it.
    thought: IntColumn
    tasks: IntColumn
    #: Number of abandoned tasks.
    abandoned: IntColumn


class TaskRows(msgspec.Struct, frozen=True):
    """Tasks that started. `finished` is -1 for those still running."""

    tasks: IntColumn
    machines: IntColumn
    placed: IntColumn
    started: IntColumn
    finished: IntColumn
    #: By number, as in `JournalSteps.schedulers`.
    schedulers: IntColumn


class HeldClaims(msgspec.Struct, frozen=True):
    """Room taken on machines, and for how long, including by extra workers."""

    tasks: IntColumn
    machines: IntColumn
    schedulers: IntColumn
    begin: IntColumn
    end: IntColumn
    #: Whether it was preempted by a task of higher precedence.
    was_preempted: NDArray[np.bool_]


class RunState:
    """The state at time `until`, or when the last record was written."""

    def __init__(self, steps: JournalSteps, until: int) -> None:
        self.steps = steps
        self.setup = steps.setup
        self.until = until
        columns = steps.columns()
        # The steps of each task are adjacent, in the order of the journal.
        order = np.argsort(columns.tasks, kind="stable")
        self._order = order
        self._columns = StepColumns(
            **{name: getattr(columns, name)[order] for name in columns.__struct_fields__}
        )
        tasks = self._columns.tasks
        self._is_first = np.ones(len(tasks), np.bool_)
        self._is_first[1:] = tasks[1:] != tasks[:-1]
        self._is_last = np.ones(len(tasks), np.bool_)
        self._is_last[:-1] = self._is_first[1:]
        counts = np.array(steps.task_counts, np.int64)
        #: False for extra workers, of which only the room counts.
        self._is_own = (indices_of(tasks)) < counts[jobs_of(tasks)] if len(counts) else tasks < 0
        after = STATE_AFTER[self._columns.kinds].astype(np.int64)
        self._before = np.full(len(tasks), int(TaskState.PENDING), np.int64)
        self._before[1:][~self._is_first[1:]] = after[:-1][~self._is_first[1:]]
        # Cancelling a task that is over does not change its state.
        is_over = (self._before >= int(TaskState.FINISHED)) & (
            self._columns.kinds == Step.CANCELLED
        )
        self._after = np.where(is_over, self._before, after)

    @staticmethod
    def of(journal: JournalFile, until: int | None = None) -> RunState:
        return RunState(read_steps(journal), journal.reached() if until is None else until)

    @cached_property
    def counts(self) -> dict[TaskState, int]:
        """Number of tasks in each state."""
        last = self._after[self._is_last & self._is_own]
        found = np.bincount(last, minlength=_STATES)
        found[int(TaskState.PENDING)] += sum(self.steps.task_counts) - len(last)
        return {state: int(found[int(state)]) for state in map(TaskState, range(_STATES))}

    def count(self, *kinds: Step) -> int:
        """How often tasks and workers made these steps."""
        return int(np.isin(self._columns.kinds, kinds).sum())

    @cached_property
    def jobs(self) -> JobColumns:
        steps, own = self.steps, self._is_own
        totals = np.array(steps.task_counts, np.int64)
        numbers, kinds = jobs_of(self._columns.tasks), self._columns.kinds
        finished = own & (kinds == Step.ENDED)
        done = np.full(len(totals), -1, np.int64)
        np.maximum.at(done, numbers[finished], self._columns.at[finished])
        done[np.bincount(numbers[finished], minlength=len(totals)) < totals] = -1
        given_up = numbers[own & (kinds == Step.ABANDONED)]
        return JobColumns(
            submitted=np.array(steps.submitted, np.int64),
            first_attempt=np.array(steps.first_attempt, np.int64),
            all_placed=self._all_placed(totals),
            done=done,
            thought=np.array(steps.thought, np.int64),
            tasks=totals,
            abandoned=np.bincount(given_up, minlength=len(totals)),
        )

    def _all_placed(self, totals: IntColumn) -> IntColumn:
        """The first time at which every task of a job had a machine."""
        change = _HAS_MACHINE[self._after].astype(np.int64) - _HAS_MACHINE[self._before]
        rows = np.flatnonzero((change != 0) & self._is_own)
        numbers = jobs_of(self._columns.tasks[rows])
        # Rows of one job, in the order of the journal.
        by_job = np.lexsort((self._order[rows], numbers))
        rows, numbers = rows[by_job], numbers[by_job]
        have = np.cumsum(change[rows])
        starts = np.searchsorted(numbers, np.arange(len(totals)))
        before = np.concatenate([[0], have])[starts]
        full = np.flatnonzero(have - before[numbers] == self._totals_at(rows))
        placed = np.full(len(totals), -1, np.int64)
        reached, first = np.unique(numbers[full], return_index=True)
        placed[reached] = self._columns.effective[rows[full[first]]]
        return placed

    def _totals_at(self, rows: IntColumn) -> IntColumn:
        """The number of tasks that the job of each row had by then."""
        numbers = jobs_of(self._columns.tasks[rows])
        totals = np.array(self.steps.first_counts, np.int64)[numbers]
        for grown in self.steps.growth:
            totals[(numbers == grown.job) & (self._order[rows] >= grown.position)] = grown.tasks
        return totals

    @cached_property
    def finished(self) -> TaskRows:
        """In the order in which they ended."""
        rows = np.flatnonzero((self._columns.kinds == Step.ENDED) & self._is_own)
        rows = rows[np.argsort(self._order[rows])]
        return self._task_rows(rows, self._columns.at[rows])

    @cached_property
    def running(self) -> TaskRows:
        """By task number."""
        is_running = self._is_last & self._is_own & (self._after == int(TaskState.RUNNING))
        rows = np.flatnonzero(is_running)
        return self._task_rows(rows, np.full(len(rows), -1, np.int64))

    def _task_rows(self, rows: IntColumn, finished: IntColumn) -> TaskRows:
        columns = self._columns
        got = self._latest(_GIVES_MACHINE)[rows]
        began = self._latest(_TAKES_ROOM)[rows]
        return TaskRows(
            tasks=columns.tasks[rows],
            machines=columns.machines[began],
            placed=columns.effective[got],
            started=columns.effective[began],
            finished=finished,
            schedulers=columns.schedulers[got],
        )

    def _latest(self, kinds: tuple[Step, ...]) -> IntColumn:
        """Per row, the last row up to it with one of these steps; it is of the same task if the journal
        is complete."""
        rows = np.arange(len(self._columns.kinds))
        return np.maximum.accumulate(np.where(np.isin(self._columns.kinds, kinds), rows, 0))

    @cached_property
    def claims(self) -> HeldClaims:
        """By task number, then in order."""
        columns = self._columns
        rows = np.flatnonzero(np.isin(columns.kinds, _TAKES_ROOM))
        got = self._latest(_GIVES_MACHINE)[rows]
        followed = ~self._is_last[rows]
        following = np.minimum(rows + 1, max(0, len(columns.at) - 1))
        end = np.where(followed, columns.at[following], self.until)
        return HeldClaims(
            tasks=columns.tasks[rows],
            machines=columns.machines[rows],
            schedulers=columns.schedulers[got],
            begin=columns.at[rows],
            end=np.maximum(end, columns.at[rows]),
            was_preempted=followed & (columns.kinds[following] == Step.PREEMPTED),
        )

    def open_tasks(self, state: TaskState) -> IntColumn:
        """The first task of each job that is in this state by now; -1 if there is none."""
        totals = np.array(self.steps.task_counts, np.int64)
        last = np.flatnonzero(self._is_last & self._is_own)
        tasks, states = self._columns.tasks[last], self._after[last]
        found = np.full(len(totals), -1, np.int64)
        mine = tasks[states == int(state)][::-1]
        found[jobs_of(mine)] = indices_of(mine)
        if state is TaskState.PENDING:
            self._add_untouched(found, tasks, totals)
        return found

    def _add_untouched(self, found: IntColumn, tasks: IntColumn, totals: IntColumn) -> None:
        """Tasks without any step are pending; a job's tasks are in order."""
        for job in np.flatnonzero(np.bincount(jobs_of(tasks), minlength=len(totals)) < totals):
            known = indices_of(tasks[jobs_of(tasks) == job])
            gaps = np.flatnonzero(known != np.arange(len(known)))
            first = int(gaps[0]) if len(gaps) else len(known)
            found[job] = first if found[job] < 0 else min(first, int(found[job]))

    def pending_at(self, at: int) -> IntColumn:
        """The number of each job's tasks that had no machine, and were not over, after that time."""
        until = (self._columns.at <= at) & self._is_own
        rows = np.flatnonzero(until)
        tasks = self._columns.tasks[rows]
        is_last = np.ones(len(rows), np.bool_)
        is_last[:-1] = tasks[1:] != tasks[:-1]
        last = rows[is_last]
        settled = last[self._after[last] != int(TaskState.PENDING)]
        totals = np.array(self.steps.task_counts, np.int64)
        for grown in self.steps.growth:
            if grown.at > at:
                totals[grown.job] -= grown.more
        totals[np.array(self.steps.submitted, np.int64) > at] = 0
        return totals - np.bincount(jobs_of(self._columns.tasks[settled]), minlength=len(totals))

    def over_time(self, at: IntColumn) -> dict[str, IntColumn]:
        """The number of pending, queued and running tasks just before each of these times."""
        own = self._is_own
        times = self._columns.at[own]
        order = np.argsort(times, kind="stable")
        times, before, after = times[order], self._before[own][order], self._after[own][order]
        reached = np.searchsorted(times, at)
        growth = self.steps.growth
        came = np.array([*self.steps.submitted, *(grown.at for grown in growth)], np.int64)
        tasks = np.array([*self.steps.first_counts, *(grown.more for grown in growth)], np.int64)
        by_time = np.argsort(came, kind="stable")
        came, tasks = came[by_time], np.concatenate([[0], np.cumsum(tasks[by_time])])
        series = {}
        for state in (TaskState.PENDING, TaskState.QUEUED, TaskState.RUNNING):
            changes = (after == int(state)).astype(np.int64) - (before == int(state))
            counts = np.concatenate([[0], np.cumsum(changes)])[reached]
            if state is TaskState.PENDING:
                counts += tasks[np.searchsorted(came, at)]
            series[state.name.lower()] = counts
        return series
