"""The agents of clusters at work: requests that use their pipelines, and how long these take.

An agent handles several requests at once; further ones wait in order of arrival. A sample reads the
cache when its turn comes. A commit reserves its room on arrival, then waits for its turn, then for the
lock of its machine, and is judged by the machine as it is then. Nothing that samples waits for a commit.
On every way out, reservation and lock are given back.

The agent of a large cluster may be split into shards. Each has a part of the machines, with its own
cache, locks and turns. A sample is drawn by all shards at once, each for its part, and answered when the
last is done. A commit is that of the shard that has the machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from msgspec import structs

from argosy.agents.api import Requirements
from argosy.agents.cache import NodesCache, Reservation
from argosy.agents.committing import ConflictCheck, refused
from argosy.agents.facts import CellFacts
from argosy.agents.objectives import VOLUME
from argosy.agents.sampling import NOTHING_DRAWN, DrawnSample, Sampler, merged
from argosy.host.protocols import agent_of
from argosy.host.scheduler import Scheduler
from argosy.host.whereabouts import JobWhereabouts
from argosy.model.effects import Commit, CommitPipeline, Sample, SamplingPipeline
from argosy.model.events import Committed, SampleReturned
from argosy.model.explanations import OF_ONE_MACHINE, Refusal, Why
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

_OF_ONE_MACHINE: Final = frozenset(map(int, OF_ONE_MACHINE))
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
        return bool(self._faults) and any(
            isinstance(fault, AgentDown) and at <= now and since < end
            for at, end, fault in self._faults
        )

    def extra(self, now: int) -> int:
        if not self._faults:
            return 0
        return sum(
            fault.extra
            for at, end, fault in self._faults
            if isinstance(fault, AgentSlow) and at <= now < end
        )

    def is_cut_off(self, now: int) -> bool:
        return bool(self._faults) and any(
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


class OpenSample:
    """A sample under way, with what its shards have drawn so far."""

    def __init__(self, scheduler: Scheduler, effect: Sample, began: int, shards: int) -> None:
        self.scheduler = scheduler
        self.epoch = scheduler.epoch
        self.effect = effect
        self.began = began
        self.missing = shards
        #: In the order of shards, so that answers do not depend on which is done first.
        self.parts: list[DrawnSample] = [NOTHING_DRAWN] * shards


class AgentShard:
    """A part of a cluster's machines: what is known of them, who works on them, and locks."""

    def __init__(
        self,
        host: Host,
        cluster: Cluster,
        facts: CellFacts,
        model: AgentModel,
        random: Random,
        number: int,
    ) -> None:
        self.number = number
        self.cache = NodesCache(
            cluster,
            host.view,
            facts,
            model.refresh,
            lambda: host.membership.changes,
            (number, model.shards),
        )
        self.sampler = Sampler(self.cache, host.view, random)
        self.check = ConflictCheck(self.cache)
        self.sampling = Turns(model.samplers, host.later)
        self.committing = Turns(model.committers, host.later)
        #: Commits that wait for a machine, by machine; it is locked while it is a key.
        self.locks: dict[int, deque[CommitRequest]] = {}


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
        self._facts = facts
        self._shards = [
            AgentShard(
                host,
                cluster,
                facts,
                model,
                random if model.shards == 1 else random.child(f"shard {number}"),
                number,
            )
            for number in range(model.shards)
        ]
        self._arrivals = 0

    @property
    def reservations(self) -> int:
        return sum(shard.cache.reservations for shard in self._shards)

    def _shard_of(self, machine: int) -> AgentShard:
        return self._shards[machine % len(self._shards)]

    def sample(self, scheduler: Scheduler, effect: Sample, now: int) -> None:
        request = OpenSample(scheduler, effect, now, len(self._shards))
        if self._health.is_down(now, now):
            self._answer_sample(request, None, now)
            return
        for shard in self._shards:
            shard.sampling.enter(partial(self._draw, shard, request), now)

    def _draw(self, shard: AgentShard, request: OpenSample, now: int) -> None:
        pipeline, model = request.effect.pipeline, self._model
        assert pipeline is not None
        drawn = shard.sampler.sample(
            request.effect,
            pipeline,
            now,
            most=_most(pipeline, model),
            is_cut_off=self._health.is_cut_off(now),
            parts=len(self._shards),
        )
        took = model.t_sample + model.t_machine * drawn.drawn + self._health.extra(now)
        self._after(took, partial(self._drew, shard, request, drawn), now)

    def _drew(self, shard: AgentShard, request: OpenSample, drawn: DrawnSample, now: int) -> None:
        request.parts[shard.number] = drawn
        request.missing -= 1
        if not request.missing:
            is_lost = self._health.is_down(request.began, now)
            self._answer_sample(request, None if is_lost else merged(request.parts), now)
        shard.sampling.leave(now)

    def _answer_sample(self, request: OpenSample, drawn: DrawnSample | None, now: int) -> None:
        scheduler, effect = request.scheduler, request.effect
        if scheduler.epoch != request.epoch:
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
        request.began = now
        self._begin(request, now)

    def _begin(self, request: CommitRequest, now: int) -> None:
        """Reserves the next candidate, and waits for a turn at its shard."""
        shard = self._reserve(request)
        shard.committing.enter(partial(self._lock, request), now)

    def _reserve(self, request: CommitRequest) -> AgentShard:
        machine = request.candidates.popleft()
        own = self._shard_of(machine)
        shape = int(request.claims.shapes[0])
        amounts = np.array(self._host.view.shape_request(shape), np.int64)
        request.reservation = own.cache.reserve(request.number, machine, amounts)
        return own

    def _lock(self, request: CommitRequest, now: int) -> None:
        assert request.reservation is not None
        machine = request.reservation.machine
        locks = self._shard_of(machine).locks
        waiting = locks.get(machine)
        if waiting is not None:
            waiting.append(request)
            return
        locks[machine] = deque()
        self._fetch(request, now)

    def _fetch(self, request: CommitRequest, now: int) -> None:
        took = self._model.t_fetch + self._health.extra(now)
        self._after(took, partial(self._judge, request), now)

    def _judge(self, request: CommitRequest, now: int) -> None:
        own = request.reservation
        assert own is not None
        shard = self._shard_of(own.machine)
        is_lost = self._health.is_down(request.began, now)
        if is_lost or not request.is_wanted:
            self._release(request, now)
            if is_lost:
                self._give_up(request, now)
            shard.committing.leave(now)
            return
        transaction = request.transaction_for(own.machine)
        task = self._requirements(request)
        refusal = shard.check.conflict(task, own, request.pipeline)
        if refusal is None:
            bound = shard.check.bound(transaction, request.pipeline)
            outcome = self._effects.judge(request.scheduler, bound)
        else:
            outcome = refused(refusal, self._host.view.dimensions)
        if outcome.all_accepted:
            shard.cache.commit(own)
            if VOLUME in task.demands:
                self._facts.create_volume(task.demands[VOLUME], own.machine)
            self._effects.conclude(request.scheduler, request.effect, transaction, outcome, now)
            self._after(self._model.t_bind, partial(self._done, request, outcome), now)
            return
        self._release(request, now)
        if request.candidates and int(outcome.whys[0]) in _OF_ONE_MACHINE:
            if self._shard_of(request.candidates[0]) is shard:
                self._reserve(request)
                self._lock(request, now)
            else:
                self._begin(request, now)
                shard.committing.leave(now)
            return
        self._effects.conclude(request.scheduler, request.effect, transaction, outcome, now)
        self._answer_commit(request, outcome, now)
        shard.committing.leave(now)

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
        self._shard_of(own.machine).committing.leave(now)

    def _release(self, request: CommitRequest, now: int) -> None:
        own = request.reservation
        assert own is not None
        self._shard_of(own.machine).cache.unreserve(own)
        request.reservation = None
        self._unlock(own.machine, now)

    def _unlock(self, machine: int, now: int) -> None:
        locks = self._shard_of(machine).locks
        waiting = locks[machine]
        if waiting:
            self._host.later(now, partial(self._fetch, waiting.popleft()))
        else:
            del locks[machine]

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
        facts = CellFacts(
            host.view,
            partial(_delay, places),
            {cluster.name: cluster.place for cluster in clusters if cluster.name},
            JobWhereabouts(host).machines_of,
        )
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
        return sum(desk.reservations for desk in self._desks.values())
