"""Shared by engines that decide on one job at a time.

A scheduler takes the next job, chooses machines in the cell as it is then, thinks, commits, and requeues
the job's remaining tasks. Engines differ in how long a decision takes, which machines it may use, by
which rule it chooses, and how it commits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Annotated, Final, Literal, Protocol

import msgspec
import numpy as np
from msgspec import Meta, structs
from numpy.typing import NDArray

from argosy.cell import Bitmap, Draft, Found, Rule, View
from argosy.cell.draft import shapes_alike
from argosy.engines.api import Context, Settings
from argosy.engines.shared.failure_domains import over_domains
from argosy.engines.shared.gangs import explain_gang
from argosy.engines.shared.wished import wished_tiers
from argosy.engines.shared.withdrawal import Withdrawal, added, claims_left, failed, left
from argosy.model.effects import Abandon, Commit, Effect, Explain, Think, WakeMe
from argosy.model.events import (
    Committed,
    DecisionDue,
    Event,
    JobCancelled,
    JobChanged,
    JobSubmitted,
    TaskFailed,
    TasksLost,
    TimerFired,
)
from argosy.model.explanations import LIMITS, Explanation, Refusal, Why
from argosy.model.jobs import Job, TaskGroup
from argosy.model.machines import GroupNames
from argosy.model.transactions import Claims, Outcome, TaskArray, Transaction
from argosy.model.units import Micros

_LIMITS: Final = frozenset(map(int, LIMITS))
RULES: Final = {"first-fit": Rule.FIRST, "best-fit": Rule.BEST, "worst-fit": Rule.WORST}


#: Methods of `SerialScheduler` that say where tasks may go and where they should.
WHERE: Final = ("machines", "near", "preferred", "reserved", "tags", "visits")
#: Those that say which tasks a decision is about, how it is made and committed, and how long it takes.
HOW: Final = ("_choose", "decision_time", "part", "precedence", "terms")
_NO_TASKS: Final[TaskArray] = np.empty(0, np.int64)
_NO_TASKS.flags.writeable = False


class KindTime(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The decision time for one kind of job."""

    t_job: Micros = Micros(100_000)
    t_task: Micros = Micros(5_000)

    def of(self, tasks: int) -> int:
        return self.t_job + self.t_task * tasks


class SerialSettings(Settings, frozen=True):
    """Settings of every serial scheduler."""

    #: Decision time is t_job + t_task x tasks.
    t_job: Micros = Micros(100_000)
    t_task: Micros = Micros(5_000)
    placement: Literal["first-fit", "best-fit", "worst-fit"] = "first-fit"
    #: A node group, such as racks, or several: a job's tasks are spread over their sets first; empty:
    #: none.
    spread: GroupNames = ""
    #: A job is abandoned after this many attempts.
    attempts: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000
    #: How long a job waits after an attempt that found no room or hit the scheduler's limit. Doubles,
    #: up to 64 times this, until an attempt places something. 0: not at all.
    backoff: Micros = Micros(1_000_000)


class PendingJob(msgspec.Struct, gc=False, eq=False):
    """The unplaced tasks of one job."""

    job: Job
    number: int
    #: In ascending order.
    tasks: TaskArray
    attempts: int = 0
    #: Attempts that left tasks unplaced, for lack of room or because of a conflict.
    lost: int = 0
    #: Consecutive attempts that ended in waiting.
    waits: int = 0


class CommitTerms(msgspec.Struct, frozen=True, gc=False):
    """How a transaction is checked: see `Transaction`."""

    atomic: bool = False
    coarse: bool = False
    preempt: bool = False
    by_claims: bool = False


class JobQueue(Protocol):
    """Jobs waiting for their next attempt."""

    def append(self, work: PendingJob, /) -> None: ...

    def popleft(self) -> PendingJob: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[PendingJob]: ...


def _is_picky(job: Job) -> bool:
    """Whether tasks differ, or cannot go to just any machine."""
    group = job.groups[0]
    return bool(len(job.groups) > 1 or group.requires or group.wishes or job.constraints)


def _both(within: Bitmap | None, only: Bitmap) -> Bitmap:
    return only if within is None else within & only


