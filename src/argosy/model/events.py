"""Events: all that can happen to an engine."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.transactions import (
    MachineArray,
    Outcome,
    ShapeArray,
    TaskArray,
    Transaction,
    VersionArray,
)


class Started(msgspec.Struct, frozen=True, gc=False):
    """The scheduler begins, or begins again after a crash with nothing remembered."""

    again: bool = False


class JobSubmitted(msgspec.Struct, frozen=True, gc=False):
    """Tasks of `job` are this scheduler's to place: at first all of them, later those that came back
    from a scheduler that stopped."""

    job: Job
    number: int
    tasks: TaskArray


class TaskFinished(msgspec.Struct, frozen=True, gc=False):
    """Tasks ended at their machines; who hears of which is `Capabilities.finishes`. Machines say what
    they know of each: the estimate it came with and its shape."""

    tasks: TaskArray
    machines: MachineArray
    estimates: NDArray[np.int64]
    shapes: ShapeArray


class PhaseFinished(msgspec.Struct, frozen=True, gc=False):
    """The last activity of a phase of job `number` ended; activities took `duration` on average. Told
    to engines whose `Capabilities.malleable` it is to know."""

    number: int
    phase: int
    duration: int


class TasksLost(msgspec.Struct, frozen=True, gc=False):
    """Tasks of `job` that this scheduler had placed are without a machine again, and are its to place
    once more. The job comes along, so that engines need not remember what they have placed. Only
    malleable engines hear of workers beyond the job's own, which need not be placed."""

    job: Job
    number: int
    tasks: TaskArray
    machines: MachineArray
    why: Why


class MachineJoined(msgspec.Struct, frozen=True, gc=False):
    machine: int


class MachineLost(msgspec.Struct, frozen=True, gc=False):
    machine: int


class MachineChanged(msgspec.Struct, frozen=True, gc=False):
    """Resized, or draining begun or ended."""

    machine: int


class Committed(msgspec.Struct, frozen=True, gc=False):
    """The answer to a `Commit`."""

    transaction: Transaction
    outcome: Outcome


class SampleReturned(msgspec.Struct, frozen=True, gc=False):
    """The answer to a `Sample`: machines that fit, what is free on them, and their versions."""

    token: int
    machines: MachineArray
    free: NDArray[np.int64]
    versions: VersionArray


class ProbeReady(msgspec.Struct, frozen=True, gc=False):
    """A probe came to the head of its machine's queue and holds a slot until `Answer(probe)`."""

    probe: int
    job: int
    machine: int


class QueuesReported(msgspec.Struct, frozen=True, gc=False):
    """The answer to `AskQueues`: per machine, tasks and probes in the queue, and the estimated work of
    what is queued and running there, in microseconds."""

    token: int
    lengths: NDArray[np.int64]
    waits: NDArray[np.int64]


class MessageReceived(msgspec.Struct, frozen=True, gc=False):
    sender: str
    payload: Any


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    name: str


class DecisionDue(msgspec.Struct, frozen=True, gc=False):
    """The time a `Think` asked for has passed."""

    token: int


class Decision(msgspec.Struct, frozen=True):
    """Base of what deliberations end in: plain values, as questions are."""


class Deliberated(msgspec.Struct, frozen=True, gc=False):
    """The answer to a `Deliberate`, decided on the cell as it was then."""

    token: int
    decision: Decision


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
)
