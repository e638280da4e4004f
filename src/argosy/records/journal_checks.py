"""Finds the first line of a journal that contradicts those before it.

Readers notice a contradiction cheaply, without its line, and then ask for it here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from argosy.host import records
from argosy.host.setup import HostSetup
from argosy.model.errors import RunDirectoryError, excerpt
from argosy.model.jobs import INDEX_MASK, job_of
from argosy.model.transactions import AddMachine
from argosy.model.units import LARGEST
from argosy.records.journal_file import JournalFile

_HINT: Final = "it was changed since it was written; run the scenario again"
#: Records with one machine for each task.
_PAIRED: Final = (
    records.PlacedRecord,
    records.EnqueuedRecord,
    records.StartedRecord,
    records.LostRecord,
)
#: Records whose machines exist. A claim may be refused because there is no such machine.
_ON_MACHINES: Final = (*_PAIRED, records.ProbedRecord)


class Contradiction(NamedTuple):
    problem: str
    expected: str


def contradiction(journal: JournalFile) -> RunDirectoryError:
    """The error for the first line that contradicts the journal so far."""
    check = _LineCheck(journal.header().setup)
    for number, record in enumerate(journal.records(), 1):
        if isinstance(record, records.Record):
            found = next(check.problems(record), None)
            if found is not None:
                return RunDirectoryError(
                    found.problem,
                    file=journal.name,
                    line=number,
                    expected=found.expected,
                    hint=_HINT,
                )
    return RunDirectoryError("this journal contradicts itself", file=journal.name, hint=_HINT)


class _LineCheck:
    def __init__(self, setup: HostSetup) -> None:
        self._machines = len(setup.cell.machines)
        self._schedulers = {name for entry in setup.fleet for name in entry.scheduler_names()}
        #: Schedulers that have decided where a job goes without being part of the fleet.
        self._elsewhere: set[str] = set()
        self._jobs: set[str] = set()
        self._count = 0
        self._reached = 0

    def problems(self, record: Any) -> Iterator[Contradiction]:
        """What is wrong with the next record."""
        if not self._reached <= record.at <= LARGEST:
            yield Contradiction(f"time {record.at}", f"{self._reached} to 2^53")
        self._reached = record.at
        match record:
            case (
                records.SubmittedRecord(number=number, job=job)
                | records.RestoredRecord(number=number, job=job)
            ):
                if number != self._count:
                    yield Contradiction(f"job number {number}", str(self._count))
                self._jobs.add(job.id)
                self._count += 1
                if by := getattr(record, "by", ""):
                    self._elsewhere.add(by)
            case records.MachineRecord(change=AddMachine()):
                self._machines += 1
            case records.MachineRecord(change=change) if isinstance(change.machine, int):
                yield from self._no_machines([change.machine])
            case _:
                yield from self._about_job(record)
        yield from self._about_tasks(record)
        scheduler = getattr(record, "scheduler", None)
        # A scheduler may claim for a part of itself, named after a colon.
        if scheduler is not None and not self._knows((scheduler, scheduler.partition(":")[0])):
            names = ", ".join(sorted(self._schedulers))
            yield Contradiction(f"scheduler {excerpt(scheduler)}", names)

    def _about_job(self, record: Any) -> Iterator[Contradiction]:
        job, number = getattr(record, "job", None), getattr(record, "number", None)
        if isinstance(job, str) and job not in self._jobs:
            yield Contradiction(f"job {excerpt(job)}", "one that was submitted")
        for given in (job, number):
            if isinstance(given, int) and not 0 <= given < self._count:
                yield Contradiction(f"job number {given}", _numbers(self._count, "submitted"))

    def _knows(self, names: tuple[str, ...]) -> bool:
        """Whether one of them is a scheduler."""
        return any(name in self._schedulers or name in self._elsewhere for name in names)

    def _about_tasks(self, record: Any) -> Iterator[Contradiction]:
        indices = getattr(record, "indices", [])
        for index in indices:
            if not 0 <= index <= INDEX_MASK:
                yield Contradiction(f"task index {index}", "0 to 2^32 - 1")
        tasks = getattr(record, "tasks", indices)
        numbers = getattr(record, "tasks", [record.task] if hasattr(record, "task") else [])
        for task in numbers:
            if not 0 <= job_of(task) < self._count:
                yield Contradiction(f"task number {task}", "a task of a job that was submitted")
        if isinstance(record, _ON_MACHINES):
            yield from self._no_machines(record.machines)
        if isinstance(record, _PAIRED) and len(record.machines) != len(tasks):
            yield Contradiction(f"{len(record.machines)} machines", f"{len(tasks)}, one per task")

    def _no_machines(self, machines: list[int]) -> Iterator[Contradiction]:
        for machine in machines:
            if not 0 <= machine < self._machines:
                yield Contradiction(f"machine {machine}", _numbers(self._machines, "added"))


def _numbers(count: int, how: str) -> str:
    """The numbers of that many things, which were added or submitted."""
    if not count:
        return f"one that was {how}"
    return "0" if count == 1 else f"0 to {count - 1}"
