"""The journal's records: every input from the world and every decision, each with its time.

One JSON object per line; `what` is its kind. A decision about tasks concerns one job: tasks are given by
their indices in the job, machines by their numbers. Inputs give tasks by their numbers. Times are in
microseconds. Records contain no wall-clock time, path or floating-point time, so the same run gives the
same bytes on every machine.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, TypeAlias

import msgspec

from argosy.host.job_state import JobState
from argosy.host.setup import HostSetup
from argosy.model.explanations import Explanation, Refusal
from argosy.model.jobs import Job
from argosy.model.transactions import MachineChange

VERSION: Final = 1


class Record(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="what", gc=False):
    """Base of all records."""

    is_input: ClassVar[bool] = False
    at: int


class InputRecord(Record, frozen=True):
    """An input from the world. The inputs alone determine everything else."""

    is_input: ClassVar[bool] = True


class Header(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="what", tag="journal"):
    """The first line: everything the host was built from."""

    version: int
    setup: HostSetup
    #: Whether long decisions ran in the background: then every answer has a record.
    deliberated_beside: bool = False


class SubmittedRecord(InputRecord, frozen=True, tag="submitted"):
    """A job was submitted and routed to a scheduler. Jobs are numbered from 0. If it came with a
    machine, the scheduler `by` has decided on that, elsewhere; `commit` is the plug-in that wrote the
    claim."""

    number: int
    job: Job
    scheduler: str
    machine: int = -1
    by: str = ""
    commit: str = ""


class RestoredRecord(InputRecord, frozen=True, tag="restored"):
    """A job of an earlier host over the same machines went to that scheduler."""

    number: int
    job: Job
    scheduler: str
    state: JobState


class DueRecord(InputRecord, frozen=True, tag="due"):
    """A scheduled clock event came due; its ticket identifies it. `planned` is the time it was set for,
    if a clock that is told the time let it come later."""

    ticket: int
    planned: int | None = None


class EndedRecord(InputRecord, frozen=True, tag="ended"):
    """Machines reported ended tasks, in this order."""

    tasks: list[int]


class PhaseEndedRecord(InputRecord, frozen=True, tag="phase-ended"):
    job: int
    phase: int
    #: Mean duration of an activity.
    duration: int


ReportKind: TypeAlias = Literal["finished", "lost", "probes", "phases", "room"]


class ReportRecord(InputRecord, frozen=True, tag="report"):
    """Reports from machines so far were passed on to schedulers."""

    kind: ReportKind


class FailedRecord(InputRecord, frozen=True, tag="failed"):
    """An attempt to run a task failed."""

    task: int
    incarnation: int
    exit_status: int
    reason: str


class ConfirmedRecord(InputRecord, frozen=True, tag="confirmed"):
    """The system that has the last word has accepted the assumed claims of these tasks."""

    tasks: list[int]


class ForgottenRecord(InputRecord, frozen=True, tag="forgotten"):
    """That system has not accepted the assumed claims of these tasks."""

    tasks: list[int]
    why: str


class MachineRecord(InputRecord, frozen=True, tag="machine"):
    """A machine joined, left, came back, was resized, or started or stopped draining."""

    change: MachineChange


class MarkedRecord(InputRecord, frozen=True, tag="marked", omit_defaults=True):
    """The machines in these sets of a node group got an attribute, or lost it."""

    attribute: str
    group: str
    sets: list[str]
    is_given: bool = True


class ObservedRecord(InputRecord, frozen=True, tag="observed"):
    """So much of a resource was in use on these machines."""

    resource: str
    machines: list[int]
    used: list[int]


class CrashedRecord(InputRecord, frozen=True, tag="crashed"):
    scheduler: str


class RestartedRecord(InputRecord, frozen=True, tag="restarted"):
    scheduler: str


class CancelledRecord(InputRecord, frozen=True, tag="cancelled"):
    """A user cancelled a job, or some of its tasks."""

    number: int
    indices: list[int]


class ScaledRecord(InputRecord, frozen=True, tag="scaled"):
    """A user changed how many tasks a job has."""

    number: int
    job: Job


class MeasuredRecord(InputRecord, frozen=True, tag="measured"):
    """The measured duration of a scheduler's next decision."""

    scheduler: str
    duration: int


class AnsweredRecord(InputRecord, frozen=True, tag="answered"):
    """A background decision arrived."""

    scheduler: str
    token: int
    #: The engine's own type, as plain values: see `argosy.model.wire.to_plain`.
    decision: Any


class SampleAnswerRecord(InputRecord, frozen=True, tag="sample-answer"):
    """An agent elsewhere answered a request for a sample, or was not reached."""

    scheduler: str
    token: int
    machines: list[int] = []
    scores: list[list[int]] = []
    free: list[list[int]] = []
    drawn: int = 0
    ruled_out: dict[str, int] = {}
    reached: bool = True


