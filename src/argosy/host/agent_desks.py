"""The agents of clusters at work: requests that use their pipelines, and how long these take.

An agent handles several requests at once; further ones wait in order of arrival. A sample reads the
cache when its turn comes. A commit reserves its room on arrival, then waits for its turn, then for the
lock of its machine, and is judged by the machine as it is then. Nothing that samples waits for a commit.
On every way out, reservation and lock are given back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from msgspec import structs

from argosy.agents.api import Requirements
from argosy.agents.cache import CellFacts, NodesCache, Reservation
from argosy.agents.committing import ConflictCheck, refused
from argosy.agents.sampling import NOTHING_DRAWN, DrawnSample, Sampler
from argosy.host.protocols import agent_of
from argosy.host.scheduler import Scheduler
from argosy.model.effects import Commit, CommitPipeline, Sample, SamplingPipeline
from argosy.model.events import Committed, SampleReturned
from argosy.model.explanations import CONFLICTS, Refusal, Why
from argosy.model.jobs import index_of, job_of
from argosy.model.machines import Cluster
from argosy.model.random import Random
from argosy.model.scenario import (
    BOTH_WAYS,
    AgentDown,
    AgentFault,
    AgentModel,
    AgentSlow,
    AgentStale,
    Places,
)
from argosy.model.transactions import Claims, Outcome, Transaction

if TYPE_CHECKING:
    from argosy.host.effect_runner import EffectRunner
    from argosy.host.host import Host

_CONFLICTS: Final = frozenset(map(int, CONFLICTS))
_FOREVER: Final = 2**62
DueAction: TypeAlias = Callable[[int], None]


class Turns:
    """At most `size` requests at once (0: any number); the others wait in order."""

    def __init__(self, size: int, later: Callable[[int, DueAction], None]) -> None:
        self._free = size or _FOREVER
        self._later = later
        self._waiting: deque[DueAction] = deque()

    def enter(self, start: DueAction, now: int) -> None:
        if self._free:
            self._free -= 1
            start(now)
        else:
            self._waiting.append(start)

    def leave(self, now: int) -> None:
        if self._waiting:
            # As an event of its own: a long line must not become a deep call.
            self._later(now, self._waiting.popleft())
        else:
            self._free += 1


class AgentHealth:
    """When an agent is down, slow or cut off from its machines."""

    def __init__(self, faults: list[AgentFault]) -> None:
        self._faults = [
            (fault.at, _FOREVER if fault.lasts is None else fault.at + fault.lasts, fault)
            for fault in faults
        ]

    def is_down(self, since: int, now: int) -> bool:
        """Whether it was down at some time from `since` to `now`."""
        return any(
            isinstance(fault, AgentDown) and at <= now and since < end
            for at, end, fault in self._faults
        )

    def extra(self, now: int) -> int:
        return sum(
            fault.extra
            for at, end, fault in self._faults
            if isinstance(fault, AgentSlow) and at <= now < end
        )

    def is_cut_off(self, now: int) -> bool:
        return any(
            isinstance(fault, AgentStale) and at <= now < end for at, end, fault in self._faults
        )


class CommitRequest:
    """A commit under way: the candidates that are left, and what it holds."""

    def __init__(self, scheduler: Scheduler, effect: Commit, number: int) -> None:
        claims, pipeline = effect.transaction.claims, effect.pipeline
        assert claims is not None
        assert pipeline is not None
        self.scheduler = scheduler
        self.epoch = scheduler.epoch
        self.effect = effect
        self.claims: Claims = claims
        self.pipeline: CommitPipeline = pipeline
        self.number = number
        #: Best first.
        self.candidates = deque(claims.machines.tolist())
        if claims.alternatives is not None:
            self.candidates.extend(m for m in claims.alternatives[0].tolist() if m >= 0)
        self.reservation: Reservation | None = None
        self.began = 0

    @property
    def is_wanted(self) -> bool:
        """Whether the scheduler has not crashed since."""
        return self.scheduler.epoch == self.epoch

    def transaction_for(self, machine: int) -> Transaction:
        claims = structs.replace(
            self.claims, machines=np.array([machine], np.int32), alternatives=None
        )
        return structs.replace(self.effect.transaction, claims=claims)


class AgentDesk:
    """The agent of one cluster."""

    def __init__(
        self,
        effects: EffectRunner,
        host: Host,
        cluster: Cluster,
        facts: CellFacts,
        random: Random,
    ) -> None:
        model = host.setup.agents or AgentModel()
        faults = [f for f in host.setup.agent_faults if f.cluster == cluster.name]
        self._effects = effects
        self._host = host
        self._cluster = cluster.name
        self._model = model
        self._health = AgentHealth(faults)
        self.cache = NodesCache(
            cluster, host.view, facts, model.refresh, lambda: host.membership.changes
        )
        self._sampler = Sampler(self.cache, host.view, random)
        self._check = ConflictCheck(self.cache)
        self._sampling = Turns(model.samplers, host.later)
        self._committing = Turns(model.committers, host.later)
        #: Commits that wait for a machine, by machine; it is locked while it is a key.
        self._locks: dict[int, deque[CommitRequest]] = {}
        self._arrivals = 0

    def sample(self, scheduler: Scheduler, effect: Sample, now: int) -> None:
        if self._health.is_down(now, now):
            self._answer_sample(scheduler, scheduler.epoch, effect, None, now)
            return
        self._sampling.enter(partial(self._draw, scheduler, scheduler.epoch, effect), now)

    def _draw(self, scheduler: Scheduler, epoch: int, effect: Sample, now: int) -> None:
        pipeline, model = effect.pipeline, self._model
        assert pipeline is not None
        drawn = self._sampler.sample(
            effect,
            pipeline,
            now,
            most=_most(pipeline, model),
            is_cut_off=self._health.is_cut_off(now),
        )
        took = model.t_sample + model.t_machine * drawn.drawn + self._health.extra(now)
        self._after(took, partial(self._drew, scheduler, epoch, effect, drawn, now), now)

    def _drew(
        self,
        scheduler: Scheduler,
        epoch: int,
        effect: Sample,
        drawn: DrawnSample,
        began: int,
        now: int,
    ) -> None:
        is_lost = self._health.is_down(began, now)
        self._answer_sample(scheduler, epoch, effect, None if is_lost else drawn, now)
        self._sampling.leave(now)

    def _answer_sample(
        self,
        scheduler: Scheduler,
        epoch: int,
        effect: Sample,
        drawn: DrawnSample | None,
        now: int,
    ) -> None:
        if scheduler.epoch != epoch:
            return
        if drawn is None:
            drawn, reached = NOTHING_DRAWN, False
        else:
            reached = True
        event = SampleReturned(
            effect.token,
            drawn.machines,
            drawn.free,
            drawn.versions,
            effect.cluster,
            drawn.scores,
            drawn.drawn,
            drawn.ruled_out,
            reached=reached,
        )
        links = self._host.links
        delay = links.reliable_delay(agent_of(self._cluster), scheduler.name, now)
        self._host.post(now + delay, scheduler, event)

    def commit(self, scheduler: Scheduler, effect: Commit, now: int) -> None:
        self._arrivals += 1
        request = CommitRequest(scheduler, effect, self._arrivals)
        if self._health.is_down(now, now):
            self._give_up(request, now)
            return
        self._reserve(request)
        request.began = now
        self._committing.enter(partial(self._lock, request), now)

    def _reserve(self, request: CommitRequest) -> None:
        machine = request.candidates.popleft()
        shape = int(request.claims.shapes[0])
        amounts = np.array(self._host.view.shape_request(shape), np.int64)
        request.reservation = self.cache.reserve(request.number, machine, amounts)

    def _lock(self, request: CommitRequest, now: int) -> None:
        assert request.reservation is not None
        machine = request.reservation.machine
        waiting = self._locks.get(machine)
        if waiting is not None:
            waiting.append(request)
            return
        self._locks[machine] = deque()
        self._fetch(request, now)

    def _fetch(self, request: CommitRequest, now: int) -> None:
        took = self._model.t_fetch + self._health.extra(now)
        self._after(took, partial(self._judge, request), now)

    def _judge(self, request: CommitRequest, now: int) -> None:
        own = request.reservation
        assert own is not None
        is_lost = self._health.is_down(request.began, now)
        if is_lost or not request.is_wanted:
            self._release(request, now)
            if is_lost:
                self._give_up(request, now)
            self._committing.leave(now)
            return
        transaction = request.transaction_for(own.machine)
        refusal = self._check.conflict(self._requirements(request), own, request.pipeline)
        if refusal is None:
            bound = self._check.bound(transaction, request.pipeline)
            outcome = self._effects.judge(request.scheduler, bound)
        else:
            outcome = refused(refusal, self._host.view.dimensions)
        if outcome.all_accepted:
            self.cache.commit(own)
            self._effects.conclude(request.scheduler, request.effect, transaction, outcome, now)
            self._after(self._model.t_bind, partial(self._done, request, outcome), now)
            return
        self._release(request, now)
        if request.candidates and int(outcome.whys[0]) in _CONFLICTS:
            self._reserve(request)
            self._lock(request, now)
            return
        self._effects.conclude(request.scheduler, request.effect, transaction, outcome, now)
        self._answer_commit(request, outcome, now)
        self._committing.leave(now)

    def _requirements(self, request: CommitRequest) -> Requirements:
        task = int(request.claims.tasks[0])
        job = self._host.jobs.job(job_of(task))
        starts, index = job.group_starts(), index_of(task)
        at = max(i for i, start in enumerate(starts) if start <= index)
        group = job.groups[at]
        return Requirements(group.request, group.requires, group.demands)

    def _done(self, request: CommitRequest, outcome: Outcome, now: int) -> None:
        own = request.reservation
        assert own is not None
        self._unlock(own.machine, now)
        self._answer_commit(request, outcome, now)
        self._committing.leave(now)

    def _release(self, request: CommitRequest, now: int) -> None:
        own = request.reservation
        assert own is not None
        self.cache.unreserve(own)
        request.reservation = None
        self._unlock(own.machine, now)

    def _unlock(self, machine: int, now: int) -> None:
        waiting = self._locks[machine]
        if waiting:
            self._host.later(now, partial(self._fetch, waiting.popleft()))
        else:
            del self._locks[machine]

    def _give_up(self, request: CommitRequest, now: int) -> None:
        """Nothing is committed, because the agent is down."""
        machine = int(request.claims.machines[0])
        gone = Refusal(Why.MACHINE_GONE, machine=machine)
        outcome = refused(gone, self._host.view.dimensions)
        self._answer_commit(request, outcome, now, reached=False)

    def _answer_commit(
        self, request: CommitRequest, outcome: Outcome, now: int, *, reached: bool = True
    ) -> None:
        if not request.is_wanted:
            return
        links, scheduler = self._host.links, request.scheduler
        delay = links.reliable_delay(agent_of(self._cluster), scheduler.name, now)
        answer = Committed(request.effect.token, outcome, reached)
        self._host.post(now + delay, scheduler, answer)

    def _after(self, took: int, action: DueAction, now: int) -> None:
        """Calls `action` when that time has passed, whatever becomes of the scheduler."""
        if took:
            self._host.later(now + took, action)
        else:
            action(now)


def _most(pipeline: SamplingPipeline, model: AgentModel) -> int:
    """How many machines can be drawn before the pipeline's time is up; 0: any number."""
    if not pipeline.limit or not model.t_machine:
        return 0
    return max(1, pipeline.limit // model.t_machine)


def _delay(places: Places | None, one: str, other: str) -> int | None:
    if places is None or not one:
        return None
    if one == other:
        return places.within
    pairs = (f"{one}{BOTH_WAYS}{other}", f"{other}{BOTH_WAYS}{one}")
    known = (places.delays[pair] for pair in pairs if pair in places.delays)
    return next(known, places.default)


class AgentDesks:
    """All agents of a cell."""

    def __init__(self, effects: EffectRunner, host: Host) -> None:
        clusters = host.setup.clusters or (Cluster("", ""),)
        federation = host.setup.federation
        places = None if federation is None else federation.places
        facts = CellFacts(host.view, partial(_delay, places))
        self._desks = {
            cluster.name: AgentDesk(
                effects, host, cluster, facts, host.random.child(f"pipelines of {cluster.name}")
            )
            for cluster in clusters
        }

    def __getitem__(self, cluster: str) -> AgentDesk:
        return self._desks[cluster]

    def __contains__(self, cluster: str) -> bool:
        return cluster in self._desks

    @property
    def reservations(self) -> int:
        """Room kept for commits under way, over all agents."""
        return sum(desk.cache.reservations for desk in self._desks.values())
