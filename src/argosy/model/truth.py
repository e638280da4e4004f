"""Real running times of jobs, which only the simulator and reports may know.

Engines see a `Job`, with `TaskGroup.estimate` as the only hint about running times. Workloads fill
it in: with the true mean if the submitter gave none. `group_with_truth` and `workers_with_truth` do
that, and `simulated_job` builds a job from such groups.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Any, Final

import msgspec

from argosy.model.errors import ModelError
from argosy.model.jobs import Job, TaskGroup, check_activities
from argosy.model.resources import Resources
from argosy.model.units import LARGEST

#: Activities x duration of one phase still fit 64 bits.
MOST_WORK: Final = 2**62


class GroupTruth(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """How long the tasks of a group run: `durations` has one time for all, or one per task; empty:
    until stopped. For workers, `phases` has the duration of one activity in each phase."""

    durations: tuple[int, ...] = ()
    phases: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.phases and self.durations:
            raise ModelError(
                "both phases and durations", field="phases", expected="one of them or neither"
            )
        for duration in self.durations:
            if not 0 <= duration <= LARGEST:
                raise ModelError(
                    f"a duration of {duration} µs", field="durations", expected="0 to 2^53 µs"
                )

    def duration(self, index: int) -> int | None:
        """The duration of the task with this index in the group; None: until stopped."""
        if not self.durations:
            return None
        return self.durations[0] if len(self.durations) == 1 else self.durations[index]

    def mean(self) -> int | None:
        """The mean duration of all tasks; None if they run until stopped."""
        return sum(self.durations) // len(self.durations) if self.durations else None


class SimulatedJob(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A job of a workload: its time of submission, and the truth about each group."""

    job: Job
    submit: int
    truth: tuple[GroupTruth, ...]

    def __post_init__(self) -> None:
        job = self.job
        if not 0 <= self.submit <= LARGEST:
            raise ModelError(
                f"job {job.id} submitted at {self.submit} µs",
                field="submit",
                expected="0 to 2^53 µs",
            )
        if len(self.truth) != len(job.groups):
            raise ModelError(
                f"job {job.id} has {len(job.groups)} groups and running times for {len(self.truth)}",
                field="truth",
                expected="one for each group",
            )
        for group, truth in zip(job.groups, self.truth, strict=True):
            # Most groups have one time for all tasks, and nothing else needs to be checked.
            if group.endless or group.activities or truth.phases or len(truth.durations) != 1:
                _check(group, truth)

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def kind(self) -> str:
        return self.job.kind

    @property
    def tasks(self) -> int:
        return self.job.tasks

    @property
    def groups(self) -> tuple[TaskGroup, ...]:
        return self.job.groups

    @property
    def is_endless(self) -> bool:
        """Whether some of its tasks really run until stopped."""
        return not all(truth.durations or truth.phases for truth in self.truth)


def _check(group: TaskGroup, truth: GroupTruth) -> None:
    durations = len(truth.durations)
    if durations > 1 and durations != group.count:
        raise ModelError(
            f"{durations} durations for {group.count} tasks",
            field="durations",
            expected="none, one for all, or one per task",
        )
    if group.endless and durations:
        raise ModelError(
            "durations of tasks that run until stopped", field="durations", expected="none"
        )
    if len(truth.phases) != len(group.activities):
        raise ModelError(
            f"{len(truth.phases)} phase durations for {len(group.activities)} phases",
            field="phases",
            expected="one per phase",
        )
    if truth.phases:
        for activities, duration in zip(group.activities, truth.phases, strict=True):
            check_phase(activities, duration)


def check_phase(activities: int, duration: int) -> None:
    """Checks the number of activities in a phase and the duration of each."""
    check_activities(activities)
    if not 0 <= duration <= min(LARGEST, MOST_WORK // activities):
        raise ModelError(
            f"{activities} activities of {duration} µs",
            field="duration",
            expected="0 to 2^53 µs each, at most 2^62 in total",
        )


def running_time(activities: tuple[int, ...], durations: tuple[int, ...], workers: int) -> int:
    """How long this many workers need for all phases if none joins or leaves."""
    total = 0
    for count, duration in zip(activities, durations, strict=True):
        total += -(-count * duration // min(workers, count))
    return min(total, LARGEST)


def group_with_truth(
    count: int,
    request: Resources,
    durations: tuple[int, ...] = (),
    estimate: int | None = None,
    **fields: Any,
) -> tuple[TaskGroup, GroupTruth]:
    """A group with its truth. The estimate defaults to the mean duration; with neither, the group is
    endless. `fields` are other fields of the group."""
    truth = GroupTruth(durations)
    if estimate is None:
        estimate = truth.mean()
    return TaskGroup(count, request, estimate, endless=estimate is None, **fields), truth


def workers_with_truth(
    count: int,
    request: Resources,
    activities: tuple[int, ...],
    durations: tuple[int, ...],
    estimate: int | None = None,
    **fields: Any,
) -> tuple[TaskGroup, GroupTruth]:
    """A group of workers with its truth. The estimate defaults to how long `count` workers need for all
    phases."""
    if estimate is None:
        estimate = running_time(activities, durations, count)
    group = TaskGroup(count, request, estimate, activities=activities, **fields)
    return group, GroupTruth(phases=durations)


def simulated_job(
    job_id: str, *parts: tuple[TaskGroup, GroupTruth], submit: int = 0, **fields: Any
) -> SimulatedJob:
    """A job with these groups. `fields` are other fields of the job."""
    groups, truths = zip(*parts, strict=True) if parts else ((), ())
    return SimulatedJob(Job(job_id, groups, **fields), submit, truths)


def plain_job_maker(
    kind: str, precedence: int = 0
) -> Callable[[str, int, int, Resources, int], SimulatedJob]:
    """Makes jobs of one kind from an id, a time of submission, a number of tasks, what each requests and
    how long each runs: as `simulated_job` would, in half the time, because they are copies of one that
    was checked. What is given must be valid."""
    sample = simulated_job(
        "sample", group_with_truth(1, Resources(), (0,)), kind=kind, precedence=precedence
    )
    group_sample, truth_sample, job_sample = sample.groups[0], sample.truth[0], sample.job
    new, put = methodcaller("__copy__"), msgspec.structs.force_setattr

    def make(
        job_id: str, submit: int, count: int, request: Resources, duration: int
    ) -> SimulatedJob:
        group, truth, job = new(group_sample), new(truth_sample), new(job_sample)
        made: SimulatedJob = new(sample)
        put(group, "count", count)
        put(group, "request", request)
        put(group, "estimate", duration)
        put(truth, "durations", (duration,))
        put(job, "id", job_id)
        put(job, "groups", (group,))
        put(made, "job", job)
        put(made, "submit", submit)
        put(made, "truth", (truth,))
        return made

    return make


def told_by_default(group: TaskGroup, truth: GroupTruth) -> int | None:
    """The group's estimate if its submitter gives none."""
    if truth.phases:
        return running_time(group.activities, truth.phases, group.count)
    return truth.mean()


def untimed(job: Job) -> SimulatedJob:
    """A job about whose running times nothing is known, for checks that do not need them."""
    return SimulatedJob(job, 0, tuple([GroupTruth() for _ in job.groups]))
