"""Solvers alone: figures 3 and 7 to 13.

Networks are shaped like Quincy's policy (`argosy.solvers.flow.quincy`) or spread load. Times are
processor times of the solve alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from argosy.model.budgets import WorkBudget
from argosy.papers.experiment import DONE, ExperimentPoint, PointResult
from argosy.solvers.flow import FlowNetwork, FlowSolution, Heuristics
from argosy.solvers.flow.quincy import QuincyCluster, QuincyShape, quincy

#: A solve is stopped after this many arcs, and the time so far is reported.
BUDGET: Final = 3_000_000_000
#: Textbook shortest paths: prices start at zero, and each search covers the whole network.
TEXTBOOK: Final = "textbook-paths"
#: Tasks that come and go between two solves.
CHURN: Final = 0.01
SLOTS: Final = 12
#: A solve shorter than this many seconds is repeated, this many times.
MOMENT: Final = 0.1
REPEATS: Final = 5


def timed(call: Callable[[], FlowSolution]) -> tuple[float, FlowSolution]:
    began = time.process_time()
    solution = call()
    return time.process_time() - began, solution


def network_of(point: ExperimentPoint) -> tuple[QuincyCluster, FlowNetwork]:
    """A cluster's network before any solve; `running` of its tasks have a machine."""
    told = point.parameters
    shape = QuincyShape(
        int(told["machines"]),
        utilisation=float(told.get("utilisation", 0.5)),
        running=float(told.get("running", 0.9)),
    )
    cluster, problem = quincy(shape, point.seed)
    return cluster, FlowNetwork.of(problem)


def scratch(point: ExperimentPoint) -> PointResult:
    """One solve from scratch."""
    algorithm = str(point.parameters["algorithm"])
    chosen = _heuristics(point)
    if algorithm == TEXTBOOK:
        algorithm, chosen = "shortest-paths", Heuristics(short_searches=False)
    _, network = network_of(point)
    solve = partial(network.solve, algorithm, warm=False, heuristics=chosen)
    return _result(*_repeated(lambda: solve(budget=WorkBudget(BUDGET))), network)


def spread_of_scratch(point: ExperimentPoint) -> PointResult:
    """Solves of several networks of the same kind, each from scratch."""
    count = int(point.parameters["networks"])
    solved = [scratch(structs.replace(point, seed=point.seed + number)) for number in range(count)]
    took = [each["seconds"] for each in solved]
    shares = {"p1": 1, "p25": 25, "seconds": 50, "p75": 75, "p99": 99, "largest": 100}
    values = {name: float(np.percentile(took, share)) for name, share in shares.items()}
    return PointResult({**values, DONE: min(each[DONE] for each in solved)})


def _repeated(solve: Callable[[], FlowSolution]) -> tuple[float, FlowSolution]:
    """The median time of several solves, if one takes little time."""
    seconds, solution = timed(solve)
    if seconds > MOMENT:
        return seconds, solution
    return float(np.median([timed(solve)[0] for _ in range(REPEATS)])), solution


def _heuristics(point: ExperimentPoint) -> Heuristics:
    prioritised = point.parameters.get("prioritised", "yes")
    return Heuristics(
        arc_prioritisation=prioritised != "no",
        depth_first=prioritised == "yes",
        price_refine=point.parameters.get("refined", "yes") == "yes",
        fresh_prices=point.parameters.get("start", "fitted") == "fitted",
        alpha=int(point.parameters.get("alpha", Heuristics().alpha)),
    )


def spreading(point: ExperimentPoint) -> PointResult:
    """A large job arrives in a half-full cluster whose load is to be spread."""
    told = point.parameters
    machines = int(told["machines"])
    network = SpreadExperiment(machines, np.arange(machines) % 6, int(told["tasks"])).network
    algorithm = str(told["algorithm"])
    solve = partial(network.solve, algorithm, warm=False)
    return _result(*_repeated(lambda: solve(budget=WorkBudget(BUDGET))), network)


class SpreadExperiment:
    """A cluster whose load is to be spread; machines have some tasks that are not part of the
    problem."""

    def __init__(self, machines: int, held: NDArray[np.int64], tasks: int) -> None:
        network = self.network = FlowNetwork()
        self.sink = network.add_vertex()
        self._everywhere, self._nowhere = (int(v) for v in network.add_vertices([0, 0]))
        to_sink = network.add_vertices(np.zeros(machines, np.int64))
        network.add_arcs(self._everywhere, to_sink, SLOTS - held, 10 * held, 10)
        network.add_arcs(to_sink, self.sink, SLOTS - held, 0)
        network.add_arc(self._nowhere, self.sink, 2**31 - 1, 0)
        self.first_task = network.vertices
        self.add(tasks)

    def add(self, tasks: int) -> None:
        new = self.network.add_vertices(np.ones(tasks, np.int64))
        self.network.add_arcs(new, self._everywhere, 1, 0)
        self.network.add_arcs(new, self._nowhere, 1, 10_000)
        self.network.balance(self.sink)


