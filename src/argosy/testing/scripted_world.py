"""A world driven by hand: tests set its clock, and its machines follow a script.

To the host, its machines are real: they are told to start and stop each attempt at a task, and report
the outcome. The script makes them misbehave as real ones do:

- reports come late, and some are lost and sent again;
- every report is sent twice, so that one of them is about an attempt that is over;
- a process that is stopped still reports its end, too late;
- some attempts fail, for each task at most as often as its job allows.

Tasks run as long as the scenario says, so that a scenario can be checked here as in the simulated world.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.engines.api import Engine
from argosy.host.host import Host
from argosy.host.journal import Journal
from argosy.host.protocols import Deliberator
from argosy.host.setup import HostSetup
from argosy.model.explanations import Why
from argosy.model.jobs import Job, index_of, job_of
from argosy.model.random import Random
from argosy.model.scenario import Scenario
from argosy.model.transactions import MachineArray, TaskArray
from argosy.model.truth import SimulatedJob
from argosy.worlds.clocks import ClockBudgets
from argosy.worlds.sim.faults import FaultPlan
from argosy.worlds.sim.ground_truth import running_times
from argosy.worlds.sim.network import SimulatedNetwork

FOREVER: Final = 2**62
#: The longest delay of a report; after how long a lost report is sent again.
LATE: Final = 20_000
AGAIN: Final = 700_000
#: The share of attempts that fail; the share of reports that are lost at first.
FAILING: Final = 0.1
LOST: Final = 0.1
RETRIES: Final = 5

Action = Callable[[], None]


class SharedWork:
    """The activities that the workers of a job do together, phase by phase."""

    def __init__(self, made: SimulatedJob) -> None:
        phases = zip(made.job.activities, made.truth[0].phases, strict=True)
        #: Remaining work in each unfinished phase: activities x duration.
        self.left = [(float(count * each), count, each) for count, each in phases]
        self.total = len(self.left)
        self.workers: dict[int, int] = {}
        self.since = 0
        self.version = 0

    def advance(self, now: int) -> None:
        if self.left:
            work, count, each = self.left[0]
            done = (now - self.since) * min(len(self.workers), count)
            self.left[0] = (max(0.0, work - done), count, each)
        self.since = now

    def next_end(self) -> int | None:
        if not self.workers or not self.left:
            return None
        work, count, _ = self.left[0]
        return self.since + int(-(-work // min(len(self.workers), count)))


class ScriptedMachines:
    """Carry out the host's requests, and report with delays."""

    acts = True

    def __init__(self, world: ScriptedWorld, seed: int) -> None:
        self._world = world
        self._random = Random(seed).child("script")
        self._times: dict[int, tuple[int, ...]] = {}
        self._shared: dict[int, SharedWork] = {}
        self._failures: Counter[int] = Counter()
        #: Running attempts, as the machines know them.
        self.running: dict[int, int] = {}

    def add(self, number: int, made: SimulatedJob) -> None:
        self._times[number] = running_times(made)
        if made.job.activities:
            self._shared[number] = SharedWork(made)

    def start(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64]
    ) -> None:
        for task, incarnation in zip(tasks.tolist(), incarnations.tolist(), strict=True):
            assert task not in self.running, "a task runs twice"
            self.running[task] = incarnation
            shared = self._shared.get(job_of(task))
            if shared is None:
                self._run(task, incarnation)
            else:
                self._join(shared, task, incarnation)

    def stop(
        self, tasks: TaskArray, machines: MachineArray, incarnations: NDArray[np.int64], why: Why
    ) -> None:
        for task, incarnation in zip(tasks.tolist(), incarnations.tolist(), strict=True):
            if task not in self.running:
                # It has ended, and its report is on the way.
                continue
            assert self.running.pop(task) == incarnation, "a try is stopped that does not run"
            shared = self._shared.get(job_of(task))
            if shared is not None:
                shared.advance(self._world.now)
                shared.workers.pop(task, None)
                self._watch(job_of(task), shared)
            # Its process still ends, and reports it.
            self._report(partial(self._end, task, incarnation))

    def _run(self, task: int, incarnation: int) -> None:
        times = self._times[job_of(task)] or (-1,)
        duration = times[min(index_of(task), len(times) - 1)]
        may_fail = self._failures[task] < RETRIES and index_of(task) < 2**20
        if may_fail and duration > 0 and self._random.uniform() < FAILING:
            self._failures[task] += 1
            after = self._random.below(duration)
            self._world.at(after, lambda: self._ended(task, incarnation, fails=True))
        elif duration >= 0:
            self._world.at(duration, lambda: self._ended(task, incarnation, fails=False))

    def _ended(self, task: int, incarnation: int, *, fails: bool) -> None:
        if self.running.get(task) != incarnation:
            return
        del self.running[task]
        self._report(
            lambda: self._fail(task, incarnation) if fails else self._end(task, incarnation)
        )

    def _report(self, report: Action) -> None:
        """Sends a report late, twice, and again if it is lost."""
        delay = self._random.below(LATE)
        if self._random.uniform() < LOST:
            delay += AGAIN
        self._world.at(delay, report)
        self._world.at(delay + self._random.below(LATE), report)

    def _end(self, task: int, incarnation: int) -> None:
        self._world.host.end_task(task, incarnation)

    def _fail(self, task: int, incarnation: int) -> None:
        self._world.host.fail_task(task, incarnation, 1, "the script says so")

    def _join(self, shared: SharedWork, task: int, incarnation: int) -> None:
        shared.advance(self._world.now)
        if not shared.left:
            self._world.at(0, lambda: self._ended(task, incarnation, fails=False))
            return
        shared.workers[task] = incarnation
        self._watch(job_of(task), shared)

    def _watch(self, number: int, shared: SharedWork) -> None:
        shared.version += 1
        version, end = shared.version, shared.next_end()
        if end is not None:
            delay = max(0, end - self._world.now)
            self._world.at(delay, lambda: self._end_phase(number, shared, version))

    def _end_phase(self, number: int, shared: SharedWork, version: int) -> None:
        if version != shared.version:
            return
        shared.advance(self._world.now)
        _, _, duration = shared.left.pop(0)
        self._world.host.end_phase(number, shared.total - len(shared.left) - 1, duration)
        if shared.left:
            self._watch(number, shared)
            return
        workers, shared.workers = shared.workers, {}
        for task, incarnation in workers.items():
            self._ended(task, incarnation, fails=False)


