"""Reads jobs, tasks and tries from the database as values of the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from argosy.api.values import (
    JobDetails,
    JobPage,
    JobSummary,
    TaskCounts,
    TaskDetails,
    TaskPage,
    TaskSummary,
    TryInfo,
)
from argosy.model.errors import did_you_mean, excerpt
from argosy.model.jobs import Job
from argosy.service.dates import Calendar
from argosy.service.problems import NotFound, RequestError
from argosy.workloads.live_jobs import live_job_table
from argosy.worlds.local.projection import STATES, JobRow
from argosy.worlds.local.store import LocalStore

_JOB_COLUMNS: Final = (
    "seq, id, spec, kind, owner, precedence, scheduler, submitted, ended, state, version, "
    + ", ".join(STATES)
)
_TASK_COLUMNS: Final = "idx, state, machine, try, failures, exit_status, reason, started, ended"
_TASK_COLUMNS_JOINED: Final = ", ".join(f"tasks.{name}" for name in _TASK_COLUMNS.split(", "))
_JOB: Final = msgspec.json.Decoder(Job)
#: What a shell adds to the number of the signal that ended a program.
_BY_SIGNAL: Final = 128
#: Tasks of a job that are looked at together.
_STRETCH: Final = 1_000
#: States of tasks that are not over.
OPEN: Final = ("running", "queued", "pending")
#: No job has so large a number.
_NEWEST: Final = 1 << 60
#: How many ids are looked through for one that is like a wrong one.
_LIKE: Final = 1_000


class _Named(msgspec.Struct):
    name: str = ""


_NAMED: Final = msgspec.json.Decoder(_Named)


class StoredJob(msgspec.Struct, frozen=True):
    """A job as it stands in the database."""

    seq: int
    job: Job
    summary: JobSummary


class StoreReader:
    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self.calendar = Calendar(store.origin)

    def jobs(
        self,
        *,
        state: str | None,
        kind: str | None,
        owner: str | None,
        match: str | None = None,
        is_open: bool | None,
        limit: int,
        after: str | None,
    ) -> JobPage:
        """Newest first."""
        conditions, values = ["1"], list[Any]()
        for column, value in (("state", state), ("kind", kind), ("owner", owner)):
            if value is not None:
                conditions.append(f"{column} = ?")
                values.append(value)
        if match:
            # Ids are looked through in their index. Names are parts of documents, of which only those
            # with the text somewhere in them are read.
            conditions.append(
                "(seq IN (SELECT seq FROM jobs WHERE instr(id, ?)) OR (instr(spec, ?) AND "
                "instr(json_extract(CAST(spec AS TEXT), '$.name'), ?)))"
            )
            values += [match, msgspec.json.encode(match)[1:-1], match]
        if is_open is not None:
            conditions.append("ended IS NULL" if is_open else "ended IS NOT NULL")
        if after is not None:
            conditions.append("seq < ?")
            values.append(_position(after))
        rows = self._store.rows(
            f"SELECT {_JOB_COLUMNS} FROM jobs WHERE {' AND '.join(conditions)} "
            "ORDER BY seq DESC LIMIT ?",
            [*values, limit + 1],
        )
        shown = rows[:limit]
        codes = self._exit_codes(shown)
        items = tuple(self._summary(row, codes, _NAMED.decode(row[2]).name) for row in shown)
        return JobPage(items=items, next=str(shown[-1][0]) if len(rows) > limit else None)

    def _exit_codes(self, rows: Iterable[Sequence[Any]]) -> dict[int, int]:
        """Of jobs that failed: the exit code of the first task that did."""
        failed = [row[0] for row in rows if row[9] == "failed"]
        if not failed:
            return {}
        marks = ",".join("?" * len(failed))
        found = self._store.rows(
            f"SELECT job, exit_status FROM tasks WHERE job IN ({marks}) AND state = 'failed' "
            "ORDER BY job, idx DESC",
            failed,
        )
        return {seq: _exit_code(status) for seq, status in found}

    def _summary(self, row: Sequence[Any], codes: dict[int, int], label: str, **more: Any) -> Any:
        """`label` is what people call the job."""
        seq, name, _, kind, owner, precedence, scheduler = row[:7]
        submitted, ended, state, version, *counts = row[7:]
        code = None
        if ended is not None:
            code = 0 if state == "finished" else codes.get(seq, 1)
        return (JobDetails if more else JobSummary)(
            id=name,
            name=label,
            kind=kind,
            owner=owner,
            precedence=precedence,
            scheduler=scheduler,
            state=state,
            version=version,
            tasks=TaskCounts(**dict(zip(STATES, counts, strict=True))),
            submitted=self.calendar.date(submitted),
            ended=self.calendar.known_date(ended),
            exit_code=code,
            **more,
        )

    def job(self, name: str) -> StoredJob:
        row = self._job_row(name)
        job = _JOB.decode(row[2])
        return StoredJob(row[0], job, self._summary(row, self._exit_codes([row]), job.name))

    def details(
        self,
        name: str,
        isolation: str,
        notes: Callable[[Job], tuple[str, ...]],
        known: JobRow | None = None,
    ) -> JobDetails:
        """`known` is the job's row if that is in memory."""
        if known is None:
            row = self._job_row(name)
            job = _JOB.decode(row[2])
        else:
            row, job = known.values(), known.job
        details: JobDetails = self._summary(
            row,
            self._exit_codes([row]),
            job.name,
            document=live_job_table(job),
            isolation=isolation,
            notes=notes(job),
        )
        return details

    def _job_row(self, name: str) -> tuple[Any, ...]:
        rows = self._store.rows(f"SELECT {_JOB_COLUMNS} FROM jobs WHERE id = ?", (name,))
        if not rows:
            known = self._store.rows("SELECT id FROM jobs ORDER BY seq DESC LIMIT ?", (_LIKE,))
            raise NotFound(
                f"unknown job {excerpt(name)}",
                hint=did_you_mean(name, [row[0] for row in known]) or "`argosy jobs` lists them",
            )
        return rows[0]

    def tasks(self, name: str, *, state: str | None, limit: int, after: str | None) -> TaskPage:
        """By index."""
        stored = self.job(name)
        first = 0 if after is None else _position(after) + 1
        states = None if state is None else (state,)
        of_job = self._each_task(stored.seq, name, stored.job.tasks, first, states)
        found = list(islice(of_job, limit + 1))
        items = tuple(found[:limit])
        return TaskPage(items=items, next=str(items[-1].index) if len(found) > limit else None)

    def open_tasks(
        self, *, state: str | None, limit: int, after: str | None, machine: str | None = None
    ) -> TaskPage:
        """Tasks of all jobs that run or wait: those of the newest job first."""
        seq, _, index = (after or "").partition(".")
        last, first = (_position(seq), _position(index) + 1) if after else (_NEWEST, 0)
        if machine is not None or state not in (None, "pending"):
            return self._placed_tasks(state, machine, limit, last, first)
        jobs = self._store.rows(
            "SELECT seq, id, pending + queued + running + finished + failed + cancelled + abandoned "
            "FROM jobs WHERE ended IS NULL AND seq <= ? ORDER BY seq DESC",
            (last,),
        )
        states = OPEN if state is None else (state,)
        found: list[tuple[int, TaskSummary]] = []
        for number, name, count in jobs:
            of_job = self._each_task(number, name, count, first if number == last else 0, states)
            found += [(number, task) for task in islice(of_job, limit + 1 - len(found))]
            if len(found) > limit:
                number, task = found[limit - 1]
                items = tuple(task for _, task in found[:limit])
                return TaskPage(items=items, next=f"{number}.{task.index}")
        return TaskPage(items=tuple(task for _, task in found))

    def _placed_tasks(
        self, state: str | None, machine: str | None, limit: int, last: int, first: int
    ) -> TaskPage:
        """Tasks that a machine runs or has in its queue. Jobs whose tasks all wait are not gone through
        one by one."""
        states = ("running", "queued") if state is None else (state,)
        rows = self._store.rows(
            f"SELECT seq, id, {_TASK_COLUMNS_JOINED} FROM jobs JOIN tasks ON tasks.job = jobs.seq "
            "WHERE jobs.ended IS NULL AND (seq < ?1 OR (seq = ?1 AND idx >= ?2)) "
            "AND tasks.state IN (?3, ?4) AND (?5 IS NULL OR tasks.machine = ?5) "
            "ORDER BY seq DESC, idx LIMIT ?6",
            (last, first, states[0], states[-1], machine, limit + 1),
        )
        shown = rows[:limit]
        following = f"{shown[-1][0]}.{shown[-1][2]}" if len(rows) > limit else None
        return TaskPage(items=tuple(self._task(row[1], row[2:]) for row in shown), next=following)

    def _each_task(
        self, seq: int, name: str, count: int, first: int, states: tuple[str, ...] | None
    ) -> Iterator[TaskSummary]:
        """The tasks of a job by index, from `first` on. Those that were never anything but pending have
        no row."""
        while first < count:
            last = min(count, first + _STRETCH)
            known = self._task_rows(seq, first, last)
            if states is None or "pending" in states:
                rows = [known.get(at, (at, "pending", "", None, 0)) for at in range(first, last)]
            else:
                rows = sorted(known.values())
            for row in rows:
                if states is None or row[1] in states:
                    yield self._task(name, row)
            first = last

    def _task_rows(self, seq: int, first: int, last: int) -> dict[int, tuple[Any, ...]]:
        rows = self._store.rows(
            f"SELECT {_TASK_COLUMNS} FROM tasks WHERE job = ? AND idx >= ? AND idx < ?",
            (seq, first, last),
        )
        return {row[0]: row for row in rows}

    def _task(self, job: str, row: Sequence[Any], **more: Any) -> Any:
        index, state, machine, number, failures = row[:5]
        status, reason, started, ended = row[5:] or (None, "", None, None)
        return (TaskDetails if more else TaskSummary)(
            job=job,
            index=index,
            state=state,
            machine=machine,
            try_number=number,
            failures=failures,
            exit_status=status,
            reason=reason,
            started=self.calendar.known_date(started),
            ended=self.calendar.known_date(ended),
            **more,
        )

    def task(self, name: str, index: int) -> TaskDetails:
        stored = self.job(name)
        rows = self._task_rows(stored.seq, index, index + 1)
        if index not in rows and index >= stored.job.tasks:
            raise NotFound(
                f"job {name} has no task {index}", expected=f"0 to {stored.job.tasks - 1}"
            )
        tries = self._store.rows(
            "SELECT try, machine, started, ended, exit_status, outcome FROM tries "
            "WHERE job = ? AND idx = ? ORDER BY try",
            (stored.seq, index),
        )
        details: TaskDetails = self._task(
            name,
            rows.get(index, (index, "pending", "", None, 0)),
            tries=tuple(
                TryInfo(
                    number=number,
                    machine=machine,
                    started=self.calendar.date(started),
                    ended=self.calendar.known_date(ended),
                    exit_status=status,
                    outcome=outcome,
                )
                for number, machine, started, ended, status, outcome in tries
            ),
        )
        return details


def _exit_code(status: int | None) -> int:
    if status is None:
        return 1
    return status if status > 0 else _BY_SIGNAL - status if status < 0 else 1


def _position(after: str) -> int:
    if not (after.isascii() and after.isdecimal() and len(after) < 19):
        raise RequestError(
            excerpt(after), field="after", expected="what `next` of the page before said"
        )
    return int(after)
