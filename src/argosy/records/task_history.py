"""What a journal says about one task: its records in order, and names for what they mention."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from argosy.host.records import (
    AbandonedRecord,
    AttemptRecord,
    CancelledRecord,
    ConfirmedRecord,
    CrashedRecord,
    EndedRecord,
    EnqueuedRecord,
    ExplainedRecord,
    FailedRecord,
    ForgottenRecord,
    LostRecord,
    PlacedRecord,
    ProbedRecord,
    RefusedRecord,
    ReleasedRecord,
    RestoredRecord,
    ResubmittedRecord,
    RetriedRecord,
    ScaledRecord,
    StartedRecord,
    SubmittedRecord,
)
from argosy.model.errors import CommandError, UnknownName
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job, TaskGroup, index_of, job_of, task_name, task_number
from argosy.model.units import format_duration
from argosy.records.journal_checks import contradiction
from argosy.records.journal_file import Fact, JournalFile
from argosy.records.record import RunRecord

#: Records that determine where the task is, or why it has no machine; the last one counts.
Decisive: TypeAlias = (
    PlacedRecord
    | EnqueuedRecord
    | ProbedRecord
    | StartedRecord
    | RefusedRecord
    | ExplainedRecord
    | LostRecord
    | ReleasedRecord
    | AbandonedRecord
)
#: Records that name the task's job and the indices of the tasks concerned.
_OfTasks: TypeAlias = (
    PlacedRecord
    | EnqueuedRecord
    | ProbedRecord
    | RefusedRecord
    | ExplainedRecord
    | LostRecord
    | ReleasedRecord
    | AbandonedRecord
    | ResubmittedRecord
    | RetriedRecord
)


class TaskHistory:
    """Only the lines about the task are read."""

    def __init__(self, run: RunRecord, task: str) -> None:
        self.run = run
        self.journal = run.journal
        self.job, self.number, self.index = _resolve(self.journal, task)
        self.task = task_name(self.job, self.index)
        self._machines = self.journal.machine_names()
        self._dimensions = self.journal.dimensions()
        self.facts = list(self._concerning())

    @property
    def spec(self) -> Job:
        """The job as it was last submitted or scaled."""
        for fact in reversed(self.facts):
            if isinstance(fact, SubmittedRecord | RestoredRecord | ScaledRecord):
                return fact.job
        raise contradiction(self.journal)

    @property
    def group(self) -> TaskGroup | None:
        """None if scaling has removed the task."""
        return self.spec.group_at(self.index) if self.index < self.spec.tasks else None

    @property
    def decisive(self) -> Decisive | None:
        """The last record that determines where the task is."""
        return next((x for x in reversed(self.facts) if isinstance(x, Decisive)), None)

    @property
    def submitted(self) -> int:
        return self.facts[0].at if self.facts else 0

    def state(self) -> str:
        state, count = "pending", 0
        for fact in self.facts:
            match fact:
                case SubmittedRecord(job=job) | ScaledRecord(job=job):
                    was_removed, count = count <= self.index, job.tasks
                    if self.index >= count and state not in _OVER:
                        state = "cancelled"
                    elif self.index < count and was_removed and state == "cancelled":
                        state = "pending"
                case _:
                    if isinstance(fact, RestoredRecord):
                        count = fact.job.tasks
                    state = _state_after(fact, self.index) or state
        return state

    def _concerning(self) -> Iterator[Fact]:
        """The records about the task, in order."""
        index, task = self.index, task_number(self.number, self.index)
        prober, was_probed = "", False
        for fact in self.journal.about(self.job, self.number, index):
            match fact:
                case (
                    SubmittedRecord(number=number)
                    | RestoredRecord(number=number)
                    | ScaledRecord(number=number)
                ):
                    concerns = number == self.number
                case AttemptRecord(job=job):
                    concerns = job == self.job
                case StartedRecord(tasks=tasks) | EndedRecord(tasks=tasks):
                    concerns = task in tasks
                    prober = "" if concerns else prober
                case ConfirmedRecord(tasks=tasks) | ForgottenRecord(tasks=tasks):
                    concerns = task in tasks
                case FailedRecord(task=failed):
                    concerns = failed == task
                case CancelledRecord(number=number, indices=indices):
                    concerns = number == self.number and index in indices
                case CrashedRecord(scheduler=scheduler):
                    # The scheduler's probes are void.
                    concerns = scheduler == prober
                case _ if isinstance(fact, _OfTasks):
                    concerns = fact.job == self.job and index in fact.indices
                    if concerns:
                        was_probed = isinstance(fact, ProbedRecord)
                        prober = fact.scheduler if isinstance(fact, ProbedRecord) else prober
                case _:
                    concerns = False
            if concerns:
                yield fact
        if not self.journal.has_ends:
            yield from self._kept(task, was_probed)

    def _kept(self, task: int, was_probed: bool) -> Iterator[Fact]:
        """Start and end from a saved timeline, if the journal contains only decisions."""
        if not self.run.is_finished:
            return
        rows = self.run.kept_tasks()
        for row in (rows["task"] == task).nonzero()[0].tolist():
            started, finished = int(rows["started"][row]), int(rows["finished"][row])
            if was_probed or started > int(rows["placed"][row]):
                yield StartedRecord(started, [task], [int(rows["machine"][row])])
            if finished >= 0:
                yield EndedRecord(finished, [task])

    def restored_as(self, record: RestoredRecord) -> str:
        state = record.state.of(self.index)
        if state == "running":
            where = record.state.machines[record.state.running.index(self.index)]
            return f"running on {self.name(where)}"
        return state

    def machine(self, indices: list[int], machines: list[int]) -> str:
        return self.name(machines[indices.index(self.index)])

    def name(self, machine: int) -> str:
        return self._machines[machine] if 0 <= machine < len(self._machines) else str(machine)

    def refusal(self, record: RefusedRecord) -> Refusal:
        row = record.indices.index(self.index)
        detail = record.details[row]
        return Refusal(
            why=Why(record.whys[row]),
            machine=record.machines[row],
            dimension=self._dimensions[detail] if 0 <= detail < len(self._dimensions) else "",
            lacking=record.amounts[row],
        )

    def last_start(self, otherwise: int) -> int:
        """A task ends once, after its last start."""
        started = otherwise
        for fact in self.facts:
            match fact:
                case PlacedRecord(begun):
                    started = begun
                case StartedRecord(begun, after=after):
                    started = begun + after
        return started

    def last_end(self) -> int | None:
        return next((fact.at for fact in self.facts if isinstance(fact, EndedRecord)), None)

    def queued(self, started: int) -> str:
        """How long the task waited since it left its scheduler."""
        waits = 0
        for fact in self.facts:
            match fact:
                case EnqueuedRecord(at, indices=indices, first=first, every=every):
                    waits = started - (at + first + indices.index(self.index) * every)
                case ProbedRecord(at):
                    waits = started - at
            if fact.at > started:
                break
        return f" after {format_duration(waits)} on the way and in its queue" if waits else ""

    @cached_property
    def _jobs(self) -> list[str]:
        return self.journal.job_names()

    def task_name(self, task: int) -> str:
        number = job_of(task)
        jobs = self._jobs
        return task_name(jobs[number] if number < len(jobs) else str(number), index_of(task))


def _resolve(journal: JournalFile, task: str) -> tuple[str, int, int]:
    """Parses ``job/index`` (or ``job`` for its first task): the job, its number and the index."""
    job, _, index_text = task.partition("/")
    found = journal.job(job)
    if found is None:
        names = journal.job_names()
        error = UnknownName("job", job, names)
        if len(names) > 20:
            # A list of all jobs would bury the message.
            error.expected = f"one of the {len(names)} jobs that were submitted"
        raise error
    count = journal.largest_count(found)
    is_number = index_text.isascii() and index_text.isdecimal()
    index = int(index_text) if is_number else 0 if task == job else count
    if index >= count:
        raise CommandError(f"unknown task {task!r}", expected=f"{job}/0 to {job}/{count - 1}")
    return job, found.number, index


#: States that removing a task does not change.
_OVER = ("finished", "failed", "abandoned")


def _state_after(fact: Fact, index: int) -> str | None:
    """The task's state after a record about it alone; None if the record does not change it."""
    match fact:
        case PlacedRecord() | StartedRecord():
            return "running"
        case EnqueuedRecord() | ProbedRecord():
            return "queued"
        case EndedRecord():
            return "finished"
        case RestoredRecord(state=state):
            return state.of(index)
        case AbandonedRecord():
            return "abandoned"
        case CancelledRecord():
            return "cancelled"
        case RetriedRecord(for_good=for_good):
            return "failed" if for_good else "pending"
        case (
            ResubmittedRecord() | LostRecord() | ReleasedRecord() | FailedRecord() | CrashedRecord()
        ):
            return "pending"
    return None
