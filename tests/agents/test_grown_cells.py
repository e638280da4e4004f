"""What an agent that reads its machines now and then knows, when a resource has come since."""

from __future__ import annotations

import numpy as np
from agent_caches import a_cache, amounts
from serial_attempts import cell_of

from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
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
    assert found.shape == (2, 2), "the picture is the old one"
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
