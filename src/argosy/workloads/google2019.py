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
from argosy.workloads.google_jobs import LARGEST_MACHINE, TRACE_START, Notes, TraceEvent, What
from argosy.workloads.google_reading import (
    EventReader,
    EventTable,
    EventTypes,
    Layout,
    read_jobs,
    read_machines,
)
from argosy.workloads.google_tables import Row, named_rows

__all__ = ["LARGEST_MACHINE", "TRACE_START", "Notes", "jobs", "machines"]

#: The highest priority of the free (0-99) and best-effort batch (100-115) tiers.
HIGHEST_BATCH_PRIORITY: Final = 115

_TYPES: Final = EventTypes.named(
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
#: Properties of a collection that a job cannot express.
_UNSAID: Final = {
    "max_per_machine": "at most so many tasks on a machine",
    "max_per_switch": "at most so many tasks on a switch",
    "start_after_collection_ids": "not before another job is over",
    "parent_collection_id": "stopped with its parent",
}


_EVENT_COLUMNS: Final = ("time", "type", "collection_id")
LAYOUT: Final = Layout(
    read=named_rows,
    machine_events=EventTable("machine_events", ("time", "machine_id", "type")),
    machine_attributes=EventTable(
        "machine_attributes", ("time", "machine_id", "name"), optional=True
    ),
    machine="machine_id",
    machine_type="type",
    machine_types=("EVENT_TYPE_UNKNOWN", "ADD", "REMOVE", "UPDATE"),
    present=("ADD", "UPDATE"),
    machine_cpu="capacity.cpus",
    machine_memory="capacity.memory",
    told={"platform": "platform_id", "switch": "switch_id"},
    attribute_name="name",
    attribute_value="value",
    attribute_deleted="deleted",
    # At the same time, a job's end comes after its tasks'.
    events=(
        EventTable("instance_events", _EVENT_COLUMNS),
        EventTable("collection_events", _EVENT_COLUMNS),
    ),
)


def machines(
    directory: Path,
    *,
    at: int = TRACE_START,
    most: int | None = None,
    whole: Resources = LARGEST_MACHINE,
    notes: Notes | None = None,
) -> tuple[Machine, ...]:
    """The machines present at `at`, with their attributes at that time, their platform and their
    switch. `whole` is what the normalised capacity 1.0 stands for."""
    return read_machines(LAYOUT, directory, at=at, most=most, whole=whole, notes=notes)


def jobs(
    directory: Path,
    *,
    start: int = TRACE_START,
    span: int | None = None,
    whole: Resources = LARGEST_MACHINE,
    notes: Notes | None = None,
    in_order: bool = True,
) -> Iterator[SimulatedJob]:
    """Jobs that run at `start` or are submitted within `span` of it, in order of submission, with times
    relative to `start`. `notes` counts what was read and what could not be expressed. `in_order=False`
    sorts tables in memory that are not in order of time."""
    return read_jobs(
        LAYOUT,
        _Events2019,
        directory,
        start=start,
        span=span,
        whole=whole,
        notes=notes,
        in_order=in_order,
    )


class _Events2019(EventReader):
    highest_batch_priority = HIGHEST_BATCH_PRIORITY
    usual_priority = 0
    request_columns = ("resource_request.cpus", "resource_request.memory")

    def read(self, rows: Iterable[tuple[int, str, Row]]) -> Iterator[TraceEvent]:
        for time, table, row in rows:
            is_task = table == "instance_events"
            kind = row.choice("type", _TYPES.names)
            if row.whole("alloc_collection_id", 0):
                if kind == 0:
                    what = "task" if is_task else "job"
                    self.notes.leave_out(f"{what} inside an alloc set")
            elif is_task:
                yield self._of_task(time, row, _TYPES.of_tasks[kind])
            elif _TYPES.of_jobs[kind] is not What.OTHER:
                yield self._of_job(time, row, _TYPES.of_jobs[kind])

    def _of_job(self, time: int, row: Row, what: What) -> TraceEvent:
        if what is What.SUBMITTED:
            for name, meaning in _UNSAID.items():
                if row.text(name) not in ("", "0", "[]"):
                    self.notes.leave_out(meaning)
        priority = self.priority(row)
        is_batch = bool(row.choice("scheduler", _SCHEDULERS, 0)) or self.is_batch(priority)
        number = row.whole("collection_id")
        return TraceEvent(
            time, what, number, priority=priority, is_batch=is_batch, owner=row.text("user")
        )

    def _of_task(self, time: int, row: Row, what: What) -> TraceEvent:
        requires: dict[str, str] = {}
        if what is What.SUBMITTED:
            for number, constraint in enumerate(self._constraints(row)):
                inside = Row(row.path, row.line, constraint)
                relation = _RELATIONS[inside.choice("relation", _RELATIONS, 0)]
                name, value = inside.text("name"), inside.text("value")
                if not name:
                    row.refuse(f"constraint[{number}].name", "is missing", "an attribute's name")
                self.notes.require(requires, relation, name, value)
        place = row.whole("collection_id"), row.whole("instance_index", 0)
        return self.of_task(time, what, row, place, requires)

    def _constraints(self, row: Row) -> list[dict[str, Any]]:
        """The constraints as an array, or as its text in a CSV."""
        value = row.fields.get("constraint")
        if value is None or value == "":
            return []
        try:
            found = msgspec.json.decode(value) if isinstance(value, str) else value
            return msgspec.convert(found, list[dict[str, Any]])
        except (msgspec.MsgspecError, RecursionError):
            row.refuse(
                "constraint", f"{excerpt(str(value))} is not an array", "an array of constraints"
            )
