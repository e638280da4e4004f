"""Effects: all that an engine can ask of its world.

Plain values: `argosy.model.wire` writes each as JSON or msgpack and reads it back equal. What is
answered has a token, which the engine chooses and which comes back with the answer. Whoever waits for
answers gives each open question of one kind a token of its own.

Like the other values of this package that come by the million, they hold nothing that leads back to
them, so the garbage collector is told not to look (`gc=False`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from argosy.model.explanations import Explanation
from argosy.model.messages import Message
from argosy.model.resources import Resources
from argosy.model.transactions import MachineArray, TaskArray, Transaction


class EarlierTime(msgspec.Struct, frozen=True, gc=False):
    """Decision time that was spent before and not yet reported: in all, and of that on one job."""

    total: int
    on_job: int = 0


class Think(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Deciding takes `duration`; `DecisionDue(token)` follows. `job` is what is being decided on: its
    first `Think` ends the job's wait time. Busyness is the sum of these durations; an engine that thinks
    along several lines at once names the `lane` of each. `earlier` adds time that the engine spent
    before without a `Think` of its own."""

    duration: int
    token: int
    job: int = -1
    lane: str = ""
    earlier: EarlierTime | None = None


class Commit(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Ask the cell; `Committed(token)` answers. `explanation` says what the scheduler saw. In a
    federation, what goes to the agent of one `cluster` claims machines of that cluster alone, and takes
    as long as the way there; without a name it concerns all clusters, and takes as long as to the
    farthest."""

    token: int
    transaction: Transaction
    explanation: Explanation | None = None
    cluster: str = ""


class Pace(msgspec.Struct, frozen=True, gc=False):
    """Tasks are sent one after another: one `first` from now, then one `every` so often. A world keeps
    this with its timer."""

    first: int = 0
    every: int = 0


class Enqueue(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Put tasks into their machines' queues, without a transaction and so without a conflict: all at
    once, or in order at a `pace`."""

    tasks: TaskArray
    machines: MachineArray
    explanation: Explanation | None = None
    pace: Pace | None = None
    #: What machines are told to expect of each task; what its job came with, if none.
    estimate: int | None = None


class Probe(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Put a place-holder for any task of `job` into each machine's queue (Sparrow's late binding). When
    one has come to the head and has room, its slot is held and `ProbeReady` asks for a task.

    With `tasks`, these are kept ready on the scheduler's behalf: each machine whose probe comes up
    fetches the next of them, a round trip later, and the engine is not woken. Tasks whose probes were
    lost come back as `TasksLost`. Two mechanisms of the machines' queues can be asked for:

    - `sticky`, Eagle's sticky batch probing: a probe that has fetched a task stays in its place and asks
      again, until its job has none left.
    - `cancel`, Sparrow's proactive cancellation: once no task is left, the other probes are taken back.
      Without it each holds a slot for a round trip in vain.
    """

    job: int
    machines: MachineArray
    request: Resources
    estimate: int = 0
    tasks: TaskArray | None = None
    sticky: bool = False
    cancel: bool = False


class AnswerProbe(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Give the slot that a probe holds to `task`, or give it back with none."""

    probe: int
    task: int | None = None


class AskQueues(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Ask all machines how long their queues are; `QueuesReported(token)` answers. With `latest`, at
    once, from the report that each machine sent last: how often they report is the machines' affair
    (`[machines] heartbeat`). `which` tasks: all, or only those that the machines hold for long
    (`[machines] long_above`), running ones included."""

    token: int
    latest: bool = False
    which: Literal["all", "long"] = "all"


class Sample(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Ask a cluster's agent for up to `count` random machines that fit and have the attributes in
    `requires`; `SampleReturned(token)` answers. A cell on its own is the cluster without a name; in a
    federation, the empty name stands for all clusters."""

    request: Resources
    count: int
    token: int
    requires: dict[str, str] = {}
    cluster: str = ""


class Send(msgspec.Struct, frozen=True, gc=False, tag=True):
    """One message to each of `peers`. Delivery is the network's affair: late, lost, twice. A
    `WaitUpdate` goes to the peers' wait views in the background; nobody is woken for it."""

    peers: tuple[str, ...]
    payload: Message


class WakeMe(msgspec.Struct, frozen=True, gc=False, tag=True):
    """`TimerFired(name)` at time `at`."""

    at: int
    name: str


class Explain(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Why these tasks have no machine (yet)."""

    tasks: TaskArray
    explanation: Explanation


class Abandon(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Give up on tasks for good, with the reason."""

    tasks: TaskArray
    explanation: Explanation


class Question(msgspec.Struct, frozen=True):
    """Base of what engines ask themselves: plain values, each of which can be written as JSON and read
    back equal by the type its engine declares (`Deliberates.question_type`)."""


class Deliberate(msgspec.Struct, frozen=True, gc=False, tag=True):
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
