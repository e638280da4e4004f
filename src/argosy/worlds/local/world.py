"""The local world: a host whose machines are slices of this computer and whose tasks are processes.

Everything happens in *turns*. Inputs (submissions, reports of processes, timers) go to the host as they
come. `commit` ends a turn: it writes the journal's new lines and all that follows from them to the
database, and only then starts and stops processes and tells those who wait. If the database cannot be
written for now, the turn stays open, nothing is acted on, and the next `commit` tries again.

A *life* is the time of one host. A server that starts on a directory with jobs begins a new life, in
which they are restored; so does a change of the fleet.
"""

from __future__ import annotations

import heapq
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from argosy.engines.api import Engine
from argosy.host.host import Host
from argosy.host.journal import Journal
from argosy.host.protocols import Deliberator, DirectLinks
from argosy.host.setup import HostSetup
from argosy.model.errors import ModelError, UnknownName
from argosy.model.explanations import Why
from argosy.model.jobs import Job, index_of, job_of, task_number
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, FleetEntry, NotModelled, Output
from argosy.model.tasks import task_numbers
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    MachineArray,
    MachineChange,
    RemoveMachine,
    ResizeMachine,
    TaskArray,
)
from argosy.worlds.clocks import ClockBudgets
from argosy.worlds.local.projection import STATES, JobRow, Projection, TaskRow
from argosy.worlds.local.store import LocalStore

#: How long after its death a service starts again; doubles with every death soon after a start.
FIRST_RESTART: Final = 1_000_000
LONGEST_RESTART: Final = 60_000_000
#: A service that has run for so long is taken to be well.
CALM: Final = 60_000_000

_CLUSTER: Final = "cluster"
_ENCODE: Final = msgspec.json.Encoder().encode
_JOB: Final = msgspec.json.Decoder(Job)
_MACHINE: Final = msgspec.json.Decoder(Machine)
#: What became of a try whose task lost its place.
_OUTCOMES: Final = {
    Why.CANCELLED: "cancelled",
    Why.PREEMPTED: "preempted",
    Why.MOVED: "moved",
    Why.RELEASED: "released",
}


