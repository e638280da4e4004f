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
from argosy.workloads.google_conditions import YES, Condition
from argosy.workloads.google_jobs import LARGEST_MACHINE, TRACE_START, Notes, TraceEvent, What
from argosy.workloads.google_reading import (
    EventReader,
    EventTable,
    EventTypes,
    Layout,
    read_jobs,
    read_machines,
)
from argosy.workloads.google_tables import Row, bare_rows

__all__ = ["LARGEST_MACHINE", "TRACE_START", "Notes", "jobs", "machines"]

#: The highest priority of batch jobs.
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

_TYPES: Final = EventTypes.named(
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
_OPERATORS: Final = ("EQUAL", "NOT_EQUAL", "LESS_THAN", "GREATER_THAN")


LAYOUT: Final = Layout(
    read=bare_rows,
    machine_events=EventTable("machine_events", MACHINE_EVENTS),
    machine_attributes=EventTable("machine_attributes", MACHINE_ATTRIBUTES, optional=True),
    machine="machine ID",
    machine_type="event type",
    machine_types=("ADD", "REMOVE", "UPDATE"),
    present=("ADD", "UPDATE"),
    machine_cpu="CPUs",
    machine_memory="Memory",
    told={"platform": "platform ID"},
    attribute_name="attribute name",
    attribute_value="attribute value",
    attribute_deleted="attribute deleted",
    # At the same time, a task's constraints come before its events, and a job's end comes after its
    # tasks'.
    events=(
        EventTable("task_constraints", TASK_CONSTRAINTS, optional=True),
        EventTable("task_events", TASK_EVENTS),
        EventTable("job_events", JOB_EVENTS),
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
    """The machines present at `at`, with their attributes at that time and their platform, and an
    attribute for each condition of a task that they satisfy. `whole` is what the normalised capacity 1.0
    stands for."""
    [constraints] = (table for table in LAYOUT.events if table.name == "task_constraints")
    conditions = {_condition(row) for row in LAYOUT.rows(directory, constraints)}
    return read_machines(
        LAYOUT,
        directory,
        at=at,
        most=most,
        whole=whole,
        notes=notes,
        conditions=sorted(filter(_is_not_plain, conditions)),
    )


def _condition(row: Row) -> Condition:
    operator = _OPERATORS[row.choice("comparison operator", _OPERATORS)]
    return Condition(row.text("attribute name"), operator, row.text("attribute value"))


def _is_not_plain(condition: Condition) -> bool:
    """Whether it is more than that an attribute has a value."""
    return condition.relation != "EQUAL" or not condition.value


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
    relative to `start`. `notes` counts what was read and what could not be expressed. The published
    tables are in order of time; `in_order=False` sorts them in memory."""
    return read_jobs(
        LAYOUT,
        _Events2011,
        directory,
        start=start,
        span=span,
        whole=whole,
        notes=notes,
        in_order=in_order,
    )


class _Events2011(EventReader):
    highest_batch_priority = HIGHEST_BATCH_PRIORITY
    request_columns = ("CPU request", "memory request")

    def __init__(self, whole: Resources, notes: Notes) -> None:
        super().__init__(whole, notes)
        #: Constraints of tasks not submitted yet.
        self.constraints: dict[tuple[int, int], dict[str, str]] = {}

    def read(self, rows: Iterable[tuple[int, str, Row]]) -> Iterator[TraceEvent]:
        for time, table, row in rows:
            if table == "task_constraints":
                self._take_constraint(row)
            elif table == "task_events":
                yield self._of_task(time, row)
            else:
                what = _TYPES.of_jobs[row.choice("event type", _TYPES.names)]
                if what is not What.OTHER:
                    yield TraceEvent(time, what, row.whole("job ID"), owner=row.text("user"))

    def _of_task(self, time: int, row: Row) -> TraceEvent:
        place = row.whole("job ID"), row.whole("task index")
        what = _TYPES.of_tasks[row.choice("event type", _TYPES.names)]
        requires: dict[str, str] = {}
        is_apart = False
        if what is What.SUBMITTED:
            requires = self.constraints.pop(place, requires)
            is_apart = row.flag("different machines restriction")
        event = self.of_task(time, what, row, place, requires, row.text("user"))
        return event._replace(is_apart=True) if is_apart else event

    def _take_constraint(self, row: Row) -> None:
        condition = _condition(row)
        key = (row.whole("job ID"), row.whole("task index"))
        known = self.constraints.setdefault(key, {})
        if _is_not_plain(condition):
            known[condition.attribute] = YES
        else:
            self.notes.require(known, condition.relation, condition.name, condition.value)
