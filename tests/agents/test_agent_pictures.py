"""What agents know of their machines, how long they know it, and what they draw from it."""

from __future__ import annotations

import numpy as np
import pytest
from serial_attempts import cell_of, take

from argosy.agents.api import Requirements
from argosy.agents.cache import CellFacts, NodesCache
from argosy.agents.learned import MOST_KINDS, LearnedStrategy
from argosy.agents.sampling import Sampler, sample_size
from argosy.cell import Cell
from argosy.model.effects import Sample, SamplingPipeline
from argosy.model.machines import Cluster, Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import (
    OPERATOR,
    AddMachine,
    DrainMachine,
    RelabelMachine,
    Transaction,
)
from argosy.testing.builders import GIB


def a_cache(cell: Cell, refresh: int = 0) -> NodesCache:
    return NodesCache(Cluster("", ""), cell, CellFacts(cell), refresh)


def cores(cache: NodesCache, *machines: int, now: int = 0, is_cut_off: bool = False) -> list[float]:
    """The free cores that an agent believes in; below zero: the machine takes nothing."""
    known = cache.sample(np.array(machines, np.int32), now, is_cut_off=is_cut_off)
    return [free / 1_000 if free >= 0 else -1 for free in known.free[:, 0].tolist()]


def amounts(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([1_000 * count, GIB], np.int64)


def test_a_picture_is_read_again_when_it_is_as_old_as_it_may_be() -> None:
    cell = cell_of(4)
    cache = a_cache(cell, refresh=100)
    assert cores(cache, 0, now=0) == [4]
    take(cell, 0, 1)
    assert cores(cache, 0, now=99) == [4]
    assert cores(cache, 0, now=100) == [3]
    assert cores(a_cache(cell), 0, now=1) == [3]


def test_an_agent_that_is_cut_off_keeps_its_picture_until_news_come_again() -> None:
    cell = cell_of(4)
    cache = a_cache(cell)
    assert cores(cache, 0, is_cut_off=True) == [4]
    take(cell, 0, 1)
    assert cores(cache, 0, now=10**9, is_cut_off=True) == [4]
    assert cores(cache, 0, now=10**9) == [3]
    assert cores(cache, 0, now=10**9, is_cut_off=True) == [3]


def test_what_is_reserved_is_not_free_and_never_a_debt() -> None:
    cache = a_cache(cell_of(4, 4))
    first, second = cache.reserve(1, 0, amounts(3)), cache.reserve(2, 0, amounts(3))
    assert cores(cache, 0, 1) == [0, 4]
    assert cache.reservations == 2
    cache.unreserve(first)
    assert cores(cache, 0, 1) == [1, 4]
    cache.unreserve(second)
    assert cores(cache, 0, 1) == [4, 4]
    assert cache.reservations == 0


def test_an_agent_knows_its_own_commits_at_once() -> None:
    cell = cell_of(4)
    cache = a_cache(cell, refresh=100)
    assert cores(cache, 0) == [4]
    cache.commit(cache.reserve(1, 0, amounts(3)))
    assert cores(cache, 0, now=50) == [1]
    assert cache.reservations == 0


def test_a_commit_is_judged_beside_the_reservations_of_others() -> None:
    cache = a_cache(cell_of(8))
    _, own, later = (cache.reserve(number, 0, amounts(number)) for number in (1, 2, 4))
    assert later.number == 4
    # Those that arrived before, or all.
    assert cache.fresh(0, own.number, own).free[0, 0] == 7_000
    assert cache.fresh(0, None, own).free[0, 0] == 3_000


def test_machines_that_drain_or_that_the_picture_does_not_show_take_nothing() -> None:
    cell = cell_of(4, 4)
    cache, old = a_cache(cell), a_cache(cell, refresh=100)
    assert cores(old, 0, 1) == [4, 4]
    cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0, draining=True),)))
    joins = AddMachine(Machine("m2", Resources(4_000, 64 * GIB)))
    cell.commit(Transaction(OPERATOR, machines=(joins,)))
    assert cores(cache, 0, 1, 2) == [-1, 4, 4]
    assert cores(old, 0, 1, 2, now=50) == [4, 4, -1]
    assert cores(old, 0, 1, 2, now=100) == [-1, 4, 4]


