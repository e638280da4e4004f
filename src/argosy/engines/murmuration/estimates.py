"""Running times learnt from finished jobs, so that users need not estimate them.

Jobs of one owner whose ids differ only in their last digits are taken to be runs of the same job. An
estimate is a quantile of the latest running times of such jobs' tasks; if too few have ended, of the
owner's tasks, else of all. The error of estimates is recorded as each task's |estimate / time - 1|.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.model.jobs import Job
from argosy.model.tasks import jobs_of

#: Running times remembered per name; how many are enough for an estimate.
MEMORY: Final = 1_000
ENOUGH: Final = 5
_ERRORS: Final = 100_000


class Learner:
    def __init__(self, quantile: float) -> None:
        self._quantile = quantile
        self._times: dict[tuple[str, ...], deque[int]] = {}
        #: Open jobs with an estimate requested: names, tasks left, and the estimate.
        self._open: dict[int, tuple[tuple[tuple[str, ...], ...], int, int | None]] = {}
        self._errors: deque[float] = deque(maxlen=_ERRORS)

    @staticmethod
    def names(job: Job) -> tuple[tuple[str, ...], ...]:
        """From narrowest to widest."""
        stem = job.id.rstrip("0123456789")
        return ((job.owner, stem), (job.owner,), ())

    def estimate(self, job: Job, number: int) -> int | None:
        """The estimate from similar jobs; None if too few have ended."""
        if number in self._open:
            return self._open[number][2]
        names, found = self.names(job), None
        for name in names:
            times = self._times.get(name)
            if times is not None and len(times) >= ENOUGH:
                found = max(1, int(np.quantile(np.fromiter(times, np.int64), self._quantile)))
                break
        self._open[number] = (names, job.tasks, found)
        return found

    def learn(self, tasks: NDArray[np.int64], times: NDArray[np.int64]) -> None:
        """Records running times of ended tasks; tasks of jobs that other schedulers placed are
        ignored."""
        for number, time in zip(jobs_of(tasks).tolist(), times.tolist(), strict=True):
            known = self._open.get(number)
            if known is None:
                continue
            names, left, estimate = known
            if estimate is not None and time > 0:
                self._errors.append(abs(estimate / time - 1))
            for name in names:
                self._times.setdefault(name, deque(maxlen=MEMORY)).append(time)
            if left > 1:
                self._open[number] = (names, left - 1, estimate)
            else:
                del self._open[number]

    def figures(self) -> dict[str, float]:
        if not self._errors:
            return {"estimates": 0.0}
        errors = np.fromiter(self._errors, np.float64)
        return {
            "estimates": float(len(errors)),
            "estimate_error_p50": float(np.quantile(errors, 0.5)),
            "estimate_error_p90": float(np.quantile(errors, 0.9)),
        }
