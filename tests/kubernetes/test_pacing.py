"""Back-off, and a limit that heeds the server."""

from __future__ import annotations

import asyncio
from random import Random

from kube_cases import asynchronous

from argosy.kubernetes.pacing import JitteredBackoff, RequestLimiter


def test_delays_are_drawn_below_a_bound_that_doubles() -> None:
    bounds = [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    rounds = []
    for seed in range(200):
        backoff = JitteredBackoff(0.1, 1.0, Random(seed))
        rounds.append([backoff.next() for _ in bounds])
    for bound, drawn in zip(bounds, zip(*rounds, strict=True), strict=True):
        assert max(drawn) <= bound
        assert max(drawn) > 0.9 * bound
        assert min(drawn) < 0.1 * bound


def test_success_makes_delays_short_again() -> None:
    backoff = JitteredBackoff(0.1, 1e9, Random(1))
    assert max(backoff.next() for _ in range(2000)) > 1e8
    backoff.reset()
    assert backoff.next() <= 0.1
    assert 3.0 <= backoff.spread(3.0) <= 3.1


@asynchronous
async def test_requests_enter_in_the_order_in_which_they_asked() -> None:
    limiter = RequestLimiter(2)
    entered: list[int] = []

    async def request(number: int) -> None:
        async with limiter.turn():
            entered.append(number)
            assert limiter.under_way <= 2
            await asyncio.sleep(0)

    await asyncio.gather(*(request(number) for number in range(10)))
    assert entered == list(range(10))
    assert limiter.under_way == 0


@asynchronous
async def test_a_request_that_is_cancelled_leaves_its_place_to_the_next() -> None:
    limiter = RequestLimiter(1)
    await limiter.enter()
    first, second = (asyncio.ensure_future(limiter.enter()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    limiter.leave()
    await second
    limiter.leave()
    # Admitted and cancelled in the same turn of the loop.
    await limiter.enter()
    third, fourth = (asyncio.ensure_future(limiter.enter()) for _ in range(2))
    await asyncio.sleep(0)
    limiter.leave()
    third.cancel()
    await fourth
    assert limiter.under_way == 1


@asynchronous
async def test_the_limit_halves_once_per_round_and_grows_again() -> None:
    limiter = RequestLimiter(16)
    for _ in range(16):
        await limiter.enter()
    for _ in range(16):
        limiter.throttled()
        limiter.leave()
    assert limiter.width == 8, "one burst of refusals counts once"
    for _ in range(40):
        await limiter.enter()
        limiter.throttled()
        limiter.leave()
    assert limiter.width == 1, "never none"
    for _ in range(16 * 16):
        limiter.answered()
    assert limiter.width == 16
