"""Rounds: the network is updated with everything that happened, a flow of least cost is found, and the
difference from what runs becomes one transaction.

Events that arrive during a round are handled together in the next one. A round decides on the cluster as
it is when the round begins, possibly beside the loop, and commits when it has decided. Until then the
graph is lent to it, and nothing else touches the graph.

Ends of tasks begin a round only if they make room for a task that waits. Otherwise a round could only
move running tasks, which is not urgent: it waits for the next round, or until `retry` has passed. If
tasks have waited for long, ends are collected for a hundredth of that time, at most `LONGEST_PAUSE`, so
that a round in a full cell is about several of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np
from msgspec import structs

from argosy.cell import View
from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.engines.families.flow.adding import Submission
from argosy.engines.families.flow.admission import FlowPlan
from argosy.engines.families.flow.explaining import Explainer
from argosy.engines.families.flow.gangs import RoundDecision, decide, gang_numbers
from argosy.engines.families.flow.graph import Graph
from argosy.engines.families.flow.move_budget import MoveBudget
from argosy.engines.families.flow.policies import find_policy
from argosy.engines.families.flow.settings import FlowSettings
from argosy.engines.families.flow.tasks import NOWHERE
from argosy.engines.shared.withdrawal import Withdrawal, added, failed, left, withdrawn
from argosy.model.effects import Commit, Deliberate, Effect, Question, Think, WakeMe
from argosy.model.events import (
    Committed,
    Decision,
    Deliberated,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    Started,
    TaskFailed,
    TaskFinished,
    TasksLost,
    TimerFired,
    UsageObserved,
)
from argosy.model.explanations import CONFLICTS
from argosy.model.transactions import Claims, Outcome, Transaction

_CONFLICTS = frozenset(map(int, CONFLICTS))
#: The longest time for which ends that make room are collected; otherwise it is one part in so many of
#: the time that tasks have been waiting.
LONGEST_PAUSE: Final = 250_000
_PAUSE_SHARE: Final = 100
_PAUSE: Final = "pause"
_BUDGET: Final = "budget"


class RoundQuestion(Question, frozen=True):
    """What to place where; the graph holds all but the time."""

    at: int


class FlowScheduler:
    """One scheduler for the whole cell; engines differ in name and settings."""

    question_type: ClassVar[type[Question]] = RoundQuestion
    decision_type: ClassVar[type[Decision]] = RoundDecision
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True,
        gang=True,
        preemption=True,
        finishes=Finishes.OWN,
        machine_events=True,
        observations=True,
        alone=True,
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, FlowSettings)
        if context.is_measured:
            settings = structs.replace(settings, scratch_every=1)
        self._settings = settings
        self._context = context
        self._graph: Graph | None = None
        #: What was last observed on each machine of the resource that the policy wants to know; and
        #: whether anything was since the last round began.
        self._observed = find_policy(settings.policy).observed(settings)
        self._used: dict[int, int] = {}
        self._has_observed = False
        self._explainer = Explainer(settings, context.random)
        self._budget = MoveBudget(settings.moves_per_minute)
        #: When moves that the budget cut are looked at again.
        self._budget_at = -1
        #: Events since the last round began, and whether any of them is more than the end of tasks.
        self._inbox: list[Event] = []
        self._has_news = False
        #: How many of these were looked at for room that they make.
        self._looked_at = 0
        #: When the last round began; whether and until when the next waits for more ends; since when
        #: tasks have been waiting, -1 if none is.
        self._began = 0
        self._is_pausing = False
        self._pauses_until = -1
        self._crowded_since = -1
        #: A round is under way from the time that the graph is lent until the cell has answered its
        #: plan.
        self._is_lent = False
        self._plan: FlowPlan | None = None
        self._claims: Claims | None = None
        #: Tasks withdrawn since the round began.
        self._withdrawals: list[Withdrawal] = []
        self._round = 0
        #: Whether a round is due although nothing is in the inbox.
        self._is_due = False
        self._timer_at = -1
        #: Whether the timer fired while the graph was lent.
        self._has_waited = False

    @property
    def graph(self) -> Graph:
        assert self._graph is not None
        return self._graph

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case TaskFinished():
                self._inbox.append(event)
            case JobSubmitted() | TasksLost() | MachineJoined() | MachineLost() | MachineChanged():
                self._inbox.append(event)
                self._has_news = True
            case JobCancelled() | JobChanged():
                self._inbox.append(event)
                self._has_news = True
                if self._is_busy:
                    self._withdrawals.append(event)
            case UsageObserved(resource, machines, used):
                if resource != self._observed:
                    return ()
                self._used.update(zip(machines.tolist(), used.tolist(), strict=True))
                self._has_observed = True
                # There may be room now; that running tasks may move is not urgent.
                self._is_due = self._is_due or (not self._is_lent and self._is_crowded)
            case TaskFailed():
                return self.handle(failed(event, view), view, now)
            case Started():
                return ()
            case Deliberated(token, decision):
                if token != self._round or not self._is_lent:
                    return ()
                assert isinstance(decision, RoundDecision)
                return self._deliberated(decision.plan, view, now)
            case Committed(token, outcome):
                if token != self._round:
                    return ()
                self._committed(outcome, view, now)
                self._plan = None
            case TimerFired(name) if name == _PAUSE:
                self._is_due = self._is_due or self._is_pausing
            case TimerFired(name) if name == _BUDGET:
                self._budget_at = -1
                self._is_due = True
            case TimerFired() if now == self._timer_at:
                self._timer_at = -1
                if self._is_lent:
                    self._has_waited = True
                else:
                    self._try_everywhere()
            case _:
                return ()
        return self._go_on(view, now)

    def _go_on(self, view: View, now: int) -> Sequence[Effect]:
        """Begins the next round, or sees to it that one begins later if ends have come."""
        if self._is_busy:
            return ()
        is_crowded = self._is_crowded
        if not is_crowded:
            self._crowded_since = -1
        elif self._crowded_since < 0:
            self._crowded_since = now
        if self._is_due or self._has_news:
            return self._begin(view, now)
        if not self._inbox and not self._has_observed:
            return ()
        if self._is_pausing and now < self._pauses_until:
            # There will be a round at the end of the pause, whatever room there is.
            self._looked_at = len(self._inbox)
        elif is_crowded and self._has_room(view):
            pause = min((now - self._crowded_since) // _PAUSE_SHARE, LONGEST_PAUSE)
            if now >= self._began + pause:
                return self._begin(view, now)
            self._is_pausing = True
            if self._pauses_until < now:
                self._pauses_until = self._began + pause
                return (WakeMe(self._pauses_until, _PAUSE),)
        return self._wake_me(now) if self._settings.reschedule else ()

    @property
    def _is_crowded(self) -> bool:
        return self._graph is not None and self._graph.waiting > 0

    def _has_room(self, view: View) -> bool:
        """Whether tasks that ended have made room for a waiting one."""
        graph, first = self.graph, self._looked_at
        self._looked_at = len(self._inbox)
        ends = (event for event in self._inbox[first:] if isinstance(event, TaskFinished))
        return any(graph.has_room(event.machines, view) for event in ends)

    def _wake_me(self, now: int) -> Sequence[Effect]:
        if self._timer_at >= now:
            return ()
        self._timer_at = now + self._settings.retry
        return (WakeMe(self._timer_at, "round"),)

    @property
    def _is_busy(self) -> bool:
        return self._is_lent or self._plan is not None

    def _try_everywhere(self) -> None:
        """Tasks have waited long enough to ask again for what they were refused; ends, to be heard."""
        if self._graph is not None and self._is_crowded:
            self._graph.rooms.unbar()
            self._is_due = True
        elif (self._inbox or self._has_observed) and self._settings.reschedule:
            self._is_due = True

    def _begin(self, view: View, now: int) -> Sequence[Effect]:
        if self._graph is None:
            self._graph = Graph(self._settings, view)
        new = self._take_inbox(view, now)
        self._is_due = self._has_news = self._is_pausing = self._has_observed = False
        self._withdrawals = []
        # Labels may change without an event.
        self.graph.grow(view)
        self.graph.observe(view, self._used)
        self.graph.most_moves = self._budget.left(now, self._settings.moves)
        self._round += 1
        self._began = now
        self._is_lent = True
        # One line of thought for all; each new job's wait ends with it.
        asked = Deliberate(self._round, RoundQuestion(now), new[0] if new else -1)
        return (asked, *(Think(0, -1, job) for job in new[1:]))

    def deliberate_in_place(self, question: Question) -> Decision:
        """The part of a round that may run beside the loop."""
        assert isinstance(question, RoundQuestion)
        self.graph.refresh(question.at)
        return decide(self.graph)

    def _deliberated(self, plan: FlowPlan, view: View, now: int) -> Sequence[Effect]:
        """The graph is back, with the flow that the plan is from."""
        self._is_lent = False
        # What the limit on moves cut is tried again at once, but only after a change: without one, the
        # next round would decide the same.
        self._plan, self._is_due = plan, plan.is_cut and len(plan) > 0
        if self._has_waited:
            self._has_waited = False
            self._try_everywhere()
        self._explainer.begin()
        return (*self._decided(view, now), *self._await_budget(plan))

    def _await_budget(self, plan: FlowPlan) -> Sequence[Effect]:
        """Another round when more may be moved, if this one was cut short."""
        more_at = self._budget.more_at
        if not plan.is_cut or more_at is None or self._budget_at >= 0:
            return ()
        self._budget_at = more_at
        return (WakeMe(more_at, _BUDGET),)

    def _take_inbox(self, view: View, now: int) -> list[int]:
        """Applies all events to the graph; returns the numbers of new jobs that are still wanted."""
        graph, inbox, new = self.graph, self._inbox, []
        self._inbox, self._looked_at = [], 0
        finished = [event.tasks for event in inbox if isinstance(event, TaskFinished)]
        if finished:
            graph.finish(np.concatenate(finished))
        submissions: list[Submission] = []
        for event in inbox:
            match event:
                case JobSubmitted(job, number, tasks):
                    submissions.append((job, number, tasks))
                    new.append(number)
                case TasksLost(job, number, tasks, machines):
                    if number in graph.jobs:
                        rows = graph.roster.rows(tasks)
                        where = graph.tasks["machine"][rows]
                        # A task that runs elsewhere now was moved before this event arrived.
                        tasks = tasks[(where == machines) | (where == NOWHERE)]
                    if len(tasks):
                        submissions.append((job, number, tasks))
                case MachineJoined(machine) | MachineLost(machine) | MachineChanged(machine):
                    graph.look(machine, view)
                case JobCancelled() | JobChanged():
                    submissions = [(j, n, left(tasks, event)) for j, n, tasks in submissions]
                    graph.drop(withdrawn(event))
                    if (more := added(event)) is not None:
                        submissions.append((more.job, more.number, more.tasks))
        submissions = [each for each in submissions if len(each[2])]
        graph.add(submissions, view, now)
        wanted = {number for _, number, _ in submissions}
        return [number for number in new if number in wanted]

    def _decided(self, view: View, now: int) -> Sequence[Effect]:
        graph = self.graph
        plan = self._plan = self._still_wanted()
        if not len(plan):
            self._plan = None
            return (*self._waiting(view, now), *self._go_on(view, now))
        tasks, shapes = graph.roster.named(plan.rows)
        machines = plan.machines.astype(np.int32)
        versions, gangs = view.versions(machines), gang_numbers(graph, plan)
        self._claims = Claims(tasks, machines, shapes, versions, gangs)
        releases = None
        if len(plan.leaving) or len(plan.early):
            releases, _ = graph.roster.named(np.concatenate([plan.leaving, plan.early]))
        name = self._context.name
        transaction = Transaction(name, self._claims, releases=releases, move=True)
        waiting = self._waiting(view, now)
        reasons = self._explainer.placed(graph, plan) if self._context.keeps_explanations else ()
        return (*reasons, Commit(self._round, transaction), *waiting)

    def _still_wanted(self) -> FlowPlan:
        """The plan without tasks that were withdrawn since it was made."""
        plan, numbers = self._plan, self.graph.tasks["number"]
        assert plan is not None
        for event in self._withdrawals:
            kept, leaving, early = (
                ~np.isin(numbers[rows], withdrawn(event))
                for rows in (plan.rows, plan.leaving, plan.early)
            )
            plan = structs.replace(
                plan,
                rows=plan.rows[kept],
                machines=plan.machines[kept],
                costs=plan.costs[kept],
                leaving=plan.leaving[leaving],
                early=plan.early[early],
            )
        self._withdrawals = []
        return plan

    def _waiting(self, view: View, now: int) -> Sequence[Effect]:
        """Explains why tasks have no machine, and schedules the next round for them."""
        graph, effects = self.graph, list[Effect]()
        if graph.waiting:
            effects.extend(self._explainer.waiting(graph, self._plan, view, now))
            effects.extend(self._wake_me(now))
        return effects

    def _committed(self, outcome: Outcome, view: View, now: int) -> None:
        """Updates the graph with the cell's answer to the plan."""
        plan, graph = self._plan, self.graph
        assert plan is not None
        self._claims = None
        moved = np.count_nonzero(graph.tasks["machine"][plan.rows] != NOWHERE)
        self._budget.spend(int(moved) + len(plan.leaving), now)
        if len(plan.leaving) or len(plan.early):
            released = np.concatenate([plan.leaving, plan.early])
            kept = np.array(sorted({refusal.task for refusal in outcome.unreleased}), np.int64)
            graph.stop(released[~np.isin(graph.tasks["number"][released], kept)], now)
        rows, machines, costs = plan.rows, plan.machines, plan.costs
        if not outcome.all_accepted:
            accepted = outcome.accepted
            rows, machines, costs = rows[accepted], machines[accepted], costs[accepted]
        # Tasks that moved are stopped first; tasks that ended in the meantime are ignored.
        graph.stop(rows, now)
        graph.start(rows, machines, costs, now)
        if not outcome.all_accepted:
            graph.widen(view)
            refused = np.flatnonzero(~outcome.accepted)
            for machine in np.unique(plan.machines[refused]).tolist():
                graph.cluster.look(machine, view)
            # After a conflict, try again on what is left. Tasks refused for other reasons wait for the
            # timer.
            self._is_due = self._is_due or not _CONFLICTS.isdisjoint(outcome.whys[refused].tolist())
