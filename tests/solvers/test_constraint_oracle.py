"""Reference, heuristics and integer program, held against an evaluator that shares no code with them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from constraint_oracle import ConstraintOracle, ExhaustiveSearch, Placed

from argosy.model.constraints.meaning import Container, Meaning
from argosy.model.constraints.text import parse_constraint
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.solvers.placement import Objective, place
from argosy.solvers.placement.answer import appraise
from argosy.solvers.placement.formulation import Formulation
from argosy.solvers.placement.ilp import SolverLimits, solve
from argosy.testing.placements import PlacementInstance, random_instance

AIM = Objective(first=0)
PATIENT = SolverLimits(nodes=100_000)


def crowd(seed: int) -> PlacementInstance:
    """An instance in which much runs already, and some of it breaks constraints."""
    return random_instance(Random(seed), running=8, hard=0.6)


def one_machine(constraint: str, running: str, new: str) -> PlacementInstance:
    """One machine, which is in two sets of `ov`, with containers that have a tag each."""
    machine = Machine("m0", Resources(memory=100), {}, {"ov": ("o0", "o1")})
    return PlacementInstance(
        (machine, Machine("m1", Resources(memory=0))),
        tuple((frozenset({tag}), 0, 1) for tag in running),
        tuple((number, frozenset({tag}), 1, 1) for number, tag in enumerate(new)),
        (parse_constraint(constraint),),
        smallest=0,
    )


def test_the_reference_agrees_with_the_definition() -> None:
    for seed in range(300):
        instance = random_instance(Random(seed), running=6)
        oracle, meaning = ConstraintOracle(instance.machines), Meaning(instance.machines)
        placed: list[Placed] = [(tags, machine) for tags, machine, _ in instance.running]
        containers = [Container(tags, instance.machines[at].name) for tags, at in placed]
        for constraint in instance.constraints:
            for who, container in enumerate(containers):
                extent = meaning.extent(constraint.rule, container, containers)
                assert extent == pytest.approx(oracle.extent(constraint.rule, who, placed)), seed


@pytest.mark.parametrize(
    ("said", "same"),
    [
        ("not ({x, 0, inf} or {y, 0, 0})", "not {x, 0, inf} and {y, 1, inf}"),
        ("not ({x, 0, inf} and {y, 0, 0})", "not {x, 0, inf} or {y, 1, inf}"),
        ("not ({x, 1, 2} or {y, 0, 0})", "({x, 0, 0} or {x, 3, inf}) and {y, 1, inf}"),
        ("not (not {x, 2, inf} and {y, 0, 1})", "{x, 2, inf} or {y, 2, inf}"),
    ],
)
def test_moving_a_negation_inwards_changes_no_extent(said: str, same: str) -> None:
    machines = [Machine("a", Resources(1))]
    first, second = (parse_constraint(f"s -> {text} in machine").rule for text in (said, same))
    for xs in range(4):
        for ys in range(4):
            tags = ["s", *["x"] * xs, *["y"] * ys]
            containers = [Container(frozenset({tag}), "a") for tag in tags]
            placed: list[Placed] = [(each.tags, 0) for each in containers]
            extents = {
                Meaning(machines).extent(rule, containers[0], containers)
                for rule in (first, second)
            }
            assert extents == {ConstraintOracle(machines).extent(first, 0, placed)}


def test_whether_an_answer_is_allowed_and_what_it_is_worth_is_as_defined() -> None:
    verdicts: Counter[bool] = Counter()
    for seed in range(80):
        instance = crowd(seed)
        problem = instance.problem()
        placer = problem.placer()
        for answer, value in ExhaustiveSearch(instance).all():
            kinds = np.array([kind for kind, _ in answer], np.int32)
            machines = np.array([machine for _, machine in answer], np.int32)
            worth = appraise(problem, AIM, kinds, machines, placer)
            assert worth.is_allowed == (value is not None), (seed, answer)
            verdicts[worth.is_allowed] += 1
            if value is not None:
                assert worth.value == pytest.approx(value), (seed, answer)
    assert min(verdicts.values()) > 1_000


@pytest.mark.parametrize("name", ["serial", "tag-popularity", "node-candidates"])
def test_heuristics_give_only_answers_that_are_allowed(name: str) -> None:
    for seed in range(200, 300):
        instance = crowd(seed)
        answer = place(instance.problem(), name, Random(1), AIM)
        search = ExhaustiveSearch(instance)
        rows = list(zip(answer.kinds.tolist(), answer.machines.tolist(), strict=True))
        apps = {instance.kinds[kind][0] for kind, _ in rows}
        value = search.value(rows, len(apps) / len({app for app, *_ in instance.kinds}))
        assert value == pytest.approx(answer.worth.value), seed


def test_the_program_says_of_every_answer_what_it_is_worth() -> None:
    verdicts: Counter[bool] = Counter()
    for seed in range(60):
        instance = crowd(seed)
        problem = instance.problem()
        every = np.arange(len(instance.machines), dtype=np.int32)
        formulation = Formulation(problem, AIM, every)
        program = formulation.program
        for answer, value in ExhaustiveSearch(instance).all():
            start: Counter[int] = Counter()
            for kind, machine in answer:
                start[int(formulation.x[kind, machine])] += 1
            if -1 in start:
                continue
            values = program.completed({column: float(n) for column, n in start.items()})
            is_allowed = not program.violates(values)
            assert is_allowed == (value is not None), (seed, answer)
            verdicts[is_allowed] += 1
            if value is not None:
                cost = float(np.dot(program.cost, values)) + program.constant
                assert -cost == pytest.approx(value), (seed, answer)
    assert min(verdicts.values()) > 500


def test_the_program_finds_the_best_answer_where_hard_constraints_are_broken_already() -> None:
    for seed in range(300, 400):
        instance = crowd(seed)
        answer = solve(instance.problem(), Random(1), AIM, PATIENT, always=True)
        assert answer.worth.is_allowed
        assert answer.worth.value == pytest.approx(ExhaustiveSearch(instance).best(), abs=1e-7), (
            seed
        )
        assert answer.status == "optimal"


@pytest.mark.parametrize("nodes", [1, 3])
def test_no_bound_is_below_the_best_answer_however_tight_the_limits(nodes: int) -> None:
    # The last ones have running containers whose violations new ones could repair.
    for seed in (*range(400, 440), 1_119, 1_467, 1_532, 1_736):
        instance = crowd(seed)
        limits = SolverLimits(nodes=nodes)
        answer = solve(instance.problem(), Random(1), AIM, limits, always=True)
        best = ExhaustiveSearch(instance).best()
        assert answer.bound >= best - 1e-7, seed
        if answer.status == "optimal":
            assert answer.worth.value == pytest.approx(best, abs=1e-7), seed


def test_a_broken_hard_constraint_over_overlapping_sets_may_not_get_worse() -> None:
    instance = one_machine("a -> {b, 0, 0} in ov hard", "ab", "b")
    answer = solve(instance.problem(), Random(1), Objective(), PATIENT, always=True)
    assert (answer.worth.placed, answer.status) == (0, "optimal")
    every = np.arange(2, dtype=np.int32)
    solution = Formulation(instance.problem(), Objective(), every).program.solve()
    assert solution.objective == pytest.approx(0)


@pytest.mark.parametrize(
    ("constraint", "is_placed"),
    [
        # Within a rule, a shortfall may be exchanged for an excess of the same extent.
        ("a -> {b, 1, inf} and {c, 0, 0} in machine hard", True),
        ("a -> {b, 1, inf} and ({c, 0, 0} or {d, 1, inf}) in machine hard", True),
        # Rules are judged one by one, whether or not one has alternatives.
        ("a -> {b, 1, inf} in machine and a -> {c, 0, 0} in machine hard", False),
        ("a -> {b, 1, inf} in machine and a -> {c, 0, 0} or {d, 1, inf} in machine hard", False),
        ("a -> {b, 1, inf} in machine or a -> {d, 1, inf} in machine hard", True),
    ],
)
def test_what_a_hard_and_means_for_a_container_that_breaks_it_already(
    constraint: str, is_placed: bool
) -> None:
    machine = Machine("m0", Resources(memory=100))
    both = frozenset({"b", "c"})
    instance = PlacementInstance(
        (machine,), ((frozenset("a"), 0, 1),), ((0, both, 1, 1),), (parse_constraint(constraint),)
    )
    answer = solve(instance.problem(), Random(1), AIM, PATIENT, always=True)
    assert answer.worth.placed == is_placed
    assert ExhaustiveSearch(instance).best() == pytest.approx(answer.worth.value)
