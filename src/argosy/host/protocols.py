"""What a world provides to its host: a clock, machines, and links between the parties.

    Clock     the time, and calls at a given time
    Machines  run tasks: how long each will run if that is known, and real starts and stops
    Links     how long messages take between schedulers, cell and machines

A world may also provide a `Deliberator`, which runs long decisions in the background.

The native `TaskRuntime` is the clock of every world; worlds differ in what moves it. The simulated world
jumps to the next event, a live one follows real time, and a replay follows the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from argosy.model.events import Decision
from argosy.model.explanations import Why
from argosy.model.transactions import MachineArray, TaskArray

#: Parties beside the schedulers.
CELL: Final = "cell"
MACHINES: Final = "machines"


def agent_of(cluster: str) -> str:
    """The party that answers for a cluster; the cell itself, if that has no name."""
    return f"{CELL}:{cluster}" if cluster else CELL


class Clock(Protocol):
    """Microseconds since the beginning of the run."""

    @property
    def now(self) -> int: ...

    def push(self, at: int, kind: int, a: int, b: int) -> None:
        """The event comes back at time `at`: after what is due before then, in order of pushing."""


class Machines(Protocol):
    """What runs tasks. Queues, probes and slots at machines are the runtime's in every world; this is
    what a world adds. It reports back through `Host`: `end_tasks`, `fail_task`, `change_machine`."""

    #: Whether `start` and `stop` are called. Simulated machines need not be told.
    acts: bool

    def common_running_time(self, job: int) -> int | None:
        """How long every task of the job runs, if all run equally long; -1: until told otherwise."""

    def running_times(self, tasks: TaskArray) -> NDArray[np.int64]:
        """How long each task will run; -1: until told otherwise."""

    def start(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None:
        """Each task begins to run on its machine, as this incarnation."""

    def stop(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64], why: Why
    ) -> None:
        """These incarnations have lost their place. What they report from now on comes too late."""

    def forget(self, jobs: Iterable[int]) -> None:
        """These jobs are done: nobody will ask for them any more."""


class Links(Protocol):
    """How long what is sent takes. Sender and receiver are schedulers, agents of clusters, or `CELL` and
    `MACHINES`, which in a federation are wherever a cluster is."""

    #: The delay of every hop, where all take as long and nothing goes wrong; otherwise -1.
    plain_hop: int
    #: There and back, on average.
    round_trip: int
    #: Messages by what became of them.
    counts: dict[str, int]

    def reliable_delay(self, sender: str, receiver: str, now: int) -> int:
        """The delay of what is sent again until it arrives."""

    def deliveries(self, sender: str, receiver: str, now: int) -> tuple[int, ...]:
        """The delays after which copies of one message arrive: none, one or two."""


class Deliberator(Protocol):
    """Where long decisions run, if not at once on the host's loop."""

    def start(self, run: Callable[[], Decision], done: Callable[[Decision], None]) -> None:
        """Has `run` called, in another thread of this process if need be, and then `done` with what it
        returned: on the host's loop, with the clock as far as the time, like every input. `done` may be
        called long after, never from within `start`, and not at all if the answer is lost. What `run`
        raises is the engine's fault, and is to be raised on the loop."""


class DirectLinks:
    """Everybody lives in one process: what is sent is there."""

    def __init__(self) -> None:
        self.plain_hop = 0
        self.round_trip = 0
        self.counts = {"sent": 0, "lost": 0, "duplicated": 0, "delayed": 0, "cut": 0}

    def reliable_delay(self, sender: str, receiver: str, now: int) -> int:
        return 0

    def deliveries(self, sender: str, receiver: str, now: int) -> tuple[int, ...]:
        self.counts["sent"] += 1
        return (0,)
