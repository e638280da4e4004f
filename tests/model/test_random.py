"""Random streams are a pure function of seed and name, and the same everywhere."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy._core import philox_block
from argosy.model.random import Random, exact_exp, exact_log


def test_philox_gives_the_published_known_answer() -> None:
    assert philox_block(0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)


def test_one_seed_gives_one_stream() -> None:
    assert [Random(3).bits() for _ in range(2)] == [Random(3).bits()] * 2
    assert Random(3).bits() != Random(4).bits()


def test_a_child_depends_on_its_name_and_not_on_what_was_drawn_before() -> None:
    parent = Random(5)
    before = parent.child("network").bits()
    parent.bits()
    assert parent.child("network").bits() == before
    assert parent.child("faults").bits() != before


def test_first_draws_are_pinned_for_every_platform() -> None:
    stream = Random(1)
    assert stream.bits() == 16326800385650405095
    assert [stream.below(1000) for _ in range(5)] == [913, 673, 706, 358, 206]
    drawn = Random(2)
    assert [drawn.uniform().hex(), drawn.exponential().hex(), drawn.normal().hex()] == [
        "0x1.2873d78ae5ff5p-1",
        "0x1.0214a811bc79ap-1",
        "-0x1.bce418cf06538p+0",
    ]


@given(st.integers(1, 2**62), st.integers(0, 2**63))
def test_below_stays_below(bound: int, seed: int) -> None:
    assert 0 <= Random(seed).below(bound) < bound


def test_below_is_even() -> None:
    stream, counts = Random(9), [0] * 6
    for _ in range(60_000):
        counts[stream.below(6)] += 1
    assert max(counts) - min(counts) < 600


@pytest.mark.parametrize("bound", [0, -1])
def test_an_empty_range_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Random(1).below(bound)


@given(st.floats(1e-300, 1e300))
def test_log_agrees_with_the_platform_to_the_last_bits(x: float) -> None:
    assert math.isclose(exact_log(x), math.log(x), rel_tol=1e-15, abs_tol=1e-15)


@given(st.floats(-700, 700))
def test_exp_agrees_with_the_platform_to_the_last_bits(x: float) -> None:
    assert math.isclose(exact_exp(x), math.exp(x), rel_tol=2e-15)


def test_distributions_have_their_means() -> None:
    stream, n = Random(11), 50_000
    assert abs(sum(stream.exponential() for _ in range(n)) / n - 1) < 0.02
    normals = [stream.normal() for _ in range(n)]
    assert abs(sum(normals) / n) < 0.02
    assert abs(sum(x * x for x in normals) / n - 1) < 0.03
    pareto = [stream.bounded_pareto(1, 100, 1.5) for _ in range(n)]
    assert min(pareto) >= 1
    assert max(pareto) <= 100
    # E[X] = a/(a-1) L^a (L^(1-a) - H^(1-a)) / (1 - (L/H)^a), with L = 1, H = 100, a = 1.5.
    assert abs(sum(pareto) / n - 3 * (1 - 100**-0.5) / (1 - 100**-1.5)) < 0.1


def test_many_exponential_times_are_those_drawn_one_by_one() -> None:
    one, many = Random(4), Random(4)
    assert many.exponentials(5) == [one.exponential() for _ in range(5)]
    assert many.bits() == one.bits()
    with pytest.raises(ValueError, match="a count of at least 0"):
        many.exponentials(-1)
