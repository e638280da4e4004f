"""Leader election by a Lease, by the rules of client-go, so that both can stand for the same lease.

A candidate takes the lease if nobody holds it, or if its holder has not renewed it for the lease's
duration *as the candidate saw it*: clocks of different machines are never compared. Every write carries
the version it is based on, so of two candidates one succeeds.

The holder gives up when it could not renew for the renew deadline, which is shorter than the duration
and is counted from before its last successful request: it knows that it has lost before anybody else
may take over. Its right is told by a clock, not by an event: a process that was stopped for a minute
sees that it has lost as soon as it asks.

Each acquisition raises `leaseTransitions`, which is the fencing number: whoever is asked to act for a
leader can refuse smaller numbers than it has seen. It starts again at 0 if the lease is deleted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from random import Random, SystemRandom
from types import TracebackType
from typing import Self

import msgspec

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.failures import (
    KubernetesError,
    NotAuthenticated,
    ObjectConflict,
    ObjectNotFound,
    RequestForbidden,
    RequestInvalid,
)
from argosy.kubernetes.kinds import LEASES
from argosy.kubernetes.meta import ObjectMeta, micro_time
from argosy.kubernetes.objects import Lease, LeaseSpec
from argosy.kubernetes.requests import RequestSettings
from argosy.model.errors import ArgosyError


class LeaseSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in seconds; whole ones for the duration, which the lease records."""

    duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.duration:
            raise ArgosyError(
                "the times of the lease do not fit together",
                expected="retry_period < renew_deadline < duration",
            )


def lease_settings(duration: int) -> LeaseSettings:
    """In the proportions of client-go's: a leader gives up after two thirds."""
    return LeaseSettings(
        duration=duration, renew_deadline=duration * 2 / 3, retry_period=duration * 2 / 15
    )


