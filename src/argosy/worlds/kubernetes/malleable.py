"""How many pods of a malleable job run in parallel: more than it asks for while there is room to spare,
and as many as it asks for when others need the room.

The policies and the prediction are those of the `mapreduce` engine (Omega, section 6.1): a job's pods
are its workers, and each completion is an activity. How long one takes is learnt from the job's own
pods, or from jobs of the same program before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from argosy.engines.mapreduce.policies import most_workers, shared_room
from argosy.engines.mapreduce.prediction import History, best_addition
from argosy.model.jobs import MOST_TASKS, Job, TaskGroup
from argosy.model.resources import Resources

#: Deciding and starting pods takes this long: microseconds per decision, and per pod.
T_DECISION: Final = 1_000_000
T_POD: Final = 50_000

GrowthPolicy: TypeAlias = Literal["max-parallelism", "global-cap", "relative-job-size"]


class GrowthSettings(msgspec.Struct, frozen=True, kw_only=True):
    policy: GrowthPolicy = "max-parallelism"
    #: For `global-cap`: the largest share of any resource that may be requested.
    cap: Annotated[float, Meta(gt=0, le=1)] = 0.6
    #: For `relative-job-size`: the most pods of a job, in multiples of those asked for.
    times: Annotated[float, Meta(ge=1, le=1_000)] = 4.0
    #: Seconds between two decisions.
    interval: float = 5.0


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A malleable job as it is now."""

    uid: str
    #: Jobs of the same program take about as long.
    program: str
    request: Resources
    #: Pods in parallel: asked for by whoever made the job, and wanted now.
    asked: int
    wanted: int
    completions: int
    succeeded: int
    #: Pods with a node, and pods without one.
    running: int
    waiting: int
    #: How many more of its pods would fit on nodes that admit them.
    fits: int
    #: How many of its pods would have to go for the pods of others that wait for room.
    in_the_way: int
    #: How long a pod is said to run, in microseconds.
    estimate: int | None = None

    @property
    def left(self) -> int:
        return self.completions - self.succeeded


class _Record:
    """What the pods of a job have done since it was first seen, in microseconds of all of them."""

    __slots__ = ("_before", "_done", "_looked", "progress")

    def __init__(self, progress: JobProgress, now: int) -> None:
        self._before = progress.succeeded
        self._done = 0
        self._looked = now
        self.progress = progress

    def settle(self, progress: JobProgress, now: int) -> None:
        self._done += self.progress.running * (now - self._looked)
        self.progress, self._looked = progress, now

    @property
    def average(self) -> int | None:
        """How long a pod has taken; none before any has ended."""
        ended = self.progress.succeeded - self._before
        return max(1, self._done // ended) if ended > 0 else None


class JobScaler:
    def __init__(self, settings: GrowthSettings) -> None:
        self._settings = settings
        self._history = History()
        self._records: dict[str, _Record] = {}

    def decide(
        self,
        jobs: Sequence[JobProgress],
        used: Mapping[str, int],
        capacity: Mapping[str, int],
        now: int,
        *,
        is_crowded: bool = False,
    ) -> dict[str, int]:
        """How many pods jobs should have in parallel, of those for which that changes. `jobs` are all
        that are not over. In a cluster that is crowded, because pods of others wait, none grows."""
        for gone in self._records.keys() - {job.uid for job in jobs}:
            self._learn(self._records.pop(gone))
        for job in jobs:
            if job.uid in self._records:
                self._records[job.uid].settle(job, now)
            else:
                self._records[job.uid] = _Record(job, now)
        decided = {job.uid: fewer for job in jobs if (fewer := self._shrunk(job)) is not None}
        if is_crowded:
            return decided
        growing = [job for job in jobs if job.uid not in decided and self._may_grow(job)]
        for job in growing:
            count = self._addition(job, used, capacity, len(growing))
            if count:
                decided[job.uid] = job.wanted + count
        return decided

    def _shrunk(self, job: JobProgress) -> int | None:
        """Pods beyond those asked for give way to others, and are not wanted if they have no room."""
        spare = max(0, job.wanted - job.asked)
        going = min(spare, max(job.in_the_way, job.waiting))
        return job.wanted - going if going else None

    def _may_grow(self, job: JobProgress) -> bool:
        """All its pods run, so that more may help."""
        return not job.waiting and job.running >= min(job.wanted, job.left) and job.left > 0

    def _addition(
        self, job: JobProgress, used: Mapping[str, int], capacity: Mapping[str, int], sharing: int
    ) -> int:
        settings = self._settings
        average = self._average(job)
        most = most_workers(settings.policy, settings.times, job.left, job.asked) - job.wanted
        room = shared_room(
            settings.policy, settings.cap, job.request.items(), used, capacity, sharing
        )
        most = min(most, room, job.fits // sharing)
        if average is None or most <= 0:
            return 0
        # What runs is half done on average.
        work = max(job.left * average - job.running * average // 2, average)
        return best_addition([(work, job.left)], max(1, job.wanted), most, T_DECISION, T_POD)

    def _average(self, job: JobProgress) -> int | None:
        own = self._records[job.uid].average
        return own or self._history.average(_as_job(job), 0) or job.estimate

    def _learn(self, record: _Record) -> None:
        """The job is over: the next of its program will take about as long."""
        if record.average is not None:
            self._history.learn(_as_job(record.progress), 0, record.average)


def _as_job(job: JobProgress) -> Job:
    activities = (min(max(1, job.completions), MOST_TASKS),)
    group = TaskGroup(count=max(1, job.asked), request=job.request, activities=activities)
    return Job(id=job.uid, groups=(group,), program=job.program)
