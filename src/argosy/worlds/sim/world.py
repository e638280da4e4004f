"""The simulated world: virtual time, modelled machines and links, deterministic from one seed.

Time jumps to the next event. The host (`argosy.host`) does everything that is the same in all worlds;
this world submits the scenario's jobs, causes its faults, and knows how long tasks will run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from time import process_time_ns
from typing import Any, ClassVar, Final

import numpy as np

from argosy.engines.api import Engine
from argosy.host import RuntimeEvent
from argosy.host.host import UNTOLD, Host
from argosy.host.journal import Journal
from argosy.host.setup import HostSetup
from argosy.model.scenario import Scenario
from argosy.model.truth import SimulatedJob
from argosy.worlds.clocks import ClockBudgets
from argosy.worlds.sim.faults import FaultPlan
from argosy.worlds.sim.ground_truth import SimulatedMachines, running_times
from argosy.worlds.sim.network import SimulatedNetwork

FOREVER: Final = 2**62
_SUBMIT: Final = int(RuntimeEvent.SUBMIT)
_FAULT: Final = int(RuntimeEvent.FAULT)


class SimulatedWorld:
    """One run. `run()` may be called once; its results are in `host` and the journal."""

    host_type: ClassVar[type[Host]] = Host

    def __init__(
        self,
        scenario: Scenario,
        engines: Mapping[str, type[Engine]],
        journal: Journal | None = None,
        jobs: Iterable[SimulatedJob] | None = None,
    ) -> None:
        self.scenario = scenario
        setup = HostSetup.of(scenario)
        self.host = self.host_type(
            setup,
            engines,
            SimulatedMachines(),
            SimulatedNetwork.of(setup),
            journal,
            stopwatch=self.computing_time,
            budgets=ClockBudgets(),
        )
        self.runtime = self.host.runtime
        self.faults = FaultPlan(self)
        self._jobs: Iterator[SimulatedJob] = iter(scenario.jobs if jobs is None else jobs)
        self._next_job: SimulatedJob | None = None
        self._job_count = len(scenario.jobs) if jobs is None else 0
        self.runtime.expect_jobs(self._job_count)
        #: Future faults, by the number under which they were posted.
        self._faults: dict[int, tuple[Any, ...]] = {}
        self._posted = 0
        self._look_at = FOREVER
        self._watcher: Callable[[int], int] | None = None
        self._progress: Callable[[float], None] | None = None

    def run(self, progress: Callable[[float], None] | None = None) -> None:
        host, runtime = self.host, self.runtime
        self._progress = progress
        host.start()
        self.faults.schedule()
        self._schedule_next_job()
        horizon = FOREVER if self.scenario.horizon is None else self.scenario.horizon
        limit = min(horizon, self._look_at)
        while not (host.ends_when_idle and runtime.open_tasks == 0):
            item = host.run_until(limit, self._submit_next)
            if item is None:
                if limit == horizon or not runtime.has_events:
                    break
                if host.ends_when_idle and runtime.open_tasks == 0:
                    break
                # Nothing else happens before then, so the cell is already in the state to be sampled.
                assert self._watcher is not None
                limit = min(horizon, self._watcher(limit))
                continue
            _, now, _, token = item
            self._strike(self._faults.pop(token), now)
        if self.scenario.horizon is not None and runtime.open_tasks:
            runtime.advance(self.scenario.horizon)

    def _strike(self, what: tuple[Any, ...], now: int) -> None:
        match what:
            case ("call", action):
                action()
            case _:
                self.faults.strike(what, now)

    def watch(self, first: int, watcher: Callable[[int], int]) -> None:
        """Must be called before the run: `watcher` is called at time `first`, after everything due by
        then, and then at each time it returns, while events remain."""
        self._look_at, self._watcher = first, watcher

    def _share_done(self, now: int) -> float:
        if self.scenario.horizon:
            return now / self.scenario.horizon
        return len(self.host.jobs) / self._job_count if self._job_count else 0.0

    def computing_time(self) -> int:
        """Processor time in nanoseconds, used to measure decisions."""
        return process_time_ns()

    def inject(self, at: int, action: Callable[[], None]) -> None:
        """Must be called before the run: calls `action` at time `at`, for tests and tools that act like
        users."""
        self._post(at, ("call", action))

    def post_fault(self, at: int, *what: Any) -> None:
        self._post(at, what)

    def _post(self, at: int, what: tuple[Any, ...]) -> None:
        self._posted += 1
        self._faults[self._posted] = what
        self.runtime.push(at, _FAULT, 0, self._posted)

    def tell_times(self, number: int, made: SimulatedJob) -> None:
        """Tells the runtime how long the tasks of a submitted job will run."""
        self.runtime.set_times(number, running_times(made))

    def _schedule_next_job(self) -> None:
        self._next_job = made = next(self._jobs, None)
        if made is None:
            self.host.ends_when_idle = True
        else:
            self.runtime.push(made.submit, _SUBMIT, 0, 0)

    def _submit_next(self, now: int) -> None:
        made = self._next_job
        assert made is not None
        durations = made.truth[0].durations
        is_told = len(made.truth) == 1 and len(durations) == 1
        self.host.submit(made.job, self._entered, durations[0] if is_told else UNTOLD)
        if self._progress is not None:
            self._progress(self._share_done(now))

    def _entered(self, number: int) -> None:
        """The next job has this number; its scheduler has not heard of it yet."""
        made = self._next_job
        assert made is not None
        if len(made.truth) > 1 or len(made.truth[0].durations) > 1:
            self.tell_times(number, made)
        if made.job.groups[0].activities:
            activities = np.array(made.job.activities, np.int64)
            durations = np.array(made.truth[0].phases, np.int64)
            self.runtime.add_pool(number, activities, durations)
        self._schedule_next_job()
