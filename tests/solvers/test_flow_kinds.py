"""Kinds of clusters: right answers, and little more work than the best algorithm needs."""

from __future__ import annotations

import numpy as np
import pytest
from flow_peer import peer
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.model.budgets import WorkBudget
from argosy.solvers.flow import Algorithm, FlowNetwork, FlowProblem, Status
from argosy.solvers.flow.checker import faults
from argosy.solvers.flow.clusters import (
    CLUSTERS,
    ClusterShape,
    cluster,
    few_values,
    lognormal,
    pareto,
    uniform,
)

UTILISATIONS = (0.5, 0.9, 0.97, 1.05)
ALONE = ("shortest-paths", "primal-dual", "relaxation", "cost-scaling")

shapes = st.builds(
    ClusterShape,
    slots=st.integers(1, 6),
    rack=st.integers(1, 5),
    preferences=st.integers(1, 6),
    preferred_racks=st.integers(0, 2),
    sizes=st.sampled_from([uniform, lognormal, pareto, few_values]),
    popularity=st.sampled_from([0.0, 1.0]),
    job=st.integers(1, 10),
    huge_jobs=st.booleans(),
    running=st.floats(0, 1),
    well_placed=st.floats(0, 1),
    ageing=st.integers(0, 5),
    has_aggregators=st.booleans(),
    units=st.sampled_from([1, 3]),
)


@settings(max_examples=150)
@given(
    shape=shapes,
    machines=st.integers(2, 9),
    utilisation=st.floats(0.2, 1.5),
    algorithm=st.sampled_from(["auto", "primal-dual", "cost-scaling"]),
)
def test_any_shape_is_solved_as_the_peer_does(
    shape: ClusterShape, machines: int, utilisation: float, algorithm: str
) -> None:
    problem = cluster(shape, machines, utilisation, seed=3)
    assert problem.supplies.sum() == 0
    network = FlowNetwork.of(problem)
    assert network.solve(algorithm).cost == peer(problem)
    assert faults(problem, network.flows(), network.prices()) == []


@pytest.mark.parametrize("utilisation", UTILISATIONS)
@pytest.mark.parametrize("kind", CLUSTERS)
def test_the_automatic_choice_needs_little_more_work_than_the_best_algorithm(
    kind: str, utilisation: float
) -> None:
    problem = cluster(CLUSTERS[kind], 150, utilisation, seed=1)
    network = FlowNetwork.of(problem)
    chosen = network.solve()
    assert chosen.cost == peer(problem)
    assert faults(problem, network.flows(), network.prices()) == []
    # An algorithm that is not done with this much work does not count.
    limit = chosen.scans * 2 // 3
    for algorithm in ALONE:
        alone = FlowNetwork.of(problem).solve(algorithm, budget=WorkBudget(limit))
        assert alone.status is Status.STOPPED, f"{algorithm}: {alone.scans} of {chosen.scans} arcs"


@pytest.mark.parametrize("kind", CLUSTERS)
def test_costs_are_scaled_only_where_tasks_outnumber_slots(kind: str) -> None:
    problem = cluster(CLUSTERS[kind], 150, 0.9, seed=2)
    solution = FlowNetwork.of(problem).solve()
    assert solution.algorithm is Algorithm.PRIMAL_DUAL
    # A few looks at each arc: one search for all, and what single searches add.
    assert solution.scans < 12 * problem.arcs


def test_scarce_destinations_are_left_to_scaling() -> None:
    problem = cluster(CLUSTERS["locality"], 150, 1.3, seed=1)
    assert FlowNetwork.of(problem).solve().algorithm is Algorithm.COST_SCALING


@pytest.mark.parametrize("utilisation", [0.9, 1.2])
def test_a_solve_in_slices_ends_with_the_same_cost(utilisation: float) -> None:
    """Out of budget again and again, in every stage: what was done is kept."""
    problem = cluster(CLUSTERS["hot-spots"], 60, utilisation, seed=4)
    network, slices = FlowNetwork.of(problem), 0
    while (solution := network.solve(budget=WorkBudget(20_000))).status is Status.STOPPED:
        slices += 1
        assert slices < 2_000
    assert slices > 1
    assert solution.cost == peer(problem)
    assert faults(problem, network.flows(), network.prices()) == []


def test_no_more_runs_on_a_machine_than_fits() -> None:
    shape = ClusterShape(slots=2, running=1.0, popularity=1.0)
    problem = cluster(shape, 20, 2.0, seed=5)
    # Vertices: sink, cluster, one rack, machines. The arcs of running tasks are the last.
    first_machine = 3
    starts = np.flatnonzero(np.diff(problem.tails) < 0)[-1] + 1
    places = problem.heads[starts:] - first_machine
    assert places.min() >= 0
    assert np.bincount(places).max() <= 2


def uneven(machines: int, utilisation: float) -> FlowProblem:
    """Machines of 1 to 64 slots, some of them popular: prices rise in many small steps."""
    random = np.random.default_rng(2)
    slots = random.choice([1, 4, 16, 64], machines)
    tasks = int(slots.sum() * utilisation)
    sink, waiting, first_zone, zones = 0, 1, 2, 10
    machine = first_zone + zones + np.arange(machines)
    task = machine[-1] + 1 + np.arange(tasks)
    owner = np.repeat(task, 3)
    liked = machine[random.zipf(1.3, len(owner)) % machines]
    near = first_zone + random.integers(0, zones, len(owner))
    rows = [
        (machine, sink, slots, 0),
        (first_zone + machine % zones, machine, slots, random.integers(0, 20, machines)),
        ([waiting], sink, tasks, 0),
        (task, waiting, 1, random.integers(500, 2_000, tasks)),
        (owner, liked, 1, random.integers(0, 99, len(owner))),
        (owner, near, 1, random.integers(100, 400, len(owner))),
    ]
    columns = zip(*(np.broadcast_arrays(*row) for row in rows), strict=True)
    tails, heads, capacities, costs = (np.concatenate(column) for column in columns)
    supplies = np.zeros(task[-1] + 1, np.int64)
    supplies[task] = 1
    supplies[sink] = -tasks
    return FlowProblem(supplies, tails.astype(np.int32), heads.astype(np.int32), capacities, costs)


@pytest.mark.parametrize(("utilisation", "most"), [(0.9, 30), (0.97, 30), (1.05, 60)])
def test_what_is_fought_over_is_settled_in_a_few_dozen_looks_at_each_arc(
    utilisation: float, most: int
) -> None:
    problem = uneven(200, utilisation)
    network = FlowNetwork.of(problem)
    solution = network.solve()
    assert solution.cost == peer(problem)
    assert faults(problem, network.flows(), network.prices()) == []
    assert solution.scans < most * problem.arcs
