"""Leases between two requests: who held them, and what is still under way when they are given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kube_cases import asynchronous
from test_lease_steps import AWAY, Cluster, cluster, nothing

from argosy.kubernetes.leases import lease_settings

__all__ = ["cluster"]

_real_sleep = asyncio.sleep


@pytest.mark.parametrize(("said", "holder"), [(None, ""), ("", ""), ("b", "b")])
def test_a_lease_that_names_no_holder_has_none(
    cluster: Cluster, said: str | None, holder: str
) -> None:
    @asynchronous
    async def go() -> None:
        cluster.put(holder_identity=said, lease_duration_seconds=9)
        election = cluster.candidate()
        await election._look()
        assert election.holder == holder

    go()


def test_a_lease_is_given_up_when_no_renewal_is_under_way_any_more(cluster: Cluster) -> None:
    @asynchronous
    async def go() -> None:
        election, steps = cluster.candidate(), list[str]()
        await election.lead()
        replace = cluster.replace

        async def slow(kind: Any, lease: Any) -> Any:
            steps.append(f"begins for {lease.spec.holder_identity or 'nobody'}")
            try:
                if lease.spec.holder_identity:
                    await asyncio.get_running_loop().create_future()
                return await replace(kind, lease)
            finally:
                steps.append("ends")

        cluster.replace = slow  # type: ignore[method-assign]
        cluster.meanwhile = [nothing]
        while not steps:
            await _real_sleep(0)
        await election.release()
        assert steps == ["begins for a", "ends", "begins for nobody", "ends"]
        assert cluster.spec.holder_identity == ""

    go()


def test_whoever_was_cancelled_while_giving_up_does_not_renew_on(cluster: Cluster) -> None:
    @asynchronous
    async def go() -> None:
        election = cluster.candidate()
        leadership = await election.lead()
        cluster.take_asked()
        cluster.troubles = [AWAY]
        await election.release()
        assert not leadership.is_held
        assert leadership.remaining == 0.0
        cluster.meanwhile = [nothing] * 3
        for _ in range(9):
            await _real_sleep(0)
        assert cluster.take_asked() == ["replace"]

    go()


@pytest.mark.parametrize(("duration", "deadline", "period"), [(15, 10.0, 2.0), (60, 40.0, 8.0)])
def test_other_durations_have_the_usual_proportions(
    duration: int, deadline: float, period: float
) -> None:
    made = lease_settings(duration)
    assert (made.duration, made.renew_deadline, made.retry_period) == (duration, deadline, period)
