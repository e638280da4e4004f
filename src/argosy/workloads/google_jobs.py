"""Builds jobs from the events of Google's cluster traces; shared by 2011 and 2019.

The traces record what happened to each task: submitted, scheduled, evicted, finished. A job says what
was asked for and how long it ran, so that another scheduler can place it. `Assembly` takes the events in
order of time and returns a job as soon as it and all jobs before it are over; only unfinished jobs are
in memory. A task's request is its first one.

A task's duration is that of its last run, because runs cut short by an eviction or failure were
repeated. A task still running when the trace ends runs until stopped. A task that never ran is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from heapq import merge
from math import ceil, floor
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import TraceError
from argosy.model.jobs import BATCH, SERVICE, TaskGroup
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.truth import GroupTruth, SimulatedJob, group_with_truth, simulated_job
from argosy.workloads.google_tables import AFTER_THE_END, Row

#: Traces begin at 600 s; anything from before has time 0.
TRACE_START: Final = 600_000_000
#: What 1.0 stands for: the largest machine. The true sizes are not public.
LARGEST_MACHINE: Final = Resources(cpu=64_000, memory=256 << 30)
#: No two tasks of a job are on one machine.
APART: Final = msgspec.structs.replace(
    parse_constraint("appID:self -> {appID:self, 0, 0} in machine"), hard=True
)


class What(Enum):
    SUBMITTED = 0
    #: A task starts to run.
    SCHEDULED = 1
    #: A task's run is over; another may follow.
    STOPPED = 2
    #: A job is over.
    ENDED = 3
    #: Irrelevant for jobs.
    OTHER = 4


class Ask(NamedTuple):
    """A task's request; tasks of one job with equal requests share a group."""

    #: The same object for all tasks with equal amounts: compared by identity.
    request: Resources
    requires: tuple[tuple[str, str], ...] = ()


class TraceEvent(NamedTuple):
    time: int
    what: What
    job: int
    #: None: the event is about the job itself.
    task: int | None = None
    #: The task's request; None in events about the job itself.
    ask: Ask | None = None
    #: None: not given in this event.
    priority: int | None = None
    is_batch: bool = True
    owner: str = ""
    #: Whether all tasks of the job are to be on different machines.
    is_apart: bool = False


class Notes(msgspec.Struct, kw_only=True):
    """What was read, and what a scenario cannot express. Counts grow as jobs are read."""

    jobs: int = 0
    tasks: int = 0
    #: Tasks withdrawn before they ran.
    never_ran: int = 0
    #: Runs before a task's last one.
    reruns: int = 0
    #: Tasks still running when the trace ended.
    still_running: int = 0
    #: Events of jobs that were already over.
    late_events: int = 0
    #: Machines that joined, left or changed after the requested time.
    machine_changes: int = 0
    #: Machines without a given capacity.
    machines_left_out: int = 0
    #: What was left out, and how often.
    not_expressible: dict[str, int] = {}

    def leave_out(self, what: str) -> None:
        self.not_expressible[what] = self.not_expressible.get(what, 0) + 1

    def sentences(self) -> list[str]:
        """What the jobs and machines do not reproduce of the trace, as sentences."""
        passed_over = {
            "tasks that never ran": self.never_ran,
            "runs that a task's last one repeated": self.reruns,
            "events of jobs that were over": self.late_events,
            "machines that came, went or changed later": self.machine_changes,
            "machines without a capacity": self.machines_left_out,
        }
        return [
            *(f"ignored in the trace: {what} ({n:,})" for what, n in passed_over.items() if n),
            *(
                f"a job cannot express what the trace says: {what} ({n:,})"
                for what, n in sorted(self.not_expressible.items())
            ),
        ]

    def require(self, known: dict[str, str], relation: str, name: str, value: str) -> None:
        """Adds "attribute `name` has this value" to the requirements `known`, or notes why not."""
        if relation != "EQUAL":
            self.leave_out(f"attribute {relation.lower().replace('_', '-')}")
        elif not value:
            self.leave_out("attribute equal to nothing")
        elif known.setdefault(name, value) != value:
            self.leave_out("attribute equal to two values")


