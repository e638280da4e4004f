"""The rules by which greedy algorithms choose a machine, on cells small enough to reckon by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from argosy.model.constraints import PlacementConstraint
from argosy.model.constraints.parts import atoms, leaves
from argosy.model.constraints.text import parse_constraint
from argosy.model.random import Random
from argosy.solvers.placement import (
    ContainerKind,
    Objective,
    PlacementCluster,
    PlacementProblem,
    place,
    problem_of,
)
from argosy.testing.placements import PlacementInstance, random_instance


def cell(
    free: Sequence[Sequence[int]],
    whole: int,
    *requests: tuple[tuple[int, ...], int],
    text: str = "",
    tags: str = "a",
    smallest: tuple[int, ...] | None = None,
) -> PlacementProblem:
    """Machines with this much free of `whole`, and an application of each request and count. Each has a
    tag, the last of `tags` if there are fewer."""
    rows = np.array(free, np.int64)
    kinds = [
        ContainerKind(
            number,
            frozenset(tags[number : number + 1] or tags[-1]),
            np.array(request, np.int64),
            count,
        )
        for number, (request, count) in enumerate(requests)
    ]
    constraints = [parse_constraint(text)] if text else []
    cluster = PlacementCluster(rows, np.full_like(rows, whole))
    return problem_of(cluster, kinds, (), constraints, smallest=smallest or (1,) * rows.shape[1])


def chosen(problem: PlacementProblem, name: str, seed: int = 1, **weights: float) -> list[int]:
    aim = Objective(**{"fragmented": 0.0, **weights})
    machines: list[int] = place(problem, name, Random(seed), aim).machines.tolist()
    return machines


def test_a_new_machine_is_weighed_against_the_load_of_one_in_use() -> None:
    problem = cell([[10], [5]], 10, ((1,), 1))
    assert chosen(problem, "serial") == [0], "the most room"
    assert chosen(problem, "serial", used=0.1) == [1], "no new machine"
    assert chosen(problem, "serial", used=0.1, load=1.0) == [0], "0.1 and a tenth, or six tenths"


def test_a_violation_weighs_more_the_fewer_containers_are_concerned() -> None:
    """A second container beside the first breaks at least half of what is asked. A new machine costs a
    tenth of its weight, because there are ten containers."""
    text = "a -> {a, 0, 0} in machine"
    problem = cell([[10], [5]], 10, ((1,), 2), ((0,), 8), text=text, tags="ab")
    first, second, *_ = chosen(problem, "serial", used=3.0)
    assert first != second
    first, second, *_ = chosen(problem, "serial", used=30.0)
    assert first == second


def test_only_a_machine_that_was_whole_can_be_broken_up() -> None:
    problem = cell([[5], [3]], 10, ((2,), 1), smallest=(4,))
    assert chosen(problem, "serial") == [0]
    assert chosen(problem, "serial", fragmented=1.0) == [1]


def test_of_kinds_with_as_many_candidates_the_first_is_next() -> None:
    problem = cell([[4], [4]], 4, ((1,), 1), ((1,), 1))
    assert place(problem, "node-candidates", Random(1)).kinds.tolist() == [0, 1]


def test_first_fit_takes_the_first_that_breaks_nothing_or_else_the_first_with_room() -> None:
    problem = cell([[0], [9], [9]], 9, ((1,), 3), text="a -> {a, 0, 0} in machine")
    assert chosen(problem, "serial-first-fit") == [1, 2, 1]


def test_kubernetes_takes_equals_in_turn() -> None:
    assert chosen(cell([[1_000]] * 3, 1_000, ((1,), 4)), "kube") == [0, 1, 2, 0]


def test_kubernetes_prefers_a_balanced_machine_to_a_little_more_room() -> None:
    assert chosen(cell([[10, 2], [5, 5]], 10, ((1, 1), 1)), "kube") == [1]


def test_heartbeats_come_round_in_an_order_of_their_own() -> None:
    problem = cell([[9]] * 4, 9, ((1,), 8))
    orders = {tuple(chosen(problem, "heartbeat", seed)) for seed in range(8)}
    assert len(orders) > 1
    for order in orders:
        assert order[:4] == order[4:]
        assert sorted(order[:4]) == [0, 1, 2, 3]


def only_bounds_from_above(instance: PlacementInstance) -> bool:
    """Lower bounds make greedy algorithms look ahead."""
    found = [leaf for each in instance.constraints for leaf in leaves(each.rule)]
    plain = [leaf for leaf in found if isinstance(leaf, PlacementConstraint)]
    return len(plain) == len(found) and not any(
        atom.least for leaf in plain for atom in atoms(leaf.expression)
    )


def test_each_container_goes_where_it_costs_least_and_then_where_most_is_left() -> None:
    aim, seen = Objective(load=0.3, used=0.2), 0
    for seed in range(600):
        instance = random_instance(Random(seed), plain=seed % 2 == 0, hard=0.0)
        if not only_bounds_from_above(instance):
            continue
        problem = instance.problem()
        answer = place(problem, "serial", Random(1), aim)
        kinds, machines = answer.kinds.tolist(), answer.machines.tolist()
        if len(kinds) < problem.containers:
            # An application was left out, and what was where before is not told.
            continue
        seen += 1
        capacity = [machine.capacity.memory for machine in instance.machines]
        room = problem.cluster.free[:, 0].tolist()
        concerned = max(sum(map(instance._concerned, instance.constraints)), 1e-12)
        for step, (kind, machine) in enumerate(zip(kinds, machines, strict=True)):
            asked = instance.kinds[kind][2]
            costs = []
            for at in range(len(capacity)):
                if room[at] < asked:
                    continue
                judged = instance.judge(kinds[: step + 1], [*machines[:step], at]).total
                in_use = 1 - (room[at] - asked) / capacity[at]
                costs_of_machine = (
                    aim.fragmented * (room[at] >= instance.smallest > room[at] - asked)
                    + aim.load * in_use
                    + aim.used * (room[at] == capacity[at])
                )
                loss = aim.violation * judged / concerned + costs_of_machine / problem.containers
                costs.append((round(loss, 9), round(in_use, 5), at))
            assert min(costs)[2] == machine, (seed, step, costs)
            room[machine] -= asked
    assert seen > 50
