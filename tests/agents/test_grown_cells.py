"""What an agent that reads its machines now and then knows, when a resource has come since."""

from __future__ import annotations

import numpy as np
import pytest
from agent_caches import a_cache, amounts
from serial_attempts import cell_of

from argosy.agents.sampling import DrawnSample, Sampler, merged
from argosy.cell import Cell
from argosy.model.effects import Sample, SamplingPipeline
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, DrainMachine, Transaction
from argosy.testing.builders import GIB

BOTH = np.array([0, 1], np.int32)


def test_a_commit_that_names_a_resource_unknown_to_the_picture_takes_what_is_known() -> None:
    cell = cell_of(4, 4)
    cache = a_cache(cell, refresh=1_000)
    before = cache.sample(BOTH, 0, is_cut_off=False).free[:, 0].tolist()
    gpus = Machine("g", Resources(1_000, GIB, {"gpu": 2}))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(gpus),)))
    assert cell.dimensions == ("cpu", "memory", "gpu")
    wide = np.array([1_000, GIB, 1], np.int64)
    cache.commit(cache.reserve(1, 1, wide))
    found = cache.sample(BOTH, 999, is_cut_off=False).free
    assert found[:, 0].tolist() == [before[0], before[1] - 1_000]
    assert found[:, 2].tolist() == [0, 0], "the picture is the old one"
    again = cache.sample(BOTH, 1_000, is_cut_off=False).free
    assert again.shape == (2, 3)
    # The cell was never told of the commit.
    assert again[:, 0].tolist() == before


def test_a_commit_of_fewer_resources_than_the_picture_has_leaves_the_others() -> None:
    cell = cell_of(4, 4)
    gpus = Machine("g", Resources(4_000, GIB, {"gpu": 2}))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(gpus),)))
    cache = a_cache(cell, refresh=1_000)
    last = np.array([2], np.int32)
    before = cache.sample(last, 0, is_cut_off=False).free.tolist()
    assert before[0][2] == 2
    cache.commit(cache.reserve(1, 2, amounts(1_000, 1)))
    found = cache.sample(last, 1, is_cut_off=False).free.tolist()
    assert found == [[before[0][0] - 1_000, before[0][1] - 1, 2]]


def gpus_come(cell: Cell) -> None:
    machine = Machine("g", Resources(4_000, 64 * GIB, {"gpu": 2}))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))


@pytest.mark.parametrize("strategy", ["Random", "RoundRobin"])
@pytest.mark.parametrize("extras", [{}, {"gpu": 1}])
@pytest.mark.parametrize(("refresh", "is_cut_off"), [(0, False), (0, True), (100, False)])
def test_machines_are_drawn_beside_what_was_reserved_before_a_resource_came(
    strategy: str, extras: dict[str, int], refresh: int, is_cut_off: bool
) -> None:
    cell = cell_of(4, 4, 4)
    cache = a_cache(cell, refresh=refresh)
    sampler = Sampler(cache, cell, Random(1))
    asked = Sample(Resources(1_000, GIB, extras), 4, 1)
    pipeline = SamplingPipeline(strategy=strategy)

    def drawn(now: int) -> DrawnSample:
        return sampler.sample(asked, pipeline, now, most=0, is_cut_off=is_cut_off)

    drawn(0)
    cell.commit(Transaction(OPERATOR, machines=(DrainMachine(2),)))
    own = cache.reserve(1, 0, amounts(1_000))
    cache.reserve(2, 0, amounts(500))
    gpus_come(cell)
    found = drawn(99)
    is_old = refresh > 0 or is_cut_off
    rows = dict(zip(found.machines.tolist(), found.free.tolist(), strict=True))
    known = {0: [2_500, 62 * GIB, 0], 1: [4_000, 64 * GIB, 0]}
    expected = {} if extras else known
    if is_old:
        # The picture shows neither that the third machine drains nor the fourth.
        expected |= {} if extras else {2: [4_000, 64 * GIB, 0]}
        reasons = {"gpu": 3, "down": 1} if extras else {"down": 1}
    else:
        expected |= {3: [4_000, 64 * GIB, 2]}
        reasons = {"gpu": 2, "down": 1} if extras else {"down": 1}
    assert rows == expected
    assert (found.drawn, found.ruled_out) == (4, reasons)
    assert cache.fresh(0, None, own).free.tolist() == [[3_500, 63 * GIB, 0]]


def test_shards_may_draw_before_and_after_a_resource_came() -> None:
    cell = cell_of(4, 4)
    caches = [a_cache(cell, shard=(number, 2)) for number in (0, 1)]
    asked, parts = Sample(Resources(1_000, GIB), 2, 1), []
    for cache in caches:
        sampler = Sampler(cache, cell, Random(1))
        parts.append(
            sampler.sample(asked, SamplingPipeline(), 0, most=0, is_cut_off=False, parts=2)
        )
        if len(parts) == 1:
            gpus_come(cell)
    assert [part.free.shape for part in parts] == [(1, 2), (1, 3)]
    for order in (parts, parts[::-1]):
        both = merged(order)
        assert both.free.tolist() == [[4_000, 64 * GIB, 0]] * 2
        assert both.machines.tolist() == [part.machines[0] for part in order]
