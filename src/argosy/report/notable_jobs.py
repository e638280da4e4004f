"""The slowest jobs of a run and those it left unfinished, each with its reason."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
import numpy as np

from argosy.host import TaskState
from argosy.model.jobs import Job, task_name
from argosy.model.tasks import indices_of, jobs_of
from argosy.model.units import format_count, format_duration
from argosy.records.answers import TaskAnswers
from argosy.records.record import RunRecord
from argosy.records.state import RunState
from argosy.report.tables import Column, Table, Unit

#: How many jobs are named.
SLOWEST: Final = 3
UNFINISHED: Final = 5


class NotableJob(msgspec.Struct, frozen=True):
    job: str
    kind: str
    state: Literal["slow", "unfinished"]
    #: From submission to the end of its last task, or of the run, in microseconds.
    took: int
    reason: str


def notable_jobs(
    run: RunRecord, slowest: int = SLOWEST, unfinished: int = UNFINISHED
) -> list[NotableJob]:
    """The slowest first, then those unfinished in the order of submission; from the journal alone."""
    state = run.state
    found = [_slow(run, state, number) for number in _slowest(state)[:slowest]]
    return found + [_unfinished(run, state, *each) for each in _open(state)[:unfinished]]


def count_unfinished(run: RunRecord) -> int:
    return len(_open(run.state))


def _slowest(state: RunState) -> list[int]:
    jobs = state.jobs
    # Negative for those that are not done.
    took = jobs.done - jobs.submitted
    order = np.argsort(-took, kind="stable")
    return [int(number) for number in order if took[number] >= 0]


def _slow(run: RunRecord, state: RunState, number: int) -> NotableJob:
    """The task that started last made the job late, unless one ran much longer."""
    job, rows = state.steps.jobs[number], state.finished
    mine = np.flatnonzero(jobs_of(rows.tasks) == number)
    last = mine[np.argmax(rows.finished[mine])]
    index = int(indices_of(rows.tasks[last : last + 1])[0])
    ran = int(rows.finished[last] - rows.started[last])
    took = int(state.jobs.done[number] - state.jobs.submitted[number])
    name = task_name(job.id, index)
    before = [
        each[3:-1]
        for each in _answer(run, job, index)
        if each.startswith(("It waited ", "It lost ")) and took - ran > ran // 10
    ]
    told = [
        *before,
        f"then ran for {format_duration(ran)}" if before else f"ran for {format_duration(ran)}",
    ]
    return NotableJob(
        job.id, job.kind, "slow", took, f"{name}, the last to end, {'; '.join(told)}."
    )


def _answer(run: RunRecord, job: Job, index: int) -> tuple[str, ...]:
    return TaskAnswers(run, task_name(job.id, index)).why().details


def _open(state: RunState) -> list[tuple[int, TaskState, int]]:
    """Jobs with tasks that wait or still run although they should end: the number, the state and the
    first such task."""
    columns = {each: state.open_tasks(each) for each in _OPEN}
    found = []
    for number, job in enumerate(state.steps.jobs):
        for each, column in columns.items():
            index = int(column[number])
            if index < 0 or index >= job.tasks:
                continue
            if each is TaskState.RUNNING and job.group_at(index).endless:
                continue
            found.append((number, each, index))
            break
    return found


_OPEN: Final = (
    TaskState.ABANDONED,
    TaskState.PENDING,
    TaskState.QUEUED,
    TaskState.FAILED,
    TaskState.RUNNING,
)


def _unfinished(
    run: RunRecord, state: RunState, number: int, at: TaskState, index: int
) -> NotableJob:
    job = state.steps.jobs[number]
    took = state.until - int(state.jobs.submitted[number])
    if at is TaskState.RUNNING:
        reason = f"{task_name(job.id, index)} still runs."
    else:
        reason = TaskAnswers(run, task_name(job.id, index)).why().sentence
    return NotableJob(job.id, job.kind, "unfinished", took, reason)


def notable_sections(run: RunRecord, width: int | None) -> list[list[str]]:
    """Tables of both, as far as there are such jobs."""
    jobs = notable_jobs(run)
    sections = []
    for state, title in (("slow", "slowest jobs"), ("unfinished", "unfinished jobs")):
        mine = [each for each in jobs if each.state == state]
        if not mine:
            continue
        heading = "JCT" if state == "slow" else "so far"
        columns = (Column("job", "job"), Column("took", heading, Unit.TIME), Column("why", "why"))
        table = Table(columns, tuple((each.job, each.took, each.reason) for each in mine))
        lines = table.wrapped(width)
        more = count_unfinished(run) - len(mine) if state == "unfinished" else 0
        if more > 0:
            lines.append(f"{format_count(more, 'more job')}: argosy why JOB says why")
        sections.append([title, *lines])
    return sections
