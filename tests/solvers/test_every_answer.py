"""Every answer on three machines: what the program says of it, held against the appraisal, for one kind
of constraint after another, soft and hard, with and without containers that run already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.solvers.placement import (
    ContainerKind,
    Family,
    Objective,
    PlacementCluster,
    PlacementProblem,
    Running,
    problem_of,
)
from argosy.solvers.placement.answer import appraise
from argosy.solvers.placement.formulation import Formulation

AIM = Objective(first=0.0)
FAMILIES = {
    "rack": Family.of("rack", [[0], [0], [1]], 2),
    #: The last machine is in none.
    "hall": Family.of("hall", [[0], [1], []], 2),
    #: The first machine is in both sets.
    "row": Family.of("row", [[0, 1], [1], [0]], 2),
    "zone": Family.of("zone", [[0, 1], [0], []], 2),
}
TEXTS = (
    "a -> {a, 1, 1} in rack",
    "a -> {a, 0, 0} in machine",
    "a -> {b, 2, 3} in rack",
    "a -> {b, 0, 0} in hall",
    "a -> {b, 1, inf} in hall",
    "b -> {a, 1, 1} in machine",
    "b -> {a, 2, inf} in rack",
    "x -> {a, 0, 1} in rack",
    "x -> {b, 1, inf} in machine",
    "a -> spread {2, 2} over rack",
    "b -> spread {2, inf} over machine",
    "a -> {b, 1, inf} and {a, 0, 0} in machine",
    "a -> {b, 1, inf} in rack and b -> {a, 0, 1} in machine",
    "a -> {b, 1, inf} in rack or a -> {a, 0, 0} in machine",
    "a -> {b, 1, inf} or {a, 0, 0} in rack",
    "a -> {b, 0, 0} in row",
    "a -> {a, 1, 1} and {b, 0, 0} in row",
    "b -> {a, 2, 2} in zone",
    "a -> not {b, 1, 2} in rack",
    "a -> not {a, 0, inf} in rack",
    "a -> not {b, 0, inf} in rack or a -> {b, 1, 1} in hall",
    "a -> spread {2, 2} over rack or a -> {b, 1, inf} in machine",
    "x -> {a, 0, 0} in machine or x -> {b, 1, inf} in rack",
    "x -> {a, 1, 1} in row",
    "x -> {a, 0, 0} in zone or x -> {b, 2, inf} in machine",
)


def problem(text: str, running: dict[str, list[int]]) -> PlacementProblem:
    """Two containers of one application, and one of another with a higher precedence."""
    free = np.array([[5], [4], [6]], np.int64)
    cluster = PlacementCluster(free, np.full_like(free, 8), FAMILIES)
    kinds = [
        ContainerKind(0, frozenset("a"), np.array([2]), 2),
        ContainerKind(1, frozenset("b"), np.array([3]), 1, precedence=1),
    ]
    there = [
        Running(frozenset(tags.split()), np.array(on, np.int32)) for tags, on in running.items()
    ]
    return problem_of(cluster, kinds, there, [parse_constraint(text)], smallest=(2,))


def answers() -> Iterator[list[tuple[int, int]]]:
    """Each as pairs of kind and machine."""
    pairs = [(), *combinations_with_replacement(range(3), 2)]
    for first, second in product(pairs, [(), (0,), (1,), (2,)]):
        yield [*((0, at) for at in first), *((1, at) for at in second)]


@pytest.mark.parametrize("is_hard", [False, True])
@pytest.mark.parametrize(
    "running",
    [
        {},
        {"x": [1, 0, 2], "b": [1, 0, 0]},
        {"a": [2, 0, 1], "x": [0, 1, 0], "b x": [0, 1, 0]},
    ],
    ids=["empty", "some", "many"],
)
@pytest.mark.parametrize("text", TEXTS)
def test_the_program_says_of_every_answer_what_it_is_worth_and_whether_it_is_allowed(
    text: str, running: dict[str, list[int]], is_hard: bool
) -> None:
    given = problem(f"{text} hard" if is_hard else text, running)
    formulation = Formulation(given, AIM, np.arange(3, dtype=np.int32))
    program, placer = formulation.program, given.placer()
    best, allowed = -np.inf, 0
    for rows in answers():
        columns = Counter(int(formulation.x[kind, machine]) for kind, machine in rows)
        kinds = np.array([kind for kind, _ in rows], np.int32)
        machines = np.array([machine for _, machine in rows], np.int32)
        worth = appraise(given, AIM, kinds, machines, placer)
        values = program.completed({column: float(count) for column, count in columns.items()})
        assert program.violates(values) is not worth.is_allowed, rows
        if worth.is_allowed:
            cost = float(np.dot(program.cost, values)) + program.constant
            assert -cost == pytest.approx(worth.value), rows
            best, allowed = max(best, worth.value), allowed + 1
    # There is always an answer, if only that nothing is placed; nothing else is ruled out by chance.
    assert allowed > (0 if is_hard else 12)
    solution = program.solve()
    assert solution.is_optimal
    assert -solution.objective == pytest.approx(best)
