"""Running times learnt from finished jobs, so that users need not estimate them.

Jobs of one owner whose ids differ only in their last digits are taken to be runs of the same job. An
estimate is a quantile of the latest running times of such jobs' tasks; if too few have ended, of the
owner's tasks, else of all. The error of estimates is recorded as each task's |estimate / time - 1|.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy.model.jobs import Job
from argosy.model.tasks import jobs_of
from argosy.model.transactions import TaskArray

#: Running times remembered per name; how many are enough for an estimate.
MEMORY: Final = 1_000
ENOUGH: Final = 5
_ERRORS: Final = 100_000


class _ObservedJob(NamedTuple):
    """A job whose estimate was asked for, with tasks left to end."""

    names: tuple[tuple[str, ...], ...]
    left: int
    estimate: int | None

    def errors(self, time: int) -> tuple[float, ...]:
        """The error of its estimate for a task that took this time; none without an estimate."""
        if self.estimate is None or time <= 0:
            return ()
        return (abs(self.estimate / time - 1),)


class Learner:
    def __init__(self, quantile: float) -> None:
        self._quantile = quantile
        self._times: dict[tuple[str, ...], deque[int]] = {}
        self._open: dict[int, _ObservedJob] = {}
        self._errors: deque[float] = deque(maxlen=_ERRORS)

    @staticmethod
    def names(job: Job) -> tuple[tuple[str, ...], ...]:
        """From narrowest to widest."""
        stem = job.id.rstrip("0123456789")
        return ((job.owner, stem), (job.owner,), ())

    def estimate(self, job: Job, number: int) -> int | None:
        """The estimate from similar jobs; None if too few have ended."""
        if number in self._open:
            return self._open[number].estimate
        names, found = self.names(job), None
        for name in names:
            times = self._times.get(name)
            if times is not None and len(times) >= ENOUGH:
                found = max(1, int(np.quantile(np.fromiter(times, np.int64), self._quantile)))
                break
        self._open[number] = _ObservedJob(names, job.tasks, found)
        return found

    def learn(self, tasks: TaskArray, times: NDArray[np.int64]) -> None:
        """Records running times of ended tasks; tasks of jobs that other schedulers placed are
        ignored."""
        for job, time in _ended(self._open, tasks, times):
            self._errors.extend(job.errors(time))
            for name in job.names:
                self._times.setdefault(name, deque(maxlen=MEMORY)).append(time)

    def figures(self, tasks: TaskArray, times: NDArray[np.int64]) -> dict[str, float]:
        """The errors of estimates so far and of these tasks, which are not learnt from."""
        latest = self._errors.copy()
        for job, time in _ended(self._open.copy(), tasks, times):
            latest.extend(job.errors(time))
        if not latest:
            return {"estimates": 0.0}
        errors = np.fromiter(latest, np.float64)
        return {
            "estimates": float(len(errors)),
            "estimate_error_p50": float(np.quantile(errors, 0.5)),
            "estimate_error_p90": float(np.quantile(errors, 0.9)),
        }


def _ended(
    open_jobs: dict[int, _ObservedJob], tasks: TaskArray, times: NDArray[np.int64]
) -> Iterator[tuple[_ObservedJob, int]]:
    """The job and the time of each ended task that belongs to an open job; counts it as ended there."""
    for number, time in zip(jobs_of(tasks).tolist(), times.tolist(), strict=True):
        job = open_jobs.get(number)
        if job is None:
            continue
        yield job, time
        if job.left > 1:
            open_jobs[number] = job._replace(left=job.left - 1)
        else:
            del open_jobs[number]
