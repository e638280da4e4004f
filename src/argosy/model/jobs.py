"""Jobs as users submit them: their tasks, requests and what to execute.

How long tasks really run is not part of a job: see `argosy.model.truth`.

A task is known everywhere by one 64-bit number: its job's number and its index in the job. Arrays of
such numbers are used in events, effects and the native core (`argosy.model.tasks` splits them);
`task_name` makes them readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NewType

import msgspec

from argosy.model.constraints import Constraint
from argosy.model.errors import ModelError, excerpt
from argosy.model.resources import Resources
from argosy.model.units import LARGEST, Time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from argosy.model.transactions import TaskArray

JobNumber = NewType("JobNumber", int)
TaskNumber = NewType("TaskNumber", int)

BATCH: Final = "batch"
SERVICE: Final = "service"

#: A task number has the task's index in its low bits and the job's number above them.
INDEX_BITS: Final = 32
INDEX_MASK: Final = (1 << INDEX_BITS) - 1
#: Job numbers do not use the sign bit.
MOST_JOBS: Final = 2**31 - 1
MOST_TASKS: Final = 2**24
MOST_RETRIES: Final = 1_000_000
LONGEST_BACKOFF: Final = 300_000_000
#: Defaults of executions, in microseconds and bytes.
GRACE: Final = 10_000_000
OUTPUT_LIMIT: Final = 64 * 2**20
#: Precedence is a 16-bit number in the native columns.
PRECEDENCE_RANGE: Final = (-32_768, 32_767)


def task_number(job: int, index: int) -> TaskNumber:
    return TaskNumber(job << INDEX_BITS | index)


def job_of(task: int) -> JobNumber:
    return JobNumber(task >> INDEX_BITS)


def index_of(task: int) -> int:
    return task & INDEX_MASK


def is_name(text: str) -> bool:
    """Whether `text` can be typed, is visible, and contains no space."""
    # The plain space is the only printable one.
    return bool(text) and text.isprintable() and " " not in text


def task_name(job_id: str, index: int) -> str:
    return f"{job_id}/{index}"


class Execution(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a task executes. Unused in simulation."""

    #: The program and its arguments; empty: the image's default.
    command: tuple[str, ...] = ()
    #: Added to the machine's environment.
    environment: dict[str, str] = {}
    #: Empty: chosen by the machine.
    working_directory: str = ""
    #: The container image; empty: a plain process.
    image: str = ""
    #: Text for standard input.
    stdin: str = ""
    #: A try that runs longer is stopped, and has failed; 0 means no limit.
    timeout: Time = 0
    #: From being asked to stop until being killed.
    grace: Time = GRACE
    #: Bytes kept of each of standard output and standard error; the oldest go first.
    output_limit: int = OUTPUT_LIMIT

    def __post_init__(self) -> None:
        if not self.command and not self.image:
            raise ModelError(
                "nothing to execute", field="command", expected="a command or an image"
            )
        if self.command and not self.command[0]:
            raise ModelError("a command without a name", field="command", expected="a program")
        if not 1 <= self.output_limit <= LARGEST:
            raise ModelError(
                f"an output limit of {self.output_limit}",
                field="output_limit",
                expected="1 to 2^53 bytes",
            )
        for name in self.environment:
            if not name or "=" in name:
                raise ModelError(
                    f"environment variable {excerpt(name)}",
                    field="environment",
                    expected="non-empty names without =",
                )
        texts = {
            "command": self.command,
            "environment": (*self.environment, *self.environment.values()),
            "working_directory": (self.working_directory,),
            "image": (self.image,),
        }
        for field, values in texts.items():
            # No operating system accepts null characters.
            if "\0" in "".join(values):
                raise ModelError(
                    f"a null character in the {field.replace('_', ' ')}",
                    field=field,
                    expected="no null characters",
                )


