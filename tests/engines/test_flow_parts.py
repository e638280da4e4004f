"""Parts of the flow engines on networks made by hand: what paths cost, and which arcs are added."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import flow_bench
import numpy as np

from argosy.engines.families.flow.adding import _add_preferences
from argosy.engines.families.flow.policy import Preferences
from argosy.engines.families.flow.pools import NO_ARC
from argosy.model.resources import Resources
from argosy.model.tasks import first_tasks
from argosy.solvers.flow import FlowNetwork
from argosy.testing.builders import cell


class Bench:
    """Five machines in two racks, and a pool with one class of three tasks, which run at least cost: the
    machines are then free, half full, full, without room, and without an arc."""

    def __init__(self) -> None:
        self.network = network = FlowNetwork()
        self.sink = network.add_vertex()
        self.machines = network.add_vertices(np.zeros(5, np.int64))
        network.add_arcs(self.machines, self.sink, 10, 0)
        self.roster = network.roster(1, reschedules=True, migration=1)
        self.roster.add_machines(self.machines)
        self.roster.add_owner()
        pool = network.add_vertex()
        self.racks = network.add_vertices(np.zeros(2, np.int64))
        self.roster.open_pool(0, pool, np.array([1]), False)
        links = network.add_arcs(np.array([pool, pool]), self.racks, 10, 0)
        self.above = np.array([0, 0, 1, 1, 1])
        self.roster.add_aggregators(0, self.racks, np.array([-1, -1]), np.array([0, 1]), links)
        rooms, costs, steps = [2, 2, 2, 0], [300, 200, 100, 400], [1, 7, 1, 1]
        tails = self.racks[self.above[:4]]
        arcs = network.add_arcs(tails, self.machines[:4], rooms, costs, steps)
        self.tables = (
            np.append(arcs, np.int32(NO_ARC))[None, :],
            np.array([[*rooms, 2]]),
            np.array([[*costs, 500]]),
            np.array([[*steps, 1]]),
        )
        self.task_class = self.add_class(0, 3)

    def add_class(self, job: int, tasks: int) -> int:
        """A class of a job's tasks, whose way to its pool costs 1,000."""
        self.roster.add_job(job, tasks, self.sink, 0)
        rows = self.roster.enter(first_tasks(job, tasks), 0)
        one = np.array([1])
        classes = self.roster.add_classes(
            one * job,
            one * 0,
            one * 0,
            one * 0,
            one * 100_000,
            one * tasks,
            np.array([False]),
            rows,
            np.full(tasks, 999),
            0,
            0,
        )
        return int(classes[0])

    def prefer(self, task_class: int, vertex: int, cost: int) -> None:
        self.network.add_arc(int(self.roster.classes("vertex")[task_class]), vertex, 1, cost)

    def solve(self) -> None:
        self.network.balance(self.sink)
        assert self.network.solve().is_optimal

    def entries(self, task_class: int) -> dict[int, int]:
        machines, costs = self.roster.entries(task_class, self.above, *self.tables)
        return dict(zip(machines.tolist(), costs.tolist(), strict=True))

    def onward(self, task_class: int, machine: int) -> int:
        return self.roster.second_best(task_class, machine, self.above, *self.tables)[1]


def test_a_path_costs_the_next_unit_and_full_machines_are_far() -> None:
    bench = Bench()
    bench.solve()
    assert bench.entries(bench.task_class) == {0: 1_300, 1: 1_207}


def test_preferences_lead_past_the_pool_if_they_are_cheaper() -> None:
    bench = Bench()
    choosy = bench.add_class(1, 1)
    bench.prefer(choosy, int(bench.machines[0]), 2_000)
    bench.prefer(choosy, int(bench.machines[2]), 40)
    bench.prefer(choosy, int(bench.racks[0]), 50)
    bench.solve()
    assert bench.entries(choosy) == {0: 350, 1: 257, 2: 40}
    assert bench.entries(bench.task_class) == {0: 1_300, 1: 1_207}