def scaled(cpu: float | None, memory: float | None, *, whole: Resources, up: bool) -> Resources:
    """Normalised amounts as whole milli-cores and bytes. Requests are rounded up and capacities down,
    so that nothing fits that did not fit before."""
    rounded = ceil if up else floor
    return Resources(rounded((cpu or 0) * whole.cpu), rounded((memory or 0) * whole.memory))


class Requests:
    """Requests from two columns; one object for all equal requests."""

    def __init__(self, cpu: str, memory: str, whole: Resources) -> None:
        self._cpu = cpu
        self._memory = memory
        self._whole = whole
        self._known: dict[tuple[str, str], Resources] = {}

    def of(self, row: Row) -> Resources:
        key = (row.text(self._cpu), row.text(self._memory))
        if (request := self._known.get(key)) is None:
            cpu, memory = row.share(self._cpu), row.share(self._memory)
            request = self._known[key] = scaled(cpu, memory, whole=self._whole, up=True)
        return request


class _Task:
    __slots__ = ("ask", "begun", "ran", "runs")

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        #: When its run started; -1 while it is not running.
        self.begun = -1
        #: How long its last run took within the window; -1 if it did not run or has not ended.
        self.ran = -1
        self.runs = 0


class _OpenJob:
    __slots__ = ("is_apart", "is_batch", "is_over", "owner", "priority", "submit", "tasks")

    def __init__(self, submit: int) -> None:
        self.submit = submit
        self.priority: int | None = None
        self.is_batch = True
        self.is_apart = False
        self.owner = ""
        self.tasks: dict[int, _Task] = {}
        self.is_over = False

    def learn(self, event: TraceEvent) -> None:
        self.owner = self.owner or event.owner
        self.is_apart = self.is_apart or event.is_apart
        # A value in a job's own event overrides those of its tasks.
        if event.priority is not None and (self.priority is None or event.task is None):
            self.priority, self.is_batch = event.priority, event.is_batch


class Assembly:
    """Builds jobs from events between `start` and `start + span` (None: the end of the trace). Tasks
    running at `start` are submitted at 0 with their remaining time."""

    def __init__(self, start: int, span: int | None, notes: Notes) -> None:
        self.start = start
        self.end = AFTER_THE_END if span is None else start + span
        self.notes = notes
        #: In order of submission.
        self.jobs: dict[int, _OpenJob] = {}
        self.done: set[int] = set()

    def read(self, events: Iterable[TraceEvent]) -> Iterator[SimulatedJob]:
        for event in events:
            if event.time >= AFTER_THE_END or (event.time >= self.end and not self.jobs):
                break
            if self._take(event) and next(iter(self.jobs.values())).is_over:
                yield from self._finished()
        for job in self.jobs.values():
            job.is_over = True
        yield from self._finished()

    def _take(self, event: TraceEvent) -> bool:
        """Whether a job ended."""
        job = self.jobs.get(event.job)
        if job is None:
            if event.job in self.done:
                self.notes.late_events += 1
            if event.job in self.done or event.time >= self.end or event.what is What.ENDED:
                return False
            job = self.jobs[event.job] = _OpenJob(event.time)
        job.learn(event)
        if event.task is not None:
            self._take_task(job, event, event.task)
        elif event.what is What.ENDED:
            job.is_over = True
            return True
        return False

    def _take_task(self, job: _OpenJob, event: TraceEvent, index: int) -> None:
        task = job.tasks.get(index)
        if task is None:
            assert event.ask is not None
            task = job.tasks[index] = _Task(event.ask)
        if event.what is What.SCHEDULED:
            task.begun, task.ran = event.time, -1
            task.runs += 1
        elif event.what is What.STOPPED and task.begun >= 0:
            ran = event.time - max(task.begun, self.start)
            # Anything over before the window begins is not part of it.
            task.ran = ran if ran or task.begun >= self.start else -1
            task.begun = -1

    def _finished(self) -> Iterator[SimulatedJob]:
        while self.jobs:
            number, open_job = next(iter(self.jobs.items()))
            if not open_job.is_over:
                return
            del self.jobs[number]
            self.done.add(number)
            if groups := self._groups(open_job):
                self.notes.jobs += 1
                self.notes.tasks += sum(group.count for group, _ in groups)
                yield simulated_job(
                    str(number),
                    *groups,
                    submit=max(open_job.submit - self.start, 0),
                    kind=BATCH if open_job.is_batch else SERVICE,
                    precedence=open_job.priority or 0,
                    owner=open_job.owner,
                    constraints=(APART,) if open_job.is_apart else (),
                )

    def _groups(self, job: _OpenJob) -> list[tuple[TaskGroup, GroupTruth]]:
        """Tasks with equal requests; those that never end are separate."""
        alike: dict[tuple[int, tuple[tuple[str, str], ...], bool], list[_Task]] = {}
        for task in job.tasks.values():
            is_endless = task.begun >= 0
            if not task.runs:
                self.notes.never_ran += 1
            elif is_endless or task.ran >= 0:
                key = (id(task.ask.request), task.ask.requires, is_endless)
                alike.setdefault(key, []).append(task)
                self.notes.reruns += task.runs - 1
                self.notes.still_running += is_endless
        groups = []
        for (_, requires, is_endless), tasks in alike.items():
            durations: tuple[int, ...] = ()
            if not is_endless:
                # A task takes at least a microsecond, even if rounding gives zero.
                durations = tuple(max(task.ran, 1) for task in tasks)
                durations = durations if len(set(durations)) > 1 else durations[:1]
            request = tasks[0].ask.request
            groups.append(group_with_truth(len(tasks), request, durations, requires=dict(requires)))
        return groups


