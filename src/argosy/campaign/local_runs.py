"""Runs scenarios in the local world: the code of `argosy up`, over a real database, in virtual time.

Processes are played. They run as long as the scenario says, some fail, and they outlive their server as
real ones do. A scheduler that crashes in the scenario is a server that is killed: in the middle of a
turn, before or after it is written, or when only some of its orders have been carried out. The next
server goes on with the same directory. Whoever got no answer asks again.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from argosy.campaign.played_ends import PlayedEnds
from argosy.campaign.recordings import WorldRecording
from argosy.campaign.scheduled_faults import ScheduledFaults
from argosy.campaign.stored_journals import stored_counts, stored_journals
from argosy.engines.api import Engine
from argosy.model.errors import ScenarioError
from argosy.model.jobs import Job, task_name
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentFault,
    Partition,
    Scenario,
)
from argosy.model.truth import SimulatedJob
from argosy.testing.scripted_world import FOREVER, with_retries
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.turn import LocalCluster, TryResult
from argosy.worlds.local.world import LocalWorld

#: How long a process takes to stop, at most; how long a server is gone that the scenario never brings
#: back.
LONGEST_STOP: Final = 50_000
USUAL_ABSENCE: Final = 1_000_000

TimedAction: TypeAlias = Callable[[], None]
ProcessEnded: TypeAlias = Callable[[int, TryResult | None], None]


class VirtualTime:
    """The present, and what is going to happen."""

    def __init__(self) -> None:
        self.now = 0
        self._due: list[tuple[int, int, TimedAction]] = []
        self._written = 0

    def at(self, time: int, action: TimedAction) -> None:
        self._written += 1
        heapq.heappush(self._due, (time, self._written, action))

    @property
    def next_at(self) -> int:
        return self._due[0][0] if self._due else FOREVER

    def take(self) -> TimedAction | None:
        """The next action that is due by now."""
        return heapq.heappop(self._due)[2] if self.next_at <= self.now else None


class PlayedTry(msgspec.Struct):
    task: tuple[str, int]
    machine: str
    is_stopping: bool = False
    end: TryResult | None = None


class PlayedProcesses:
    """A computer whose processes outlive servers: a `TryRunner`. `ended` hears of ends, if there is a
    server."""

    def __init__(self, scenario: Scenario, time: VirtualTime, ended: ProcessEnded) -> None:
        self._time = time
        self._ended = ended
        self._random = Random(scenario.seed).child("processes")
        self._ends = PlayedEnds(scenario, self._random)
        self.tries: dict[int, PlayedTry] = {}

    def launch(self, number: int, job: Job, index: int, machine: Machine) -> None:
        task = job.id, index
        assert number not in self.tries, f"try {number} is launched twice"
        assert task not in self._running().values(), f"{task_name(*task)} runs already"
        self.tries[number] = PlayedTry(task, machine.name)
        end = self._ends.draw(job.id, index)
        if end is not None:
            result = TryResult(1, "the script says so") if end.fails else TryResult(0)
            self._end_later(number, end.after, result)

    def stop(self, number: int) -> None:
        if number in self.tries:
            self.tries[number].is_stopping = True
        end = TryResult(-15, "stopped", was_stopped=True)
        self._end_later(number, self._random.below(LONGEST_STOP), end)

    def adopt(self, number: int) -> TryResult | bool:
        played = self.tries.get(number)
        if played is None:
            return False
        return True if played.end is None else played.end

    def discard_after(self, number: int) -> int:
        return max([number, *self.tries])

    def on_machines(self) -> dict[str, str]:
        """The machine of each task that has a process which was not told to stop."""
        return {
            task_name(*task): self.tries[number].machine
            for number, task in self._running().items()
            if not self.tries[number].is_stopping
        }

    def _running(self) -> dict[int, tuple[str, int]]:
        return {number: each.task for number, each in self.tries.items() if each.end is None}

    def _end_later(self, number: int, delay: int, end: TryResult) -> None:
        self._time.at(self._time.now + delay, partial(self._end, number, end))

    def _end(self, number: int, end: TryResult) -> None:
        played = self.tries.get(number)
        if played is not None and played.end is None:
            played.end = end
            self._ended(number, end)
        elif end.was_stopped:
            # Whoever stops a try hears of its end, even if it was over or never began.
            self._ended(number, None if played is None else played.end)


class RestartedCluster:
    """A cluster on one directory, and its servers, one after the other."""

    def __init__(
        self, scenario: Scenario, engines: Mapping[str, type[Engine]], directory: Path
    ) -> None:
        self.scenario = scenario
        self._engines = engines
        self._directory = directory
        self.time = VirtualTime()
        self.processes = PlayedProcesses(scenario, self.time, self._heard)
        self._random = Random(scenario.seed).child("kills")
        #: As an operator knows them.
        self._machines = {machine.name: machine for machine in scenario.cell.machines}
        self._unsubmitted = {made.id: made for made in scenario.jobs}
        #: Inputs of the present turn that nobody has been answered on yet, and those that wait for a
        #: server.
        self._asked: list[TimedAction] = []
        self._waiting: list[TimedAction] = []
        self._world: LocalWorld | None = None
        self._absence: int | None = None

    def run(self) -> WorldRecording:
        for made in self.scenario.jobs:
            self.time.at(made.submit, partial(self._ask, partial(self._submit, made)))
        faults = ScheduledFaults(
            self.scenario, self, self._random, self.time.at, lambda: self.time.now
        )
        faults.begin()
        self._start()
        horizon = FOREVER if self.scenario.horizon is None else self.scenario.horizon
        while self._unsubmitted or self._is_anything_open():
            due = min(self.time.next_at, self._next_due())
            if due > horizon or due >= FOREVER:
                break
            self.time.now = max(self.time.now, due)
            while (action := self.time.take()) is not None:
                action()
            self._end_turn()
        if self._world is None:
            self._start()
        return self._recorded(horizon)

    def _is_anything_open(self) -> bool:
        return self._world is None or self._world.host.runtime.open_tasks > 0

    def _next_due(self) -> int:
        due = None if self._world is None else self._world.next_due()
        return FOREVER if due is None else due

    # Servers.

    def _start(self) -> None:
        store = LocalStore(self._directory, is_lasting=False)
        cluster = LocalCluster(
            name=self.scenario.name,
            seed=self.scenario.seed,
            cell=self.scenario.cell,
            fleet=self.scenario.fleet,
            machines=self.scenario.machines,
            audit=True,
        )
        self._world = LocalWorld(
            store,
            self._engines,
            self.processes,
            lambda: self.time.now,
            cluster=cluster,
            began=self.time.now,
        )
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            self._ask(action)
        self._world.commit()
        self._asked.clear()

    def _end_turn(self) -> None:
        world = self._world
        if world is None:
            return
        if self._absence is None:
            world.commit()
            self._asked.clear()
            return
        moment = self._random.below(4)
        if moment == 0:
            # Nobody got an answer, so everybody asks again.
            self._waiting = self._asked
            self._asked = []
        else:
            world.write()
            if moment == 2:
                world.act(0.0)
            elif moment == 3:
                world.act()
        self._asked.clear()
        world.store.close()
        # Time goes on, so that what the next server does comes later.
        self.time.at(self.time.now + max(1, self._absence), self._start)
        self._world, self._absence = None, None

    def _ask(self, action: TimedAction) -> None:
        """Something that a user, an operator or a process tells the server, as soon as there is one."""
        if self._world is None:
            self._waiting.append(action)
            return
        self._asked.append(action)
        action()

    def _server(self) -> LocalWorld:
        assert self._world is not None
        return self._world

    # What is told.

    def _heard(self, number: int, end: TryResult | None) -> None:
        """A process has ended. If there is no server, the next one finds out by itself."""
        if self._world is not None:
            self._world.ended(number, end)

    def _submit(self, made: SimulatedJob) -> None:
        self._server().submit(with_retries(made.job))
        self._unsubmitted.pop(made.id, None)

    def crash_machine(self, name: str, down: int | None) -> None:
        self._ask(partial(self._remove, name, down))

    def drain_machine(self, name: str, draining: bool) -> None:
        self._ask(partial(self._drain, name, draining))

    def resize_machine(self, name: str, capacity: Resources) -> None:
        self._ask(partial(self._resize, name, capacity))

    def kill_server(self, down: int | None) -> None:
        """At the end of this turn."""
        if self._world is not None:
            self._absence = USUAL_ABSENCE if down is None else down

    def disturb(self, fault: Partition | AgentFault) -> None:
        """There is no network."""

    def _is_there(self, name: str) -> bool:
        return name in self._server().machine_numbers()

    def _remove(self, name: str, down: int | None) -> None:
        if self._is_there(name):
            self._server().remove_machine(name)
            if down is not None:
                back = partial(self._ask, partial(self._bring_back, name))
                self.time.at(self.time.now + down, back)

    def _bring_back(self, name: str) -> None:
        if not self._is_there(name):
            self._server().add_machine(self._machines[name])

    def _drain(self, name: str, draining: bool) -> None:
        if self._is_there(name):
            self._server().drain_machine(name, draining=draining)

    def _resize(self, name: str, capacity: Resources) -> None:
        self._machines[name] = replace(self._machines[name], capacity=capacity)
        if self._is_there(name):
            self._server().resize_machine(name, capacity)

    # What was recorded.

    def _recorded(self, horizon: int) -> WorldRecording:
        store = self._server().store
        lives, counts = stored_journals(store), stored_counts(store)
        is_open = self._is_anything_open() and horizon < FOREVER
        store.close()
        return WorldRecording(
            journal=lives[0],
            later=lives[1:],
            ended_at=max(self.time.now, horizon) if is_open else self.time.now,
            counts=counts,
            processes=self.processes.on_machines(),
        )


def check_unshared(scenario: Scenario) -> None:
    """Raises a `ScenarioError` for jobs that live clusters do not run."""
    for made in scenario.jobs:
        if made.job.activities:
            raise ScenarioError(
                f"the tasks of job {made.id} share work, which live clusters do not support",
                hint="--without phases draws no such jobs",
            )


class LocalRuns(msgspec.Struct, frozen=True):
    """The local world, for campaigns."""

    is_exact: bool = False
    repeats: bool = True
    lacks: frozenset[str] = frozenset(
        {
            "agent-faults",
            "clusters",
            "decision-times",
            "latency",
            "message-faults",
            "partitions",
            "phases",
        }
    )

    def check(self, scenario: Scenario) -> None:
        check_unshared(scenario)

    def run(self, scenario: Scenario, engines: Mapping[str, type[Engine]]) -> WorldRecording:
        with tempfile.TemporaryDirectory(prefix="argosy-campaign-") as directory:
            return RestartedCluster(scenario, engines, Path(directory)).run()
