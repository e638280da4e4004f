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
from argosy.model.resources import dimensions_of
from argosy.model.scenario import Scenario

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


class Ledger:
    """Takes the lines of the log in order."""

    def __init__(self, scenario: Scenario) -> None:
        dimensions = dimensions_of([machine.capacity for machine in scenario.cell.machines])
        #: Per group of tasks, in the order of jobs: its first task, and what its tasks ask for.
        self._first: list[int] = []
        self._requests: list[tuple[int, ...]] = []
        self._jobs = {job.id: job for job in scenario.jobs}
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
        self._tasks.append(indices | (self._numbers[line["job"]] << 32))
        self._lines.append((len(indices), line["at"], kind, scheduler))

    def _submit(self, job_id: str) -> None:
        """Jobs have their numbers in the order of submission."""
        number = self._numbers[job_id] = len(self._numbers)
        job = self._jobs[job_id]
        for start, group in zip(job.group_starts(), job.groups, strict=True):
            self._first.append(number << 32 | start)
            self._requests.append(group.request.vector(self._dimensions))

    def settle(self, rows: dict[str, NDArray[Any]], ended_at: int) -> Holdings:
        """Finds the end of each claim, given the columns of the task timeline."""
        empty = np.empty(0, np.int64)
        tasks = np.concatenate(self._tasks) if self._tasks else empty
        lines = np.array(self._lines, np.int64).reshape(-1, 4)
        at, kinds, schedulers = (np.repeat(lines[:, c], lines[:, 0]) for c in (1, 2, 3))
        # What happened to one task stands together, in the order of the log.
        order = np.argsort(tasks, kind="stable")
        tasks, at, kinds, schedulers = tasks[order], at[order], kinds[order], schedulers[order]
        is_followed = (
            np.append(tasks[1:] == tasks[:-1], False) if len(tasks) else empty.astype(bool)
        )
        is_claim = kinds <= _ENQUEUED

        place = np.argsort(rows["task"], kind="stable")
        timeline = rows["task"][place]
        row = np.clip(np.searchsorted(timeline, tasks), 0, max(0, len(timeline) - 1))
        is_known = timeline[row] == tasks if len(timeline) else np.zeros(len(tasks), bool)
        row = place[row] if len(timeline) else row
        finished, started = (_taken(rows[name], row) for name in ("finished", "started"))

        following = np.append(at[1:], 0)
        # Workers beyond a job's own tasks are not in the timeline: they end with the job.
        job_end = _job_ends(rows, len(self._numbers))[tasks >> 32]
        finished = np.where(is_known, finished, job_end)
        own_end = np.where(finished >= 0, finished, ended_at)
        end = np.where(is_followed, following, own_end)
        begin = np.where(kinds == _ENQUEUED, np.where(is_known, started, end), at)
        # An enqueued task that was lost: nobody knows whether it had started.
        begin = np.where((kinds == _ENQUEUED) & is_followed, end, begin)
        was_preempted = np.append(kinds[1:] == _PREEMPTED, False) & is_followed

        group = np.searchsorted(np.array(self._first, np.int64), tasks, side="right") - 1
        return Holdings(
            list(self._schedulers),
            schedulers[is_claim],
            tasks[is_claim],
            begin[is_claim],
            np.maximum(end, begin)[is_claim],
            was_preempted[is_claim],
            np.array(self._requests, np.int64).reshape(-1, len(self._dimensions)),
            group[is_claim],
        )


def _job_ends(rows: dict[str, NDArray[Any]], jobs: int) -> NDArray[np.int64]:
    """When the last task of each job ended; -1: not yet, or it never began."""
    ends, numbers = np.full(jobs, -1, np.int64), rows["task"] >> 32
    np.maximum.at(ends, numbers, rows["finished"].astype(np.int64))
    ends[numbers[rows["finished"] < 0]] = -1
    return ends


def _taken(column: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return column[rows].astype(np.int64) if len(column) else np.full(len(rows), -1, np.int64)


class Holdings:
    """All claims of a run, each with its begin and end."""

    def __init__(
        self,
        names: list[str],
        schedulers: NDArray[np.int64],
        tasks: NDArray[np.int64],
        begin: NDArray[np.int64],
        end: NDArray[np.int64],
        was_preempted: NDArray[np.bool_],
        requests: NDArray[np.int64],
        groups: NDArray[np.int64],
    ) -> None:
        self._names = names
        self._schedulers = schedulers
        self._tasks = tasks
        self._begin = begin
        self._end = end
        self._was_preempted = was_preempted
        self._requests = requests
        self._groups = groups

    def of(self, scheduler: str) -> Holding:
        number = self._names.index(scheduler) if scheduler in self._names else -1
        mine = np.flatnonzero(self._schedulers == number)
        begin, end = self._begin[mine], self._end[mine]
        amounts = self._requests[self._groups[mine]]
        jobs = self._tasks[mine] >> 32
        lasted = (end - begin).astype(np.float64)
        return Holding(
            time=[float(lasted @ amounts[:, d]) for d in range(amounts.shape[1])],
            peak=[_peak(begin, end, amounts[:, d]) for d in range(amounts.shape[1])],
            claims=len(mine),
            jobs=len(np.unique(jobs)),
            peak_jobs=_peak(*_spans(jobs, begin, end), np.ones(1, np.int64)),
            preempted=int(self._was_preempted[mine].sum()),
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