def boot_clock() -> float:
    """Seconds, those included in which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Leadership:
    """The right to act as the leader, until it is lost."""

    def __init__(self, fencing: int, until: float, clock: Callable[[], float]) -> None:
        #: Greater than that of every leader before.
        self.fencing = fencing
        self._until = until
        self._clock = clock
        self._lost = asyncio.Event()

    @property
    def is_held(self) -> bool:
        """Ask before each act that only a leader may do."""
        return not self._lost.is_set() and self._clock() < self._until

    @property
    def remaining(self) -> float:
        """For how many seconds it is held even if nothing can be renewed any more."""
        return max(0.0, self._until - self._clock()) if self.is_held else 0.0

    async def lost(self) -> None:
        """Returns when it has been lost or given up."""
        await self._lost.wait()

    def _extend(self, until: float) -> None:
        self._until = until

    def _end(self) -> None:
        self._lost.set()


class LeaderElection:
    """A candidate. Use it as an async context manager; `lead` waits until it is the leader:

        async with LeaderElection(connection, "argosy", identity=unique_name) as election:
            leadership = await election.lead()
            ...

    Leaving it gives the lease up, so that the next candidate need not wait. It has a connection of its
    own: renewing must not queue behind other requests. `identity` must be unique to the process.
    """

    def __init__(
        self,
        connection: Connection,
        name: str,
        namespace: str = "kube-system",
        *,
        identity: str,
        settings: LeaseSettings | None = None,
        on_lost: Callable[[Leadership], None] | None = None,
        clock: Callable[[], float] = boot_clock,
        random: Random | None = None,
        client: KubernetesClient | None = None,
    ) -> None:
        self._name = name
        self._namespace = namespace
        self._identity = identity
        self._settings = settings or LeaseSettings()
        self._on_lost = on_lost
        self._clock = clock
        self._random = random or SystemRandom()
        # Two attempts fit into the deadline, and none is repeated behind our back.
        self._client = client or KubernetesClient(
            connection,
            RequestSettings(concurrent=2, timeout=self._settings.renew_deadline / 2, patience=0.0),
        )
        #: The lease as it was last seen, and when it was first seen so.
        self._seen: Lease | None = None
        self._seen_at = 0.0
        self._leadership: Leadership | None = None
        self._renewing: asyncio.Task[None] | None = None

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen; empty if nobody did."""
        return (self._seen.spec.holder_identity or "") if self._seen is not None else ""

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.release()
        finally:
            await self._client.__aexit__(kind, error, traceback)

    async def lead(self) -> Leadership:
        """Waits until the lease is ours. Raises what trying again would not help: missing rights, or a
        namespace that does not exist."""
        if self._leadership is not None and self._leadership.is_held:
            return self._leadership
        while True:
            started = self._clock()
            try:
                if await self._acquire():
                    return self._begin(started)
            except (RequestForbidden, RequestInvalid, NotAuthenticated, ObjectNotFound):
                raise
            except KubernetesError:
                pass  # Another candidate was faster, or the server is away: as good as not now.
            # Jittered as client-go's, so that candidates do not ask in step.
            await asyncio.sleep(self._settings.retry_period * self._random.uniform(1.0, 2.2))

    async def release(self) -> None:
        """Gives the lease up, if it is held. Stop acting as the leader before."""
        if self._renewing is not None:
            self._renewing.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewing
            self._renewing = None
        leadership, self._leadership = self._leadership, None
        if leadership is None:
            return
        was_held = leadership.is_held
        leadership._end()
        if not was_held:
            return
        # If it fails, the lease expires by itself.
        with suppress(KubernetesError):
            await self._write(holder="", duration=1)

    def _begin(self, started: float) -> Leadership:
        assert self._seen is not None
        leadership = Leadership(
            self._seen.spec.lease_transitions or 0,
            started + self._settings.renew_deadline,
            self._clock,
        )
        self._leadership = leadership
        self._renewing = asyncio.create_task(self._renew(leadership), name=f"renew {self._name}")
        return leadership

    async def _renew(self, leadership: Leadership) -> None:
        while leadership.is_held:
            with suppress(TimeoutError):
                # Also ends a request that would outlast the right.
                async with asyncio.timeout(leadership.remaining):
                    await asyncio.sleep(self._settings.retry_period)
                    if not await self._try_to_renew(leadership):
                        break
        self._leadership = None
        leadership._end()
        if self._on_lost is not None:
            self._on_lost(leadership)

    async def _try_to_renew(self, leadership: Leadership) -> bool:
        """False if the lease is somebody else's."""
        started = self._clock()
        try:
            await self._write(holder=self._identity)
        except ObjectConflict:
            # Somebody touched it, or our last request succeeded although its answer was lost.
            with suppress(KubernetesError):
                await self._look()
                return self.holder == self._identity
            return True
        except ObjectNotFound:
            return False
        except KubernetesError:
            return True
        leadership._extend(started + self._settings.renew_deadline)
        return True

    async def _acquire(self) -> bool:
        """Whether the lease is ours now. Raises `ObjectConflict` if another candidate was faster."""
        try:
            await self._look()
        except ObjectNotFound:
            await self._create()
            return True
        assert self._seen is not None
        spec = self._seen.spec
        expires = self._seen_at + (spec.lease_duration_seconds or self._settings.duration)
        if spec.holder_identity not in (None, "", self._identity) and self._clock() < expires:
            return False
        await self._write(holder=self._identity, is_new=True)
        return True

    async def _look(self) -> None:
        self._see(await self._client.get(LEASES, self._name, self._namespace))

    def _see(self, lease: Lease) -> None:
        if self._seen is None or self._seen.spec != lease.spec:
            self._seen_at = self._clock()
        self._seen = lease

    async def _create(self) -> None:
        now = micro_time(datetime.now(UTC))
        lease = Lease(
            metadata=ObjectMeta(name=self._name, namespace=self._namespace),
            spec=LeaseSpec(
                holder_identity=self._identity,
                lease_duration_seconds=self._settings.duration,
                acquire_time=now,
                renew_time=now,
                lease_transitions=0,
            ),
        )
        self._see(await self._client.create(LEASES, lease))

    async def _write(
        self, *, holder: str, is_new: bool = False, duration: int | None = None
    ) -> None:
        """Writes the lease on the condition that it is as it was last seen."""
        assert self._seen is not None
        spec = self._seen.spec
        now = micro_time(datetime.now(UTC))
        spec = msgspec.structs.replace(
            spec,
            holder_identity=holder,
            lease_duration_seconds=self._settings.duration if duration is None else duration,
            renew_time=now,
            acquire_time=now if is_new else spec.acquire_time,
            lease_transitions=(spec.lease_transitions or 0) + is_new,
        )
        self._see(
            await self._client.replace(LEASES, msgspec.structs.replace(self._seen, spec=spec))
        )