class SerialScheduler:
    """The loop of a plain scheduler; engines override the first four methods."""

    #: What explanations call the way machines are chosen; empty: the name of the `placement`.
    rule_title: str = ""

    def __init__(self, settings: SerialSettings, context: Context) -> None:
        self._serial = settings
        self._context = context
        self._rule = RULES[settings.placement]
        #: Exactly the jobs waiting for their next attempt; one job is decided on at a time.
        self._queue = self.queue_of(())
        #: Jobs waiting for room, by timer: the number of the decision that found none, because a job
        #: may be here in two parts.
        self._waiting: dict[str, PendingJob] = {}
        self._deciding: PendingJob | None = None
        #: The terms and claims of the current decision, and the tasks it found no machine for.
        self._terms = CommitTerms()
        self._claims: Claims | None = None
        self._unplaced = np.empty(0, np.int64)
        #: What was seen when the claims were chosen, and why other tasks have no machine, by group.
        self._explanation: Explanation | None = None
        self._explains: list[Explain] = []
        self._decision = 0
        #: Whether the claims are on their way, and what was withdrawn since.
        self._is_committing = False
        self._withdrawals: list[Withdrawal] = []
        #: Whether all machines are searched alike, so that `WHERE` need not be asked for every job.
        self._searches_all = not settings.spread and self._leaves_as_is(SerialScheduler, WHERE)
        #: Whether `HOW` need not be asked about jobs that are no gangs: each decision is about all of
        #: their tasks, with the job's precedence, and is committed on the usual terms.
        self._decides_plainly = self._searches_all and self._leaves_as_is(SerialScheduler, HOW)
        self._usual_terms = CommitTerms()

    def _leaves_as_is(self, known: type[SerialScheduler], names: Sequence[str]) -> bool:
        """Whether no subclass of `known` overrides one of these methods."""
        return all(getattr(type(self), name) is getattr(known, name) for name in names)

    def decision_time(self, work: PendingJob) -> int:
        return self._serial.t_job + self._serial.t_task * len(work.tasks)

    def machines(self, view: View) -> Bitmap | None:
        """The machines to choose from; None means all."""
        return None

    def terms(self, work: PendingJob) -> CommitTerms:
        return CommitTerms(atomic=work.job.gang)

    def precedence(self, work: PendingJob, view: View) -> int:
        """The precedence that the job claims with."""
        return work.job.precedence

    def part(self, work: PendingJob, view: View) -> TaskArray:
        """The tasks to decide on in this attempt: the first of the remaining ones, usually all."""
        return work.tasks

    def preferred(self, work: PendingJob, count: int, view: View) -> Iterable[tuple[Bitmap, int]]:
        """Machines to try first, each with the most of `count` tasks that it should take."""
        spread = self._serial.spread
        return over_domains(spread, count, view, self._context.random) if spread else ()

    def queue_of(self, works: Iterable[PendingJob]) -> JobQueue:
        """A queue with these jobs, in the order in which jobs are decided on."""
        return deque(works)

    def near(
        self, work: PendingJob, group: TaskGroup, view: View
    ) -> tuple[Bitmap | None, tuple[Bitmap, ...]]:
        """The only machines for the group's tasks in this attempt (None: all), and those among them to
        try first, nearest first."""
        return None, ()

    def visits(self, view: View) -> NDArray[np.int64] | None:
        """The order in which machines are visited; None: as `placement` says."""
        return None

    def tags(self, job: Job, group: TaskGroup) -> Sequence[str]:
        """The tags of the group's containers."""
        return group.tags

    def apart(self, job: Job) -> str:
        """The tag of the job's containers, if no two of them may be on one machine; empty: they may."""
        return ""

    def reserved(self, view: View) -> NDArray[np.int64] | None:
        """Added to the room that the view shows, per machine and dimension; None means nothing."""
        return None

    def pause(self, work: PendingJob, *, should_wait: bool) -> int:
        """How long a job that was not wholly placed waits. It should if it found no room, or is at the
        scheduler's limit."""
        return self._serial.backoff << min(work.waits, 6) if should_wait else 0

    def withdrawn(self, job: Job, tasks: TaskArray) -> None:
        """Called when tasks that waited here need no longer be placed."""

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        # Ordered by frequency: this is the hottest place in a simulation.
        match event:
            case DecisionDue():
                return self._decided(now, view) if event.token == self._decision else ()
            case Committed():
                is_mine = event.token == self._decision and self._claims is not None
                return self._committed(event.outcome, now, view) if is_mine else ()
            case JobSubmitted():
                return self._accept(PendingJob(event.job, event.number, event.tasks), view)
            case TasksLost(job, number, tasks):
                return self._take_again(job, number, tasks, view)
            case TimerFired(name) if name in self._waiting:
                return self._accept(self._waiting.pop(name), view)
            case JobCancelled() | JobChanged():
                self._withdraw(event)
                more = added(event)
                return () if more is None else self.handle(more, view, now)
            case TaskFailed():
                return self.handle(failed(event, view), view, now)
        return ()

    def _claims_of(self, token: int) -> Claims | None:
        """The claims that the answer with this token is about, if it belongs to the current
        decision."""
        return self._claims if token == self._decision else None

    def _withdraw(self, event: Withdrawal) -> None:
        for work in (*self._queue, *self._waiting.values()):
            self._leave_out(work, event)
        self._queue = self.queue_of(work for work in self._queue if len(work.tasks))
        self._waiting = {name: work for name, work in self._waiting.items() if len(work.tasks)}
        if self._deciding is None or self._deciding.number != event.number:
            return
        if self._is_committing:
            self._withdrawals.append(event)
            return
        self._leave_out(self._deciding, event)
        self._claims = claims_left(self._claims, event)
        self._unplaced = left(self._unplaced, event)
        explains = (Explain(left(e.tasks, event), e.explanation) for e in self._explains)
        self._explains = [explain for explain in explains if len(explain.tasks)]

    def _leave_out(self, work: PendingJob, event: Withdrawal) -> None:
        if work.number != event.number:
            return
        before, work.job, work.tasks = work.tasks, event.job, left(work.tasks, event)
        if len(work.tasks) < len(before):
            self.withdrawn(event.job, np.setdiff1d(before, work.tasks))

    def _accept(self, work: PendingJob, view: View) -> Sequence[Effect]:
        self._queue.append(work)
        return self._begin(view) if self._deciding is None else ()

    def _take_again(self, job: Job, number: int, tasks: TaskArray, view: View) -> Sequence[Effect]:
        """Adds lost tasks to the rest of their job, or queues them as a job of their own."""
        for work in (*self._queue, *self._waiting.values()):
            if work.number == number:
                work.tasks = np.union1d(work.tasks, tasks)
                return ()
        return self._accept(PendingJob(job, number, tasks), view)

    def _begin(self, view: View) -> Sequence[Effect]:
        """Decides on the next job, on the current cell; the commit follows when the decision time has
        passed."""
        if not self._queue:
            self._deciding = None
            return ()
        work = self._deciding = self._queue.popleft()
        work.attempts += 1
        self._decision += 1
        self._is_committing = False
        job, tasks = work.job, work.tasks
        if self._decides_plainly and not (job.gang or _is_picky(job)) and len(tasks):
            self._terms = self._usual_terms
            self._claims = self._choose_anywhere(work, tasks, job.precedence, view)
            duration = self._serial.t_job + self._serial.t_task * len(tasks)
        else:
            self._terms = self.terms(work)
            self._claims = self._choose(work, view)
            duration = self.decision_time(work)
        return (Think(duration, self._decision, work.number),)

    def _choose(self, work: PendingJob, view: View) -> Claims | None:
        precedence, part = self.precedence(work, view), self.part(work, view)
        if self._searches_all and not (_is_picky(work.job) or self._terms.preempt) and len(part):
            return self._choose_anywhere(work, part, precedence, view)
        return self._choose_by_group(work, part, precedence, view)

    def _choose_anywhere(
        self, work: PendingJob, part: TaskArray, precedence: int, view: View
    ) -> Claims | None:
        """Identical tasks that may go to any machine, as most do: a single search."""
        group, random = work.job.groups[0], self._context.random
        shape, asked = view.shape(group.request, group.tags, precedence), len(part)
        seen: Explanation | None = None
        self._explanation = None
        if self._context.keeps_explanations:
            found = view.find(shape, asked, self._rule, random)
            seen = self._explanation = found.explanation(self.rule_title)
            machines, versions = found.machines, found.versions
        else:
            machines, versions, short = view.find_plainly(shape, asked, self._rule, random)
            if short is not None:
                seen = short.explanation(self.rule_title)
        count = len(machines)
        if count == len(work.tasks):
            self._explains, self._unplaced = [], _NO_TASKS
            claims = Claims(part, machines, shapes_alike(shape, count), versions)
            return self._by_claims(claims, view) if self._terms.by_claims else claims
        self._explains = [] if seen is None or count == asked else [Explain(part[count:], seen)]
        self._unplaced = work.tasks[count:]
        if self._terms.atomic and count:
            self._explains = explain_gang(work.job, work.tasks, self._explains, count)
            return None
        if not count:
            return None
        claims = Claims(part[:count], machines, shapes_alike(shape, count), versions)
        return self._by_claims(claims, view)

    def _by_claims(self, claims: Claims, view: View) -> Claims:
        """With the versions that the terms ask for."""
        if not self._terms.by_claims:
            return claims
        return structs.replace(claims, versions=view.sequences(claims.machines))

    def _choose_by_group(
        self, work: PendingJob, part: TaskArray, precedence: int, view: View
    ) -> Claims | None:
        draft = Draft(view, self.reserved(view), self.visits(view))
        terms, within = self._terms, self.machines(view)
        apart = self.apart(work.job)
        own = (apart,) if apart else ()
        if apart:
            within = _both(within, view.where_tags(apart, most=0))
        seen: list[Found] = []
        self._explains = []
        self._explanation = None
        for group, tasks in work.job.tasks_by_group(part):
            only, near = self.near(work, group, view)
            prefer = self.preferred(work, len(tasks), view)
            if near:
                prefer = chain([(bitmap, len(tasks)) for bitmap in near], prefer)
            if group.wishes:
                wished = wished_tiers(group.wishes, group.requires, len(tasks), view)
                prefer = chain(wished, prefer)
            found, short = draft.place(
                tasks,
                view.shape(group.request, (*self.tags(work.job, group), *own), precedence),
                self._rule,
                self._context.random,
                requires=group.requires,
                within=within if only is None else _both(within, only),
                prefer=prefer,
                preempt_below=precedence if terms.preempt and work.job.preempts else None,
                apart=bool(apart),
            )
            seen.append(found)
            if len(short):
                self._explains.append(Explain(short, found.explanation(self.rule_title)))
        # A transaction has one explanation: that of its tasks, if they were searched for together.
        if self._context.keeps_explanations and len(seen) == 1:
            self._explanation = seen[0].explanation(self.rule_title)
        self._unplaced = draft.unplaced()
        if part is not work.tasks and len(part) < len(work.tasks):
            self._unplaced = np.concatenate([self._unplaced, work.tasks[len(part) :]])
        if terms.atomic and draft.count and len(self._unplaced):
            self._explains = explain_gang(work.job, work.tasks, self._explains, draft.count)
            return None
        return self._by_claims(draft.claims(), view) if draft.count else None

    def _decided(self, now: int, view: View) -> Sequence[Effect]:
        work = self._deciding
        assert work is not None
        if self._claims is None:
            work.lost += 1
            return self._conclude(now, view, should_wait=True)
        terms = self._terms
        self._is_committing = True
        transaction = Transaction(
            self._context.name,
            self._claims,
            atomic=terms.atomic,
            coarse=terms.coarse,
            preempt=terms.preempt and work.job.preempts,
            by_claims=terms.by_claims,
        )
        return (Commit(self._decision, transaction, self._explanation),)

    def _committed(self, outcome: Outcome, now: int, view: View) -> Sequence[Effect]:
        work, claims = self._deciding, self._claims
        assert work is not None
        assert claims is not None
        work.tasks = self._unplaced
        if self._withdrawals:
            return self._committed_late(work, claims, outcome, now, view)
        if outcome.all_accepted and work.tasks is _NO_TASKS and not self._explains:
            self._claims = None
            return self._begin(view)
        if outcome.all_accepted:
            work.lost += bool(self._explains)
            # An attempt that got all it asked for does not count against the job, even if tasks remain.
            work.attempts -= bool(len(work.tasks)) and not self._explains
            return self._conclude(now, view, should_wait=False)
        refused = np.flatnonzero(~outcome.accepted)
        work.tasks = np.sort(np.concatenate([work.tasks, claims.tasks[refused]]))
        # After a conflict, retry at once; after hitting a limit, wait until something ends.
        is_limited = not _LIMITS.isdisjoint(outcome.whys[refused].tolist())
        work.lost += not is_limited
        return self._conclude(now, view, should_wait=is_limited and not outcome.accepted.any())

    def _committed_late(
        self, work: PendingJob, claims: Claims, outcome: Outcome, now: int, view: View
    ) -> Sequence[Effect]:
        """Handles an answer after tasks were withdrawn in transit: none of these comes back."""
        work.tasks = np.sort(np.concatenate([work.tasks, claims.tasks[~outcome.accepted]]))
        withdrawals, self._withdrawals = self._withdrawals, []
        for event in withdrawals:
            self._leave_out(work, event)
        return self._conclude(now, view, should_wait=False)

    def _conclude(self, now: int, view: View, *, should_wait: bool) -> Sequence[Effect]:
        """Ends the attempt: puts back what is left of the job, then starts with the next."""
        work = self._deciding
        assert work is not None
        self._claims = None
        if not len(work.tasks) and not self._explains:
            return self._begin(view)
        effects: list[Effect] = list(self._explains)
        if len(work.tasks):
            effects.extend(self._put_back(work, now, should_wait=should_wait))
        effects.extend(self._begin(view))
        return effects

    def _put_back(self, work: PendingJob, now: int, *, should_wait: bool) -> Sequence[Effect]:
        if work.attempts >= self._serial.attempts:
            last = self._explains[0].explanation if self._explains else Explanation()
            given_up = Refusal(Why.ATTEMPTS, lacking=work.attempts)
            return (Abandon(work.tasks, structs.replace(last, refused=given_up)),)
        delay = self.pause(work, should_wait=should_wait)
        # Without a pause, the job would go first again and again where precedence decides: what else
        # waits gets its turn before.
        if not delay and not (should_wait and self._queue):
            work.waits = 0
            self._queue.append(work)
            return ()
        timer = str(self._decision)
        self._waiting[timer] = work
        work.waits += 1
        return (WakeMe(now + delay, timer),)
