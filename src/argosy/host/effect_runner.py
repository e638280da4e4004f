"""Carries out the effects of engines: one method per effect, and one for what arrives after a hop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from argosy._core import ProbeTerms, TaskState
from argosy.engines import faults
from argosy.host import effect_checks as checks
from argosy.host import late_claims, records
from argosy.host.agent_desks import AgentDesks
from argosy.host.agents import Agents
from argosy.host.busy_time import DAY
from argosy.host.mail import Mail
from argosy.host.protocols import MACHINES, agent_of
from argosy.host.remote_desks import RemoteDesks
from argosy.host.requirements import QueueRequirements
from argosy.host.room_watch import RoomWatch
from argosy.host.scheduler import Scheduler
from argosy.model.effects import (
    Abandon,
    AnswerProbe,
    AskQueues,
    Commit,
    Deliberate,
    EarlierTime,
    Effect,
    Enqueue,
    Explain,
    Pace,
    Probe,
    Sample,
    Send,
    Think,
    WakeMe,
)
from argosy.model.errors import EngineFault
from argosy.model.events import (
    Committed,
    DecisionDue,
    SampleReturned,
    TimerFired,
)
from argosy.model.explanations import CONFLICTS, Refusal, Why
from argosy.model.jobs import index_of, job_of, task_name
from argosy.model.scenario import Jittered, Measured, NotModelled, Scaled
from argosy.model.transactions import Claims, MachineArray, Outcome, TaskArray, Transaction
from argosy.model.units import LARGEST

if TYPE_CHECKING:
    from argosy.host.host import Host

_CONFLICTS: Final = frozenset(map(int, CONFLICTS))
_NO_TIME: Final = EarlierTime(0)
_AT_ONCE: Final = Pace()
#: A commit, and its answer.
_MOST_SAVED: Final = 2


class EffectRunner:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._runtime = host.runtime
        self._board = host.board
        self._links = host.links
        #: The delay of every hop, if all are equal; otherwise -1.
        self._hop = host.links.plain_hop
        self._jobs = host.jobs
        self._decisions = host.decisions
        #: Who steals must meet them; nobody asks otherwise.
        self._requirements: QueueRequirements | None = None
        if host.setup.machines.steal is not None:
            self._requirements = QueueRequirements(host.runtime, host.view, host.jobs)
        self.room_watch = RoomWatch(host)
        #: How many events in a row were carried out without a detour over the clock; none may be where
        #: somebody looks between events. Whether the current effect is all that its engine answered.
        self._detours_saved = _MOST_SAVED if host.is_watched else 0
        self._is_alone = False
        #: Whether the answer to a commit may come at once, and nobody records what came before it.
        self._answers_at_once = self._hop == 0 and host.decisions.journal is None
        self._agents = Agents(host.setup.clusters, host.view, host.random)
        #: The agents of clusters: in this process, or in others.
        self.desks: AgentDesks | RemoteDesks
        if host.remote_agents is None:
            self.desks = AgentDesks(self, host)
        else:
            self.desks = RemoteDesks(self, host, host.remote_agents)
        self._methods: dict[type[Any], Callable[[Scheduler, Any, int], None]] = {
            Think: self._think,
            Commit: self._commit,
            Enqueue: self._enqueue,
            Probe: self._probe,
            AnswerProbe: self._answer,
            AskQueues: self.room_watch.ask,
            Sample: self._sample,
            Send: Mail(host).send,
            WakeMe: self._wake_me,
            Explain: self._explain,
            Abandon: self._abandon,
            Deliberate: self._deliberate,
        }

    @property
    def remote_desks(self) -> RemoteDesks:
        assert isinstance(self.desks, RemoteDesks)
        return self.desks

    def carry_out(self, scheduler: Scheduler, effects: Sequence[Effect], now: int) -> None:
        # Comparing the class is fast; checking for iterability is not.
        kind = type(effects)
        if kind is not tuple and kind is not list and not isinstance(effects, Iterable):
            raise EngineFault(
                f"{scheduler.label} returned {kind.__name__}",
                expected="a list or tuple of effects",
            )
        self._is_alone = kind is tuple and len(effects) == 1
        for effect in effects:
            method = self._methods.get(type(effect))
            if method is None:
                raise EngineFault(
                    f"{scheduler.label} returned {type(effect).__name__} among its effects",
                    expected="one of the effects of argosy.engine",
                )
            try:
                method(scheduler, effect, now)
            except faults.EFFECT_ERRORS as error:
                raise faults.malformed(scheduler.label, effect, error) from error

    def _think(self, scheduler: Scheduler, effect: Think, now: int) -> None:
        duration = self.spend(scheduler, effect, now)
        self._host.post(now + duration, scheduler, DecisionDue(effect.token))

    def _deliberate(self, scheduler: Scheduler, effect: Deliberate, now: int) -> None:
        self._host.deliberate(scheduler, effect)

    def spend(self, scheduler: Scheduler, effect: Think, now: int) -> int:
        """Records the decision time of `effect` and returns it."""
        duration, earlier = effect.duration, effect.earlier or _NO_TIME
        if duration < 0:
            raise EngineFault(f"{scheduler.label} wants to think for {duration} µs")
        if effect.earlier is not None:
            checks.check_earlier(scheduler, effect, effect.earlier)
        if not scheduler.is_as_told:
            duration = self._modelled(scheduler, duration, now)
        if duration > LARGEST:
            duration = LARGEST
        scheduler.lanes[effect.lane].think(now, duration, earlier.total)
        job = effect.job
        if job >= 0:
            if not self._runtime.attempt(job, scheduler.index, duration + earlier.on_job):
                raise _foreign_job(scheduler, job, "decides on")
            if self._decisions.journal is not None:
                self._decisions.attempt(now, job, scheduler.name, duration, earlier.on_job)
        return duration

    def _modelled(self, scheduler: Scheduler, duration: int, now: int) -> int:
        """The decision time by the scheduler's model, if its engine says `duration`."""
        match scheduler.entry.decision_time:
            case Scaled(factor=factor):
                duration = int(duration * factor)
            case Jittered(low=low, high=high):
                share = scheduler.decision_random.uniform()
                duration = int(duration * (low + (high - low) * share))
            case NotModelled():
                duration = 0
            case Measured(factor=factor):
                duration = self._host.measured(scheduler, factor)
                self._decisions.input(records.MeasuredRecord(now, scheduler.name, duration))
        return duration

    def _commit(self, scheduler: Scheduler, effect: Commit, now: int) -> None:
        transaction = effect.transaction
        name = transaction.scheduler
        if name != scheduler.name and name.split(":")[0] != scheduler.name:
            raise EngineFault(f"{scheduler.name} commits as {transaction.scheduler!r}")
        if transaction.machines:
            raise EngineFault(f"{scheduler.name} tries to change machines", expected="claims only")
        if effect.cluster:
            self._agents.check_claims(scheduler, effect.cluster, transaction.claims)
        if effect.pipeline is not None:
            checks.check_pipeline(scheduler, effect, has_agent=effect.cluster in self.desks)
        delay = self._hop
        if delay < 0:
            delay = self._links.reliable_delay(scheduler.name, agent_of(effect.cluster), now)
        if delay == 0 and self._is_alone and self.passes_turn():
            self._detours_saved += 1
            try:
                self._arrive_commit(scheduler, effect, now)
            finally:
                self._detours_saved -= 1
        else:
            self._host.request(now + delay, scheduler, self._arrive_commit, effect)

    def passes_turn(self) -> bool:
        """Whether what is to happen now, and would come next anyway, happens without a detour over the
        clock: `go_on` must follow. Only so often in a row, because each time is a call within a call."""
        return self._detours_saved < _MOST_SAVED and self._runtime.pass_turn()

    def go_on(
        self,
        action: Callable[[Scheduler, Any, int], None],
        scheduler: Scheduler,
        what: Any,
        now: int,
    ) -> None:
        self._detours_saved += 1
        try:
            action(scheduler, what, now)
        finally:
            self._detours_saved -= 1

    def _arrive_commit(self, scheduler: Scheduler, effect: Commit, now: int) -> None:
        if effect.pipeline is not None:
            self.desks[effect.cluster].commit(scheduler, effect, now)
            return
        outcome, is_next = self._commit_claims(scheduler, effect, now)
        if outcome is None:
            outcome = self._commit_all(scheduler, effect, now)
        event = Committed(effect.token, outcome)
        delay = self._hop
        if delay < 0:
            delay = self._links.reliable_delay(agent_of(effect.cluster), scheduler.name, now)
        if is_next or (delay == 0 and self.passes_turn()):
            self._detours_saved += 1
            try:
                self._host.handle(scheduler, event, now)
            finally:
                self._detours_saved -= 1
        else:
            self._host.post(now + delay, scheduler, event)

    def _commit_claims(
        self, scheduler: Scheduler, effect: Commit, now: int
    ) -> tuple[Outcome | None, bool]:
        """Commits a transaction of nothing but claims, as most are, and launches their tasks. There is
        no outcome, and nothing has changed, if it is another. Also: whether the answer `passes_turn`."""
        transaction = effect.transaction
        claims = transaction.claims
        is_named = transaction.scheduler == scheduler.name
        if claims is None or not (is_named and transaction.only_claims and len(claims.tasks)):
            return None, False
        try:
            answer = self._runtime.commit(
                scheduler.number,
                scheduler.index,
                scheduler.capabilities.malleable,
                claims.tasks,
                claims.machines,
                claims.shapes,
                claims.versions,
                transaction.atomic,
                transaction.coarse,
                transaction.preempt,
                self._answers_at_once and self._detours_saved < _MOST_SAVED,
            )
        except faults.EFFECT_ERRORS:
            # It is malformed; the longer way says how.
            return None, False
        if answer is False:
            return None, False
        scheduler.transactions += 1
        if answer is True or answer is None:
            outcome = self._host.cell.accepted(claims)
            scheduler.successes += 1
            scheduler.success_days[now // DAY] += 1
            if self._decisions.journal is not None:
                self._placed(scheduler, effect, claims.tasks, claims.machines, now)
            return outcome, answer is None
        outcome = self._host.cell.outcome(claims, answer)
        self._host.membership.evict(outcome, Why.PREEMPTED, now)
        self._launch(scheduler, claims, outcome, effect, now)
        return outcome, False

    def _commit_all(self, scheduler: Scheduler, effect: Commit, now: int) -> Outcome:
        """Commits any transaction."""
        transaction = effect.transaction
        vacated = self._machines_left(transaction)
        outcome = self.judge(scheduler, transaction)
        self.conclude(scheduler, effect, transaction, outcome, now)
        for machine in vacated:
            self._runtime.pump(machine)
        return outcome

    def judge(self, scheduler: Scheduler, transaction: Transaction) -> Outcome:
        """The cell's answer, now."""
        claims, late = transaction.claims, None
        if claims is not None:
            late = self._late(scheduler, claims.tasks, moves=transaction.move)
        if late is None:
            return self._host.cell.commit(transaction)
        outcome = self._host.cell.commit(late_claims.drop_late_claims(transaction, late))
        return late_claims.with_refusals(transaction, late, outcome)

    def conclude(
        self,
        scheduler: Scheduler,
        effect: Commit,
        transaction: Transaction,
        outcome: Outcome,
        now: int,
    ) -> None:
        """Counts and records the outcome, and starts the tasks that were accepted."""
        claims = transaction.claims
        # A transaction that only announces wants cannot conflict, so it is not counted.
        releases, forgets = transaction.releases, transaction.forgets
        if claims is not None or releases is not None or forgets is not None:
            scheduler.transactions += 1
        if releases is not None:
            self._release(scheduler, releases, outcome.unreleased, now)
        if forgets is not None:
            self._release(scheduler, forgets, outcome.unforgotten, now)
        if claims is not None and len(claims.tasks):
            self._host.membership.evict(outcome, Why.PREEMPTED, now)
            self._launch(scheduler, claims, outcome, effect, now)

    def _late(
        self, scheduler: Scheduler, tasks: TaskArray, *, moves: bool
    ) -> NDArray[np.uint8] | None:
        """For each claim, why it comes too late (0: it does not), or None if none does. A claim that
        the scheduler was never allowed to make raises a fault."""
        extras = scheduler.capabilities.malleable
        first = self._board.first_misplaced(tasks, scheduler.index, moves, extras)
        if first < 0:
            return None
        late = np.zeros(len(tasks), np.uint8)
        for row in range(first, len(tasks)):
            late[row] = self._why_over(scheduler, int(tasks[row]), moves=moves)
        self._check_placeable(scheduler, tasks[late == 0], may_run=moves, extras=extras)
        return late

    def _why_over(self, scheduler: Scheduler, task: int, *, moves: bool) -> Why:
        """Why the scheduler can no longer place its task, also a removed one; `NONE` if it can."""
        number = job_of(task)
        is_known = 0 <= number < len(self._jobs) and index_of(task) < self._board.tasks(number)
        if not is_known or self._board.owner(number) != scheduler.index:
            return Why.NONE
        state = self._board.state(task)
        if state == TaskState.CANCELLED:
            return Why.CANCELLED
        return Why.ENDED if moves and state == TaskState.FINISHED else Why.NONE

    def _still_wanted(
        self, scheduler: Scheduler, tasks: TaskArray, does: str = "place"
    ) -> NDArray[np.bool_] | None:
        """Which of the tasks were not cancelled in transit; None means all. The others must be the
        scheduler's own and pending."""
        if self._board.first_misplaced(tasks, scheduler.index, False, False) < 0:
            return None
        states = [self._why_over(scheduler, task, moves=False) for task in tasks.tolist()]
        is_wanted = np.array([why is Why.NONE for why in states], np.bool_)
        self._check_placeable(scheduler, tasks[is_wanted], may_run=False, does=does)
        return is_wanted

    def _machines_left(self, transaction: Transaction) -> list[int]:
        """Machines that releases and moves would free up: their queues may proceed afterwards."""
        releases, forgets = transaction.releases, transaction.forgets
        if releases is forgets is None and not transaction.move:
            return []
        leaving = [] if releases is None else releases.tolist()
        if forgets is not None:
            leaving.extend(forgets.tolist())
        if transaction.move and transaction.claims is not None:
            leaving.extend(transaction.claims.tasks.tolist())
        machines = map(self._host.cell.machine_of, leaving)
        return sorted({machine for machine in machines if machine is not None})

    def _launch(
        self,
        scheduler: Scheduler,
        claims: Claims,
        outcome: Outcome,
        effect: Commit,
        now: int,
    ) -> None:
        tasks, machines = claims.tasks, outcome.machines
        if outcome.all_accepted:
            scheduler.successes += 1
            scheduler.success_days[now // DAY] += 1
        else:
            rows = np.flatnonzero(~outcome.accepted)
            whys = outcome.whys[rows].tolist()
            scheduler.refused.update(whys)
            if not _CONFLICTS.isdisjoint(whys):
                scheduler.conflicts += 1
                scheduler.conflict_days[now // DAY] += 1
            self._decisions.refused(now, claims, outcome, rows, scheduler.name)
            tasks, machines = tasks[outcome.accepted], machines[outcome.accepted]
        if len(tasks):
            self._runtime.launch(tasks)
            self._placed(scheduler, effect, tasks, machines, now)

    def _placed(
        self,
        scheduler: Scheduler,
        effect: Commit,
        tasks: TaskArray,
        machines: MachineArray,
        now: int,
    ) -> None:
        assumed = effect.transaction.assume
        self._decisions.placed(
            now, tasks, machines, scheduler.name, effect.explanation, assumed=assumed
        )

    def _release(
        self, scheduler: Scheduler, releases: TaskArray, refusals: tuple[Refusal, ...], now: int
    ) -> None:
        """Tasks whose claims were released or forgotten, and that were not placed elsewhere in the same
        transaction, become pending again."""
        cell = self._host.cell
        kept = {refusal.task for refusal in refusals}
        freed = [task for task in dict.fromkeys(releases.tolist()) if task not in kept]
        homeless = np.array([task for task in freed if cell.machine_of(task) is None], np.int64)
        self._host.stop(homeless, Why.RELEASED)
        self._runtime.set_pending(homeless)
        self._decisions.tasks(now, records.ReleasedRecord, homeless, scheduler=scheduler.name)

    def _enqueue(self, scheduler: Scheduler, effect: Enqueue, now: int) -> None:
        tasks, machines = effect.tasks, effect.machines
        pace = effect.pace or _AT_ONCE
        checks.check_enqueue(scheduler, effect, pace)
        wanted = self._still_wanted(scheduler, tasks)
        if wanted is not None:
            tasks, machines = tasks[wanted], machines[wanted]
        at = now + self._way_to_machines(scheduler, now)
        required = () if self._requirements is None else self._requirements.of(tasks)
        self._runtime.enqueue(
            at,
            scheduler.number,
            tasks,
            machines,
            effect.estimate,
            required,
            pace.first,
            pace.every,
        )
        self._decisions.enqueued(now, tasks, machines, scheduler.name, effect.explanation, pace)

    def _way_to_machines(self, scheduler: Scheduler, now: int) -> int:
        if self._hop >= 0:
            return self._hop
        return self._links.reliable_delay(scheduler.name, MACHINES, now)

    def _check_placeable(
        self,
        scheduler: Scheduler,
        tasks: TaskArray,
        *,
        may_run: bool,
        extras: bool = False,
        does: str = "place",
    ) -> None:
        """Raises a fault unless the scheduler may place `tasks`. `extras` allows workers beyond those
        that a job asked for."""
        bad = self._board.first_misplaced(tasks, scheduler.index, may_run, extras)
        if bad >= 0:
            task = self._task_name(int(tasks[bad]))
            raise EngineFault(
                f"{scheduler.name} {does}s task {task}, which it may not {does}",
                expected="a pending task of its own",
            )

    def _task_name(self, task: int) -> str:
        is_known = 0 <= job_of(task) < len(self._jobs)
        return task_name(self._jobs.name(job_of(task)) if is_known else "unknown", index_of(task))

    def _probe(self, scheduler: Scheduler, effect: Probe, now: int) -> None:
        is_known = 0 <= effect.job < len(self._jobs)
        if not is_known or self._board.owner(effect.job) != scheduler.index:
            raise _foreign_job(scheduler, effect.job, "probes for")
        checks.check_probe(scheduler, effect)
        at = now + self._way_to_machines(scheduler, now)
        precedence = self._jobs.job(effect.job).precedence
        shape = self._host.view.shape(effect.request, (), precedence)
        if effect.tasks is not None:
            self._deal(scheduler, effect, effect.tasks, shape, at, now)
            return
        self._runtime.probe(at, self._terms(scheduler, effect, shape), effect.machines)

    def _deal(
        self,
        scheduler: Scheduler,
        effect: Probe,
        tasks: TaskArray,
        shape: int,
        at: int,
        now: int,
    ) -> None:
        wanted = self._still_wanted(scheduler, tasks)
        if wanted is not None:
            tasks = tasks[wanted]
        self._runtime.deal(
            at,
            self._terms(scheduler, effect, shape),
            effect.machines,
            tasks,
            effect.sticky,
            effect.cancel,
        )
        self._decisions.tasks(
            now,
            records.ProbedRecord,
            tasks,
            scheduler=scheduler.name,
            machines=effect.machines.tolist(),
        )

    def _terms(self, scheduler: Scheduler, effect: Probe, shape: int) -> ProbeTerms:
        required = 0 if self._requirements is None else self._requirements.of_probe(effect)
        return ProbeTerms(
            effect.job, scheduler.index, scheduler.number, shape, effect.estimate, required
        )

    def _answer(self, scheduler: Scheduler, effect: AnswerProbe, now: int) -> None:
        if effect.task is not None:
            self._still_wanted(scheduler, np.array([effect.task], np.int64))
        delay = self._links.reliable_delay(scheduler.name, MACHINES, now)
        self._host.request(now + delay, scheduler, self._arrive_answer, effect)

    def _arrive_answer(self, scheduler: Scheduler, effect: AnswerProbe, now: int) -> None:
        """A slot held on a machine that has left is lost, and its task is pending again."""
        probe = effect.probe
        if not self._runtime.is_held(probe):
            raise EngineFault(f"{scheduler.name} answers probe {probe}, which holds no slot")
        if self._runtime.probe_owner(probe) != scheduler.index:
            raise EngineFault(f"{scheduler.name} answers probe {probe}, which is not its own")
        is_cancelled = (
            effect.task is not None and self._board.state(effect.task) == TaskState.CANCELLED
        )
        if effect.task is None or is_cancelled:
            self._runtime.cancel(effect.probe)
            return
        tasks = np.array([effect.task], np.int64)
        self._check_placeable(scheduler, tasks, may_run=False)
        if self._runtime.bind(effect.probe, effect.task):
            machine = self._host.cell.machine_of(effect.task)
            machines = np.array([machine], np.int32)
            self._decisions.placed(now, tasks, machines, scheduler.name, None)
        else:
            self._host.membership.lose(tasks, np.full(1, -1, np.int32), Why.MACHINE_GONE, now)

    def _sample(self, scheduler: Scheduler, effect: Sample, now: int) -> None:
        checks.check_sample(scheduler, effect)
        if effect.cluster:
            self._agents.check_known(scheduler, effect.cluster, "samples")
        if effect.pipeline is not None and effect.cluster not in self.desks:
            raise checks.no_agent(scheduler, effect)
        delay = self._links.reliable_delay(scheduler.name, agent_of(effect.cluster), now)
        self._host.request(now + delay, scheduler, self._arrive_sample, effect)

    def _arrive_sample(self, scheduler: Scheduler, effect: Sample, now: int) -> None:
        if effect.pipeline is not None:
            self.desks[effect.cluster].sample(scheduler, effect, now)
            return
        found = self._agents.sample(effect)
        free = self._host.view.free(found.machines)
        event = SampleReturned(effect.token, found.machines, free, found.versions, effect.cluster)
        delay = self._links.reliable_delay(agent_of(effect.cluster), scheduler.name, now)
        self._host.post(now + delay, scheduler, event)

    def _wake_me(self, scheduler: Scheduler, effect: WakeMe, now: int) -> None:
        if self._decisions.has_details:
            self._decisions.detail(records.TimerRecord(now, scheduler.name, effect.name, effect.at))
        if effect.at > LARGEST:
            raise checks.fault(scheduler, effect, f"at is {effect.at}", f"at most {LARGEST}")
        self._host.post(max(effect.at, now), scheduler, TimerFired(effect.name))

    def _explain(self, scheduler: Scheduler, effect: Explain, now: int) -> None:
        bad = self._board.first_foreign(effect.tasks, scheduler.index)
        if bad >= 0:
            task = self._task_name(int(effect.tasks[bad]))
            raise EngineFault(f"{scheduler.name} explains task {task}, which is not its own")
        self._decisions.tasks(
            now,
            records.ExplainedRecord,
            effect.tasks,
            scheduler=scheduler.name,
            explanation=effect.explanation,
        )

    def _abandon(self, scheduler: Scheduler, effect: Abandon, now: int) -> None:
        wanted = self._still_wanted(scheduler, effect.tasks, "abandon")
        tasks = effect.tasks if wanted is None else effect.tasks[wanted]
        self._runtime.set_over(tasks, TaskState.ABANDONED)
        self._host.note_given_up(tasks)
        self._decisions.tasks(
            now,
            records.AbandonedRecord,
            tasks,
            scheduler=scheduler.name,
            explanation=effect.explanation,
        )


def _foreign_job(scheduler: Scheduler, job: int, does: str) -> EngineFault:
    return EngineFault(f"{scheduler.name} {does} job {job}, which is not its own")
