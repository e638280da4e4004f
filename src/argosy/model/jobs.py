"""Jobs: one or many tasks that were submitted together.

A task is known everywhere by one 64-bit number: its job's number and its index in the job. Arrays of
such numbers travel through events, effects and the native core (`argosy.model.tasks` takes them apart);
`task_name` makes them readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NewType

import msgspec

from argosy.model.constraints import Constraint
from argosy.model.errors import ModelError, excerpt
from argosy.model.resources import Resources
from argosy.model.units import LARGEST

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from argosy.model.transactions import TaskArray

JobNumber = NewType("JobNumber", int)
TaskNumber = NewType("TaskNumber", int)

BATCH: Final = "batch"
SERVICE: Final = "service"

#: A task number holds the task's index in its low bits and its job's number above them.
INDEX_BITS: Final = 32
INDEX_MASK: Final = (1 << INDEX_BITS) - 1
#: Job numbers leave the sign bit alone.
MOST_JOBS: Final = 2**31 - 1
MOST_TASKS: Final = 2**24
#: Of one phase, activities x duration: still a 64-bit number.
MOST_WORK: Final = 2**62
#: Precedence is a 16-bit number in the native columns.
PRECEDENCE_RANGE: Final = (-32_768, 32_767)


def task_number(job: int, index: int) -> TaskNumber:
    return TaskNumber(job << INDEX_BITS | index)


def job_of(task: int) -> JobNumber:
    return JobNumber(task >> INDEX_BITS)


def index_of(task: int) -> int:
    return task & INDEX_MASK


def is_name(text: str) -> bool:
    """Whether `text` can be typed, seen, and told from what stands beside it."""
    # Of all spaces, only the plain one is printable.
    return bool(text) and text.isprintable() and " " not in text


def task_name(job_id: str, index: int) -> str:
    return f"{job_id}/{index}"


class Phase(msgspec.Struct, frozen=True, gc=False):
    """Activities that may all run at once, each for `duration` on one worker. How many there are is
    known to everybody; how long they take, to the world alone."""

    activities: int
    duration: int

    def __post_init__(self) -> None:
        if not 1 <= self.activities <= MOST_TASKS:
            raise ModelError(
                f"{self.activities} activities in a phase",
                field="activities",
                expected=f"1 to {MOST_TASKS:,}",
            )
        if not 0 <= self.duration <= min(LARGEST, MOST_WORK // self.activities):
            raise ModelError(
                f"{self.activities} activities of {self.duration} µs",
                field="duration",
                expected="0 to 2^53 µs each, at most 2^62 in all",
            )


class TaskGroup(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Tasks of one job that are alike: same request, tags and required machine attributes.

    `durations` holds one running time for all, or one per task; empty means "runs until stopped".
    What a scheduler may know beforehand is `estimate`; durations are for the world alone.

    With `phases`, the tasks are workers: together they do the activities of one phase after the other,
    as many at once as there are workers, and all end with the last. `count` is how many workers the
    submitter asks for; a scheduler that knows how may add others and take them away again.
    """

    count: int
    request: Resources
    durations: tuple[int, ...] = ()
    estimate: int | None = None
    tags: tuple[str, ...] = ()
    requires: dict[str, str] = {}
    phases: tuple[Phase, ...] = ()
    #: Attributes of machines near the tasks' data: engines that know of locality weigh them against
    #: waiting.
    prefers: dict[str, str] = {}

    def __post_init__(self) -> None:
        if self.phases and self.durations:
            raise ModelError(
                "both phases and durations", field="phases", expected="one of them or neither"
            )
        if not 1 <= self.count <= MOST_TASKS:
            raise ModelError(
                f"{self.count} tasks in a group", field="count", expected=f"1 to {MOST_TASKS:,}"
            )
        if len(self.durations) not in (0, 1, self.count):
            raise ModelError(
                f"{len(self.durations)} durations for {self.count} tasks",
                expected="none, one for all, or one per task",
            )
        for duration in (*self.durations, self.estimate or 0):
            if not 0 <= duration <= LARGEST:
                raise ModelError(f"a duration of {duration} µs", expected="0 to 2^53 µs")

    def duration(self, index: int) -> int | None:
        if not self.durations:
            return None
        return self.durations[0] if len(self.durations) == 1 else self.durations[index]

    @property
    def expected(self) -> int | None:
        """The estimate, or the mean duration where the submitter gave none."""
        if self.estimate is None and self.phases:
            return self.running_time(self.count)
        if self.estimate is not None or not self.durations:
            return self.estimate
        return sum(self.durations) // len(self.durations)

    def running_time(self, workers: int) -> int:
        """How long all phases take with so many workers from beginning to end."""
        work = ((p.activities * p.duration, min(workers, p.activities)) for p in self.phases)
        return min(sum(-(-total // rate) for total, rate in work), LARGEST)


class Job(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a user submits. `kind` routes it (``batch``, ``service`` or a name of the user's own);
    `precedence` ranks it; a `gang` job's tasks are placed together or not at all. Jobs of one `program`
    are runs of the same thing, so that a scheduler may learn from one for the next."""

    id: str
    groups: tuple[TaskGroup, ...]
    submit: int = 0
    kind: str = BATCH
    precedence: int = 0
    gang: bool = False
    owner: str = ""
    constraints: tuple[Constraint, ...] = ()
    program: str = ""

    def __post_init__(self) -> None:
        if "/" in self.id or not is_name(self.id):
            raise ModelError(
                f"job id {excerpt(self.id)}",
                field="id",
                expected="a non-empty id without spaces or slashes, all of it printable",
            )
        if not (self.kind + self.owner + self.program).isprintable():
            texts = {"kind": self.kind, "owner": self.owner, "program": self.program}
            field = next(name for name, text in texts.items() if not text.isprintable())
            raise ModelError(
                f"{field} {excerpt(texts[field])}", field=field, expected="printable characters"
            )
        if not self.groups:
            raise ModelError(
                f"job {self.id} has no tasks", field="groups", expected="at least one task group"
            )
        if len(self.groups) > 1 and any(group.phases for group in self.groups):
            raise ModelError(
                f"job {self.id} has phases and several groups",
                field="groups",
                expected="workers in a group of their own job",
            )
        if not 0 <= self.submit <= LARGEST:
            raise ModelError(
                f"job {self.id} submitted at {self.submit} µs",
                field="submit",
                expected="0 to 2^53 µs",
            )
        low, high = PRECEDENCE_RANGE
        if not low <= self.precedence <= high:
            raise ModelError(
                f"job {self.id} has precedence {self.precedence}",
                field="precedence",
                expected=f"{low} to {high}",
            )

    @property
    def phases(self) -> tuple[Phase, ...]:
        """What its tasks do together, if they are workers."""
        return self.groups[0].phases

    @property
    def tasks(self) -> int:
        if len(self.groups) == 1:
            return self.groups[0].count
        return sum([group.count for group in self.groups])

    def is_own(self, tasks: TaskArray) -> NDArray[np.bool_]:
        """Which of the job's tasks it was submitted with; others are workers that it did not ask for."""
        return (tasks & INDEX_MASK) < self.tasks

    def tasks_by_group(self, tasks: TaskArray) -> Iterator[tuple[TaskGroup, TaskArray]]:
        """Those of `tasks` that are in each group; groups without any are left out."""
        if len(self.groups) == 1:
            if len(tasks):
                yield self.groups[0], tasks
            return
        indices = tasks & INDEX_MASK
        for start, group in zip(self.group_starts(), self.groups, strict=True):
            mine = tasks[(indices >= start) & (indices < start + group.count)]
            if len(mine):
                yield group, mine

    def group_starts(self) -> list[int]:
        """The index of each group's first task."""
        starts, at = [], 0
        for group in self.groups:
            starts.append(at)
            at += group.count
        return starts
