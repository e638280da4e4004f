"""Leases against an API server in memory."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from kube_cases import asynchronous
from small_api_server import SmallApiServer

from argosy.kubernetes import failures as failed
from argosy.kubernetes.kinds import LEASES
from argosy.kubernetes.leases import LeaderElection, Leadership, LeaseSettings

QUICK = LeaseSettings(duration=2, renew_deadline=0.3, retry_period=0.02)
#: Never lost because the computer is busy.
PATIENT = LeaseSettings(duration=60, renew_deadline=40.0, retry_period=0.02)


@pytest.mark.parametrize(
    ("duration", "deadline", "period"),
    [(2, 2.0, 0.1), (2, 0.1, 0.1), (2, 0.1, 0.2), (2, 1.0, 0.0), (2, 3.0, 0.1)],
)
def test_times_of_a_lease_fit_together(duration: int, deadline: float, period: float) -> None:
    with pytest.raises(Exception, match="do not fit together"):
        LeaseSettings(duration=duration, renew_deadline=deadline, retry_period=period)


@asynchronous
async def test_a_lease_is_held_renewed_given_up_and_taken() -> None:
    def spec() -> dict[str, Any]:
        found = api.document(LEASES, "l")
        assert found is not None
        return dict(found["spec"])

    def candidate(name: str) -> LeaderElection:
        return LeaderElection(
            api.connection, "l", "default", identity=name, settings=PATIENT, random=Random(1)
        )

    async with SmallApiServer() as api:
        async with candidate("a") as election:
            leadership = await election.lead()
            assert leadership.is_held
            assert leadership.fencing == 0
            assert await election.lead() is leadership
            assert (spec()["holderIdentity"], spec()["leaseDurationSeconds"]) == ("a", 60)
            assert spec()["leaseTransitions"] == 0
            taken, renewed = spec()["acquireTime"], spec()["renewTime"]
            while spec()["renewTime"] == renewed:
                await asyncio.sleep(0.005)
            assert spec()["acquireTime"] == taken
            assert spec()["leaseTransitions"] == 0
        assert not leadership.is_held
        assert (spec()["holderIdentity"], spec()["leaseDurationSeconds"]) == ("", 1)
        async with candidate("b") as election:
            leadership = await election.lead()
            assert (leadership.fencing, election.holder) == (1, "b")
            assert spec()["leaseTransitions"] == 1
            assert spec()["acquireTime"] != taken
            # Somebody touched it, who did not take it: nothing is lost.
            touched = api.document(LEASES, "l") or {}
            api.put(LEASES, {**touched, "metadata": {**touched["metadata"], "labels": {"x": "y"}}})
            version = (api.document(LEASES, "l") or {})["metadata"]["resourceVersion"]
            while (api.document(LEASES, "l") or {})["metadata"]["resourceVersion"] == version:
                await asyncio.sleep(0.005)
            assert leadership.is_held
            # Without the object there is no right.
            api.remove(LEASES, "l")
            await leadership.lost()
            assert not leadership.is_held


@asynchronous
async def test_a_right_counts_from_before_the_request_that_gave_it() -> None:
    """However slow the answers are: others count from when they see the lease written."""
    now = 100.0
    settings = LeaseSettings(duration=60, renew_deadline=40.0, retry_period=30.0)

    def slowly(method: str, path: str) -> None:
        nonlocal now
        now += 7.0

    async with (
        SmallApiServer() as api,
        LeaderElection(
            api.connection, "l", "default", identity="a", settings=settings, clock=lambda: now
        ) as election,
    ):
        api.faults.append(slowly)
        leadership = await election.lead()
        # One request to look, one to write.
        assert (now, leadership.remaining) == (114.0, 40.0 - 14.0)
        assert await election._try_to_renew(leadership)
        assert (now, leadership.remaining) == (121.0, 40.0 - 7.0)


@asynchronous
async def test_a_leader_whose_server_is_away_loses_its_right_in_time() -> None:
    lost: list[object] = []
    async with (
        SmallApiServer() as api,
        LeaderElection(
            api.connection, "l", "default", identity="a", settings=QUICK, on_lost=lost.append
        ) as election,
    ):
        leadership = await election.lead()
        api.faults.append(lambda method, path: (500, "InternalError"))
        await leadership.lost()
        assert not leadership.is_held
        assert lost == [leadership]


@asynchronous
async def test_who_may_not_have_a_lease_is_told() -> None:
    async with (
        SmallApiServer() as api,
        LeaderElection(api.connection, "l", "default", identity="a", settings=QUICK) as election,
    ):
        api.faults.append(lambda method, path: (403, "Forbidden"))
        with pytest.raises(failed.RequestForbidden):
            await election.lead()


# What is asked and told in words.


def test_a_right_lasts_until_its_time_and_not_beyond() -> None:
    now = 10.0
    right = Leadership(3, 12.0, lambda: now)
    assert (right.fencing, right.is_held, right.remaining) == (3, True, 2.0)
    now = 12.0
    assert (right.is_held, right.remaining) == (False, 0.0)
    right._extend(15.0)
    assert (right.is_held, right.remaining) == (True, 3.0)
    right._end()
    assert (right.is_held, right.remaining) == (False, 0.0)
