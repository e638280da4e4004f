from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta

from argosy.cell import Bitmap, View
from argosy.engines.api import Capabilities, Context, PaperPreset, Settings
from argosy.engines.omega.fairness import CurrentShare, FairShare
from argosy.engines.shared.serial import (
    HOW,
    WHERE,
    CommitTerms,
    PendingJob,
    SerialScheduler,
    SerialSettings,
)
from argosy.model.constraints import Constraint
from argosy.model.constraints.parts import APP, SELF, apart_tag, app_tag
from argosy.model.effects import Abandon, Commit, Effect, Explain, WakeMe
from argosy.model.events import Committed, Event, JobSubmitted, TasksLost, TimerFired
from argosy.model.explanations import Explanation
from argosy.model.jobs import Job
from argosy.model.machine_model import MachineModel
from argosy.model.transactions import TaskArray, Transaction
from argosy.model.units import Micros

#: How long a scheduler that has reached its share waits before it looks again, if no other time is set.
SHORTEST_REST: Final = 1_000
#: The token of announcements; decisions have tokens from 1.
_WANTS: Final = 0


class OmegaSettings(SerialSettings, frozen=True):
    """How an Omega scheduler decides and commits."""

    #: Whether a transaction is accepted claim by claim, or all or nothing. Gang jobs: always the latter.
    transaction: Literal["incremental", "atomic"] = "incremental"
    #: Whether a conflict is lack of room; any change to the machine since the decision began, ends of
    #: tasks included; or any claim on it, even one that was rolled back, as in the published simulator.
    detection: Literal["fine", "coarse", "coarse-claims"] = "fine"
    #: How long any job that was not wholly placed waits, whatever kept it from that, instead of
    #: `backoff`; 1 s in the published simulator. 0: as `backoff` says.
    retry_after: Micros = Micros(0)
    #: Whether jobs may preempt tasks of lower precedence.
    preempt: bool = False
    #: After this many lost attempts, a job claims with growing precedence and preempts lower tasks, so
    #: that no job starves; 0: never. The scheduler's precedence limit is the upper bound.
    patience: Annotated[int, Meta(ge=0, le=1_000_000)] = 0
    #: How much the precedence grows with each further lost attempt.
    raise_by: Annotated[int, Meta(ge=1, le=65_535)] = 1
    #: Weight in dominant resource fairness between schedulers; 0: off. Schedulers with a weight keep
    #: within their share of the cell while others want what is left.
    weight: Annotated[float, Meta(ge=0, le=1e6)] = 0.0
    #: Number of regions that the machines are divided into. A scheduler searches its own region first,
    #: then the others in random order, which reduces conflicts. 1 searches the whole cell, as in the
    #: paper.
    regions: Annotated[int, Meta(ge=1, le=1_000)] = 1


