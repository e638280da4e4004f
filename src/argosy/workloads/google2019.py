"""The public Google cluster traces of 2019 (clusterdata-2019, version 3): machines and jobs.

A trace is a directory with exports of one cell's tables as JSON lines or CSV with a heading:
``machine_events``, ``collection_events`` and ``instance_events``, and if there are any
``machine_attributes``. Names and numbers are those of the published schema. Exports are often not in
order of time; `in_order=False` sorts them.

A job is batch if its priority is of the free or best-effort batch tiers (115 or less), or if the batch
scheduler has it: what the Omega paper calls low-priority, best-effort or batch. An alloc set is a
reservation that takes room, so it becomes a job; jobs that run inside one take none and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from argosy.model.errors import excerpt
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
from argosy.workloads.google_tables import Row, named_rows, rows

__all__ = ["LARGEST_MACHINE", "TRACE_START", "Notes", "jobs", "machines"]

#: Of priorities: up to here are the free (0-99) and best-effort batch (100-115) tiers.
HIGHEST_BATCH_PRIORITY: Final = 115

_MACHINE_TYPES: Final = ("EVENT_TYPE_UNKNOWN", "ADD", "REMOVE", "UPDATE")
_TYPES: Final = (
    "SUBMIT",
    "QUEUE",
    "ENABLE",
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
    What.OTHER,
    What.OTHER,
    What.SCHEDULED,
    *(What.STOPPED,) * 5,
    What.OTHER,
    What.OTHER,
)
#: A collection that was evicted is not over.
_OF_JOBS: Final = (
    What.SUBMITTED,
    *(What.OTHER,) * 4,
    *(What.ENDED,) * 4,
    What.OTHER,
    What.OTHER,
)
_RELATIONS: Final = (
    "EQUAL",
    "NOT_EQUAL",
    "LESS_THAN",
    "GREATER_THAN",
    "LESS_THAN_EQUAL",
    "GREATER_THAN_EQUAL",
    "PRESENT",
    "NOT_PRESENT",
)
_SCHEDULERS: Final = ("SCHEDULER_DEFAULT", "SCHEDULER_BATCH")
#: Of a collection: what a job here cannot say.
_UNSAID: Final = {
    "max_per_machine": "at most so many tasks on a machine",
    "max_per_switch": "at most so many tasks on a switch",
    "start_after_collection_ids": "not before another job is over",
    "parent_collection_id": "stopped with its parent",
}


def machines(
    directory: Path,
    *,
    at: int = TRACE_START,
    most: int | None = None,
    whole: Resources = LARGEST_MACHINE,
    notes: Notes | None = None,
) -> tuple[Machine, ...]:
    """The machines that are there at `at`, with the attributes they have then, their platform and
    their switch. `whole` is what the normalised capacity 1.0 stands for."""
    table = GoogleMachines(directory, at, Notes() if notes is None else notes)
    for row in rows(directory, "machine_events", ("time", "machine_id", "type"), named_rows):
        number, machine = row.whole("machine_id"), None
        if _MACHINE_TYPES[row.choice("type", _MACHINE_TYPES)] in ("ADD", "UPDATE"):
            capacity = scaled(
                row.share("capacity.cpus"), row.share("capacity.memory"), whole=whole, up=False
            )
            told = {"platform": row.text("platform_id"), "switch": row.text("switch_id")}
            machine = Machine(
                f"m{number}", capacity, {name: value for name, value in told.items() if value}
            )
        table.take(row.time(), number, machine)
    columns = ("time", "machine_id", "name")
    for row in rows(directory, "machine_attributes", columns, named_rows, optional=True):
        value = None if row.flag("deleted") else row.text("value")
        table.take_attribute(row.time(), row.whole("machine_id"), row.text("name"), value)
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
    `in_order=False` sorts tables in memory that are not in order of time."""
    notes = Notes() if notes is None else notes
    columns = ("time", "type", "collection_id")
    # Of one instant, a job's end comes after its tasks'.
    in_time = merged(
        ("instance_events", rows(directory, "instance_events", columns, named_rows)),
        ("collection_events", rows(directory, "collection_events", columns, named_rows)),
        in_order=in_order,
    )
    events = _Events2019(whole, notes).read(in_time)
    return Assembly(start, span, notes).read(events)


class _Events2019:
    def __init__(self, whole: Resources, notes: Notes) -> None:
        self.notes = notes
        self.requests = Requests("resource_request.cpus", "resource_request.memory", whole)

    def read(self, rows: Iterable[tuple[int, str, Row]]) -> Iterator[Event]:
        for time, table, row in rows:
            is_task = table == "instance_events"
            kind = row.choice("type", _TYPES)
            if row.whole("alloc_collection_id", 0):
                if kind == 0:
                    what = "task" if is_task else "job"
                    self.notes.leave_out(f"{what} inside an alloc set")
            elif is_task:
                yield self._of_task(time, row, _OF_TASKS[kind])
            elif _OF_JOBS[kind] is not What.OTHER:
                yield self._of_job(time, row, _OF_JOBS[kind])

    def _of_job(self, time: int, row: Row, what: What) -> Event:
        if what is What.SUBMITTED:
            for name, meaning in _UNSAID.items():
                if row.text(name) not in ("", "0", "[]"):
                    self.notes.leave_out(meaning)
        priority = row.priority(0)
        is_batch = priority <= HIGHEST_BATCH_PRIORITY
        if row.choice("scheduler", _SCHEDULERS, 0):
            is_batch = True
        number = row.whole("collection_id")
        return Event(
            time, what, number, priority=priority, is_batch=is_batch, owner=row.text("user")
        )

    def _of_task(self, time: int, row: Row, what: What) -> Event:
        requires: dict[str, str] = {}
        if what is What.SUBMITTED:
            for number, constraint in enumerate(self._constraints(row)):
                inside = Row(row.path, row.line, constraint)
                relation = _RELATIONS[inside.choice("relation", _RELATIONS, 0)]
                name, value = inside.text("name"), inside.text("value")
                if not name:
                    row.refuse(f"constraint[{number}].name", "is missing", "an attribute's name")
                self.notes.require(requires, relation, name, value)
        priority = row.priority(0)
        return Event(
            time,
            what,
            row.whole("collection_id"),
            row.whole("instance_index", 0),
            Ask(self.requests.of(row), tuple(requires.items())),
            priority,
            priority <= HIGHEST_BATCH_PRIORITY,
        )

    def _constraints(self, row: Row) -> list[dict[str, Any]]:
        """An array, or its text as a CSV has it."""
        value = row.fields.get("constraint")
        if value is None or value == "":
            return []
        try:
            found = msgspec.json.decode(value) if isinstance(value, str) else value
            return msgspec.convert(found, list[dict[str, Any]])
        except (msgspec.DecodeError, msgspec.ValidationError):
            row.refuse(
                "constraint", f"{excerpt(str(value))} is not an array", "an array of constraints"
            )
