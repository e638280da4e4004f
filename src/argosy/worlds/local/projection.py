"""Folds the journal of a live host into the rows of the database: where every job and task is.

The journal is the only source: a turn's lines are read once more and change the rows of the jobs and
tasks they speak of. Rows of jobs that are not over stay in memory.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import astuple, replace

from argosy.host import records
from argosy.host.job_state import JobState
from argosy.model.explanations import LIMITS, Explanation, Refusal, Why
from argosy.model.jobs import Job, index_of, job_of
from argosy.model.machines import Machine
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.worlds.local.changes import (
    ChangeNote,
    JobNote,
    LifeNote,
    MachineNote,
    TaskNote,
    encode_changes,
)

#: Stands for the machines in `job_turns`.
MACHINES_SEQ: Final = 0
#: States in which a task is over.
OVER: Final = ("finished", "failed", "cancelled", "abandoned")
STATES: Final = ("pending", "queued", "running", *OVER)
_AT_MACHINES: Final = ("queued", "running")

_LINES: Final = msgspec.json.Decoder(records.JournalRecord)
_ENCODE: Final = msgspec.json.Encoder().encode
#: An update leaves alone what never changes, and the index of ids.
_STORE_JOB: Final = (
    "INSERT INTO jobs VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT (seq) DO UPDATE SET "
    + ", ".join(
        f"{column} = excluded.{column}"
        for column in ("spec", "scheduler", "ended", "state", "version", *STATES)
    )
)


class TaskRow(msgspec.Struct):
    """A task that has left the state *pending* at least once."""

    state: str = "pending"
    machine: str = ""
    try_number: int | None = None
    failures: int = 0
    exit_status: int | None = None
    reason: str = ""
    started: int | None = None
    ended: int | None = None


class JobRow(msgspec.Struct):
    """A job that is not over, or has just come to its end."""

    seq: int
    job: Job
    scheduler: str
    submitted: int
    #: How many tasks are in each of `STATES`, in that order.
    counts: dict[str, int]
    tasks: dict[int, TaskRow] = {}
    ended: int | None = None
    #: Grows with every change, so that clients can tell what they have seen.
    version: int = 0
    #: The number it has with the present host.
    number: int = -1
    #: The job as it is stored; empty until that is needed.
    spec: bytes = b""

    @property
    def state(self) -> str:
        """A job that is over is as bad as the worst of its tasks."""
        if self.counts["running"]:
            return "running"
        if self.counts["pending"] or self.counts["queued"]:
            return "pending"
        for state in ("failed", "abandoned", "cancelled"):
            if self.counts[state]:
                return state
        return "finished"

    @property
    def is_over(self) -> bool:
        return not (self.counts["pending"] or self.counts["queued"] or self.counts["running"])

    def task(self, index: int) -> TaskRow:
        row = self.tasks.get(index)
        if row is None:
            row = self.tasks[index] = TaskRow()
        return row

    def values(self, version: int | None = None) -> tuple[object, ...]:
        """The row as it is stored, or as it is to be with another version."""
        job = self.job
        return (
            self.seq,
            job.id,
            self.spec,
            job.kind,
            job.owner,
            job.precedence,
            self.scheduler,
            self.submitted,
            self.ended,
            self.state,
            self.version if version is None else version,
            *self.counts.values(),
        )

    def as_left(self) -> JobState:
        """What another host needs to go on with the job, except the numbers of `machines`. Tasks that
        the job had before it was scaled down are over, and not its tasks any more."""
        indices: dict[str, list[int]] = {state: [] for state in STATES}
        for index, row in sorted(self.tasks.items()):
            if index < self.job.tasks:
                indices[row.state].append(index)
        return JobState(
            submitted=self.submitted,
            scheduler=self.scheduler,
            running=tuple(indices["running"]),
            finished=tuple(indices["finished"]),
            failed=tuple(indices["failed"]),
            cancelled=tuple(indices["cancelled"]),
            abandoned=tuple(indices["abandoned"]),
            failures={
                index: row.failures
                for index, row in self.tasks.items()
                if row.failures and index < self.job.tasks
            },
        )


ChoiceRecord: TypeAlias = records.PlacedRecord | records.EnqueuedRecord | records.ProbedRecord


class Projection:
    """The rows of jobs that are not over, and what the current turn has changed."""

    def __init__(self, next_seq: int) -> None:
        #: What the next new job is stored under.
        self.next_seq = next_seq
        #: Whether there are jobs that only the database knows.
        self.has_forgotten = next_seq > 1
        #: Jobs that are not over, by the host's number and by id.
        self.by_number: dict[int, JobRow] = {}
        self.by_id: dict[str, JobRow] = {}
        #: By the host's number; machines that are gone keep theirs.
        self.machines: list[Machine] = []
        self._changed_jobs: dict[int, JobRow] = {}
        self._changed_tasks: dict[tuple[int, int], TaskRow] = {}
        #: Jobs that the turn speaks of.
        self._mentioned: set[int] = set()
        self._machine_changes: list[MachineChange] = []
        #: Jobs that the turn explained as waiting, and what the last explanation was.
        self.explained: dict[str, Explanation] = {}
        #: The cell's, by which what a limit refuses is named.
        self.dimensions: tuple[str, ...] = ()
        #: If choices are kept: how tasks that were not launched yet came to their machines, and what
        #: was told of their jobs' choices separately.
        self.keeps_choices = False
        self.choices: dict[tuple[str, int], ChoiceRecord] = {}
        self.told: dict[str, Explanation] = {}
        #: Changes in the order in which they happened, except those of jobs.
        self._changes: list[ChangeNote] = []
        #: Tasks that run or wait at each machine: by its name, and `running` or `queued`.
        self.busy: Counter[tuple[str, str]] = Counter()
        #: How often machines have changed in this life, so that others know when to look again.
        self.machine_version = 0

    def begin_life(self, machines: Iterable[Machine], life: int, at: int) -> None:
        """A new host numbers jobs and machines anew."""
        self.by_number = {}
        self.machines = list(machines)
        self._changes.append(LifeNote(at, life))

    def load(self, row: JobRow) -> None:
        """A job that an earlier server left."""
        self.by_id[row.job.id] = row
        for task in row.tasks.values():
            if task.state in _AT_MACHINES:
                self.busy[task.machine, task.state] += 1

    def fold(self, lines: bytes) -> None:
        """Takes a turn's lines."""
        for record in _LINES.decode_lines(lines):
            self._fold(record)

    def note_try(self, row: JobRow, index: int, try_number: int, at: int) -> None:
        """A task begins to run as a process."""
        task = row.task(index)
        task.try_number, task.started = try_number, at
        self._changed_tasks[row.seq, index] = task

    def _fold(self, record: records.JournalRecord) -> None:
        match record:
            case records.SubmittedRecord(at, number, job, scheduler):
                counts = {**dict.fromkeys(STATES, 0), "pending": job.tasks}
                row = JobRow(self.next_seq, job, scheduler, at, counts)
                self.next_seq += 1
                row.number = number
                self.by_number[number] = self.by_id[job.id] = row
                self._change(row)
            case records.RestoredRecord(_, number, job, scheduler):
                row = self.by_id[job.id]
                row.scheduler = scheduler
                row.number = number
                self.by_number[number] = row
                kept = set(record.state.running)
                for index, known in list(row.tasks.items()):
                    if known.state in ("running", "queued") and index not in kept:
                        self._move(row, index, "pending", record.at)
                self._change(row)
            case records.PlacedRecord(at, job, indices, machines, scheduler):
                row = self.by_id[job]
                row.scheduler = scheduler.split(":")[0]
                for index, machine in zip(indices, machines, strict=True):
                    self._move(row, index, "running", at, self.machines[machine].name)
                self._keep_choice(record)
            case records.EnqueuedRecord(at, job, indices, machines):
                self._keep_choice(record)
                for index, machine in zip(indices, machines, strict=True):
                    self._move(self.by_id[job], index, "queued", at, self.machines[machine].name)
            case records.ProbedRecord(at, job, indices):
                self._keep_choice(record)
                self._move_all(self.by_id[job], indices, "queued", at)
            case records.StartedRecord(at, tasks, machines):
                for task, machine in zip(tasks, machines, strict=True):
                    row = self.by_number[job_of(task)]
                    self._move(row, index_of(task), "running", at, self.machines[machine].name)
            case records.EndedRecord(at, tasks):
                for task in tasks:
                    row = self.by_number[job_of(task)]
                    ended = row.task(index_of(task))
                    ended.exit_status, ended.reason = 0, ""
                    self._move(row, index_of(task), "finished", at)
            case records.FailedRecord(_, task, _, exit_status, reason):
                row = self.by_number[job_of(task)]
                failed = row.task(index_of(task))
                failed.failures += 1
                failed.exit_status, failed.reason = exit_status, reason
            case records.RetriedRecord(at, job, indices, for_good=for_good):
                state = "failed" if for_good else "pending"
                self._move_all(self.by_id[job], indices, state, at)
            case records.LostRecord(at, job, indices) | records.ReleasedRecord(at, job, indices):
                # Workers may be lost whose job is done.
                if job in self.by_id:
                    self._move_all(self.by_id[job], indices, "pending", at)
            case records.AbandonedRecord(at, job, indices, explanation=explanation):
                self._move_all(self.by_id[job], indices, "abandoned", at)
                self.explained[job] = explanation
            case records.CancelledRecord(at, number, indices):
                self._move_all(self.by_number[number], indices, "cancelled", at)
            case records.ScaledRecord(at, number, job):
                self._scale(self.by_number[number], job, at)
            case records.ResubmittedRecord(job=job, scheduler=scheduler):
                self.by_id[job].scheduler = scheduler
                self._change(self.by_id[job])
            case records.ExplainedRecord(job=job) | records.RefusedRecord(job=job) if (
                job not in self.by_id
            ):
                # A decision that took long may speak of jobs that were over before it was made.
                pass
            case records.ExplainedRecord(job=job, explanation=explanation):
                self._mentioned.add(self.by_id[job].seq)
                self.explained[job] = explanation
                if self.keeps_choices and explanation.is_choice:
                    self.told[job] = explanation
            case records.RefusedRecord(job=job):
                self._mentioned.add(self.by_id[job].seq)
                self._explain_limit(record)
            case records.MachineRecord(at, change):
                self._mentioned.add(MACHINES_SEQ)
                self._changes.append(self._change_machine(change, at))

    def _explain_limit(self, record: records.RefusedRecord) -> None:
        """Schedulers find a way round other refusals, or explain why there is none; the limit that a
        job is beyond is told by its refusal alone."""
        for why, detail, amount in zip(record.whys, record.details, record.amounts, strict=True):
            if why in LIMITS:
                dimension = self.dimensions[detail] if 0 <= detail < len(self.dimensions) else ""
                refusal = Refusal(Why(why), dimension=dimension, lacking=amount)
                self.explained[record.job] = Explanation(refused=refusal, remedy=refusal.remedy())
                return

    def _keep_choice(self, record: ChoiceRecord) -> None:
        if self.keeps_choices:
            for index in record.indices:
                self.choices[record.job, index] = record

    def take_choice(self, job: str, index: int) -> tuple[ChoiceRecord | None, Explanation | None]:
        """How the task came to its machine, once, and what was told of it separately."""
        return self.choices.pop((job, index), None), self.told.get(job)

    def _change_machine(self, change: MachineChange, at: int) -> MachineNote:
        self._machine_changes.append(change)
        self.machine_version += 1
        machines = self.machines
        match change:
            case AddMachine(machine):
                machines.append(machine)
                return MachineNote(at, machine.name, "added")
            case ResizeMachine(number, capacity):
                machines[number] = replace(machines[number], capacity=capacity)
                return MachineNote(at, machines[number].name, "resized")
            case RelabelMachine(number, attributes, joins):
                machines[number] = replace(machines[number], attributes=attributes, joins=joins)
                return MachineNote(at, machines[number].name, "relabelled")
            case DrainMachine(number, is_draining):
                kind: Literal["draining", "accepting"] = "draining" if is_draining else "accepting"
                return MachineNote(at, machines[number].name, kind)
            case RemoveMachine(number):
                return MachineNote(at, machines[number].name, "removed")
            case ReviveMachine(number):
                return MachineNote(at, machines[number].name, "added")

    def _scale(self, row: JobRow, job: Job, at: int) -> None:
        before, row.job, row.spec = row.job.tasks, job, b""
        for index in range(job.tasks, before):
            if row.task(index).state not in OVER:
                self._move(row, index, "cancelled", at)
        for index in range(before, job.tasks):
            if index not in row.tasks:
                row.counts["pending"] += 1
            elif row.tasks[index].state == "cancelled":
                self._move(row, index, "pending", at)
        self._change(row)

    def _move_all(self, row: JobRow, indices: Iterable[int], state: str, at: int) -> None:
        for index in indices:
            self._move(row, index, state, at)

    def _move(self, row: JobRow, index: int, state: str, at: int, machine: str = "") -> None:
        if index >= row.job.tasks and index not in row.tasks:
            # A worker that the job did not ask for.
            return
        task = row.task(index)
        row.counts[task.state] -= 1
        row.counts[state] += 1
        if task.state in _AT_MACHINES:
            self.busy[task.machine, task.state] -= 1
        task.state = state
        task.machine = machine or (task.machine if state in OVER else "")
        if state in _AT_MACHINES:
            self.busy[task.machine, state] += 1
        task.ended = at if state in OVER else None
        is_told = state in OVER or task.failures > 0
        self._changes.append(
            TaskNote(
                at,
                row.job.id,
                index,
                state,
                task.machine,
                task.exit_status if is_told else None,
                task.reason if is_told else "",
            )
        )
        self._changed_tasks[row.seq, index] = task
        self._change(row)

    def _change(self, row: JobRow) -> None:
        self._changed_jobs[row.seq] = row
        self._mentioned.add(row.seq)

    def saved_row(self, name: str) -> JobRow | None:
        """A job that is not over, if the database says the same of it."""
        row = self.by_id.get(name)
        return None if row is None or row.seq in self._changed_jobs else row

    def coming_version(self, name: str) -> int | None:
        """The version of a job with what has changed since the last commit; none if it is over."""
        row = self.by_id.get(name)
        return None if row is None else row.version + (row.seq in self._changed_jobs)

    def write(self, turn: sqlite3.Cursor, number: int, at: int) -> None:
        """The rows of everything that has changed. May be called again, if the commit failed."""
        for row in self._changed_jobs.values():
            if row.is_over:
                row.ended = row.ended if row.ended is not None else at
            else:
                row.ended = None
            row.spec = row.spec or _ENCODE(row.job)
        turn.executemany(
            _STORE_JOB,
            [row.values(row.version + 1) for row in self._changed_jobs.values()],
        )
        turn.executemany(
            "INSERT OR REPLACE INTO tasks VALUES (?,?,?,?,?,?,?,?,?,?)",
            [(seq, index, *astuple(task)) for (seq, index), task in self._changed_tasks.items()],
        )
        turn.executemany(
            "INSERT OR IGNORE INTO job_turns VALUES (?,?)",
            [(seq, number) for seq in self._mentioned],
        )
        self._write_machines(turn)

    def encoded_changes(self, at: int) -> bytes:
        """What the turn changed, as it is stored."""
        jobs = (
            JobNote(
                at,
                row.job.id,
                row.state,
                row.version + 1,
                tuple(row.counts.values()),
            )
            for row in self._changed_jobs.values()
        )
        return encode_changes([*self._changes, *jobs])

    def _write_machines(self, turn: sqlite3.Cursor) -> None:
        for change in self._machine_changes:
            match change:
                case AddMachine(machine):
                    turn.execute(
                        "INSERT INTO machines (name, spec, is_draining) VALUES (?,?,0)",
                        (machine.name, _ENCODE(machine)),
                    )
                case ReviveMachine(number):
                    machine = self.machines[number]
                    turn.execute(
                        "INSERT INTO machines (name, spec, is_draining) VALUES (?,?,0)",
                        (machine.name, _ENCODE(machine)),
                    )
                case RemoveMachine(number):
                    name = self.machines[number].name
                    turn.execute("DELETE FROM machines WHERE name = ?", (name,))
                case DrainMachine(number, draining):
                    turn.execute(
                        "UPDATE machines SET is_draining = ? WHERE name = ?",
                        (draining, self.machines[number].name),
                    )
                case ResizeMachine(number) | RelabelMachine(number):
                    machine = self.machines[number]
                    turn.execute(
                        "UPDATE machines SET spec = ? WHERE name = ?",
                        (_ENCODE(machine), machine.name),
                    )

    def committed(self) -> None:
        """The turn is on the disk: jobs that are over are forgotten."""
        for row in self._changed_jobs.values():
            row.version += 1
            if row.is_over:
                self.has_forgotten = True
                self.by_id.pop(row.job.id, None)
                for index in row.tasks if self.keeps_choices else ():
                    self.choices.pop((row.job.id, index), None)
                self.told.pop(row.job.id, None)
                self.by_number.pop(row.number, None)
        self._changed_jobs.clear()
        self._changed_tasks.clear()
        self._mentioned.clear()
        self.explained.clear()
        self._machine_changes.clear()
        self._changes.clear()
