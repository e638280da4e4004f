from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import ClassVar, Final

import numpy as np
from msgspec import structs

from argosy.agents import api, registry
from argosy.agents.builtin import positions
from argosy.agents.sampling import sample_size
from argosy.cell import View, to_mask
from argosy.engines.api import Capabilities, Context, RunFacts, SettingMismatch, Settings
from argosy.engines.shared.withdrawal import Withdrawal, added, failed, withdrawn
from argosy.engines.vela.decision import DecisionPipeline, sampled
from argosy.engines.vela.figures import VelaFigures
from argosy.engines.vela.processors import AfterWork, SharedProcessors
from argosy.engines.vela.settings import VelaSettings
from argosy.engines.vela.shares import SampleShares
from argosy.engines.vela.work import (
    AgentQuestion,
    Phase,
    RankedMachine,
    SamplingQueue,
    ScheduledTask,
    WorkerPool,
)
from argosy.model.effects import (
    Abandon,
    Commit,
    CommitPipeline,
    Effect,
    Explain,
    Sample,
    SamplingPipeline,
    Think,
    WakeMe,
)
from argosy.model.events import (
    Committed,
    DecisionDue,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    SampleReturned,
    TaskFailed,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import (
    CONFLICTS,
    LIMITS,
    OF_ONE_MACHINE,
    SETTLED,
    UNANSWERED,
    Explanation,
    Refusal,
    Why,
)
from argosy.model.jobs import Job
from argosy.model.machines import CLUSTER_GROUP
from argosy.model.transactions import Claims, Outcome, TaskArray, Transaction

_CONFLICTS: Final = frozenset(map(int, CONFLICTS))
_LIMITS: Final = frozenset(map(int, LIMITS))
_OF_ONE_MACHINE: Final = frozenset(map(int, OF_ONE_MACHINE))
#: The longest back-off is 2 to this power times the first.
_MOST_DOUBLINGS: Final = 6
#: The timer of what is computed.
_PROCESSORS: Final = "processors"


class Vela:
    name: ClassVar[str] = "vela"
    summary: ClassVar[str] = (
        "Samples from the agents of many clusters; commits to the next best machine on conflict."
    )
    settings_type: ClassVar[type[Settings]] = VelaSettings
    capabilities: ClassVar[Capabilities] = Capabilities(transactions=True)

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, VelaSettings)
        self._settings = settings
        self._context = context
        # A cell that is not a federation is one cluster without a name.
        self._clusters = [cluster.name for cluster in context.clusters] or [""]
        places = {cluster.name: cluster.place for cluster in context.clusters}
        self._shares = SampleShares(settings)
        self._decision = DecisionPipeline(settings, places, context.random)
        self._pipeline = SamplingPipeline(
            strategy=settings.strategy,
            filters=settings.filters,
            scores=tuple(settings.scores),
            # A machine that is asked by itself is drawn blindly: there is no second round.
            rounds=1 if settings.asks == "machines" else settings.rounds,
            limit=settings.sampling_limit,
            free=bool(settings.decision_filters or settings.decision_scores),
            overshoot=settings.overshoot,
            repeats=settings.repeats,
        )
        self._commit_pipeline = CommitPipeline(
            checks=settings.checks, commit=settings.commit, reservations=settings.reservations
        )
        self._figures = VelaFigures()
        self._queue = SamplingQueue(registry.make_sorting(settings.sort), settings.requeue)
        self._samplers = WorkerPool("sampler", settings.samplers)
        self._deciders = WorkerPool("decider", settings.deciders)
        self._committers = WorkerPool("committer", settings.committers)
        self._undecided: deque[ScheduledTask] = deque()
        self._uncommitted: deque[ScheduledTask] = deque()
        #: Exactly the tasks that are to be placed. One that is no longer here is dropped wherever it
        #: turns up.
        self._current: dict[int, ScheduledTask] = {}
        #: By token: thinking samplers and deciders, requests for samples, and commits with what they
        #: try.
        self._thinking: dict[int, ScheduledTask] = {}
        self._asked: dict[int, ScheduledTask] = {}
        self._committing: dict[int, tuple[ScheduledTask, list[RankedMachine]]] = {}
        #: By timer: tasks that wait to be rescheduled, and requests that are overdue by then.
        self._waiting: dict[str, ScheduledTask] = {}
        self._timeouts: dict[str, tuple[ScheduledTask, frozenset[int]]] = {}
        #: How many machines a cluster has, while the machines are the same.
        self._sizes: dict[tuple[str, int, int], int] = {}
        self._processors = SharedProcessors(settings.cores)
        #: The earliest wake-up that was asked for because some computing ends.
        self._computing_until: int | None = None
        self._token = 0
        self._effects: list[Effect] = []

    @classmethod
    def mismatch(cls, settings: Settings, facts: RunFacts) -> SettingMismatch | None:
        assert isinstance(settings, VelaSettings)
        named: list[tuple[str, Sequence[str], type]] = [
            ("sort", [settings.sort], api.Sorting),
            ("strategy", [settings.strategy], api.Strategy),
            ("filters", settings.filters, api.Filter),
            ("scores", list(settings.scores), api.Score),
            ("decision_filters", settings.decision_filters, api.Filter),
            ("decision_scores", list(settings.decision_scores), api.Score),
            ("checks", settings.checks, api.ClaimCheck),
            ("commit", [settings.commit], api.Binding),
        ]
        for setting, names, role in named:
            if (error := registry.check(names, role)) is not None:
                return SettingMismatch((setting,), error.problem, error.expected, error.hint)
        return None

    def figures(self) -> dict[str, float]:
        return {**self._figures.as_dict(), "computing s": self._processors.done / 1_000_000}

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        self._effects = []
        match event:
            case SampleReturned():
                work = self._settings.t_read * len(event.machines)
                self._compute(work, partial(self._sampled, event), view, now)
            case DecisionDue(token):
                self._due(token, view, now)
            case Committed():
                after = partial(self._answered, event)
                self._compute(self._settings.t_commit, after, view, now)
            case JobSubmitted(job, number, tasks) | TasksLost(job, number, tasks):
                self._accept(job, number, tasks, now)
            case TimerFired(name):
                self._woken(name, view, now)
            case JobCancelled() | JobChanged():
                self._withdraw(event, now)
                if (more := added(event)) is not None:
                    self._accept(more.job, more.number, more.tasks, now)
            case TaskFailed():
                told = failed(event, view)
                if isinstance(told, TasksLost):
                    self._accept(told.job, told.number, told.tasks, now)
        return self._effects

    def _next_token(self) -> int:
        self._token += 1
        return self._token

    def _compute(self, work: int, after: AfterWork, view: View, now: int) -> None:
        """Goes on with `after` when the work is done."""
        if not work:
            after(view, now)
            return
        self._processors.begin(work, after, now)
        self._wait_for_processors(now)

    def _computed(self, view: View, now: int) -> None:
        if self._computing_until is not None and self._computing_until <= now:
            self._computing_until = None
        for after in self._processors.ended(now):
            after(view, now)
        self._wait_for_processors(now)

    def _wait_for_processors(self, now: int) -> None:
        end = self._processors.next_end()
        if end is not None and (self._computing_until is None or end < self._computing_until):
            self._computing_until = max(end, now)
            self._effects.append(WakeMe(self._computing_until, _PROCESSORS))

    def _is_current(self, item: ScheduledTask) -> bool:
        return self._current.get(item.task) is item

    def _accept(self, job: Job, number: int, tasks: TaskArray, now: int) -> None:
        if self._figures.began < 0:
            self._figures.began = now
        for group, mine in job.tasks_by_group(tasks):
            for task in mine.tolist():
                item = ScheduledTask(job, number, group, task, now)
                self._current[task] = item
                self._queue.push(item)
        self._start_samplers(now)

    def _withdraw(self, event: Withdrawal, now: int) -> None:
        for task in withdrawn(event).tolist():
            item = self._current.pop(task, None)
            if item is not None and item.phase is Phase.SAMPLING:
                self._stop_asking(item)
        for item in self._current.values():
            if item.number == event.number:
                item.job = event.job
        self._start_samplers(now)

    def _stop_asking(self, item: ScheduledTask) -> None:
        """A task that is no longer wanted gives back its sampler, unless that thinks."""
        if item.asked or item.agents_left:
            for token in item.asked:
                del self._asked[token]
            item.asked, item.agents_left = set(), []
            self._samplers.give(item.slot)

    def _start_samplers(self, now: int) -> None:
        while self._queue and self._samplers.has_free:
            item = self._queue.pop()
            if not self._is_current(item):
                continue
            item.phase, item.slot = Phase.SAMPLING, self._samplers.take()
            self._figures.queueing.add(now - item.queued)
            item.began = now
            self._think(item, self._settings.t_sampling, item.number, self._samplers)

    def _think(self, item: ScheduledTask, duration: int, job: int, pool: WorkerPool) -> None:
        token = self._next_token()
        self._thinking[token] = item
        self._effects.append(Think(duration, token, job, pool.lane(item.slot)))

    def _due(self, token: int, view: View, now: int) -> None:
        item = self._thinking.pop(token)
        pool = self._samplers if item.phase is Phase.SAMPLING else self._deciders
        if not self._is_current(item):
            pool.give(item.slot)
            self._start_samplers(now)
            self._start_deciders(view, now)
        elif item.phase is Phase.SAMPLING:
            self._choose_clusters(item, view, now)
        else:
            self._decide(item, view, now)

    def _choose_clusters(self, item: ScheduledTask, view: View, now: int) -> None:
        count = sample_size(self._shares.clusters, len(self._clusters))
        chosen = positions(len(self._clusters), count, self._context.random)
        item.chosen = [self._clusters[at] for at in chosen.tolist()]
        item.agents_left = self._questions(item, view)
        item.samples = []
        self._ask(item, now)

    def _questions(self, item: ScheduledTask, view: View) -> list[AgentQuestion]:
        count = self._settings.machine_count
        if self._settings.asks != "machines":
            return [AgentQuestion(cluster, count) for cluster in item.chosen]
        questions = []
        for cluster in item.chosen:
            left = count or sample_size(self._shares.machines, self._machines_in(cluster, view))
            most = self._settings.probes or left
            while left:
                questions.append(AgentQuestion(cluster, min(left, most)))
                left -= questions[-1].count
        return questions

    def _asked_next(self, item: ScheduledTask) -> int:
        """How many of the agents that are left are asked now."""
        left = item.agents_left
        if self._settings.asks == "in-turn":
            return 1
        most = self._settings.probes
        if self._settings.asks == "at-once" or not most:
            return len(left)
        machines = accumulate(question.count for question in left)
        return max(1, sum(1 for total in machines if total <= most))

    def _ask(self, item: ScheduledTask, now: int) -> None:
        count = self._asked_next(item)
        agents, item.agents_left = item.agents_left[:count], item.agents_left[count:]
        is_probing = self._settings.asks == "machines"
        share = 0.0 if agents[0].count else self._shares.machines
        if self._pipeline.share != share:
            self._pipeline = structs.replace(self._pipeline, share=share)
        pipeline = self._pipeline
        group = item.group
        for question in agents:
            token = self._next_token()
            self._asked[token] = item
            item.asked.add(token)
            self._effects.append(
                Sample(
                    group.request,
                    question.count,
                    token,
                    group.requires,
                    question.cluster,
                    group.demands,
                    pipeline,
                )
            )
            self._figures.requests += question.count if is_probing else 1
        if self._settings.timeout:
            timer = f"time-out {self._token}"
            self._timeouts[timer] = item, frozenset(item.asked)
            self._effects.append(WakeMe(now + self._settings.timeout, timer))

    def _sampled(self, sample: SampleReturned, view: View, now: int) -> None:
        item = self._asked.pop(sample.token, None)
        if item is None:
            self._figures.overdue += 1
            return
        item.asked.discard(sample.token)
        item.samples.append(sample)
        self._figures.drawn += sample.drawn
        self._figures.eligible += len(sample.machines)
        self._figures.unreached += not sample.reached
        self._go_on_sampling(item, view, now)

    def _go_on_sampling(self, item: ScheduledTask, view: View, now: int) -> None:
        if item.asked:
            return
        if item.agents_left:
            self._ask(item, now)
            return
        self._samplers.give(item.slot)
        self._figures.sampling.add(now - item.began)
        if any(len(sample.machines) for sample in item.samples):
            item.phase = Phase.DECIDING
            self._undecided.append(item)
            self._start_deciders(view, now)
        else:
            self._found_none(item, self._seen(item, view), now)
        self._start_samplers(now)

    def _seen(self, item: ScheduledTask, view: View) -> Explanation:
        """What the agents saw, and how many machines belong to those that did not answer."""
        seen = sampled(item.samples)
        answered = {sample.cluster for sample in item.samples if sample.reached}
        silent = [cluster for cluster in item.chosen if cluster not in answered]
        if not silent:
            return seen
        count = sum(self._machines_in(cluster, view) for cluster in silent)
        return structs.replace(seen, ruled_out={**seen.ruled_out, UNANSWERED: count})

    def _machines_in(self, cluster: str, view: View) -> int:
        key = cluster, view.machines, view.labels_version
        if key not in self._sizes:
            self._sizes[key] = _machines_in(cluster, view)
        return self._sizes[key]

    def _woken(self, name: str, view: View, now: int) -> None:
        if name == _PROCESSORS:
            self._computed(view, now)
            return
        if (item := self._waiting.pop(name, None)) is not None:
            if self._is_current(item):
                self._requeue(item, now)
                self._start_samplers(now)
            return
        item, asked = self._timeouts.pop(name, (None, frozenset()))
        if item is None:
            return
        overdue = item.asked & asked
        for token in overdue:
            del self._asked[token]
        item.asked -= overdue
        if overdue:
            self._go_on_sampling(item, view, now)

    def _think_over(self, item: ScheduledTask, view: View, now: int) -> None:
        if self._is_current(item):
            self._decide(item, view, now)
        else:
            self._deciders.give(item.slot)
            self._start_deciders(view, now)

    def _start_deciders(self, view: View, now: int) -> None:
        while self._undecided and self._deciders.has_free:
            item = self._undecided.popleft()
            if not self._is_current(item):
                continue
            item.slot = self._deciders.take()
            if self._settings.cores and self._settings.t_decision:
                work = self._settings.t_decision
                self._compute(work, partial(self._think_over, item), view, now)
            else:
                self._think(item, self._settings.t_decision, -1, self._deciders)

    def _decide(self, item: ScheduledTask, view: View, now: int) -> None:
        self._deciders.give(item.slot)
        samples, item.samples = item.samples, []
        ranked, item.explanation = self._decision.decide(item.requirements, samples, view)
        if ranked:
            item.phase, item.candidates, item.first = Phase.COMMITTING, ranked, ranked[0].machine
            item.queued = now
            self._uncommitted.append(item)
            self._start_committers(view)
        else:
            self._found_none(item, item.explanation, now)
            self._start_samplers(now)
        self._start_deciders(view, now)

    def _start_committers(self, view: View) -> None:
        while self._uncommitted and self._committers.has_free:
            item = self._uncommitted.popleft()
            if self._is_current(item):
                item.slot = self._committers.take()
                self._commit(item, view)

    def _commit(self, item: ScheduledTask, view: View) -> None:
        """Tries the best candidate left. Those that follow it in its cluster travel along, so that the
        agent can go on to them by itself."""
        cluster = item.candidates[0].cluster
        count = 1
        while count < len(item.candidates) and item.candidates[count].cluster == cluster:
            count += 1
        tried, item.candidates = item.candidates[:count], item.candidates[count:]
        group = item.group
        claims = Claims(
            item.tasks,
            np.array([tried[0].machine], np.int32),
            np.array([view.shape(group.request, group.tags, item.job.precedence)], np.int32),
            np.array([tried[0].version], np.uint32),
            alternatives=np.array([[each.machine for each in tried[1:]]], np.int32)
            if count > 1
            else None,
        )
        token = self._next_token()
        self._committing[token] = item, tried
        self._effects.append(
            Commit(
                token,
                Transaction(self._context.name, claims),
                item.explanation,
                cluster,
                self._commit_pipeline,
            )
        )

    def _answered(self, answer: Committed, view: View, now: int) -> None:
        outcome, reached = answer.outcome, answer.reached
        item, tried = self._committing.pop(answer.token)
        why = int(outcome.whys[0])
        if self._is_current(item):
            if outcome.all_accepted:
                self._placed(item, int(outcome.machines[0]), now)
            else:
                self._figures.refused += len(tried) if reached else 0
                self._figures.unreached += not reached
                if item.candidates and why in _OF_ONE_MACHINE:
                    self._commit(item, view)
                    return
                self._refused(item, outcome, now)
        self._committers.give(item.slot)
        self._start_committers(view)
        self._start_samplers(now)

    def _placed(self, item: ScheduledTask, machine: int, now: int) -> None:
        del self._current[item.task]
        self._shares.placed()
        figures = self._figures
        figures.placed += 1
        figures.first = now if figures.first < 0 else figures.first
        figures.last = figures.ended = now
        figures.retried += machine != item.first
        figures.commit.add(now - item.queued)
        figures.end_to_end.add(now - item.submitted)
        figures.without_queue.add(now - item.began)

    def _refused(self, item: ScheduledTask, outcome: Outcome, now: int) -> None:
        """No candidate is left, or no other would do."""
        why = Why(int(outcome.whys[0]))
        detail = int(outcome.details[0])
        refusal = Refusal(
            why,
            task=item.task,
            machine=int(outcome.machines[0]),
            dimension=outcome.dimensions[detail] if detail >= 0 else "",
            lacking=int(outcome.amounts[0]),
        )
        if why in SETTLED:
            del self._current[item.task]
            return
        is_usual = int(why) in _CONFLICTS | _LIMITS
        self._figures.conflicts += is_usual
        self._figures.ended = now
        self._figures.commit.add(now - item.queued)
        told = Explanation(
            looked_at=item.explanation.looked_at,
            feasible=item.explanation.feasible,
            ruled_out=item.explanation.ruled_out,
            # What the last attempt came to is forgotten when the task is given up.
            nearest_miss=None if is_usual else refusal,
            refused=refusal,
            remedy=refusal.remedy(),
        )
        if not is_usual:
            self._effects.append(Explain(item.tasks, told))
        self._reschedule(item, told, now, should_wait=int(why) not in _CONFLICTS)

    def _found_none(self, item: ScheduledTask, seen: Explanation, now: int) -> None:
        self._figures.unplaced += 1
        self._figures.ended = now
        self._shares.found_none(len(self._queue))
        if not seen.remedy:
            remedy = "free room, or ask for less"
            if self._shares.clusters < 1 and len(self._clusters) > 1:
                remedy = f"{remedy}, or ask more of the clusters (`clusters`)"
            if UNANSWERED in seen.ruled_out:
                remedy = f"bring back the agents that do not answer; {remedy}"
            seen = structs.replace(seen, remedy=remedy)
        self._effects.append(Explain(item.tasks, seen))
        self._reschedule(item, seen, now, should_wait=True)

    def _reschedule(
        self, item: ScheduledTask, seen: Explanation, now: int, *, should_wait: bool
    ) -> None:
        """Starts over with the task: at the end of the queue, later, or never."""
        is_queued = self._settings.queue_batch and not item.group.endless
        if item.reschedules >= self._settings.reschedules and not is_queued:
            del self._current[item.task]
            self._figures.abandoned += 1
            given_up = Refusal(Why.ATTEMPTS, lacking=item.reschedules + 1)
            self._effects.append(Abandon(item.tasks, structs.replace(seen, refused=given_up)))
            return
        item.reschedules += 1
        self._figures.rescheduled += 1
        if not self._settings.backoff or not (should_wait or item.reschedules > 1):
            self._requeue(item, now)
            return
        item.phase = Phase.WAITING
        timer = f"retry {self._next_token()}"
        self._waiting[timer] = item
        mean = self._settings.backoff << min(item.waits, _MOST_DOUBLINGS)
        # Tasks that failed together would otherwise come back together, and fail again.
        delay = mean // 2 + self._context.random.below(mean + 1)
        item.waits += 1
        self._effects.append(WakeMe(now + delay, timer))

    def _requeue(self, item: ScheduledTask, now: int) -> None:
        item.phase, item.queued, item.candidates = Phase.QUEUED, now, []
        self._queue.put_back(item)


def _machines_in(cluster: str, view: View) -> int:
    if not cluster:
        return view.machines
    return int(to_mask(view.members(CLUSTER_GROUP, cluster), view.machines).sum())
