from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from msgspec import Meta, structs

from argosy.cell import Bitmap, Draft, Rule, View
from argosy.cell.bitmaps import to_bitmap
from argosy.cell.draft import claims_of
from argosy.engines.api import Capabilities, Context, Finishes, Settings
from argosy.engines.kube.queues import (
    NEVER_DUE,
    Batch,
    Kinds,
    QueuedPod,
    ReadyQueue,
    RetryQueue,
    TaskKind,
    one,
)
from argosy.engines.kube.room import Room
from argosy.engines.kube.skipped_attempts import VainAttempts
from argosy.engines.shared.wished import wished_tiers
from argosy.engines.shared.withdrawal import Withdrawal, added, failed, withdrawn
from argosy.model.effects import Abandon, Commit, Effect, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    TaskFailed,
    TaskFinished,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import Explanation, Refusal, Why
from argosy.model.jobs import Job
from argosy.model.transactions import Claims, Outcome, TaskArray, Transaction
from argosy.model.units import Micros

_RETRY: Final = "retry"
#: Longest time for which attempts are skipped, because their time is only reported afterwards.
_LONGEST: Final = 60_000_000
_OTHERS_FIRST: Final = "room for the tasks of higher precedence, or a longer retry"


class KubeSettings(Settings, frozen=True):
    """Decision time, scoring, and what happens to tasks without room."""

    #: Decision time per task.
    t_task: Micros = Micros(5_000)
    #: How much longer an attempt takes that finds no machine. Kubernetes writes each failure to the API
    #: server, by default with at most 50 requests per second.
    t_failed: Micros = Micros(0)
    #: How long a task that found no room waits before it is ready again. 0: it joins the ready queue at
    #: once, behind others of its precedence; those of lower precedence wait as long as it finds none.
    retry: Micros = Micros(30_000_000)
    #: Which task of one precedence is next: the one that has been ready for longest, or the one that
    #: was created first. Kubernetes has the former, the Murmuration paper describes the latter; they
    #: differ for tasks that come from the retry queue.
    order: Literal["ready", "created"] = "ready"
    #: Prefer the least or the most allocated machines.
    score: Literal["least-allocated", "most-allocated"] = "least-allocated"
    #: How many machines to consider first, taking turns through the cell. 0: as Kubernetes, that is, all
    #: up to 100, and a share of larger cells that falls from 50 % to 5 %.
    looks: Annotated[int, Meta(ge=0, le=10_000_000)] = 0
    #: Whether a task that finds no room may preempt tasks of lower precedence.
    preempt: bool = True
    #: A task is abandoned after this many attempts. Kubernetes itself never gives up.
    attempts: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 100_000
    #: Skip attempts that cannot find room, and report their time afterwards. This makes simulating a
    #: full cell fast and does not change placements. Applies only while every decision takes exactly as
    #: long as these settings say, so never on real clocks.
    skip_hopeless_attempts: bool = True


