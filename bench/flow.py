"""Min-cost flow on networks shaped like Quincy's policy, against its targets and OR-Tools. Run by hand:

python bench/flow.py

Times are of the processor, medians of several runs, one thread. A change is 100 tasks removed and 100
added; its time includes applying it. OR-Tools gets the same arrays; its time is that of its solve alone.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from argosy.solvers.flow import Algorithm, FlowNetwork, FlowProblem, FlowSolution
from argosy.solvers.flow.checker import faults
from argosy.solvers.flow.quincy import QuincyCluster, QuincyShape, quincy
from argosy.worlds.clocks import ClockBudget

CHANGE = 100
MACHINES = 12_500


def timed(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def peer_seconds(problem: FlowProblem, cost: int | None) -> float:
    solver = min_cost_flow.SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(
        problem.tails, problem.heads, problem.capacities, problem.costs
    )
    solver.set_nodes_supplies(np.arange(problem.vertices, dtype=np.int32), problem.supplies)
    took = timed(solver.solve)
    assert solver.optimal_cost() == cost
    return took


def from_scratch(problem: FlowProblem, runs: int) -> tuple[FlowNetwork, float, FlowSolution]:
    network = FlowNetwork.of(problem)
    found: list[FlowSolution] = []
    took = [timed(lambda: found.append(network.solve(warm=False))) for _ in range(runs)]
    assert found[-1].is_optimal
    return network, statistics.median(took), found[-1]


class Churn:
    """Tasks that come and go, a hundred at a time."""

    def __init__(self, cluster: QuincyCluster, network: FlowNetwork) -> None:
        self.cluster = cluster
        self.network = network
        self.random = np.random.default_rng(1)
        handles = network.all_vertices()
        self.tasks: NDArray[np.int32] = handles[handles >= cluster.first_task]

    def change(self) -> float:
        fresh = self.cluster.draw(CHANGE, np.zeros(CHANGE, bool))
        rows = self.random.choice(len(self.tasks), CHANGE, replace=False)
        began = time.process_time()
        self.network.remove_vertices(self.tasks[rows])
        made = self.network.add_vertices(np.ones(CHANGE, np.int64))
        self.network.add_arcs(made[fresh.owners], fresh.heads, 1, fresh.costs)
        self.network.balance(self.cluster.sink)
        solution = self.network.solve()
        took = time.process_time() - began
        assert solution.is_optimal
        self.tasks = np.concatenate([np.delete(self.tasks, rows), made])
        return took


def bench_quincy(utilisation: float, at_least: float, change_ms: float, runs: int) -> None:
    cluster, problem = quincy(QuincyShape(MACHINES, utilisation=utilisation), seed=1)
    print(
        f"\nquincy, {utilisation:.0%} of {MACHINES:,} x 12 slots: "
        f"{problem.vertices:,} vertices, {problem.arcs:,} arcs"
    )
    network, ours, solution = from_scratch(problem, max(1, runs // 4))
    theirs = peer_seconds(problem, solution.cost)
    print(
        f"  from scratch   {ours * 1e3:9.1f} ms   OR-Tools {theirs * 1e3:9.1f} ms"
        f"   {theirs / ours:5.1f} x, target {at_least:g} x   ({solution.algorithm})"
    )
    churn = Churn(cluster, network)
    took = [churn.change() * 1e3 for _ in range(runs)]
    assert faults(network.problem(), network.segment_flows(), network.prices()) == []
    print(
        f"  100 + 100 tasks {statistics.median(took):8.2f} ms median, {max(took):8.2f} largest"
        f"   target {change_ms:g}"
    )
    print(f"  memory         {network.bytes / network.arcs:9.1f} bytes an arc   target 64")


def bench_spreading(tasks: int, runs: int) -> None:
    """New tasks at one aggregator; a machine's cost rises with what it runs. One convex arc each."""
    running = np.random.default_rng(2).integers(0, 10, MACHINES)

    def once() -> float:
        network = FlowNetwork()
        sink, aggregator = network.add_vertices([0, 0])
        machines = network.add_vertices(np.zeros(MACHINES, np.int64))
        network.add_arcs(machines, sink, 100, 0)
        network.add_arcs(aggregator, machines, 100, running, steps=1)
        network.balance(int(sink))
        assert network.solve().is_optimal
        began = time.process_time()
        fresh = network.add_vertices(np.ones(tasks, np.int64))
        network.add_arcs(fresh, aggregator, 1, 0)
        network.add_arcs(fresh, sink, 1, 10_000)
        network.balance(int(sink))
        solution = network.solve()
        took = time.process_time() - began
        assert solution.is_optimal
        return took * 1e3

    took = statistics.median(once() for _ in range(runs))
    print(
        f"\nload spreading, {tasks:,} new tasks on {MACHINES:,} machines   {took:.1f} ms   target 30"
    )


def bench_algorithms(runs: int) -> None:
    """All algorithms on a small cluster: the paper's figure 7, and its hard case."""
    for utilisation in (0.5, 0.9, 1.05):
        _, problem = quincy(QuincyShape(200, utilisation=utilisation), seed=1)
        print(
            f"\n200 machines, {utilisation:.0%}: {problem.vertices:,} vertices, {problem.arcs:,} arcs"
        )
        for algorithm in Algorithm:
            network = FlowNetwork.of(problem)
            took = [
                network.solve(algorithm, warm=False, budget=ClockBudget()).seconds
                for _ in range(runs)
            ]
            print(f"  {algorithm:18}{statistics.median(took) * 1e3:10.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=12)
    runs = parser.parse_args().runs
    bench_quincy(0.5, 10, 10, runs)
    bench_quincy(0.9, 5, 10, runs)
    bench_quincy(0.97, 1, 30, runs)
    bench_quincy(1.05, 1, 300, runs)
    bench_spreading(10_000, runs)
    bench_algorithms(max(1, runs // 4))


if __name__ == "__main__":
    main()