class LocalCluster(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster is made with; machines and the fleet can change while it runs."""

    name: str = "local"
    seed: int = 1
    cell: CellSpec
    fleet: tuple[FleetEntry, ...]
    machines: MachineModel = MachineModel()
    audit: bool = False


class TryResult(msgspec.Struct, frozen=True):
    """How a process ended. `status` is its exit code, or minus the signal that killed it."""

    status: int
    reason: str = ""


class TryRunner(Protocol):
    """Runs tries as processes that outlive the server."""

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        """Starts a try. Its end is reported to `LocalWorld.ended`, even if it cannot start."""

    def stop(self, number: int) -> None:
        """Stops a try, with the grace its job allows. Its end is of no interest any more."""

    def adopt(self, number: int) -> TryResult | bool:
        """A try of an earlier server: how it ended, or true if it runs, or false if nothing is known of
        it."""


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

    def take(self) -> list[StartOrder | StopOrder]:
        orders, self._orders = self._orders, []
        return orders

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


class _TurnStream(io.BytesIO):
    """Where the journal puts the lines of a turn."""

    def take(self) -> bytes:
        lines = self.getvalue()
        self.seek(0)
        self.truncate()
        return lines


class LiveTry(msgspec.Struct):
    """A try that is not over: which task it is for, as which incarnation, and since when it runs."""

    task: int
    incarnation: int
    machine: int
    since: int
    #: How often a service has died soon after its start, one time after the other.
    deaths: int = 0


class _Unsaved:
    """What the turn has done, besides what follows from the journal."""

    def __init__(self) -> None:
        self.lines = b""
        self.header = b""
        self.cluster: LocalCluster | None = None
        #: Tries that begin: number, job, index, machine and time; and what to start for each.
        self.tries: list[tuple[int, int, int, str, int]] = []
        self.launches: dict[int, tuple[Job, int, Machine]] = {}
        #: Tries that are over: time, exit status and outcome.
        self.ends: dict[int, tuple[int, int | None, str]] = {}
        self.stops: list[int] = []
        #: Idempotency keys: the key, the digest of what was asked, and the job's id.
        self.keys: list[tuple[str, bytes, str]] = []

    @property
    def is_empty(self) -> bool:
        return not (self.lines or self.header or self.tries or self.ends or self.cluster)

    def end_try(self, number: int, status: int | None, outcome: str, at: int) -> None:
        self.ends[number] = (at, status, outcome)


class LocalWorld:
    """`clock` gives microseconds that never go back."""

    def __init__(
        self,
        store: LocalStore,
        engines: Mapping[str, type[Engine]],
        processes: TryRunner,
        clock: Callable[[], int],
        *,
        cluster: LocalCluster | None = None,
        deliberator: Deliberator | None = None,
    ) -> None:
        self.store = store
        self._engines = engines
        self._processes = processes
        self._deliberator = deliberator
        self.cluster = self._known_cluster(cluster)
        # Time goes on where an earlier server ended, whatever this process's clock says.
        last = store.rows("SELECT max(at) FROM turns")[0][0]
        offset = (0 if last is None else int(last) + 1) - clock()
        self._clock: Callable[[], int] = lambda: clock() + offset
        self.projection = Projection(self._next("jobs", "seq"))
        self._turn = self._next("turns", "turn")
        self._try = self._next("tries", "try")
        self._life = self._next("lives", "life") - 1
        #: Tries that are not over, by number and by task.
        self.tries: dict[int, LiveTry] = {}
        self._by_task: dict[int, int] = {}
        self._unsaved = _Unsaved()
        #: Services that have died and start again: when, and the number of the try that ended.
        self._restarts: list[tuple[int, int]] = []
        for row in self._open_rows():
            self.projection.load(row)
        self._begin_life(self._stored_machines(), processes.adopt)
        self.commit()

    def _known_cluster(self, cluster: LocalCluster | None) -> LocalCluster:
        stored = self.store.meta(_CLUSTER)
        if stored is not None:
            return msgspec.json.decode(stored, type=LocalCluster)
        if cluster is None:
            raise ModelError("a new cluster needs machines and a fleet")
        with self.store.turn() as turn:
            turn.execute("INSERT INTO meta VALUES (?, ?)", (_CLUSTER, _ENCODE(cluster).decode()))
            turn.executemany(
                "INSERT INTO machines (name, spec, is_draining) VALUES (?,?,0)",
                [(machine.name, _ENCODE(machine)) for machine in cluster.cell.machines],
            )
        return cluster

    def _next(self, table: str, column: str) -> int:
        largest = self.store.rows(f"SELECT max({column}) FROM {table}")[0][0]
        return 1 if largest is None else int(largest) + 1

    def _stored_machines(self) -> list[tuple[Machine, bool]]:
        rows = self.store.rows("SELECT spec, is_draining FROM machines ORDER BY number")
        return [(_MACHINE.decode(spec), bool(is_draining)) for spec, is_draining in rows]

    def _open_rows(self) -> list[JobRow]:
        """The jobs that an earlier server left."""
        jobs = self.store.rows(
            f"SELECT seq, spec, scheduler, submitted, version, {', '.join(STATES)} FROM jobs "
            "WHERE ended IS NULL ORDER BY seq"
        )
        rows = {}
        for seq, spec, scheduler, submitted, version, *counts in jobs:
            by_state = dict(zip(STATES, counts, strict=True))
            rows[seq] = JobRow(
                seq, _JOB.decode(spec), scheduler, submitted, by_state, {}, None, version
            )
        tasks = self.store.rows(
            "SELECT tasks.* FROM tasks JOIN jobs ON tasks.job = jobs.seq WHERE jobs.ended IS NULL"
        )
        for seq, index, *fields in tasks:
            rows[seq].tasks[index] = TaskRow(*fields)
        return list(rows.values())

    def _begin_life(
        self, machines: Sequence[tuple[Machine, bool]], adopt: Callable[[int], TryResult | bool]
    ) -> None:
        """A new host, which goes on with all jobs that are not over."""
        open_rows = sorted(self.projection.by_id.values(), key=lambda row: row.seq)
        self._life += 1
        setup = HostSetup(
            name=self.cluster.name,
            seed=self.cluster.seed + self._life,
            cell=replace(self.cluster.cell, machines=tuple(machine for machine, _ in machines)),
            fleet=tuple(
                replace(entry, decision_time=NotModelled()) for entry in self.cluster.fleet
            ),
            machines=self.cluster.machines,
            network=None,
            partitions=(),
            failover=0,
            audit=self.cluster.audit,
            output=Output(tasks=False),
            began=self._clock(),
            is_resumed=bool(open_rows),
        )
        self._stream, self.machines = _TurnStream(), LocalMachines()
        self._journal = Journal(self._stream)
        self.host = Host(
            setup,
            self._engines,
            self.machines,
            DirectLinks(),
            self._journal,
            budgets=ClockBudgets(),
            deliberator=self._deliberator,
        )
        self._journal.flush()
        self._unsaved.header = self._stream.getvalue()
        self.projection.begin_life(machine for machine, _ in machines)
        self.host.start()
        ends = [end for row in open_rows for end in self._restore(row, adopt)]
        for number, (_, is_draining) in enumerate(machines):
            if is_draining:
                self.host.change_machine(DrainMachine(number))
        for number, end in ends:
            self.ended(number, end)

    def _restore(
        self, row: JobRow, adopt: Callable[[int], TryResult | bool]
    ) -> list[tuple[int, TryResult]]:
        """Tasks go on whose processes do, or have ended meanwhile; the others are pending."""
        numbers = {machine.name: at for at, machine in enumerate(self.projection.machines)}
        running: dict[int, tuple[int, int]] = {}
        ends = []
        for index, task in row.tasks.items():
            if task.state != "running" or task.try_number is None:
                continue
            found = adopt(task.try_number)
            if found is False or task.machine not in numbers:
                self._unsaved.end_try(task.try_number, None, "lost", self._clock())
                if found is True:
                    self._unsaved.stops.append(task.try_number)
                continue
            running[index] = (numbers[task.machine], task.try_number)
            if isinstance(found, TryResult):
                ends.append((task.try_number, found))
        state = replace(
            row.as_left(),
            running=tuple(running),
            machines=tuple(machine for machine, _ in running.values()),
        )
        restored = self.host.restore(row.job, state)
        for index, (machine, number) in running.items():
            if index not in restored.incarnations:
                self._unsaved.end_try(number, None, "lost", self._clock())
                self._unsaved.stops.append(number)
                continue
            self._note_try(
                number,
                LiveTry(
                    task=task_number(restored.number, index),
                    incarnation=restored.incarnations[index],
                    machine=machine,
                    since=row.tasks[index].started or 0,
                ),
            )
        return [(number, end) for number, end in ends if number in self.tries]

    @property
    def now(self) -> int:
        return self._clock()

    def next_due(self) -> int | None:
        """When `commit` has something to do if nothing else happens before."""
        due = [at for at, _ in self._restarts]
        if self.host.runtime.has_events:
            due.append(self.host.runtime.next_at)
        return min(due, default=None)

    # Inputs. Each is part of the turn that the next `commit` ends.

    def submit(self, job: Job, key: tuple[str, bytes] | None = None) -> None:
        """A new job. `key` is the submission's idempotency key, and a digest of what it asked for."""
        if self.job_seq(job.id) is not None:
            raise ModelError(f"there is a job {job.id} already", field="id", expected="a new id")
        self._settle()
        self.host.submit(job)
        if key is not None:
            self._unsaved.keys.append((*key, job.id))

    def job_seq(self, name: str) -> int | None:
        """The number under which a job of any age is stored."""
        row = self.projection.by_id.get(name)
        if row is not None:
            return row.seq
        rows = self.store.rows("SELECT seq FROM jobs WHERE id = ?", (name,))
        return int(rows[0][0]) if rows else None

    def cancel(self, name: str, indices: Sequence[int] | None = None) -> int:
        """Returns how many tasks were cancelled."""
        row = self._open_row(name)
        self._settle()
        tasks = None if indices is None else task_numbers(row.number, list(indices))
        return len(self.host.cancel(row.number, tasks))

    def scale(self, name: str, job: Job) -> None:
        row = self._open_row(name)
        self._settle()
        self.host.scale(row.number, job)

    def _open_row(self, name: str) -> JobRow:
        # What was submitted in this turn has no row yet.
        self._fold()
        row = self.projection.by_id.get(name)
        if row is None:
            if self.job_seq(name) is None:
                raise UnknownName("job", name, list(self.projection.by_id))
            raise ModelError(f"job {name} is over", expected="a job that is not over")
        return row

    def add_machine(self, machine: Machine) -> None:
        if machine.name in self.machine_numbers():
            raise ModelError(f"there is a machine {machine.name} already", field="name")
        self._change(AddMachine(machine))

    def remove_machine(self, name: str) -> None:
        self._change(RemoveMachine(self.machine_number(name)))

    def resize_machine(self, name: str, capacity: Resources) -> None:
        self._change(ResizeMachine(self.machine_number(name), capacity))

    def drain_machine(self, name: str, *, draining: bool = True) -> None:
        self._change(DrainMachine(self.machine_number(name), draining))

    def _change(self, change: MachineChange) -> None:
        self._settle()
        self.host.change_machine(change)
        self._fold()

    def machine_numbers(self) -> dict[str, int]:
        """The machines there are, by name."""
        view = self.host.view
        return {
            machine.name: number
            for number, machine in enumerate(self.projection.machines)
            if view.is_up(number)
        }

    def machine_number(self, name: str) -> int:
        numbers = self.machine_numbers()
        if name not in numbers:
            raise UnknownName("machine", name, list(numbers))
        return numbers[name]

    def change_fleet(self, fleet: tuple[FleetEntry, ...]) -> None:
        """Other schedulers from now on. Tasks that run go on; those in queues are placed anew. A fleet
        that cannot take every job leaves things as they are."""
        self.commit()
        before, tries, draining = self.cluster, self.tries, self.host.view.is_draining
        machines = [
            (self.projection.machines[number], draining(number))
            for number in self.machine_numbers().values()
        ]

        def begin(cluster: LocalCluster) -> None:
            self.cluster, self.tries, self._by_task = cluster, {}, {}
            self._unsaved = _Unsaved()
            self._begin_life(machines, lambda number: number in tries)

        try:
            begin(replace(before, fleet=fleet))
        except BaseException:
            begin(before)
            raise
        self._unsaved.cluster = self.cluster
        self.commit()

    def ended(self, number: int, end: TryResult) -> None:
        """A process has ended. A service that dies starts again where it is."""
        live = self.tries.get(number)
        if live is None:
            return
        self._settle()
        self._unsaved.end_try(number, end.status, end.reason or "exited", self._clock())
        if self._is_service(live.task):
            self._restart_later(number, live)
            return
        self._forget_try(number)
        if end.status == 0:
            self.host.end_task(live.task, live.incarnation)
        else:
            self.host.fail_task(live.task, live.incarnation, end.status, end.reason)

    def _is_service(self, task: int) -> bool:
        job = self.host.jobs.job(job_of(task))
        return any(group.endless for group, _ in job.tasks_by_group(np.array([task], np.int64)))

    def _restart_later(self, number: int, live: LiveTry) -> None:
        """The more often it dies soon after its start, the longer it waits."""
        now = self._clock()
        live.deaths = live.deaths + 1 if now - live.since < CALM else 1
        wait = min(FIRST_RESTART << min(live.deaths - 1, 16), LONGEST_RESTART)
        heapq.heappush(self._restarts, (now + wait, number))

    def _take_restarts(self) -> None:
        now = self._clock()
        while self._restarts and self._restarts[0][0] <= now:
            _, number = heapq.heappop(self._restarts)
            live = self.tries.pop(number, None)
            if live is not None:
                live.since = now
                self._launch(live)

    def _launch(self, live: LiveTry) -> None:
        """A process for a task that holds its claim."""
        number, self._try = self._try, self._try + 1
        self._note_try(number, live)
        row, index = self.projection.by_number[job_of(live.task)], index_of(live.task)
        self.projection.note_try(row, index, number, live.since)
        machine = self.projection.machines[live.machine]
        self._unsaved.launches[number] = (row.job, index, machine)
        self._unsaved.tries.append((number, row.seq, index, machine.name, live.since))

    def _note_try(self, number: int, live: LiveTry) -> None:
        self.tries[number] = live
        self._by_task[live.task] = number

    def _forget_try(self, number: int) -> LiveTry:
        live = self.tries.pop(number)
        del self._by_task[live.task]
        return live

    # Turns.

    def commit(self) -> None:
        """Carries out what is due, writes the turn, and then acts on it."""
        self._settle()
        self._fold()
        self._take_orders()
        self._take_restarts()
        if self._unsaved.is_empty:
            return
        self._write()
        self.projection.committed()
        unsaved, self._unsaved = self._unsaved, _Unsaved()
        for number, (job, index, machine) in unsaved.launches.items():
            self._processes.launch(number, job, index, machine)
        for number in unsaved.stops:
            self._processes.stop(number)

    def _settle(self) -> None:
        """Carries out all that is due by now."""
        now = self._clock()
        item = self.host.run_until(now)
        assert item is None, "nobody else pushes anything"
        self.host.runtime.advance(now)

    def _fold(self) -> None:
        self._journal.flush()
        lines = self._stream.take()
        if lines:
            self._unsaved.lines += lines
            self.projection.fold(lines)

    def _take_orders(self) -> None:
        """What the host has told the machines since the last turn, in order."""
        for order in self.machines.take():
            match order:
                case StartOrder(task, machine, incarnation):
                    self._launch(LiveTry(task, incarnation, machine, self._clock()))
                case StopOrder(task, _, why):
                    number = self._by_task.get(task)
                    if number is None:
                        continue
                    self._forget_try(number)
                    outcome = _OUTCOMES.get(why, "lost")
                    self._unsaved.end_try(number, None, outcome, self._clock())
                    if self._unsaved.launches.pop(number, None) is None:
                        self._unsaved.stops.append(number)

    def _write(self) -> None:
        unsaved, number, at = self._unsaved, self._turn, self._clock()
        with self.store.turn() as turn:
            if unsaved.header:
                turn.execute("INSERT INTO lives VALUES (?,?,?)", (self._life, at, unsaved.header))
            turn.execute(
                "INSERT INTO turns VALUES (?,?,?,?)", (number, self._life, at, unsaved.lines)
            )
            self.projection.write(turn, number, at)
            turn.executemany("INSERT INTO tries VALUES (?,?,?,?,?,NULL,NULL,'')", unsaved.tries)
            turn.executemany(
                "UPDATE tries SET ended = ?, exit_status = ?, outcome = ? WHERE try = ?",
                [(*end, number) for number, end in unsaved.ends.items()],
            )
            turn.executemany("INSERT INTO keys VALUES (?,?,?,?)", [(*k, at) for k in unsaved.keys])
            if unsaved.cluster is not None:
                spec = _ENCODE(unsaved.cluster).decode()
                turn.execute("UPDATE meta SET value = ? WHERE key = ?", (spec, _CLUSTER))
        self._turn += 1