def test_the_last_unit_through_the_pool_costs_one_step_less_than_the_next() -> None:
    bench = Bench()
    choosy = bench.add_class(1, 1)
    bench.prefer(choosy, int(bench.machines[2]), 40)
    bench.prefer(choosy, int(bench.machines[1]), 60)
    bench.solve()
    found = [bench.onward(bench.task_class, machine) for machine in range(5)]
    assert found == [300, 200, 101, 400, 500]
    # It went to machine 2 directly, and would go to machine 1 through its pool as others do.
    assert [bench.onward(choosy, machine) for machine in (1, 2)] == [200, 0]


def test_the_last_task_of_a_class_on_a_machine_stands_for_it() -> None:
    roster = Bench().roster
    roster.add_job(1, 5, 0, 0)
    first = int(roster.enter(first_tasks(1, 5), 0)[0])
    one, zeros = np.ones(3, np.int64), np.zeros(3, np.int64)
    # The fourth task is of another class than those around it.
    classes = roster.add_classes(
        one,
        zeros,
        zeros,
        zeros,
        zeros,
        np.array([1, 3, 1]),
        np.zeros(3, np.bool_),
        first + np.array([0, 1, 2, 4, 3]),
        np.zeros(5, np.int64),
        0,
        0,
    )
    mine = int(classes[1])
    where = np.full(first + 5, -1)
    assert roster.last_task(mine, where, 3) == -1
    where[first:] = [3, 3, 5, 3, -1]
    found = [roster.last_task(mine, where, machine) - first for machine in (3, 5, 9, -1)]
    assert found == [1, 2, 2, 2]


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


def test_a_pool_that_takes_the_number_of_another_starts_from_nothing() -> None:
    bench = flow_bench.Bench(cell(3))
    pools = bench.graph.pools
    for cpu in range(64):
        pools.get(Resources(cpu, 1), {}, bench.view)
    for matrix in (pools.arcs, pools.rooms, pools.costs, pools.steps):
        matrix[:] = 7
    pools.clear()
    assert len(pools) == 64
    pools.get(Resources(64, 1), {}, bench.view)
    pools.clear()
    assert len(pools) == 0
    pool = pools.get(Resources(100, 1), {"arch": "unknown"}, bench.view)
    assert 0 <= pool.number < 65
    assert pools.requests[pool.number].tolist() == [100, 1]
    assert pools.allowed[pool.number].tolist() == [False] * 3
    assert pools.arcs[pool.number].tolist() == [NO_ARC] * 3
    for matrix in (pools.rooms, pools.costs, pools.steps):
        assert matrix[pool.number].tolist() == [0] * 3


def test_pools_differ_by_request_attributes_and_whether_they_preempt() -> None:
    bench = flow_bench.Bench(cell(2))
    small, view = Resources(1, 1), bench.view
    plain = bench.graph.pools.get(small, {}, view)
    assert bench.graph.pools.get(Resources(1, 1), {}, view, preempts=True) is plain
    others = [
        bench.graph.pools.get(Resources(1, 2), {}, view),
        bench.graph.pools.get(small, {"a": "1", "b": "2"}, view),
        bench.graph.pools.get(small, {}, view, preempts=False),
        bench.graph.pools.get(Resources(1, 1, {"gpu": 1}), {}, view),
        bench.graph.pools.get(Resources(1, 1, {"gpu": 2}), {}, view),
    ]
    assert len({pool.number for pool in [plain, *others]}) == 6
    assert bench.graph.pools.get(Resources(1, 1, {"gpu": 0}), {}, view) is plain
    assert bench.graph.pools.get(small, {"b": "2", "a": "1"}, view) is others[1]
    # No machine has a GPU.
    assert not bench.graph.pools.allowed[[pool.number for pool in others[3:]]].any()
