"""Programs and their limits: what a solve says when it is late, too large, or finds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy.model.budgets import WorkBudget
from argosy.model.constraints.text import parse_constraint
from argosy.model.random import Random
from argosy.solvers.placement import (
    ContainerKind,
    Objective,
    PlacementCluster,
    PlacementProblem,
    Running,
    place,
    problem_of,
)
from argosy.solvers.placement.answer import appraise
from argosy.solvers.placement.counting import Counted, Subjects
from argosy.solvers.placement.formulation import Formulation, OutOfTime
from argosy.solvers.placement.ilp import SolverLimits, solve
from argosy.solvers.placement.plain import READINGS, read_plainly
from argosy.solvers.placement.program import Program

AIM = Objective(first=0)


def kind(tags: str, count: int = 1, cpu: int = 1, app: int = 0, **fields: Any) -> ContainerKind:
    return ContainerKind(app, frozenset(tags.split()), np.array([cpu]), count, **fields)


def cell(
    free: Sequence[int],
    kinds: Sequence[ContainerKind],
    *texts: str,
    running: Sequence[tuple[str, Sequence[int]]] = (),
    whole: int = 10,
    smallest: int = 1,
) -> PlacementProblem:
    rows = np.array(free, np.int64)[:, None]
    there = [Running(frozenset(tags.split()), np.array(on, np.int32)) for tags, on in running]
    constraints = [parse_constraint(text) for text in texts]
    cluster = PlacementCluster(rows, np.full_like(rows, whole))
    return problem_of(cluster, list(kinds), there, constraints, smallest=(smallest,))


class TestProgram:
    """Two variables of up to 4 and 3, of which the second costs 5 and the first earns 2."""

    def program(self, most: float = np.inf, least: float = -np.inf) -> Program:
        program = Program()
        program.add(4, -2.0)
        program.add(3, 5.0)
        program.row([0, 1], [1.0, 2.0], least, most)
        program.constant = 100.0
        return program

    @pytest.mark.parametrize(
        ("least", "most", "values", "cost"),
        [
            (-np.inf, np.inf, [4, 0], 92),
            (-np.inf, 3, [3, 0], 94),
            (6, np.inf, [4, 1], 97),
            (7, 8, [4, 2], 102),
            (0, 0, [0, 0], 100),
        ],
    )
    def test_the_cheapest_solution_costs_what_its_variables_and_the_constant_do(
        self, least: float, most: float, values: list[int], cost: float
    ) -> None:
        solution = self.program(most, least).solve()
        assert solution.values is not None
        assert solution.values.tolist() == pytest.approx(values)
        assert (solution.objective, solution.bound) == pytest.approx((cost, cost))
        assert solution.is_optimal

    def test_nothing_is_better_than_what_is_not_feasible(self) -> None:
        solution = self.program(least=11).solve()
        assert solution.values is None
        assert (solution.objective, solution.bound, solution.is_optimal) == (np.inf, np.inf, True)

    def test_only_integral_variables_are_whole(self) -> None:
        for integral, expected in ((True, 2.0), (False, 2.5)):
            program = Program()
            program.add(9, -1.0, integral=integral)
            program.row([0], [2.0], most=5)
            solution = program.solve()
            assert solution.values is not None
            assert solution.values.tolist() == pytest.approx([expected])

    def test_lower_bounds_and_what_is_forbidden_hold(self) -> None:
        program = self.program()
        program.lower[1] = 2.0
        program.forbid([0])
        solution = program.solve()
        assert solution.values is not None
        assert solution.values.tolist() == pytest.approx([0, 2])
        program.charge([1, 0], 3.0)
        assert program.cost == [1.0, 8.0]

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([4.0, 0.0], False),
            ([4.0, 1.5], False),
            ([4.0, 1.6], True),
            ([1.0, 0.0], False),
            ([0.9, 0.0], True),
            ([4.1, 0.0], True),
            ([4.0 + 1e-9, 0.0], False),
            ([-0.1, 1.0], True),
            ([-1e-9, 1.0], False),
        ],
    )
    def test_values_violate_rows_and_bounds(self, values: list[float], expected: bool) -> None:
        assert self.program(most=7, least=1).violates(np.array(values)) is expected

    def test_values_follow_from_earlier_ones(self) -> None:
        program = Program()
        first = program.add(9)
        double = program.add(99, derived=lambda values: 2 * values[first])
        program.add(99, derived=lambda values: values[first] + values[double])
        assert program.completed({first: 3.0}).tolist() == [3, 6, 9]
        assert program.completed({}).tolist() == [0, 0, 0]
        # A value that is given is no more than a wish.
        assert program.completed({first: 3.0, double: 1.0}).tolist() == [3, 6, 9]


class TestSteps:
    """Columns that together cost the next step for each unit beyond what is free."""

    def cheapest(self, units: int, free: int, costs: list[float]) -> float:
        program = Program()
        columns = [program.add(3), program.add(3)]
        program.row(columns, [1.0, 1.0], units, units)
        Counted(program).steps(columns, free, costs)
        solution = program.solve()
        start = program.completed({columns[0]: min(3, units), columns[1]: max(0, units - 3)})
        assert not program.violates(start)
        assert float(np.dot(start, program.cost)) == pytest.approx(solution.objective)
        return solution.objective

    @pytest.mark.parametrize(
        ("units", "expected"), [(0, 0), (2, 0), (3, 1), (4, 1 + 2), (5, 1 + 2 + 4)]
    )
    def test_rising_steps(self, units: int, expected: float) -> None:
        assert self.cheapest(units, 2, [1.0, 2.0, 4.0]) == pytest.approx(expected)

    @pytest.mark.parametrize(("units", "expected"), [(0, 0), (1, -3), (2, -4), (3, -2)])
    def test_steps_below_zero_are_earned_only_by_what_is_there(
        self, units: int, expected: float
    ) -> None:
        assert self.cheapest(units, 0, [-3.0, -1.0, 2.0]) == pytest.approx(expected)

    @pytest.mark.parametrize(("deepest", "most"), [(None, 6), (1, 4), (2, 5)])
    def test_a_limit_may_be_exceeded_so_far_and_no_further(
        self, deepest: int | None, most: int
    ) -> None:
        """Three containers see the two others that they may see."""
        program = Program()
        columns = [program.add(3, -100.0), program.add(3, -100.0)]
        classes = [Subjects(True, columns, 6, 0)]
        Counted(program, deepest).add(columns, 0, 6, classes, (0, 2), 1.0, False)
        solution = program.solve()
        assert solution.values is not None
        assert solution.values[:2].sum() == pytest.approx(most)


def crowded() -> PlacementProblem:
    """Large applications that compete: no heuristic finds what a bound allows."""
    free = np.random.default_rng(5).integers(2, 9, 30).tolist()
    return cell(free, [kind("w", 9, cpu=3, app=app) for app in range(5)])


class TestLimits:
    def test_what_has_too_many_places_is_not_solved(self) -> None:
        """Five kinds, each of which might go to all machines of the first answer."""
        used = len(set(place(crowded(), "tag-popularity", Random(1)).machines.tolist()))
        for places, is_solved in ((5 * used - 1, False), (5 * used, True)):
            answer = solve(crowded(), Random(1), limits=SolverLimits(places=places, nodes=1))
            assert (answer.candidates > 0) == is_solved
            if not is_solved:
                assert (answer.status, answer.algorithm) == ("feasible", "tag-popularity")
                assert answer.gap > 0

    @pytest.mark.parametrize(
        ("machines", "candidates"), [(7, 0), (8, 23), (23, 23), (24, 24), (64, 24)]
    )
    def test_too_few_machines_are_not_worth_a_program(self, machines: int, candidates: int) -> None:
        """Of 24 with room; the 23 that first answers use are always among them."""
        limits = SolverLimits(machines=machines, nodes=1)
        answer = solve(crowded(), Random(1), limits=limits)
        assert answer.candidates == candidates

    def test_all_machines_are_worth_it_however_few(self) -> None:
        tight = cell([4, 4, 2], [kind("a", 2, cpu=2), kind("b", 2, cpu=3, app=1)])
        answer = solve(tight, Random(1), limits=SolverLimits(machines=3), always=True)
        assert (answer.candidates, answer.worth.placed) == (3, 1)
        answer = solve(tight, Random(1), limits=SolverLimits(machines=2), always=True)
        assert (answer.candidates, answer.worth.placed) == (0, 1)

    def test_a_formulation_stops_as_soon_as_it_is_late(self) -> None:
        problem = cell(
            [9, 9], [kind("a", 2)], "a -> {a, 0, 0} in machine", "a -> {b, 0, 0} in machine"
        )
        every = np.arange(2, dtype=np.int32)
        asked: list[int] = []

        def is_late() -> bool:
            asked.append(1)
            return len(asked) > 1

        with pytest.raises(OutOfTime):
            Formulation(problem, AIM, every, is_late=is_late)
        assert len(asked) == 2

    def test_nothing_to_place_is_placed_at_once(self) -> None:
        answer = solve(cell([9], []), Random(1))
        assert (answer.status, answer.machines.tolist(), answer.gap) == ("optimal", [], 0.0)

    def test_what_fits_nowhere_leaves_nothing_to_solve(self) -> None:
        answer = solve(cell([2, 2], [kind("a", cpu=3)]), Random(1), AIM, always=True)
        assert (answer.status, answer.machines.tolist()) == ("optimal", [])
        assert (answer.bound, answer.candidates) == (0.0, 0)

    def test_budgets_bound_what_is_tried(self) -> None:
        seen = []
        for limit in (0, 30, 400, 4_000, 100_000):
            answer = solve(
                crowded(), Random(1), limits=SolverLimits(nodes=1), budget=WorkBudget(limit)
            )
            seen.append(answer.candidates > 0)
        assert seen == sorted(seen)
        assert (seen[0], seen[-1]) == (False, True)


@pytest.mark.parametrize("name", sorted(READINGS))
def test_of_applications_that_break_hard_constraints_together_the_first_are_kept(name: str) -> None:
    """The second is not seen by what the first asks, once it is there: both are judged at the end."""
    kinds = [kind("a", app=0), kind("b", app=1), kind("c", app=2)]
    text = "a -> {b, 0, 0} in machine and a -> {c, 0, 0} in machine hard"
    answer = read_plainly(cell([9], kinds, text), name)
    assert answer.worth.is_allowed
    assert answer.kinds.tolist() == [0]
    apart = read_plainly(cell([9, 9], kinds, text), name)
    assert sorted(apart.kinds.tolist()) == [0, 1, 2]


class TestWeights:
    """What the program makes of an objective is what an answer is worth."""

    @pytest.mark.parametrize("seed", range(12))
    @pytest.mark.parametrize(
        "aim",
        [
            Objective(first=0.0, used=0.4, load=0.0),
            Objective(first=0.0, used=0.0, load=0.7),
            Objective(first=0.0, moved=0.3, fragmented=0.6),
        ],
    )
    def test_every_answer_costs_in_the_program_what_it_is_worth(
        self, seed: int, aim: Objective
    ) -> None:
        random = np.random.default_rng(seed)
        kinds = [
            kind("a", 2, cpu=2, precedence=3),
            kind("b", 1, cpu=3, app=1),
            kind("c", 1, cpu=1, app=2, origin=1),
        ]
        problem = cell(
            random.integers(4, 11, 4).tolist(), kinds, "a -> {b, 1, inf} in machine", smallest=3
        )
        # Candidates come in any order.
        every = random.permutation(4).astype(np.int32)
        formulation = Formulation(problem, aim, every)
        for _ in range(25):
            rows = [(2, int(random.integers(4)))]
            for number, count in ((0, 2), (1, 1)):
                if random.random() < 0.7:
                    rows += [(number, int(at)) for at in random.integers(0, 4, count)]
            answer_kinds = np.array([number for number, _ in rows], np.int32)
            machines = np.array([machine for _, machine in rows], np.int32)
            worth = appraise(problem, aim, answer_kinds, machines)
            start: dict[int, float] = {}
            for number, machine in rows:
                column = int(formulation.x[number, every.tolist().index(machine)])
                start[column] = start.get(column, 0.0) + 1.0
            values = formulation.program.completed(start)
            assert formulation.program.violates(values) is not worth.is_allowed
            if worth.is_allowed:
                cost = float(np.dot(formulation.program.cost, values))
                assert -(cost + formulation.program.constant) == pytest.approx(worth.value)

    def test_a_machine_of_which_one_resource_is_in_use_is_not_empty(self) -> None:
        free, whole = np.array([[10, 4], [10, 8]], np.int64), np.full((2, 2), (10, 8), np.int64)
        asked = ContainerKind(0, frozenset({"a"}), np.array([1, 1]), 1)
        problem = problem_of(PlacementCluster(free, whole), [asked], [], [], smallest=(1, 1))
        aim = Objective(first=0.0, used=0.7, fragmented=0.0)
        formulation = Formulation(problem, aim, np.arange(2, dtype=np.int32))
        costs = []
        for machine in (0, 1):
            values = formulation.program.completed({int(formulation.x[0, machine]): 1.0})
            costs.append(float(np.dot(formulation.program.cost, values)))
        assert costs[1] - costs[0] == pytest.approx(0.7)
        assert solve(problem, Random(1), aim, always=True).machines.tolist() == [0]