class CommitAnswerRecord(InputRecord, frozen=True, tag="commit-answer"):
    """An agent elsewhere has committed a task to a machine, or refused it, or was not reached."""

    scheduler: str
    token: int
    machine: int = -1
    refusal: Refusal | None = None
    reached: bool = True


class AttemptRecord(Record, frozen=True, tag="attempt"):
    """A scheduler starts to decide on a job."""

    job: str
    scheduler: str
    takes: int
    #: Earlier decision time spent on the job that was not yet reported.
    earlier: int = 0


class PlacedRecord(Record, frozen=True, tag="placed"):
    """Claims that the cell accepted: the tasks are running. If they are `assumed`, another system has
    the last word."""

    job: str
    indices: list[int]
    machines: list[int]
    scheduler: str
    explanation: Explanation | None = None
    assumed: bool = False


class EnqueuedRecord(Record, frozen=True, tag="enqueued"):
    """Tasks sent to machines' queues: the first after `first`, then one per `every`."""

    job: str
    indices: list[int]
    machines: list[int]
    scheduler: str
    explanation: Explanation | None = None
    first: int = 0
    every: int = 0


class ProbedRecord(Record, frozen=True, tag="probed"):
    """Probes for tasks were sent to machines' queues; the first to reach the head get the tasks."""

    job: str
    indices: list[int]
    machines: list[int]
    scheduler: str


class RefusedRecord(Record, frozen=True, tag="refused"):
    """Claims that the cell refused: the reason, the dimension and the amount."""

    job: str
    indices: list[int]
    machines: list[int]
    scheduler: str
    whys: list[int]
    details: list[int]
    amounts: list[int]


class LostRecord(Record, frozen=True, tag="lost"):
    """Tasks lost their machines and are pending again."""

    job: str
    indices: list[int]
    machines: list[int]
    why: str


class ReleasedRecord(Record, frozen=True, tag="released"):
    """A scheduler took tasks off their machines; they are pending again."""

    job: str
    indices: list[int]
    scheduler: str


class ResubmittedRecord(Record, frozen=True, tag="resubmitted"):
    """Pending tasks were passed to a scheduler that restarted, or to one that took over from
    another."""

    job: str
    indices: list[int]
    scheduler: str


class ExplainedRecord(Record, frozen=True, tag="explained"):
    """A scheduler explains why tasks have no machine."""

    job: str
    indices: list[int]
    scheduler: str
    explanation: Explanation


class AbandonedRecord(Record, frozen=True, tag="abandoned"):
    """A scheduler abandoned tasks."""

    job: str
    indices: list[int]
    scheduler: str
    explanation: Explanation


class StartedRecord(Record, frozen=True, tag="started"):
    """Tasks left their machines' queues and start running `after` later."""

    tasks: list[int]
    machines: list[int]
    after: int = 0


class RetriedRecord(Record, frozen=True, tag="retried"):
    """A failed task is pending again, or has failed for good."""

    job: str
    indices: list[int]
    exit_status: int
    reason: str
    for_good: bool = False


class SentRecord(Record, frozen=True, tag="sent"):
    """A message between schedulers; only in a journal of `everything`."""

    scheduler: str
    to: str
    message: str


class TimerRecord(Record, frozen=True, tag="timer"):
    """A scheduler asked for a timer; only in a journal of `everything`."""

    scheduler: str
    name: str
    due: int


Input: TypeAlias = (
    SubmittedRecord
    | RestoredRecord
    | DueRecord
    | EndedRecord
    | PhaseEndedRecord
    | ReportRecord
    | FailedRecord
    | ConfirmedRecord
    | ForgottenRecord
    | MachineRecord
    | MarkedRecord
    | ObservedRecord
    | CrashedRecord
    | RestartedRecord
    | CancelledRecord
    | ScaledRecord
    | MeasuredRecord
    | AnsweredRecord
    | SampleAnswerRecord
    | CommitAnswerRecord
)
DecisionRecord: TypeAlias = (
    AttemptRecord
    | PlacedRecord
    | EnqueuedRecord
    | ProbedRecord
    | RefusedRecord
    | LostRecord
    | ReleasedRecord
    | ResubmittedRecord
    | ExplainedRecord
    | AbandonedRecord
    | StartedRecord
    | RetriedRecord
    | SentRecord
    | TimerRecord
)
JournalRecord: TypeAlias = Header | Input | DecisionRecord


def plain(record: Any) -> dict[str, Any]:
    """The record as the JSON object that is written."""
    value: dict[str, Any] = msgspec.to_builtins(record)
    return value
