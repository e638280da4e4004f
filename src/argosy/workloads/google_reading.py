"""Reads the tables of Google's cluster traces row by row. The traces of 2011 and 2019 differ in columns
and event types; a `Layout` describes each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

import msgspec
from msgspec import structs

from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob
from argosy.workloads.google_conditions import Condition, satisfied
from argosy.workloads.google_jobs import (
    Ask,
    Assembly,
    GoogleMachines,
    Notes,
    Requests,
    TraceEvent,
    What,
    merged,
    scaled,
)
from argosy.workloads.google_tables import ReadRows, Row, rows


class EventTable(msgspec.Struct, frozen=True):
    name: str
    columns: tuple[str, ...]
    optional: bool = False


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of columns. In `machine_events` and `machine_attributes` the time is always
    `time`."""

    read: ReadRows
    machine_events: EventTable
    machine_attributes: EventTable
    machine: str
    #: The column of a machine event's type, all types, and those after which the machine is present.
    machine_type: str
    machine_types: tuple[str, ...]
    present: tuple[str, ...]
    machine_cpu: str
    machine_memory: str
    #: Columns that become attributes, by the attribute's name.
    told: Mapping[str, str]
    attribute_name: str
    attribute_value: str
    attribute_deleted: str
    #: Tables of jobs' and tasks' events, in this order for events at the same time.
    events: tuple[EventTable, ...]

    def rows(self, directory: Path, table: EventTable) -> Iterator[Row]:
        return rows(directory, table.name, table.columns, self.read, optional=table.optional)


#: What event types mean for a task and for a job; irrelevant ones are omitted. An evicted job is not
#: over.
_MEANINGS: Final = {
    "SUBMIT": (What.SUBMITTED, What.SUBMITTED),
    "SCHEDULE": (What.SCHEDULED, What.OTHER),
    "EVICT": (What.STOPPED, What.OTHER),
    "FAIL": (What.STOPPED, What.ENDED),
    "FINISH": (What.STOPPED, What.ENDED),
    "KILL": (What.STOPPED, What.ENDED),
    "LOST": (What.STOPPED, What.ENDED),
}


class EventTypes(msgspec.Struct, frozen=True):
    """All event types by number, and what each means for a task and for a job."""

    names: tuple[str, ...]
    of_tasks: tuple[What, ...]
    of_jobs: tuple[What, ...]

    @staticmethod
    def named(*names: str) -> EventTypes:
        meanings = [_MEANINGS.get(name, (What.OTHER, What.OTHER)) for name in names]
        return EventTypes(names, tuple(t for t, _ in meanings), tuple(j for _, j in meanings))


class EventReader(ABC):
    """Turns the rows of one trace into events."""

    #: The highest priority of batch jobs.
    highest_batch_priority: ClassVar[int]
    #: The priority of rows without one; None: it is required.
    usual_priority: ClassVar[int | None] = None
    request_columns: ClassVar[tuple[str, str]]

    def __init__(self, whole: Resources, notes: Notes) -> None:
        self.notes = notes
        self._requests = Requests(*self.request_columns, whole)

    @abstractmethod
    def read(self, rows: Iterable[tuple[int, str, Row]]) -> Iterator[TraceEvent]:
        """Events from rows in order of time, each with its time and the name of its table."""

    def is_batch(self, priority: int) -> bool:
        return priority <= self.highest_batch_priority

    def priority(self, row: Row) -> int:
        return row.priority(self.usual_priority)

    def of_task(
        self,
        time: int,
        what: What,
        row: Row,
        place: tuple[int, int],
        requires: Mapping[str, str],
        owner: str = "",
    ) -> TraceEvent:
        """`place` is the job's number and the task's index."""
        priority = self.priority(row)
        ask = Ask(self._requests.of(row), tuple(requires.items()))
        return TraceEvent(time, what, *place, ask, priority, self.is_batch(priority), owner)


def read_machines(
    layout: Layout,
    directory: Path,
    *,
    at: int,
    most: int | None,
    whole: Resources,
    notes: Notes | None,
    conditions: Sequence[Condition] = (),
) -> tuple[Machine, ...]:
    table = GoogleMachines(directory, at, Notes() if notes is None else notes)
    for row in layout.rows(directory, layout.machine_events):
        number, machine = row.whole(layout.machine), None
        kind = layout.machine_types[row.choice(layout.machine_type, layout.machine_types)]
        if kind in layout.present:
            cpu, memory = row.share(layout.machine_cpu), row.share(layout.machine_memory)
            told = {name: row.text(column) for name, column in layout.told.items()}
            machine = Machine(
                f"m{number}",
                scaled(cpu, memory, whole=whole, up=False),
                {name: value for name, value in told.items() if value},
            )
        table.take(row.time(), number, machine)
    for row in layout.rows(directory, layout.machine_attributes):
        value = None if row.flag(layout.attribute_deleted) else row.text(layout.attribute_value)
        name = row.text(layout.attribute_name)
        table.take_attribute(row.time(), row.whole(layout.machine), name, value)
    found = table.machines(most)
    if not conditions:
        return found
    return tuple(
        structs.replace(
            machine, attributes=machine.attributes | satisfied(conditions, machine.attributes)
        )
        for machine in found
    )


def read_jobs(
    layout: Layout,
    reader: type[EventReader],
    directory: Path,
    *,
    start: int,
    span: int | None,
    whole: Resources,
    notes: Notes | None,
    in_order: bool,
) -> Iterator[SimulatedJob]:
    notes = Notes() if notes is None else notes
    tables = ((table.name, layout.rows(directory, table)) for table in layout.events)
    events = reader(whole, notes).read(merged(*tables, in_order=in_order))
    return Assembly(start, span, notes).read(events)
