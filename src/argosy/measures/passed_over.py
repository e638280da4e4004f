"""Jobs of higher precedence that were passed over.

A job is passed over if a task of another job starts while it waits, and that job

- is of lower precedence,
- was submitted later,
- asks for at least as much per task in every resource, and requires the same of machines, or more.

So the machine would have served the job that waits. A job waits from the end of its first attempt until
all its tasks are placed, and while one of its tasks is in a machine's queue. Where the columns leave
room for doubt, it was not passed over:

- The first attempt ends when as much time has passed as schedulers spent on the job in all attempts.
- Of a job with several groups of tasks, every task must be able to replace every task of the other.
- A gang is passed over only by gangs of as many tasks, and a job with placement constraints never, since
  it may have waited for machines of its own.
- Only the last start of each task is known, not those before it was preempted or lost; a task that is
  in a queue when the run ends has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from argosy.host.job_table import DemandCodes, GroupDemand, JobDemand, demand_of
from argosy.measures.timeline import Times
from argosy.model.jobs import Job
from argosy.model.tasks import jobs_of


class JobPriorities(NamedTuple):
    """Columns by job number."""

    precedence: NDArray[np.int16]
    #: Indices into `demands`; those beyond it are demands that are not kept, which nobody is judged by.
    demand: NDArray[np.uint16]
    demands: Sequence[JobDemand]

    @staticmethod
    def of(jobs: Sequence[Job]) -> JobPriorities:
        codes = DemandCodes()
        demand = np.array([codes[demand_of(job)] for job in jobs], np.uint16)
        precedence = np.array([job.precedence for job in jobs], np.int16)
        return JobPriorities(precedence, demand, [*codes])


class JobMilestones(NamedTuple):
    """Columns by job number; -1 where something did not happen."""

    submit: Times
    first_attempt: Times
    thought: Times
    all_placed: Times


class TaskStarts(NamedTuple):
    """Columns of tasks that run or have ended."""

    tasks: Times
    placed: Times
    started: Times


class _Waits(NamedTuple):
    """Intervals in which jobs waited, without their ends."""

    jobs: Times
    after: Times
    before: Times

    def of(self, chosen: NDArray[np.bool_]) -> _Waits:
        return _Waits(self.jobs[chosen], self.after[chosen], self.before[chosen])


def passed_over(
    priorities: JobPriorities, milestones: JobMilestones, starts: TaskStarts
) -> tuple[int, int]:
    """How many jobs have a higher precedence than others, and how many of them were passed over."""
    precedence = priorities.precedence
    if not len(precedence) or precedence.min() == precedence.max():
        return 0, 0
    is_higher = precedence > precedence.min()
    waits = _waits(milestones, starts)
    is_judged = is_higher & (priorities.demand < len(priorities.demands))
    waits = waits.of(is_judged[waits.jobs] & (waits.after < waits.before))
    found = np.zeros(len(precedence), bool)
    if len(waits.jobs):
        _judge(found, waits, priorities, milestones.submit, starts)
    return int(is_higher.sum()), int(found.sum())


def _waits(milestones: JobMilestones, starts: TaskStarts) -> _Waits:
    submit, first_attempt, thought, all_placed = milestones
    never = np.iinfo(np.int64).max
    jobs = jobs_of(starts.tasks)
    # An engine that decides at once has no attempts; the first is over when it places a task.
    first_placed = np.full(len(submit), never)
    np.minimum.at(first_placed, jobs, starts.placed)
    tried = np.where(first_attempt >= 0, first_attempt + thought, first_placed)
    placed = np.where(all_placed >= 0, all_placed, never)
    # Every task needs at least this long to reach its machine, which is no waiting.
    took = starts.started - starts.placed
    underway = int(took[took >= 0].min(initial=never))
    is_queued = took > underway
    return _Waits(
        np.concatenate([np.arange(len(submit)), jobs[is_queued]]),
        np.concatenate([tried, starts.placed[is_queued] + underway]),
        np.concatenate([placed, starts.started[is_queued]]),
    )


def _judge(
    found: NDArray[np.bool_],
    waits: _Waits,
    priorities: JobPriorities,
    submit: Times,
    starts: TaskStarts,
) -> None:
    """Marks the jobs that were passed over."""
    precedence, demand, _ = priorities
    others = jobs_of(starts.tasks)
    can_pass = (starts.started >= 0) & (precedence[others] < precedence[waits.jobs].max())
    when, others = _distinct(starts.started[can_pass], others[can_pass])
    comparison = _Comparison(priorities.demands)
    # Waits of equal jobs are judged at once.
    alike = precedence[waits.jobs].astype(np.int64) << 16 | demand[waits.jobs]
    for each in np.unique(alike).tolist():
        rank, code = each >> 16, each & 0xFFFF
        mine = waits.of(alike == each)
        is_rival = (precedence[others] < rank) & comparison.asks_as_much(code)[demand[others]]
        if not is_rival.any():
            continue
        rivals = submit[others[is_rival]]
        first = np.searchsorted(when[is_rival], mine.after, side="right")
        end = np.searchsorted(when[is_rival], mine.before, side="left")
        latest = _largest_within(rivals, first, end)
        found[mine.jobs[latest > submit[mine.jobs]]] = True


def _distinct(when: Times, jobs: Times) -> tuple[Times, Times]:
    """In order of time; tasks of a job that start at one instant are one start."""
    order = np.lexsort((jobs, when))
    when, jobs = when[order], jobs[order]
    is_new = np.ones(len(when), bool)
    is_new[1:] = (when[1:] != when[:-1]) | (jobs[1:] != jobs[:-1])
    return when[is_new], jobs[is_new]


def _largest_within(values: Times, first: Times, end: Times) -> Times:
    """The largest of values[first:end] for each pair; -1 if that is empty."""
    largest = np.full(len(first), -1, np.int64)
    length = np.maximum(end - first, 0)
    span = 1
    # In each round, values[i] is the largest of `span` values from i on.
    while (asked := length >= span).any():
        chosen = asked & (length < 2 * span)
        largest[chosen] = np.maximum(values[first[chosen]], values[end[chosen] - span])
        values = np.maximum(values[:-span], values[span:])
        span *= 2
    return largest


class _Comparison:
    """Which demands are at least as large as others."""

    def __init__(self, demands: Sequence[JobDemand]) -> None:
        groups = [[_amounts(group) for group in demand.groups] for demand in demands]
        names = sorted({name for demand in groups for group in demand for name in group})
        vectors = [
            np.array([[group.get(name, 0) for name in names] for group in demand])
            for demand in groups
        ]
        self._most = np.stack([each.max(axis=0) for each in vectors])
        self._least = np.stack([each.min(axis=0) for each in vectors])
        required = [[frozenset(group.requires) for group in demand.groups] for demand in demands]
        self._all = [frozenset.union(*each) for each in required]
        self._common = [frozenset.intersection(*each) for each in required]
        self._together = np.array([demand.together for demand in demands])
        self._is_constrained = [demand.is_constrained for demand in demands]

    def asks_as_much(self, code: int) -> NDArray[np.bool_]:
        """By code, the demands of jobs whose machines would have served a job with this demand; False
        for the code of other demands."""
        answer = np.zeros(len(self._common) + 1, bool)
        if not self._is_constrained[code]:
            answer[:-1] = (self._least >= self._most[code]).all(axis=1)
            answer[:-1] &= self._together >= self._together[code]
            if wanted := self._all[code]:
                answer[:-1] &= [wanted <= has for has in self._common]
        return answer


def _amounts(group: GroupDemand) -> dict[str, int]:
    return {"cpu": group.cpu, "memory": group.memory, **dict(group.extras)}
