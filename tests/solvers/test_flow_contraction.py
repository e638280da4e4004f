"""Sources that are alike or have two arcs: a smaller network is solved in place of the large one."""

from __future__ import annotations

import numpy as np
import pytest
from flow_peer import peer, require_repair, require_slices
from msgspec import structs

from argosy.solvers.flow import FlowNetwork, FlowProblem
from argosy.solvers.flow.checker import cost_of, faults

SINK, WAITING, FIRST = 0, 1, 2
MACHINES = 60


class Cluster:
    """Machines of 1 to 8 slots, and jobs that do not all find room where they want it."""

    def __init__(self, seed: int, utilisation: float) -> None:
        self.random = np.random.default_rng(seed)
        self.rows: list[tuple[int, int, int, int]] = [(WAITING, SINK, 10_000, 0)]
        self.supplies = [0, 0, *[0] * MACHINES]
        slots = self.random.integers(1, 9, MACHINES).tolist()
        for number, room in enumerate(slots):
            self.rows.append((FIRST + number, SINK, room, 0))
        self.units = int(sum(slots) * utilisation)

    def vertex(self, supply: int) -> int:
        self.supplies.append(supply)
        return len(self.supplies) - 1

    def liked(self) -> tuple[list[int], list[int]]:
        # Half of the machines are liked far more than the rest.
        heads = FIRST + (self.random.beta(1, 3, 5) * MACHINES).astype(int)
        return heads.tolist(), self.random.integers(0, 300, 5).tolist()

    def add_alike(self, units: int) -> None:
        """Tasks of 1 to 3 units with the same arcs, in any order, some of them parallel."""
        heads, costs = self.liked()
        heads.append(heads[0])
        costs.append(costs[0] + int(self.random.integers(0, 2)))
        wait = int(self.random.integers(300, 900))
        while units > 0:
            supply = min(units, int(self.random.integers(1, 4)))
            task = self.vertex(supply)
            for i in self.random.permutation(len(heads)).tolist():
                self.rows.append((task, heads[i], supply, costs[i]))
            self.rows.append((task, WAITING, supply, wait))
            units -= supply

    def add_forks(self, units: int) -> None:
        """Tasks with an arc to their job and one for waiting, or to their job alone."""
        job = self.vertex(0)
        for head, cost in zip(*self.liked(), strict=True):
            self.rows.append((job, head, int(self.random.integers(1, 4)), cost))
        self.rows.append((job, WAITING, units, 2_000))
        for _ in range(units):
            task = self.vertex(1)
            self.rows.append((task, job, 1, int(self.random.integers(-20, 20))))
            if self.random.random() < 0.9:
                self.rows.append((task, WAITING, 1, int(self.random.integers(300, 900))))

    def problem(self) -> FlowProblem:
        table = np.array(self.rows, np.int64)
        supplies = np.array(self.supplies, np.int64)
        supplies[SINK] = -supplies.sum()
        return FlowProblem(
            supplies=supplies,
            tails=table[:, 0].astype(np.int32),
            heads=table[:, 1].astype(np.int32),
            capacities=np.ascontiguousarray(table[:, 2]),
            costs=np.ascontiguousarray(table[:, 3]),
        )


def made(kind: str, seed: int, utilisation: float) -> FlowProblem:
    cluster = Cluster(seed, utilisation)
    left, number = cluster.units, 0
    while left > 0:
        units = min(left, int(cluster.random.integers(4, 25)))
        is_alike = kind == "alike" or (kind == "both" and number % 2 == 0)
        (cluster.add_alike if is_alike else cluster.add_forks)(units)
        left -= units
        number += 1
    return cluster.problem()


@pytest.mark.parametrize("utilisation", [0.6, 0.95, 1.1, 1.6])
@pytest.mark.parametrize("kind", ["alike", "forks", "both"])
def test_the_answer_of_the_smaller_network_is_that_of_the_large_one(
    kind: str, utilisation: float
) -> None:
    for seed in range(12):
        problem = made(kind, seed, utilisation)
        network = FlowNetwork.of(problem)
        solution = network.solve(warm=False)
        assert solution.cost == cost_of(problem, network.flows()) == peer(problem)
        assert faults(problem, network.flows(), network.prices()) == []
        # What is left behind is settled: there is nothing to do but for an edit.
        assert network.solve().scans <= 1
        network.set_supplies([len(problem.supplies) - 1], 0)
        network.balance(SINK)
        assert network.solve().cost == peer(network.problem())
        assert faults(network.problem(), network.flows(), network.prices()) == []


@pytest.mark.parametrize("kind", ["alike", "forks", "both"])
def test_what_was_done_in_a_slice_is_kept(kind: str) -> None:
    problem = made(kind, 3, 1.1)
    require_slices(problem, 4 * problem.arcs)


def test_what_cannot_be_placed_is_told_and_can_be_repaired() -> None:
    problem = made("both", 5, 1.3)
    require_repair(problem)


def overdrawn(kind: str, seed: int) -> FlowProblem:
    """All arcs of tasks have negative costs and carry more than the tasks have."""
    problem = made(kind, seed, 1.1)
    is_of_task = problem.supplies[problem.tails] > 0
    return structs.replace(
        problem,
        capacities=problem.capacities + 3 * is_of_task,
        costs=problem.costs - 1_000 * is_of_task,
    )


@pytest.mark.parametrize("kind", ["alike", "forks", "both"])
def test_tasks_that_send_more_than_they_have_for_the_time_being_stay_as_they_are(kind: str) -> None:
    for seed in range(12):
        problem = overdrawn(kind, seed)
        network = FlowNetwork.of(problem)
        assert network.solve(warm=False).cost == peer(problem)
        assert faults(problem, network.flows(), network.prices()) == []


@pytest.mark.parametrize(("kind", "most"), [("alike", 25), ("forks", 35), ("both", 30)])
def test_tasks_that_are_alike_or_have_two_arcs_take_few_looks_at_each_arc(
    kind: str, most: int
) -> None:
    problem = made(kind, 1, 0.97)
    assert FlowNetwork.of(problem).solve(warm=False).scans < most * problem.arcs
