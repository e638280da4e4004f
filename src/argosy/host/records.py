"""The journal's records: every input from the world and every decision, each with its time.

One JSON object per line; `what` is its kind. A decision about tasks concerns one job: tasks are given by
their indices in the job, machines by their numbers. Inputs give tasks by their numbers. Times are in
microseconds. Records contain no wall-clock time, path or floating-point time, so the same run gives the
same bytes on every machine.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, TypeAlias

import msgspec

from argosy.host.setup import HostSetup
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job
from argosy.model.transactions import MachineChange

VERSION: Final = 1


class Record(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="what", gc=False):
    """Base of all records."""

    is_input: ClassVar[bool] = False
    at: int


class InputRecord(Record, frozen=True):
    """What a world gave the host. The inputs alone determine everything else."""

    is_input: ClassVar[bool] = True


class Header(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="what", tag="journal"):
    """The first line: all that the host was built from."""

    version: int
    setup: HostSetup
    #: Whether long decisions ran beside the loop: then there is a record of each answer.
    deliberated_beside: bool = False


class SubmittedRecord(InputRecord, frozen=True, tag="submitted"):
    """A job came, and went to that scheduler. Jobs are numbered from 0."""

    number: int
    job: Job
    scheduler: str


class DueRecord(InputRecord, frozen=True, tag="due"):
    """What was to come at a time has come: the clock's ticket says what it was."""

    ticket: int


class EndedRecord(InputRecord, frozen=True, tag="ended"):
    """Machines reported the ends of tasks, in this order."""

    tasks: list[int]


class PhaseEndedRecord(InputRecord, frozen=True, tag="phase-ended"):
    job: int
    phase: int
    #: Of an activity, on average.
    duration: int


ReportKind: TypeAlias = Literal["finished", "lost", "probes", "phases", "room"]


class ReportRecord(InputRecord, frozen=True, tag="report"):
    """What machines had reported until then was passed on to schedulers."""

    kind: ReportKind


class FailedRecord(InputRecord, frozen=True, tag="failed"):
    """A try of a task ended in failure."""

    task: int
    incarnation: int
    exit_status: int
    reason: str


class MachineRecord(InputRecord, frozen=True, tag="machine"):
    """A machine joined, left, came back, was resized, or began or ceased to drain."""

    change: MachineChange


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
    """How long the decision that a scheduler announced next really took."""

    scheduler: str
    duration: int


class AnsweredRecord(InputRecord, frozen=True, tag="answered"):
    """What a scheduler deliberated on beside the loop has been decided."""

    scheduler: str
    token: int
    #: The engine's own, in plain values: see `argosy.model.wire.to_plain`.
    decision: Any


class AttemptRecord(Record, frozen=True, tag="attempt"):
    """A scheduler begins to decide on a job."""

    job: str
    scheduler: str
    takes: int
    #: Decision time that it had spent on the job before and not reported.
    earlier: int = 0


class PlacedRecord(Record, frozen=True, tag="placed"):
    """Claims that the cell accepted: the tasks run."""

    job: str
    indices: list[int]
    machines: list[int]
    scheduler: str
    explanation: Explanation | None = None


class EnqueuedRecord(Record, frozen=True, tag="enqueued"):
    """Tasks on their way to machines' queues: the first leaves `first` later, each other one `every`
    after the one before."""

    job: str
    indices: list[int]
    machines: list[int]
    scheduler: str
    explanation: Explanation | None = None
    first: int = 0
    every: int = 0


class ProbedRecord(Record, frozen=True, tag="probed"):
    """Probes for tasks went to machines' queues; whichever come up first get them."""

    job: str
    indices: list[int]
    machines: list[int]
    scheduler: str


class RefusedRecord(Record, frozen=True, tag="refused"):
    """Claims that the cell refused: why, in which dimension, and by how much."""

    job: str
    indices: list[int]
    machines: list[int]
    scheduler: str
    whys: list[int]
    details: list[int]
    amounts: list[int]


class LostRecord(Record, frozen=True, tag="lost"):
    """Tasks lost their machines, and are pending again."""

    job: str
    indices: list[int]
    machines: list[int]
    why: str


class ReleasedRecord(Record, frozen=True, tag="released"):
    """A scheduler took tasks off their machines: they are pending again."""

    job: str
    indices: list[int]
    scheduler: str


class ResubmittedRecord(Record, frozen=True, tag="resubmitted"):
    """Pending tasks were told to a scheduler that is back, or to the heir of one that is not."""

    job: str
    indices: list[int]
    scheduler: str


class ExplainedRecord(Record, frozen=True, tag="explained"):
    """A scheduler says why tasks have no machine."""

    job: str
    indices: list[int]
    scheduler: str
    explanation: Explanation


class AbandonedRecord(Record, frozen=True, tag="abandoned"):
    """A scheduler gave tasks up for good."""

    job: str
    indices: list[int]
    scheduler: str
    explanation: Explanation


class StartedRecord(Record, frozen=True, tag="started"):
    """Tasks left their machines' queues, and run `after` later."""

    tasks: list[int]
    machines: list[int]
    after: int = 0


class RetriedRecord(Record, frozen=True, tag="retried"):
    """A failed task is its scheduler's to place again, or has failed for good."""

    job: str
    indices: list[int]
    exit_status: int
    reason: str
    for_good: bool = False


class SentRecord(Record, frozen=True, tag="sent"):
    """A message between schedulers; only in a journal of everything."""

    scheduler: str
    to: str
    message: str


class TimerRecord(Record, frozen=True, tag="timer"):
    """A scheduler asked to be woken; only in a journal of everything."""

    scheduler: str
    name: str
    due: int


Input: TypeAlias = (
    SubmittedRecord
    | DueRecord
    | EndedRecord
    | PhaseEndedRecord
    | ReportRecord
    | FailedRecord
    | MachineRecord
    | CrashedRecord
    | RestartedRecord
    | CancelledRecord
    | ScaledRecord
    | MeasuredRecord
    | AnsweredRecord
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
    """A record as the JSON object it is written as."""
    value: dict[str, Any] = msgspec.to_builtins(record)
    return value
