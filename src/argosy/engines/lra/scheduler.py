"""Two schedulers: one for long-running applications (LRAs), one for tasks, which allocates for both.

LRAs are collected and placed together once per interval. Their placement is decided on the cell as it is
at the beginning; when the decision time has passed it goes to the task scheduler, which commits it, each
LRA whole or not at all. What tasks took meanwhile is a conflict; see `LraSettings.conflict`.

Tasks are served by queues in the order of their weighted dominant shares, in which LRAs count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

import msgspec
import numpy as np
from msgspec import Meta, structs
from numpy.typing import NDArray

from argosy.cell import Bitmap, View
from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.engines.lra.cluster import bitmap, bits, make_ledger
from argosy.engines.lra.manager import ConstraintManager, Sight
from argosy.engines.lra.reasons import unplaced, violated
from argosy.engines.serial import SerialScheduler, SerialSettings, Terms, Work
from argosy.model.constraint_parts import container_tags
from argosy.model.constraints import Constraint
from argosy.model.effects import Abandon, Commit, Effect, Explain, Think, WakeMe
from argosy.model.errors import ModelError
from argosy.model.events import (
    Committed,
    DecisionDue,
    Event,
    JobSubmitted,
    Started,
    TaskFinished,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job, TaskGroup, job_of
from argosy.model.resources import Resources
from argosy.model.transactions import Claims, Outcome, ShapeArray, TaskArray, Transaction
from argosy.model.units import Micros
from argosy.solvers.placement import Answer, Kind, Ledger, Objective, Problem, place
from argosy.solvers.placement.violations import Judge

GIB = 2**30
_EVERY = "*"
_INTERVAL = "interval"
#: Of the attempts that begin with another's: nothing follows.
_ALONG = -(2**40)


class LraSettings(SerialSettings, frozen=True):
    """How long-running applications and tasks are placed beside each other."""

    #: Kinds of jobs that are long-running applications; "*" means all.
    long_running: tuple[str, ...] = ("service",)
    #: Applications that come within one interval are placed together.
    interval: Micros = Micros(10_000_000)
    #: Placing applications takes t_lra for each and t_container for each container.
    t_lra: Micros = Micros(100_000)
    t_container: Micros = Micros(5_000)
    #: The operator's constraints.
    operator: tuple[Constraint, ...] = ()
    #: When tasks took what an application was to get: place it anew in the next interval; kill tasks of
    #: lower precedence; place it elsewhere in the same sets at once; or let no task take it meanwhile.
    conflict: Literal["resubmit", "kill", "relax", "reserve"] = "resubmit"
    #: The node group in which a relaxed container stays.
    relax_within: str = "rack"
    #: The weights of owners' queues in the fairness between them; 1 for those not named.
    queues: dict[str, Annotated[float, Meta(gt=0)]] = msgspec.field(default_factory=dict)
    #: Less room than this on a machine is of no use: it is fragmented.
    smallest: Resources = Resources(1_000, 2 * GIB)
    objective: Objective = Objective()
    #: How many running containers that break constraints may be moved in one interval. 0: none.
    migrate: Annotated[int, Meta(ge=0, le=1_000)] = 0


class Application:
    """An LRA that waits for its containers, or for some that it lost."""

    __slots__ = ("attempts", "job", "number", "tasks")

    def __init__(self, job: Job, number: int, tasks: TaskArray) -> None:
        self.job = job
        self.number = number
        self.tasks = tasks
        self.attempts = 0


class Plan(msgspec.Struct, frozen=True):
    """A decision about a batch, until it is committed."""

    applications: tuple[Application, ...]
    #: Of each application, whether it is placed.
    placed: tuple[bool, ...]
    problem: Problem
    answer: Answer
    claims: Claims | None
    explanation: Explanation
    #: What the claims take, per machine and dimension.
    taken: NDArray[np.int64] | None
    #: Whether running containers move along.
    moves: bool = False


class TwoSchedulers(SerialScheduler):
    """An engine says how LRAs are placed (`decide`) and what it sees of constraints (`sight`)."""

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
        self._ledger: Ledger | None = None
        self._manager: ConstraintManager | None = None
        #: LRAs that wait for the next interval, by number.
        self._pending: dict[int, Application] = {}
        self._plan: Plan | None = None
        self._token = 0
        self._timer = -1
        #: The tags behind each shape that this scheduler asked for; only of containers that have some.
        self._tags: dict[int, frozenset[str]] = {}
        #: Jobs that have not ended, and how many of their tasks.
        self._open: dict[int, int] = {}
        #: Where containers with tags run, with their shape: all and only those in the ledger.
        self._where: dict[int, tuple[int, int]] = {}
        #: Containers that ended before the cell's answer said that they began.
        self._early: set[int] = set()
        self._jobs: dict[int, Job] = {}
        #: What each owner holds, by dimension.
        self._held: dict[str, NDArray[np.int64]] = {}

    def decide(self, problem: Problem) -> Answer:
        raise NotImplementedError

    def sight(self) -> Sight | None:
        return None

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        self._refresh(view)
        match event:
            case Started():
                return ()
            case JobSubmitted(job, number, tasks):
                return self._submitted(job, number, tasks, view, now)
            case TasksLost(job, number, tasks, machines):
                return self._lost(job, number, tasks, machines.tolist(), view, now)
            case TaskFinished(tasks, _, _, shapes):
                self._ended(tasks, shapes, view)
                return ()
            case TimerFired(name) if name == _INTERVAL:
                return self._plan_batch(view, now)
            case DecisionDue(token) if token < 0:
                return self._allocate(view, now) if -token == self._token else ()
            case Committed(transaction, outcome) if (
                self._plan is not None and transaction.claims is self._plan.claims
            ):
                return self._allocated(outcome, view, now)
            case Committed(transaction, outcome) if transaction.claims is not None:
                self._started(transaction.claims, outcome.accepted, view)
        return super().handle(event, view, now)

    def _refresh(self, view: View) -> None:
        """The ledger of the machines there are; a scheduler that begins again reads what runs."""
        if self._ledger is not None and self._ledger.machines == view.machines:
            return
        self._ledger = make_ledger(view)
        manager = ConstraintManager(self._ledger, self._lra.operator, self.sight())
        if self._manager is not None:
            for number in self._manager.numbers():
                manager.submit(number, self._jobs[number])
        self._manager = manager
        self._where = {}
        for task, machine, shape in view.containers(self._context.name):
            if tags := view.shape_tags(shape):
                self._tags[shape] = frozenset(tags)
                self._begin_at(task, machine, shape)

    def _is_lra(self, job: Job) -> bool:
        return job.kind in self._lra.long_running or _EVERY in self._lra.long_running

    def tags(self, job: Job, group: TaskGroup) -> Sequence[str]:
        """Automatic tags are for those whom constraints may name: LRAs, and jobs with constraints."""
        if self._is_lra(job) or job.constraints:
            return container_tags(job, group)
        return group.tags

    def _shape(self, job: Job, group: TaskGroup, view: View) -> int:
        tags = self.tags(job, group)
        shape = view.shape(group.request, tags, job.precedence)
        if tags:
            self._tags[shape] = frozenset(tags)
        return shape

    def _submitted(
        self, job: Job, number: int, tasks: TaskArray, view: View, now: int
    ) -> Sequence[Effect]:
        assert self._manager is not None
        if job.constraints:
            try:
                self._manager.submit(number, job)
            except ModelError as error:
                refused = Explanation(refused=Refusal(Why.FILTERED), remedy=str(error))
                return (Abandon(tasks, refused),)
        self._open.setdefault(number, job.tasks)
        self._jobs[number] = job
        if not self._is_lra(job):
            for group in job.groups:
                self._shape(job, group, view)
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
        if not self._pending or self._timer >= at or self._plan is not None:
            return ()
        self._timer = at
        return (WakeMe(at, _INTERVAL),)

    def _lost(
        self,
        job: Job,
        number: int,
        tasks: TaskArray,
        machines: list[int],
        view: View,
        now: int,
    ) -> Sequence[Effect]:
        groups = {
            int(task): self._shape(job, group, view)
            for group, mine in job.tasks_by_group(tasks)
            for task in mine
        }
        for task in tasks.tolist():
            self._hold(task, groups[task], -1, view)
            self._end_at(task, groups[task])
        if self._is_lra(job):
            return self._wait(Application(job, number, tasks), now)
        lost = TasksLost(job, number, tasks, np.array(machines, np.int32), Why.NONE)
        return super().handle(lost, view, now)

    def _hold(self, task: int, shape: int, sign: int, view: View) -> None:
        job = self._jobs.get(job_of(task))
        if job is not None:
            request = np.array(view.shape_request(shape), np.int64)
            self._held[job.owner] = self._held.get(job.owner, 0) + sign * request

    def _begin_at(self, task: int, machine: int, shape: int) -> None:
        assert self._ledger is not None
        if shape not in self._tags:
            return
        if task in self._early:
            self._early.discard(task)
            return
        self._ledger.start(self._tags[shape], machine)
        self._where[task] = (machine, shape)

    def _end_at(self, task: int, shape: int) -> None:
        assert self._ledger is not None
        if shape not in self._tags:
            return
        known = self._where.pop(task, None)
        if known is None:
            self._early.add(task)
        else:
            self._ledger.stop(self._tags[known[1]], known[0])

    def _ended(self, tasks: TaskArray, shapes: ShapeArray, view: View) -> None:
        assert self._manager is not None
        for task, shape in zip(tasks.tolist(), shapes.tolist(), strict=True):
            self._hold(task, shape, -1, view)
            self._end_at(task, shape)
            number = job_of(task)
            if number in self._open:
                self._open[number] -= 1
                if not self._open[number]:
                    self._manager.withdraw(number)
                    del self._open[number], self._jobs[number]

    def _started(self, claims: Claims, accepted: NDArray[np.bool_], view: View) -> None:
        for row in np.flatnonzero(accepted).tolist():
            task, shape = int(claims.tasks[row]), int(claims.shapes[row])
            self._hold(task, shape, 1, view)
            self._begin_at(task, int(claims.machines[row]), shape)

    def _room(self, view: View) -> NDArray[np.int64]:
        free = view.free()
        free[view.takes_claims() == 0] = 0
        return free

    def _kinds(
        self, batch: Sequence[Application], view: View
    ) -> tuple[list[Kind], list[TaskArray]]:
        kinds, tasks_of = [], []
        for index, application in enumerate(batch):
            for group, tasks in application.job.tasks_by_group(application.tasks):
                self._shape(application.job, group, view)
                allowed = (
                    bits(view.where(group.requires), view.machines) if group.requires else None
                )
                request = np.array(group.request.vector(view.dimensions), np.int64)
                tags = frozenset(self.tags(application.job, group))
                kinds.append(Kind(index, tags, request, len(tasks), allowed))
                tasks_of.append(tasks)
        return kinds, tasks_of

    def _smallest(self, view: View) -> tuple[int, ...]:
        known = dict(self._lra.smallest.items())
        return tuple(known.get(name, 0) for name in view.dimensions)

    def _plan_batch(self, view: View, now: int) -> Sequence[Effect]:
        """All LRAs that wait are placed together, on the cell as it is now."""
        if self._plan is not None or not self._pending:
            return ()
        assert self._ledger is not None
        batch = list(self._pending.values())
        self._pending = {}
        for application in batch:
            application.attempts += 1
        plan = self._make_plan(batch, self._room(view), view)
        self._plan = plan
        self._token += 1
        containers = sum(len(application.tasks) for application in batch)
        time = self._lra.t_lra * len(batch) + self._lra.t_container * containers
        first, *others = batch
        effects: list[Effect] = [Think(time, -self._token, first.number, "lra")]
        effects += [Think(0, _ALONG, other.number, "lra") for other in others]
        return effects

    def _make_plan(self, batch: list[Application], free: NDArray[np.int64], view: View) -> Plan:
        assert self._ledger is not None
        kinds, tasks_of = self._kinds(batch, view)
        movers = self._movers(view)
        for task in movers:
            machine, shape = self._where[task]
            request = np.array(view.shape_request(shape), np.int64)
            free[machine] += request
            self._ledger.stop(self._tags[shape], machine)
            app = len(batch) + len(kinds) - len(tasks_of)
            kinds.append(Kind(app, self._tags[shape], request, 1, origin=machine))
        problem = self._ledger.problem(free, view.capacity(), kinds, self._smallest(view))
        answer = self.decide(problem)
        for task in movers:
            machine, shape = self._where[task]
            self._ledger.start(self._tags[shape], machine)
        have = np.bincount(answer.kinds, minlength=len(kinds))
        placed = [True] * len(batch)
        for number in range(len(tasks_of)):
            placed[kinds[number].app] &= int(have[number]) == kinds[number].count
        rows: list[tuple[TaskArray, NDArray[np.int32], int, int]] = []
        at = 0
        for index, application in enumerate(batch):
            for group, tasks in application.job.tasks_by_group(application.tasks):
                if placed[index]:
                    shape = self._shape(application.job, group, view)
                    rows.append((tasks, answer.machines_of(at), shape, index))
                at += 1
        moved = 0
        for number, task in enumerate(movers, len(tasks_of)):
            (machine,) = answer.machines_of(number).tolist() or [kinds[number].origin]
            if machine != kinds[number].origin:
                here = np.array([machine], np.int32)
                gang = len(batch) + moved
                rows.append((np.array([task], np.int64), here, self._where[task][1], gang))
                moved += 1
        claims = _claims(rows, view)
        taken = None
        if claims is not None:
            taken = np.zeros_like(free)
            for _, machines, shape, _ in rows:
                np.add.at(taken, machines, np.array(view.shape_request(shape), np.int64))
        assert self._manager is not None
        active = [c for each in batch for c in self._manager.active(each.number)]
        active += self._manager.operator_seen
        explanation = violated(self._ledger, active, problem, answer)
        return Plan(
            tuple(batch), tuple(placed), problem, answer, claims, explanation, taken, moved > 0
        )

    def _movers(self, view: View) -> list[int]:
        """Running containers of LRAs that break something, at most as many as may be moved."""
        if not self._lra.migrate or not self._where:
            return []
        assert self._ledger is not None
        assert self._manager is not None
        broken = Judge(self._ledger).broken(self._manager.everything())
        spots = {(each.tags, each.machine) for each in broken}
        found = [
            task
            for task, (machine, shape) in self._where.items()
            if (self._tags[shape], machine) in spots
            and (job := self._jobs.get(job_of(task))) is not None
            and self._is_lra(job)
        ]
        return found[: self._lra.migrate]

    def reserved(self, view: View) -> NDArray[np.int64] | None:
        """What tasks may not take meanwhile."""
        plan = self._plan
        if self._lra.conflict != "reserve" or plan is None or plan.taken is None:
            return None
        return -plan.taken

    def _allocate(self, view: View, now: int) -> Sequence[Effect]:
        """The task scheduler commits what the LRA scheduler decided."""
        plan = self._plan
        assert plan is not None
        effects: list[Effect] = []
        for application, placed in zip(plan.applications, plan.placed, strict=True):
            if not placed:
                effects.extend(self._not_placed(application, plan, view, now))
        if plan.claims is None:
            self._plan = None
            return [*effects, *self._set_timer(now)]
        transaction = Transaction(
            self._context.name,
            plan.claims,
            preempt=self._lra.conflict == "kill",
            move=plan.moves,
        )
        return [*effects, Commit(transaction, plan.explanation)]

    def _not_placed(
        self, application: Application, plan: Plan, view: View, now: int
    ) -> Sequence[Effect]:
        assert self._ledger is not None
        assert self._manager is not None
        kinds, _ = self._kinds([application], view)
        why = unplaced(
            self._ledger,
            self._manager,
            application.number,
            kinds,
            self._room(view),
            view,
            self._smallest(view),
        )
        return self._again(application, why, now)

    def _again(self, application: Application, why: Explanation, now: int) -> Sequence[Effect]:
        if application.attempts >= self._serial.attempts:
            given_up = Refusal(Why.ATTEMPTS, lacking=application.attempts)
            return (Abandon(application.tasks, structs.replace(why, refused=given_up)),)
        self._pending[application.number] = application
        return (Explain(application.tasks, why),)

    def _allocated(self, outcome: Outcome, view: View, now: int) -> Sequence[Effect]:
        plan = self._plan
        assert plan is not None
        claims = plan.claims
        assert claims is not None
        assert claims.gangs is not None
        self._settle(claims, outcome.accepted, view)
        self._plan = None
        effects: list[Effect] = []
        left: list[Application] = []
        for index, application in enumerate(plan.applications):
            rows = np.flatnonzero(claims.gangs == index)
            if len(rows) and not outcome.accepted[rows[0]]:
                left.append(application)
        if left and self._lra.conflict == "relax":
            relaxed = self._relaxed(plan, left, view)
            if relaxed.claims is not None:
                self._plan = relaxed
                return self._allocate(view, now)
        for application in left:
            refused = outcome.refusals(claims)[0]
            effects.extend(self._again(application, Explanation(refused=refused), now))
        return [*effects, *self._set_timer(now)]

    def _settle(self, claims: Claims, accepted: NDArray[np.bool_], view: View) -> None:
        """The ledger learns what runs where now."""
        for row in np.flatnonzero(accepted).tolist():
            task, shape = int(claims.tasks[row]), int(claims.shapes[row])
            if task in self._where:
                # It moved.
                self._end_at(task, shape)
            else:
                self._hold(task, shape, 1, view)
            self._begin_at(task, int(claims.machines[row]), shape)

    def _relaxed(self, plan: Plan, left: list[Application], view: View) -> Plan:
        """Each kind of container again, anywhere in the sets in which it was to be."""
        assert self._ledger is not None
        kinds, tasks_of = self._kinds(left, view)
        family = self._ledger.families.get(self._lra.relax_within)
        planned = list(plan.applications)
        relaxed = []
        old = 0
        where: dict[tuple[int, frozenset[str]], NDArray[np.int32]] = {}
        for old, kind in enumerate(plan.problem.kinds):
            if kind.app < len(planned):
                key = (planned[kind.app].number, kind.tags)
                where[key] = plan.answer.machines_of(old)
        for kind in kinds:
            machines = where.get((left[kind.app].number, kind.tags), np.empty(0, np.int32))
            allowed = np.zeros(view.machines, bool)
            if family is None or family.overlaps:
                allowed[:] = True
            else:
                allowed |= np.isin(family.set_of, family.set_of[machines])
            if kind.allowed is not None:
                allowed &= kind.allowed
            relaxed.append(structs.replace(kind, allowed=allowed))
        free = self._room(view)
        problem = self._ledger.problem(free, view.capacity(), relaxed, self._smallest(view))
        answer = place(problem, "tag-popularity", self._context.random, self._lra.objective)
        have = np.bincount(answer.kinds, minlength=len(relaxed))
        placed = [True] * len(left)
        for number, kind in enumerate(relaxed):
            placed[kind.app] &= int(have[number]) == kind.count
        rows = [
            (tasks, answer.machines_of(at), self._shape_of(left[kind.app], tasks, view), kind.app)
            for at, (kind, tasks) in enumerate(zip(relaxed, tasks_of, strict=True))
            if placed[kind.app]
        ]
        return Plan(
            tuple(left),
            tuple(placed),
            problem,
            answer,
            _claims(rows, view),
            Explanation(rule="relaxed after a conflict"),
            None,
        )

    def _shape_of(self, application: Application, tasks: TaskArray, view: View) -> int:
        for group, _ in application.job.tasks_by_group(tasks):
            return self._shape(application.job, group, view)
        raise AssertionError

    def _begin(self, view: View) -> Sequence[Effect]:
        """The next job of the queue that has least of its due."""
        if len(self._queue) > 1:
            owners = {work.job.owner for work in self._queue}
            if len(owners) > 1:
                neediest = min(sorted(owners), key=lambda owner: self._share(owner, view))
                for work in self._queue:
                    if work.job.owner == neediest:
                        self._queue.remove(work)
                        self._queue = deque([work, *self._queue])
                        break
        return super()._begin(view)

    def _share(self, owner: str, view: View) -> float:
        """The owner's dominant share of the cell over the weight of its queue."""
        held = self._held.get(owner)
        if held is None:
            return 0.0
        whole = np.maximum(1, np.array(list(view.capacity_total().values())))
        return float((held / whole).max()) / self._lra.queues.get(owner, 1.0)

    def terms(self, work: Work) -> Terms:
        return Terms(atomic=work.job.gang)

    def machines(self, view: View) -> Bitmap | None:
        """Where hard constraints of a task job allow it to be."""
        work = self._deciding
        if work is None or not work.job.constraints:
            return None
        return self._looked(work, view)[0]

    def preferred(self, work: Work, count: int, view: View) -> Iterable[tuple[Bitmap, int]]:
        """Task jobs go where they break least of their constraints, as things are now."""
        if work.job.constraints:
            yield self._looked(work, view)[1], count

    def _looked(self, work: Work, view: View) -> tuple[Bitmap, Bitmap]:
        """Machines that are not forbidden, and those of them where least is broken."""
        assert self._ledger is not None
        application = Application(work.job, work.number, work.tasks)
        kinds, _ = self._kinds([application], view)
        problem = self._ledger.problem(
            self._room(view), view.capacity(), kinds[:1], self._smallest(view)
        )
        fits, adds, _ = problem.placer().look(0)
        there = fits.astype(bool)
        least = adds[there].min(initial=np.inf)
        return bitmap(there), bitmap(there & (adds <= least + 1e-9))


def _claims(
    rows: Sequence[tuple[TaskArray, NDArray[np.int32], int, int]], view: View
) -> Claims | None:
    """Of each kind its tasks, machines, shape and gang; neighbours share a gang."""
    if not rows:
        return None
    machines = np.concatenate([where for _, where, _, _ in rows]).astype(np.int32)
    lengths = [len(tasks) for tasks, _, _, _ in rows]
    return Claims(
        np.concatenate([tasks for tasks, _, _, _ in rows]),
        machines,
        np.repeat(np.array([shape for _, _, shape, _ in rows], np.int32), lengths),
        view.versions(machines),
        np.repeat(np.array([gang for _, _, _, gang in rows], np.int32), lengths),
    )
