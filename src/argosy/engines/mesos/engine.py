from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Annotated, ClassVar, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from argosy.cell import Draft, View
from argosy.engines.api import Capabilities, Context, PaperPreset, Settings
from argosy.engines.mesos.framework import Framework, FrameworkSettings, HoardedJob
from argosy.engines.shared.failure_domains import over_domains
from argosy.engines.shared.gangs import waits_for_gang
from argosy.engines.shared.serial import RULES
from argosy.engines.shared.wished import wished_tiers
from argosy.engines.shared.withdrawal import added, failed, left
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
from argosy.model.machine_model import MachineModel
from argosy.model.machines import GroupNames
from argosy.model.transactions import Claims, MachineArray, Outcome, Transaction
from argosy.model.units import Micros

_LIMITS: Final = frozenset(map(int, LIMITS))
_NONE: Final[MachineArray] = np.empty(0, np.int32)


class MesosSettings(Settings, frozen=True):
    """How the allocator offers and the frameworks decide."""

    #: Decision time is t_job + t_task x tasks, unless a framework has its own.
    t_job: Micros = Micros(100_000)
    t_task: Micros = Micros(5_000)
    #: Settings of single frameworks. Each kind of job is a framework.
    frameworks: dict[str, FrameworkSettings] = msgspec.field(default_factory=dict)
    #: How long the allocator takes to make an offer.
    t_offer: Micros = Micros(1_000)
    #: Whether an offer contains all that is free, or at most what the framework lacks of an equal share
    #: of all that frameworks hold or could have.
    offers: Literal["all", "fair-share"] = "all"
    #: Whether a framework uses an offer for its next job, or keeps it and goes through its whole queue,
    #: as in the Omega paper's published simulator.
    uses: Literal["job", "queue"] = "job"
    #: How long a machine that a framework declined is not offered to it again; 5 s as in Mesos. 0 offers
    #: it at once, as in the Omega paper's model: one job that fits nowhere can then keep all other
    #: frameworks from any offer.
    refuse: Micros = Micros(5_000_000)
    placement: Literal["first-fit", "best-fit", "worst-fit"] = "first-fit"
    #: A node group, such as racks, or several: a job's tasks are spread over their sets first; empty:
    #: none.
    spread: GroupNames = ""
    #: How long the allocator waits when nothing is available.
    t_idle: Annotated[Micros, Meta(ge=1_000)] = Micros(1_000_000)
    #: Whether a partly placed job goes behind all others of its framework, or is tried again before
    #: them. The Omega paper says only that the framework keeps trying.
    retry: Literal["last", "first"] = "last"
    #: How long a job that was not wholly placed waits before it is queued again.
    rest: Micros = Micros(0)
    #: A job is abandoned after this many attempts.
    attempts: Annotated[int, Meta(ge=1, le=1_000_000)] = 1_000
    #: A job of which no task was ever placed is abandoned after this many; 0: after `attempts`.
    attempts_in_vain: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class Mesos:
    name: ClassVar[str] = "mesos"
    summary: ClassVar[str] = "Two-level: all free resources are offered to one framework at a time."
    settings_type: ClassVar[type[Settings]] = MesosSettings
    capabilities: ClassVar[Capabilities] = Capabilities(
        transactions=True, gang=True, wishes=True, alone=True
    )
    #: As in the published simulator of the Omega paper.
    published: ClassVar[Mapping[str, PaperPreset]] = {
        "mesos-simulator": PaperPreset(
            {"refuse": 0, "uses": "queue", "rest": 1_000_000, "attempts_in_vain": 100},
            MachineModel(),
        )
    }

    def __init__(self, settings: Settings, context: Context) -> None:
        assert isinstance(settings, MesosSettings)
        self._settings = settings
        self._context = context
        self._rule = RULES[settings.placement]
        #: Frameworks by kind of job, in order of first appearance.
        self._frameworks: dict[str, Framework] = {}
        #: Whether the allocator is making an offer.
        self._is_offering = False
        #: Current decisions by token, until they end or the cell has answered.
        self._decisions: dict[int, Framework] = {}
        self._token = 0

    def handle(self, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(job, number, tasks) | TasksLost(job, number, tasks):
                self._framework(job.kind).submit(HoardedJob(job, number, tasks))
                return self._next_offer(now)
            case TimerFired("offer"):
                self._is_offering = False
                return self._offer(view, now)
            case TimerFired("rest"):
                for framework in self._frameworks.values():
                    framework.end_rests(now)
                return self._next_offer(now)
            case DecisionDue(token) if token in self._decisions:
                return self._decided(token, view, now)
            case Committed(token, outcome):
                return self._committed(self._decisions.pop(token), outcome, view, now)
            case JobCancelled() | JobChanged():
                for framework in self._frameworks.values():
                    framework.withdraw(event)
                more = added(event)
                return () if more is None else self.handle(more, view, now)
            case TaskFailed():
                return self.handle(failed(event, view), view, now)
        return ()

    def _framework(self, kind: str) -> Framework:
        if kind not in self._frameworks:
            usual = FrameworkSettings(self._settings.t_job, self._settings.t_task)
            own = self._settings.frameworks.get(kind, usual)
            self._frameworks[kind] = Framework(
                kind, own, self._settings.refuse, failed_first=self._settings.retry == "first"
            )
        return self._frameworks[kind]

    def _name(self, framework: Framework) -> str:
        return f"{self._context.name}:{framework.kind}"

    def _next_offer(self, now: int) -> Sequence[Effect]:
        """Starts an offer if the allocator is idle and some framework wants one."""
        if self._is_offering or not any(f.wants_offers for f in self._frameworks.values()):
            return ()
        self._is_offering = True
        return (WakeMe(now + self._settings.t_offer, "offer"),)

    def _offer(self, view: View, now: int) -> Sequence[Effect]:
        """Offers everything free and not set aside to the neediest framework whose filters accept some
        of it."""
        wanting = [f for f in self._frameworks.values() if f.wants_offers]
        wanting.sort(key=lambda f: self._dominant_share(f, view))
        available = self._available(view)
        effects: list[Effect] = []
        for framework in wanting:
            offer = framework.acceptable(available, view, now)
            has_its_share = False
            if self._settings.offers == "fair-share":
                part = self._fair_part(framework, offer, view)
                has_its_share = bool(offer.any() and not part.any())
                offer = part
            if offer.any():
                return (
                    *effects,
                    *self._use_offer(framework, offer, view, now),
                    *self._next_offer(now),
                )
            effects.extend(framework.unoffered(available, view, now, has_its_share=has_its_share))
        if not wanting:
            return ()
        self._is_offering = True
        return (*effects, WakeMe(now + self._settings.t_idle, "offer"))

    def _use_offer(
        self, framework: Framework, offer: NDArray[np.int64], view: View, now: int
    ) -> Sequence[Effect]:
        """The framework decides on its next job."""
        framework.offer = offer
        work = framework.deciding = framework.queue.popleft()
        work.attempts += 1
        self._choose(framework, work, offer, view)
        self._token += 1
        self._decisions[self._token] = framework
        duration = framework.settings.of(len(work.tasks))
        return (Think(duration, self._token, work.number, framework.kind),)

    def _available(self, view: View) -> NDArray[np.int64]:
        """Free resources minus those offered or hoarded; at least 0, even if a machine was lost."""
        available = view.free()
        for framework in self._frameworks.values():
            works = [*framework.queue, *framework.resting, *filter(None, [framework.deciding])]
            for held in (framework.offer, *(work.held for work in works)):
                if held is not None:
                    # Machines and resources may have come since.
                    machines, dimensions = held.shape
                    available[:machines, :dimensions] -= held
        return np.maximum(available, 0)

    def _dominant_share(self, framework: Framework, view: View) -> float:
        """The largest share of any resource that the framework's tasks hold."""
        held, there = view.held_by(self._name(framework)), view.capacity_total()
        return max((held[name] / amount for name, amount in there.items() if amount), default=0.0)

    def _fair_part(
        self, framework: Framework, available: NDArray[np.int64], view: View
    ) -> NDArray[np.int64]:
        """Whole machines, starting at a random one, up to what the framework lacks of an equal share.
        What frameworks share is what they hold and what is free; others may hold the rest of the
        cell."""
        held = {
            each.kind: np.array([*view.held_by(self._name(each)).values()], np.int64)
            for each in self._frameworks.values()
        }
        shared = view.free().sum(axis=0) + sum(held.values())
        fair = shared // len(self._frameworks) - held[framework.kind]
        start = self._context.random.below(max(1, len(available)))
        order = np.roll(np.arange(len(available)), -start)
        within = (np.cumsum(available[order], axis=0) <= fair).all(axis=1)
        part = np.zeros_like(available)
        part[order[within]] = available[order[within]]
        return part

    def _choose(
        self, framework: Framework, work: HoardedJob, offer: NDArray[np.int64], view: View
    ) -> None:
        draft = Draft(view, offer - view.free())
        framework.explains = []
        framework.explanation = None
        for group, tasks in work.job.tasks_by_group(work.tasks):
            shape = view.shape(group.request, group.tags, work.job.precedence)
            random, spread = self._context.random, self._settings.spread
            found, short = draft.place(
                tasks,
                shape,
                self._rule,
                random,
                requires=group.requires,
                prefer=chain(
                    wished_tiers(group.wishes, group.requires, len(tasks), view),
                    over_domains(spread, len(tasks), view, random),
                ),
            )
            if len(work.job.groups) == 1 and self._context.keeps_explanations:
                framework.explanation = found.explanation()
            if len(short):
                framework.explains.append(Explain(short, found.explanation()))
        framework.unplaced = draft.unplaced()
        framework.claims = draft.claims() if draft.count else None

    def _decided(self, token: int, view: View, now: int) -> Sequence[Effect]:
        framework = self._decisions.pop(token)
        work = framework.deciding
        assert work is not None
        if work.job.gang and framework.claims is not None:
            work.hoard.append(framework.claims)
            if len(framework.unplaced):
                work.tasks = framework.unplaced
                work.held = _held(work.hoard, view)
                framework.explains.append(_explain_hoard(work))
                left = self._left([framework.claims], framework, view)
                return self._conclude(framework, view, now, framework.claims.machines, left)
            framework.claims = Claims.joined(work.hoard)
        if framework.claims is None:
            return self._conclude(framework, view, now, _NONE, framework.offer)
        self._decisions[token] = framework
        framework.is_committing = True
        transaction = Transaction(self._name(framework), framework.claims, atomic=work.job.gang)
        return (Commit(token, transaction, framework.explanation),)

    def _left(
        self, used: list[Claims], framework: Framework, view: View
    ) -> NDArray[np.int64] | None:
        """What is left of the framework's offer, if it goes on with it."""
        if framework.offer is None or self._settings.uses == "job":
            return None
        rest: NDArray[np.int64] = np.maximum(framework.offer - _held(used, view), 0)
        return rest

    def _committed(
        self, framework: Framework, outcome: Outcome, view: View, now: int
    ) -> Sequence[Effect]:
        work, claims, accepted = framework.deciding, framework.claims, outcome.accepted
        assert work is not None
        assert claims is not None
        work.tasks = np.sort(np.concatenate([framework.unplaced, claims.tasks[~accepted]]))
        work.hoard.clear()
        work.held = None
        framework.is_committing = False
        for event in framework.withdrawals:
            work.job, work.tasks = event.job, left(work.tasks, event)
        framework.withdrawals.clear()
        is_limited = not _LIMITS.isdisjoint(outcome.whys.tolist())
        used = claims.machines[accepted]
        work.is_begun |= bool(len(used))
        left_over = self._left([claims], framework, view)
        return self._conclude(framework, view, now, used, left_over, is_limited=is_limited)

    def _conclude(
        self,
        framework: Framework,
        view: View,
        now: int,
        used: MachineArray,
        left_over: NDArray[np.int64] | None,
        *,
        is_limited: bool = False,
    ) -> Sequence[Effect]:
        """What was offered and not used goes back to the allocator, unless the framework goes on with
        it."""
        work = framework.deciding
        assert work is not None
        framework.decline(now, used, is_limited=is_limited)
        framework.deciding = framework.offer = framework.claims = None
        effects: list[Effect] = list(framework.explains)
        if len(work.tasks):
            if work.attempts >= self._most_attempts(work):
                effects.append(_give_up(work))
            elif self._settings.rest:
                effects.append(framework.let_rest(work, now + self._settings.rest))
            else:
                effects.extend(framework.put_back(work))
        goes_on = self._settings.uses == "queue" and bool(framework.queue)
        if goes_on and left_over is not None and left_over.any():
            effects.extend(self._use_offer(framework, left_over, view, now))
        effects.extend(self._next_offer(now))
        return effects

    def _most_attempts(self, work: HoardedJob) -> int:
        in_vain = self._settings.attempts_in_vain
        return in_vain if in_vain and not work.is_begun else self._settings.attempts


def _give_up(work: HoardedJob) -> Abandon:
    tasks = np.concatenate([work.tasks, *(claims.tasks for claims in work.hoard)])
    return Abandon(tasks, Explanation(refused=Refusal(Why.ATTEMPTS, lacking=work.attempts)))


def _explain_hoard(work: HoardedJob) -> Explain:
    """Why tasks wait although the machines that they are to get are held for them."""
    hoarded = np.sort(np.concatenate([claims.tasks for claims in work.hoard]))
    count = len(hoarded)
    return Explain(hoarded, waits_for_gang(count + len(work.tasks), count))


def _held(hoard: list[Claims], view: View) -> NDArray[np.int64]:
    held = np.zeros((view.machines, len(view.dimensions)), np.int64)
    for claims in hoard:
        requests = [view.shape_request(shape) for shape in claims.shapes.tolist()]
        np.add.at(held, claims.machines, np.array(requests, np.int64))
    return held
