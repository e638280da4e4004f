"""What the planner of long-running applications asks its algorithm, and what it makes of the answer. The
algorithm here writes down the problem, and answers as it is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from serial_attempts import cell_of, tasks_of

from argosy.cell import Cell
from argosy.engines.families.lra.hard import hard_rows
from argosy.engines.families.lra.memory import Memory
from argosy.engines.families.lra.plans import Application, GroupRequirement, Planner
from argosy.engines.families.lra.settings import LraSettings
from argosy.engines.families.lra.tasks import choose
from argosy.model.budgets import UNTIMED
from argosy.model.constraints.text import parse_constraint
from argosy.model.jobs import Job
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.transactions import OPERATOR, Claims, DrainMachine, Transaction
from argosy.model.truth import group_with_truth, simulated_job
from argosy.solvers.placement import Objective, PlacementAnswer, PlacementProblem
from argosy.solvers.placement.answer import appraise
from argosy.testing.builders import GIB, SECOND, job

APART = parse_constraint("w -> {w, 0, 0} in machine")


def web(name: str, tasks: int, **fields: Any) -> Job:
    return job(name, tasks, kind="service", seconds=None, tags=("w",), **fields).job


class Scripted:
    """Answers with these machines by kind, one answer for each problem. Keeps the problems, and how many
    containers with the tag w ran on each machine in the meantime."""

    def __init__(self, memory: Memory, *answers: dict[int, list[int]]) -> None:
        self._memory = memory
        self._answers = list(answers)
        self.problems: list[PlacementProblem] = []
        self.running: list[list[int]] = []

    def __call__(self, problem: PlacementProblem, random: Any, budget: Any) -> PlacementAnswer:
        self.problems.append(problem)
        self.running.append(running(self._memory))
        rows = [(kind, at) for kind, found in self._answers.pop(0).items() for at in found]
        kinds, machines = (np.array([row[i] for row in rows], np.int32) for i in (0, 1))
        worth = appraise(problem, Objective(), kinds, machines)
        return PlacementAnswer(kinds, machines, worth, "scripted")


def running(memory: Memory) -> list[int]:
    [kind] = [*memory.ledger.running(APART)] or [None]
    counts = np.zeros(memory.machines, np.int32) if kind is None else kind.counts
    return [int(count) for count in counts]


def claims_of(cell: Cell, number: int, *machines: int, cpu: int = 1_000) -> Claims:
    rows = np.array(machines, np.int32)
    shapes = np.full(len(rows), cell.shape(Resources(cpu, GIB), frozenset({"w"})), np.int32)
    return Claims(tasks_of(number, *range(len(rows))), rows, shapes, cell.versions(rows))


class Bench:
    """Machines of 8 cores; containers of one core of job 0, which the scheduler has placed, run on
    `held`."""

    def __init__(self, *held: int, machines: int = 3, **settings: Any) -> None:
        self.cell = cell_of(*[8] * machines)
        claims = claims_of(self.cell, 0, *held)
        assert self.cell.commit(Transaction("s", claims)).all_accepted
        self.memory = Memory(self.cell, "s", (APART,))
        self.settings = LraSettings(**settings)

    def decide(
        self, *answers: dict[int, list[int]], under_way: Claims | None = None, **fields: Any
    ) -> tuple[Any, Scripted]:
        """Asks for two containers of another application."""
        algorithm = Scripted(self.memory, *answers)
        planner = Planner(self.settings, algorithm, "s")
        asked = [Application(web("b", 2, **fields), 1, tasks_of(1, 0, 1))]
        question = planner.ask(asked, self.cell, frozenset(), running={0: web("a", 3)})
        budget = UNTIMED.start(0)
        made = planner.decide(question, self.memory, self.cell, Random(1), budget, under_way)
        return made, algorithm


def cores(problem: PlacementProblem) -> list[int]:
    return [int(row[0]) // 1_000 for row in problem.cluster.free]


def test_claims_under_way_take_room_and_run_until_the_decision_is_made() -> None:
    bench = Bench(0)
    made, algorithm = bench.decide({0: [2, 2]}, under_way=claims_of(bench.cell, 5, 1, 1, cpu=3_000))
    assert cores(algorithm.problems[0]) == [7, 2, 8]
    assert algorithm.running == [[1, 2, 0]]
    assert running(bench.memory) == [1, 0, 0]
    assert [[spot.machine for spot in spots] for spots in made.spots] == [[2, 2]]
    _, algorithm = bench.decide({0: [2, 2]})
    assert (cores(algorithm.problems[0]), algorithm.running) == ([7, 8, 8], [[1, 0, 0]])


def test_claims_under_way_leave_no_less_than_nothing_of_a_machine_that_drains_by_now() -> None:
    bench = Bench()
    claims = claims_of(bench.cell, 5, 1)
    bench.cell.commit(Transaction(OPERATOR, machines=(DrainMachine(1, draining=True),)))
    _, algorithm = bench.decide({0: [2, 2]}, under_way=claims)
    assert cores(algorithm.problems[0]) == [8, 0, 8]


def test_containers_that_may_move_are_asked_about_as_if_they_did_not_run() -> None:
    """Two on m0 break their constraint, the one on m1 does not."""
    bench = Bench(0, 0, 1, migrate=5)
    # The first one goes to m2, and the second stays.
    answer = {0: [2, 2], 1: [2], 2: [0]}
    made, algorithm = bench.decide(answer, under_way=claims_of(bench.cell, 5, 2))
    [problem] = algorithm.problems
    assert cores(problem) == [8, 7, 7]
    assert algorithm.running == [[0, 1, 1]]
    assert [(kind.app, kind.count, kind.origin) for kind in problem.kinds] == [
        (0, 2, -1), (1, 1, 0), (2, 1, 0),
    ]  # fmt: skip
    assert [(move.task, move.to.machine) for move in made.moves] == [(int(tasks_of(0, 0)[0]), 2)]
    assert running(bench.memory) == [2, 1, 0]


@pytest.mark.parametrize("homeless", [1, 2])
def test_if_the_answer_has_no_place_for_one_that_may_move_all_stay(homeless: int) -> None:
    bench = Bench(0, 0, 1, migrate=5)
    first = {0: [2, 2], 1: [2], 2: [2]}
    del first[homeless]
    under_way = claims_of(bench.cell, 5, 2)
    made, algorithm = bench.decide(first, {0: [1, 2]}, under_way=under_way)
    before, after = algorithm.problems
    assert (len(before.kinds), len(after.kinds)) == (3, 1)
    # What is under way counts all the same, and those that stay run.
    assert (cores(before), cores(after)) == ([8, 7, 7], [6, 7, 7])
    assert algorithm.running == [[0, 1, 1], [2, 1, 1]]
    assert made.moves == ()
    assert [[spot.machine for spot in spots] for spots in made.spots] == [[1, 2]]
    assert running(bench.memory) == [2, 1, 0]


def test_a_container_may_stay_where_it_is_though_its_machine_lacks_what_it_requires() -> None:
    bench = Bench(1, 1, migrate=1)
    planner = Planner(bench.settings, algorithm := Scripted(bench.memory, {0: [0]}), "s")
    begin = int(tasks_of(0, 0)[0])
    question = planner.ask([], bench.cell, frozenset())
    needs = GroupRequirement(begin, begin + 2, {"disk": "ssd"})
    asked = type(question)(0, (), 0, (needs,))
    planner.decide(asked, bench.memory, bench.cell, Random(1), UNTIMED.start(0))
    [kind] = algorithm.problems[0].kinds
    assert kind.allowed is not None
    assert kind.allowed.tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("begin", "end", "expected"), [(0, 3, 2), (1, 3, 1), (0, 1, 1), (2, 3, 0), (3, 9, 0)]
)
def test_only_tasks_of_known_groups_may_move(begin: int, end: int, expected: int) -> None:
    bench = Bench(0, 0, 1, migrate=5)
    planner = Planner(bench.settings, Scripted(bench.memory), "s")
    first = int(tasks_of(0, 0)[0])
    question = planner.ask([], bench.cell, frozenset())
    group = GroupRequirement(first + begin, first + end, {})
    asked = type(question)(0, (), 0, (group,))
    assert len(planner._movers(asked, bench.memory, bench.cell)) == expected


class TestTasksWithConstraints:
    """Placed at once, beside what is reserved for applications."""

    def chosen(self, tasks: int, *reserved: int, gang: bool = False) -> Any:
        bench = Bench(machines=2)
        taken = None
        if reserved:
            taken = np.array([[-1_000 * count, 0] for count in reserved], np.int64)
        made = web("b", tasks, cpu=4_000, gang=gang)
        asked = Application(made, 1, tasks_of(1, *range(tasks)))
        planner = Planner(bench.settings, Scripted(bench.memory), "s")
        return choose(planner, asked, taken, Random(1), bench.memory, bench.cell)

    @pytest.mark.parametrize(
        ("reserved", "machines"),
        [((), [0, 1]), ((0, 0), [0, 1]), ((4, 4), [0, 1]), ((5, 0), [1, 1]), ((0, 5), [0, 0])],
    )
    def test_they_take_no_room_that_is_reserved(
        self, reserved: tuple[int, ...], machines: list[int]
    ) -> None:
        made = self.chosen(2, *reserved)
        assert sorted(made.claims.machines.tolist()) == machines
        assert (len(made.left), made.why) == (0, None)

    def test_what_finds_no_place_is_told_what_is_lacking_beside_what_is_reserved(self) -> None:
        made = self.chosen(2, 5, 2)
        assert made.claims.machines.tolist() == [1]
        assert made.claims.tasks.tolist() == tasks_of(1, 0).tolist()
        assert made.left.tolist() == tasks_of(1, 1).tolist()
        # m0 has 3 of 4 cores, m1 has 2.
        assert made.why.nearest_miss.lacking == 1_000
        assert made.why.nearest_miss.machine == 0

    def test_a_gang_is_placed_as_a_whole_or_not_at_all(self) -> None:
        made = self.chosen(2, 5, 2, gang=True)
        assert made.claims is None
        assert made.left.tolist() == tasks_of(1, 0, 1).tolist()

    @pytest.mark.parametrize(("count", "left"), [(1, 0), (2, 0), (3, 2)])
    def test_each_group_of_a_job_claims_what_it_asks_for(self, count: int, left: int) -> None:
        """Two machines of 8 cores. Of three that ask for 3 cores and three that ask for 4, two have no
        place, so they are placed one by one."""
        groups = [
            group_with_truth(count, Resources(cpu, GIB), (SECOND,), tags=("w",))
            for cpu in (3_000, 4_000)
        ]
        bench = Bench(machines=2)
        planner = Planner(bench.settings, Scripted(bench.memory), "s")
        asked = Application(simulated_job("b", *groups).job, 1, tasks_of(1, *range(2 * count)))
        made = choose(planner, asked, None, Random(1), bench.memory, bench.cell)
        claimed = made.claims.tasks.tolist()
        for task, shape in zip(claimed, made.claims.shapes.tolist(), strict=True):
            is_small = task in asked.tasks[:count]
            assert bench.cell.shape_request(shape)[0] == (3_000 if is_small else 4_000)
        assert bench.cell.commit(Transaction("s", made.claims)).all_accepted
        assert len(made.left) == left
        assert sorted([*made.left.tolist(), *claimed]) == asked.tasks.tolist()
        # The first ones of each group have the places.
        for group in (asked.tasks[:count], asked.tasks[count:]):
            found = [task in claimed for task in group.tolist()]
            assert found == sorted(found, reverse=True)


class TestHardConstraints:
    """At most one on each machine; one of job 0 runs on m0."""

    HARD = parse_constraint("w -> {w, 0, 0} in machine hard")

    def rows(
        self,
        machines: list[int],
        gangs: list[int],
        *,
        held: int = 0,
        number: int = 1,
        way: Any = (),
    ) -> list[bool]:
        bench = Bench(held)
        memory = Memory(bench.cell, "s", (self.HARD,))
        claims = claims_of(bench.cell, number, *machines)
        under_way = claims_of(bench.cell, 7, *way) if way else None
        ran = running(memory)
        found = hard_rows(memory, bench.cell, claims, np.array(gangs, np.int32), under_way)
        assert running(memory) == ran
        kept: list[bool] = found.tolist()
        return kept

    @pytest.mark.parametrize(
        ("machines", "gangs", "allowed"),
        [
            ([1, 2], [0, 0], [True, True]),
            ([1, 2], [0, 1], [True, True]),
            ([1, 0], [0, 1], [True, False]),
            ([0, 1], [0, 0], [False, False]),
            # The first of two in one place may go there.
            ([1, 1], [0, 1], [True, False]),
            ([1, 1, 2], [1, 0, 1], [True, False, True]),
            ([1, 1, 2], [0, 0, 1], [False, False, True]),
        ],
    )
    def test_gangs_are_let_in_one_by_one(
        self, machines: list[int], gangs: list[int], allowed: list[bool]
    ) -> None:
        assert self.rows(machines, gangs) == allowed

    def test_claims_under_way_count(self) -> None:
        assert self.rows([1, 2], [0, 1], way=[2]) == [True, False]

    @pytest.mark.parametrize(
        ("held", "machines", "allowed"),
        [
            # The container of before leaves its machine, so that another may come; m0 is the machine
            # whose number is zero.
            (0, [1, 0], [True, True]),
            (1, [0, 1], [True, True]),
            (1, [0, 0], [True, False]),
            (0, [0, 0], [True, False]),
        ],
    )
    def test_what_moves_makes_room_where_it_was(
        self, held: int, machines: list[int], allowed: list[bool]
    ) -> None:
        """Task 0 of job 0 moves, and another of the same job is new."""
        assert self.rows(machines, [0, 1], held=held, number=0) == allowed
