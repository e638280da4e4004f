"""Generated clusters of several racks: who is connected to whom, and what a seed makes of them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from msgspec.structs import replace

from argosy.solvers.flow import FlowProblem
from argosy.solvers.flow.clusters import CLUSTERS, ClusterShape, cluster
from argosy.solvers.flow.quincy import QuincyCluster, QuincyShape, quincy

#: Five machines in three racks, and two jobs of nine tasks.
SMALL = QuincyShape(5, slots=2, rack=2, tasks_per_job=4)


def test_vertices_are_numbered_kind_by_kind() -> None:
    made = QuincyCluster(SMALL, 1)
    assert (SMALL.tasks, made.racks, made.jobs) == (9, 3, 2)
    assert (made.sink, made.aggregator, made.first_rack) == (0, 1, 2)
    assert (made.first_machine, made.first_job, made.first_task) == (5, 10, 12)
    # There is always a job, and a rack for machines that fill none.
    lone = QuincyCluster(QuincyShape(3, slots=1, rack=3), 1)
    assert (lone.racks, lone.jobs, lone.first_job) == (1, 1, 6)


def test_racks_lead_to_their_machines_and_have_room_for_as_much() -> None:
    tails, heads, capacities = QuincyCluster(SMALL, 1).frame()
    unlimited = 2**31 - 1
    assert list(zip(tails.tolist(), heads.tolist(), capacities.tolist(), strict=True)) == [
        *((1, 2, 4), (1, 3, 4), (1, 4, 2)),
        *((2, 5, 2), (2, 6, 2), (3, 7, 2), (3, 8, 2), (4, 9, 2)),
        *((machine, 0, 2) for machine in range(5, 10)),
        *((10, 0, unlimited), (11, 0, unlimited)),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_running_tasks_have_a_machine_with_a_slot_each(seed: int) -> None:
    shape = QuincyShape(4, slots=3, utilisation=1.25, running=1.0, preferences=2, rack=2)
    made, problem = quincy(shape, seed)
    # Fifteen tasks, of which twelve can run: theirs are the last arcs, and their machines are full.
    assert (shape.tasks, int(problem.supplies[0])) == (15, -15)
    assert problem.supplies[made.first_task :].tolist() == [1] * 15
    here = problem.heads[-12:] - made.first_machine
    assert np.bincount(here, minlength=4).tolist() == [3] * 4
    assert len(set(problem.tails[-12:].tolist())) == 12
    # To stay where it runs costs a task a tenth of its size; through the aggregator, ten more than it.
    away = {
        int(tail): int(cost) - 10
        for tail, head, cost in zip(problem.tails, problem.heads, problem.costs, strict=True)
        if head == made.aggregator
    }
    assert [away[tail] // 10 for tail in problem.tails[-12:].tolist()] == (
        problem.costs[-12:].tolist()
    )


def digest(problem: FlowProblem) -> tuple[int, int, str]:
    columns = [
        column.tolist()
        for column in (
            problem.supplies,
            problem.tails,
            problem.heads,
            problem.capacities,
            problem.costs,
        )
    ]
    return (
        problem.vertices,
        problem.arcs,
        hashlib.sha256(repr(columns).encode()).hexdigest()[:12],
    )


def test_a_seed_makes_the_same_racks_on_every_platform() -> None:
    shape = QuincyShape(10, slots=3, rack=4, tasks_per_job=5)
    assert digest(quincy(shape, 5)[1]) == (47, 251, "297813fe31f5")


#: Ten machines in racks of four, and jobs of five tasks.
RACKS = {
    "locality": (144, 1086, "b1b47696181b"),
    "uniform-costs": (144, 904, "b023833703c3"),
    "pareto-costs": (144, 892, "0b5e8c05aabd"),
    "ties": (144, 1124, "9e725b6b3d07"),
    "few-preferences": (231, 863, "6d6cdac032ac"),
    "many-preferences": (69, 1189, "e1cb2bf21581"),
    "hot-spots": (144, 1094, "a18c96f9cabd"),
    "all-new": (144, 932, "56db652faae4"),
    "no-aggregators": (144, 922, "056ed485fa58"),
    "groups": (60, 473, "98f5cc83dc04"),
}


@pytest.mark.parametrize(("kind", "shape"), CLUSTERS.items())
def test_every_kind_of_cluster_has_its_racks(kind: str, shape: ClusterShape) -> None:
    problem = cluster(replace(shape, rack=4, job=5), 10, 0.9, 5)
    assert digest(problem) == RACKS[kind]
    # The sink, the aggregator, three racks and ten machines come first.
    leaving = [sorted(problem.heads[problem.tails == vertex].tolist()) for vertex in range(1, 15)]
    racks = [[5, 6, 7, 8], [9, 10, 11, 12], [13, 14]]
    if not shape.has_aggregators:
        racks = [[]] * 3
    assert leaving == [[2, 3, 4] if shape.has_aggregators else [], *racks, *[[0]] * 10]


def test_racks_that_tasks_prefer_lead_to_machines_without_an_aggregator_too() -> None:
    shape = replace(CLUSTERS["no-aggregators"], preferred_racks=2, rack=4)
    problem = cluster(shape, 10, 0.9, 5)
    leaving = [sorted(problem.heads[problem.tails == vertex].tolist()) for vertex in range(1, 5)]
    assert leaving == [[], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14]]
