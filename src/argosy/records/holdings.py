"""What schedulers held over time, recounted from the decision log and the task timeline.

Claims are columns: a run may have millions. A claim lasts from its line in the log to the line that
takes it away, or to the end of its task, or to the end of the run. A task that was enqueued holds its
room from when it started; of one that was lost before it ended the start is not known, and it counts for
nothing.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import Why
from argosy.model.jobs import task_number
from argosy.model.resources import dimensions_of
from argosy.model.scenario import Scenario
from argosy.model.tasks import jobs_of, task_numbers

_CLAIMED: Final = 0
_ENQUEUED: Final = 1
_ENDED: Final = 2
_PREEMPTED: Final = 3
_KINDS: Final = {
    "placed": _CLAIMED,
    "enqueued": _ENQUEUED,
    "released": _ENDED,
    "lost": _ENDED,
}


class Holding(msgspec.Struct, frozen=True, kw_only=True):
    """What one scheduler held, by dimension: amount times microseconds, and the most at one instant.
    Where claims end and begin at one instant, the ends come first."""

    time: list[float]
    peak: list[int]
    claims: int
    jobs: int
    peak_jobs: int
    preempted: int


class HoldingsRecount:
    """Takes the lines of the log in order."""

    def __init__(self, scenario: Scenario) -> None:
        dimensions = dimensions_of([machine.capacity for machine in scenario.cell.machines])
        #: Per group of tasks, in the order of jobs: its first task, and what its tasks ask for.
        self._first: list[int] = []
        self._requests: list[tuple[int, ...]] = []
        self._jobs = {made.id: made.job for made in scenario.jobs}
        self._dimensions = dimensions
        self._numbers: dict[str, int] = {}
        self._schedulers: dict[str, int] = {}
        self._tasks: list[NDArray[np.int64]] = []
        #: Per line: how many tasks, when, what happened, and whose doing it was.
        self._lines: list[tuple[int, int, int, int]] = []

    def read(self, line: dict[str, Any]) -> None:
        what = line["what"]
        if what == "submitted":
            self._submit(line["job"])
            return
        kind = _KINDS.get(what)
        if kind is None:
            return
        if kind == _ENDED and line.get("why") == Why.PREEMPTED.name.lower():
            kind = _PREEMPTED
        scheduler = self._schedulers.setdefault(line.get("scheduler", ""), len(self._schedulers))
        indices = np.array(line["indices"], np.int64)
        self._tasks.append(task_numbers(self._numbers[line["job"]], indices))
        self._lines.append((len(indices), line["at"], kind, scheduler))

    def _submit(self, job_id: str) -> None:
        """Jobs have their numbers in the order of submission."""
        number = self._numbers[job_id] = len(self._numbers)
        job = self._jobs[job_id]
        for start, group in zip(job.group_starts(), job.groups, strict=True):
            self._first.append(task_number(number, start))
            self._requests.append(group.request.vector(self._dimensions))

    def settle(self, rows: dict[str, NDArray[Any]], ended_at: int) -> Holdings:
        """Finds the end of each claim, given the columns of the task timeline."""
        tasks = np.concatenate([*self._tasks, np.empty(0, np.int64)])
        lines = np.array(self._lines, np.int64).reshape(-1, 4)
        at, kinds, schedulers = (np.repeat(lines[:, c], lines[:, 0]) for c in (1, 2, 3))
        # What happened to one task stands together, in the order of the log.
        order = np.argsort(tasks, kind="stable")
        tasks, at, kinds, schedulers = tasks[order], at[order], kinds[order], schedulers[order]
        is_followed = _next(tasks) == tasks
        is_claim, is_queued = kinds <= _ENQUEUED, kinds == _ENQUEUED

        started, finished = _timeline(rows, tasks, len(self._numbers))
        end = np.where(is_followed, _next(at), np.where(finished >= 0, finished, ended_at))
        # Of a task that was lost from a queue nobody knows whether it had started.
        is_unknown = is_queued & (is_followed | (started < 0))
        begin = np.where(is_unknown, end, np.where(is_queued, started, at))
        was_preempted = is_followed & (_next(kinds) == _PREEMPTED)

        group = np.searchsorted(np.array(self._first, np.int64), tasks, side="right") - 1
        return Holdings(
            names=list(self._schedulers),
            requests=np.array(self._requests, np.int64).reshape(-1, len(self._dimensions)),
            schedulers=schedulers[is_claim],
            tasks=tasks[is_claim],
            groups=group[is_claim],
            begin=begin[is_claim],
            end=np.maximum(end, begin)[is_claim],
            was_preempted=was_preempted[is_claim],
        )


def _next(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """What follows each value; -1 after the last."""
    following = np.full(len(values), -1, np.int64)
    following[:-1] = values[1:]
    return following


def _timeline(
    rows: dict[str, NDArray[Any]], tasks: NDArray[np.int64], jobs: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """When each of `tasks` started and finished; -1: it did not. Workers beyond a job's own tasks are
    not in the timeline, and end with the job."""
    of_job, numbers = np.full(jobs, -1, np.int64), jobs_of(rows["task"])
    np.maximum.at(of_job, numbers, rows["finished"])
    of_job[numbers[rows["finished"] < 0]] = -1
    started, finished = np.full(len(tasks), -1, np.int64), of_job[jobs_of(tasks)]
    if len(numbers):
        place = np.argsort(rows["task"])
        found = place[np.searchsorted(rows["task"], tasks, sorter=place) % len(place)]
        is_known = rows["task"][found] == tasks
        started[is_known] = rows["started"][found[is_known]]
        finished[is_known] = rows["finished"][found[is_known]]
    return started, finished


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """All claims of a run as parallel arrays, each with its begin and end."""

    #: Names of schedulers by number, and what the tasks of each group ask for.
    names: list[str]
    requests: NDArray[np.int64]
    schedulers: NDArray[np.int64]
    tasks: NDArray[np.int64]
    groups: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    was_preempted: NDArray[np.bool_]

    def of(self, scheduler: str) -> Holding:
        number = self.names.index(scheduler) if scheduler in self.names else -1
        mine = np.flatnonzero(self.schedulers == number)
        begin, end = self.begin[mine], self.end[mine]
        amounts = self.requests[self.groups[mine]]
        jobs = jobs_of(self.tasks[mine])
        lasted = (end - begin).astype(np.float64)
        return Holding(
            time=[float(lasted @ amounts[:, d]) for d in range(amounts.shape[1])],
            peak=[_peak(begin, end, amounts[:, d]) for d in range(amounts.shape[1])],
            claims=len(mine),
            jobs=len(np.unique(jobs)),
            peak_jobs=_peak(*_spans(jobs, begin, end), np.ones(1, np.int64)),
            preempted=int(self.was_preempted[mine].sum()),
        )


def _peak(begin: NDArray[np.int64], end: NDArray[np.int64], amounts: NDArray[np.int64]) -> int:
    """The largest sum of amounts over intervals that are open at one instant."""
    if not len(begin):
        return 0
    amounts = np.broadcast_to(amounts, begin.shape)
    changes = np.concatenate([-amounts, amounts])
    order = np.argsort(np.concatenate([end, begin]), kind="stable")
    return int(np.cumsum(changes[order]).max(initial=0))


def _spans(
    jobs: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The times during which each job holds something, as intervals."""
    if not len(jobs):
        return begin, end
    times, changes = np.concatenate([begin, end]), np.repeat([1, -1], len(jobs))
    order = np.lexsort((-changes, times, np.concatenate([jobs, jobs])))
    held = np.cumsum(changes[order])
    is_first = (held == 1) & (changes[order] == 1)
    return times[order][is_first], times[order][held == 0]