class Locality:
    """A cluster with Quincy's policy, as generated by `quincy`."""

    def __init__(self, point: ExperimentPoint) -> None:
        self._cluster, self.network = network_of(point)
        self.sink, self.first_task = self._cluster.sink, self._cluster.first_task

    def add(self, tasks: int) -> None:
        fresh = self._cluster.draw(tasks, np.zeros(tasks, np.bool_))
        made = self.network.add_vertices(np.ones(tasks, np.int64))
        self.network.add_arcs(made[fresh.owners], fresh.heads, 1, fresh.costs)
        self.network.balance(self.sink)


def _policy(point: ExperimentPoint) -> Locality | SpreadExperiment:
    told = point.parameters
    if told.get("policy", "quincy") == "quincy":
        return Locality(point)
    machines = int(told["machines"])
    tasks = round(machines * SLOTS * float(told["utilisation"]))
    return SpreadExperiment(machines, np.zeros(machines, np.int64), tasks)


def incremental(point: ExperimentPoint) -> PointResult:
    """Solves, changes some tasks, and solves again both incrementally and from scratch.

    With `first`, that solver runs first and passes on what `handed` says. If `refined`, price refine
    then computes prices for a flow that has none before the change, and its time counts.
    """
    told = point.parameters
    algorithm, first = str(told["algorithm"]), str(told.get("first", told["algorithm"]))
    chosen, drained = _heuristics(point), told.get("drained", "no") == "yes"
    policy = _policy(point)
    network = policy.network
    assert network.solve(first, warm=False).is_optimal
    random = np.random.default_rng(point.seed)
    warm, cold = [], []
    for _ in range(int(told.get("changes", 5))):
        refining = 0.0
        if told.get("handed") == "flow":
            network.forget_prices()
            if chosen.price_refine:
                refining, solution = timed(lambda: network.solve(algorithm))
                assert solution.is_optimal
        _churn(policy, random, drained)
        took, solution = timed(lambda: network.solve(algorithm, heuristics=chosen))
        assert solution.is_optimal
        warm.append(refining + took)
        if "first" in told:
            # The next change starts from the other solver's flow and prices again.
            assert network.solve(first, warm=False).is_optimal
        elif told.get("scratch", "yes") == "yes":
            twin = FlowNetwork.of(network.problem())
            solve = partial(twin.solve, algorithm, warm=False, heuristics=chosen)
            took, again = timed(solve)
            assert again.cost == solution.cost
            cold.append(took)
    values = {"warm": float(np.median(warm)), "arcs": float(network.arcs)}
    if cold:
        values["cold"] = float(np.median(cold))
    share = [100.0 * (number + 1) / len(warm) for number in range(len(warm))]
    return PointResult(values, {"warm": warm, "cold": cold, "within": sorted(warm), "share": share})


def _churn(policy: Locality | SpreadExperiment, random: np.random.Generator, drained: bool) -> None:
    handles = policy.network.all_vertices()
    tasks = handles[handles >= policy.first_task]
    count = max(1, round(CHURN * len(tasks)))
    policy.network.remove_vertices(random.choice(tasks, count, replace=False), drain=drained)
    policy.add(count)


def heuristic(point: ExperimentPoint) -> PointResult:
    """Figure 12: arc prioritisation from scratch, task removal after changes."""
    return incremental(point) if "drained" in point.parameters else scratch(point)


def approximate(point: ExperimentPoint) -> PointResult:
    """Stops a solver early and counts the tasks that are not where the optimum puts them."""
    told = point.parameters
    algorithm = str(told["algorithm"])
    cluster, network = network_of(point)
    whole = network.solve(algorithm, warm=False)
    best = _choices(cluster, network)
    shares = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
    misplaced = []
    for share in shares:
        budget = WorkBudget(int(whole.scans * share) if share < 1.0 else -1)
        # A network that was solved before has its arcs in another order, and may have another optimum.
        cluster, network = network_of(point)
        network.solve(algorithm, warm=False, budget=budget)
        misplaced.append(float((_choices(cluster, network) != best).sum()))
    return PointResult(
        {
            "tasks": float(len(best)),
            "early": misplaced[-2],
            "half": misplaced[2],
            "whole": misplaced[-1],
        },
        {"share": [100 * share for share in shares], "misplaced": misplaced},
    )


def _choices(cluster: QuincyCluster, network: FlowNetwork) -> NDArray[np.int64]:
    """The vertex that each task's unit of flow goes to first; -1 if it goes nowhere yet."""
    tails, heads, flows = network.tails(), network.heads(), network.flows()
    chosen = np.full(int(tails.max()) + 1, -1, np.int64)
    carries = (flows > 0) & (tails >= cluster.first_task)
    chosen[tails[carries]] = heads[carries]
    return chosen[cluster.first_task :]


def _result(seconds: float, solution: FlowSolution, network: FlowNetwork) -> PointResult:
    done = 1.0 if solution.is_optimal else 0.0
    values = {"seconds": seconds, "arcs": float(network.arcs), DONE: done}
    return PointResult(values)
