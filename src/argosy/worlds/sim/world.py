"""The simulated world: hands events to engines in virtual time and carries out their effects.

The native half (`_core.Simulator`) keeps the clock, the event heap, the job board and the machines and
handles what happens per task. This half handles what happens per job, per decision and per message.
`handle` is called with the cell as it is at that instant; a transaction is judged against the cell as
it is when it arrives: conflicts are real, and no copy of the cell is made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import process_time_ns
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy._core import Simulator
from argosy.cell import Cell
from argosy.engines import faults
from argosy.engines.api import Engine, Finishes
from argosy.model.effects import Effect
from argosy.model.errors import ModelError, ScenarioError
from argosy.model.events import (
    Event,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    PhaseFinished,
    Started,
    TaskFinished,
    TasksLost,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.resources import dimensions_of
from argosy.model.scenario import MachineModel, Partition, Scenario
from argosy.model.tasks import by_job, first_tasks, jobs_of
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    MachineArray,
    Outcome,
    ResizeMachine,
    TaskArray,
    Transaction,
)
from argosy.worlds.log import DecisionLog
from argosy.worlds.sim.carrier import CELL, MACHINES, EffectRunner
from argosy.worlds.sim.faults import FaultPlan
from argosy.worlds.sim.journal import Journal
from argosy.worlds.sim.network import SimulatedNetwork
from argosy.worlds.sim.schedulers import Router, Scheduler, make_settings
from argosy.worlds.sim.workbook import GroundTruth, JobTable

FINISHED_REPORT: Final = 2
LOST_REPORT: Final = 3
PROBE_REPORT: Final = 4
PHASE_REPORT: Final = 5
#: Kinds of events that come back from the native heap; the rest of each is in `_payloads`.
ARRIVE: Final = 16
SUBMIT: Final = 17
FAULT: Final = 18

#: States of the job board, as in core/sim/board.hpp.
PENDING: Final = 0
QUEUED: Final = 1
RUNNING: Final = 2
FOREVER: Final = 2**62
#: As in core/sim/machine_queue.hpp.
_QUEUE_ORDERS: Final = ("fcfs", "shortest-first", "shortest-remaining")
#: How many jobs are submitted between two times that done ones are forgotten.
_CLEAR_EVERY: Final = 1_024


_Arrival: TypeAlias = tuple[Scheduler, int, Callable[[Scheduler, Any, int], None], Any]


class SimulatedWorld:
    """One run. `run()` may be called once; what it did is read from `simulator`, `log` and the rest."""

    def __init__(
        self,
        scenario: Scenario,
        engines: Mapping[str, type[Engine]],
        log: DecisionLog | None = None,
        jobs: Iterable[Job] | None = None,
    ) -> None:
        self.scenario = scenario
        self.random = Random(scenario.seed)
        self.cell = build_cell(scenario)
        self.view = self.cell.view()
        rules = scenario.machines
        self.simulator = Simulator(
            self.cell.native,
            _QUEUE_ORDERS.index(rules.queue),
            rules.slack,
            rules.limit,
            rules.start_delay,
            rules.long_above,
            *_stealing(rules, len(scenario.cell.machines)),
            scenario.output.tasks,
        )
        partitions = tuple(fault for fault in scenario.faults if isinstance(fault, Partition))
        self.network = SimulatedNetwork(scenario.network, partitions, self.random.child("network"))
        self.simulator.set_hop(self.network.plain_hop)
        self.simulator.set_round_trip(self.network.round_trip)
        self.schedulers = self._make_schedulers(engines)
        self._by_name = {scheduler.name: scheduler for scheduler in self.schedulers}
        for cut in sorted(partitions, key=lambda partition: partition.at):
            for name in cut.isolated:
                self.simulator.cut_off(self._by_name[name].index, cut.at, cut.at + cut.lasts)
        self._listeners = [scheduler for scheduler in self.schedulers if scheduler.hears_all]
        self._keepers = [
            scheduler
            for scheduler in self.schedulers
            if scheduler.capabilities.finishes is Finishes.WAITS
        ]
        self._any_hears_own = any(
            scheduler.capabilities.finishes is Finishes.OWN for scheduler in self.schedulers
        )
        self._router = Router(self.schedulers, self.random.child("split"))
        self.workbook = JobTable()
        self.journal = Journal(log, self.workbook)
        self._carrier = EffectRunner(self)
        self._jobs: Iterator[Job] = iter(scenario.jobs if jobs is None else jobs)
        self._next_job: Job | None = None
        self._job_count = len(scenario.jobs) if jobs is None else 0
        self._payloads: dict[int, tuple[Any, ...]] = {}
        self._token = 0
        #: What needs no heap because it would come next in any case: most of what follows at once.
        self._at_once: deque[_Arrival] = deque()
        self._look_at = FOREVER
        self._watcher: Callable[[int], int] | None = None
        #: Jobs with placement constraints.
        self.constrained: list[int] = []
        #: Jobs that are done and not yet forgotten, and applications of which some tasks were abandoned.
        self._done: list[int] = []
        self._given_up: set[int] = set()
        self.faults = FaultPlan(self)
        self.events = 0
        self.preemptions = 0
        self.losses = 0

    def _make_schedulers(self, engines: Mapping[str, type[Engine]]) -> list[Scheduler]:
        schedulers: list[Scheduler] = []
        for entry in self.scenario.fleet:
            engine = engines[entry.engine]
            settings = make_settings(engine, entry.settings)
            names = entry.scheduler_names()
            for name in names:
                peers = tuple(peer for peer in names if peer != name)
                number = self.cell.scheduler_number(name)
                limits = entry.limits
                self.cell.set_limits(name, limits.resources, limits.jobs, limits.precedence)
                index = len(schedulers)
                constraints = self.scenario.cell.constraints
                schedulers.append(
                    Scheduler(
                        index,
                        name,
                        entry,
                        engine,
                        settings,
                        peers,
                        number,
                        self.random,
                        constraints,
                    )
                )
                if engine.capabilities.queues:
                    self.simulator.keep_loads()
                if engine.capabilities.finishes is Finishes.OWN:
                    self.simulator.hear_own(index)
                elif engine.capabilities.finishes is Finishes.ALL or (
                    engine.capabilities.finishes is Finishes.WAITS and self.network.plain_hop < 0
                ):
                    self.simulator.hear_all()
        return schedulers

    def run(self, progress: Callable[[float], None] | None = None) -> None:
        for scheduler in self.schedulers:
            self._start(scheduler, again=False)
        self.faults.schedule()
        self._schedule_next_job()
        horizon = FOREVER if self.scenario.horizon is None else self.scenario.horizon
        simulator, payloads, at_once = self.simulator, self._payloads, self._at_once
        limit = min(horizon, self._look_at)
        while True:
            kind, now, token = ARRIVE, simulator.now, 0
            if not at_once:
                item = simulator.next(limit)
                if item is None:
                    if limit == horizon or not simulator.has_events:
                        break
                    # Nothing happens until then: the cell is what it will be.
                    assert self._watcher is not None
                    limit = min(horizon, self._watcher(limit))
                    continue
                kind, now, _, token = item
            if kind == ARRIVE:
                scheduler, epoch, action, what = payloads.pop(token) if token else at_once.popleft()
                if scheduler.epoch == epoch:
                    try:
                        action(scheduler, what, now)
                    except (AttributeError, TypeError, ValueError, ModelError) as error:
                        # What came over a hop may have been malformed when it left.
                        if not isinstance(what, Effect) or faults.find_misfit(what) is None:
                            raise
                        raise faults.malformed(scheduler.label, what, error) from error
            elif kind == SUBMIT:
                self._submit_next(now)
                if progress is not None:
                    progress(self._share_done(now))
            elif kind == FINISHED_REPORT:
                self._report_finished(now)
            elif kind == LOST_REPORT:
                self._report_lost(now)
            elif kind == PROBE_REPORT:
                self._carrier.report_ready(now)
            elif kind == PHASE_REPORT:
                self._report_phases(now)
            elif kind == FAULT:
                self.faults.strike(payloads.pop(token), now)
            if self._next_job is None and simulator.open_tasks == 0:
                break
        if self.scenario.horizon is not None and simulator.open_tasks:
            simulator.advance(self.scenario.horizon)

    def watch(self, first: int, watcher: Callable[[int], int]) -> None:
        """Before the run: `watcher` is called at the time `first`, when all that is due by then has
        happened, and then at each time that it answers with, as long as anything is still to come."""
        self._look_at, self._watcher = first, watcher

    def _share_done(self, now: int) -> float:
        if self.scenario.horizon:
            return now / self.scenario.horizon
        return len(self.workbook) / self._job_count if self._job_count else 0.0

    def _handle(self, scheduler: Scheduler, event: Event, now: int) -> None:
        engine = scheduler.engine
        if engine is None:
            return
        self.events += 1
        if self.cell.applications() and scheduler.capabilities.constraints:
            self.retire_done()
        began = self.computing_time() if scheduler.is_measured else 0
        try:
            effects: Sequence[Effect] = engine.handle(event, self.view, now)
        except Exception as error:
            doing = f"on {type(event).__name__} at {now} µs"
            raise faults.failure(scheduler.label, doing, error, type(engine)) from error
        if scheduler.is_measured:
            scheduler.computed += self.computing_time() - began
        if effects:
            self._carrier.carry_out(scheduler, effects, now)

    def computing_time(self) -> int:
        """Nanoseconds of the processor, by which decisions are measured."""
        return process_time_ns()

    def post(self, at: int, scheduler: Scheduler, event: Event) -> None:
        """Hands the event over at time `at`: after what is due before then, in order of posting."""
        self.request(at, scheduler, self._handle, event)

    def post_fault(self, at: int, *what: Any) -> None:
        self._token = token = self._token + 1
        self._payloads[token] = what
        self.simulator.push(at, FAULT, 0, token)

    def request(
        self,
        at: int,
        scheduler: Scheduler,
        action: Callable[[Scheduler, Any, int], None],
        what: Any,
    ) -> None:
        """Calls `action` at time `at`, unless the scheduler has crashed by then."""
        payload = (scheduler, scheduler.epoch, action, what)
        if self.simulator.comes_next(at):
            self._at_once.append(payload)
            return
        self._token = token = self._token + 1
        self._payloads[token] = payload
        self.simulator.push(at, ARRIVE, 0, token)

    def _schedule_next_job(self) -> None:
        self._next_job = next(self._jobs, None)
        if self._next_job is not None:
            self.simulator.push(self._next_job.submit, SUBMIT, 0, 0)

    def _submit_next(self, now: int) -> None:
        job = self._next_job
        assert job is not None
        scheduler = self._router.route(job)
        if scheduler is None:
            raise ScenarioError(
                f"no scheduler takes jobs of kind {job.kind!r}",
                hint="add the kind to a fleet entry's `takes`",
            )
        count = job.tasks
        number = self.simulator.add_job(now, count, scheduler.index)
        self.workbook.add(GroundTruth(job, self.cell))
        if number % _CLEAR_EVERY == 0:
            self.retire_done()
            self.workbook.forget(self._done)
            self._done = []
        if job.phases:
            activities = np.array([phase.activities for phase in job.phases], np.int64)
            durations = np.array([phase.duration for phase in job.phases], np.int64)
            self.simulator.add_pool(number, activities, durations)
        if job.constraints:
            self.cell.admit(number, job)
            self.constrained.append(number)
        scheduler.jobs += 1
        self.journal.submitted(now, job, scheduler.name)
        if scheduler.is_alive:
            tasks = first_tasks(number, count)
            self.post(now, scheduler, JobSubmitted(job, number, tasks))
        self._schedule_next_job()

    def retire_done(self) -> None:
        """Constraints of applications that are over hold no more."""
        done = self.simulator.take_done().tolist()
        self._done += done
        for number in done:
            self.cell.retire(number)
        for number in [n for n in self._given_up if not self._is_open(n)]:
            self._given_up.discard(number)
            self.cell.retire(number)

    def _is_open(self, number: int) -> bool:
        states = (PENDING, QUEUED, RUNNING)
        return any(len(self.simulator.tasks_in(number, state)) for state in states)

    def note_abandoned(self, tasks: TaskArray) -> None:
        """An application of which tasks were abandoned is over when the others are."""
        numbers = np.unique(jobs_of(tasks)).tolist()
        self._given_up.update(n for n in numbers if n in self.cell.applications())

    def hand_over(self, scheduler: Scheduler, now: int) -> None:
        """A scheduler is given up: its pending tasks go to living ones that take their jobs, now and
        whenever such a one returns."""
        scheduler.is_given_up = True
        for number in self.simulator.jobs_with_pending(scheduler.index).tolist():
            self._inherit(number, now)

    def _inherit(self, number: int, now: int) -> None:
        heir = self._router.route(self.workbook.job(number))
        if heir is not None and heir.is_alive:
            self.simulator.set_owner(number, heir.index)
            heir.jobs += 1
            self._resubmit(heir, number, now)

    def _resubmit(self, scheduler: Scheduler, number: int, now: int) -> None:
        job = self.workbook.job(number)
        tasks = self.simulator.tasks_in(number, PENDING)
        self.journal.tasks(now, "resubmitted", tasks, scheduler=scheduler.name)
        self.post(now, scheduler, JobSubmitted(job, number, tasks))

    def _start(self, scheduler: Scheduler, *, again: bool) -> None:
        try:
            scheduler.start()
        except Exception as error:
            engine = scheduler.engine_type
            raise faults.failure(scheduler.label, "to start", error, engine) from error
        if scheduler.capabilities.finishes is Finishes.WAITS:
            self.simulator.listen(scheduler.index, scheduler.waits)
        self.post(self.simulator.now, scheduler, Started(again))

    def restart(self, scheduler: Scheduler, now: int) -> None:
        """The scheduler is back, and is told of all pending tasks that are its own or nobody's."""
        self._start(scheduler, again=True)
        for number in self.simulator.jobs_with_pending(scheduler.index).tolist():
            self._resubmit(scheduler, number, now)
        for other in self.schedulers:
            if other.is_given_up:
                self.hand_over(other, now)

    def scheduler(self, name: str) -> Scheduler | None:
        return self._by_name.get(name)

    def change_machines(
        self,
        transaction: Transaction,
        event: MachineJoined | MachineLost | MachineChanged,
        now: int,
    ) -> None:
        """Commits a machine change and tells everyone concerned."""
        outcome = self.cell.commit(transaction)
        is_resized = any(isinstance(change, ResizeMachine) for change in transaction.machines)
        why = Why.NO_ROOM if is_resized else Why.MACHINE_GONE
        if is_resized or isinstance(event, MachineLost):
            queued = self.simulator.lose_queue(event.machine)
            self.lose(queued, np.full(len(queued), event.machine, np.int32), why, now)
        self.evict(outcome, why, now)
        for scheduler in self.schedulers:
            if scheduler.capabilities.machine_events and scheduler.is_alive:
                hop = self.network.reliable_delay(CELL, scheduler.name, now)
                self.post(now + hop, scheduler, event)

    def evict(self, outcome: Outcome, why: Why, now: int) -> None:
        """Evicted tasks are pending again; slots that probes held are simply gone."""
        if not len(outcome.evicted):
            return
        is_task = np.fromiter(
            (not self.simulator.is_hold(task) for task in outcome.evicted.tolist()),
            np.bool_,
            len(outcome.evicted),
        )
        evicted, machines = outcome.evicted[is_task], outcome.evicted_from[is_task]
        self.simulator.set_pending(evicted)
        for machine in set(outcome.evicted_from.tolist()):
            self.simulator.pump(machine)
        self.lose(evicted, machines, why, now)

    def lose(self, tasks: TaskArray, machines: MachineArray, why: Why, now: int) -> None:
        """Tasks that had a machine have none: their schedulers are told, a hop later."""
        if why is Why.PREEMPTED:
            self.preemptions += len(tasks)
        else:
            self.losses += len(tasks)
        for number, where in by_job(tasks):
            lost, where_from = tasks[where], machines[where]
            self.journal.lost(now, number, lost, where_from, why)
            if self.workbook.is_done(number):
                continue
            job, owner = self.workbook.job(number), self.schedulers[self.simulator.owner(number)]
            if job.phases and not (owner.is_alive and owner.capabilities.malleable):
                # Workers that nobody asked for are not missed.
                is_own = job.is_own(lost)
                lost, where_from = lost[is_own], where_from[is_own]
            if not len(lost):
                continue
            if owner.is_alive:
                event = TasksLost(job, number, lost, where_from, why)
                self.post(now + self.network.reliable_delay(CELL, owner.name, now), owner, event)
            elif owner.is_given_up:
                self._inherit(number, now)

    def _report_lost(self, now: int) -> None:
        """Tasks that came to a machine that is gone, or is too small for them by now."""
        tasks, machines, _, _, _ = self.simulator.take_refused()
        self.lose(tasks, machines, Why.QUEUE_FULL, now)
        tasks, machines, _, _, _ = self.simulator.take_lost()
        is_up = np.fromiter(map(self.view.is_up, machines.tolist()), np.bool_, len(machines))
        for why, which in ((Why.MACHINE_GONE, ~is_up), (Why.NO_ROOM, is_up)):
            self.lose(tasks[which], machines[which], why, now)

    def _report_finished(self, now: int) -> None:
        tasks, machines, estimates, shapes, started = self.simulator.take_finished()
        if self._keepers and self.network.plain_hop < 0:
            self._tell_keepers(now, (tasks, machines, estimates, shapes, started))
        if self._listeners:
            event = TaskFinished(tasks, machines, estimates, shapes)
            for scheduler in self._listeners:
                if scheduler.is_alive:
                    self.deliver(MACHINES, scheduler, event, now)
        if not self._any_hears_own:
            return
        owners = np.fromiter(
            (self.simulator.owner(job) for job in jobs_of(tasks).tolist()), np.int64, len(tasks)
        )
        for index in np.unique(owners).tolist():
            scheduler = self.schedulers[index]
            if scheduler.capabilities.finishes is Finishes.OWN and scheduler.is_alive:
                mine = owners == index
                event = TaskFinished(tasks[mine], machines[mine], estimates[mine], shapes[mine])
                self.post(now, scheduler, event)

    def _report_phases(self, now: int) -> None:
        for number, phase in self.simulator.take_phases():
            owner = self.schedulers[self.simulator.owner(number)]
            if owner.is_alive and owner.capabilities.malleable:
                duration = self.workbook.job(number).phases[phase].duration
                self.post(now, owner, PhaseFinished(number, phase, duration))

    def _tell_keepers(self, now: int, ends: tuple[NDArray[Any], ...]) -> None:
        """Into each wait view, over the network; of a scheduler's own tasks for sure."""
        owners = np.fromiter(
            (self.simulator.owner(job) for job in jobs_of(ends[0]).tolist()), np.int64, len(ends[0])
        )
        for keeper in self._keepers:
            if not keeper.is_alive:
                continue
            for is_own in (True, False):
                rows = (owners == keeper.index) == is_own
                if not rows.any():
                    continue
                part = [column[rows] for column in ends]
                delays: tuple[int, ...] = (self.network.reliable_delay(MACHINES, keeper.name, now),)
                if not is_own:
                    delays = self.network.deliveries(MACHINES, keeper.name, now)
                for delay in delays:
                    keeper.waits.post_ended(now + delay, now, *part)

    def deliver(self, sender: str, receiver: Scheduler, event: Event, now: int) -> None:
        for delay in self.network.deliveries(sender, receiver.name, now):
            self.post(now + delay, receiver, event)


def _stealing(rules: MachineModel, machines: int) -> tuple[int, int, int]:
    """Attempts, the first machine that is asked, and how much is taken at most."""
    if rules.steal is None:
        return 0, 0, 0
    return rules.steal.attempts, int(rules.steal.after * machines), rules.steal.most


def build_cell(scenario: Scenario) -> Cell:
    """An audited or plain cell with the scenario's machines and every dimension they have."""
    machines = scenario.cell.machines
    cell = Cell(
        dimensions_of([machine.capacity for machine in machines]),
        {group.name: group.sets for group in scenario.cell.groups},
        audited=scenario.audit,
    )
    cell.commit(Transaction(OPERATOR, machines=tuple(AddMachine(machine) for machine in machines)))
    return cell
