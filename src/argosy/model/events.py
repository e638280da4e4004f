"""Events: all that can happen to an engine.

Plain values: `argosy.model.wire` writes each as JSON or msgpack and reads it back equal. An answer comes
with the token of its question and with nothing else of it: an engine keeps what it asked by token.
"""

from __future__ import annotations

from typing import TypeAlias

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
    """The scheduler begins, or begins again after a crash with nothing remembered."""

    again: bool = False


class JobSubmitted(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Tasks of `job` are this scheduler's to place: at first all of them, later those that came back
    from a scheduler that stopped."""

    job: Job
    number: int
    tasks: TaskArray


class TaskFinished(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Tasks ended at their machines; who hears of which is `Capabilities.finishes`. Machines say what
    they know of each: the estimate it came with and its shape."""

    tasks: TaskArray
    machines: MachineArray
    estimates: NDArray[np.int64]
    shapes: ShapeArray


class PhaseFinished(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The last activity of a phase of job `number` ended; activities took `duration` on average. Told
    to engines whose `Capabilities.malleable` it is to know."""

    number: int
    phase: int
    duration: int


class TasksLost(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Tasks of `job` that this scheduler had placed are without a machine again, and are its to place
    once more. The job comes along, so that engines need not remember what they have placed. Only
    malleable engines hear of workers beyond the job's own, which need not be placed."""

    job: Job
    number: int
    tasks: TaskArray
    machines: MachineArray
    why: Why
    #: How often each was started before, if the world counts that.
    incarnations: NDArray[np.int64] | None = None


class MachineJoined(msgspec.Struct, frozen=True, gc=False, tag=True):
    machine: int


class MachineLost(msgspec.Struct, frozen=True, gc=False, tag=True):
    machine: int


class MachineChanged(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Resized, or draining begun or ended."""

    machine: int


class Committed(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The answer to the `Commit` with this token."""

    token: int
    outcome: Outcome


class SampleReturned(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The answer to a `Sample`: machines of the cluster that fit, what is free on them, and their
    versions."""

    token: int
    machines: MachineArray
    free: NDArray[np.int64]
    versions: VersionArray
    cluster: str = ""


class ProbeReady(msgspec.Struct, frozen=True, gc=False, tag=True):
    """A probe came to the head of its machine's queue and holds a slot until `AnswerProbe(probe)`."""

    probe: int
    job: int
    machine: int


class QueuesReported(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The answer to `AskQueues`: per machine, tasks and probes in the queue, and the estimated work of
    what is queued and running there, in microseconds."""

    token: int
    lengths: NDArray[np.int64]
    waits: NDArray[np.int64]


class MessageReceived(msgspec.Struct, frozen=True, gc=False, tag=True):
    sender: str
    payload: Message


class TimerFired(msgspec.Struct, frozen=True, gc=False, tag=True):
    name: str


class DecisionDue(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The time a `Think` asked for has passed."""

    token: int


class Decision(msgspec.Struct, frozen=True):
    """Base of what deliberations end in: plain values, as questions are."""


class Deliberated(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The answer to a `Deliberate`, decided on the cell as it was then."""

    token: int
    decision: Decision


class TaskFailed(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Tasks of `job` ended with an error, all with the same. With `again` they are this scheduler's to
    place once more, as lost ones are; otherwise they are over, and no `TaskFinished` follows."""

    job: Job
    number: int
    tasks: TaskArray
    machines: MachineArray
    #: How often each was started before.
    incarnations: NDArray[np.int64]
    #: What the command returned; below 0, the signal that ended it.
    exit_status: int
    #: In words.
    reason: str
    again: bool


class JobCancelled(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Nobody wants the tasks of `job` any more; `tasks` are all that are not over. Those that wait here
    are to be forgotten. The world stops those that run or are queued at machines, and refuses claims
    that are under way; what it stops is told as `TaskFinished`, as every end is."""

    job: Job
    number: int
    tasks: TaskArray


class JobChanged(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The job is larger or smaller than before. Tasks in `added` are this scheduler's to place; those in
    `removed` are as if cancelled. `job` is as it is now.

    An index names the same task for ever: the last group grows and shrinks at its end, and another group
    grows by a new one like it at the end of the job. A job whose tasks are workers does not grow: its
    scheduler has given the next indices to workers of its own."""

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
