"""What happened to tasks, as columns: one row per step, in the order of the journal.

A step changes where a task is: it was placed, enqueued, probed for, started, ended, lost, released or
given up. A journal has millions, so they are read into flat arrays here and processed with NumPy in
`state`. Facts about jobs, machines and schedulers are kept beside them.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.host import TaskState, records
from argosy.host.setup import HostSetup
from argosy.model.explanations import CONFLICTS, Why
from argosy.model.jobs import Job, task_number
from argosy.model.resources import dimensions_of
from argosy.model.tasks import jobs_of
from argosy.model.transactions import AddMachine, MachineChange
from argosy.model.units import LARGEST
from argosy.records.journal_checks import contradiction
from argosy.records.journal_file import Fact, JournalFile, grown

_CONFLICTS: Final = frozenset(map(int, CONFLICTS))
_PREEMPTED: Final = Why.PREEMPTED.name.lower()


class Step(IntEnum):
    #: A claim was accepted: the task runs.
    PLACED = 0
    #: On its way to a machine's queue, or in it.
    ENQUEUED = 1
    #: It goes to the first of its probes that is ready.
    PROBED = 2
    #: It left the queue: the task runs.
    STARTED = 3
    ENDED = 4
    LOST = 5
    PREEMPTED = 6
    RELEASED = 7
    #: The scheduler that had probed for it crashed.
    UNPROBED = 8
    ABANDONED = 9
    #: Its attempt failed; it will be retried, or not.
    FAILED = 10
    FAILED_FOR_GOOD = 11
    CANCELLED = 12
    #: Its job, which had become smaller, has grown again.
    ADDED_AGAIN = 13


#: The state of a task after each step.
STATE_AFTER: Final = np.array(
    [
        int(state)
        for state in (
            TaskState.RUNNING,
            TaskState.QUEUED,
            TaskState.QUEUED,
            TaskState.RUNNING,
            TaskState.FINISHED,
            TaskState.PENDING,
            TaskState.PENDING,
            TaskState.PENDING,
            TaskState.PENDING,
            TaskState.ABANDONED,
            TaskState.PENDING,
            TaskState.FAILED,
            TaskState.CANCELLED,
            TaskState.PENDING,
        )
    ],
    np.int8,
)

#: Steps after which a task is over.
_OVER: Final = (Step.ENDED, Step.ABANDONED, Step.FAILED_FOR_GOOD, Step.CANCELLED)


class SchedulerTally:
    """What the journal says about one scheduler."""

    def __init__(self) -> None:
        #: Jobs routed to it; a job that was handed over counts for both schedulers.
        self.jobs = 0
        #: Decision time, including the rest of decisions under way.
        self.busy = 0
        #: Everything committed at one instant counts as one transaction: their total number, those with
        #: a refusal, and those with a conflict.
        self.transactions = 0
        self.refusals = 0
        self.conflicts = 0
        #: Refused claims by reason.
        self.refused: Counter[int] = Counter()
        self.crashes = 0
        #: When the decisions end that were under way at the last attempt.
        self._ends: list[int] = []
        self._committed_at = self._refused_at = self._conflict_at = -1

    @property
    def successes(self) -> int:
        """Transactions without refusals."""
        return self.transactions - self.refusals

    def attempt(self, at: int, takes: int, earlier: int) -> None:
        self.busy += takes + earlier
        self._ends = [end for end in self._ends if end > at]
        self._ends.append(at + takes)

    def busy_until(self, at: int) -> int:
        """Decision time, that of decisions under way up to now."""
        return self.busy - sum(max(0, end - at) for end in self._ends)

    def crash(self, at: int) -> None:
        self.crashes += 1
        self.busy, self._ends = self.busy_until(at), []

    def commit(self, at: int) -> None:
        if at != self._committed_at:
            self._committed_at = at
            self.transactions += 1

    def refuse(self, at: int, whys: Iterable[int]) -> None:
        self.commit(at)
        self.refused.update(whys)
        if at != self._refused_at:
            self._refused_at = at
            self.refusals += 1
        if at != self._conflict_at and not _CONFLICTS.isdisjoint(whys):
            self._conflict_at = at
            self.conflicts += 1


class StepColumns(msgspec.Struct, frozen=True, kw_only=True):
    """Parallel arrays in the order of the journal."""

    #: Task numbers: job x 2^32 + index.
    tasks: NDArray[np.int64]
    #: When the step was recorded, and when it takes effect: a queued task may leave its scheduler
    #: later, and start running some time after it has left its queue.
    at: NDArray[np.int64]
    effective: NDArray[np.int64]
    kinds: NDArray[np.int64]
    #: -1 if there is none.
    machines: NDArray[np.int64]
    #: By number, in the order of `JournalSteps.schedulers`; -1 if there is none.
    schedulers: NDArray[np.int64]

    def tasks_that_last(self, *kinds: Step) -> NDArray[np.int64]:
        """Tasks whose last step is one of these."""
        tasks, last = np.unique(self.tasks[::-1], return_index=True)
        found: NDArray[np.int64] = tasks[np.isin(self.kinds[::-1][last], kinds)]
        return found


class BoardGrowth(NamedTuple):
    """A job has more tasks than ever before: the new total, the increase, and the number of steps
    before it."""

    at: int
    job: int
    tasks: int
    more: int
    position: int


class JournalSteps:
    """Reads facts in order. `columns` may be called at any time. Facts that contradict each other raise
    a `LookupError` or a `ValueError`, some of them only in `check`."""

    def __init__(self, setup: HostSetup) -> None:
        self.setup = setup
        #: By job number: the current job, and the largest number of tasks it has had.
        self.jobs: list[Job] = []
        self.task_counts: list[int] = []
        #: Number of tasks at submission.
        self.first_counts: list[int] = []
        self.growth: list[BoardGrowth] = []
        self.submitted: list[int] = []
        self.first_attempt: list[int] = []
        #: Decision time spent on each job.
        self.thought: list[int] = []
        #: Shared work by job: the duration of an activity in each phase, and when the last phase ended.
        self.phases: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.work_done: dict[int, int] = {}
        self.machine_changes: list[tuple[int, MachineChange]] = []
        #: The resources of all machines so far, in the cell's order.
        self.dimensions = dimensions_of([machine.capacity for machine in setup.cell.machines])
        #: Crashes and restarts in order: time, scheduler, and whether it came back.
        self.scheduler_changes: list[tuple[int, str, bool]] = []
        #: Every scheduler of the fleet, and any other that appears, by name.
        self.schedulers: dict[str, SchedulerTally] = {
            name: SchedulerTally() for entry in setup.fleet for name in entry.scheduler_names()
        }
        self._scheduler_numbers = {name: n for n, name in enumerate(self.schedulers)}
        self._fleet = frozenset(self.schedulers)
        #: Schedulers elsewhere, which have decided where a job goes.
        self._elsewhere: set[str] = set()
        self._machine_count = len(setup.cell.machines)
        self._numbers: dict[str, int] = {}
        self._owners: list[str] = []
        #: Jobs that each scheduler has probed for.
        self._probed: defaultdict[str, set[int]] = defaultdict(set)
        self._tasks, self._machines = array("q"), array("q")
        #: Per line: number of steps, the job's first task number, time, step, scheduler, then when the
        #: first step takes effect and how much later each following one does.
        self._lines = array("q")

    def read(self, fact: Fact) -> None:
        match fact:
            case records.EndedRecord(at, tasks):
                self._add(at, Step.ENDED, 0, tasks)
            case records.StartedRecord(at, tasks, machines, after):
                self._add(at, Step.STARTED, 0, tasks, machines, after=after)
            case records.PlacedRecord(at, job, indices, machines, scheduler):
                self._tally(scheduler).commit(at)
                self._add(at, Step.PLACED, self._base(job), indices, machines, scheduler)
            case records.EnqueuedRecord(at, job, indices, machines, scheduler, _, first, every):
                self._add(
                    at, Step.ENQUEUED, self._base(job), indices, machines, scheduler, first, every
                )
            case records.AttemptRecord(at, job, scheduler, takes, earlier):
                self._attempt(at, self._numbers[job], scheduler, takes, earlier)
            case records.RefusedRecord(at=at, scheduler=scheduler, whys=whys):
                self._tally(scheduler).refuse(at, whys)
            case records.ProbedRecord(at, job, indices, _, scheduler):
                self._probed[scheduler].add(self._numbers[job])
                self._add(at, Step.PROBED, self._base(job), indices, (), scheduler)
            case records.LostRecord(at, job, indices, machines, why):
                kind = Step.PREEMPTED if why == _PREEMPTED else Step.LOST
                self._add(at, kind, self._base(job), indices, machines)
            case records.ReleasedRecord(at, job, indices, scheduler):
                self._add(at, Step.RELEASED, self._base(job), indices, (), scheduler)
            case records.AbandonedRecord(at, job, indices, scheduler):
                self._add(at, Step.ABANDONED, self._base(job), indices, (), scheduler)
            case records.SubmittedRecord(by=by):
                self._submit(fact, fact.at)
                if by:
                    self._elsewhere.add(by)
            case records.RestoredRecord():
                self._restore(fact)
            case records.ResubmittedRecord(job=job, scheduler=scheduler):
                self._hand_over(self._numbers[job], scheduler)
            case records.MachineRecord(at, change):
                self._change_machine(change)
                self.machine_changes.append((at, change))
                self.dimensions = grown(self.dimensions, change)
            case records.CrashedRecord(at, scheduler):
                self._crash(at, scheduler)
            case records.RestartedRecord(at, scheduler):
                self._require_scheduler(scheduler)
                self.scheduler_changes.append((at, scheduler, True))
            case records.PhaseEndedRecord(at, number, phase, duration):
                self._end_phase(at, number, phase, duration)
            case records.FailedRecord(at, task):
                self._add(at, Step.FAILED, 0, (task,))
            case records.RetriedRecord(at, job, indices, for_good=True):
                self._add(at, Step.FAILED_FOR_GOOD, self._base(job), indices)
            case records.CancelledRecord(at, number, indices):
                self._require_job(number)
                self._add(at, Step.CANCELLED, task_number(number, 0), indices)
            case records.ScaledRecord(at, number, job):
                self._scale(at, number, job)

    def number(self, job: str) -> int | None:
        """The number of the job with this id."""
        return self._numbers.get(job)

    def check(self) -> None:
        """Raises a `ValueError` if a time, task, machine or scheduler cannot be right."""
        if not self._lines:
            return
        times = np.frombuffer(self._lines, np.int64).reshape(-1, 7)[:, 2]
        if times[0] < 0 or times[-1] > LARGEST or (np.diff(times) < 0).any():
            raise ValueError("times")
        tasks, machines = (np.frombuffer(c, np.int64) for c in (self._tasks, self._machines))
        if len(tasks) and (tasks.min() < 0 or jobs_of(tasks).max() >= len(self.jobs)):
            raise ValueError("tasks")
        if len(machines) and (machines.min() < -1 or machines.max() >= self._machine_count):
            raise ValueError("machines")
        for name in self.schedulers:
            if name in self._elsewhere:
                continue
            if name not in self._fleet and name.partition(":")[0] not in self._fleet:
                raise ValueError("schedulers")

    def columns(self) -> StepColumns:
        lines = np.frombuffer(self._lines.tobytes(), np.int64).reshape(-1, 7)
        counts = lines[:, 0]
        base, at, kinds, schedulers, after, every = (
            np.repeat(lines[:, column], counts) for column in range(1, 7)
        )
        effective = at + after
        if every.any():
            starts = np.cumsum(counts) - counts
            effective += (np.arange(len(at)) - np.repeat(starts, counts)) * every
        return StepColumns(
            tasks=np.frombuffer(self._tasks.tobytes(), np.int64) + base,
            at=at,
            effective=effective,
            kinds=kinds,
            machines=np.frombuffer(self._machines.tobytes(), np.int64),
            schedulers=schedulers,
        )

    def add_task_rows(self, rows: dict[str, NDArray[Any]]) -> None:
        """Adds starts and ends from a saved timeline, for a journal with only decisions."""
        queued = self.columns().tasks_that_last(Step.ENQUEUED, Step.PROBED)
        starts = np.isin(rows["task"], queued)
        for task, machine, at in zip(
            *(rows[name][starts].tolist() for name in ("task", "machine", "started")), strict=True
        ):
            self._add(at, Step.STARTED, 0, (task,), (machine,))
        ended = rows["finished"] >= 0
        for task, at in zip(
            *(rows[name][ended].tolist() for name in ("task", "finished")), strict=True
        ):
            self._add(at, Step.ENDED, 0, (task,))

    def _add(
        self,
        at: int,
        kind: Step,
        base: int,
        tasks: Iterable[int],
        machines: Iterable[int] = (),
        scheduler: str = "",
        after: int = 0,
        every: int = 0,
    ) -> None:
        before = len(self._tasks)
        self._tasks.extend(tasks)
        count = len(self._tasks) - before
        self._machines.extend(machines or (-1,) * count)
        if len(self._machines) != len(self._tasks):
            raise ValueError("one machine per task")
        who = -1
        if scheduler:
            self._tally(scheduler)
            who = self._scheduler_numbers[scheduler]
        self._lines.extend((count, base, at, kind, who, after, every))

    def _base(self, job: str) -> int:
        return task_number(self._numbers[job], 0)

    def _tally(self, scheduler: str) -> SchedulerTally:
        tally = self.schedulers.get(scheduler)
        if tally is None:
            tally = self.schedulers[scheduler] = SchedulerTally()
            self._scheduler_numbers[scheduler] = len(self._scheduler_numbers)
        return tally

    def _require_job(self, number: int) -> None:
        if not 0 <= number < len(self.jobs):
            raise LookupError(number)

    def _require_scheduler(self, name: str) -> None:
        if name not in self._fleet:
            raise LookupError(name)

    def _change_machine(self, change: MachineChange) -> None:
        match change:
            case AddMachine():
                self._machine_count += 1
            case _ if not 0 <= change.machine < self._machine_count:
                raise LookupError(change.machine)

    def _restore(self, record: records.RestoredRecord) -> None:
        """What happened before is told by an earlier journal, except where it has led."""
        state = record.state
        self._submit(record, state.submitted)
        base, at = self._base(record.job.id), record.at
        self._add(at, Step.PLACED, base, state.running, state.machines, record.scheduler)
        self._add(at, Step.ENDED, base, state.finished)
        self._add(at, Step.FAILED_FOR_GOOD, base, state.failed)
        self._add(at, Step.CANCELLED, base, state.cancelled)
        self._add(at, Step.ABANDONED, base, state.abandoned)

    def _submit(
        self, record: records.SubmittedRecord | records.RestoredRecord, submitted: int
    ) -> None:
        if record.number != len(self.jobs):
            raise ValueError("job numbers")
        self._numbers[record.job.id] = record.number
        self.jobs.append(record.job)
        self.task_counts.append(record.job.tasks)
        self.first_counts.append(record.job.tasks)
        self.submitted.append(submitted)
        self.first_attempt.append(-1)
        self.thought.append(0)
        self._owners.append(record.scheduler)
        self._tally(record.scheduler).jobs += 1

    def _hand_over(self, number: int, scheduler: str) -> None:
        if self._owners[number] != scheduler:
            self._owners[number] = scheduler
            self._tally(scheduler).jobs += 1

    def _attempt(self, at: int, number: int, scheduler: str, takes: int, earlier: int) -> None:
        if self.first_attempt[number] < 0:
            self.first_attempt[number] = at
        if not 0 <= at <= LARGEST:
            raise ValueError("times")
        self.thought[number] += takes + earlier
        self._tally(scheduler).attempt(at, takes, earlier)

    def _end_phase(self, at: int, number: int, phase: int, duration: int) -> None:
        self._require_job(number)
        self.phases[number][phase] = duration
        if phase == len(self.jobs[number].activities) - 1:
            self.work_done[number] = at

    def _crash(self, at: int, scheduler: str) -> None:
        """Tasks waiting for the scheduler's probes are pending again."""
        self._require_scheduler(scheduler)
        self._tally(scheduler).crash(at)
        self.scheduler_changes.append((at, scheduler, False))
        probed = self._probed.pop(scheduler, None)
        if probed:
            waiting = self.columns().tasks_that_last(Step.PROBED)
            mine = np.isin(jobs_of(waiting), sorted(probed))
            self._add(at, Step.UNPROBED, 0, waiting[mine].tolist())

    def _scale(self, at: int, number: int, job: Job) -> None:
        """Tasks that are over stay so; of those that an earlier change removed, the job may get some
        back."""
        self._require_job(number)
        before, self.jobs[number] = self.jobs[number].tasks, job
        most, base = self.task_counts[number], task_number(number, 0)
        if job.tasks > most:
            growth = BoardGrowth(at, number, job.tasks, job.tasks - most, len(self._tasks))
            self.growth.append(growth)
            self.task_counts[number] = job.tasks
        removed, again = range(job.tasks, before), range(before, min(job.tasks, most))
        if removed or again:
            last = self._last_steps(number)
            open_ones = [index for index in removed if last.get(base + index) not in _OVER]
            self._add(at, Step.CANCELLED, base, open_ones)
            cancelled = [index for index in again if last.get(base + index) == Step.CANCELLED]
            self._add(at, Step.ADDED_AGAIN, base, cancelled)

    def _last_steps(self, number: int) -> dict[int, int]:
        """By task of the job."""
        columns = self.columns()
        mine = jobs_of(columns.tasks) == number
        return dict(zip(columns.tasks[mine].tolist(), columns.kinds[mine].tolist(), strict=True))


def read_steps(journal: JournalFile) -> JournalSteps:
    """The steps of a journal; raises an error that names the first line that contradicts others."""
    steps = JournalSteps(journal.header().setup)
    read = steps.read
    try:
        for fact in journal.facts():
            read(fact)
        steps.check()
    except (LookupError, ValueError, OverflowError) as error:
        raise contradiction(journal) from error
    return steps
