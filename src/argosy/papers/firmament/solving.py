"""Solvers alone: figures 3 and 7 to 13, and table 3.

Networks are shaped like Quincy's policy (`argosy.solvers.flow.quincy`) or spread load. Times are of the
processor, of the solve alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from argosy.papers.experiment import Point, Result
from argosy.solvers.flow import Heuristics, Network, Problem, Solution
from argosy.solvers.flow.checker import costlier, infeasibilities
from argosy.solvers.flow.quincy import Cluster, Shape, quincy

#: Arcs after which a solve is given up: what it took until then is what is reported.
BUDGET: Final = 3_000_000_000
#: Tasks that come and go between two solves.
CHURN: Final = 0.01


def timed(call: Callable[[], Solution]) -> tuple[float, Solution]:
    began = time.process_time()
    solution = call()
    return time.process_time() - began, solution


def network_of(point: Point) -> tuple[Cluster, Network]:
    """A cluster's network before anything is solved; `running` of its tasks have a machine."""
    told = point.parameters
    shape = Shape(
        int(told["machines"]),
        utilisation=float(told.get("utilisation", 0.5)),
        running=float(told.get("running", 0.9)),
    )
    cluster, problem = quincy(shape, point.seed)
    return cluster, Network.of(problem)


def scratch(point: Point) -> Result:
    """One solve from scratch."""
    algorithm = str(point.parameters["algorithm"])
    chosen = _heuristics(point)
    _, network = network_of(point)
    seconds, solution = timed(
        lambda: network.solve(algorithm, warm=False, budget=BUDGET, heuristics=chosen)
    )
    return _result(seconds, solution, network)


def _heuristics(point: Point) -> Heuristics:
    return Heuristics(
        arc_prioritisation=point.parameters.get("prioritised", "yes") == "yes",
        price_refine=point.parameters.get("refined", "yes") == "yes",
    )


def spreading(point: Point) -> Result:
    """A job of many tasks comes to a half full cluster whose load is to be spread."""
    told = point.parameters
    network = _spread(int(told["machines"]), int(told["tasks"]), 12)
    algorithm = str(told["algorithm"])
    seconds, solution = timed(lambda: network.solve(algorithm, warm=False, budget=BUDGET))
    return _result(seconds, solution, network)


