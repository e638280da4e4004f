"""Candidates for a lease, one request at a time, by the test's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, cast

import msgspec
import pytest
from kube_cases import asynchronous

from argosy.kubernetes import failures as failed
from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.credentials import FixedCredentials, Login
from argosy.kubernetes.leases import LeaderElection, Leadership, LeaseSettings
from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Lease, LeaseSpec

CONNECTION = Connection("http://nowhere", FixedCredentials(Login()))
SETTINGS = LeaseSettings(duration=15, renew_deadline=10.0, retry_period=2.0)
AWAY = failed.KubernetesUnreachable("r", "p", may_have_happened=True)
CONFLICT = failed.ObjectConflict("r", "p")
GONE = failed.ObjectNotFound("r", "p")

_real_sleep = asyncio.sleep


class Cluster:
    """One lease, requests that fail as they are told to, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.lease: Lease | None = None
        self.version = 0
        self.asked: list[str] = []
        #: What happens instead of the next requests, or before them.
        self.troubles: list[Callable[[], None] | Exception | None] = []
        self.sleeps: list[float] = []
        #: What happens while somebody sleeps.
        self.meanwhile: list[Callable[[], object]] = []

    def _begin(self, what: str) -> None:
        self.asked.append(what)
        trouble = self.troubles.pop(0) if self.troubles else None
        if isinstance(trouble, Exception):
            raise trouble
        if trouble is not None:
            trouble()

    def put(self, **spec: Any) -> Lease:
        """Somebody has written it."""
        self.version += 1
        self.lease = Lease(
            metadata=ObjectMeta(name="l", namespace="n", resource_version=str(self.version)),
            spec=LeaseSpec(**spec),
        )
        return self.lease

    async def get(self, kind: Any, name: str, namespace: str) -> Lease:
        assert (kind.plural, name, namespace) == ("leases", "l", "n")
        self._begin("get")
        if self.lease is None:
            raise GONE
        return self.lease

    async def create(self, kind: Any, lease: Lease) -> Lease:
        self._begin("create")
        if self.lease is not None:
            raise failed.ObjectExists("r", "p")
        assert (lease.name, lease.namespace) == ("l", "n")
        return self.put(**msgspec.structs.asdict(lease.spec))

    async def replace(self, kind: Any, lease: Lease) -> Lease:
        self._begin("replace")
        if self.lease is None:
            raise GONE
        if lease.metadata.resource_version != self.lease.metadata.resource_version:
            raise CONFLICT
        return self.put(**msgspec.structs.asdict(lease.spec))

    async def __aenter__(self) -> None:
        self.asked.append("open")

    async def __aexit__(self, *error: object) -> None:
        self.asked.append("close")

    def candidate(self, name: str = "a", **options: Any) -> LeaderElection:
        return LeaderElection(
            CONNECTION,
            "l",
            "n",
            identity=name,
            settings=SETTINGS,
            clock=lambda: self.now,
            client=cast(KubernetesClient, self),
            **options,
        )

    @property
    def spec(self) -> LeaseSpec:
        assert self.lease is not None
        return self.lease.spec

    def take_asked(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    async def sleep(seconds: float) -> None:
        made.sleeps.append(seconds)
        await _real_sleep(0)
        if not made.meanwhile:
            await asyncio.get_running_loop().create_future()
        made.meanwhile.pop(0)()
        made.now += seconds

    monkeypatch.setattr("argosy.kubernetes.leases.asyncio.sleep", sleep)
    return made


class Upper(Random):
    def uniform(self, low: float, high: float) -> float:
        assert (low, high) == (1.0, 2.2)
        return high


def nothing() -> None:
    pass


@asynchronous
async def _lead(election: LeaderElection) -> None:
    await election.lead()


def test_the_lease_is_made_if_there_is_none(cluster: Cluster) -> None:
    @asynchronous
    async def go() -> None:
        election = cluster.candidate()
        assert election.holder == ""
        leadership = await election.lead()
        assert cluster.take_asked() == ["get", "create"]
        spec = cluster.spec
        assert (spec.holder_identity, spec.lease_duration_seconds) == ("a", 15)
        assert (spec.lease_transitions, spec.acquire_time) == (0, spec.renew_time)
        assert (leadership.fencing, leadership.remaining, election.holder) == (0, 10.0, "a")
        await election.release()
        assert cluster.take_asked() == ["replace"]
        spec = cluster.spec
        assert (spec.holder_identity, spec.lease_duration_seconds) == ("", 1)
        assert spec.lease_transitions == 0
        assert not leadership.is_held
        await election.release()
        assert cluster.take_asked() == []

    go()


@pytest.mark.parametrize(
    ("holder", "transitions", "fencing"),
    [("", 4, 5), (None, None, 1), ("a", 2, 3)],
)
def test_a_lease_that_nobody_else_holds_is_taken_at_once(
    cluster: Cluster, holder: str | None, transitions: int | None, fencing: int
) -> None:
    @asynchronous
    async def go() -> None:
        cluster.put(
            holder_identity=holder,
            lease_duration_seconds=40,
            acquire_time="before",
            lease_transitions=transitions,
        )
        election = cluster.candidate()
        leadership = await election.lead()
        assert cluster.take_asked() == ["get", "replace"]
        assert (leadership.fencing, cluster.spec.lease_transitions) == (fencing, fencing)
        assert cluster.spec.lease_duration_seconds == 15
        assert cluster.spec.acquire_time == cluster.spec.renew_time != "before"
        await election.release()

    go()


@pytest.mark.parametrize(("told", "lasts"), [(40, 40.0), (None, 15.0)])
def test_the_lease_of_another_is_waited_for_as_long_as_it_lasts(
    cluster: Cluster, told: int | None, lasts: float
) -> None:
    @asynchronous
    async def go() -> None:
        cluster.put(holder_identity="b", lease_duration_seconds=told, lease_transitions=1)
        election = cluster.candidate()
        assert not await election._acquire()
        cluster.now += lasts - 0.5
        assert not await election._acquire()
        assert election.holder == "b"
        # It was renewed meanwhile, and counts from when that is seen.
        cluster.put(
            holder_identity="b", lease_duration_seconds=told, lease_transitions=1, renew_time="x"
        )
        assert not await election._acquire()
        cluster.now += lasts - 0.001
        assert not await election._acquire()
        cluster.now += 0.001
        assert await election._acquire()
        assert (election.holder, cluster.spec.lease_transitions) == ("a", 2)

    go()


def test_a_candidate_asks_again_after_a_while_whatever_went_wrong(cluster: Cluster) -> None:
    @asynchronous
    async def go() -> None:
        cluster.put(holder_identity="b", lease_duration_seconds=5)
        cluster.troubles = [None, AWAY, None]
        cluster.meanwhile = [nothing] * 2
        cluster.troubles.append(lambda: cluster.put(holder_identity="c", renew_time="y"))
        cluster.meanwhile += [lambda: cluster.put(holder_identity="", renew_time="z")]
        election = cluster.candidate(random=Upper())
        leadership = await election.lead()
        # Another holds it; no answer; another is faster; and then nobody holds it.
        assert cluster.asked == ["get", "get", "get", "replace", "get", "replace"]
        assert cluster.sleeps == [pytest.approx(4.4)] * 3
        # The right counts from the beginning of the last attempt.
        assert leadership.remaining == 10.0
        await election.release()

    go()


@pytest.mark.parametrize(
    "kind",
    [
        failed.RequestForbidden,
        failed.RequestInvalid,
        failed.NotAuthenticated,
        failed.ObjectNotFound,
    ],
)
def test_what_trying_again_would_not_help_is_raised(
    cluster: Cluster, kind: type[failed.KubernetesError]
) -> None:
    cluster.put(holder_identity="")
    cluster.troubles = [None, kind("r", "p")]
    with pytest.raises(kind):
        _lead(cluster.candidate())
    assert cluster.asked == ["get", "replace"]
    assert cluster.sleeps == []


def test_a_namespace_that_does_not_exist_is_told(cluster: Cluster) -> None:
    cluster.troubles = [GONE, GONE]
    with pytest.raises(failed.ObjectNotFound):
        _lead(cluster.candidate())
    assert cluster.asked == ["get", "create"]


def test_a_leader_renews_now_and_then_and_leads_on(cluster: Cluster) -> None:
    @asynchronous
    async def go() -> None:
        lost: list[Leadership] = []
        election = cluster.candidate(on_lost=lost.append)
        leadership = await election.lead()
        acquired = cluster.spec.acquire_time
        cluster.take_asked()
        cluster.meanwhile = [nothing] * 3
        while cluster.meanwhile:
            await _real_sleep(0)
        await _real_sleep(0)
        assert cluster.sleeps[:3] == [2.0, 2.0, 2.0]
        assert cluster.take_asked() == ["replace"] * 3
        assert (cluster.now, leadership.remaining) == (106.0, 10.0)
        assert (cluster.spec.lease_transitions, cluster.spec.acquire_time) == (0, acquired)
        assert await election.lead() is leadership
        await election.release()
        assert lost == [], "it was given up"

    go()


@pytest.mark.parametrize("trouble", [AWAY, failed.ServerFailed("r", "p")])
def test_a_leader_without_answers_loses_its_right_after_the_deadline(
    cluster: Cluster, trouble: Exception
) -> None:
    @asynchronous
    async def go() -> None:
        lost: list[Leadership] = []
        election = cluster.candidate(on_lost=lost.append)
        leadership = await election.lead()
        cluster.take_asked()
        cluster.troubles = [trouble] * 9
        cluster.meanwhile = [nothing] * 9
        await leadership.lost()
        assert (lost, leadership.is_held) == ([leadership], False)
        assert cluster.now == 110.0
        assert cluster.take_asked() == ["replace"] * 5
        await election.release()
        assert cluster.take_asked() == [], "it is not its own any more"

    go()


@pytest.mark.parametrize(
    ("holder", "is_kept"), [("a", True), ("b", False), ("", False), (None, False)]
)
def test_after_a_conflict_the_lease_itself_says_whose_it_is(
    cluster: Cluster, holder: str | None, is_kept: bool
) -> None:
    @asynchronous
    async def go() -> None:
        election = cluster.candidate()
        leadership = await election.lead()
        cluster.put(holder_identity=holder, lease_transitions=1)
        cluster.now += 3.0
        assert await election._try_to_renew(leadership) is is_kept
        assert leadership.remaining == 7.0, "nothing was renewed"
        assert await election._try_to_renew(leadership)
        assert leadership.remaining == 10.0
        cluster.put(holder_identity=holder)
        cluster.troubles = [None, AWAY]
        assert await election._try_to_renew(leadership), "it cannot be seen"
        cluster.lease = None
        assert not await election._try_to_renew(leadership)
        await election.release()

    go()


def test_a_lease_that_cannot_be_given_up_ends_by_itself(cluster: Cluster) -> None:
    @asynchronous
    async def go() -> None:
        async with cluster.candidate() as election:
            leadership = await election.lead()
            cluster.troubles = [AWAY]
        assert not leadership.is_held
        assert cluster.spec.holder_identity == "a"
        assert cluster.take_asked() == ["open", "get", "create", "replace", "close"]

    go()


def test_a_right_that_ran_out_is_not_given_up_and_may_be_had_again(cluster: Cluster) -> None:
    @asynchronous
    async def go() -> None:
        election = cluster.candidate()
        first = await election.lead()
        cluster.now += 10.0
        cluster.take_asked()
        second = await election.lead()
        assert second is not first
        assert (first.fencing, second.fencing) == (0, 1)
        assert cluster.take_asked() == ["get", "replace"]
        cluster.now += 10.0
        await election.release()
        assert cluster.take_asked() == []

    go()


def test_requests_are_short_and_not_repeated() -> None:
    election = LeaderElection(CONNECTION, "l", identity="a", settings=SETTINGS)
    told = election._client.sender.settings
    assert (told.concurrent, told.timeout, told.patience) == (2, 5.0, 0.0)
    assert election._namespace == "kube-system"
    usual = LeaderElection(CONNECTION, "l", identity="a")._settings
    assert (usual.duration, usual.renew_deadline, usual.retry_period) == (15, 10.0, 2.0)