class ScriptedWorld:
    """Created and run like the simulated world, so that the same checks work in both."""

    def __init__(
        self,
        scenario: Scenario,
        engines: Mapping[str, type[Engine]],
        journal: Journal | None = None,
        deliberator: Deliberator | None = None,
    ) -> None:
        self.scenario = scenario
        setup = HostSetup.of(scenario)
        self.machines = ScriptedMachines(self, scenario.seed)
        self.host = Host(
            setup,
            engines,
            self.machines,
            SimulatedNetwork.of(setup),
            journal,
            budgets=ClockBudgets(),
            deliberator=deliberator,
        )
        self.runtime = self.host.runtime
        self.faults = FaultPlan(self)
        self._script: list[tuple[int, int, Action]] = []
        self._written = 0
        self._submissions = 0

    @property
    def now(self) -> int:
        return self.runtime.now

    def at(self, delay: int, action: Action) -> None:
        """Calls `action` after `delay`."""
        self._written += 1
        heapq.heappush(self._script, (self.now + delay, self._written, action))

    def inject(self, at: int, action: Action) -> None:
        """Must be called before the run: calls `action` at time `at`."""
        self.at(at, action)

    def post_fault(self, at: int, *what: Any) -> None:
        self.at(at - self.now, lambda: self.faults.strike(what, self.now))

    def run(self) -> None:
        host, runtime = self.host, self.runtime
        host.start()
        self.faults.schedule()
        for made in self.scenario.jobs:
            self._submissions += 1
            self.at(made.submit, partial(self._submit, made))
        horizon = FOREVER if self.scenario.horizon is None else self.scenario.horizon
        while self._submissions or runtime.open_tasks:
            due = min(self._script[0][0] if self._script else FOREVER, runtime.next_at)
            if due > horizon or due >= FOREVER:
                break
            item = host.run_until(due)
            assert item is None, "nobody else pushes anything"
            runtime.advance(due)
            while self._script and self._script[0][0] <= due:
                _, _, action = heapq.heappop(self._script)
                action()

    def _submit(self, made: SimulatedJob) -> None:
        self._submissions -= 1
        number = self.host.submit(with_retries(made.job))
        self.tell_times(number, made)

    def tell_times(self, number: int, made: SimulatedJob) -> None:
        """Tells the machines how long the tasks of a submitted job will run."""
        self.machines.add(number, made)


def with_retries(job: Job) -> Job:
    """Failures are part of the script; giving up is not."""
    groups = tuple(structs.replace(group, retries=RETRIES) for group in job.groups)
    return structs.replace(job, groups=groups)