def _spread(machines: int, tasks: int, slots: int) -> Network:
    network = Network()
    sink = network.add_vertex(-tasks)
    everywhere, nowhere = (int(v) for v in network.add_vertices([0, 0]))
    to_sink = network.add_vertices(np.zeros(machines, np.int64))
    running = np.arange(machines) % (slots // 2)
    network.add_arcs(everywhere, to_sink, slots - running, 10 * running, 10)
    network.add_arcs(to_sink, sink, slots - running, 0)
    network.add_arc(nowhere, sink, 2**31 - 1, 0)
    new = network.add_vertices(np.ones(tasks, np.int64))
    network.add_arcs(new, everywhere, 1, 0)
    network.add_arcs(new, nowhere, 1, 10_000)
    return network


def incremental(point: Point) -> Result:
    """Solve, change some tasks, and solve again from the last flow and from scratch."""
    told = point.parameters
    algorithm = str(told["algorithm"])
    chosen = _heuristics(point)
    cluster, network = network_of(point)
    first = str(told.get("first", algorithm))
    assert network.solve(first, warm=False).is_optimal
    random = np.random.default_rng(point.seed)
    warm, cold = [], []
    for _ in range(int(told.get("changes", 5))):
        _churn(cluster, network, random)
        took, solution = timed(lambda: network.solve(algorithm, heuristics=chosen))
        assert solution.is_optimal
        warm.append(took)
        if "first" in told:
            # The next change starts from the other solver's flow and prices again.
            assert network.solve(first, warm=False).is_optimal
        else:
            twin = Network.of(network.problem())
            solve = partial(twin.solve, algorithm, warm=False, heuristics=chosen)
            took, again = timed(solve)
            assert again.cost == solution.cost
            cold.append(took)
    values = {"warm": float(np.median(warm)), "arcs": float(network.arcs)}
    if cold:
        values["cold"] = float(np.median(cold))
    return Result(values, {"warm": warm})


def _churn(cluster: Cluster, network: Network, random: np.random.Generator) -> None:
    handles = network.all_vertices()
    tasks = handles[handles >= cluster.first_task]
    count = max(1, round(CHURN * len(tasks)))
    network.remove_vertices(random.choice(tasks, count, replace=False))
    fresh = cluster.draw(count, np.zeros(count, np.bool_))
    made = network.add_vertices(np.ones(count, np.int64))
    network.add_arcs(made[fresh.owners], fresh.heads, 1, fresh.costs)
    network.balance(cluster.sink)


def approximate(point: Point) -> Result:
    """Stop a solver early and count the tasks that are not where the optimum has them."""
    told = point.parameters
    algorithm = str(told["algorithm"])
    cluster, network = network_of(point)
    whole = network.solve(algorithm, warm=False)
    best = _choices(cluster, network)
    shares = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
    misplaced = []
    for share in shares:
        budget = int(whole.scans * share) if share < 1.0 else -1
        network.solve(algorithm, warm=False, budget=budget)
        misplaced.append(float((_choices(cluster, network) != best).sum()))
    return Result(
        {"tasks": float(len(best)), "early": misplaced[-2], "half": misplaced[2]},
        {"share": [100 * share for share in shares], "misplaced": misplaced},
    )


def _choices(cluster: Cluster, network: Network) -> NDArray[np.int64]:
    """The vertex that each task's unit of flow goes to first; -1 where it goes nowhere yet."""
    tails, heads, flows = network.tails(), network.heads(), network.flows()
    chosen = np.full(int(tails.max()) + 1, -1, np.int64)
    carries = (flows > 0) & (tails >= cluster.first_task)
    chosen[tails[carries]] = heads[carries]
    return chosen[cluster.first_task :]


#: The cells of table 3: what is done to an arc, and the sign of its reduced cost.
CELLS: Final = tuple(
    (f"{way} {what}", sign)
    for what in ("capacity", "cost")
    for way in ("more", "less")
    for sign in "<=>"
)


def changes(point: Point) -> Result:
    """Change single arcs of a solved network and see whether flow and prices still prove the optimum."""
    _, network = network_of(point)
    assert network.solve(warm=False).is_optimal
    problem, flows, prices = network.problem(), network.segment_flows(), network.prices()
    reduced = problem.costs - prices[problem.tails] + prices[problem.heads]
    random = np.random.default_rng(point.seed)
    wrong, seen = 0, 0
    for what, sign in CELLS:
        of_sign = {"<": reduced < 0, "=": reduced == 0, ">": reduced > 0}[sign]
        rows = np.flatnonzero(of_sign)
        for row in random.permutation(rows)[:10].tolist():
            amount = int(random.integers(1, 50))
            changed = _changed(problem, what, row, amount)
            holds = not infeasibilities(changed, flows) and not costlier(changed, flows, prices)
            wrong += holds != _stays(what, sign, row, amount, problem, flows, reduced)
            seen += 1
    return Result({"wrong": float(wrong), "changes": float(seen)})


def _changed(problem: Problem, what: str, row: int, amount: int) -> Problem:
    capacities, costs = problem.capacities.copy(), problem.costs.copy()
    if "capacity" in what:
        capacities[row] = max(0, capacities[row] + (amount if "more" in what else -amount))
    else:
        costs[row] += amount if "more" in what else -amount
    return Problem(problem.supplies, problem.tails, problem.heads, capacities, costs)


def _stays(
    what: str,
    sign: str,
    row: int,
    amount: int,
    problem: Problem,
    flows: NDArray[np.int64],
    reduced: NDArray[np.int64],
) -> bool:
    """Whether by the paper's table the optimum remains, with the conditions of its cells."""
    flow, capacity, price = int(flows[row]), int(problem.capacities[row]), int(reduced[row])
    match what, sign:
        case "more capacity", _:
            return sign != "<"
        case "less capacity", _:
            return flow <= max(0, capacity - amount)
        case "more cost", _:
            return flow == 0 or price + amount <= 0
        case _:
            return flow == capacity or price - amount >= 0


def _result(seconds: float, solution: Solution, network: Network) -> Result:
    done = 1.0 if solution.is_optimal else 0.0
    values = {"seconds": seconds, "arcs": float(network.arcs), "done": done}
    return Result(values)