class Kube:
    name: ClassVar[str] = "kube"
    summary: ClassVar[str] = (
        "One task at a time: filter, score, bind; tasks without room wait in a retry queue."
    )
    settings_type: ClassVar[type[Settings]] = KubeSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True,
        preemption=True,
        wishes=True,
        finishes=Finishes.OWN,
        machine_events=True,
    )

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, KubeSettings)
        self._settings = settings
        self._context = context
        self._rule = Rule.WORST if settings.score == "least-allocated" else Rule.BEST
        self._kinds = Kinds()
        self._ready = ReadyQueue(by_creation=settings.order == "created")
        self._waiting = RetryQueue(settings.retry)
        self._t_vain = settings.t_task + settings.t_failed
        self._vain = VainAttempts(self._ready, self._waiting, self._t_vain, settings.retry)
        self._room = Room(preempts=settings.preempt)
        #: For searches that only explain anew why there is no room. Attempts that are skipped make none,
        #: so these must not influence which of several equally good machines a later task gets.
        self._idle_random = context.random.child("in vain")
        #: The current task and what was found for it; the claims are kept until the cell answers.
        self._pod: QueuedPod | None = None
        self._claims: Claims | None = None
        self._explanation = Explanation()
        #: Whether that task has been withdrawn.
        self._is_withdrawn = False
        self._decision = 0
        #: When the decision is due; whether no decision so far was late or early (the world may stretch
        #: them).
        self._due = 0
        self._is_punctual = settings.t_task > 0
        #: The earliest timer set.
        self._timer = NEVER_DUE
        #: The machine at which the next search starts; how many of how many machines it considers.
        self._turn = 0
        self._looks = 0, 0
        #: The task that others were told goes first.
        self._first: int | None = None

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case DecisionDue(token):
                return self._decided(view, now) if token == self._decision else ()
            case Committed(token, outcome) if token == self._decision:
                return self._bound(outcome, view, now)
            case TimerFired(name) if name == _RETRY and now >= self._timer:
                self._timer = NEVER_DUE
                return self._go_on(view, now)
            case TaskFinished(_, _, _, shapes):
                begun = self._catch_up(now)
                self._room.given_back(shapes.tolist(), view)
                return begun or self._go_on(view, now)
            case JobSubmitted(job, number, tasks):
                begun = self._catch_up(now)
                self._add(job, number, tasks, view, now)
                return begun or self._go_on(view, now)
            case TasksLost(job, number, tasks):
                begun = self._catch_up(now)
                self._room.given_back(self._add(job, number, tasks, view, now), view)
                return begun or self._go_on(view, now)
            case MachineJoined() | MachineChanged():
                begun = self._catch_up(now)
                self._room.changed()
                return begun or self._go_on(view, now)
            case JobCancelled() | JobChanged():
                begun = self._catch_up(now)
                self._withdraw(event)
                more = added(event)
                rest = self._go_on(view, now) if more is None else self.handle(more, view, now)
                return (*begun, *rest)
            case TaskFailed():
                return self.handle(failed(event, view), view, now)
        return ()

    def _withdraw(self, event: Withdrawal) -> None:
        gone = set(withdrawn(event).tolist())

        def is_wanted(task: int) -> bool:
            return task not in gone

        left_out = self._ready.keep(is_wanted) + self._waiting.keep(is_wanted)
        for kind, count in left_out.items():
            self._room.wanted(kind, -count)
        if self._first in gone:
            self._first = None
            self._ready.tell_again()
        self._vain.recount()
        if self._pod is not None:
            self._vain.most = max(self._vain.most, self._pod.attempts)
            self._is_withdrawn |= self._pod.task in gone

    def _forget(self, pod: QueuedPod, view: View, now: int) -> Sequence[Effect]:
        self._room.wanted(pod.kind, -1)
        self._is_gone(pod)
        return self._begin(view, now)

    def _add(self, job: Job, number: int, tasks: TaskArray, view: View, now: int) -> list[int]:
        """Adds tasks to the ready queue; returns the shape of each."""
        shapes = []
        for group, mine in job.tasks_by_group(tasks):
            shape = view.shape(group.request, group.tags, job.precedence)
            kind = self._kinds.of(job, group, shape)
            self._ready.add(Batch(number, kind, mine, now))
            self._room.wanted(kind, len(mine))
            shapes += [shape] * len(mine)
        return shapes

    def _go_on(self, view: View, now: int) -> Sequence[Effect]:
        """Starts with the next task, unless one is being decided on."""
        return self._catch_up(now) or (self._begin(view, now) if self._pod is None else ())

    def _begin(self, view: View, now: int) -> Sequence[Effect]:
        """Takes the next task and searches for a machine in the current cell."""
        self._pod = self._claims = None
        self._is_withdrawn = False
        if self._waiting.due <= now:
            self._waiting.move_due(now, self._ready)
        if self._room.is_lacked_by_all and self._is_all_in_vain(view):
            return self._pass_over(now)
        if not self._ready:
            return self._set_timer(self._waiting.due)
        pod = self._pod = self._ready.pop()
        self._vain.tried(pod)
        is_found = self._choose(pod, view, now)
        return self._think(pod, self._settings.t_task if is_found else self._t_vain, now)

    def _think(self, pod: QueuedPod, duration: int, now: int) -> Sequence[Effect]:
        self._decision += 1
        self._due = now + duration
        return (Think(duration, self._decision, pod.job, "", self._vain.take_unreported(pod.job)),)

    def _choose(self, pod: QueuedPod, view: View, now: int) -> bool:
        """Whether there is a machine."""
        kind = pod.kind
        looks = self._in_turn(view)
        lack = self._room.look_again(kind, view)
        if lack is not None and lack.is_recent(now):
            self._explanation = lack.explanation
            return False
        random = self._context.random if lack is None else self._idle_random
        if looks is not None and not kind.requires and not kind.wishes:
            # Most tasks find a machine among those whose turn it is.
            turn = _window(*looks)
            found = view.find(kind.shape, 1, self._rule, random, within=turn)
            if len(found.machines):
                self._explanation = found.explanation(self._settings.score)
                self._claims = claims_of(one(pod.task), kind.shape, found)
                return True
            looks = None
        preempts = self._may_preempt(kind)
        has_victims = preempts and view.may_evict(kind.precedence)
        draft = Draft(view)
        found, _ = draft.place(
            one(pod.task),
            kind.shape,
            self._rule,
            random,
            requires=kind.requires,
            prefer=_prefer(kind, looks, view),
            preempt_below=kind.precedence if has_victims else None,
        )
        self._explanation = found.explanation(self._settings.score)
        self._claims = draft.claims() if draft.count else None
        if self._claims is None:
            if preempts and not has_victims:
                # As a search for victims does: without any, later tasks get the same machines.
                random.bits()
            self._room.found_none(kind, self._explanation, view, now)
        return self._claims is not None

    def _may_preempt(self, kind: TaskKind) -> bool:
        return self._settings.preempt and kind.preempts

    def _in_turn(self, view: View) -> tuple[int, int, int] | None:
        """The machines to consider first: for `_window`; none if all are considered."""
        looks, machines = self._looks
        if machines != view.machines:
            machines = view.machines
            looks = self._settings.looks or looks_at(machines)
            self._looks = looks, machines
        if looks >= machines:
            return None
        first = (self._turn + self._vain.take_passed() * looks) % machines
        self._turn = (first + looks) % machines
        return first, looks, machines

    def _decided(self, view: View, now: int) -> Sequence[Effect]:
        self._is_punctual &= now == self._due
        if self._is_withdrawn and self._pod is not None:
            return self._forget(self._pod, view, now)
        if self._claims is None:
            return self._found_none(view, now)
        assert self._pod is not None
        may_preempt = self._may_preempt(self._pod.kind)
        transaction = Transaction(self._context.name, self._claims, preempt=may_preempt)
        return (Commit(self._decision, transaction, self._explanation),)

    def _bound(self, outcome: Outcome, view: View, now: int) -> Sequence[Effect]:
        """A machine taken in the meantime does not count as lack of room: the task is ready again at
        once."""
        pod = self._pod
        assert pod is not None
        if outcome.all_accepted:
            self._room.taken(pod.kind, view)
            self._is_gone(pod)
            return self._begin(view, now)
        if self._is_withdrawn:
            return self._forget(pod, view, now)
        if int(outcome.whys[0]) in (Why.RESOURCE_LIMIT, Why.JOB_LIMIT, Why.PRECEDENCE_LIMIT):
            return self._found_none(view, now)
        self._ready.put_back(pod)
        return self._begin(view, now)

    def _found_none(self, view: View, now: int) -> Sequence[Effect]:
        pod = self._pod
        assert pod is not None
        effects: Sequence[Effect]
        if pod.attempts >= self._settings.attempts:
            given_up = Refusal(Why.ATTEMPTS, lacking=pod.attempts)
            why = structs.replace(self._explanation, refused=given_up)
            effects = (Abandon(one(pod.task), why),)
            self._room.wanted(pod.kind, -1)
            self._is_gone(pod)
            self._vain.recount()
        else:
            effects = (*self._explain(pod), *self._tell_others(pod))
            self._vain.put_aside(pod, now)
        if now < self._due and not self._settings.retry:
            # A live world does not wait for decisions. Without a pause, attempts in vain would go on at
            # this instant for ever.
            self._pod = self._claims = None
            return (*effects, *self._set_timer(self._due))
        begun = self._begin(view, now)
        return (*effects, *begun) if effects else begun

    def _explain(self, pod: QueuedPod) -> Sequence[Effect]:
        """Explains a task's first failure, together with the rest of its batch, and then ever more
        rarely, because there are millions of attempts in a full cell."""
        batch, pod.batch = pod.batch, None
        rest = [] if batch is None else self._ready.explained(batch)
        if pod.attempts < 2 * pod.explained:
            return ()
        pod.explained = pod.attempts
        return (Explain(np.array([pod.task, *rest], np.int64), self._explanation),)

    def _tell_others(self, pod: QueuedPod) -> Sequence[Effect]:
        """Tells tasks that have not been tried since the last attempt of a task of higher precedence,
        which found no room, that it goes first."""
        others = self._ready.passed_over(pod.kind.precedence, pod.failed_at)
        if not others:
            return ()
        self._first = pod.task
        told = Explanation(refused=Refusal(Why.BEHIND, task=pod.task), remedy=_OTHERS_FIRST)
        return [Explain(np.array(each.tasks[each.at :], np.int64), told) for each in others]

    def _is_gone(self, pod: QueuedPod) -> None:
        if pod.task == self._first:
            self._first = None
            self._ready.tell_again()

    def _set_timer(self, due: int) -> Sequence[Effect]:
        if self._timer <= due or due == NEVER_DUE:
            return ()
        self._timer = due
        return (WakeMe(due, _RETRY),)

    def _is_all_in_vain(self, view: View) -> bool:
        """Whether no task can find a machine until room is freed, if all kinds are known to lack some.
        The first attempt of a batch and the last attempt of a task are always made, because they are
        reported."""
        head = self._ready.head
        return (
            self._settings.skip_hopeless_attempts
            and self._is_punctual
            and (head is not None or len(self._waiting) > 0)
            and not (isinstance(head, Batch) and head.is_fresh)
            and self._settings.attempts - self._vain.most >= 2
            and self._room.is_short(view)
        )

    def _pass_over(self, now: int) -> Sequence[Effect]:
        """Skips attempts until something changes, or one of them must be made."""
        self._vain.since = now
        wake = min(now + _LONGEST, self._vain.earliest_attempt(self._settings.attempts))
        if (ahead := self._ready.ahead_of_fresh) is not None:
            wake = min(wake, now + ahead * self._t_vain)
        head = self._ready.head
        told = self._tell_others(head) if isinstance(head, QueuedPod) else ()
        return (*told, *self._set_timer(wake))

    def _catch_up(self, now: int) -> Sequence[Effect]:
        """Accounts for skipped attempts, and continues with the one in progress, if any."""
        if self._vain.since is None:
            if self._waiting.due <= now:
                self._waiting.move_due(now, self._ready)
            return ()
        found = self._vain.until(now)
        if found is None:
            return ()
        pod, due = found
        self._pod, self._claims = pod, None
        self._explanation = self._room.why_none_before(pod.kind)
        return self._think(pod, due - now, now)


def _prefer(
    kind: TaskKind, looks: tuple[int, int, int] | None, view: View
) -> Iterable[tuple[Bitmap, int]]:
    """The machines that the task wishes for, wherever they are; then those whose turn it is."""
    in_turn = () if looks is None else ((_window(*looks), 1),)
    if not kind.wishes:
        return in_turn
    return chain(wished_tiers(kind.wishes, kind.requires, 1, view), in_turn)


@lru_cache(maxsize=256)
def _window(first: int, looks: int, machines: int) -> Bitmap:
    """So many of the machines, from the first of them on, wrapping round."""
    chosen = np.zeros(machines, np.bool_)
    chosen[first : first + looks] = True
    chosen[: max(0, first + looks - machines)] = True
    return to_bitmap(chosen)


def looks_at(machines: int) -> int:
    """How many machines Kubernetes scores: all up to 100; beyond that 50 % less 1 % per 125 machines,
    but at least 5 % and 100 machines."""
    if machines <= 100:
        return machines
    percent = max(5, 50 - machines // 125)
    return max(100, machines * percent // 100)