class Omega(SerialScheduler):
    name: ClassVar[str] = "omega"
    summary: ClassVar[str] = "Shared state: decide on the whole cell, commit optimistically, retry."
    settings_type: ClassVar[type[Settings]] = OmegaSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, preemption=True, wishes=True
    )
    #: As in the published simulator of the paper.
    published: ClassVar[Mapping[str, PaperPreset]] = {
        "omega-simulator": PaperPreset(
            {"retry_after": 1_000_000, "backoff": 0},
            MachineModel(),
            split="round-robin",
            hop=Micros(0),
            is_compared=False,
        )
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, OmegaSettings)
        super().__init__(settings, context)
        self._settings = settings
        is_divided = bool(settings.spread) or settings.regions > 1
        self._searches_all = not is_divided and self._leaves_as_is(Omega, WHERE)
        is_varied = settings.patience or settings.weight or settings.preempt
        self._decides_plainly = (
            self._searches_all and not is_varied and self._leaves_as_is(Omega, HOW)
        )
        #: The terms of jobs that neither starve nor are gangs.
        self._usual_terms = CommitTerms(
            atomic=settings.transaction == "atomic",
            coarse=settings.detection != "fine",
            by_claims=settings.detection == "coarse-claims",
            preempt=settings.preempt,
        )
        self._fair = FairShare(context.name, settings.weight) if settings.weight else None
        #: The machines of each region searched so far; the number of machines they were computed for.
        self._regions: dict[int, Bitmap] = {}
        self._known = 0
        #: Number of tasks in the current decision.
        self._asked = 0
        self._now = 0
        #: The share at the start of the current decision.
        self._share: CurrentShare | None = None
        #: Whether a timer for the end of a rest is set; the jobs to which the rests since the last
        #: decision were explained.
        self._rests = False
        self._told: set[int] = set()
        #: Tasks that the share keeps out of the current decision; the job, and how many of its tasks,
        #: were last told so.
        self._held_back: tuple[PendingJob, TaskArray] | None = None
        self._told_held = (-1, 0)

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        fair = self._fair
        if fair is None:
            # Named, because `super()` would cost more than the call.
            return SerialScheduler.handle(self, event, view, now)
        self._now = now
        match event:
            case JobSubmitted(job, _, tasks) | TasksLost(job, _, tasks):
                fair.want(job, tasks, view)
            case Committed(token, outcome):
                if (claims := self._claims_of(token)) is None:
                    return ()
                fair.got(claims, outcome.accepted, view)
            case TimerFired("rest"):
                self._rests = False
                effects = self._begin(view) if self._deciding is None else ()
                return (*effects, *self._tell_wants(fair, now))
        return (*super().handle(event, view, now), *self._tell_wants(fair, now))

    def _tell_wants(self, fair: FairShare, now: int) -> Sequence[Effect]:
        if self._deciding is None and not self._queue and not self._waiting:
            fair.want_nothing()
        wants = fair.to_say(now)
        if wants is None:
            return ()
        return (Commit(_WANTS, Transaction(self._context.name, wants=wants)),)

    def _begin(self, view: View) -> Sequence[Effect]:
        if self._fair is None:
            return SerialScheduler._begin(self, view)
        if self._queue:
            self._share = self._fair.share(view, self._now)
            if self._share.is_reached:
                self._deciding = None
                return self._rest(self._share, view)
            self._told.clear()
        self._held_back = None
        effects = super()._begin(view)
        held = self._held_back
        if held is None or self._share is None:
            return effects
        work, tasks = held
        if self._told_held == (work.number, len(tasks)):
            return effects
        self._told_held = (work.number, len(tasks))
        return (*effects, self._explained(work, tasks, self._share, view))

    def _explained(
        self, work: PendingJob, tasks: TaskArray, share: CurrentShare, view: View
    ) -> Explain:
        """Tells tasks that the share holds them back."""
        request = next(work.job.tasks_by_group(tasks))[0].request
        remedy = "raise the scheduler's weight, or wait until others want less"
        return Explain(tasks, Explanation(refused=share.refusal(request, view), remedy=remedy))

    def _rest(self, share: CurrentShare, view: View) -> Sequence[Effect]:
        """At its share, the scheduler waits until others want less or one of its own tasks ends. All of
        its jobs wait for that."""
        if self._rests:
            return ()
        self._rests = True
        rest = self._settings.backoff or max(self._settings.t_job, SHORTEST_REST)
        effects: list[Effect] = [WakeMe(self._now + rest, "rest")]
        for work in self._queue:
            if work.number in self._told:
                continue
            self._told.add(work.number)
            effects.append(self._explained(work, work.tasks, share, view))
        return effects

    @classmethod
    def supports(cls, constraint: Constraint) -> bool:
        """Only that the tasks of a job are on different machines."""
        tag = apart_tag(constraint)
        return tag is not None and tag.startswith(APP)

    def apart(self, job: Job) -> str:
        own = app_tag(job.id)
        return own if any(apart_tag(each) in (SELF, own) for each in job.constraints) else ""

    def withdrawn(self, job: Job, tasks: TaskArray) -> None:
        if self._fair is not None:
            self._fair.forget(job, tasks)

    def pause(self, work: PendingJob, *, should_wait: bool) -> int:
        return self._settings.retry_after or super().pause(work, should_wait=should_wait)

    def _put_back(self, work: PendingJob, now: int, *, should_wait: bool) -> Sequence[Effect]:
        effects = super()._put_back(work, now, should_wait=should_wait)
        if self._fair is not None and any(isinstance(effect, Abandon) for effect in effects):
            self._fair.forget(work.job, work.tasks)
        return effects

    def part(self, work: PendingJob, view: View) -> TaskArray:
        """Tasks placed together may exceed the share together; otherwise they could never be placed."""
        part = work.tasks
        if self._share is not None and not self._terms.atomic:
            part = part[: self._share.first(work.job, part, view)]
            if len(part) < len(work.tasks):
                self._held_back = work, work.tasks[len(part) :]
        self._asked = len(part)
        return part

    def decision_time(self, work: PendingJob) -> int:
        return self._settings.t_job + self._settings.t_task * self._asked

    def terms(self, work: PendingJob) -> CommitTerms:
        """A starving job is checked for room only: other changes must not make it lose again."""
        is_starving = bool(self._settings.patience) and self._is_starving(work)
        if not is_starving and not work.job.gang:
            return self._usual_terms
        return CommitTerms(
            atomic=work.job.gang or self._settings.transaction == "atomic",
            coarse=self._settings.detection != "fine" and not is_starving,
            by_claims=self._settings.detection == "coarse-claims",
            preempt=self._settings.preempt or is_starving,
        )

    def _is_starving(self, work: PendingJob) -> bool:
        return 0 < self._settings.patience <= work.lost

    def precedence(self, work: PendingJob, view: View) -> int:
        own = work.job.precedence
        if not self._settings.patience or not self._is_starving(work):
            return own
        raised = own + self._settings.raise_by * (1 + work.lost - self._settings.patience)
        return max(own, min(raised, view.highest_precedence(self._context.name)))

    def preferred(self, work: PendingJob, count: int, view: View) -> Iterable[tuple[Bitmap, int]]:
        first = super().preferred(work, count, view)
        if self._settings.regions == 1:
            return first
        regions = ((self._region(number, view), count) for number in self._regions_in_turn())
        return chain(first, regions)

    def _regions_in_turn(self) -> Iterable[int]:
        """Its own region first (replicas have regions far apart, other schedulers depend on their
        names), then the rest at random."""
        others = list(range(self._settings.regions))
        replicas = sorted((self._context.name, *self._context.peers))
        apart = max(1, len(others) // len(replicas)) * replicas.index(self._context.name)
        yield others.pop((zlib.crc32(replicas[0].encode()) + apart) % len(others))
        while others:
            yield others.pop(self._context.random.below(len(others)))

    def _region(self, number: int, view: View) -> Bitmap:
        if self._known != view.machines:
            self._known = view.machines
            self._regions.clear()
        if (found := self._regions.get(number)) is None:
            count = self._settings.regions
            first, last = (view.machines * edge // count for edge in (number, number + 1))
            found = self._regions[number] = view.between(first, last)
        return found
