from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, structs

from argosy.cell import Bitmap, Draft, Rule, View
from argosy.engines.api import Capabilities, Context, Settings
from argosy.engines.kube.queues import Pod, ReadyQueue, RetryQueue, one
from argosy.model.effects import Abandon, Commit, Effect, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    Event,
    JobSubmitted,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import job_of
from argosy.model.transactions import Claims, Outcome, Transaction
from argosy.model.units import Micros

_RETRY = "retry"


class KubeSettings(Settings, frozen=True):
    """How long a task is decided on, how machines are scored, and what happens to one without room."""

    #: The decision time of one task.
    t_task: Micros = Micros(5_000)
    #: How long a task that found no room waits before it is ready again. Zero puts it at the end of the
    #: ready queue at once.
    retry: Micros = Micros(30_000_000)
    #: Machines with most left over are best, or those with least.
    score: Literal["least-allocated", "most-allocated"] = "least-allocated"
    #: How many machines to look at before all others, in turn over the cell. 0: as many as Kubernetes,
    #: which is all of up to 100, and of more a share that falls from 50 % to 5 %.
    looks: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    #: Whether a task may push out tasks of lower precedence if it finds no room.
    preempt: bool = True
    #: A task is abandoned after so many attempts. Kubernetes itself never gives up.
    attempts: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 100_000


class Kube:
    name: ClassVar[str] = "kube"
    summary: ClassVar[str] = (
        "One task at a time: filter, score, bind; a retry queue for what finds no room."
    )
    settings_type: ClassVar[type[Settings]] = KubeSettings
    capabilities: ClassVar[Capabilities] = Capabilities(transactions=True, preemption=True)

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, KubeSettings)
        self._settings = settings
        self._context = context
        self._rule = Rule.WORST if settings.score == "least-allocated" else Rule.BEST
        self._ready = ReadyQueue()
        self._waiting = RetryQueue(settings.retry)
        #: The task being decided on, and what was found for it; the claims stay until the cell answers.
        self._pod: Pod | None = None
        self._claims: Claims | None = None
        self._explanation = Explanation()
        self._decision = 0
        #: Where the next round of looks begins.
        self._turn = 0

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(job, _, tasks) | TasksLost(job, _, tasks):
                self._ready.add(job, tasks)
                return self._begin(view) if self._pod is None else ()
            case DecisionDue(token):
                return self._bind(view, now) if token == self._decision else ()
            case Committed(transaction, outcome) if transaction.claims is self._claims:
                return self._bound(outcome, view, now)
            case TimerFired(name) if name == _RETRY:
                return self._wake(view, now)
        return ()

    def _begin(self, view: View) -> Sequence[Effect]:
        """Takes the next task and looks for a machine, on the cell as it is now."""
        self._pod = self._claims = None
        if not self._ready:
            return ()
        pod = self._pod = self._ready.pop()
        pod.attempts += 1
        self._decision += 1
        self._choose(pod, view)
        return (Think(self._settings.t_task, self._decision, job_of(pod.task)),)

    def _choose(self, pod: Pod, view: View) -> None:
        group, precedence = pod.group, pod.job.precedence
        draft = Draft(view)
        found, _ = draft.place(
            one(pod.task),
            view.shape(group.request, group.tags, precedence),
            self._rule,
            self._context.random,
            requires=group.requires,
            prefer=self._in_turn(view),
            preempt_below=precedence if self._settings.preempt else None,
        )
        self._explanation = found.explanation()
        self._claims = draft.claims() if draft.count else None

    def _in_turn(self, view: View) -> Sequence[tuple[Bitmap, int]]:
        """The machines to look at first; none, if these are all."""
        machines = view.machines
        looks = self._settings.looks or looks_at(machines)
        if looks >= machines:
            return ()
        first = self._turn % machines
        last = first + looks
        self._turn = last % machines
        chosen = view.between(first, min(last, machines))
        if last > machines:
            chosen |= view.between(0, last - machines)
        return ((chosen, 1),)

    def _bind(self, view: View, now: int) -> Sequence[Effect]:
        if self._claims is None:
            return self._found_none(view, now)
        transaction = Transaction(self._context.name, self._claims, preempt=self._settings.preempt)
        return (Commit(transaction, self._explanation),)

    def _bound(self, outcome: Outcome, view: View, now: int) -> Sequence[Effect]:
        """A machine that was taken meanwhile is no lack of room: the task is ready again at once."""
        assert self._pod is not None
        if outcome.all_accepted:
            return self._begin(view)
        if int(outcome.whys[0]) in (Why.RESOURCE_LIMIT, Why.JOB_LIMIT, Why.PRECEDENCE_LIMIT):
            return self._found_none(view, now)
        self._ready.put_back(self._pod)
        return self._begin(view)

    def _found_none(self, view: View, now: int) -> Sequence[Effect]:
        pod = self._pod
        assert pod is not None
        effects: list[Effect] = []
        if pod.attempts >= self._settings.attempts:
            given_up = Refusal(Why.ATTEMPTS, lacking=pod.attempts)
            effects.append(
                Abandon(one(pod.task), structs.replace(self._explanation, refused=given_up))
            )
        else:
            # Said when it is new, and ever more rarely: a full cell makes millions of attempts.
            if pod.attempts & (pod.attempts - 1) == 0:
                effects.append(Explain(one(pod.task), self._explanation))
            effects.extend(self._put_aside(pod, now))
        effects.extend(self._begin(view))
        return effects

    def _put_aside(self, pod: Pod, now: int) -> Sequence[Effect]:
        if self._settings.retry == 0:
            self._ready.put_back(pod)
            return ()
        self._waiting.add(pod, now)
        return self._set_timer() if len(self._waiting) == 1 else ()

    def _wake(self, view: View, now: int) -> Sequence[Effect]:
        for pod in self._waiting.take_due(now):
            self._ready.put_back(pod)
        effects = list(self._set_timer())
        if self._pod is None:
            effects.extend(self._begin(view))
        return effects

    def _set_timer(self) -> Sequence[Effect]:
        due = self._waiting.due
        return () if due is None else (WakeMe(due, _RETRY),)


def looks_at(machines: int) -> int:
    """How many machines Kubernetes scores: all of up to 100, then 50 % less 1 % per 125 machines, and at
    least 5 % and 100 machines."""
    if machines <= 100:
        return machines
    percent = max(5, 50 - machines // 125)
    return max(100, machines * percent // 100)
