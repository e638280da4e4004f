"""Effects: everything an engine can ask of its world.

Plain values: `argosy.model.wire` writes each as JSON or msgpack and reads it back equal. Effects with an
answer have a token, which the engine chooses and which the answer repeats. Open questions of one kind
must have different tokens.

There may be millions of these values, and they cannot be part of a reference cycle, so the garbage
collector need not track them (`gc=False`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from argosy.model.explanations import Explanation
from argosy.model.messages import Message
from argosy.model.resources import Resources
from argosy.model.transactions import MachineArray, TaskArray, Transaction


class EarlierTime(msgspec.Struct, frozen=True, gc=False):
    """Decision time not yet reported: in total, and the part of it spent on one job."""

    total: int
    on_job: int = 0


class Think(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Spend `duration` on a decision; `DecisionDue(token)` follows. The first `Think` for a `job` ends
    its wait time. Busyness is the sum of these durations. An engine that makes several decisions at
    once names a `lane` for each. `earlier` adds decision time that was not yet reported by a
    `Think`."""

    duration: int
    token: int
    job: int = -1
    lane: str = ""
    earlier: EarlierTime | None = None


class CommitPipeline(msgspec.Struct, frozen=True, gc=False):
    """How an agent commits: its plug-ins by name (`argosy.agents`)."""

    checks: tuple[str, ...] = ("ResourcesFit",)
    commit: str = "Bind"
    #: Which reservations of other commits count against one: those that arrived before it, so that the
    #: first to arrive wins, or all.
    reservations: Literal["earlier", "all"] = "earlier"


class Commit(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Submit a transaction to the cell; `Committed(token)` answers. `explanation` says what the
    scheduler saw. In a federation, a commit to one `cluster` may claim only machines of that cluster,
    and takes as long as the way to its agent; without a name it may claim machines of all clusters, and
    takes as long as the way to the farthest.

    With a `pipeline`, the agent commits a single claim in the steps of Vela: it reserves the room, waits
    for its turn at the machine, and checks the machine as it is then."""

    token: int
    transaction: Transaction
    explanation: Explanation | None = None
    cluster: str = ""
    pipeline: CommitPipeline | None = None


class Pace(msgspec.Struct, frozen=True, gc=False):
    """Send tasks one after another: the first after `first`, then one per `every`. The world does the
    timing."""

    first: int = 0
    every: int = 0


class Enqueue(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Put tasks into machines' queues: all at once, or in order at a `pace`. There is no transaction, so
    there are no conflicts."""

    tasks: TaskArray
    machines: MachineArray
    explanation: Explanation | None = None
    pace: Pace | None = None
    #: Estimate given to machines for each task; by default the job's.
    estimate: int | None = None


class Probe(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Put a placeholder for any task of `job` into each machine's queue (Sparrow's late binding). When a
    probe is at the head of its queue and has room, it holds a slot and `ProbeReady` asks for a task.

    With `tasks`, the world answers instead: each machine whose probe is ready gets the next task, a
    round trip later, and the engine is not called. Tasks whose probes are lost come back as `TasksLost`.
    Two options:

    - `sticky`, Eagle's sticky batch probing: after fetching a task, a probe stays at the head and asks
      again, until its job has no task left.
    - `cancel`, Sparrow's proactive cancellation: once no task is left, the other probes are cancelled.
      Without it, each still holds a slot for a round trip.
    """

    job: int
    machines: MachineArray
    request: Resources
    estimate: int = 0
    tasks: TaskArray | None = None
    sticky: bool = False
    cancel: bool = False


class AnswerProbe(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Give the slot that a probe holds to `task`, or release the slot if there is none."""

    probe: int
    task: int | None = None


class AskQueues(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Ask all machines for the length of their queues; `QueuesReported(token)` answers. With
    `latest`, the answer comes at once, from each machine's last report (`[machines] heartbeat`).
    `which` tasks count: all, or only long ones (`[machines] long_above`); running tasks are included.
    With `until_room`, the answer comes as soon as the queue of one of those machines takes another
    entry (`[machines] limit`)."""

    token: int
    latest: bool = False
    which: Literal["all", "long"] = "all"
    until_room: MachineArray | None = None


class SamplingPipeline(msgspec.Struct, frozen=True, gc=False):
    """How an agent samples: its plug-ins by name, in order (`argosy.agents`), and when it stops."""

    strategy: str = "Random"
    filters: tuple[str, ...] = ("ResourcesFit",)
    scores: tuple[str, ...] = ("ResourcesFit",)
    #: Machines to find, as a share of the cluster's; 0: `Sample.count`.
    share: float = 0.0
    #: 0: draw until enough machines were found or all were seen, each once. Otherwise at most so many
    #: rounds, each independent of the others.
    rounds: int = 0
    #: Stop drawing after this time, in microseconds; 0: no limit.
    limit: int = 0
    #: Whether the answer must say what is free on each machine. An agent far away leaves it out
    #: otherwise.
    free: bool = False
    #: A round may find more machines than are wanted: keep them, or cut the sample to its size.
    overshoot: Literal["keep", "cut"] = "keep"
    #: Machines that independent rounds drew more than once: keep or drop the repetitions.
    repeats: Literal["drop", "keep"] = "drop"


class Sample(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Ask a cluster's agent for up to `count` random machines that fit and have the attributes in
    `requires`; `SampleReturned(token)` answers. A cell that is not a federation is a cluster without a
    name; in a federation, the empty name means all clusters.

    With a `pipeline`, the agent draws, filters and scores as it says, and considers `demands`."""

    request: Resources
    count: int
    token: int
    requires: dict[str, str] = {}
    cluster: str = ""
    demands: dict[str, str] = {}
    pipeline: SamplingPipeline | None = None


class Send(msgspec.Struct, frozen=True, gc=False, tag=True):
    """One message to each of `peers`. It may arrive late, twice or never. A `WaitUpdate` goes to the
    peers' wait views without calling their engines."""

    peers: tuple[str, ...]
    payload: Message


class WakeMe(msgspec.Struct, frozen=True, gc=False, tag=True):
    """`TimerFired(name)` at time `at`."""

    at: int
    name: str


class Explain(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Say why these tasks have no machine (yet)."""

    tasks: TaskArray
    explanation: Explanation


class Abandon(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Give up on tasks for good, with the reason."""

    tasks: TaskArray
    explanation: Explanation


class Question(msgspec.Struct, frozen=True):
    """Base of an engine's questions: plain values that can be written as JSON and read back equal as the
    type that the engine declares (`Deliberates.question_type`)."""


class Deliberate(msgspec.Struct, frozen=True, gc=False, tag=True):
    """Decide in the background, on the cell as it is now; `Deliberated(token)` answers. If time is
    modelled, it takes `duration`, unless the answer is a `TimedDecision`; otherwise at most `limit` (0:
    no limit), both in microseconds. `job` and `lane` are as in `Think`."""

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
