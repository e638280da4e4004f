"""The documents of the API. Each is one JSON object; absent keys have their defaults.

Times are RFC 3339 in UTC with microseconds; durations are microseconds; resources are whole numbers
(`cpu` in thousandths of a core, `memory` in bytes). Documents that users write (jobs, machines, fleets)
have the keys of a scenario file and take units there too: ``{"cpu": "500m", "memory": "2GiB"}``.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from argosy.api.agent_values import RefusedCommit
from argosy.model.answers import StoryLine, WhyAnswer

#: Sizes of pages of lists.
PAGE: Final = 100
LARGEST_PAGE: Final = 1_000

JobStateName: TypeAlias = Literal[
    "pending", "running", "finished", "failed", "cancelled", "abandoned"
]
TaskStateName: TypeAlias = Literal[
    "pending", "queued", "running", "finished", "failed", "cancelled", "abandoned"
]
StreamName: TypeAlias = Literal["stdout", "stderr"]
WorldName: TypeAlias = Literal["local", "kubernetes", "federation"]
HealthStatus: TypeAlias = Literal["ok", "paused", "failing", "stopping", "lagging"]


class ProblemDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error (RFC 9457). `detail` is the line that the command would print."""

    type: str
    title: str
    status: int
    detail: str
    #: The kind of error, as in `argosy: error[CODE]`.
    code: str = ""
    #: Where it is: the path of a value in the request's document.
    field: str = ""
    expected: str = ""
    hint: str = ""
    #: Of a commit: why the last machine does not take the job.
    refused: RefusedCommit | None = None


class TaskCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many tasks of a job are in each state."""

    pending: int = 0
    queued: int = 0
    running: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0
    abandoned: int = 0

    @property
    def total(self) -> int:
        return sum(getattr(self, name) for name in self.__struct_fields__)


class JobSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One job in a list."""

    id: str
    name: str = ""
    kind: str
    owner: str = ""
    precedence: int = 0
    #: The scheduler that takes care of it.
    scheduler: str
    state: JobStateName
    #: Grows with every change.
    version: int
    tasks: TaskCounts
    submitted: str
    ended: str | None = None
    #: How the job ended, as exit codes of shells have it: 0 if every task finished; otherwise the code
    #: of the first task that failed, 128 + N if signal N ended it, or 1. None while it is not over.
    exit_code: int | None = None


class JobDetails(JobSummary, frozen=True, kw_only=True):
    #: The job as submitted (and scaled), with the keys of a job file.
    document: dict[str, Any]
    #: Which limits its tasks have on this computer.
    isolation: str = ""
    #: Demands of the job that its scheduler ignores.
    notes: tuple[str, ...] = ()


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    index: int
    state: TaskStateName
    #: Where it runs, waits or ran last; empty: nowhere yet.
    machine: str = ""
    #: The number of its last try; none if it never ran.
    try_number: int | None = None
    failures: int = 0
    #: The exit code of the last try that ended, or minus the signal that killed it.
    exit_status: int | None = None
    reason: str = ""
    started: str | None = None
    ended: str | None = None


class TryInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a task as a process."""

    number: int
    machine: str
    started: str
    ended: str | None = None
    exit_status: int | None = None
    #: How it ended, in words; empty while it runs.
    outcome: str = ""


class TaskDetails(TaskSummary, frozen=True, kw_only=True):
    #: Newest last.
    tries: tuple[TryInfo, ...] = ()


class MachineInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    capacity: dict[str, int]
    #: What tasks that run or are about to have claimed.
    used: dict[str, int]
    running: int = 0
    #: Tasks that wait in the machine's queue.
    queued: int = 0
    draining: bool = False
    attributes: dict[str, str] = {}
    #: Node groups, and the sets of each that the machine is in.
    joins: dict[str, tuple[str, ...]] = {}


class MachinePatch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Changes of a machine; what is absent stays."""

    draining: bool | None = None
    #: With units if wanted: ``{"cpu": 4, "memory": "8GiB"}``.
    capacity: dict[str, int | float | str] | None = None


