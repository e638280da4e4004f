"""Parts of the flow engines on tables written by hand: what paths cost, and which arcs are added."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from argosy.engines.families.flow.adding import _add_preferences
from argosy.engines.families.flow.policy import Preferences, grouped
from argosy.engines.families.flow.pools import NO_ARC, Pools
from argosy.engines.families.flow.pricing import FAR, _onward_cost, _task_of, entry_costs


def priced(**changes: Any) -> Any:
    """A pool of five machines: free, half full, full, without room, and without an arc. The cost of a
    unit rises with the flow."""
    pools = SimpleNamespace(
        arcs=np.array([[10, 11, 12, 13, NO_ARC]]),
        rooms=np.array([[2, 2, 2, 0, 2]]),
        costs=np.array([[100, 200, 300, 400, 500]]),
        steps=np.array([[1, 7, 1, 1, 1]]),
        by_number={0: SimpleNamespace(links=np.array([30, 31]))},
        topology=grouped(np.array([0, 0, 1, 1, 1])),
        _network=SimpleNamespace(costs=lambda arcs: np.zeros(len(arcs), np.int64)),
    )
    pools.reached_from = partial(Pools.reached_from, cast(Pools, pools))
    flows = {10: 0, 11: 1, 12: 2, 13: 0, 20: 0, 21: 1}
    graph = SimpleNamespace(
        pools=pools,
        cluster=SimpleNamespace(machines=5),
        classes={"pool": np.array([0]), "pool_cost": np.array([1_000])},
        network=SimpleNamespace(flows=lambda arcs: np.array([flows[int(a)] for a in arcs])),
        preferences={},
    )
    for name, value in changes.items():
        setattr(graph, name, value)
    return graph


def test_a_path_costs_the_next_unit_and_full_machines_are_far() -> None:
    assert entry_costs(priced(), 0).tolist() == [1_100, 1_207, FAR, FAR, FAR]


def test_preferences_lead_past_the_pool_if_they_are_cheaper() -> None:
    # To machine 0 for more than the pool asks, to machine 2 directly, and to the first rack.
    wanted = (np.array([20, 20, 20]), np.array([0, 2, -1]), np.array([2_000, 40, 50]))
    found = entry_costs(priced(preferences={0: wanted}), 0).tolist()
    assert found == [150, 257, 40, FAR, FAR]


def test_the_last_unit_through_the_pool_costs_one_step_less_than_the_next() -> None:
    assert [_onward_cost(priced(), 0, machine) for machine in range(5)] == [100, 200, 301, 400, 500]
    used = {0: (np.array([21]), np.array([1]), np.array([5]))}
    unused = {0: (np.array([20]), np.array([1]), np.array([5]))}
    assert _onward_cost(priced(preferences=used), 0, 1) == 0
    assert _onward_cost(priced(preferences=unused), 0, 1) == 200


def test_the_last_task_of_a_class_on_a_machine_stands_for_it() -> None:
    graph: Any = SimpleNamespace(
        classes={"first": np.array([0, 1]), "rows": np.array([1, 4])},
        tasks={"task_class": np.array([0, 1, 1, 2, 1])},
    )
    where = np.array([3, 3, 5, 3, -1])
    assert _task_of(graph, 1, where, 3) == 1
    assert _task_of(graph, 1, where, 5) == 2
    assert _task_of(graph, 1, where, 9) == 2
    assert _task_of(graph, 1, where, None) == 2
    assert _task_of(graph, 1, np.full(5, -1), 3) == -1


def test_arcs_of_preferences_lead_to_machines_that_may_be_used_and_to_racks() -> None:
    added: list[Any] = []
    graph: Any = SimpleNamespace(
        classes={"pool": np.array([0, 1]), "vertex": np.array([70, 71])},
        pools=SimpleNamespace(
            allowed=np.array([[True, True, False], [True, True, True]]),
            by_number=[None, SimpleNamespace(aggregators=np.array([90, 91]))],
        ),
        cluster=SimpleNamespace(
            usable=np.array([True, False, True]), vertices=np.array([50, 51, 52])
        ),
        settings=SimpleNamespace(migration=1_000),
        network=SimpleNamespace(
            add_arcs=lambda tails, heads, capacity, costs: added.append(
                (tails.tolist(), heads.tolist(), capacity, costs.tolist())
            )
        ),
    )
    # The second task is of the second class. Machine 1 is down; class 0 may not use machine 2.
    wanted = Preferences(
        tasks=np.array([1, 0, 0, 0, 1, 1]),
        places=np.array([2, 0, 1, 2, 1, 1]),
        costs=np.array([1, 2, 3, 4, 5, 6]),
        is_aggregator=np.array([False, False, False, False, True, False]),
    )
    _add_preferences(graph, wanted, np.array([0, 1]))
    assert added == [([70, 71, 71], [50, 52, 91], 1, [1_002, 1_001, 1_005])]
    none = Preferences(
        tasks=np.array([0]),
        places=np.array([1]),
        costs=np.array([1]),
        is_aggregator=np.array([False]),
    )
    _add_preferences(graph, none, np.array([0, 1]))
    assert len(added) == 1
