"""The cluster as an agent: samples, reservations and commits for schedulers that are elsewhere.

The pipelines are those of `argosy.agents`, the same as in a simulation. Samples are answered at once
from the cache. A commit reserves its room at once, waits for the lock of its machine, is checked against
the cell as it is then, and is answered when it is on the disk; a client that hangs up does not stop it.
Whatever comes of it, lock and reservation are given back.

A commit has a key: who repeats it gets the answer that it had, and nothing is committed twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from math import inf
from typing import Final, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.agents.api import Requirements
from argosy.agents.cache import NodesCache, Reservation
from argosy.agents.committing import ConflictCheck
from argosy.agents.facts import ToldFacts
from argosy.agents.objectives import VOLUME
from argosy.agents.sampling import DrawnSample, Sampler
from argosy.api.agent_values import (
    ClusterPlace,
    CommitOrder,
    CommitResult,
    ReleaseResult,
    ReservationInfo,
    ReservationRequest,
    SampleRequest,
)
from argosy.cell import to_mask
from argosy.host.host import Host
from argosy.model.effects import CommitPipeline, Sample, SamplingPipeline
from argosy.model.explanations import OF_ONE_MACHINE, Refusal, Why
from argosy.model.jobs import Job
from argosy.model.machines import Cluster
from argosy.model.resources import Resources
from argosy.service.callers import Caller
from argosy.service.live import LiveCluster
from argosy.service.problems import CommitConflict, Conflict, Forbidden, NotFound, TooMany
from argosy.worlds.local.store import LocalStore
from argosy.worlds.local.world import LocalWorld

T = TypeVar("T")

#: Microseconds: the longest that room can be kept for a commit that does not come.
LONGEST_LEASE: Final = 60_000_000
#: Refusals and releases that are remembered, so that who asks again gets the same answer.
MOST_REMEMBERED: Final = 10_000


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    #: Microseconds: how old the picture of the machines may be that samples are drawn from.
    refresh: int = 0
    #: Microseconds by which every answer is late, as if the agent were far away.
    delay: int = 0
    #: Where the cluster is: what distances know it by, and "latitude,longitude". Empty: its own name,
    #: and nowhere in particular.
    place: str = ""
    location: str = ""


class HeldRoom(NamedTuple):
    """A reservation that a caller asked for."""

    owner: str
    machine: str
    request: Resources
    expires: float
    number: int


class MachineLock:
    """`wanted` by so many commits, of which one has it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.wanted = 0


class AgentCounts:
    """Since the server started."""

    def __init__(self) -> None:
        self.samples = 0
        self.drawn = 0
        self.eligible = 0
        self.commits = 0
        self.conflicts = 0
        self.repeated = 0
        self.released = 0
        #: Reservations whose lease was over.
        self.expired = 0
        #: Time spent on samples, in nanoseconds.
        self.sampling_time = 0


class Pipelines:
    """What belongs to one host: a host that is built anew numbers its machines anew."""

    def __init__(self, host: Host, options: AgentOptions, place: str) -> None:
        self.host = host
        cluster = Cluster("", place)
        self.facts = ToldFacts(host.view, place, options.location)
        changes = host.membership
        self.cache = NodesCache(
            cluster, host.view, self.facts, options.refresh, lambda: changes.changes
        )
        self.sampler = Sampler(self.cache, host.view, host.random.child("agent's pipelines"))
        self.check = ConflictCheck(self.cache)
        self._dimensions = host.view.dimensions
        self._seen = -1
        self.numbers: dict[str, int] = {}
        self.names: list[str] = []

    def are_for(self, host: Host) -> bool:
        """Room in the cache has one amount per resource, so a new resource makes a new cache."""
        return self.host is host and self._dimensions == host.view.dimensions

    def look(self, world: LocalWorld) -> None:
        """Learns the names of machines that have joined or left."""
        version = world.projection.machine_version
        if version != self._seen:
            self._seen = version
            self.numbers = world.machine_numbers()
            self.names = [machine.name for machine in world.projection.machines]

    def amounts(self, request: Resources) -> NDArray[np.int64]:
        return np.array(request.within(self.host.view.dimensions), np.int64)


class AgentTerms(Protocol):
    """What a cluster adds to what tasks ask for."""

    def request(self, asked: Resources) -> Resources: ...
    def requires(self, asked: dict[str, str]) -> dict[str, str]: ...
    def job(self, job: Job) -> Job:
        """The job as it is committed; raises if it cannot be."""


class PlainTerms:
    """Of a cluster that adds nothing."""

    def request(self, asked: Resources) -> Resources:
        return asked

    def requires(self, asked: dict[str, str]) -> dict[str, str]:
        return asked

    def job(self, job: Job) -> Job:
        return job


