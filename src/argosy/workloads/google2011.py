"""The public Google cluster trace of 2011 (clusterdata-2011-2): machines and jobs.

A trace is a directory with the tables as published: ``machine_events``, ``job_events`` and
``task_events``, and if there are any ``machine_attributes`` and ``task_constraints``. The columns are
those of the trace's ``schema.csv``. Priorities 0 to 8 are batch, as in the Omega paper's footnote 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob
from argosy.workloads.google_jobs import (
    LARGEST_MACHINE,
    TRACE_START,
    Ask,
    Assembly,
    Event,
    GoogleMachines,
    Notes,
    Requests,
    What,
    merged,
    scaled,
)
from argosy.workloads.google_tables import Row, bare_rows, rows

__all__ = ["LARGEST_MACHINE", "TRACE_START", "Notes", "jobs", "machines"]

#: Of priorities: up to here jobs are batch.
HIGHEST_BATCH_PRIORITY: Final = 8

MACHINE_EVENTS: Final = ("time", "machine ID", "event type", "platform ID", "CPUs", "Memory")
MACHINE_ATTRIBUTES: Final = (
    "time",
    "machine ID",
    "attribute name",
    "attribute value",
    "attribute deleted",
)
JOB_EVENTS: Final = (
    "time",
    "missing info",
    "job ID",
    "event type",
    "user",
    "scheduling class",
    "job name",
    "logical job name",
)
TASK_EVENTS: Final = (
    "time",
    "missing info",
    "job ID",
    "task index",
    "machine ID",
    "event type",
    "user",
    "scheduling class",
    "priority",
    "CPU request",
    "memory request",
    "disk space request",
    "different machines restriction",
)
TASK_CONSTRAINTS: Final = (
    "time",
    "job ID",
    "task index",
    "comparison operator",
    "attribute name",
    "attribute value",
)

_MACHINE_TYPES: Final = ("ADD", "REMOVE", "UPDATE")
_TYPES: Final = (
    "SUBMIT",
    "SCHEDULE",
    "EVICT",
    "FAIL",
    "FINISH",
    "KILL",
    "LOST",
    "UPDATE_PENDING",
    "UPDATE_RUNNING",
)
_OF_TASKS: Final = (
    What.SUBMITTED,
    What.SCHEDULED,
    *(What.STOPPED,) * 5,
    What.OTHER,
    What.OTHER,
)
#: A job that was evicted is not over.
_OF_JOBS: Final = (
    What.SUBMITTED,
    What.OTHER,
    What.OTHER,
    *(What.ENDED,) * 4,
    What.OTHER,
    What.OTHER,
)
_OPERATORS: Final = ("EQUAL", "NOT_EQUAL", "LESS_THAN", "GREATER_THAN")


def machines(
    directory: Path,
    *,
    at: int = TRACE_START,
    most: int | None = None,
    whole: Resources = LARGEST_MACHINE,
    notes: Notes | None = None,
) -> tuple[Machine, ...]:
    """The machines that are there at `at`, with the attributes they have then and their platform.
    `whole` is what the normalised capacity 1.0 stands for."""
    table = GoogleMachines(directory, at, Notes() if notes is None else notes)
    for row in rows(directory, "machine_events", MACHINE_EVENTS, bare_rows):
        number, machine = row.whole("machine ID"), None
        if _MACHINE_TYPES[row.choice("event type", _MACHINE_TYPES)] != "REMOVE":
            capacity = scaled(row.share("CPUs"), row.share("Memory"), whole=whole, up=False)
            platform = row.text("platform ID")
            machine = Machine(f"m{number}", capacity, {"platform": platform} if platform else {})
        table.take(row.time(), number, machine)
    for row in rows(directory, "machine_attributes", MACHINE_ATTRIBUTES, bare_rows, optional=True):
        value = None if row.flag("attribute deleted") else row.text("attribute value")
        table.take_attribute(row.time(), row.whole("machine ID"), row.text("attribute name"), value)
    return table.machines(most)


def jobs(
    directory: Path,
    *,
    start: int = TRACE_START,
    span: int | None = None,
    whole: Resources = LARGEST_MACHINE,
    notes: Notes | None = None,
    in_order: bool = True,
) -> Iterator[SimulatedJob]:
    """The jobs that run at `start` or are submitted within `span` of it, in order of submission,
    with times counted from `start`. `notes` counts what was read and what could not be expressed.
    The tables are in order of time as published; `in_order=False` sorts them in memory."""
    notes = Notes() if notes is None else notes
    # Of one instant, a task's constraints come before it and a job's end after its tasks'.
    in_time = merged(
        (
            "task_constraints",
            rows(directory, "task_constraints", TASK_CONSTRAINTS, bare_rows, optional=True),
        ),
        ("task_events", rows(directory, "task_events", TASK_EVENTS, bare_rows)),
        ("job_events", rows(directory, "job_events", JOB_EVENTS, bare_rows)),
        in_order=in_order,
    )
    events = _Events2011(whole, notes).read(in_time)
    return Assembly(start, span, notes).read(events)


class _Events2011:
    def __init__(self, whole: Resources, notes: Notes) -> None:
        self.notes = notes
        #: Of tasks not submitted yet.
        self.constraints: dict[tuple[int, int], dict[str, str]] = {}
        self.requests = Requests("CPU request", "memory request", whole)

    def read(self, rows: Iterable[tuple[int, str, Row]]) -> Iterator[Event]:
        for time, table, row in rows:
            if table == "task_constraints":
                self._take_constraint(row)
            elif table == "task_events":
                yield self._of_task(time, row)
            else:
                what = _OF_JOBS[row.choice("event type", _TYPES)]
                if what is not What.OTHER:
                    yield Event(time, what, row.whole("job ID"), owner=row.text("user"))

    def _of_task(self, time: int, row: Row) -> Event:
        job, index = row.whole("job ID"), row.whole("task index")
        what = _OF_TASKS[row.choice("event type", _TYPES)]
        requires: dict[str, str] = {}
        if what is What.SUBMITTED:
            requires = self.constraints.pop((job, index), requires)
            if row.flag("different machines restriction"):
                self.notes.leave_out("different machines")
        priority = row.priority()
        return Event(
            time,
            what,
            job,
            index,
            Ask(self.requests.of(row), tuple(requires.items())),
            priority,
            priority <= HIGHEST_BATCH_PRIORITY,
            row.text("user"),
        )

    def _take_constraint(self, row: Row) -> None:
        operator = _OPERATORS[row.choice("comparison operator", _OPERATORS)]
        key = (row.whole("job ID"), row.whole("task index"))
        known = self.constraints.setdefault(key, {})
        name, value = row.text("attribute name"), row.text("attribute value")
        self.notes.require(known, operator, name, value)
