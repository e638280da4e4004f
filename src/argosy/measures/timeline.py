"""The time of each task in the Murmuration paper's four parts, and the spread within a job.

    w2s   waiting for the scheduler: from submission until it decides, between decisions included
    s     being decided on
    w2x   waiting at the machine: from being placed until running
    x     running

TST = w2s + s is the time spent at the scheduler, TCT = TST + w2x + x the whole; a job's JCT is its
largest TCT. All of a job's tasks come at once, so the time spent deciding on a task is what its
scheduler had spent on the job when the task was placed.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.measures.statistics import distribution
from argosy.model.tasks import jobs_of
from argosy.records.summary import Timeline

Times = NDArray[np.int64]


class TaskTimes(msgspec.Struct, frozen=True):
    """One row per finished task; times in microseconds."""

    tasks: NDArray[np.int64]
    submitted: Times
    w2s: Times
    s: Times
    w2x: Times
    x: Times

    @property
    def tst(self) -> Times:
        return self.w2s + self.s

    @property
    def tct(self) -> Times:
        return self.tst + self.w2x + self.x


def task_times(
    tasks: NDArray[np.int64],
    placed: Times,
    started: Times,
    finished: Times,
    submit: Times,
    first_attempt: Times,
    thought: Times,
) -> TaskTimes:
    """From columns of tasks and of jobs. A job without decision time was decided on instantly."""
    jobs = jobs_of(tasks)
    submitted = submit[jobs]
    begun = np.where(first_attempt[jobs] >= 0, first_attempt[jobs], placed)
    s = np.clip(np.minimum(thought[jobs], placed - begun), 0, None)
    return TaskTimes(
        tasks=tasks,
        submitted=submitted,
        w2s=placed - submitted - s,
        s=s,
        w2x=started - placed,
        x=finished - started,
    )


def timeline(times: TaskTimes) -> Timeline:
    if not len(times.tasks):
        return Timeline()
    _, jobs = np.unique(jobs_of(times.tasks), return_inverse=True)
    scheduled = times.submitted + times.tst
    started = scheduled + times.w2x
    return Timeline(
        w2s=distribution(times.w2s),
        s=distribution(times.s),
        w2x=distribution(times.w2x),
        x=distribution(times.x),
        tst=distribution(times.tst),
        tct=distribution(times.tct),
        mean_tst=distribution(_means(times.tst, jobs)),
        mean_tct=distribution(_means(times.tct, jobs)),
        tail_tst=distribution(_tails(times.tst, jobs)),
        tail_tct=distribution(_tails(times.tct, jobs)),
        spread={
            "scheduled": distribution(_spread(scheduled, jobs)),
            "started": distribution(_spread(started, jobs)),
            "finished": distribution(_spread(started + times.x, jobs)),
        },
    )


def _means(values: Times, jobs: NDArray[np.intp]) -> NDArray[np.float64]:
    return np.bincount(jobs, values) / np.bincount(jobs)


def _tails(values: Times, jobs: NDArray[np.intp]) -> Times:
    tails = np.zeros(int(jobs.max()) + 1, np.int64)
    np.maximum.at(tails, jobs, values)
    return tails


def _spread(values: Times, jobs: NDArray[np.intp]) -> NDArray[np.float64]:
    """The standard deviation of each job's tasks about their mean."""
    apart = values - _means(values, jobs)[jobs]
    return np.sqrt(np.bincount(jobs, apart**2) / np.bincount(jobs))
