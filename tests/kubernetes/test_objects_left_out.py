"""Objects that a watch cannot read, and how wide a limit is: what later news make of them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from kube_cases import asynchronous
from test_watch_steps import Sender, end_of_initial, line, told

from argosy.kubernetes import failures as failed
from argosy.kubernetes.pacing import RequestLimiter

_real_sleep = asyncio.sleep


@pytest.fixture(autouse=True)
def delays(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(seconds: float) -> None:
        await _real_sleep(0)

    monkeypatch.setattr("argosy.kubernetes.watching.asyncio.sleep", sleep)


def odd(type_: str, name: str, version: int) -> bytes:
    """A line whose object cannot be read."""
    metadata = {"name": name, "namespace": "s", "resourceVersion": str(version)}
    document: dict[str, Any] = {"type": type_, "object": {"metadata": metadata, "spec": 7}}
    return msgspec.json.encode(document) + b"\n"


@asynchronous
async def test_what_is_gone_when_all_is_read_again_is_not_missing_any_more() -> None:
    first = [odd("ADDED", "a", 1), odd("ADDED", "b", 2), end_of_initial(3)]
    gone = failed.ResourceVersionGone("r", "p")
    again = [odd("ADDED", "b", 2), line("ADDED", "c", 4), end_of_initial(5)]
    watch, changes = await told(Sender(first, gone, again), 4)
    assert list(watch.unreadable) == [("s", "b")]
    assert changes == ["added c"]
    assert (watch.relists, watch.resource_version) == (1, "5")


@asynchronous
async def test_what_can_be_read_or_is_deleted_is_not_missing_any_more() -> None:
    first = [odd("ADDED", name, at) for at, name in enumerate("abc", 1)] + [end_of_initial(4)]
    second = [
        line("MODIFIED", "a", 5, namespace="s"),
        line("DELETED", "b", 6, namespace="s"),
        line("ADDED", "d", 7, namespace="s"),
        odd("MODIFIED", "d", 8),
    ]
    watch, changes = await told(Sender(first, second), 3)
    assert list(watch.unreadable) == [("s", "c"), ("s", "d")]
    assert list(watch.objects) == [("s", "a")]
    assert changes == ["added a", "added d", "deleted d"]
    assert watch.resource_version == "8"


def test_a_limit_widens_by_one_with_each_round_of_answers() -> None:
    limiter = RequestLimiter(4)
    # Answers before the first refusal are no credit for later.
    for _ in range(3):
        limiter.answered()
    for _ in range(2):
        limiter.throttled()
    assert limiter.width == 1
    widths = []
    for _ in range(8):
        limiter.answered()
        widths.append(limiter.width)
    assert widths == [2, 2, 2, 3, 3, 3, 4, 4]


@asynchronous
async def test_answers_to_what_was_sent_before_do_not_narrow_a_limit_again() -> None:
    limiter = RequestLimiter(16)
    for _ in range(4):
        await limiter.enter()
    widths = []
    for answer in (limiter.throttled, *[limiter.answered] * 3, *[limiter.throttled] * 2):
        answer()
        widths.append(limiter.width)
    # Four were under way: their answers say nothing, whatever they are.
    assert widths == [8, 8, 8, 8, 8, 4]


@asynchronous
async def test_who_waits_is_let_in_as_soon_as_a_limit_widens() -> None:
    limiter = RequestLimiter(4)
    for _ in range(2):
        limiter.throttled()
    waiting = [asyncio.ensure_future(limiter.enter()) for _ in range(4)]
    under_way = []
    for _ in range(8):
        await _real_sleep(0)
        under_way.append(limiter.under_way)
        limiter.answered()
    assert under_way == [1, 2, 2, 2, 3, 3, 3, 4]
    await asyncio.gather(*waiting)
