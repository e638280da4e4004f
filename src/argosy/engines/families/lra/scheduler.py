"""Two schedulers: one for long-running applications (LRAs), one for tasks, which allocates for both.

LRAs are collected and placed together once per interval. Their placement is decided on the cell as it
is at the start, in the background if it could take long. When the decision time has passed, the task
scheduler commits it, each LRA whole or not at all. If tasks have taken the room in the meantime, that
is a conflict: see `LraSettings.conflict`.

Tasks are served from queues, which LRAs count in: see `queue_scheduler`. An LRA whose queue is at its
limit waits; so may one whose queue has more than others with work to do (`LraSettings.fair_delay`).

Running containers that break a constraint may be moved, beside a batch of LRAs or when room appears.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.api import (
    Capabilities,
    Context,
    Finishes,
    RunFacts,
    SettingMismatch,
    Settings,
)
from argosy.engines.families.lra.hard import hard_rows
from argosy.engines.families.lra.manager import Sight, operator_mismatch
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.plans import (
    Application,
    AskedBatch,
    BatchDecision,
    BatchPlan,
    Planner,
    tasks_by_kind,
)
from argosy.engines.families.lra.queue_scheduler import QueueScheduler
from argosy.engines.families.lra.reasons import unplaced
from argosy.engines.families.lra.settings import LraSettings
from argosy.engines.families.lra.statistics import SolverStatistics
from argosy.engines.families.lra.tasks import choose
from argosy.engines.shared.serial import PendingJob
from argosy.engines.shared.withdrawal import Withdrawal, chosen_claims, claims_left, left
from argosy.model.budgets import Budget
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import is_container_of
from argosy.model.effects import Abandon, Commit, Deliberate, Effect, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    Decision,
    DecisionDue,
    Deliberated,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    Started,
    TaskFinished,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import CONFLICTS, Explanation, Refusal, Why
from argosy.model.jobs import Job, TaskGroup, job_of
from argosy.model.random import Random
from argosy.model.transactions import Claims, Outcome, TaskArray, Transaction
from argosy.solvers.placement import PlacementAnswer, PlacementProblem

_INTERVAL: Final = "interval"
#: The token of attempts that are part of another attempt: no event follows.
_ALONG: Final = -(2**40)
#: The batch under way, in `Shares.promise`.
_BATCH: Final = "batch"
_BEHIND: Final = Explanation(
    refused=Refusal(Why.BEHIND), remedy="room for work of others whose queues have less"
)


def _outdated(machine: int) -> Explanation:
    """Of what would break a hard constraint since the cell changed."""
    return Explanation(
        refused=Refusal(Why.FILTERED, machine=machine),
        remedy="another attempt: containers or hard constraints came while this was decided",
    )


def _asked(application: Application) -> object:
    """What an application asks for beside constraints: of all that ask for the same, one finds a place
    if another does."""
    return tuple(
        (tuple(group.request.items()), tuple(group.requires.items()), len(tasks))
        for group, tasks in application.job.tasks_by_group(application.tasks)
    )


class LraScheduler(QueueScheduler, ABC):
    """Engines define how LRAs are placed (`decide`) and which constraints they support (`sight`)."""

    settings_type: ClassVar[type[Settings]] = LraSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True,
        gang=True,
        preemption=True,
        constraints=True,
        finishes=Finishes.OWN,
        alone=True,
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, LraSettings)
        super().__init__(settings, context)
        self._lra = settings
        self._planner = Planner(settings, self.decide, context.name)
        self._statistics = SolverStatistics()
        self._memory: Memory | None = None
        #: LRAs waiting for the next interval, by number.
        self._pending: dict[int, Application] = {}
        #: The batch being deliberated, until there is a plan for it.
        self._asked: AskedBatch | None = None
        self._plan: BatchPlan | None = None
        #: Whether the plan's claims are on their way to the cell.
        self._is_allocating = False
        #: The token of the current plan; negative in questions, because the task scheduler uses
        #: positive ones.
        self._token = 0
        self._timer = -1
        #: Whether running containers may have found better places since the last batch.
        self._may_migrate = False

    @abstractmethod
    def decide(self, problem: PlacementProblem, random: Random, budget: Budget) -> PlacementAnswer:
        """Where the containers of all applications in a batch go. Must not use any state."""

    @property
    def is_long(self) -> bool:
        """Whether `decide` is too slow for the loop: then the engine `Deliberates`."""
        return False

    @property
    def time_limit(self) -> int:
        """Limit on one decision, in microseconds; 0: none."""
        return 0

    @classmethod
    def sight(cls) -> Sight | None:
        return None

    @classmethod
    def supports(cls, constraint: Constraint) -> bool:
        sight = cls.sight()
        seen = constraint if sight is None else sight(constraint)
        return seen is not None and seen.rule == constraint.rule

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        """Operator's constraints among the settings that no cell like this could keep."""
        assert isinstance(settings, LraSettings)
        return settings.queue_mismatch() or operator_mismatch(settings.operator, facts)

    def figures(self) -> dict[str, float]:
        return self._statistics.figures()

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case Started():
                return ()
            case JobSubmitted(job, number, tasks):
                return self._submitted(job, number, tasks, view, now)
            case TasksLost(job, number, tasks):
                return self._lost(event, view, now)
            case TaskFinished() | MachineJoined() | MachineChanged():
                return [*super().handle(event, view, now), *self._room_appeared(now)]
            case TimerFired(name) if name == _INTERVAL:
                return self._plan_batch(view, now)
            case DecisionDue(token) if token < 0:
                return self._allocate(view, now) if -token == self._token else ()
            case Deliberated(token, decision):
                return self._deliberated(token, decision, view, now)
            case Committed(token, outcome) if token < 0:
                return self._allocated(outcome, view, now) if -token == self._token else ()
            case JobCancelled() | JobChanged():
                self._withdraw_applications(event)
        return super().handle(event, view, now)

    def _withdraw_applications(self, event: Withdrawal) -> None:
        planned: Sequence[Application] = ()
        if self._asked is not None:
            planned = self._asked.applications
        elif self._plan is not None:
            planned = self._plan.applications
        for application in (*self._pending.values(), *planned):
            if application.number == event.number:
                before, application.job = application.tasks, event.job
                application.tasks = left(before, event)
                gone = np.setdiff1d(before, application.tasks)
                waits = self._pending.get(application.number) is application
                if application in planned and self._is_allocating and not waits:
                    # Accepted ones will be reported as ended; the others are counted when the cell
                    # answers.
                    continue
                self.withdrawn(event.job, gone)
        self._pending = {n: waits for n, waits in self._pending.items() if len(waits.tasks)}
        if self._plan is not None and not self._is_allocating:
            self._plan = structs.replace(self._plan, claims=claims_left(self._plan.claims, event))

    def _known(self, view: View) -> Memory:
        """The memory, updated to the current cell."""
        if self._memory is None or self._memory.is_outgrown(view):
            self._memory = self.remember(view)
        else:
            self._memory.refresh(view)
        return self._memory

    def _constraints(self, view: View) -> Memory:
        """The memory, of which only constraints are updated."""
        if self._memory is None or self._memory.is_outgrown(view):
            self._memory = self.remember(view)
        else:
            self._memory.refresh_constraints(view)
        return self._memory

    def remember(self, view: View) -> Memory:
        """A new memory of everything the view shows."""
        operator = (*self._context.constraints, *self._lra.operator)
        return Memory(view, self._context.name, operator, self.sight(), self._lra.operators)

    def tags(self, job: Job, group: TaskGroup) -> Sequence[str]:
        return self._planner.tags(job, group)

    def _submitted(
        self, job: Job, number: int, tasks: TaskArray, view: View, now: int
    ) -> Sequence[Effect]:
        if job.constraints and (error := self._known(view).refused(number)) is not None:
            refused = Explanation(refused=Refusal(Why.FILTERED), remedy=str(error))
            return (Abandon(tasks, refused),)
        if not self._lra.is_lra(job):
            return super().handle(JobSubmitted(job, number, tasks), view, now)
        self._register(job, number)
        return self._wait(Application(job, number, tasks), now)

    def _wait(self, application: Application, now: int) -> Sequence[Effect]:
        known = self._pending.get(application.number)
        if known is not None:
            known.tasks = np.union1d(known.tasks, application.tasks)
            return ()
        self._pending[application.number] = application
        return self._set_timer(now)

    def _set_timer(self, now: int) -> Sequence[Effect]:
        interval = self._lra.interval
        at = (now // interval + 1) * interval if interval else now
        is_idle = not self._pending and not self._may_migrate
        if is_idle or self._timer >= at or self._is_planning:
            return ()
        self._timer = at
        return (WakeMe(at, _INTERVAL),)

    def _room_appeared(self, now: int) -> Sequence[Effect]:
        if not self._lra.migrate:
            return ()
        self._may_migrate = True
        return self._set_timer(now)

    def _lost(self, event: TasksLost, view: View, now: int) -> Sequence[Effect]:
        job, tasks = event.job, event.tasks
        if not self._lra.is_lra(job):
            return super().handle(event, view, now)
        self._lose(job, event.number, tasks, view)
        return [*self._wait(Application(job, event.number, tasks), now), *self._resume(view)]

    def _hold(self, claims: Claims, accepted: NDArray[np.bool_], view: View) -> None:
        """Containers that only moved do not change what queues hold."""
        moved = claims.tasks[:0]
        if self._plan is not None and claims is self._plan.claims and claims.gangs is not None:
            moved = claims.tasks[claims.gangs >= len(self._plan.applications)]
        super()._hold(claims, accepted & ~np.isin(claims.tasks, moved), view)

    @property
    def _is_planning(self) -> bool:
        return self._plan is not None or self._asked is not None

    def _plan_batch(self, view: View, now: int) -> Sequence[Effect]:
        """Places all waiting LRAs that may be placed now, together, on the current cell."""
        if self._is_planning or not (self._pending or self._may_migrate):
            return ()
        batch, effects = self._admitted(view)
        can_migrate = bool(self._lra.migrate) and not self._known(view).manager.is_idle
        self._may_migrate = False
        if not batch and not can_migrate:
            return [*effects, *self._set_timer(now)]
        self._token += 1
        containers = sum(len(application.tasks) for application in batch)
        time = self._lra.t_lra * max(1, len(batch)) + self._lra.t_container * containers
        numbers = [application.number for application in batch] or [-1]
        along = [Think(0, _ALONG, other, "lra") for other in numbers[1:]]
        stream, limit = self._context.random, self.time_limit
        self._shares.promise(_BATCH, ((each.job, each.tasks) for each in batch), view)
        names = self._constraints(view).names
        tasks = tasks_by_kind(batch, names)
        if self.is_long:
            seed = stream.child(f"deliberation {self._token}").bits()
            question = self._planner.ask(batch, view, names, seed, self._jobs)
            self._asked = AskedBatch(batch, tasks, question)
            asked = Deliberate(-self._token, question, numbers[0], "lra", time, limit)
            return [*effects, asked, *along]
        question = self._planner.ask(batch, view, names, running=self._jobs)
        memory = self._known(view)
        budget = self._context.budgets.start(limit)
        under_way = self._under_way(memory) if self._lra.conflict == "reserve" else None
        decision = self._planner.decide(question, memory, view, stream, budget, under_way)
        self._adopt(AskedBatch(batch, tasks, question), decision, view)
        return [*effects, Think(time, -self._token, numbers[0], "lra"), *along]

    def _admitted(self, view: View) -> tuple[list[Application], list[Effect]]:
        """The LRAs to place now, by precedence. Others keep waiting: those whose queue is at its limit,
        or has more than that of others with work."""
        self._shares.promise(_BATCH, (), view)
        waiting = sorted(self._pending.values(), key=lambda each: -each.job.precedence)
        works = [work.job for work in (*self._queue, *self._waiting.values())]
        batch: list[Application] = []
        effects: list[Effect] = []
        for application in waiting:
            job, tasks = application.job, application.tasks
            if self._shares.allowance(job, tasks, view) < len(tasks):
                effects.append(Explain(tasks, self._shares.limited(job, tasks, view)))
                continue
            if application.delays < self._lra.fair_delay:
                others = [*works, *(each.job for each in waiting if each is not application)]
                if self._shares.is_ahead(job, others, view):
                    application.delays += 1
                    effects.append(Explain(tasks, _BEHIND))
                    continue
            application.attempts += 1
            batch.append(application)
            del self._pending[application.number]
            self._shares.promise(_BATCH, ((each.job, each.tasks) for each in batch), view)
        return batch, effects

    def _under_way(self, memory: Memory) -> Claims | None:
        """Claims of tasks that were decided before and are not in the cell yet."""
        claims = self._claims if self._deciding is not None else None
        if claims is None:
            return None
        rows = zip(claims.tasks.tolist(), claims.machines.tolist(), strict=True)
        is_new = np.array([not memory.is_running(*row) for row in rows], np.bool_)
        return chosen_claims(claims, is_new)

    def _adopt(self, asked: AskedBatch, decision: BatchDecision, view: View) -> None:
        self._plan = self._planner.plan(
            asked.applications, asked.tasks, asked.question, decision, view
        )
        self._statistics.add(decision)

    def _deliberated(
        self, token: int, decision: Decision, view: View, now: int
    ) -> Sequence[Effect]:
        if self._asked is None or -token != self._token:
            return ()
        assert isinstance(decision, BatchDecision)
        self._adopt(self._asked, decision, view)
        self._asked = None
        return self._allocate(view, now)

    def reserved(self, view: View) -> NDArray[np.int64] | None:
        """Resources that tasks may not take while the decision is made."""
        if self._plan is None or self._plan.taken is None:
            return None
        taken, size = self._plan.taken, (view.machines, len(view.dimensions))
        if taken.shape != size:
            # Machines have joined since.
            added = [(0, now - before) for now, before in zip(size, taken.shape, strict=True)]
            taken = np.pad(taken, added)
        return -taken

    def _allocate(self, view: View, now: int) -> Sequence[Effect]:
        """The task scheduler commits the LRA scheduler's decision."""
        assert self._plan is not None
        effects: list[Effect] = []
        placed = self._plan.decision.placed
        left_out = [
            application
            for application, is_placed in zip(self._plan.applications, placed, strict=True)
            if not is_placed and len(application.tasks)
        ]
        if left_out:
            effects.extend(self._not_placed(left_out, view))
        effects.extend(self._leave_out_broken(self._plan, view))
        plan = self._plan
        if plan.claims is None:
            self._plan = None
            self._shares.promise(_BATCH, (), view)
            return [*effects, *self._set_timer(now)]
        self._is_allocating = True
        # One that may push off nobody keeps those that it is placed with from doing so.
        kills = self._lra.conflict == "kill" and all(
            each.job.preempts for each in plan.applications
        )
        transaction = Transaction(
            self._context.name,
            plan.claims,
            preempt=kills,
            move=bool(plan.decision.moves),
        )
        return [*effects, Commit(-self._token, transaction, plan.decision.explanation)]

    def _leave_out_broken(self, plan: BatchPlan, view: View) -> Sequence[Effect]:
        """Applications that would break a hard constraint by now are decided again."""
        claims = plan.claims
        if claims is None or claims.gangs is None:
            return ()
        under_way = self._claims if self._is_committing else None
        rows = hard_rows(self._known(view), view, claims, claims.gangs, under_way)
        if rows.all():
            return ()
        effects: list[Effect] = []
        for gang in np.unique(claims.gangs[~rows]).tolist():
            if gang < len(plan.applications):
                application = plan.applications[gang]
                machine = int(claims.machines[claims.gangs == gang][0])
                effects.extend(self._again(application, _outdated(machine)))
        self._plan = structs.replace(plan, claims=chosen_claims(claims, rows))
        return effects

    def _not_placed(self, left_out: Sequence[Application], view: View) -> Iterator[Effect]:
        """Explains why applications have no place, and has them tried again."""
        memory, planner = self._known(view), self._planner
        free, smallest = planner.room(view), planner.smallest(view)
        # Without constraints, what an application asks for is all that matters.
        is_shared = memory.manager.is_idle
        known: dict[object, Explanation] = {}
        for application in left_out:
            asked = _asked(application) if is_shared else application.number
            why = known.get(asked)
            if why is None:
                kinds = planner.kinds(planner.ask([application], view, memory.names), view)
                why = unplaced(memory, application.number, kinds, free, view, smallest)
                known[asked] = why
            yield from self._again(application, why)

    def _again(self, application: Application, why: Explanation) -> Sequence[Effect]:
        if application.attempts >= self._serial.attempts:
            given_up = Refusal(Why.ATTEMPTS, lacking=application.attempts)
            return (Abandon(application.tasks, structs.replace(why, refused=given_up)),)
        explain = Explain(application.tasks, why)
        # More of its tasks may have arrived in the meantime.
        if (known := self._pending.get(application.number)) is not None:
            application.tasks = np.union1d(known.tasks, application.tasks)
        self._pending[application.number] = application
        return (explain,)

    def _allocated(self, outcome: Outcome, view: View, now: int) -> Sequence[Effect]:
        plan = self._plan
        assert plan is not None
        claims = plan.claims
        assert claims is not None
        assert claims.gangs is not None
        self._hold(claims, outcome.accepted, view)
        self._plan = None
        self._is_allocating = False
        self._shares.promise(_BATCH, (), view)
        # Those that moved may have made room for others.
        self._may_migrate |= bool(plan.decision.moves)
        is_new = claims.gangs < len(plan.applications)
        self._count_withdrawn(plan, claims.tasks[is_new & ~outcome.accepted])
        refused = claims.gangs[~outcome.accepted]
        again = [
            each
            for index, each in enumerate(plan.applications)
            if index in refused and len(each.tasks)
        ]
        why: dict[int, Refusal] = {}
        for refusal in outcome.refusals(claims):
            number = job_of(refusal.task)
            # For a gang, prefer the claim that was refused for its own reason.
            if number not in why or why[number].why is Why.TOGETHER:
                why[number] = refusal
        relaxed = self._relax(plan, again, why, view)
        effects: list[Effect] = []
        for application in again:
            if relaxed is None or application not in relaxed.applications:
                refusal = why[application.number]
                effects.extend(self._again(application, Explanation(refused=refusal)))
        if relaxed is not None:
            self._plan = relaxed
            return [*effects, *self._allocate(view, now)]
        return [*effects, *self._set_timer(now)]

    def _relax(
        self,
        plan: BatchPlan,
        refused: Sequence[Application],
        why: Mapping[int, Refusal],
        view: View,
    ) -> BatchPlan | None:
        """Another place, at once, for those that met a conflict: one that hit a limit would hit it
        there too."""
        if self._lra.conflict != "relax":
            return None
        again = [
            each
            for each in refused
            if why[each.number].why in CONFLICTS and each.attempts < self._serial.attempts
        ]
        if not again:
            return None
        random = self._context.random
        relaxed = self._planner.relaxed(plan, again, random, self._known(view), view)
        if relaxed.claims is None:
            return None
        for application in again:
            application.attempts += 1
        return relaxed

    def _count_withdrawn(self, plan: BatchPlan, refused: TaskArray) -> None:
        """Counts refused tasks that were withdrawn as over."""
        if len(refused):
            wanted = np.concatenate([application.tasks for application in plan.applications])
            for task in np.setdiff1d(refused, wanted).tolist():
                self._one_less(job_of(task))

    def _decided(self, now: int, view: View) -> Sequence[Effect]:
        """Tasks that would break a hard constraint by now are decided again, at once."""
        claims, work = self._claims, self._deciding
        assert work is not None
        if claims is None or not self._is_named(work.job, view):
            return super()._decided(now, view)
        plan = self._plan
        under_way = plan.claims if plan is not None and self._is_allocating else None
        count = len(claims)
        gangs = (
            np.zeros(count, np.int32) if self._terms.atomic else np.arange(count, dtype=np.int32)
        )
        rows = hard_rows(self._known(view), view, claims, gangs, under_way)
        if rows.all():
            return super()._decided(now, view)
        again = Explain(claims.tasks[~rows], _outdated(int(claims.machines[~rows][0])))
        self._explains = [*self._explains, again]
        self._unplaced = np.sort(np.concatenate([self._unplaced, again.tasks]))
        self._claims = chosen_claims(claims, rows)
        if self._claims is None:
            return self._conclude(now, view, should_wait=False)
        return super()._decided(now, view)

    def _is_named(self, job: Job, view: View) -> bool:
        """Whether active constraints concern containers of the job."""
        memory = self._constraints(view)
        if memory.manager.is_idle:
            return False
        if any(is_container_of(job.id, name) for name in memory.names):
            return True
        names = memory.ledger.names
        return any(names(frozenset(self.tags(job, group))) for group in job.groups)

    def _choose(self, work: PendingJob, view: View) -> Claims | None:
        """Tasks that constraints concern go where they violate least in the current cell."""
        if not self._is_named(work.job, view):
            return super()._choose(work, view)
        part = self.part(work, view)
        chosen = choose(
            self._planner,
            Application(work.job, work.number, part),
            self.reserved(view),
            self._context.random,
            self._known(view),
            view,
        )
        self._explanation = chosen.explanation
        self._unplaced = np.concatenate([chosen.left, work.tasks[len(part) :]])
        self._explains = [] if chosen.why is None else [Explain(chosen.left, chosen.why)]
        return chosen.claims