class TaskGroup(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Identical tasks of one job: same request, tags and required machine attributes.

    With `activities`, the tasks are workers: together they do the activities of one phase after
    another, one activity per worker at a time, and all end with the last activity. `count` is the
    number of workers the submitter asks for; a malleable scheduler may add more and remove them again.
    """

    count: int
    request: Resources
    #: Expected running time of a task; for workers, how long `count` of them need for all phases.
    estimate: int | None = None
    tags: tuple[str, ...] = ()
    requires: dict[str, str] = {}
    #: Attributes of machines near the tasks' data; engines with locality weigh them against waiting.
    prefers: dict[str, str] = {}
    #: Marks of machines that the tasks would rather run on, each with its weight (see `Host.mark`).
    #: Engines that can do so (`Capabilities.wishes`) try machines with the greatest sum first.
    wishes: dict[str, int] = {}
    #: Demands that plug-ins of cluster agents interpret, such as ``{"battery": "30"}``. Engines that do
    #: not sample through agents ignore them.
    demands: dict[str, str] = {}
    #: Number of activities in each phase.
    activities: tuple[int, ...] = ()
    #: Whether tasks run until stopped.
    endless: bool = False
    #: How often a failed task is retried. 0 by default for every kind, because what fails once usually
    #: fails again, and retrying may do harm. Lost tasks do not count as failed.
    retries: int = 0
    #: How long after its first failure a task is tried again; each further failure doubles it, up to
    #: `LONGEST_BACKOFF`.
    backoff: Time = 0
    execution: Execution | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST_TASKS:
            raise ModelError(
                f"{self.count} tasks in a group", field="count", expected=f"1 to {MOST_TASKS:,}"
            )
        if self.estimate is not None and not 0 <= self.estimate <= LARGEST:
            raise ModelError(
                f"an estimate of {self.estimate} µs", field="estimate", expected="0 to 2^53 µs"
            )
        for activities in self.activities:
            check_activities(activities)
        if self.endless and (self.activities or self.estimate is not None):
            other = "activities" if self.activities else "an estimate"
            raise ModelError(
                f"endless tasks with {other}", field="endless", expected="one of them or neither"
            )
        if not 0 <= self.retries <= MOST_RETRIES:
            raise ModelError(
                f"{self.retries} retries", field="retries", expected=f"0 to {MOST_RETRIES:,}"
            )


def check_activities(activities: int) -> None:
    """Checks the number of activities in one phase."""
    if not 1 <= activities <= MOST_TASKS:
        raise ModelError(
            f"{activities} activities in a phase",
            field="activities",
            expected=f"1 to {MOST_TASKS:,}",
        )


class Job(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a user submits; everyone may read it. `kind` routes it (``batch``, ``service`` or any other
    name); `precedence` ranks it; the tasks of a `gang` job are placed together or not at all. Jobs with
    the same `program` are runs of the same thing, so a scheduler may learn from one for the next.
    `name` is for people and need not be unique. Unless it `preempts`, a job waits for room instead of
    pushing off tasks of lower precedence."""

    id: str
    groups: tuple[TaskGroup, ...]
    kind: str = BATCH
    precedence: int = 0
    gang: bool = False
    owner: str = ""
    constraints: tuple[Constraint, ...] = ()
    program: str = ""
    name: str = ""
    preempts: bool = True

    def __post_init__(self) -> None:
        # All texts at once, because this happens once per job; which one is wrong is looked for later.
        texts_are_fine = f"{self.id}{self.kind}{self.owner}{self.program}{self.name}".isprintable()
        if not texts_are_fine or not self.id or "/" in self.id or " " in self.id:
            self._require_texts()
        if not self.groups:
            raise ModelError(
                f"job {self.id} has no tasks", field="groups", expected="at least one task group"
            )
        if len(self.groups) > 1 and any(group.activities for group in self.groups):
            raise ModelError(
                f"job {self.id} has phases and several groups",
                field="groups",
                expected="one group of workers",
            )
        low, high = PRECEDENCE_RANGE
        if not low <= self.precedence <= high:
            raise ModelError(
                f"job {self.id} has precedence {self.precedence}",
                field="precedence",
                expected=f"{low} to {high}",
            )

    def _require_texts(self) -> None:
        if "/" in self.id or not is_name(self.id):
            raise ModelError(
                f"job id {excerpt(self.id)}",
                field="id",
                expected="a printable id without spaces or slashes",
            )
        if not (self.kind + self.owner + self.program + self.name).isprintable():
            texts = {name: getattr(self, name) for name in ("kind", "owner", "program", "name")}
            field = next(name for name, text in texts.items() if not text.isprintable())
            raise ModelError(
                f"{field} {excerpt(texts[field])}", field=field, expected="printable characters"
            )

    @property
    def activities(self) -> tuple[int, ...]:
        """Number of activities in each phase, if the tasks are workers."""
        return self.groups[0].activities

    @property
    def tasks(self) -> int:
        if len(self.groups) == 1:
            return self.groups[0].count
        return sum([group.count for group in self.groups])

    def is_own(self, tasks: TaskArray) -> NDArray[np.bool_]:
        """Which of these tasks the job was submitted with; the others are extra workers."""
        return (tasks & INDEX_MASK) < self.tasks

    def tasks_by_group(self, tasks: TaskArray) -> Iterator[tuple[TaskGroup, TaskArray]]:
        """The tasks in each group; groups without any are skipped."""
        if len(self.groups) == 1:
            return iter(((self.groups[0], tasks),) if len(tasks) else ())
        return self._tasks_by_groups(tasks)

    def _tasks_by_groups(self, tasks: TaskArray) -> Iterator[tuple[TaskGroup, TaskArray]]:
        indices = tasks & INDEX_MASK
        for start, group in zip(self.group_starts(), self.groups, strict=True):
            mine = tasks[(indices >= start) & (indices < start + group.count)]
            if len(mine):
                yield group, mine

    def group_at(self, index: int) -> TaskGroup:
        """The group of the task with this index."""
        end = 0
        for group in self.groups:
            end += group.count
            if index < end:
                return group
        raise IndexError(f"job {self.id} has no task {index}")

    def group_starts(self) -> list[int]:
        """Index of the first task of each group."""
        starts, at = [], 0
        for group in self.groups:
            starts.append(at)
            at += group.count
        return starts