class SchedulerInfo(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    engine: str
    #: Jobs it was given since it started.
    jobs: int = 0
    #: Share of the time it was deciding, since it started.
    busyness: float = 0.0
    is_alive: bool = True
    #: Transactions since it started, and how many of them met a conflict.
    transactions: int = 0
    conflicts: int = 0


class FleetInfo(msgspec.Struct, frozen=True, kw_only=True):
    #: Grows with every change of the fleet and every start of the server.
    version: int
    #: The entries of `[[fleet]]` as in a scenario file; a PUT sends them.
    fleet: tuple[dict[str, Any], ...]
    schedulers: tuple[SchedulerInfo, ...] = ()


class FleetDocument(msgspec.Struct, frozen=True, kw_only=True):
    fleet: tuple[dict[str, Any], ...]


class ScaleRequest(msgspec.Struct, frozen=True, kw_only=True):
    #: How many tasks the job's (last) group is to have.
    tasks: Annotated[int, msgspec.Meta(ge=1)]


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    #: Indices of tasks; absent: the whole job.
    tasks: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] | None = None


class CancelResult(msgspec.Struct, frozen=True, kw_only=True):
    #: How many tasks were cancelled.
    cancelled: int
    job: JobSummary


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    #: Job documents, placed in this order.
    jobs: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(min_length=1, max_length=1_000)]


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True):
    job: str
    index: int
    state: TaskStateName
    machine: str = ""
    #: Why there, or why nowhere.
    sentence: str = ""
    #: What would help.
    remedy: str = ""


class DisplacedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that would have to give way."""

    task: str
    machine: str
    #: `preempted` or `moved`.
    outcome: str
    #: Where it would go; empty: it waits.
    to: str = ""


class PlanResult(msgspec.Struct, frozen=True, kw_only=True):
    #: Whether every task would get a machine, or a place in a machine's queue.
    fits: bool
    tasks: tuple[PlannedTask, ...]
    displaced: tuple[DisplacedTask, ...] = ()
    notes: tuple[str, ...] = ()


class WhyDocument(msgspec.Struct, frozen=True, kw_only=True):
    #: The whole answer in sentences, as the command prints it.
    text: tuple[str, ...]
    answer: WhyAnswer


class StoryDocument(msgspec.Struct, frozen=True, kw_only=True):
    task: str
    #: Times of lines are microseconds since the cluster was made (`origin`).
    origin: str
    lines: tuple[StoryLine, ...]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    status: HealthStatus
    #: Why nothing is accepted, unless all is well.
    detail: str = ""
    version: str
    cluster: str
    #: When this server started.
    started: str
    open_jobs: int
    running_tasks: int
    machines: int


class ClusterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster at one moment, in numbers."""

    at: str
    cluster: str
    version: str
    #: When this server started.
    started: str
    status: HealthStatus
    detail: str = ""
    #: What tasks are: processes of this computer, pods, or jobs of other clusters.
    world: WorldName
    open_jobs: int
    machines: int
    #: How many of them take new tasks.
    accepting: int
    #: Tasks that wait or run now, and those that came to their end since the server started.
    tasks: TaskCounts
    #: Tasks that got a place since the server started.
    placed: int
    capacity: dict[str, int]
    used: dict[str, int]
    schedulers: tuple[SchedulerInfo, ...] = ()


class TaskEvent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="what", tag="task"
):
    """A task changed its state."""

    at: str
    job: str
    index: int
    state: TaskStateName
    machine: str = ""
    exit_status: int | None = None
    reason: str = ""


class JobEvent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="what", tag="job"
):
    """A job was submitted, changed or came to its end."""

    at: str
    job: str
    state: JobStateName
    version: int
    tasks: TaskCounts


class MachineEvent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="what", tag="machine"
):
    at: str
    machine: str
    change: Literal["added", "removed", "resized", "relabelled", "draining", "accepting"]


class FleetEvent(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="what", tag="fleet"
):
    """The server started, or the fleet changed."""

    at: str
    version: int


ClusterEvent: TypeAlias = TaskEvent | JobEvent | MachineEvent | FleetEvent


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[JobSummary, ...]
    #: Give it as `after` to get what follows; none at the end.
    next: str | None = None


class TaskPage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[TaskSummary, ...]
    next: str | None = None


class MachinePage(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[MachineInfo, ...]
    next: str | None = None


class StopRequest(msgspec.Struct, frozen=True, kw_only=True):
    #: Whether running tasks are stopped as well. Otherwise they go on, and the next server adopts them.
    stop_tasks: bool = False
