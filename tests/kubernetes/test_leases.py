"""Leader election on a real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from faulty_proxy import Fault, FaultyProxy
from kube_cases import Plane, asynchronous

from argosy.kubernetes.client import KubernetesClient
from argosy.kubernetes.connection import Connection
from argosy.kubernetes.failures import ObjectNotFound, RequestForbidden
from argosy.kubernetes.kinds import LEASES
from argosy.kubernetes.kubeconfig import load_connection
from argosy.kubernetes.leases import LeaderElection, Leadership, LeaseSettings
from argosy.kubernetes.meta import ObjectMeta
from argosy.kubernetes.objects import Lease, LeaseSpec
from argosy.model.errors import ArgosyError

QUICK = LeaseSettings(duration=2, renew_deadline=1.0, retry_period=0.05)


def candidate(
    connection: Connection, namespace: str, identity: str, **options: object
) -> LeaderElection:
    settings = {"settings": QUICK, **options}
    return LeaderElection(connection, "leader", namespace, identity=identity, **settings)  # type: ignore[arg-type]


@asynccontextmanager
async def plain_client(plane: Plane) -> AsyncIterator[KubernetesClient]:
    async with KubernetesClient(load_connection(plane.kubeconfig)) as client:
        yield client


@asynchronous
async def test_one_of_several_candidates_leads_and_hands_over(
    control_plane: Plane, namespace: str
) -> None:
    connection = load_connection(control_plane.kubeconfig)
    elections = {name: candidate(connection, namespace, name) for name in ("a", "b", "c")}
    async with (
        elections["a"],
        elections["b"],
        elections["c"],
        plain_client(control_plane) as client,
    ):
        waiting = {asyncio.create_task(each.lead(), name=name) for name, each in elections.items()}
        fencing = []
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert len(done) == 1, "never two leaders"
            (task,) = done
            leadership = task.result()
            assert leadership.is_held
            lease = await client.get(LEASES, "leader", namespace)
            assert lease.spec.holder_identity == task.get_name()
            assert lease.spec.lease_transitions == leadership.fencing
            fencing.append(leadership.fencing)
            await elections[task.get_name()].release()
            assert not leadership.is_held
            await leadership.lost()
        assert fencing == [0, 1, 2]
        assert not (await client.get(LEASES, "leader", namespace)).spec.holder_identity


@asynchronous
async def test_the_lease_is_renewed_while_it_is_held(control_plane: Plane, namespace: str) -> None:
    connection = load_connection(control_plane.kubeconfig)
    async with (
        FaultyProxy(connection) as proxy,
        candidate(proxy.connection, namespace, "a") as election,
    ):
        leadership = await election.lead()
        assert await election.lead() is leadership
        await proxy.arrivals("PUT", 30)
        assert leadership.is_held, "longer than any of its times"
        assert leadership.fencing == 0


@asynchronous
async def test_a_leader_that_cannot_renew_knows_it_before_another_leads(
    control_plane: Plane, namespace: str
) -> None:
    connection = load_connection(control_plane.kubeconfig)
    losses: list[tuple[Leadership, str]] = []
    async with FaultyProxy(connection) as proxy, candidate(connection, namespace, "b") as other:
        first = candidate(
            proxy.connection,
            namespace,
            "a",
            on_lost=lambda leadership: losses.append((leadership, other.holder)),
        )
        async with first:
            leadership = await first.lead()
            waiting = asyncio.create_task(other.lead())
            await proxy.go_away()
            await leadership.lost()
            assert not leadership.is_held
            assert leadership.remaining == 0
            assert not waiting.done()
            successor = await waiting
            assert successor.fencing > leadership.fencing
            assert losses == [(leadership, "a")]
            await proxy.come_back()
            await other.release()
            assert (await first.lead()).fencing > successor.fencing


@asynchronous
async def test_a_leader_that_hangs_in_a_request_loses_at_its_deadline(
    control_plane: Plane, namespace: str
) -> None:
    # The request that hangs would time out 0.8 s after the deadline.
    settings = LeaseSettings(duration=10, renew_deadline=2.0, retry_period=1.8)
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        candidate(proxy.connection, namespace, "a", settings=settings) as election,
    ):
        leadership = await election.lead()
        started = asyncio.get_running_loop().time()
        proxy.inject(Fault(gate=asyncio.Event()), times=100)
        await leadership.lost()
        assert asyncio.get_running_loop().time() - started < 2.5


@asynchronous
async def test_a_lost_answer_costs_no_leadership(control_plane: Plane, namespace: str) -> None:
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        candidate(proxy.connection, namespace, "a") as election,
    ):
        leadership = await election.lead()
        proxy.inject(Fault(breaks="after"), on=lambda request: request.method == "PUT")
        await proxy.arrivals("PUT", 30)
        assert leadership.is_held


@asynchronous
async def test_a_lease_that_others_took_is_lost_at_once(
    control_plane: Plane, namespace: str
) -> None:
    connection = load_connection(control_plane.kubeconfig)
    async with (
        plain_client(control_plane) as client,
        candidate(connection, namespace, "a") as election,
    ):
        leadership = await election.lead()
        while leadership.is_held:
            patch = {"spec": {"holderIdentity": "thief"}}
            await client.patch(LEASES, "leader", patch, namespace)
            async with asyncio.timeout(QUICK.renew_deadline):
                await leadership.lost()
        assert election.holder == "thief"


@asynchronous
async def test_others_may_touch_the_lease(control_plane: Plane, namespace: str) -> None:
    async with (
        FaultyProxy(load_connection(control_plane.kubeconfig)) as proxy,
        plain_client(control_plane) as client,
        candidate(proxy.connection, namespace, "a") as election,
    ):
        leadership = await election.lead()
        for at in range(10):
            patch = {"metadata": {"labels": {"touched": str(at)}}}
            await client.patch(LEASES, "leader", patch, namespace)
            await proxy.arrivals("PUT", 2)
        assert leadership.is_held
        lease = await client.get(LEASES, "leader", namespace)
        assert lease.metadata.labels == {"touched": "9"}, "renewing keeps them"


@asynchronous
async def test_clocks_of_other_machines_do_not_matter(control_plane: Plane, namespace: str) -> None:
    connection = load_connection(control_plane.kubeconfig)
    for holder, renewed in (("past", "1970-01-01"), ("future", "2999-12-31")):
        async with (
            plain_client(control_plane) as client,
            LeaderElection(connection, holder, namespace, identity="a", settings=QUICK) as election,
        ):
            spec = LeaseSpec(
                holder_identity="dead",
                lease_duration_seconds=1,
                renew_time=f"{renewed}T00:00:00.000000Z",
                lease_transitions=6,
            )
            metadata = ObjectMeta(name=holder, namespace=namespace)
            await client.create(LEASES, Lease(metadata=metadata, spec=spec))
            started = asyncio.get_running_loop().time()
            leadership = await election.lead()
            assert asyncio.get_running_loop().time() - started >= 1.0, (
                "its duration, as seen from here"
            )
            assert leadership.fencing == 7


@asynchronous
async def test_a_process_that_was_stopped_knows_it_without_its_loop(
    control_plane: Plane, namespace: str
) -> None:
    now = [1_000.0]
    connection = load_connection(control_plane.kubeconfig)
    settings = LeaseSettings()
    async with candidate(
        connection, namespace, "a", settings=settings, clock=lambda: now[0]
    ) as election:
        leadership = await election.lead()
        now[0] += settings.renew_deadline - 0.001
        assert leadership.is_held
        now[0] += 0.001
        assert not leadership.is_held
        assert leadership.remaining == 0


@asynchronous
async def test_missing_rights_and_namespaces_are_raised(
    control_plane: Plane, namespace: str
) -> None:
    connection = load_connection(control_plane.kubeconfig)
    async with candidate(connection, "no-such-namespace", "a") as election:
        with pytest.raises(ObjectNotFound, match="no-such-namespace"):
            await election.lead()
    nobody = msgspec.structs.replace(connection, headers=(("Impersonate-User", "nobody"),))
    async with candidate(nobody, namespace, "a") as election:
        with pytest.raises(RequestForbidden, match='cannot get resource "leases"'):
            await election.lead()


def test_times_that_would_allow_two_leaders_are_refused() -> None:
    with pytest.raises(ArgosyError, match="retry_period < renew_deadline < duration"):
        LeaseSettings(duration=10, renew_deadline=10.0)
