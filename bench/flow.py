"""Min-cost flow on clusters of many kinds, against its targets and OR-Tools. Run by hand:

python bench/flow.py           12,500 machines, up to an hour; ten minutes with --runs 1
python bench/flow.py --small   2,000 machines, two minutes

Times are of the processor, medians of several runs, one thread. OR-Tools gets the same arrays; its time
is that of its solve alone. From scratch, a target is judged by the worst ratio over all kinds of
clusters: against OR-Tools, and against the best of our own algorithms on the same network. A change is
100 tasks removed and 100 added; its time includes applying it. A table at the end says what is met.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from argosy.model.budgets import WorkBudget
from argosy.solvers.flow import Algorithm, FlowNetwork, FlowProblem, FlowSolution
from argosy.solvers.flow.checker import faults
from argosy.solvers.flow.clusters import CLUSTERS, cluster
from argosy.solvers.flow.quincy import QuincyCluster, QuincyShape, quincy
from argosy.worlds.clocks import ClockBudget

CHANGE = 100
MACHINES = 12_500
SMALL = 2_000

#: How much faster than OR-Tools, by utilisation.
AHEAD = {0.5: 3.0, 0.9: 3.0, 0.97: 3.0, 1.05: 1.0}
#: How much slower `auto` may be than the best of our own algorithms.
BEHIND = 1.2
#: Another algorithm stops after this many times the arcs that `auto` scanned. Relaxation, whose arcs
#: take the least time, is not faster then.
ENOUGH = 4
OTHERS = ("shortest-paths", "primal-dual", "relaxation", "cost-scaling")


class Targets:
    """What was measured against what was wanted."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, bool]] = []

    def at_least(self, what: str, found: float, wanted: float, unit: str, where: str = "") -> None:
        self._add(what, found, wanted, unit, where, "at least", found >= wanted)

    def at_most(self, what: str, found: float, wanted: float, unit: str, where: str = "") -> None:
        self._add(what, found, wanted, unit, where, "at most", found <= wanted)

    def _add(
        self, what: str, found: float, wanted: float, unit: str, where: str, side: str, met: bool
    ) -> None:
        shown = f"{found:.2f} {unit}" + (f" ({where})" if where else "")
        self.rows.append((what, shown, f"{side} {wanted:g} {unit}", met))

    def show(self) -> None:
        print("\nmet  what                                      target             measured")
        for what, shown, wanted, met in self.rows:
            print(f"{'yes' if met else 'NO':4} {what:41} {wanted:18} {shown}")


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


def own_seconds(problem: FlowProblem, runs: int) -> tuple[dict[str, float | None], FlowSolution]:
    """Times of `auto` and of the others, by turns, each run on a new network; nothing for what takes far
    more work. Only what could be faster than `auto` is run several times."""
    took: dict[str, list[float]] = {"auto": [], **{other: [] for other in OTHERS}}
    failed: set[str] = set()
    best: FlowSolution | None = None
    for turn in range(runs):
        for algorithm, times in took.items():
            if algorithm in failed or (turn and times[0] > 2 * took["auto"][0]):
                continue
            network = FlowNetwork.of(problem)
            budget = WorkBudget(-1 if best is None else ENOUGH * best.scans)
            began = time.process_time()
            solution = network.solve(algorithm, budget=budget)
            times.append(time.process_time() - began)
            best = best or solution
            if not solution.is_optimal:
                failed.add(algorithm)
    assert best is not None
    medians = {a: None if a in failed else statistics.median(t) for a, t in took.items()}
    return medians, best


def bench_kinds(machines: int, runs: int, targets: Targets) -> None:
    """From scratch, on every kind of cluster at every utilisation."""
    print(f"\n{machines:,} machines, from scratch, ms; - needs far more work than auto")
    print(f"{'':24}{'arcs':>10}{'OR-Tools':>10}{'auto':>10}" + "".join(f"{o:>16}" for o in OTHERS))
    slower: list[tuple[float, str]] = []
    for utilisation, wanted in AHEAD.items():
        ahead: list[tuple[float, str]] = []
        for name, shape in CLUSTERS.items():
            problem = cluster(shape, machines, utilisation, seed=1)
            times, solution = own_seconds(problem, runs)
            ours, own = times["auto"], [times[other] for other in OTHERS]
            assert ours is not None
            theirs = peer_seconds(problem, solution.cost)
            label = f"{name} {utilisation:.0%}"
            ahead.append((theirs / ours, label))
            slower.append((ours / min([ours, *(took for took in own if took)]), label))
            print(
                f"{label:24}{problem.arcs:10,}{theirs * 1e3:10.1f}{ours * 1e3:10.1f}"
                + "".join(f"{'-' if took is None else f'{took * 1e3:.1f}':>16}" for took in own)
                + f"   {theirs / ours:5.1f} x",
                flush=True,
            )
        worst, label = min(ahead)
        targets.at_least(
            f"from scratch at {utilisation:.0%}: OR-Tools / auto", worst, wanted, "x", label
        )
    worst, label = max(slower)
    targets.at_most("from scratch: auto / best of our own", worst, BEHIND, "x", label)


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


def bench_quincy(
    machines: int, utilisation: float, change_ms: float, runs: int, targets: Targets
) -> None:
    cell, problem = quincy(QuincyShape(machines, utilisation=utilisation), seed=1)
    print(
        f"\nquincy, {utilisation:.0%} of {machines:,} x 12 slots: "
        f"{problem.vertices:,} vertices, {problem.arcs:,} arcs"
    )
    network, ours, solution = from_scratch(problem, max(1, runs // 4))
    theirs = peer_seconds(problem, solution.cost)
    print(
        f"  from scratch   {ours * 1e3:9.1f} ms   OR-Tools {theirs * 1e3:9.1f} ms"
        f"   {theirs / ours:5.1f} x   ({solution.algorithm})"
    )
    churn = Churn(cell, network)
    took = [churn.change() * 1e3 for _ in range(runs)]
    assert faults(network.problem(), network.segment_flows(), network.prices()) == []
    print(f"  100 + 100 tasks {statistics.median(took):8.2f} ms median, {max(took):8.2f} largest")
    wanted, label = AHEAD[utilisation], f"quincy {utilisation:.0%}"
    targets.at_least(f"{label}, from scratch: OR-Tools / auto", theirs / ours, wanted, "x")
    targets.at_most(f"{label}, 100 + 100 tasks", statistics.median(took), change_ms, "ms")
    targets.at_most(f"{label}, memory", network.bytes / network.arcs, 64, "B an arc")


def bench_spreading(tasks: int, runs: int, targets: Targets) -> None:
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
    targets.at_most(f"load spreading, {tasks:,} new tasks", took, 30, "ms")


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
    parser.add_argument("--small", action="store_true", help="2,000 machines, two minutes")
    arguments = parser.parse_args()
    machines, runs = (SMALL if arguments.small else MACHINES), arguments.runs
    targets = Targets()
    bench_kinds(machines, max(1, runs // 4), targets)
    for utilisation, change_ms in ((0.5, 10), (0.9, 10), (0.97, 30), (1.05, 300)):
        bench_quincy(machines, utilisation, change_ms, runs, targets)
    if not arguments.small:
        bench_spreading(10_000, runs, targets)
        bench_algorithms(max(1, runs // 4))
    targets.show()


if __name__ == "__main__":
    main()
