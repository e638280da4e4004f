"""What the program as printed weighs: constraints against each other, and counts against bounds."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.solvers.placement import ContainerKind, PlacementCluster, PlacementProblem, problem_of
from argosy.solvers.placement.answer import Objective
from argosy.solvers.placement.printed import solve_printed

AIM = Objective(violation=1.0, fragmented=0.0)


def problem(*texts: str, **where: list[int]) -> PlacementProblem:
    """One container of kind a on two machines, and others, each on the machine it may go to."""
    kinds = [ContainerKind(0, frozenset("a"), np.array([1]), 1)]
    for tag, machines in where.items():
        for machine in (0, 1):
            if count := machines.count(machine):
                only = np.arange(2) == machine
                app = len(kinds)
                kinds.append(ContainerKind(app, frozenset(tag), np.array([1]), count, only))
    room = np.full((2, 1), 20, np.int64)
    return problem_of(PlacementCluster(room, room), kinds, (), list(map(parse_constraint, texts)))


def machine_of_a(given: PlacementProblem) -> int:
    answer = solve_printed(given, AIM)
    assert answer.worth.placed == given.apps
    [machine] = answer.machines_of(0).tolist()
    return int(machine)


@pytest.mark.parametrize(("first", "second", "machine"), [(3, 1, 0), (1, 3, 1)])
def test_the_heavier_of_two_constraints_is_kept(first: int, second: int, machine: int) -> None:
    given = problem(
        f"a -> {{b, 1, inf}} in machine weight {first}",
        f"a -> {{c, 1, inf}} in machine weight {second}",
        b=[0],
        c=[1],
    )
    assert machine_of_a(given) == machine
    apart = problem(
        f"a -> {{b, 0, 0}} in machine weight {first}",
        f"a -> {{c, 0, 0}} in machine weight {second}",
        b=[0],
        c=[1],
    )
    assert machine_of_a(apart) == 1 - machine


@pytest.mark.parametrize(("weight", "machine"), [(0.5, 0), (1.5, 1)])
def test_what_is_lacking_counts_as_a_share_of_what_is_asked_for(
    weight: float, machine: int
) -> None:
    """Beside b, one of two is lacking, which costs half of 2; beside c, both are."""
    given = problem(
        "a -> {b, 2, inf} in machine weight 2",
        f"a -> {{c, 1, inf}} in machine weight {weight}",
        b=[0],
        c=[1],
    )
    assert machine_of_a(given) == machine


@pytest.mark.parametrize(("weight", "machine"), [(1, 1), (3, 0)])
def test_what_is_too_much_counts_as_a_share_of_what_is_allowed(weight: int, machine: int) -> None:
    """Beside the four of b, two are too many, which costs the whole weight of 2."""
    given = problem(
        "a -> {b, 0, 2} in machine weight 2",
        f"a -> {{c, 1, inf}} in machine weight {weight}",
        b=[0] * 4,
        c=[0],
    )
    assert machine_of_a(given) == machine


@pytest.mark.parametrize(("together", "machines"), [(2, 1), (1, 2)])
def test_a_container_does_not_see_itself(together: int, machines: int) -> None:
    """Two of a kind would be together, and alone; whichever weighs more."""
    room = np.full((2, 1), 9, np.int64)
    kind = ContainerKind(0, frozenset("a"), np.array([1]), 2)
    rules = [
        parse_constraint(f"a -> {{a, 1, inf}} in machine weight {together}"),
        parse_constraint(f"a -> {{a, 0, 0}} in machine weight {3 - together}"),
    ]
    given = problem_of(PlacementCluster(room, room), [kind], (), rules)
    assert len(set(solve_printed(given, AIM).machines.tolist())) == machines