@pytest.mark.parametrize(
    ("share", "machines", "expected"), [(0.07, 100, 7), (0.04, 10, 1), (0.5, 3, 2), (1.0, 7, 7)]
)
def test_a_sample_is_a_share_rounded_up(share: float, machines: int, expected: int) -> None:
    assert sample_size(share, machines) == expected


def test_a_sample_says_what_became_of_every_machine_drawn() -> None:
    ssd = {"disk": "ssd"}
    cell = cell_of(4, 4, 4, 1, 4, m0=ssd, m1=ssd, m3=ssd, m4=ssd)
    cell.commit(Transaction(OPERATOR, machines=(DrainMachine(0, draining=True),)))
    sampler = Sampler(a_cache(cell), cell, Random(1))
    asked = Sample(Resources(2_000, GIB), 0, 1, ssd, "", {}, None)
    pipeline = SamplingPipeline(share=1.0, filters=("ResourcesFit",), scores=("ResourcesFit",))
    drawn = sampler.sample(asked, pipeline, 0, most=0, is_cut_off=False)
    assert sorted(drawn.machines.tolist()) == [1, 4]
    assert drawn.drawn == 5
    assert sorted(drawn.ruled_out.values()) == [1, 1, 1]
    assert drawn.ruled_out["cpu"] == 1
    few = sampler.sample(asked, pipeline, 0, most=3, is_cut_off=False)
    assert few.drawn == 3


def test_a_sampler_that_needs_several_rounds_looks_at_no_more_machines_than_it_may() -> None:
    cell = cell_of(4, 4, 4, 4, 4)
    sampler = Sampler(a_cache(cell), cell, Random(1))
    asked = Sample(Resources(2_000, GIB), 0, 1, {"disk": "ssd"}, "", {}, None)
    # Two at a time, of which none will do.
    pipeline = SamplingPipeline(share=0.4, filters=("ResourcesFit",))
    for most, expected in ((3, 3), (4, 4), (0, 5)):
        drawn = sampler.sample(asked, pipeline, 0, most=most, is_cut_off=False)
        assert (len(drawn.machines), drawn.drawn) == (0, expected)


def requirements(cpu: int) -> Requirements:
    return Requirements(Resources(cpu, GIB))


def test_a_quarter_of_what_learned_sampling_draws_is_not_known_to_fit() -> None:
    strategy, machines = LearnedStrategy(), np.arange(100, dtype=np.int32)
    known = machines[:50]
    strategy.learn(requirements(1), known, np.ones(50, np.bool_))
    drawn = strategy.draw(requirements(1), machines, 40, Random(1))
    assert len(set(drawn.tolist())) == 40
    assert int((drawn >= 50).sum()) == 10
    # Of a machine that did not fit when last drawn, no more is known.
    strategy.learn(requirements(1), known, np.zeros(50, np.bool_))
    drawn = strategy.draw(requirements(1), machines, 100, Random(1))
    assert len(drawn) == 100


def test_learned_sampling_forgets_the_kind_of_task_that_was_used_longest_ago() -> None:
    strategy, machines = LearnedStrategy(), np.arange(8, dtype=np.int32)
    only_last = np.arange(8) == 7
    for cpu in range(MOST_KINDS):
        strategy.learn(requirements(cpu), machines, only_last)
    # The first is used again, so the second is the oldest when one more comes.
    strategy.draw(requirements(0), machines, 1, Random(1))
    strategy.learn(requirements(MOST_KINDS), machines, only_last)

    def knows(cpu: int) -> bool:
        draws = (strategy.draw(requirements(cpu), machines, 1, Random(n)) for n in range(8))
        return all(drawn.tolist() == [7] for drawn in draws)

    assert knows(0)
    assert knows(2)
    assert not knows(1)


def test_labels_are_read_anew_when_a_machine_gets_others() -> None:
    cell = cell_of(4, 4)
    facts, both = CellFacts(cell), np.array([0, 1], np.int32)
    assert list(facts.labels("disk", both)) == ["", ""]
    cell.commit(Transaction(OPERATOR, machines=(RelabelMachine(1, {"disk": "ssd"}),)))
    assert list(facts.labels("disk", both)) == ["", "ssd"]