def merged(*tables: tuple[str, Iterable[Row]], in_order: bool) -> Iterator[tuple[int, str, Row]]:
    """The rows of several tables in order of time; at the same time, in the order of the tables."""
    return merge(
        *(_timed(table, rows, in_order=in_order) for table, rows in tables), key=itemgetter(0)
    )


def _timed(table: str, rows: Iterable[Row], *, in_order: bool) -> Iterator[tuple[int, str, Row]]:
    """Rows with their times and table, checked to be in order, or sorted in memory."""
    if not in_order:
        yield from sorted(((row.time(), table, row) for row in rows), key=itemgetter(0))
        return
    latest = 0
    for row in rows:
        time = row.time()
        if time < latest:
            row.refuse(
                "time",
                f"{time} µs, after an event of {latest} µs",
                "events in order of time",
                "sort the table by time, or read it with in_order=False",
            )
        latest = time
        yield time, table, row


class GoogleMachines:
    """The machines present at time `at`, from events in any order."""

    def __init__(self, directory: Path, at: int, notes: Notes) -> None:
        self.directory = directory
        self.at = at
        self.notes = notes
        self._latest: dict[int, tuple[int, Machine | None]] = {}
        self._attributes: dict[int, dict[str, tuple[int, str | None]]] = {}

    def take(self, time: int, number: int, machine: Machine | None) -> None:
        """`machine` is present from `time` on; None: it is gone."""
        if time > self.at:
            self.notes.machine_changes += 1
        elif time >= self._latest.get(number, (0, None))[0]:
            self._latest[number] = (time, machine)

    def take_attribute(self, time: int, number: int, name: str, value: str | None) -> None:
        known = self._attributes.setdefault(number, {})
        if time <= self.at and time >= known.get(name, (0, None))[0]:
            known[name] = (time, value)

    def machines(self, most: int | None = None) -> tuple[Machine, ...]:
        """At most `most` machines, in the order of their numbers."""
        found = []
        for number, (_, machine) in sorted(self._latest.items()):
            if machine is None:
                continue
            if not machine.capacity.cpu or not machine.capacity.memory:
                self.notes.machines_left_out += 1
                continue
            told = {
                name: value
                for name, (_, value) in sorted(self._attributes.get(number, {}).items())
                if value is not None
            }
            found.append(msgspec.structs.replace(machine, attributes=told | machine.attributes))
            if len(found) == most:
                break
        if not found:
            raise TraceError(
                "no machine is there",
                file=str(self.directory / "machine_events"),
                expected=f"machines added by {self.at} µs",
            )
        return tuple(found)
