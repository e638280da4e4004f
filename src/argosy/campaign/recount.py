"""Where every task is and what every machine holds, recounted from a journal record by record.

Slow and plain on purpose: it shares no code with the cell, the host's board or `argosy.records.state`,
so that it can judge them. It knows the scenario (machines, jobs) and reads the journal; it never sees
the world that wrote it.

A server that goes on with a cluster after another writes a journal of its own: it numbers machines and
jobs anew, and restores the jobs that are not over. Such journals are read one after the other.

One input may have several records, whose order among themselves says little: a queued task may start
before the record of the task that made room for it. So rules are asked when all that follows from an
input has been read (`settled`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

import msgspec

from argosy.campaign.findings import Finding
from argosy.engines.api import Engine
from argosy.host import records
from argosy.host.setup import HostSetup
from argosy.model.explanations import Explanation, Why
from argosy.model.jobs import Job, TaskGroup, index_of, job_of, task_name, task_number
from argosy.model.machines import MACHINE_GROUP, Machine
from argosy.model.scenario import FleetEntry, Scenario
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.model.truth import SimulatedJob

NOWHERE: Final = -1


class Where(Enum):
    PENDING = "pending"
    #: Sent to a machine's queue, or one of those that it is probed for.
    QUEUED = "queued"
    RUNNING = "running"
    FINISHED = "finished"
    ABANDONED = "abandoned"
    FAILED = "failed"
    CANCELLED = "cancelled"


OVER: Final = (Where.FINISHED, Where.ABANDONED, Where.FAILED, Where.CANCELLED)


class CountedTask(msgspec.Struct):
    where: Where = Where.PENDING
    machine: int = NOWHERE
    #: Machines to whose queues it, or a probe for it, was sent; and when.
    queued_at: tuple[int, ...] = ()
    queued_since: int = 0
    #: Who placed or queued it last.
    scheduler: str = ""
    #: Since when it has been where it is.
    since: int = 0
    #: When it runs from; after `since`, if its start is delayed.
    began: int = 0
    #: Whether something has said why it has no machine since it last lost or came to wait for one.
    is_explained: bool = False
    #: The task that, it was told last, goes first.
    behind: int = -1
    is_probed: bool = False


class CountedMachine(msgspec.Struct):
    name: str
    capacity: dict[str, int]
    attributes: dict[str, str]
    #: Sets of node groups that it is in, and attributes that a world has given it besides.
    joins: dict[str, tuple[str, ...]] = {}
    marks: set[str] = msgspec.field(default_factory=set)
    is_up: bool = True
    #: Since when; none if it is not draining.
    draining_since: int | None = None
    #: Tasks that run there.
    held: set[int] = msgspec.field(default_factory=set)
    #: When this last changed.
    changed_at: int = 0

    @staticmethod
    def of(machine: Machine) -> CountedMachine:
        capacity = dict(machine.capacity.items())
        return CountedMachine(machine.name, capacity, machine.attributes, machine.joins)

    def attribute(self, key: str) -> str | None:
        return "true" if key in self.marks else self.attributes.get(key)

    def is_in(self, group: str, sets: Iterable[str]) -> bool:
        mine = (self.name,) if group == MACHINE_GROUP else self.joins.get(group, ())
        return not set(mine).isdisjoint(sets)


class LeftJob(msgspec.Struct, frozen=True):
    """A job as one journal leaves it to the next."""

    job: Job
    truth: SimulatedJob | None
    tasks: list[CountedTask]


class Start(msgspec.Struct, frozen=True):
    """A task got room on a machine."""

    task: int
    machine: int
    scheduler: str
    at: int
    #: By a claim; otherwise from a queue.
    is_claim: bool
    #: It ran elsewhere until now.
    is_move: bool


class CampaignRule:
    """Something that must hold. Rules note what is wrong with `Recount.complain`."""

    def __init__(self, recount: Recount) -> None:
        self.recount = recount

    def settled(self, at: int, starts: list[Start]) -> None:
        """All that follows from one input has been read; tasks that started since the last."""

    def ended(self, at: int) -> None:
        """The run is over."""


class Recount:
    """`is_exact`: tasks run just as long as the scenario says. `is_overruled`: jobs come from another
    system, at any time and under any name."""

    def __init__(
        self,
        scenario: Scenario,
        engines: Mapping[str, type[Engine]],
        *,
        is_exact: bool = True,
        is_overruled: bool = False,
    ) -> None:
        self.scenario = scenario
        self.is_exact = is_exact
        self._is_overruled = is_overruled
        self.findings: dict[str, Finding] = {}
        self.machines = list(map(CountedMachine.of, scenario.cell.machines))
        self.entries: dict[str, FleetEntry] = {
            name: entry for entry in scenario.fleet for name in entry.scheduler_names()
        }
        self.engines = {name: engines[entry.engine] for name, entry in self.entries.items()}
        self.is_alive = dict.fromkeys(self.entries, True)
        #: When the last of its schedulers crashed or came back.
        self.fleet_changed_at = 0
        #: Ids of all jobs that were ever submitted.
        self.submitted: set[str] = set()
        #: By job number, as submitted.
        self.jobs: list[Job] = []
        self.truths: list[SimulatedJob | None] = []
        self.tasks: dict[int, CountedTask] = {}
        #: Tasks that a scheduler holds claims for, or that started from its queues.
        self.holdings: defaultdict[str, set[int]] = defaultdict(set)
        self._numbers: dict[str, int] = {}
        self._by_id = {made.id: made for made in scenario.jobs}
        self._starts: list[Start] = []
        self._journals = 0
        #: Jobs of the journal before, by id, that are not restored yet; and all of its machines.
        self._left: dict[str, LeftJob] = {}
        self._former: list[CountedMachine] = []
        #: Tasks of jobs that were over when a later journal began.
        self._past: list[CountedTask] = []
        self._group_of: dict[int, list[tuple[int, TaskGroup]]] = {}

    def complain(self, check: str, kind: str, detail: str) -> None:
        """Only the first of each check is kept: what follows may follow from it."""
        self.findings.setdefault(check, Finding(check, kind, detail))

    def group(self, task: int) -> TaskGroup:
        """Workers beyond a job's own are like its last group."""
        number = job_of(task)
        starts = self._group_of.get(number)
        if starts is None:
            job = self.jobs[number]
            pairs = zip(job.group_starts(), job.groups, strict=True)
            starts = self._group_of[number] = list(pairs)
        index = index_of(task)
        return next(group for start, group in reversed(starts) if start <= index)

    def request(self, task: int) -> dict[str, int]:
        return dict(self.group(task).request.items())

    def name(self, task: int) -> str:
        return task_name(self.jobs[job_of(task)].id, index_of(task))

    def used(self, machine: CountedMachine) -> dict[str, int]:
        return total(self.request(task) for task in machine.held)

    def own_tasks(self) -> Iterable[tuple[int, CountedTask]]:
        """Of all jobs, without workers that nobody asked for."""
        for number, job in enumerate(self.jobs):
            for index in range(job.tasks):
                task = task_number(number, index)
                yield task, self.tasks[task]

    def tasks_of_all_lives(self) -> Iterable[CountedTask]:
        """As `own_tasks`, with those of jobs that later journals do not mention."""
        yield from self._past
        for _, held in self.own_tasks():
            yield held

    def read(self, journal: Iterable[records.JournalRecord], rules: Iterable[CampaignRule]) -> None:
        rules, at = list(rules), 0
        for record in journal:
            if isinstance(record, records.Header):
                if self._journals:
                    self._go_on(record.setup)
                self._journals += 1
                continue
            if record.is_input:
                self._settle(at, rules)
                if not isinstance(record, records.RestoredRecord):
                    self._miss_left()
            at = record.at
            self._read(record)
        self._miss_left()
        self._settle(at, rules)

    def _go_on(self, setup: HostSetup) -> None:
        """The next server: nothing is known of its jobs until they are restored."""
        for number, job in enumerate(self.jobs):
            tasks = [self.tasks[task_number(number, index)] for index in range(job.tasks)]
            if all(held.where in OVER for held in tasks):
                self._past += tasks
            else:
                self._left[job.id] = LeftJob(job, self.truths[number], tasks)
        self._former = self.machines
        left = {machine.name: machine for machine in self.machines if machine.is_up}
        self.machines = [
            self._machine_again(machine, left, setup) for machine in setup.cell.machines
        ]
        for name in left:
            self.complain("restored", "machine missing", f"{name} was there, and is not restored")
        self.is_alive = dict.fromkeys(self.entries, True)
        self.fleet_changed_at = setup.began
        self.jobs, self.truths, self.tasks = [], [], {}
        self.holdings.clear()
        self._numbers.clear()
        self._group_of.clear()

    def _machine_again(
        self, machine: Machine, left: dict[str, CountedMachine], setup: HostSetup
    ) -> CountedMachine:
        """One of those that are `left`, under its new number."""
        said = CountedMachine.of(machine)
        before = left.pop(machine.name, None)
        if before is None or (before.capacity, before.attributes) != (
            said.capacity,
            said.attributes,
        ):
            told = f"{machine.name} is restored as {machine}, and was left as {before}"
            self.complain("restored", "machine", told)
        since = None if before is None else before.draining_since
        return msgspec.structs.replace(said, draining_since=since, changed_at=setup.began)

    def _miss_left(self) -> None:
        for name in self._left:
            self.complain("restored", "missing", f"{name} was not over, and is not restored")
        self._left.clear()

    def _restore(self, record: records.RestoredRecord) -> None:
        number, job, state, at = record.number, record.job, record.state, record.at
        left = self._left.pop(job.id, None)
        if left is None or number != len(self.jobs) or job != left.job:
            told = f"{job.id} is restored as number {number}, which was not left so: {record}"
            self.complain("restored", "job", told)
            left = LeftJob(job, None, [CountedTask() for _ in range(job.tasks)])
        self._numbers[job.id] = number
        self.jobs.append(job)
        self.truths.append(left.truth)
        places = dict(zip(state.running, state.machines, strict=True))
        for index, before in enumerate(left.tasks):
            where = Where(state.of(index))
            machine = places.get(index, NOWHERE)
            self._check_restored(job.id, index, before, where, machine)
            task = task_number(number, index)
            self.tasks[task] = CountedTask(where=where, since=at, machine=machine)
            if where is Where.RUNNING:
                # A task that goes on has been running all the time.
                since, began = before.since, before.began
                held = self.tasks[task]
                held.since, held.began, held.scheduler = since, began, record.scheduler
                self.machines[machine].held.add(task)
                self.holdings[record.scheduler].add(task)
            elif where is Where.ABANDONED:
                self.tasks[task].is_explained = before.is_explained

    def _check_restored(
        self, name: str, index: int, before: CountedTask, where: Where, machine: int
    ) -> None:
        """What was over stays over; what ran goes on where it was, or waits again."""
        told = f"{task_name(name, index)} was {before.where.value} and is restored as {where.value}"
        may_be = (before.where,) if before.where in OVER else (Where.PENDING, before.where)
        if where not in may_be:
            self.complain("restored", f"{before.where.value} as {where.value}", told)
        elif where is Where.RUNNING:
            there, now = self._former[before.machine].name, self.machines[machine].name
            if there != now:
                self.complain("restored", "elsewhere", f"{told}, on {now} instead of {there}")

    def finish(self, at: int, rules: Iterable[CampaignRule]) -> None:
        """The run has ended, after its last record perhaps."""
        for rule in rules:
            rule.ended(at)

    def _settle(self, at: int, rules: list[CampaignRule]) -> None:
        starts, self._starts = self._starts, []
        for rule in rules:
            rule.settled(at, starts)

    def _read(self, record: records.JournalRecord) -> None:
        match record:
            case records.SubmittedRecord():
                self._submit(record)
            case records.RestoredRecord():
                self._restore(record)
            case records.PlacedRecord(at, job, indices, machines, scheduler):
                for task, machine in zip(self._tasks(job, indices), machines, strict=True):
                    self._place(task, machine, scheduler, at)
            case records.EnqueuedRecord(at, job, indices, machines, scheduler):
                for task, machine in zip(self._tasks(job, indices), machines, strict=True):
                    self._queue(task, (machine,), scheduler, at, is_probed=False)
            case records.ProbedRecord(at, job, indices, machines, scheduler):
                for task in self._tasks(job, indices):
                    self._queue(task, tuple(machines), scheduler, at, is_probed=True)
            case records.StartedRecord(at, tasks, machines, after):
                for task, machine in zip(tasks, machines, strict=True):
                    self._start(task, machine, at, after)
            case records.EndedRecord(at, tasks):
                for task in tasks:
                    self._end(task, at)
            case records.LostRecord(at, job, indices, machines):
                for task, machine in zip(self._tasks(job, indices), machines, strict=True):
                    self._lose(task, machine, at)
            case records.ReleasedRecord(at, job, indices):
                for task in self._tasks(job, indices):
                    self._leave(task, Where.PENDING, at, "released", (Where.RUNNING,))
            case records.FailedRecord(at, task):
                self._leave(task, Where.PENDING, at, "failed", (Where.RUNNING,))
            case records.RetriedRecord(at, job, indices, for_good=True):
                for task in self._tasks(job, indices):
                    self._leave(task, Where.FAILED, at, "given up", (Where.PENDING,))
            case records.AbandonedRecord(at, job, indices, explanation=explanation):
                for task in self._tasks(job, indices):
                    self._leave(task, Where.ABANDONED, at, "abandoned", (Where.PENDING,))
                    self._task(task).is_explained = explanation != type(explanation)()
            case records.ExplainedRecord(job=job, indices=indices, explanation=explanation):
                for task in self._tasks(job, indices):
                    self._task(task).is_explained |= explanation != type(explanation)()
                    self._task(task).behind = _task_ahead(explanation)
            case records.RefusedRecord(job=job, indices=indices, whys=whys):
                for task, why in zip(self._tasks(job, indices), whys, strict=True):
                    self._task(task).is_explained |= bool(why)
            case records.MachineRecord(at, change):
                self._change(change, at)
            case records.MarkedRecord(_, attribute, group, sets, is_given):
                for marked in self.machines:
                    if marked.is_in(group, sets):
                        (marked.marks.add if is_given else marked.marks.discard)(attribute)
            case records.CrashedRecord(at, scheduler):
                self._crash(scheduler, at)
            case records.RestartedRecord(at, scheduler):
                self.is_alive[scheduler] = True
                self.fleet_changed_at = at
            case records.CancelledRecord(at, number, indices):
                for index in indices:
                    self._cancel(task_number(number, index), at)

    def _tasks(self, job: str, indices: Iterable[int]) -> list[int]:
        number = self._numbers[job]
        return [task_number(number, index) for index in indices]

    def _task(self, task: int) -> CountedTask:
        # Workers beyond a job's own are not known before they are placed.
        return self.tasks.setdefault(task, CountedTask())

    def _submit(self, record: records.SubmittedRecord) -> None:
        number, job = record.number, record.job
        made = self._by_id.get(job.id)
        is_known = self._is_overruled or made is not None
        if number != len(self.jobs) or job.id in self.submitted or not is_known:
            self.complain("submissions", "unknown or again", f"{job.id} was submitted: {record}")
        elif made is None:
            pass
        elif record.at < made.submit or (record.at > made.submit and self._journals < 2):
            # Whoever gets no answer because a server is killed submits the job to the next one.
            told = f"{job.id} was submitted at {record.at} µs, not at {made.submit} µs"
            self.complain("submissions", "time", told)
        elif bare(job) != bare(made.job):
            told = f"{job.id} was submitted as {job}, not as {made.job}"
            self.complain("submissions", "specification", told)
        self.submitted.add(job.id)
        self._numbers[job.id] = number
        self.jobs.append(job)
        self.truths.append(made)
        for index in range(job.tasks):
            self.tasks[task_number(number, index)] = CountedTask(since=record.at)

    def _place(self, task: int, machine: int, scheduler: str, at: int) -> None:
        held = self._task(task)
        if held.where not in (Where.PENDING, Where.RUNNING):
            self._impossible(task, "placed", at)
        is_move = held.where is Where.RUNNING
        if is_move:
            self._free(task)
        self._take(task, machine, scheduler, at, 0, is_claim=True, is_move=is_move)

    def _queue(
        self, task: int, machines: tuple[int, ...], scheduler: str, at: int, *, is_probed: bool
    ) -> None:
        held = self._task(task)
        if held.where is not Where.PENDING:
            self._impossible(task, "queued", at)
        held.where, held.since, held.scheduler = Where.QUEUED, at, scheduler
        held.queued_at, held.queued_since, held.is_probed = machines, at, is_probed

    def _start(self, task: int, machine: int, at: int, after: int) -> None:
        held = self._task(task)
        if held.where is not Where.QUEUED:
            self._impossible(task, "started", at)
        self._take(task, machine, held.scheduler, at, after, is_claim=False, is_move=False)

    def _take(
        self,
        task: int,
        machine: int,
        scheduler: str,
        at: int,
        after: int,
        *,
        is_claim: bool,
        is_move: bool,
    ) -> None:
        held, there = self._task(task), self.machines[machine]
        held.where, held.machine, held.scheduler = Where.RUNNING, machine, scheduler
        held.since, held.began, held.is_explained = at, at + after, False
        there.held.add(task)
        there.changed_at = at
        self.holdings[scheduler].add(task)
        if scheduler in self.entries:
            # Otherwise it is a fact, and nobody's decision.
            self._starts.append(Start(task, machine, scheduler, at, is_claim, is_move))

    def _end(self, task: int, at: int) -> None:
        held, wanted = self._task(task), self.running_time(task)
        ran, was_running = at - held.began, held.where is Where.RUNNING
        self._leave(task, Where.FINISHED, at, "ended", (Where.RUNNING,))
        if self.is_exact and was_running and wanted is not None and wanted != ran:
            told = f"{self.name(task)} ran for {ran} µs, but takes {wanted} µs"
            self.complain("running-time", "ended", told)

    def running_time(self, task: int) -> int | None:
        """How long the scenario says that it runs; none if that is not told, or without end."""
        made, index = self.truths[job_of(task)], index_of(task)
        if made is None:
            return None
        starts = made.job.group_starts()
        for start, group, truth in zip(starts, made.groups, made.truth, strict=True):
            if start <= index < start + group.count:
                return truth.duration(index - start)
        return None

    def _lose(self, task: int, machine: int, at: int) -> None:
        held = self._task(task)
        if held.where is Where.RUNNING and machine not in (held.machine, NOWHERE):
            self._impossible(task, "lost elsewhere", at)
        # A probe may come back without its slot: the task was pending all along.
        may_be = (Where.RUNNING, Where.QUEUED, *((Where.PENDING,) if machine == NOWHERE else ()))
        self._leave(task, Where.PENDING, at, "lost", may_be)

    def _leave(
        self, task: int, where: Where, at: int, step: str, may_be: tuple[Where, ...]
    ) -> None:
        """From what it `may_be` to `where`."""
        held = self._task(task)
        if held.where not in may_be:
            self._impossible(task, step, at)
        if held.where is Where.RUNNING:
            self._free(task)
            self.machines[held.machine].changed_at = at
        held.where, held.machine, held.since, held.is_explained = where, NOWHERE, at, False

    def _free(self, task: int) -> None:
        held = self._task(task)
        self.machines[held.machine].held.discard(task)
        self.holdings[held.scheduler].discard(task)

    def _cancel(self, task: int, at: int) -> None:
        held = self._task(task)
        if held.where in (Where.PENDING, Where.QUEUED, Where.RUNNING):
            self._leave(task, Where.CANCELLED, at, "cancelled", (held.where,))

    def _impossible(self, task: int, step: str, at: int) -> None:
        where = self._task(task).where.value
        told = f"{self.name(task)} was {where} and is {step} at {at} µs"
        self.complain("task-steps", f"{where}, then {step}", told)

    def _change(self, change: MachineChange, at: int) -> None:
        if isinstance(change, AddMachine):
            self.machines.append(CountedMachine.of(change.machine))
            return
        machine = self.machines[change.machine]
        machine.changed_at = at
        match change:
            case DrainMachine(draining=True):
                if machine.draining_since is None and machine.is_up:
                    machine.draining_since = at
            case DrainMachine():
                machine.draining_since = None
            case RemoveMachine():
                machine.is_up, machine.draining_since = False, None
            case ReviveMachine():
                machine.is_up = True
            case ResizeMachine(capacity=capacity):
                machine.capacity = dict(capacity.items())
            case RelabelMachine(attributes=attributes, joins=joins):
                machine.attributes, machine.joins = attributes, joins

    def _crash(self, scheduler: str, at: int) -> None:
        """Tasks that wait for its probes are pending again."""
        self.is_alive[scheduler] = False
        self.fleet_changed_at = at
        for held in self.tasks.values():
            if held.where is Where.QUEUED and held.is_probed and held.scheduler == scheduler:
                held.where, held.since, held.is_explained = Where.PENDING, at, False


def _task_ahead(explanation: Explanation) -> int:
    refused = explanation.refused
    return refused.task if refused is not None and refused.why is Why.BEHIND else -1


def total(vectors: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """By resource."""
    found: dict[str, int] = {}
    for vector in vectors:
        for name, amount in vector.items():
            found[name] = found.get(name, 0) + amount
    return found


def bare(job: Job) -> Job:
    """The job without what a world may set for itself: how often tasks are tried again."""
    groups = tuple(msgspec.structs.replace(group, retries=0) for group in job.groups)
    return msgspec.structs.replace(job, groups=groups)
