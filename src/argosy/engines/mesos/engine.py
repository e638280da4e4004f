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
from argosy.engines.mesos.answers import AnswerPart, ChosenMachines, OfferAnswer, TaskLikeness
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
from argosy.model.transactions import Claims, MachineArray, Outcome, TaskArray, Transaction
from argosy.model.units import Micros

_LIMITS: Final = frozenset(map(int, LIMITS))
_NONE: Final[MachineArray] = np.empty(0, np.int32)
_NO_TASKS: Final[TaskArray] = np.empty(0, np.int64)
#: The token of decisions that end with another one.
_NO_TOKEN: Final = 0


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
    #: Whether a framework uses an offer for its next job; keeps it and goes through its whole queue, one
    #: job after another; or decides on all queued jobs at once, answers after the sum of their decision
    #: times, and takes further offers meanwhile, as in the Omega paper's published simulator.
    uses: Literal["job", "queue", "queue-at-once"] = "job"
    #: How long the allocator gathers what becomes free before it makes an offer.
    gather: Micros = Micros(0)
    #: No offer is made while fewer cores than this are available on all machines together; of a small
    #: cell, a hundredth of its cores is enough.
    least_cores: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0
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
            {
                "refuse": 0,
                "uses": "queue-at-once",
                "gather": 1_000_000,
                "least_cores": 100,
                "rest": 1_000_000,
                "attempts_in_vain": 100,
            },
            MachineModel(),
            hop=Micros(0),
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
        #: Decisions on whole queues: by token until they end, and the parts that the cell has not
        #: answered yet.
        self._answers: dict[int, OfferAnswer] = {}
        self._parts: dict[int, tuple[OfferAnswer, AnswerPart]] = {}
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
            case DecisionDue(token) if token in self._answers:
                return self._answer(token, now)
            case Committed(token, outcome) if token in self._parts:
                return self._part_committed(*self._parts.pop(token), outcome, now)
            case Committed(token, outcome):
                return self._committed(self._decisions.pop(token), outcome, view, now)
            case JobCancelled() | JobChanged():
                for framework in self._frameworks.values():
                    framework.withdraw(event)
                for answer in self._open_answers():
                    answer.withdraw(event)
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
        return (WakeMe(now + self._settings.gather + self._settings.t_offer, "offer"),)

    def _offer(self, view: View, now: int) -> Sequence[Effect]:
        """Offers everything free and not set aside to the neediest framework whose filters accept some
        of it."""
        wanting = [f for f in self._frameworks.values() if f.wants_offers]
        wanting.sort(key=lambda f: self._dominant_share(f, view))
        available = self._available(view)
        if self._is_too_little(available, view):
            available = np.zeros_like(available)
        effects: list[Effect] = []
        for framework in wanting:
            offer = framework.acceptable(available, view, now)
            has_its_share = False
            if self._settings.offers == "fair-share":
                part = self._fair_part(framework, offer, view)
                has_its_share = not part.any()
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
        """The framework decides on its next job, or on all."""
        if self._settings.uses == "queue-at-once":
            return self._use_for_all(framework, offer, view, now)
        framework.offer = offer
        work = framework.deciding = framework.queue.popleft()
        work.attempts += 1
        chosen = self._choose(work, offer, view)
        framework.claims, framework.unplaced = chosen.claims, chosen.unplaced
        framework.explains, framework.explanation = chosen.explains, chosen.explanation
        self._token += 1
        self._decisions[self._token] = framework
        duration = framework.settings.of(len(work.tasks))
        return (Think(duration, self._token, work.number, framework.kind),)

    def _use_for_all(
        self, framework: Framework, offer: NDArray[np.int64], view: View, now: int
    ) -> Sequence[Effect]:
        """The framework decides on its jobs in turn until the offer is used up. What remains of a job
        rests from now on, not from the answer. A gang takes part of one offer, or nothing."""
        rest, numbers, duration = offer, [], 0
        answer = OfferAnswer(framework, offer)
        effects: list[Effect] = []
        again: list[HoardedJob] = []
        #: Tasks that found no machine: what is left of the offer has none for others like them.
        full: dict[TaskLikeness, Explanation] = {}
        while framework.queue and rest.any():
            work = framework.queue.popleft()
            work.attempts += 1
            numbers.append(work.number)
            duration += framework.settings.of(len(work.tasks))
            # A gang that is too large leaves room for others.
            chosen = self._choose(work, rest, view, dict(full) if work.job.gang else full)
            if work.attempts == 1 or chosen.claims is not None:
                effects.extend(chosen.explains)
            if chosen.claims is not None and not (work.job.gang and len(chosen.unplaced)):
                answer.add(work, chosen.claims, chosen.explanation)
                rest = np.maximum(rest - _held([chosen.claims], view), 0)
                work.tasks = chosen.unplaced
                work.is_begun = True
            if not len(work.tasks):
                continue
            if work.attempts >= self._most_attempts(work):
                effects.append(_give_up(work))
            else:
                again.append(work)
        framework.decline(offer, answer.machines(), now, is_short=bool(full))
        if self._settings.rest:
            effects.extend(framework.let_rest(again, now + self._settings.rest))
        else:
            for work in again:
                effects.extend(framework.put_back(work))
        self._token += 1
        self._answers[self._token] = answer
        # The first job carries the decision time of all.
        first, *others = numbers
        return [
            Think(duration, self._token, first, framework.kind),
            *(Think(0, _NO_TOKEN, number, framework.kind) for number in others),
            *effects,
        ]

    def _answer(self, token: int, now: int) -> Sequence[Effect]:
        """The framework claims what it chose, a transaction for each job; the rest of the offer goes
        back when all are answered."""
        answer = self._answers.pop(token)
        effects: list[Effect] = []
        for part in answer.parts:
            if part.claims is None:
                continue
            part.is_committing = True
            self._token += 1
            self._parts[self._token] = answer, part
            name = self._name(answer.framework)
            transaction = Transaction(name, part.claims, atomic=part.job.gang)
            effects.append(Commit(self._token, transaction, part.explanation))
        return effects or self._next_offer(now)

    def _part_committed(
        self, answer: OfferAnswer, part: AnswerPart, outcome: Outcome, now: int
    ) -> Sequence[Effect]:
        """Refused claims, of machines that are gone or beyond a limit, are tried again."""
        refused = part.refused(outcome)
        if len(refused):
            answer.framework.submit(part.work_left(refused))
        return self._next_offer(now)

    def _available(self, view: View) -> NDArray[np.int64]:
        """Free resources minus those offered or hoarded; at least 0, even if a machine was lost."""
        available = view.free()
        for framework in self._frameworks.values():
            works = [*framework.queue, *framework.resting, *filter(None, [framework.deciding])]
            for held in (framework.offer, *(work.held for work in works)):
                _take(available, held)
        for answer in self._open_answers():
            _take(available, answer.offer)
        return np.maximum(available, 0)

    def _is_too_little(self, available: NDArray[np.int64], view: View) -> bool:
        if not self._settings.least_cores:
            return False
        cpu = int(available[:, view.dimensions.index("cpu")].sum())
        return cpu < min(1_000 * self._settings.least_cores, view.capacity_total()["cpu"] // 100)

    def _open_answers(self) -> list[OfferAnswer]:
        """Those on their way to the allocator or to the cell."""
        return [
            *self._answers.values(),
            *dict.fromkeys(answer for answer, _ in self._parts.values()),
        ]

    def _charged(self, framework: Framework, view: View) -> NDArray[np.int64]:
        """What a framework's tasks hold, and what it has not answered for yet."""
        held = np.array([*view.held_by(self._name(framework)).values()], np.int64)
        for answer in self._open_answers():
            if answer.framework is framework:
                offered = answer.offer.sum(axis=0)
                held[: len(offered)] += offered
        return held

    def _dominant_share(self, framework: Framework, view: View) -> float:
        """The largest share of any resource that the framework holds."""
        held, there = self._charged(framework, view).tolist(), view.capacity_total().values()
        return max(
            (mine / all_ for mine, all_ in zip(held, there, strict=True) if all_), default=0.0
        )

    def _fair_part(
        self, framework: Framework, available: NDArray[np.int64], view: View
    ) -> NDArray[np.int64]:
        """Whole machines, starting at a random one, up to what the framework lacks of an equal share.
        What frameworks share is what they hold and what is free; others may hold the rest of the
        cell."""
        held = {each.kind: self._charged(each, view) for each in self._frameworks.values()}
        shared = view.free().sum(axis=0) + sum(held.values())
        fair = shared // len(self._frameworks) - held[framework.kind]
        start = self._context.random.below(max(1, len(available)))
        order = np.roll(np.arange(len(available)), -start)
        within = (np.cumsum(available[order], axis=0) <= fair).all(axis=1)
        part = np.zeros_like(available)
        part[order[within]] = available[order[within]]
        return part

    def _choose(
        self,
        work: HoardedJob,
        offer: NDArray[np.int64],
        view: View,
        full: dict[TaskLikeness, Explanation] | None = None,
    ) -> ChosenMachines:
        """Machines from the offer. Tasks like those in `full` have none, as is known; more are added."""
        draft: Draft | None = None
        explains: list[Explain] = []
        explanation = None
        known = {} if full is None else full
        unplaced = [_NO_TASKS]
        for group, tasks in work.job.tasks_by_group(work.tasks):
            shape = view.shape(group.request, group.tags, work.job.precedence)
            likeness = shape, tuple(group.requires.items())
            if likeness in known:
                explains.append(Explain(tasks, known[likeness]))
                unplaced.append(tasks)
                continue
            draft = draft or Draft(view, offer - view.free())
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
                explanation = found.explanation()
            if len(short):
                explains.append(Explain(short, found.explanation()))
                if full is not None:
                    full[likeness] = explains[-1].explanation
        if draft is not None:
            unplaced.append(draft.unplaced())
        claims = draft.claims() if draft is not None and draft.count else None
        return ChosenMachines(claims, np.concatenate(unplaced), explains, explanation)

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
        is_short = is_limited or bool(len(framework.unplaced))
        framework.decline(framework.offer, used, now, is_short=is_short)
        framework.deciding = framework.offer = framework.claims = None
        effects: list[Effect] = list(framework.explains)
        if len(work.tasks):
            if work.attempts >= self._most_attempts(work):
                effects.append(_give_up(work))
            elif self._settings.rest:
                effects.extend(framework.let_rest([work], now + self._settings.rest))
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


def _take(available: NDArray[np.int64], held: NDArray[np.int64] | None) -> None:
    """Subtracts what is held. Machines and resources may have come since."""
    if held is not None:
        machines, dimensions = held.shape
        available[:machines, :dimensions] -= held


def _held(hoard: list[Claims], view: View) -> NDArray[np.int64]:
    held = np.zeros((view.machines, len(view.dimensions)), np.int64)
    for claims in hoard:
        requests = [view.shape_request(shape) for shape in claims.shapes.tolist()]
        np.add.at(held, claims.machines, np.array(requests, np.int64))
    return held
