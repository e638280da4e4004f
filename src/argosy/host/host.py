"""The host of a fleet: hands events to engines and carries out their effects.

`handle` sees the cell as it is at that instant; a transaction is checked against the cell when it
arrives. So conflicts are real, and the cell is never copied. Inputs come from a world, which also moves
the clock: see `protocols`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from argosy._core import RuntimeEvent, TaskRuntime, TaskState
from argosy.engines import faults
from argosy.engines.api import Engine, Finishes
from argosy.host import records
from argosy.host.assumed_claims import AssumedClaims
from argosy.host.deliberation import Deliberations
from argosy.host.effect_runner import EffectRunner
from argosy.host.job_control import JobControl
from argosy.host.job_state import JobState
from argosy.host.job_table import JobTable
from argosy.host.journal import DecisionWriter, Journal
from argosy.host.membership import Membership
from argosy.host.placing import place
from argosy.host.protocols import Deliberator, Links, Machines, RemoteAgents
from argosy.host.remote_desks import RemoteCommit, RemoteSample
from argosy.host.reports import Reports
from argosy.host.restoring import Restored, restore
from argosy.host.runtime import build_cell, build_runtime
from argosy.host.scheduler import Router, Scheduler, make_settings
from argosy.host.setup import HostSetup
from argosy.host.standstill import StandstillGuard
from argosy.host.tries import Tries
from argosy.model.budgets import UNTIMED, Budgets
from argosy.model.effects import Deliberate, Effect
from argosy.model.errors import ScenarioError, UnknownName
from argosy.model.events import Decision, Event, JobSubmitted, Started
from argosy.model.explanations import Refusal, Why
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.tasks import first_tasks, jobs_of
from argosy.model.transactions import MachineChange, TaskArray

#: The clock event of a deferred call; `_calls` holds its target and argument.
CALL: Final = int(RuntimeEvent.CALL)
_FULL: Final = int(RuntimeEvent.FULL)
#: Kinds from here on are the world's own events.
_WORLD: Final = int(RuntimeEvent.SUBMIT)
_SUBMIT: Final = int(RuntimeEvent.SUBMIT)
#: Finished jobs are forgotten once per this many submissions.
_CLEAR_EVERY: Final = 1_024

#: The running time of tasks of which none is known, or not yet.
UNTOLD: Final = -1
#: The epoch of calls that are not for a scheduler.
_ANY_EPOCH: Final = -1

Call: TypeAlias = tuple[Scheduler, int, Callable[[Scheduler, Any, int], None], Any]
TimerItem: TypeAlias = tuple[int, int, int, int]


def _called(scheduler: Scheduler, action: Callable[[int], None], now: int) -> None:
    action(now)


class Host:
    """One fleet over one cell. `stopwatch` returns nanoseconds of the world's clock; it times the
    decisions of schedulers whose decision time is measured. `budgets` limit engines' long decisions.
    With a `deliberator`, those run in the background. `agents` are those of the clusters, if they are in
    other processes (`HostSetup.has_remote_agents`)."""

    writer_type: ClassVar[type[DecisionWriter]] = DecisionWriter

    def __init__(
        self,
        setup: HostSetup,
        engines: Mapping[str, type[Engine]],
        machines: Machines,
        links: Links,
        journal: Journal | None = None,
        *,
        replayed: bool = False,
        stopwatch: Callable[[], int] = lambda: 0,
        budgets: Budgets = UNTIMED,
        deliberator: Deliberator | None = None,
        agents: RemoteAgents | None = None,
    ) -> None:
        self.setup = setup
        self.remote_agents = agents
        self.machines = machines
        self.links = links
        self.random = Random(setup.seed)
        self.cell = build_cell(setup)
        self.view = self.cell.view()
        self.runtime: TaskRuntime = build_runtime(setup, self.cell, links, replayed=replayed)
        self.runtime.advance(setup.began)
        self.board = self.runtime.board
        self.jobs = JobTable()
        self.decisions = self.writer_type(journal, self.jobs)
        if journal is not None:
            journal.begin(setup, deliberated_beside=deliberator is not None)
            if setup.output.log != "decisions":
                self.runtime.record_into(journal.buffer)
        self.schedulers = self._make_schedulers(engines, budgets)
        self._by_name = {scheduler.name: scheduler for scheduler in self.schedulers}
        for cut in sorted(setup.partitions, key=lambda partition: partition.at):
            for name in cut.isolated:
                self.runtime.cut_off(self._by_name[name].index, cut.at, cut.at + cut.lasts)
        #: Whether somebody acts between any two events.
        self.is_watched = machines.acts
        self.router = Router(self.schedulers, self.random.child("split"))
        self._effects = EffectRunner(self)
        self._deliberations = Deliberations(self, deliberator, self._effects.spend)
        self.membership = Membership(self)
        self._reports = Reports(self, self._effects.room_watch)
        self.job_control = JobControl(self)
        self._assumed_claims = AssumedClaims(self)
        self._tries = Tries(self.runtime, machines) if machines.acts else None
        self._calls: dict[int, Call] = {}
        self._push = self.runtime.push
        self._token = 0
        #: Jobs with placement constraints.
        self.constrained: list[int] = []
        #: Jobs that are finished but not yet forgotten; applications some of whose tasks were
        #: abandoned.
        self._done: list[int] = []
        self._given_up: set[int] = set()
        #: Whether `run_until` returns when no task is open, because nothing more will be submitted.
        self.ends_when_idle = False
        self._stopwatch = stopwatch
        self._standstill = StandstillGuard(self)

    def _make_schedulers(
        self, engines: Mapping[str, type[Engine]], budgets: Budgets
    ) -> list[Scheduler]:
        schedulers: list[Scheduler] = []
        places = {} if self.setup.federation is None else self.setup.federation.schedulers
        for entry in self.setup.fleet:
            engine = engines[entry.engine]
            settings = make_settings(engine, entry.settings)
            names = entry.scheduler_names()
            for name in names:
                limits = entry.limits
                number = self.cell.scheduler_number(name)
                self.cell.set_limits(name, limits.resources, limits.jobs, limits.precedence)
                scheduler = Scheduler(
                    index=len(schedulers),
                    name=name,
                    entry=entry,
                    engine_type=engine,
                    settings=settings,
                    peers=tuple(peer for peer in names if peer != name),
                    number=number,
                    random=self.random,
                    constraints=self.setup.cell.constraints,
                    budgets=budgets,
                    clusters=self.setup.clusters,
                    place=places.get(name, ""),
                    keeps_explanations=self.decisions.journal is not None,
                )
                schedulers.append(scheduler)
                self._listen(scheduler)
        return schedulers

    def _listen(self, scheduler: Scheduler) -> None:
        """Tells the runtime which task ends and machine loads the scheduler needs."""
        capabilities = scheduler.capabilities
        if capabilities.queues:
            self.runtime.keep_loads()
        if capabilities.finishes is Finishes.OWN:
            self.runtime.hear_own(scheduler.index)
        elif capabilities.finishes is Finishes.ALL or (
            capabilities.finishes is Finishes.WAITS and self.links.plain_hop < 0
        ):
            self.runtime.hear_all()

    def start(self) -> None:
        """Starts every scheduler."""
        for scheduler in self.schedulers:
            self._start(scheduler, again=self.setup.is_resumed)

    def run_until(
        self, limit: int, submit: Callable[[int], None] | None = None
    ) -> TimerItem | None:
        """Carries out everything due up to `limit`. Returns an event that the world itself pushed, or
        None when nothing is left. With `submit`, that is called for its submissions instead, with the
        time."""
        next_event, calls, runtime = self.runtime.next, self._calls, self.runtime
        journal, tries = self.decisions.journal, self._tries
        after_event = journal.after_event if journal is not None and journal.is_timely else None
        while True:
            item = next_event(limit)
            if after_event is not None:
                after_event()
            if tries is not None:
                # Tasks may have left queues before this event.
                tries.pass_on_starts()
            if item is None:
                return None
            kind, now, _, token = item
            if kind == CALL:
                scheduler, epoch, action, what = calls.pop(token)
                if epoch == scheduler.epoch or epoch == _ANY_EPOCH:
                    try:
                        action(scheduler, what, now)
                    except faults.EFFECT_ERRORS as error:
                        self._blame(scheduler, what, error)
                        raise
            elif kind >= _WORLD:
                if kind != _SUBMIT or submit is None:
                    return item
                submit(now)
            elif kind == _FULL:
                assert journal is not None
                journal.flush()
            else:
                self._reports.pass_on(kind, now)
            if tries is not None:
                tries.pass_on_starts()
            if self.ends_when_idle and runtime.open_tasks == 0:
                return None

    def carry_out(self, item: TimerItem) -> None:
        """Carries out one item returned by the clock."""
        kind, now, _, token = item
        if kind != CALL:
            self._reports.pass_on(kind, now)
            return
        scheduler, epoch, action, what = self._calls.pop(token)
        if epoch not in (scheduler.epoch, _ANY_EPOCH):
            return
        try:
            action(scheduler, what, now)
        except faults.EFFECT_ERRORS as error:
            self._blame(scheduler, what, error)
            raise

    def _blame(self, scheduler: Scheduler, what: Any, error: Exception) -> None:
        """Raises a fault of the scheduler's if the error is about one of its effects."""
        if isinstance(what, Effect):
            raise faults.malformed(scheduler.label, what, error) from error

    @property
    def events(self) -> int:
        """How often an engine was called."""
        return sum(scheduler.handled for scheduler in self.schedulers)

    def handle(self, scheduler: Scheduler, event: Event, now: int) -> None:
        engine = scheduler.engine
        if engine is None:
            return
        if scheduler.follows_constraints and self.cell.applications():
            self.retire_done()
        is_measured = scheduler.is_measured
        began = self._stopwatch() if is_measured else 0
        try:
            effects: Sequence[Effect] = engine.handle(event, self.view, now)
        except Exception as error:
            doing = f"on {type(event).__name__} at {now} µs"
            raise faults.failure(scheduler.label, doing, error, type(engine)) from error
        if is_measured:
            scheduler.computed += self._stopwatch() - began
        if effects:
            self._effects.carry_out(scheduler, effects, now)
        scheduler.handled += 1
        if scheduler.handled >= scheduler.next_look:
            self._standstill.look(scheduler, event, effects, now)

    def deliberate(self, scheduler: Scheduler, effect: Deliberate) -> None:
        """Has the engine decide on the cell as it is: at once, unless there is a deliberator."""
        self._deliberations.begin(scheduler, effect, self.runtime.now)

    def answer(self, name: str, token: int, decision: Decision) -> None:
        """In a replay: what a scheduler deliberates on beside the loop has been decided."""
        self._deliberations.answer(self.named(name), token, decision)

    def sampled(self, name: str, token: int, answer: RemoteSample) -> None:
        """An agent in another process has answered a scheduler, or will not."""
        self._effects.remote_desks.sampled(self.named(name), token, answer)

    def committed(self, name: str, token: int, answer: RemoteCommit) -> bool:
        """An agent in another process has answered a scheduler, or will not. Returns whether the task
        runs there; if not, it must not."""
        runs = self._effects.remote_desks.committed(self.named(name), token, answer)
        self._pass_on_starts()
        return runs

    def timed(self, scheduler: Scheduler, run: Callable[[], Decision]) -> Decision:
        """Calls `run`. If the scheduler is measured, the time counts towards its next decision."""
        if not scheduler.is_measured:
            return run()
        began = self._stopwatch()
        decision = run()
        scheduler.computed += self._stopwatch() - began
        return decision

    def measured(self, scheduler: Scheduler, factor: float) -> int:
        """The real duration of the scheduler's current decision, scaled."""
        return int(scheduler.take_computed() * factor)

    def post(self, at: int, scheduler: Scheduler, event: Event) -> None:
        """Delivers the event at time `at`: after everything due earlier, in order of posting."""
        self._token = token = self._token + 1
        self._calls[token] = (scheduler, scheduler.epoch, self.handle, event)
        self._push(at, CALL, 0, token)

    def tell_now(self, scheduler: Scheduler, event: Event, now: int) -> None:
        """Delivers an event that happens now: at once, if it comes next anyway."""
        if self._effects.passes_turn():
            self._effects.go_on(self.handle, scheduler, event, now)
        else:
            self.post(now, scheduler, event)

    def request(
        self,
        at: int,
        scheduler: Scheduler,
        action: Callable[[Scheduler, Any, int], None],
        what: Any,
    ) -> None:
        """Calls `action` at time `at`, unless the scheduler has crashed by then."""
        self._token = token = self._token + 1
        self._calls[token] = (scheduler, scheduler.epoch, action, what)
        self._push(at, CALL, 0, token)

    def later(self, at: int, action: Callable[[int], None]) -> None:
        """Calls `action` at time `at`, whatever becomes of any scheduler."""
        self._token = token = self._token + 1
        self._calls[token] = (self.schedulers[0], _ANY_EPOCH, _called, action)
        self.runtime.push(at, CALL, 0, token)

    @property
    def open_reservations(self) -> int:
        """Room that agents keep for commits under way; 0 if none is."""
        return self._effects.desks.reservations

    def deliver(self, sender: str, receiver: Scheduler, event: Event, now: int) -> None:
        for delay in self.links.deliveries(sender, receiver.name, now):
            self.post(now + delay, receiver, event)

    def scheduler(self, name: str) -> Scheduler | None:
        return self._by_name.get(name)

    def named(self, name: str) -> Scheduler:
        scheduler = self._by_name.get(name)
        if scheduler is None:
            raise UnknownName("scheduler", name, list(self._by_name))
        return scheduler

    def submit(
        self, job: Job, entered: Callable[[int], None] | None = None, time: int = UNTOLD
    ) -> int:
        """Routes and numbers a new job, and passes it to its scheduler, now. Before the scheduler hears
        of it, `entered` is called with its number; then, if nothing else comes first, the scheduler
        handles it at once. `time` is how long each of its tasks runs, if a world knows that."""
        now = self.runtime.now
        scheduler = self.router.only_takers.get(job.kind) or self.router.route(job)
        if scheduler is None:
            raise ScenarioError(
                f"no scheduler takes jobs of kind {job.kind!r}",
                hint="add the kind to a fleet entry's `takes`",
            )
        number = self.add(job, scheduler, now, time)
        if self.decisions.journal is not None:
            self.decisions.input(records.SubmittedRecord(now, number, job, scheduler.name))
        event, is_next = None, False
        if scheduler.engine is not None:
            groups = job.groups
            count = groups[0].count if len(groups) == 1 else job.tasks
            event = JobSubmitted(job, number, first_tasks(number, count))
            is_next = entered is not None and self._effects.passes_turn()
            if not is_next:
                self.post(now, scheduler, event)
        if entered is not None:
            entered(number)
        if event is not None and is_next:
            self._effects.go_on(self.handle, scheduler, event, now)
        return number

    def place(self, job: Job, machine: int, by: str, commit: str) -> Refusal | None:
        """Submits a job of one task that starts on this machine, as a scheduler elsewhere has decided.
        Returns why it is refused, in which case nothing has happened."""
        refusal = place(self, job, machine, by, commit)
        self._pass_on_starts()
        return refusal

    def add(self, job: Job, scheduler: Scheduler, submitted: int, time: int = UNTOLD) -> int:
        """Puts a job of the scheduler's on the board; returns its number."""
        group = job.groups[0]
        if len(job.groups) == 1:
            shape = self.cell.shape(group.request, group.tags, job.precedence)
            number = self.runtime.add_plain_job(
                submitted, scheduler.index, group.count, shape, group.estimate or 0, time
            )
        else:
            number = self.runtime.add_job(submitted, scheduler.index, self.groups_of(job))
        self.jobs.add(job)
        if number % _CLEAR_EVERY == 0:
            self.forget_done()
        if group.activities:
            self.runtime.share_work(number)
        if job.constraints:
            self.cell.admit(number, job)
            self.constrained.append(number)
        scheduler.jobs += 1
        return number

    def groups_of(self, job: Job) -> list[tuple[int, int, int]]:
        """The count, shape and estimate of each group of tasks."""
        shape, precedence = self.cell.shape, job.precedence
        facts = []
        for group in job.groups:
            number = shape(group.request, group.tags, precedence)
            facts.append((group.count, number, group.estimate or 0))
        return facts

    def restore(self, job: Job, state: JobState) -> Restored:
        """Takes over a job of an earlier host. All are restored before the clock moves."""
        return restore(self, job, state)

    def adopt_starts(self) -> None:
        """What has begun to run is running on its machine already."""
        if self._tries is not None:
            self._tries.adopt_starts()

    def forget_done(self) -> None:
        self.retire_done()
        self.jobs.forget(self._done)
        self.runtime.forget_jobs(self._done)
        self._done = []

    def retire_done(self) -> None:
        """Deactivates the constraints of finished applications."""
        done = self.board.take_done().tolist()
        self._done += done
        if self.cell.applications():
            for number in done:
                self.cell.retire(number)
        for number in [n for n in self._given_up if self.board.is_over(n)]:
            self._given_up.discard(number)
            self.cell.retire(number)

    def note_given_up(self, tasks: TaskArray) -> None:
        """An application with abandoned tasks is over when its other tasks are."""
        numbers = np.unique(jobs_of(tasks)).tolist()
        self._given_up.update(n for n in numbers if n in self.cell.applications())

    def cancel(self, number: int, tasks: TaskArray | None = None) -> TaskArray:
        """Cancels a job, or some of its tasks, for a user; returns the tasks that were not over."""
        cancelled = self.job_control.cancel(number, tasks)
        self._pass_on_starts()
        return cancelled

    def scale(self, number: int, job: Job) -> None:
        """Changes the number of a job's tasks for a user; `job` is the complete new specification."""
        self.job_control.scale(number, job)
        self._pass_on_starts()

    def end_task(self, task: int, incarnation: int) -> bool:
        """Machines report that an attempt succeeded; returns false if it is not the current one."""
        if self._tries is not None and not self._tries.end(task, incarnation):
            return False
        has_ended = self.runtime.end_task(task, incarnation)
        self._pass_on_starts()
        return has_ended

    def fail_task(self, task: int, incarnation: int, exit_status: int, reason: str) -> bool:
        """Machines report that an attempt failed; returns false if it is not the current one. The task
        is retried as often as its job allows."""
        if self._tries is not None and not self._tries.end(task, incarnation):
            return False
        has_failed = self.job_control.fail(task, incarnation, exit_status, reason)
        self._pass_on_starts()
        return has_failed

    def confirm(self, tasks: TaskArray, incarnations: NDArray[np.int64]) -> TaskArray:
        """The system that has the last word on assumed claims has accepted these; returns the tasks of
        those that were still assumed."""
        return self._assumed_claims.confirm(tasks, incarnations)

    def forget(self, tasks: TaskArray, incarnations: NDArray[np.int64], why: Why) -> TaskArray:
        """That system has not accepted these claims: their tasks lose their machines. Returns the tasks
        of those that were still assumed."""
        forgotten = self._assumed_claims.forget(tasks, incarnations, why)
        self._pass_on_starts()
        return forgotten

    def end_phase(self, number: int, phase: int, duration: int) -> None:
        """A job's workers report that the last activity of a phase has ended."""
        self.runtime.end_phase(number, phase, duration)

    def change_machine(self, change: MachineChange) -> None:
        """Adds, removes or changes a machine."""
        self.membership.change(change)
        self._pass_on_starts()

    def mark(
        self, attribute: str, group: str, sets: Sequence[str], *, is_given: bool = True
    ) -> None:
        """Gives the machines in these sets of a node group an attribute, with the value ``true``, or
        takes it from them: what a world knows about where tasks may run, for every engine to respect."""
        self.membership.mark(attribute, group, sets, is_given=is_given)
        self._pass_on_starts()

    def stop(self, tasks: TaskArray, why: Why) -> None:
        """Tasks have lost their machines: real machines are told to stop them."""
        if self._tries is not None:
            self._tries.stop(tasks, why)

    def _pass_on_starts(self) -> None:
        if self._tries is not None:
            self._tries.pass_on_starts()

    def crash(self, scheduler: Scheduler) -> None:
        """The scheduler stops and loses its memory; its peers take over after the fail-over time."""
        now = self.runtime.now
        self.decisions.input(records.CrashedRecord(now, scheduler.name))
        scheduler.crash(now)
        self.runtime.cancel_all(scheduler.index)
        self.runtime.listen(scheduler.index, None)
        self.request(now + self.setup.failover, scheduler, self._fail_over, None)

    def _fail_over(self, scheduler: Scheduler, _: None, now: int) -> None:
        if not scheduler.is_alive:
            self.hand_over(scheduler, now)

    def hand_over(self, scheduler: Scheduler, now: int) -> None:
        """Gives up on a crashed scheduler: its pending tasks go to live schedulers that take their
        jobs, now and whenever one restarts."""
        scheduler.is_given_up = True
        for number in self.board.jobs_with_pending(scheduler.index).tolist():
            self.inherit(number, now)

    def inherit(self, number: int, now: int) -> None:
        heir = self.router.route(self.jobs.job(number))
        if heir is not None and heir.is_alive:
            self.board.set_owner(number, heir.index)
            heir.jobs += 1
            self._resubmit(heir, number, now)

    def _resubmit(self, scheduler: Scheduler, number: int, now: int) -> None:
        job = self.jobs.job(number)
        tasks = self.board.tasks_in(number, TaskState.PENDING)
        self.decisions.tasks(now, records.ResubmittedRecord, tasks, scheduler=scheduler.name)
        self.post(now, scheduler, JobSubmitted(job, number, tasks))

    def _start(self, scheduler: Scheduler, *, again: bool) -> None:
        try:
            scheduler.start()
        except Exception as error:
            engine = scheduler.engine_type
            raise faults.failure(scheduler.label, "to start", error, engine) from error
        if scheduler.waits is not None:
            self.runtime.listen(scheduler.index, scheduler.waits)
        self.post(self.runtime.now, scheduler, Started(again))

    def restart(self, scheduler: Scheduler) -> None:
        """Restarts the scheduler and submits to it all pending tasks that are its own or belong to a
        scheduler given up on."""
        now = self.runtime.now
        self.decisions.input(records.RestartedRecord(now, scheduler.name))
        self._start(scheduler, again=True)
        for number in self.board.jobs_with_pending(scheduler.index).tolist():
            self._resubmit(scheduler, number, now)
        for other in self.schedulers:
            if other.is_given_up:
                self.hand_over(other, now)
