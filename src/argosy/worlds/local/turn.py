"""What happens between two commits: orders of the host, tries that begin and end, and lines."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.scenario import CellSpec, Federation, FleetEntry
from argosy.model.transactions import MachineArray, TaskArray


class LocalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster is made with; machines and the fleet can change while it runs."""

    name: str = "local"
    seed: int = 1
    cell: CellSpec
    fleet: tuple[FleetEntry, ...]
    machines: MachineModel = MachineModel()
    audit: bool = False
    #: The clusters behind agents elsewhere; none if this one has its own machines.
    federation: Federation | None = None


class TryRunner(Protocol):
    """Runs tries as processes that outlive the server."""

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        """Starts a try. Its end is reported to `LocalWorld.ended`, even if it cannot start."""

    def stop(self, number: int) -> None:
        """Stops a try, with the grace its job allows. Its end is reported, even if it is over or was
        never launched."""

    def adopt(self, number: int) -> TryResult | bool:
        """A try of an earlier server: how it ended, or true if it runs, or false if nothing is known of
        it."""

    def discard_after(self, number: int) -> int:
        """Stops the tries that come after a number, which no database knows of, and returns the last
        number that was ever used."""


class ServedRunner(TryRunner, Protocol):
    """What a server needs of it besides."""

    #: Whether there is something to hear that no descriptor tells of.
    @property
    def has_stillborn(self) -> bool: ...

    #: Whether no try is running.
    @property
    def is_idle(self) -> bool: ...

    #: A descriptor that is readable when there is something to hear; none if there is no need.
    @property
    def report_fd(self) -> int | None: ...

    def hear(self) -> None:
        """Takes reports, and tells of the ends among them."""

    def sweep(self) -> None:
        """Looks at all tries, in case a report was lost."""

    def is_running(self, number: int) -> bool: ...

    def directory_of(self, number: int) -> str:
        """Where the outputs of a try are; what is not there has none."""

    def limits(self) -> str:
        """Which limits tasks have, in a sentence."""

    def close(self) -> None: ...


class StartOrder(msgspec.Struct, frozen=True, gc=False):
    task: int
    machine: int
    incarnation: int


class StopOrder(msgspec.Struct, frozen=True, gc=False):
    task: int
    incarnation: int
    why: Why


class LocalMachines:
    """Collects what a turn has to start and to stop."""

    acts = True

    def __init__(self) -> None:
        self._orders: list[StartOrder | StopOrder] = []
        self._stopping: set[int] = set()
        self._seen = 0

    def take(self) -> list[StartOrder | StopOrder]:
        orders, self._orders = self._orders, []
        self._stopping.clear()
        self._seen = 0
        return orders

    def unseen(self) -> list[StartOrder | StopOrder]:
        """Orders that came since the last call, each of which `take` returns as well."""
        orders = self._orders[self._seen :]
        self._seen = len(self._orders)
        return orders

    def is_stopping(self, task: int) -> bool:
        """Whether the turn has something to stop that runs for this task."""
        return task in self._stopping

    def start(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None:
        rows = zip(tasks.tolist(), machines.tolist(), incarnations.tolist(), strict=True)
        self._orders.extend(StartOrder(*row) for row in rows)

    def stop(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64], why: Why
    ) -> None:
        rows = zip(tasks.tolist(), incarnations.tolist(), strict=True)
        self._orders.extend(StopOrder(*row, why) for row in rows)
        self._stopping.update(tasks.tolist())


class TurnStream(io.BytesIO):
    """Where the journal puts the lines of a turn."""

    def take(self) -> bytes:
        lines = self.getvalue()
        self.seek(0)
        self.truncate()
        return lines


class LiveTry(msgspec.Struct):
    """A try that is not over: which task it is for, as which incarnation, and since when it runs; and
    the job's number in the database."""

    task: int
    incarnation: int
    machine: int
    since: int
    seq: int = -1
    #: How often it has died soon after its start, one time after the other.
    deaths: int = 0
    #: Its process has ended; the service starts again with the next try.
    is_dead: bool = False

    def wait_like(self, before: LiveTry) -> None:
        """A service that waits to start again goes on waiting under another host."""
        self.deaths, self.is_dead = before.deaths, before.is_dead


class TryResult(msgspec.Struct, frozen=True):
    """How a process ended. `status` is its exit code, or minus the signal that killed it."""

    status: int
    reason: str = ""
    #: Whether it was told to stop before it ended by itself.
    was_stopped: bool = False


class PlannedLaunch(msgspec.Struct, frozen=True):
    """What to start for a try; `seq` is the job's number in the database."""

    seq: int
    job: Job
    index: int
    machine: Machine


class Unsaved:
    """What the turn has done, besides what follows from the journal. Keys that came without a job wait
    for a turn with something to write."""

    def __init__(self, keys: Sequence[tuple[str, bytes, str]] = ()) -> None:
        self.lines = b""
        self.header = b""
        self.cluster: LocalCluster | None = None
        #: Tries that begin: number, job, index, machine and time; and what to start for each.
        self.tries: list[tuple[int, int, int, str, int]] = []
        self.launches: dict[int, PlannedLaunch] = {}
        #: Tries that are over: time, exit status and outcome.
        self.ends: dict[int, tuple[int, int | None, str]] = {}
        #: Tries that have to stop, and tries that had to and have.
        self.stops: list[int] = []
        self.gone: list[int] = []
        #: Idempotency keys: the key, the digest of what was asked, and the job's id.
        self.keys = list(keys)

    @property
    def is_empty(self) -> bool:
        return not (self.lines or self.header or self.tries or self.ends or self.cluster)

    def end_try(self, number: int, status: int | None, outcome: str, at: int) -> None:
        self.ends[number] = (at, status, outcome)
