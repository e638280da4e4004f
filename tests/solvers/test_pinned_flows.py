"""Flow problems of every kind: what each algorithm and heuristic makes of them, step by step through
changes of the network, what can be read of it after each, what the checker says of wrong flows, and the
exchange format with its mistakes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from drawn_clusters import dice_of
from pinned_digests import require_digests
from told_values import outcome, told

from argosy.campaign.dice import Dice
from argosy.model.budgets import WorkBudget
from argosy.solvers.flow import dimacs
from argosy.solvers.flow.checker import costlier, faults, infeasibilities, prices_for
from argosy.solvers.flow.generators import GENERATORS
from argosy.solvers.flow.network import FlowNetwork
from argosy.solvers.flow.solution import Algorithm, Heuristics

PINNED: Final = Path(__file__).parent / "pinned"
ALGORITHMS: Final = tuple(a for a in Algorithm if "race" not in a.value)
HEURISTICS: Final = (
    Heuristics(),
    Heuristics(arc_prioritisation=False, depth_first=False),
    Heuristics(price_refine=False, fresh_prices=False, alpha=2),
    Heuristics(short_searches=False, alpha=9),
)


def told_network(network: FlowNetwork) -> Iterator[str]:
    yield told([network.vertices, network.arcs, network.all_vertices(), network.all_arcs()])
    yield told([network.supplies(), network.tails(), network.heads()])
    yield told([network.capacities(), network.costs(), network.problem()])


def told_solved(network: FlowNetwork, **options: Any) -> Iterator[str]:
    solution = network.solve(**options)
    yield told(solution)
    if solution.is_optimal:
        yield told([network.flows(), network.prices(), network.segment_flows()])
        problem, flows = network.problem(), network.segment_flows()
        numbers = np.zeros(int(network.all_vertices().max(initial=-1)) + 1, np.int64)
        numbers[network.all_vertices()] = network.prices()
        yield told(faults(problem, flows, network.prices()))


def small_network(dice: Dice) -> FlowNetwork:
    """Tasks, pools, machines with convex arcs, and a way to wait."""
    network = FlowNetwork()
    sink = network.add_vertex(0)
    tasks = network.add_vertices([dice.among(1, 2) for _ in range(dice.among(1, 12))])
    pools = network.add_vertices([0] * dice.among(1, 3))
    machines = network.add_vertices([0] * dice.among(1, 6))
    for task in tasks.tolist():
        for pool in dice.some_of(pools.tolist()):
            network.add_arc(task, pool, dice.among(1, 3), dice.among(0, 9))
        network.add_arc(task, sink, 2, dice.among(20, 60), dice.one_of((0, 0, 3)))
    for pool in pools.tolist():
        for machine in dice.some_of(machines.tolist()):
            network.add_arc(pool, machine, dice.among(0, 4), dice.among(-5, 9), dice.among(0, 2))
    for machine in machines.tolist():
        segments = [(dice.among(1, 2), 4 * at) for at in range(dice.among(1, 3))]
        network.add_convex_arc(machine, sink, segments)
    network.balance(sink)
    return network


def change(network: FlowNetwork, dice: Dice) -> str:
    """One of the changes that schedulers make."""
    vertices, arcs = network.all_vertices(), network.all_arcs()
    match dice.among(0, 6):
        case 0:
            chosen = arcs[[dice.among(0, len(arcs) - 1)]]
            return outcome(network.set_arcs, chosen, costs=dice.among(-9, 60))
        case 1:
            chosen = arcs[[dice.among(0, len(arcs) - 1)]]
            return outcome(network.set_arcs, chosen, capacities=dice.among(0, 5))
        case 2:
            return outcome(network.remove_vertices, vertices[1:2], drain=dice.chance(0.5))
        case 3:
            return outcome(network.remove_arcs, arcs[[dice.among(0, len(arcs) - 1)]])
        case 4:
            new = network.add_vertex(dice.among(0, 2))
            ends = [int(vertices[dice.among(1, len(vertices) - 1)]), int(vertices[0])]
            return outcome(network.add_arcs, [new, new], ends, [2, 2], [1, dice.among(5, 50)])
        case 5:
            found = [n for n in arcs.tolist() if network.heads([n])[0] == vertices[0]]
            segments = [(1, dice.among(0, 3)), (dice.among(0, 3), 9)]
            return outcome(network.set_segments, found[-1], segments)
        case _:
            return outcome(network.set_supplies, vertices[1:2], dice.among(0, 3))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a.value)
def test_networks_that_change_are_pinned(
    algorithm: Algorithm, request: pytest.FixtureRequest
) -> None:
    outcomes = {}
    for number in range(24):
        dice = dice_of("flow", number)
        network = small_network(dice)
        heuristics = HEURISTICS[number % 4]
        lines = [*told_network(network)]
        for step in range(5):
            budget = WorkBudget(40) if dice.chance(0.1) else None
            lines += told_solved(
                network,
                algorithm=algorithm,
                warm=dice.chance(0.8),
                heuristics=heuristics,
                budget=budget,
            )
            starts = network.all_vertices()[1:3]
            sink = int(network.all_vertices()[0])
            if lines[-2].startswith("[int64") or lines[-1].startswith("["):
                lines.append(outcome(network.cheapest_way, starts, sink, entries=dice.among(0, 5)))
                closed = network.all_vertices()[3:4]
                lines.append(outcome(network.cheapest_way, starts, sink, without=closed))
            lines += [change(network, dice) for _ in range(dice.among(1, 3))]
            sink = int(network.all_vertices()[0])
            network.balance(sink)
            if step == 3:
                network.forget_prices() if dice.chance(0.5) else network.forget()
            lines += told_network(network)
        outcomes[f"{algorithm.value} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"flows_{algorithm.value}.txt", outcomes, request.config)


def test_generated_problems_and_their_answers_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for name, generate in GENERATORS.items():
        for size, seed in ((9, 1), (25, 2)):
            problem = generate(size, seed)
            lines = [told(problem)]
            for algorithm in ALGORITHMS:
                if algorithm is Algorithm.CYCLE_CANCELLING and size > 9:
                    continue
                network = FlowNetwork.of(problem)
                lines += told_solved(network, algorithm=algorithm)
            flows = network.flows()
            lines.append(outcome(prices_for, problem, flows))
            text = io.StringIO()
            dimacs.write_problem(problem, text, "a comment")
            lines.append(text.getvalue())
            lines.append(outcome(dimacs.read_problem, text.getvalue().splitlines(), "file"))
            outcomes[f"{name} {size}"] = "\n".join(lines)
    require_digests(PINNED / "generated_flows.txt", outcomes, request.config)


def test_what_the_checker_says_of_wrong_answers_is_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(40):
        dice = dice_of("checker", number)
        network = small_network(dice)
        network.solve()
        problem, flows, prices = network.problem(), network.segment_flows(), network.prices()
        for _ in range(dice.among(0, 3)):
            at = dice.among(0, len(flows) - 1)
            flows[at] += dice.one_of((-3, -1, 1, 9))
        for _ in range(dice.among(0, 2)):
            at = dice.among(0, len(prices) - 1)
            prices[at] += dice.one_of((-20, 7, 2**62))
        lines = [outcome(call, problem, flows, prices) for call in (faults, costlier)]
        lines.append(outcome(infeasibilities, problem, flows))
        lines += [str(each) for each in infeasibilities(problem, flows)]
        lines.append(outcome(prices_for, problem, flows))
        text = io.StringIO()
        outcomes[f"{number}"] = "\n".join([*lines, text.getvalue()])
    require_digests(PINNED / "checker.txt", outcomes, request.config)


GOOD: Final = """c a comment
p min 3 2
n 1 2
n 3 -2
a 1 2 0 3 4
a 2 3 1 3 -1
"""
SOLVED: Final = """s 6
f 1 2 2
f 2 3 2
"""
#: What replaces a line, or stands for it.
WRONG: Final = (
    "", "p min 3", "p max 3 2", "p min 0 0", "p min x 2", "n 4 1", "n 1 x", "n 1", "n 1 99999999999999",
    "a 1 2 0 3", "a 1 9 0 3 4", "a 1 2 5 3 4", "a 1 2 -1 3 4", "a 1 2 0 3 4.5", "a 1 1 0 3 4", "q 1",
    "a 1 2 0 99999999999 4", "a 1 2 0 3 99999999999999", "p min 3 2", "c", "  ", "s 7", "f 1 2 9",
    "f 9 2 1", "f 1 3 1", "s x", "p 1 4", "p 2 0", "f 1 2 -1", "n 1 2",
)  # fmt: skip


def test_files_and_their_mistakes_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    instance = dimacs.read_problem(GOOD.splitlines(), "file")
    for name, text in (("problem", GOOD), ("solution", SOLVED)):
        lines = text.splitlines()
        for at in range(len(lines) + 1):
            for wrong, line in enumerate(WRONG):
                made = [*lines[:at], line, *lines[at + 1 :]]
                if name == "problem":
                    found = outcome(dimacs.read_problem, made, "file")
                else:
                    found = outcome(dimacs.read_solution, made, instance, "file")
                outcomes[f"{name} {at} {wrong}"] = found
    together: dict[str, str] = {}
    for key, value in outcomes.items():
        name = key.rpartition(" ")[0]
        together[name] = together.get(name, "") + value + "\n"
    require_digests(PINNED / "dimacs.txt", together, request.config)


def test_refused_calls_are_pinned(request: pytest.FixtureRequest) -> None:
    network = FlowNetwork()
    a, b = network.add_vertex(1), network.add_vertex(-1)
    arc = network.add_arc(a, b, 2, 3)
    calls: dict[str, tuple[Any, ...]] = {
        "no vertex": (network.add_arc, a, 99, 1, 1),
        "negative capacity": (network.add_arc, a, b, -1, 1),
        "large cost": (network.add_arc, a, b, 1, 2**62),
        "large capacity": (network.add_arc, a, b, 2**62, 1),
        "negative step": (network.add_arc, a, b, 1, 1, -1),
        "large supply": (network.add_vertex, 2**62),
        "fraction": (network.add_vertices, [0.5]),
        "no arc": (network.remove_arcs, [99]),
        "no such flow": (network.flow, 99),
        "removed twice": (network.remove_vertices, [a, a]),
        "no segments": (network.add_convex_arc, a, b, []),
        "not convex": (network.add_convex_arc, a, b, [(1, 5), (1, 2)]),
        "empty segment": (network.add_convex_arc, a, b, [(0, 5)]),
        "way to nowhere": (network.cheapest_way, [a], 99),
        "unsolved way": (network.cheapest_way, [a], b),
        "unknown": (network.solve, "nothing"),
        "solved": (network.solve,),
        "way": (network.cheapest_way, [a], b),
        "two entries": (network.cheapest_way, [a, b], b),
        "set segments of plain": (network.set_segments, arc, [(1, 1)]),
        "unbalanced": (network.set_supplies, [a], 5),
        "solve unbalanced": (network.solve,),
        "infeasible": (network.set_supplies, [a, b], [9, -9]),
        "solve infeasible": (network.solve,),
    }
    outcomes = {name: outcome(call, *args) for name, (call, *args) in calls.items()}
    require_digests(PINNED / "refused_flows.txt", outcomes, request.config)
