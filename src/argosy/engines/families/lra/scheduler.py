"""Two schedulers: one for long-running applications (LRAs), one for tasks, which allocates for both.

LRAs are collected and placed together once per interval. Their placement is decided on the cell as it
is at the start, in the background if it could take long. When the decision time has passed, the task
scheduler commits it, each LRA whole or not at all. If tasks have taken the room in the meantime, that
is a conflict: see `LraSettings.conflict`.

Tasks are served from queues, the smallest weighted dominant share first; LRAs count in these shares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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
from argosy.engines.families.lra.queues import Shares
from argosy.engines.families.lra.reasons import unplaced
from argosy.engines.families.lra.settings import LraSettings
from argosy.engines.families.lra.statistics import SolverStatistics
from argosy.engines.families.lra.tasks import choose
from argosy.engines.shared.serial import CommitTerms, PendingJob, SerialScheduler
from argosy.engines.shared.withdrawal import Withdrawal, chosen_claims, claims_left, left
from argosy.model.budgets import Budget
from argosy.model.constraints import Constraint
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
    Started,
    TaskFinished,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import CONFLICTS, Explanation, Refusal, Why
from argosy.model.jobs import Job, TaskGroup, job_of
from argosy.model.random import Random
from argosy.model.transactions import Claims, Outcome, ShapeArray, TaskArray, Transaction
from argosy.solvers.placement import PlacementAnswer, PlacementProblem

_INTERVAL: Final = "interval"
#: The token of attempts that are part of another attempt: no event follows.
_ALONG: Final = -(2**40)


def _outdated(machine: int) -> Explanation:
    """Of what would break a hard constraint since the cell changed."""
    return Explanation(
        refused=Refusal(Why.FILTERED, machine=machine),
        remedy="another attempt: containers or hard constraints came while this was decided",
    )


class LraScheduler(SerialScheduler, ABC):
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
        self._planner = Planner(settings, self.decide)
        self._shares = Shares(settings.queues)
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
        #: Jobs that have not ended, and the number of their open tasks.
        self._jobs: dict[int, Job] = {}
        self._open: dict[int, int] = {}

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
        return operator_mismatch(settings.operator, facts)

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
            case TaskFinished(tasks, _, _, shapes):
                self._ended(tasks, shapes, view)
                return ()
            case TimerFired(name) if name == _INTERVAL:
                return self._plan_batch(view)
            case DecisionDue(token) if token < 0:
                return self._allocate(view, now) if -token == self._token else ()
            case Deliberated(token, decision):
                return self._deliberated(token, decision, view, now)
            case Committed(token, outcome) if token < 0:
                return self._allocated(outcome, view, now) if -token == self._token else ()
            case Committed(token, outcome) if (claims := self._claims_of(token)) is not None:
                self._hold(claims, outcome.accepted, view)
            case JobCancelled():
                self._withdraw_applications(event)
            case JobChanged(job, number, new):
                self._withdraw_applications(event)
                if number in self._jobs:
                    self._jobs[number] = job
                    self._open[number] += len(new)
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

    def withdrawn(self, job: Job, tasks: TaskArray) -> None:
        for task in tasks.tolist():
            self._one_less(job_of(task))

    def _one_less(self, number: int) -> None:
        """Counts a task of the job as over."""
        if number in self._open:
            self._open[number] -= 1
            if not self._open[number]:
                del self._open[number], self._jobs[number]

    def _known(self, view: View) -> Memory:
        """The memory, updated to the current cell."""
        if self._memory is None or self._memory.is_outgrown(view):
            self._memory = self.remember(view)
        else:
            self._memory.refresh(view)
        return self._memory

    def remember(self, view: View) -> Memory:
        """A new memory of everything the view shows."""
        operator = (*self._context.constraints, *self._lra.operator)
        return Memory(view, self._context.name, operator, self.sight())

    def tags(self, job: Job, group: TaskGroup) -> Sequence[str]:
        return self._planner.tags(job, group)

    def _submitted(
        self, job: Job, number: int, tasks: TaskArray, view: View, now: int
    ) -> Sequence[Effect]:
        if job.constraints and (error := self._known(view).refused(number)) is not None:
            refused = Explanation(refused=Refusal(Why.FILTERED), remedy=str(error))
            return (Abandon(tasks, refused),)
        self._open.setdefault(number, job.tasks)
        self._jobs[number] = job
        if not self._lra.is_lra(job):
            return super().handle(JobSubmitted(job, number, tasks), view, now)
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
        if not self._pending or self._timer >= at or self._is_planning:
            return ()
        self._timer = at
        return (WakeMe(at, _INTERVAL),)

    def _lost(self, event: TasksLost, view: View, now: int) -> Sequence[Effect]:
        job, tasks = event.job, event.tasks
        for group, mine in job.tasks_by_group(tasks):
            shape = self._planner.shape(job, group, view)
            self._shares.change(job.owner, shape, -len(mine), view)
        if self._lra.is_lra(job):
            return self._wait(Application(job, event.number, tasks), now)
        return super().handle(event, view, now)

    def _ended(self, tasks: TaskArray, shapes: ShapeArray, view: View) -> None:
        for task, shape in zip(tasks.tolist(), shapes.tolist(), strict=True):
            number = job_of(task)
            job = self._jobs.get(number)
            if job is None:
                continue
            self._shares.change(job.owner, shape, -1, view)
            self._one_less(number)

    def _hold(self, claims: Claims, accepted: NDArray[np.bool_], view: View) -> None:
        """Adds placed containers to their owners' shares; moved ones do not change them."""
        moved = claims.tasks[:0]
        if self._plan is not None and claims is self._plan.claims and claims.gangs is not None:
            moved = claims.tasks[claims.gangs >= len(self._plan.applications)]
        for row in np.flatnonzero(accepted & ~np.isin(claims.tasks, moved)).tolist():
            job = self._jobs.get(job_of(int(claims.tasks[row])))
            if job is not None:
                self._shares.change(job.owner, int(claims.shapes[row]), 1, view)

    @property
    def _is_planning(self) -> bool:
        return self._plan is not None or self._asked is not None

    def _plan_batch(self, view: View) -> Sequence[Effect]:
        """Places all waiting LRAs together, on the current cell."""
        if self._is_planning or not self._pending:
            return ()
        batch = list(self._pending.values())
        self._pending = {}
        for application in batch:
            application.attempts += 1
        self._token += 1
        containers = sum(len(application.tasks) for application in batch)
        time = self._lra.t_lra * len(batch) + self._lra.t_container * containers
        first, *others = batch
        along = [Think(0, _ALONG, other.number, "lra") for other in others]
        stream, limit = self._context.random, self.time_limit
        if self.is_long:
            seed = stream.child(f"deliberation {self._token}").bits()
            question = self._planner.ask(batch, view, seed, self._jobs)
            self._asked = AskedBatch(batch, tasks_by_kind(batch), question)
            return [Deliberate(-self._token, question, first.number, "lra", time, limit), *along]
        question = self._planner.ask(batch, view, running=self._jobs)
        memory = self._known(view)
        budget = self._context.budgets.start(limit)
        decision = self._planner.decide(question, memory, view, stream, budget)
        self._adopt(AskedBatch(batch, tasks_by_kind(batch), question), decision, view)
        return [Think(time, -self._token, first.number, "lra"), *along]

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
        return -self._plan.taken

    def _allocate(self, view: View, now: int) -> Sequence[Effect]:
        """The task scheduler commits the LRA scheduler's decision."""
        assert self._plan is not None
        effects: list[Effect] = []
        placed = self._plan.decision.placed
        for application, is_placed in zip(self._plan.applications, placed, strict=True):
            if not is_placed and len(application.tasks):
                effects.extend(self._not_placed(application, view))
        effects.extend(self._leave_out_broken(self._plan, view))
        plan = self._plan
        if plan.claims is None:
            self._plan = None
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

    def _not_placed(self, application: Application, view: View) -> Sequence[Effect]:
        memory, planner = self._known(view), self._planner
        why = unplaced(
            memory,
            application.number,
            planner.kinds(planner.ask([application], view), view),
            planner.room(view),
            view,
            planner.smallest(view),
        )
        return self._again(application, why)

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

    def _begin(self, view: View) -> Sequence[Effect]:
        """Starts with the next job of the owner with the smallest weighted share."""
        if len(self._queue) > 1:
            self._queue = self._shares.neediest_first(self._queue, view)
        return super()._begin(view)

    def terms(self, work: PendingJob) -> CommitTerms:
        return CommitTerms(atomic=work.job.gang)

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
        if self._memory is None or self._memory.is_outgrown(view):
            self._memory = self.remember(view)
        self._memory.refresh_constraints(view)
        if self._memory.manager.is_idle:
            return False
        names = self._memory.ledger.names
        return any(names(frozenset(self.tags(job, group))) for group in job.groups)

    def _choose(self, work: PendingJob, view: View) -> Claims | None:
        """Tasks that constraints concern go where they violate least in the current cell."""
        if not self._is_named(work.job, view):
            return super()._choose(work, view)
        chosen = choose(
            self._planner,
            Application(work.job, work.number, work.tasks),
            self.reserved(view),
            self._context.random,
            self._known(view),
            view,
        )
        self._explanation, self._unplaced = chosen.explanation, chosen.left
        self._explains = [] if chosen.why is None else [Explain(chosen.left, chosen.why)]
        return chosen.claims
