"""Contended tasks of one unit: they bid for places on a compact copy of the network."""

from __future__ import annotations

import numpy as np
import pytest
from flow_peer import peer, require_repair, require_slices
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from argosy.solvers.flow import FlowNetwork, FlowProblem
from argosy.solvers.flow.checker import cost_of, faults

SINK, WAITING, ANYWHERE, FIRST = 0, 1, 2, 3


def crowded(
    machines: int, utilisation: float, seed: int, likes: int = 2, slots: int = 1
) -> FlowProblem:
    """Tasks like a few machines, most of them the same, or go anywhere by one vertex, or wait. Some
    arcs are parallel, some costs negative."""
    random = np.random.default_rng(seed)
    tasks = max(1, int(machines * slots * utilisation))
    places = FIRST + np.arange(machines)
    first = FIRST + machines
    number = first + np.arange(tasks)
    owners = np.repeat(number, likes)
    liked = FIRST + (random.beta(1, 3, len(owners)) * machines).astype(int)
    columns: list[tuple[ArrayLike, ...]] = [
        ([WAITING], [SINK], 2**31 - 1, 0),
        (places, SINK, slots, random.integers(0, 9, machines)),
        (ANYWHERE, places, slots, random.integers(0, 3_000, machines)),
        (owners, liked, 1, random.integers(-50, 9_000, len(owners))),
        (number, ANYWHERE, 1, 4_000),
        (number, WAITING, 1, random.integers(8_000, 20_000, tasks)),
    ]
    rows = [np.stack(np.broadcast_arrays(*column)) for column in columns]
    table = np.concatenate(rows, axis=1).astype(np.int64)
    supplies = np.zeros(first + tasks, np.int64)
    supplies[number], supplies[SINK] = 1, -tasks
    return FlowProblem(
        supplies=supplies,
        tails=table[0].astype(np.int32),
        heads=table[1].astype(np.int32),
        capacities=np.ascontiguousarray(table[2]),
        costs=np.ascontiguousarray(table[3]),
    )


@settings(max_examples=25)
@given(
    machines=st.one_of(st.integers(1, 60), st.integers(100, 250)),
    utilisation=st.floats(0.3, 1.6),
    likes=st.integers(1, 6),
    slots=st.integers(1, 4),
    seed=st.integers(0, 2**16),
)
def test_bids_end_at_the_optimum_of_the_peer(
    machines: int, utilisation: float, likes: int, slots: int, seed: int
) -> None:
    problem = crowded(machines, utilisation, seed, likes, slots)
    network = FlowNetwork.of(problem)
    solution = network.solve(warm=False)
    assert solution.cost == cost_of(problem, network.flows()) == peer(problem)
    assert faults(problem, network.flows(), network.prices()) == []
    # What is left behind is settled.
    assert network.solve().scans <= 1


@pytest.mark.parametrize("utilisation", [0.9, 1.05])
def test_a_vertex_with_an_arc_to_every_machine_costs_few_looks_at_each_arc(
    utilisation: float,
) -> None:
    problem = crowded(2_000, utilisation, seed=1)
    solution = FlowNetwork.of(problem).solve(warm=False)
    assert solution.algorithm == "cost-scaling"
    assert solution.scans < 40 * problem.arcs


def test_bids_for_very_many_places_end_at_the_optimum() -> None:
    """Their arrays lie on pages of their own."""
    problem = crowded(45_000, 0.9, seed=4, likes=3)
    network = FlowNetwork.of(problem)
    assert network.solve(warm=False).algorithm == "cost-scaling"
    assert faults(problem, network.flows(), network.prices()) == []


def test_bids_that_were_stopped_go_on_where_they_were() -> None:
    problem = crowded(300, 1.1, seed=2, likes=4)
    require_slices(problem, 8 * problem.arcs)


def test_tasks_that_find_no_place_are_told_and_can_be_repaired() -> None:
    problem = crowded(200, 1.3, seed=3, likes=4)
    require_repair(problem)
