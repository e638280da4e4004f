"""The local world: a host whose machines are slices of this computer and whose tasks are processes.

Everything happens in *turns*. Inputs (submissions, reports of processes, timers) go to the host as they
come. `write` ends a turn: it writes the journal's new lines and all that follows from them to the
database. Only then are those told who wait, and processes started and stopped (`act`). If the database
cannot be written for now, the turn stays open, nothing is acted on, and the next `write` tries again.

A *life* is the time of one host. A server that starts on a directory with jobs begins a new life, in
which they are restored; so does a change of the fleet.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from argosy.engines.api import Engine
from argosy.host.host import Host
from argosy.host.journal import Journal
from argosy.host.protocols import Deliberator, DirectLinks, RemoteAgents
from argosy.host.setup import HostSetup
from argosy.model.errors import EngineFault, FleetRefused, ModelError, UnknownName
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job, index_of, job_of, task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, NotModelled, Output
from argosy.model.tasks import task_numbers
from argosy.model.transactions import (
    AddMachine,
    DrainMachine,
    MachineChange,
    RelabelMachine,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.worlds.clocks import ClockBudgets
from argosy.worlds.local.handover import Handover, StoppingTry
from argosy.worlds.local.projection import JobRow, Projection
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.stored_cluster import (
    known_cluster,
    open_jobs,
    store_cluster,
    stored_machines,
)
from argosy.worlds.local.turn import (
    LiveTry,
    LocalCluster,
    LocalMachines,
    PlannedLaunch,
    StartOrder,
    StopOrder,
    TryResult,
    TryRunner,
    TurnStream,
    Unsaved,
)

#: How long after its death a service starts again; doubles with every death soon after a start.
FIRST_RESTART: Final = 1_000_000
LONGEST_RESTART: Final = 60_000_000
#: A service that has run for so long is taken to be well.
CALM: Final = 60_000_000

#: What became of a try whose task lost its place.
_OUTCOMES: Final = {
    Why.CANCELLED: "cancelled",
    Why.PREEMPTED: "preempted",
    Why.MOVED: "moved",
    Why.RELEASED: "released",
    Why.MACHINE_GONE: "evicted",
    Why.NO_ROOM: "evicted",
}


class LocalWorld:
    """`clock` gives microseconds that never go back. Time goes on where an earlier server ended, or at
    `began` if that is later, so that times can be told as dates even though clocks are set back."""

    def __init__(
        self,
        store: LocalStore,
        engines: Mapping[str, type[Engine]],
        processes: TryRunner,
        clock: Callable[[], int],
        *,
        cluster: LocalCluster | None = None,
        deliberator: Deliberator | None = None,
        agents: RemoteAgents | None = None,
        began: int = 0,
    ) -> None:
        self.store = store
        self._engines = engines
        self._processes = processes
        self._deliberator = deliberator
        self._agents = agents
        self.cluster = known_cluster(store, cluster)
        last = store.rows("SELECT at FROM turns ORDER BY turn DESC LIMIT 1")
        offset = max(last[0][0] + 1 if last else 0, began) - clock()
        self._clock: Callable[[], int] = lambda: clock() + offset
        self.projection = Projection(self._next("jobs", "seq"))
        self._turn = self._next("turns", "turn")
        # A damaged database may have forgotten the last tries; their processes must not go on.
        self._try = processes.discard_after(self._next("tries", "try") - 1) + 1
        #: Counts hosts: grows with every start of a server and every change of the fleet.
        self.life = self._next("lives", "life") - 1
        #: Tries that are not over, by number and by task.
        self.tries: dict[int, LiveTry] = {}
        self._by_task: dict[int, int] = {}
        self._unsaved = Unsaved()
        #: Ids of jobs that were submitted since the journal was read last.
        self._new_ids: set[str] = set()
        #: An id that no job has: looked up since the last submission.
        self._free_id: str | None = None
        #: What is on the disk and still to be done: tries to launch, with what they need, and to stop.
        self._launches: dict[int, PlannedLaunch] = {}
        self._stops: deque[int] = deque()
        #: Tries that start again where they are: when, and the number of the try that ended.
        self._restarts: list[tuple[int, int]] = []
        self._handover = Handover()
        for row in open_jobs(store):
            self.projection.load(row)
        self._load_stops()
        self._begin_life(stored_machines(store), processes.adopt)
        self.commit()

    def _next(self, table: str, column: str) -> int:
        largest = self.store.rows(f"SELECT max({column}) FROM {table}")[0][0]
        return 1 if largest is None else int(largest) + 1

    def _load_stops(self) -> None:
        tasks = {row.seq: row.job.tasks for row in self.projection.by_id.values()}
        rows = self.store.rows("SELECT try, job, idx, outcome FROM stops JOIN tries USING (try)")
        for number, seq, index, outcome in rows:
            is_wanted = outcome != "cancelled" and index < tasks.get(seq, 0)
            self._stop(StoppingTry(number, seq, index, is_wanted))

    def _begin_life(
        self, machines: Sequence[tuple[Machine, bool]], adopt: Callable[[int], TryResult | bool]
    ) -> None:
        """A new host, which goes on with all jobs that are not over."""
        open_rows = self.open_rows()
        self.life += 1
        setup = self.setup([machine for machine, _ in machines], is_resumed=bool(open_rows))
        self._stream, self.machines = TurnStream(), LocalMachines()
        self._journal = Journal(self._stream)
        self.host = Host(
            setup,
            self._engines,
            self.machines,
            DirectLinks(),
            self._journal,
            budgets=ClockBudgets(),
            deliberator=self._deliberator,
            agents=self._agents,
        )
        self._journal.flush()
        self._unsaved.header = self._stream.take()
        self.projection.begin_life((machine for machine, _ in machines), self.life, setup.began)
        self.host.start()
        ends = [end for row in open_rows for end in self._restore(row, adopt)]
        for number, (_, is_draining) in enumerate(machines):
            if is_draining:
                self.host.change_machine(DrainMachine(number))
        for number, end in ends:
            self.ended(number, end)

    def open_rows(self) -> list[JobRow]:
        """Jobs that are not over, in the order of submission."""
        return sorted(self.projection.by_id.values(), key=lambda row: row.seq)

    def setup(self, machines: Sequence[Machine], *, is_resumed: bool) -> HostSetup:
        """What a host of this cluster that begins now is built from."""
        return HostSetup(
            name=self.cluster.name,
            seed=self.cluster.seed + self.life,
            cell=replace(self.cluster.cell, machines=tuple(machines)),
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
            is_resumed=is_resumed,
            federation=self.cluster.federation,
            has_remote_agents=self._agents is not None,
        )

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
                    self._stop(StoppingTry(task.try_number, row.seq, index, True))
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
                self._stop(StoppingTry(number, row.seq, index, True))
                continue
            self._note_try(
                number,
                LiveTry(
                    task=task_number(restored.number, index),
                    incarnation=restored.incarnations[index],
                    machine=machine,
                    since=row.tasks[index].started or 0,
                    seq=row.seq,
                ),
            )
        return [(number, end) for number, end in ends if number in self.tries]

    @property
    def now(self) -> int:
        return self._clock()

    def next_due(self) -> int | None:
        """When `commit` has something to do if nothing else happens before."""
        if not self._unsaved.is_empty:
            return self._clock()
        due = [at for at, _ in self._restarts[:1]]
        if self.host.runtime.has_events:
            due.append(self.host.runtime.next_at)
        return min(due, default=None)

    # Inputs. Each is part of the turn that the next `commit` ends.

    def submit(self, job: Job, key: tuple[str, bytes] | None = None) -> None:
        """A new job. `key` is the submission's idempotency key, and a digest of what it asked for."""
        self._check_new(job)
        self.settle()
        self.host.submit(job)
        self._added(job, key)

    def place(
        self, job: Job, machine: int, by: str, commit: str, key: tuple[str, bytes]
    ) -> Refusal | None:
        """A new job of one task that starts on this machine, as a scheduler elsewhere has decided.
        Returns why it is refused, in which case nothing has happened."""
        self._check_new(job)
        self.settle()
        refusal = self.host.place(job, machine, by, commit)
        if refusal is None:
            self._added(job, key)
        return refusal

    def _added(self, job: Job, key: tuple[str, bytes] | None) -> None:
        self._free_id = None
        self._new_ids.add(job.id)
        if key is not None:
            self._unsaved.keys.append((*key, job.id))

    def _check_new(self, job: Job) -> None:
        if self.job_seq(job.id) is not None:
            raise ModelError(f"there is a job {job.id} already", field="id", expected="a new id")

    def note_key(self, key: str, digest: bytes, job: str) -> None:
        """Something to be found again by `job_of_key`."""
        self._unsaved.keys.append((key, digest, job))

    def new_id(self) -> str:
        """An id for a job that comes without one."""
        number = self.projection.next_seq + len(self._new_ids)
        while self.job_seq(f"job-{number}") is not None:
            number += 1
        return f"job-{number}"

    def job_of_key(self, key: str) -> tuple[bytes, str] | None:
        """What an idempotency key was used for: the digest of what was asked, and the job's id."""
        for known, digest, job in self._unsaved.keys:
            if known == key:
                return digest, job
        rows = self.store.rows("SELECT digest, job FROM keys WHERE key = ?", (key,))
        return (rows[0][0], rows[0][1]) if rows else None

    def job_seq(self, name: str) -> int | None:
        """The number under which a job of any age is stored."""
        if name == self._free_id:
            return None
        if name in self._new_ids:
            self._fold()
        row = self.projection.by_id.get(name)
        if row is not None:
            return row.seq
        rows = self.store.rows("SELECT seq FROM jobs WHERE id = ?", (name,))
        if not rows:
            self._free_id = name
            return None
        return int(rows[0][0])

    def coming_version(self, name: str) -> int | None:
        """The version that a job which is not over has as soon as this turn is on the disk."""
        self._fold()
        return self.projection.coming_version(name)

    def cancel(self, name: str, indices: Sequence[int] | None = None) -> int:
        """Returns how many tasks were cancelled."""
        row = self._open_row(name)
        self.settle()
        tasks = None if indices is None else task_numbers(row.number, list(indices))
        return len(self.host.cancel(row.number, tasks))

    def scale(self, name: str, job: Job) -> None:
        row = self._open_row(name)
        self.settle()
        self.host.scale(row.number, job)
        self._handover.disown(row.seq, job.tasks)

    def _open_row(self, name: str) -> JobRow:
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
        names = [known.name for known in self.projection.machines]
        if machine.name not in names:
            self._change(AddMachine(machine))
            return
        number = names.index(machine.name)
        self._change(ReviveMachine(number))
        self._change(ResizeMachine(number, machine.capacity))
        self._change(RelabelMachine(number, machine.attributes, machine.joins))

    def remove_machine(self, name: str) -> None:
        self._change(RemoveMachine(self.machine_number(name)))

    def resize_machine(self, name: str, capacity: Resources) -> None:
        self._change(ResizeMachine(self.machine_number(name), capacity))

    def drain_machine(self, name: str, *, draining: bool = True) -> None:
        self._change(DrainMachine(self.machine_number(name), draining))

    def _change(self, change: MachineChange) -> None:
        self.settle()
        self.host.change_machine(change)
        self._fold()

    def present_machines(self) -> list[tuple[Machine, bool]]:
        """The machines there are, and whether each is draining."""
        is_draining = self.host.view.is_draining
        return [
            (self.projection.machines[number], is_draining(number))
            for number in self.machine_numbers().values()
        ]

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
        before, tries, machines = self.cluster, self.tries, self.present_machines()

        def begin(cluster: LocalCluster) -> None:
            self.cluster, self.tries, self._by_task = cluster, {}, {}
            self._unsaved = Unsaved(self._unsaved.keys)
            self._begin_life(machines, lambda number: number in tries)
            for number in self.tries.keys() & tries.keys():
                self.tries[number].wait_like(tries[number])

        try:
            begin(replace(before, fleet=fleet))
        except EngineFault as fault:
            begin(before)
            raise FleetRefused.by(fault) from fault
        except BaseException:
            begin(before)
            raise
        self._unsaved.cluster = self.cluster
        self.commit()

    def ended(self, number: int, end: TryResult | None) -> None:
        """A process has ended, or nobody knows what became of it. In that case, and if it is a service,
        the task starts again where it is."""
        self.settle()
        live = self.tries.get(number)
        if live is not None and self.machines.is_stopping(live.task):
            # In this very turn it has lost its place: the task's next try takes over the end.
            self._fold()
            self._take_orders()
            live = None
        if live is None:
            self._handover.ended(number, end)
            self._launch_ready()
            return
        if end is None:
            self._unsaved.end_try(number, None, "lost", self._clock())
            self._restart_later(number, live)
            return
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
        job, index = self.host.jobs.job(job_of(task)), index_of(task)
        # Extra workers are in no group.
        return index < job.tasks and job.group_at(index).endless

    def _restart_later(self, number: int, live: LiveTry) -> None:
        """The more often it dies soon after its start, the longer it waits."""
        now = self._clock()
        live.deaths = live.deaths + 1 if now - live.since < CALM else 1
        live.is_dead = True
        wait = min(FIRST_RESTART << min(live.deaths - 1, 16), LONGEST_RESTART)
        heapq.heappush(self._restarts, (now + wait, number))

    def _take_restarts(self) -> None:
        now = self._clock()
        while self._restarts and self._restarts[0][0] <= now:
            _, number = heapq.heappop(self._restarts)
            live = self.tries.pop(number, None)
            if live is not None:
                live.since, live.is_dead = now, False
                self._launch(live)

    def _launch(self, live: LiveTry) -> None:
        """A process for a task that holds its claim."""
        number, self._try = self._try, self._try + 1
        self._note_try(number, live)
        row, index = self.projection.by_number[job_of(live.task)], index_of(live.task)
        live.seq = row.seq
        self.projection.note_try(row, index, number, live.since)
        machine = self.projection.machines[live.machine]
        self._unsaved.launches[number] = PlannedLaunch(row.seq, row.job, index, machine)
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
        """Writes the turn, and then acts on it."""
        self.write()
        self.act()

    def write(self) -> None:
        """Carries out what is due and ends the turn: all of it is on the disk. `act` is to follow."""
        self.settle()
        self._fold()
        self._take_orders()
        self._take_restarts()
        if self._unsaved.is_empty:
            return
        self._unsaved.gone += self._handover.take_gone()
        self._write()
        self.projection.committed()
        unsaved, self._unsaved = self._unsaved, Unsaved()
        for number in unsaved.stops:
            if self._launches.pop(number, None) is not None or self._handover.drop(number):
                # It was not launched yet.
                self._handover.ended(number, None)
            else:
                self._stops.append(number)
        self._handover.hold(unsaved.launches)
        self._launch_ready()

    def act(self, seconds: float | None = None) -> bool:
        """Starts and stops processes as the written turns say, for so long at most. Returns whether
        there is more to do."""
        end = None if seconds is None else self._clock() + int(seconds * 1_000_000)
        while self._stops or self._launches:
            if self._stops:
                self._processes.stop(self._stops.popleft())
            else:
                number = next(iter(self._launches))
                planned = self._launches.pop(number)
                self._processes.launch(number, planned.job, planned.index, planned.machine)
            if end is not None and self._clock() >= end:
                break
        return bool(self._stops or self._launches)

    def _launch_ready(self) -> None:
        for number, planned, former, end in self._handover.ready():
            if end is None:
                self._launches[number] = planned
            else:
                self.ended(number, end)
                outcome = f"ended as try {former}"
                self._unsaved.end_try(number, end.status, outcome, self._clock())

    def settle(self) -> None:
        """Carries out all that is due by now."""
        now = self._clock()
        item = self.host.run_until(now)
        assert item is None, "nobody else pushes anything"
        self.host.runtime.advance(now)

    def _fold(self) -> None:
        self._journal.flush()
        self._new_ids.clear()
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
                    live = self._forget_try(number)
                    if live.is_dead:
                        continue
                    outcome = _OUTCOMES.get(why, "lost")
                    self._unsaved.end_try(number, None, outcome, self._clock())
                    if self._unsaved.launches.pop(number, None) is None:
                        is_wanted = why is not Why.CANCELLED
                        self._stop(StoppingTry(number, live.seq, index_of(task), is_wanted))

    def _stop(self, stopping: StoppingTry) -> None:
        self._handover.stop(stopping)
        self._unsaved.stops.append(stopping.number)

    def _write(self) -> None:
        unsaved, number, at = self._unsaved, self._turn, self._clock()
        with self.store.turn() as turn:
            if unsaved.header:
                turn.execute("INSERT INTO lives VALUES (?,?,?)", (self.life, at, unsaved.header))
            turn.execute(
                "INSERT INTO turns VALUES (?,?,?,?,?)",
                (number, self.life, at, unsaved.lines, self.projection.encoded_changes(at)),
            )
            self.projection.write(turn, number, at)
            turn.executemany("INSERT INTO tries VALUES (?,?,?,?,?,NULL,NULL,'')", unsaved.tries)
            turn.executemany(
                "UPDATE tries SET ended = ?, exit_status = ?, outcome = ? WHERE try = ?",
                [(*end, number) for number, end in unsaved.ends.items()],
            )
            stops = [(number,) for number in unsaved.stops]
            turn.executemany("INSERT OR IGNORE INTO stops VALUES (?)", stops)
            turn.executemany("DELETE FROM stops WHERE try = ?", [(n,) for n in unsaved.gone])
            turn.executemany("INSERT INTO keys VALUES (?,?,?,?)", [(*k, at) for k in unsaved.keys])
            if unsaved.cluster is not None:
                store_cluster(turn, unsaved.cluster)
        self._turn += 1
