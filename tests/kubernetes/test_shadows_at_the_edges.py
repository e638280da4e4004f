"""Shadows whose pods are deleted or whose engines fail, and jobs that are gone when they are to grow."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import call

import msgspec
import pytest
from test_growing_jobs import GrowthBench, batch_job
from test_shadow_session import Bench, pod
from test_shadow_steps import engine

from argosy.kubernetes import failures, kinds
from argosy.kubernetes.objects import Pod
from argosy.model.errors import ArgosyError
from argosy.service.kubernetes import job_growth
from argosy.service.kubernetes.shadow import session as session_module
from argosy.service.kubernetes.shadow.placements import PlacementRecord


def deleted(name: str) -> Pod:
    metadata = {"name": name, "uid": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    return kinds.PODS.decode(msgspec.json.encode({"metadata": metadata}))


def test_a_pod_that_was_deleted_did_not_end_by_itself() -> None:
    made = engine()
    made.end(deleted("a"))
    made.end(pod("b"))
    assert made.pods.remove_pod.mock_calls == [
        call("a", by_itself=False),
        call("b", by_itself=True),
    ]


def test_an_engine_that_fails_does_not_keep_the_others_from_settling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, did = Bench(monkeypatch), list[str]()

    async def fail(action: Any) -> None:
        raise ArgosyError("the fleet fails")

    async def do(action: Any) -> None:
        did.append("settled")

    for each in (fail, do):
        bench.session.engines.append(engine(cluster=SimpleNamespace(do=each)))
    asyncio.run(bench.session.settle())
    assert did == ["settled"]


def test_progress_names_every_engine_and_what_it_has_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(monkeypatch)
    for name, placed in (("one", 1_234), ("two", 0)):
        record = SimpleNamespace(waits=range(placed), advance=lambda now: None)
        bench.session.engines.append(engine(name=name, record=record))
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) > 1:
            raise asyncio.CancelledError

    monkeypatch.setattr(session_module.asyncio, "sleep", sleep)
    told: list[str] = []
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(bench.session.tell_progress(told.append))
    real = session_module.REAL
    assert told == [f"0 pods seen; {real} has placed 0, one 1,234, two 0"]
    assert slept == [5.0, 5.0]


def test_nobody_agrees_on_pods_that_one_alone_has_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch)
    record = PlacementRecord(100.0)
    bench.tell(None, pod("p"), at=1)
    bench.tell(pod("p"), pod("p", "m"), at=2)
    assert bench.session._agreement(record) is None
    record.put(pod("q"), "m", since=101.0)
    assert bench.session._agreement(record) is None
    record.put(pod("p"), "m", since=101.0)
    assert bench.session._agreement(record) == 1.0
    # It is the first node that counts.
    record.put(pod("p"), "n", since=101.0)
    assert bench.session._agreement(record) == 1.0


def test_a_job_that_is_gone_or_takes_too_long_is_looked_at_again_without_a_word() -> None:
    bench = GrowthBench(4)
    errors: list[Exception] = [
        failures.ObjectNotFound("PATCH it", "gone"),
        TimeoutError(),
    ]

    async def patch(*given: Any) -> None:
        raise errors.pop(0)

    bench.client.patch = patch
    for _ in range(2):
        asyncio.run(bench.growth._set(batch_job(), 5))
    assert (errors, bench.log) == ([], [])


def test_jobs_are_looked_at_only_by_who_may_write(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, looks, slept = GrowthBench(4), list[int](), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        bench.right = SimpleNamespace(is_held=len(slept) == 2)  # type: ignore[assignment]
        if len(slept) > 3:
            raise asyncio.CancelledError

    async def look() -> None:
        looks.append(len(slept))

    monkeypatch.setattr(job_growth.asyncio, "sleep", sleep)
    bench.growth._look = look  # type: ignore[method-assign]
    bench.growth._interval = 7.0
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(bench.growth._look_on())
    assert (looks, slept) == ([2], [7.0] * 4)


def test_a_request_to_grow_a_job_ends_with_the_right_to_it() -> None:
    bench = GrowthBench(4)
    bench.right = SimpleNamespace(is_held=True, remaining=0.01)  # type: ignore[assignment]
    asked: list[Any] = []

    async def patch(*given: Any) -> None:
        asked.append(given)
        await asyncio.Event().wait()

    bench.client.patch = patch
    asyncio.run(asyncio.wait_for(bench.growth._set(batch_job(), 5), 10))
    assert (len(asked), bench.log) == (1, [])


def test_nobody_missed_a_pod_that_nobody_could_have_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(monkeypatch, pod("before", "m"))
    shadow = engine(record=PlacementRecord(100.0))
    shadow.show = lambda pod, is_fixed: None
    shadow.end = lambda pod: None
    bench.session.engines.append(shadow)
    bench.tell(None, pod("gated", schedulingGates=[{"name": "later"}]), at=1)
    bench.tell(pod("gated"), None, at=2)
    bench.tell(pod("before", "m"), None, at=3)
    assert [row.missed for row in bench.session.report().schedulers] == [0, 0]
    bench.tell(None, pod("p"), at=4)
    bench.tell(pod("p"), None, at=5)
    assert [row.missed for row in bench.session.report().schedulers] == [1, 1]
