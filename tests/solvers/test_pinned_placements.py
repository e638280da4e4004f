"""Placement problems and every answer to them: all arrays of the problem, what each heuristic, reading
and program makes of it, how each answer is judged, and the integer program itself, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pytest
from drawn_clusters import dice_of, draw_constraint
from pinned_digests import require_digests
from told_values import outcome, told

from argosy.campaign.dice import Dice
from argosy.model.budgets import WorkBudget
from argosy.model.constraints.parts import conjuncts
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError
from argosy.model.machines import static_tags
from argosy.model.random import Random
from argosy.solvers.placement.answer import Objective, appraise, dominant, mean_share
from argosy.solvers.placement.bounds import pooled_bound, simple_bound
from argosy.solvers.placement.candidates import undominated, usable
from argosy.solvers.placement.cluster import ContainerKind, Family
from argosy.solvers.placement.formulation import Formulation
from argosy.solvers.placement.heuristics import HEURISTICS, place, popularity_order, ranked
from argosy.solvers.placement.ilp import SolverLimits, solve
from argosy.solvers.placement.placement_state import PlacementState
from argosy.solvers.placement.plain import READINGS, read_plainly
from argosy.solvers.placement.printed import has_printed_form, solve_printed
from argosy.solvers.placement.problem import PlacementProblem
from argosy.solvers.placement.program import Program
from argosy.solvers.placement.violations import Judge
from argosy.testing.placements import random_instance

PINNED: Final = Path(__file__).parent / "pinned"
TAGS: Final = ("web", "db", "cache", "appID:a")
AIMS: Final = (
    Objective(),
    Objective(first=0.0, violation=2.0, fragmented=0.0),
    Objective(load=0.3, used=0.2, moved=1.0),
    Objective(placed=0.1, violation=0.0, fragmented=3.0),
)


def drawn_state(dice: Dice) -> tuple[PlacementState, PlacementProblem]:
    """More machines, families that overlap, kinds of several precedences, that may go only to some
    machines or move from where they run, and containers that started and stopped before."""
    count = dice.one_of((1, 2, 5, 9, 16))
    random = Random(dice.among(0, 10_000))
    capacity = np.array(
        [[1_000 * (1 + random.below(8)), 4 * (1 + random.below(4))] for _ in range(count)], np.int64
    )
    free = capacity - capacity * random.below(3) // 4
    racks = [[at // 3] for at in range(count)]
    zones = [[z for z in range(3) if random.below(2)] for _ in range(count)]
    families = {
        "rack": Family.of("rack", racks, count // 3 + 1),
        "zone": Family.of("zone", zones, 3),
    }
    if "machine" not in families:
        families["machine"] = Family.of("machine", [[at] for at in range(count)], count)
    some = np.arange(count) % 2 == 0
    static = [(static_tags({"disk": "ssd", "gpu-node": "true"}), some)]
    state = PlacementState(count, families, static)
    constraints = [
        parse_constraint(draw_constraint(dice, TAGS[:3], ["machine", "rack", "zone"]))
        for _ in range(dice.among(0, 4))
    ]
    for constraint in constraints:
        state.add(constraint)
    for _ in range(dice.among(0, 8)):
        tags = frozenset(dice.some_of(TAGS))
        machine = dice.among(0, count - 1)
        state.start(tags, machine, dice.among(1, 2))
        if dice.chance(0.3):
            state.stop(tags, machine)
    if constraints and dice.chance(0.3):
        state.remove(constraints[0])
        state.add(constraints[0])
    kinds = []
    for app in range(dice.among(0, 3)):
        for _ in range(dice.among(1, 2)):
            request = np.array([250 * dice.among(0, 8), dice.among(0, 4)], np.int64)
            fields: dict[str, Any] = {}
            if dice.chance(0.2):
                fields["allowed"] = np.arange(count) % dice.among(1, 3) == 0
            if dice.chance(0.3):
                fields["precedence"] = dice.among(-1, 2)
            tags = frozenset(dice.some_of(TAGS))
            kinds.append(ContainerKind(app, tags, request, dice.among(1, 4), **fields))
    smallest = (1_000, 2) if dice.chance(0.6) else None
    return state, state.problem(free, capacity, kinds, smallest)


def told_problem(problem: PlacementProblem) -> Iterator[str]:
    yield told(problem)
    yield told(problem.tiers)
    yield told(problem.containers)
    yield told(list(problem.fitting()))
    yield told(popularity_order(problem))
    yield told(mean_share(problem))
    yield outcome(
        dominant, problem.cluster.capacity - problem.cluster.free, problem.cluster.capacity
    )
    yield outcome(usable, problem)
    for aim in AIMS[:2]:
        yield outcome(undominated, problem, aim)
        yield outcome(simple_bound, problem, aim)
        yield outcome(pooled_bound, problem, aim)


def told_answers(problem: PlacementProblem, aim: Objective) -> Iterator[str]:
    """Of each algorithm, with its cost in steps and its judgement."""
    for name, how in HEURISTICS.items():
        budget = WorkBudget()
        random = Random(5)
        yield f"{name}: {outcome(ranked, problem, how)}"
        yield outcome(place, problem, name, random, aim, None, budget)
        yield f"{budget.steps} {random.below(1 << 30)}"
    for name in READINGS:
        yield f"{name}: {outcome(read_plainly, problem, name, aim)}"
    nothing = np.empty(0, np.int32)
    yield outcome(appraise, problem, aim, nothing, nothing)
    if problem.kinds:
        every = [[n] * kind.count for n, kind in enumerate(problem.kinds)]
        rows = np.array([number for part in every for number in part], np.int32)
        where = (np.arange(len(rows)) % problem.cluster.machines).astype(np.int32)
        yield outcome(appraise, problem, aim, rows, where)
        yield outcome(appraise, problem, aim, rows[:1], where[:1])


def told_program(problem: PlacementProblem, aim: Objective, dice: Dice) -> Iterator[str]:
    """The integer program for some machines, and values that follow from others."""
    count = problem.cluster.machines
    for candidates in (range(count), range(0, count, 2)):
        chosen = np.array(candidates, np.int32)
        try:
            made = Formulation(problem, aim, chosen, dice.one_of((None, None, 1)))
        except ModelError as error:
            yield told(error)
            continue
        yield told([made.fits, made.x, made.whole])
        yield from told_rows(made.program)
        start = {
            int(made.x[kind, at]): float(dice.among(0, int(made.fits[kind, at])))
            for kind in range(len(problem.kinds))
            for at in np.flatnonzero(made.x[kind] >= 0).tolist()
        }
        values = made.program.completed(start)
        yield told([values, made.program.violates(values)])
        yield told(made.program.violates(made.program.completed({})))


def told_rows(program: Program) -> Iterator[str]:
    yield told([program.lower, program.upper, program.cost, program.integral, program.constant])
    yield told(program.rows)
    yield told([number for number, _ in program.derived])


@pytest.mark.parametrize("part", range(4))
def test_problems_and_answers_are_pinned(part: int, request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(40):
        dice = dice_of("placement", part, number)
        state, problem = drawn_state(dice)
        aim = AIMS[number % len(AIMS)]
        lines = [*told_problem(problem), *told_answers(problem, aim)]
        if problem.kinds:
            lines += told_program(problem, aim, dice)
        known = [constraint for constraint, _ in state.choices()]
        lines.append(told(list(Judge(state).broken(known))))
        lines.append(told(state.popularity()))
        lines += [told(list(state.concerned(each))) for each in known]
        outcomes[f"{part} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"placements_{part}.txt", outcomes, request.config)


@pytest.mark.parametrize("part", range(2))
def test_small_instances_are_pinned_with_the_meaning_of_their_answers(
    part: int, request: pytest.FixtureRequest
) -> None:
    outcomes = {}
    for number in range(40):
        is_plain = part == 1
        instance = random_instance(Random(number + 1_000 * part), plain=is_plain, running=4)
        problem = instance.problem()
        lines = [told(instance), *told_problem(problem), *told_answers(problem, AIMS[0])]
        for name in HEURISTICS:
            answer = place(problem, name, Random(1), AIMS[0])
            kinds, machines = answer.kinds.tolist(), answer.machines.tolist()
            lines.append(told(instance.judge(kinds, machines)))
            lines.append(told(instance.value(kinds, machines, AIMS[0])))
        lines += [
            told([has_printed_form(each, {"zone"}), list(conjuncts(each))])
            for each in instance.constraints
        ]
        outcomes[f"{part} {number}"] = "\n".join(lines)
    require_digests(PINNED / f"small_instances_{part}.txt", outcomes, request.config)


def test_what_the_program_finds_is_pinned(request: pytest.FixtureRequest) -> None:
    """Of answers that may be one of several equally good ones, only the worth."""
    pytest.importorskip("ortools")
    outcomes = {}
    for number in range(24):
        instance = random_instance(Random(500 + number), plain=number % 3 == 0)
        problem = instance.problem()
        limits = (SolverLimits(), SolverLimits(machines=2), SolverLimits(places=4, nodes=1))
        lines = []
        for limit in limits:
            answer = solve(problem, Random(1), AIMS[number % 2], limit, always=number % 2 == 0)
            lines.append(told([answer.worth.value, answer.worth.placed, answer.status]))
            lines.append(told([answer.worth.is_allowed, answer.candidates]))
            if answer.status == "optimal":
                lines.append(told(answer.bound))
        try:
            printed = solve_printed(problem, AIMS[0])
        except ModelError as error:
            lines.append(told(error))
        else:
            lines.append(told([printed.worth.placed, printed.status, printed.algorithm]))
        outcomes[f"{number}"] = "\n".join(lines)
    require_digests(PINNED / "programs.txt", outcomes, request.config)


def test_parts_of_programs_are_pinned(request: pytest.FixtureRequest) -> None:
    outcomes = {}
    for number in range(30):
        dice = dice_of("program", number)
        program = Program()
        for _ in range(dice.among(1, 6)):
            program.add(
                dice.one_of((0.0, 1.0, 5.0)),
                dice.one_of((0.0, -1.0, 2.5)),
                integral=dice.chance(0.7),
                derived=(lambda values: sum(values) / 2) if dice.chance(0.3) else None,
            )
        columns = [dice.among(0, len(program.upper) - 1) for _ in range(dice.among(0, 5))]
        least, most = dice.one_of(((0.0, 0.0), (-np.inf, 2.0), (1.0, np.inf)))
        program.row(columns, [dice.one_of((1.0, -1.0)) for _ in columns], least, most)
        program.charge(columns[:2], 0.5)
        program.forbid(columns[2:3])
        start = {0: dice.one_of((0.0, 1.0, 6.0, -1.0))}
        values = program.completed(start)
        outcomes[f"{number}"] = "\n".join(
            [*told_rows(program), told(values), told(program.violates(values))]
        )
    require_digests(PINNED / "program_parts.txt", outcomes, request.config)


def test_unknown_names_are_refused() -> None:
    problem = msgspec.structs.replace(random_instance(Random(1)).problem())
    with pytest.raises(KeyError):
        place(problem, "none", Random(1))
