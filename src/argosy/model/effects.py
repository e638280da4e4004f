"""Effects: all that an engine can ask of its world.

Like the other values of this package that come by the million, they hold nothing that leads back to
them, so the garbage collector is told not to look (`gc=False`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from argosy.model.explanations import Explanation
from argosy.model.resources import Resources
from argosy.model.transactions import MachineArray, TaskArray, Transaction


class Think(msgspec.Struct, frozen=True, gc=False):
    """Deciding takes `duration`; `DecisionDue(token)` follows. `job` is what is being decided on: its
    first `Think` ends the job's wait time. Busyness is the sum of these durations; an engine that thinks
    along several lines at once names the `lane` of each. Time that it has spent on decisions before,
    without telling, counts as well: `untold` of its own, and of that `untold_on_job`."""

    duration: int
    token: int
    job: int = -1
    lane: str = ""
    untold: int = 0
    untold_on_job: int = 0


class Commit(msgspec.Struct, frozen=True, gc=False):
    """Ask the cell; `Committed` answers. `explanation` says what the scheduler saw."""

    transaction: Transaction
    explanation: Explanation | None = None


class Enqueue(msgspec.Struct, frozen=True, gc=False):
    """Put tasks into their machines' queues, without a transaction and so without a conflict. The first
    leaves after `first`, each other one `spacing` after the one before."""

    tasks: TaskArray
    machines: MachineArray
    explanation: Explanation | None = None
    first: int = 0
    spacing: int = 0
    #: What machines are told to expect of each task; what its job came with, if none.
    estimate: int | None = None


class Probe(msgspec.Struct, frozen=True, gc=False):
    """Put a place-holder for any task of `job` into each machine's queue (late binding). When one has
    come to the head and has room, its slot is held and `ProbeReady` asks for a task.

    With `tasks`, nobody is asked: each machine whose probe comes up gets the next of them, a round trip
    later. A `sticky` probe stays and asks again. `cancel` takes the other probes back once no task is
    left; without it each holds a slot for a round trip in vain. Tasks whose probes were lost come back
    as `TasksLost`."""

    job: int
    machines: MachineArray
    request: Resources
    estimate: int = 0
    tasks: TaskArray | None = None
    sticky: bool = False
    cancel: bool = False


class AnswerProbe(msgspec.Struct, frozen=True, gc=False):
    """Give the slot that a probe holds to `task`, or give it back with none."""

    probe: int
    task: int | None = None


class AskQueues(msgspec.Struct, frozen=True, gc=False):
    """Ask all machines how long their queues are; `QueuesReported(token)` answers. With a `heartbeat`,
    at once and with what each said at the last whole multiple of that; all who ask use one period. With
    `only_long`, of long tasks alone, running ones included. With `sent`, a heartbeat tells
    what was on its way to the machine as well."""

    token: int
    only_long: bool = False
    heartbeat: int = 0
    sent: bool = False


class Sample(msgspec.Struct, frozen=True, gc=False):
    """Ask a cluster's agent for up to `count` random machines that fit and have the attributes in
    `requires`; `SampleReturned(token)` answers. A cell on its own is the cluster without a name."""

    request: Resources
    count: int
    token: int
    requires: dict[str, str] = {}
    cluster: str = ""


class Send(msgspec.Struct, frozen=True, gc=False):
    """One message to each of `peers`. Delivery is the network's affair: late, lost, twice. A
    `WaitUpdate` goes to the peers' wait views in the background; nobody is woken for it."""

    peers: tuple[str, ...]
    payload: Any


class WakeMe(msgspec.Struct, frozen=True, gc=False):
    """`TimerFired(name)` at time `at`."""

    at: int
    name: str


class Explain(msgspec.Struct, frozen=True, gc=False):
    """Why these tasks have no machine (yet)."""

    tasks: TaskArray
    explanation: Explanation


class Abandon(msgspec.Struct, frozen=True, gc=False):
    """Give up on tasks for good, with the reason."""

    tasks: TaskArray
    explanation: Explanation


class Question(msgspec.Struct, frozen=True):
    """Base of what engines ask themselves: plain values, each of which can be written as JSON and read
    back equal by the type its engine declares (`Deliberates.question_type`)."""


class Deliberate(msgspec.Struct, frozen=True, gc=False):
    """Decide on a frozen snapshot of the cell as it is now, beside the loop; `Deliberated(token)`
    answers. `duration` is what it takes where time is modelled, and `limit` what it may take where it
    is not (0: as long as it likes), both in microseconds. `job` and `lane` are those of `Think`."""

    token: int
    question: Question
    job: int = -1
    lane: str = ""
    duration: int = 0
    limit: int = 0


Effect: TypeAlias = (
    Think
    | Commit
    | Enqueue
    | Probe
    | AnswerProbe
    | AskQueues
    | Sample
    | Send
    | WakeMe
    | Explain
    | Abandon
    | Deliberate
)
