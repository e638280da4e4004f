"""Events: everything an engine can be told.

Plain values: `argosy.model.wire` writes each as JSON or msgpack and reads it back equal. An answer
carries only the token of its question: an engine keeps what it asked by token.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.messages import Message
from argosy.model.transactions import (
    MachineArray,
    Outcome,
    ShapeArray,
    TaskArray,
    VersionArray,
)


class Started(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The scheduler starts, or restarts after a crash (`again`) with no memory."""

    again: bool = False


class JobSubmitted(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The scheduler must place these tasks of `job`: all of a new job, or the pending ones of a job
    handed over."""

    job: Job
    number: int
    tasks: TaskArray


class TaskFinished(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Tasks ended; `Capabilities.finishes` determines which ones an engine is told about. Machines
    report the estimate and shape of each."""

    tasks: TaskArray
    machines: MachineArray
    estimates: NDArray[np.int64]
    shapes: ShapeArray


class PhaseFinished(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The last activity of a phase of job `number` ended; activities took `duration` on average. Only
    for malleable engines (`Capabilities.malleable`)."""

    number: int
    phase: int
    duration: int


class TasksLost(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Tasks of `job` that this scheduler had placed lost their machines, and it must place them again.
    The event carries the job, so engines need not remember what they placed. Malleable engines also get
    lost extra workers, which need not be placed again."""

    job: Job
    number: int
    tasks: TaskArray
    machines: MachineArray
    why: Why


class MachineJoined(msgspec.Struct, frozen=True, gc=False, tag=True):
    machine: int


class MachineLost(msgspec.Struct, frozen=True, gc=False, tag=True):
    machine: int


class MachineChanged(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The machine was resized, or started or stopped draining."""

    machine: int


class UsageObserved(msgspec.Struct, frozen=True, gc=False, tag=True):
    """How much of a resource is in use on machines, as measured there, whoever uses it and whatever was
    reserved. It holds until the next observation of the same machine. Only for engines that take
    observations (`Capabilities.observations`)."""

    resource: str
    machines: MachineArray
    used: NDArray[np.int64]


class Committed(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The answer to the `Commit` with this token. If the agent was not `reached`, nothing was
    committed."""

    token: int
    outcome: Outcome
    reached: bool = True


_NO_SCORES: Final[NDArray[np.int64]] = np.empty((0, 0), np.int64)
_NO_SCORES.flags.writeable = False


class SampleReturned(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The answer to a `Sample`: machines of the cluster that fit, their free resources and their
    versions. If the agent was not `reached`, there are none.

    A sampling pipeline adds the scores, one row per machine and one column per plug-in, how many
    machines it drew, and for which reasons it dropped how many of them."""

    token: int
    machines: MachineArray
    free: NDArray[np.int64]
    versions: VersionArray
    cluster: str = ""
    scores: NDArray[np.int64] = msgspec.field(default_factory=lambda: _NO_SCORES)
    drawn: int = 0
    ruled_out: dict[str, int] = {}
    reached: bool = True


class ProbeReady(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A probe reached the head of its machine's queue and holds a slot until `AnswerProbe(probe)`."""

    probe: int
    job: int
    machine: int


class QueuesReported(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The answer to `AskQueues`: per machine, tasks and probes in the queue, the estimated work of what
    is queued and running there, in microseconds, and how many more entries the queue takes."""

    token: int
    lengths: NDArray[np.int64]
    waits: NDArray[np.int64]
    room: NDArray[np.int64]


class MessageReceived(msgspec.Struct, frozen=True, gc=False, tag=True):
    sender: str
    payload: Message


class TimerFired(msgspec.Struct, frozen=True, gc=False, tag=True):
    name: str


class DecisionDue(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The duration of a `Think` has passed."""

    token: int


class Decision(msgspec.Struct, frozen=True):
    """Base of the answers to deliberations: plain values, like questions."""


class TimedDecision(Decision, frozen=True):
    """A decision that says how long it took, in microseconds, where time is modelled. It counts instead
    of `Deliberate.duration`: what a solver did is known only afterwards."""

    duration: int


class Deliberated(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The answer to a `Deliberate`, decided on the cell as it was then. What was lent is the engine's
    again."""

    token: int
    decision: Decision


class TaskFailed(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Tasks of `job` ended with the same error. With `again`, this scheduler must place them once more;
    otherwise they are over, and no `TaskFinished` follows."""

    job: Job
    number: int
    tasks: TaskArray
    machines: MachineArray
    #: Which attempt at each task failed: numbers that grow from attempt to attempt, but not by one.
    incarnations: NDArray[np.int64]
    #: The command's exit status; negative: the signal that ended it.
    exit_status: int
    #: The reason, in words.
    reason: str
    again: bool


class JobCancelled(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The job was cancelled; `tasks` are all that are not over. The engine must forget those that wait.
    The world stops those that run or are queued at machines, and refuses claims under way; tasks that it
    stops are reported as `TaskFinished`."""

    job: Job
    number: int
    tasks: TaskArray


class JobChanged(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The job grew or shrank. The scheduler must place the tasks in `added`; those in `removed` are
    cancelled. `job` is the new version.

    An index always means the same task: the last group grows and shrinks at its end, and any other group
    grows by a new group like it at the end of the job. A job whose tasks are workers does not grow,
    because its scheduler uses the next indices for extra workers."""

    job: Job
    number: int
    added: TaskArray
    removed: TaskArray


Event: TypeAlias = (
    Started
    | JobSubmitted
    | TaskFinished
    | PhaseFinished
    | TasksLost
    | MachineJoined
    | MachineLost
    | MachineChanged
    | UsageObserved
    | Committed
    | SampleReturned
    | ProbeReady
    | QueuesReported
    | MessageReceived
    | TimerFired
    | DecisionDue
    | Deliberated
    | TaskFailed
    | JobCancelled
    | JobChanged
)