class LiveAgent:
    def __init__(
        self,
        cluster: LiveCluster,
        store: LocalStore,
        options: AgentOptions,
        terms: AgentTerms | None = None,
    ) -> None:
        self.terms: AgentTerms = terms or PlainTerms()
        self._cluster = cluster
        self._store = store
        self._options = options
        self.counts = AgentCounts()
        self._pipelines: Pipelines | None = None
        self._arrivals = itertools.count(1)
        #: Reservations by id, with their room in the present cache.
        self._held: dict[str, HeldRoom] = {}
        self._rooms: dict[str, Reservation] = {}
        #: Of machines that commits are under way for.
        self._locks: dict[str, MachineLock] = {}
        #: By the name under which a key is stored: commits under way, refusals, and released keys.
        self._under_way: dict[str, tuple[bytes, asyncio.Task[CommitResult]]] = {}
        self._refused: OrderedDict[str, tuple[bytes, CommitConflict]] = OrderedDict()
        self._released: OrderedDict[str, None] = OrderedDict()

    def _present(self) -> Pipelines:
        """The pipelines of the host that there is now."""
        world = self._cluster.world
        if self._pipelines is None or not self._pipelines.are_for(world.host):
            self._pipelines = Pipelines(world.host, self._options, self.place.place)
            self._pipelines.look(world)
            self._rooms = {}
            for name, held in self._held.items():
                self._hold(name, held)
        self._pipelines.look(world)
        return self._pipelines

    async def answer_later(self) -> None:
        if self._options.delay:
            await asyncio.sleep(self._options.delay / 1e6)

    @property
    def place(self) -> ClusterPlace:
        options = self._options
        name = options.place or self._cluster.world.cluster.name
        return ClusterPlace(place=name, location=options.location)

    @property
    def resources(self) -> tuple[str, ...]:
        """The order of the amounts in a sample."""
        return self._cluster.world.host.view.dimensions

    @property
    def open_reservations(self) -> int:
        self._expire()
        return self._present().cache.reservations

    # Samples.

    def sample(self, asked: SampleRequest) -> tuple[DrawnSample, list[str]]:
        """Machines that fit, and their names."""
        began = time.perf_counter_ns()
        pipelines = self._present()
        self._expire()
        request = self.terms.request(Resources.of(asked.request))
        requires = self.terms.requires(asked.requires)
        effect = Sample(request, asked.count, 0, requires, "", asked.demands)
        pipeline = SamplingPipeline(
            strategy=asked.strategy,
            filters=asked.filters,
            scores=asked.scores,
            share=asked.share,
            rounds=asked.rounds,
            overshoot=asked.overshoot,
            repeats=asked.repeats,
        )
        deadline = time.monotonic() + asked.limit / 1e6 if asked.limit else inf
        pipelines.facts.hear(asked.distances, asked.jobs)
        drawn = pipelines.sampler.sample(
            effect,
            pipeline,
            self._cluster.world.now,
            most=0,
            is_cut_off=False,
            is_over=lambda: time.monotonic() >= deadline,
        )
        names = pipelines.names
        found = [names[machine] for machine in drawn.machines.tolist()]
        counts = self.counts
        counts.samples += 1
        counts.drawn += drawn.drawn
        counts.eligible += len(found)
        counts.sampling_time += time.perf_counter_ns() - began
        return drawn, found

    # Reservations.

    def reserve(self, caller: Caller, asked: ReservationRequest) -> ReservationInfo:
        self._expire()
        pipelines = self._present()
        _check_machine(asked.machine, pipelines)
        mine = sum(held.owner == caller.name for held in self._held.values())
        if mine >= caller.table.reservations:
            raise TooMany(
                f"{caller.name} has {mine} open reservations",
                expected=f"at most {caller.table.reservations}",
            )
        number = next(self._arrivals)
        lease = min(asked.lease, LONGEST_LEASE)
        request = Resources.of(asked.request)
        held = HeldRoom(caller.name, asked.machine, request, time.monotonic() + lease / 1e6, number)
        name = f"r{number}"
        self._hold(name, held)
        refusal = pipelines.check.conflict(
            Requirements(request), self._rooms[name], CommitPipeline()
        )
        if refusal is not None:
            self._drop(name)
            self.counts.conflicts += 1
            raise CommitConflict(refusal, asked.machine)
        return _info(name, held)

    def _hold(self, name: str, held: HeldRoom) -> None:
        """Keeps the room in the present cache, unless its machine has left."""
        self._held[name] = held
        pipelines = self._pipelines
        assert pipelines is not None
        machine = pipelines.numbers.get(held.machine)
        if machine is not None:
            amounts = pipelines.amounts(held.request)
            self._rooms[name] = pipelines.cache.reserve(held.number, machine, amounts)

    def _drop(self, name: str) -> None:
        del self._held[name]
        room = self._rooms.pop(name, None)
        if room is not None and self._pipelines is not None:
            self._pipelines.cache.unreserve(room)

    def unreserve(self, caller: Caller, name: str) -> None:
        self._present()
        self._own(caller, name)
        self._drop(name)

    def reservations(self, caller: Caller) -> list[ReservationInfo]:
        self._expire()
        return [_info(name, held) for name, held in self._held.items() if held.owner == caller.name]

    def _own(self, caller: Caller, name: str) -> HeldRoom:
        self._expire()
        held = self._held.get(name)
        if held is None:
            raise NotFound(
                f"there is no reservation {name!r}", hint="it may have been used, or have expired"
            )
        if held.owner != caller.name:
            raise Forbidden(f"reservation {name} is not of {caller.name}", expected="its own")
        return held

    def _expire(self) -> None:
        """Whoever holds room without using it loses it when the lease is over."""
        if not self._held:
            return
        now = time.monotonic()
        for name in [name for name, held in self._held.items() if held.expires <= now]:
            self._drop(name)
            self.counts.expired += 1

    # Commits.

    async def commit(
        self, caller: Caller, key: str, order: CommitOrder, job: Job, digest: bytes
    ) -> tuple[CommitResult, bool]:
        """The answer, and whether the commit is new. One that is under way, or was made before, is not
        made again."""
        stored = _stored(caller, key)
        if stored in self._released:
            raise Conflict(f"the commit {key!r} was released", expected="a new key")
        if (begun := self._under_way.get(stored)) is not None:
            _check_same(key, begun[0], digest)
            self.counts.repeated += 1
            return await asyncio.shield(begun[1]), False
        if (refused := self._refused.get(stored)) is not None:
            _check_same(key, refused[0], digest)
            self.counts.repeated += 1
            raise refused[1]
        if (known := self._cluster.world.job_of_key(stored)) is not None:
            _check_same(key, known[0], digest)
            self.counts.repeated += 1
            # It may be part of a turn that is not on the disk yet.
            await self._cluster.do(lambda world: None)
            return self._committed(key, known[1]), False
        if self._cluster.world.job_seq(job.id) is not None:
            raise Conflict(f"there is a job {job.id} already", field="job.id", expected="a new id")
        if order.reservation is not None:
            self._own(caller, order.reservation)
        # A client that hangs up must not leave a commit half made.
        task = asyncio.get_running_loop().create_task(
            self._run(caller, key, stored, order, job, digest)
        )
        self._under_way[stored] = digest, task
        task.add_done_callback(lambda done: self._over(stored, digest, done))
        return await asyncio.shield(task), True

    def _over(self, stored: str, digest: bytes, task: asyncio.Task[CommitResult]) -> None:
        del self._under_way[stored]
        error = None if task.cancelled() else task.exception()
        if isinstance(error, CommitConflict):
            _remember(self._refused, stored, (digest, error))

    async def _run(
        self,
        caller: Caller,
        key: str,
        stored: str,
        order: CommitOrder,
        job: Job,
        digest: bytes,
    ) -> CommitResult:
        """MultiBind within the cluster: the first machine that takes the job."""
        pipeline = CommitPipeline(
            checks=order.checks, commit=order.commit, reservations=order.reservations
        )
        last, tried = Refusal(Why.MACHINE_GONE), order.machines[0]
        for tried in order.machines:
            refusal = await self._try(
                caller, stored, tried, order.reservation, job, pipeline, digest
            )
            if refusal is None:
                self.counts.commits += 1
                return CommitResult(key=key, job=job.id, machine=tried)
            self.counts.conflicts += 1
            last = refusal
            if last.why not in OF_ONE_MACHINE:
                break
        raise CommitConflict(last, tried)

    async def _try(
        self,
        caller: Caller,
        stored: str,
        machine: str,
        reservation: str | None,
        job: Job,
        pipeline: CommitPipeline,
        digest: bytes,
    ) -> Refusal | None:
        """Algorithm 2 of the Vela paper, for one machine."""
        group = job.groups[0]
        pipelines = self._present()
        number = pipelines.numbers.get(machine)
        if number is None:
            return Refusal(Why.MACHINE_GONE)
        arrival, room_is_taken = self._arrival(machine, reservation), False
        room = pipelines.cache.reserve(arrival, number, pipelines.amounts(group.request))

        def bind(world: LocalWorld) -> Refusal | None:
            nonlocal room_is_taken
            refused = world.place(job, number, caller.name, pipeline.commit, (stored, digest))
            if refused is None:
                room_is_taken = True
                pipelines.cache.commit(room)
                if VOLUME in group.demands:
                    pipelines.facts.create_volume(group.demands[VOLUME], number)
            return refused

        try:
            async with self._locked(machine):
                if self._present() is not pipelines or machine not in pipelines.numbers:
                    return Refusal(Why.MACHINE_GONE, machine=number)
                if group.requires and not _has(pipelines, number, group.requires):
                    return Refusal(Why.FILTERED, machine=number)
                task = Requirements(group.request, group.requires, group.demands)
                refusal = pipelines.check.conflict(task, room, pipeline)
                return refusal if refusal is not None else await self._cluster.do(bind)
        finally:
            if not room_is_taken:
                pipelines.cache.unreserve(room)

    def _arrival(self, machine: str, reservation: str | None) -> int:
        """The place among those who want the same room: that of the reservation, which is used up, or
        the last."""
        held = None if reservation is None else self._held.get(reservation)
        if reservation is None or held is None or held.machine != machine:
            return next(self._arrivals)
        self._drop(reservation)
        return held.number

    @contextlib.asynccontextmanager
    async def _locked(self, machine: str) -> AsyncIterator[None]:
        """One commit at a time for each machine; nothing else waits for it."""
        lock = self._locks.setdefault(machine, MachineLock())
        lock.wanted += 1
        try:
            async with lock.lock:
                yield
        finally:
            lock.wanted -= 1
            if not lock.wanted:
                del self._locks[machine]

    def _committed(self, key: str, job: str) -> CommitResult:
        rows = self._store.rows(
            "SELECT tasks.machine FROM tasks JOIN jobs ON tasks.job = jobs.seq WHERE jobs.id = ?",
            (job,),
        )
        return CommitResult(key=key, job=job, machine=rows[0][0] if rows else "")

    async def release(self, caller: Caller, key: str) -> ReleaseResult:
        """Undoes a commit, whatever has become of it; a commit with this key that is still on its way
        is refused."""
        stored = _stored(caller, key)
        _remember(self._released, stored, None)
        if (begun := self._under_way.get(stored)) is not None:
            await asyncio.wait([begun[1]])
        known = self._cluster.world.job_of_key(stored)
        if known is None or known[1] not in self._cluster.world.projection.by_id:
            return ReleaseResult(key=key)
        await self._cluster.do(lambda world: world.cancel(known[1]))
        self.counts.released += 1
        return ReleaseResult(key=key, job=known[1])

    def job_of(self, caller: Caller, key: str) -> str:
        """The job that was committed."""
        known = self._cluster.world.job_of_key(_stored(caller, key))
        if known is None:
            raise NotFound(f"there is no commit {key!r} of {caller.name}")
        return known[1]

    def open_commits(self, caller: Caller, after: str, limit: int) -> list[CommitResult]:
        """The caller's jobs that are not over."""
        first = _stored(caller, "")
        rows = self._store.rows(
            "SELECT keys.key, keys.job, tasks.machine FROM keys JOIN jobs ON jobs.id = keys.job "
            "JOIN tasks ON tasks.job = jobs.seq AND tasks.idx = 0 "
            "WHERE keys.key > ? AND keys.key < ? AND jobs.ended IS NULL ORDER BY keys.key LIMIT ?",
            (first + after, first + "\U0010ffff", limit),
        )
        return [
            CommitResult(key=key.removeprefix(first), job=job, machine=machine)
            for key, job, machine in rows
        ]


def _stored(caller: Caller, key: str) -> str:
    """Keys of different schedulers, and of submissions, do not meet. Names have no slash."""
    return f"commit/{caller.name}/{key}"


def _info(name: str, held: HeldRoom) -> ReservationInfo:
    left = max(0, int((held.expires - time.monotonic()) * 1e6))
    request = {key: amount for key, amount in held.request.items() if amount}
    return ReservationInfo(id=name, machine=held.machine, request=request, lease=left)


def _check_machine(machine: str, pipelines: Pipelines) -> None:
    if machine not in pipelines.numbers:
        raise NotFound(f"unknown machine {machine!r}", field="machine")


def _check_same(key: str, known: bytes, digest: bytes) -> None:
    if known != digest:
        raise Conflict(
            f"the key {key!r} was used for another commit",
            field="Idempotency-Key",
            expected="a new key for a new commit",
        )


def _remember(known: OrderedDict[str, T], name: str, value: T) -> None:
    known[name] = value
    known.move_to_end(name)
    if len(known) > MOST_REMEMBERED:
        known.popitem(last=False)


def _has(pipelines: Pipelines, machine: int, requires: dict[str, str]) -> bool:
    view = pipelines.host.view
    return bool(to_mask(view.where(requires), view.machines)[machine])
