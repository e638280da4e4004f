"""What a world provides to its host: machines, and links between the parties.

    Machines  run tasks: real starts and stops
    Links     how long messages take between schedulers, cell and machines

A world may also provide a `Deliberator`, which runs long decisions in the background, and
`RemoteAgents`, if the clusters are behind agents in other processes.

The native `TaskRuntime` is the clock of every world: it holds the time and the timers. Worlds differ in
what moves it. The simulated world jumps to the next event, a live one follows real time, and a replay
follows the journal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from argosy.model.effects import Commit, Sample
from argosy.model.events import Decision
from argosy.model.explanations import Why
from argosy.model.transactions import MachineArray, TaskArray

#: Parties other than schedulers.
CELL: Final = "cell"
MACHINES: Final = "machines"


def agent_of(cluster: str) -> str:
    """The agent of a cluster; the cell itself if the name is empty."""
    return f"{CELL}:{cluster}" if cluster else CELL


class Machines(Protocol):
    """Runs tasks. Machine queues, probes and slots belong to the runtime in every world; this is what a
    world adds. It reports back through `Host`: `end_task`, `fail_task`, `change_machine`. A world that
    knows how long the tasks of a job will run tells the runtime instead (`TaskRuntime.set_times`)."""

    #: Whether `start` and `stop` are called. Simulated machines do not need them.
    acts: bool

    def start(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None:
        """Starts each task on its machine, as the given incarnation. If the claim is assumed, this asks
        the system that has the last word; `Host.confirm` or `Host.forget` answers."""

    def stop(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64], why: Why
    ) -> None:
        """Stops these incarnations, which have lost their machines. Their later reports are ignored."""


class Links(Protocol):
    """Network delays. Senders and receivers are schedulers, cluster agents, or `CELL` and `MACHINES`,
    which in a federation are wherever the cluster in question is."""

    #: The delay of every hop, if all are equal and no message is lost; otherwise -1.
    plain_hop: int
    #: Mean round-trip time.
    round_trip: int
    #: Number of messages by outcome.
    counts: dict[str, int]

    def reliable_delay(self, sender: str, receiver: str, now: int) -> int:
        """The delay of a request that is resent until it arrives."""

    def deliveries(self, sender: str, receiver: str, now: int) -> tuple[int, ...]:
        """The delays of all copies of one message that arrive: none, one or two."""


class Deliberator(Protocol):
    """Runs long decisions somewhere other than on the host's loop."""

    def start(self, run: Callable[[], Decision], done: Callable[[Decision], None]) -> None:
        """Has `run` called, in another thread of this process if need be, and then `done` with what it
        returned: on the host's loop, with the clock as far as the time, like every input. `done` may be
        called long after, never from within `start`, and not at all if the answer is lost. What `run`
        raises is the engine's fault, and is to be raised on the loop."""


class RemoteAgents(Protocol):
    """Carries requests with pipelines to agents in other processes. Every request is answered in the
    end, by `Host.sampled` or `Host.committed`, if only to say that the agent was not reached; never from
    within the call."""

    def sample(self, scheduler: str, effect: Sample) -> None: ...

    def commit(self, scheduler: str, effect: Commit) -> None: ...


class DirectLinks:
    """All parties are in one process: nothing takes time to arrive."""

    def __init__(self) -> None:
        self.plain_hop = 0
        self.round_trip = 0
        self.counts = {"sent": 0, "lost": 0, "duplicated": 0, "delayed": 0, "cut": 0}

    def reliable_delay(self, sender: str, receiver: str, now: int) -> int:
        return 0

    def deliveries(self, sender: str, receiver: str, now: int) -> tuple[int, ...]:
        self.counts["sent"] += 1
        return (0,)
