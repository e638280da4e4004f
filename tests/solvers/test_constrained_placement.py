"""Placement algorithms, held against the meaning of constraints and against all possible answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from argosy.model.budgets import WorkBudget
from argosy.model.constraints import (
    AllTags,
    AnyOf,
    AnyTags,
    ConstraintRule,
    PlacementConstraint,
    TagConstraint,
)
from argosy.model.constraints.text import parse_constraint
from argosy.model.errors import ModelError
from argosy.model.random import Random
from argosy.solvers.placement import (
    HEURISTICS,
    ContainerKind,
    Family,
    Objective,
    PlacementCluster,
    PlacementProblem,
    PlacementState,
    Running,
    candidates,
    place,
    printed,
    problem_of,
)
from argosy.solvers.placement.answer import appraise
from argosy.solvers.placement.bounds import pooled_bound, simple_bound
from argosy.solvers.placement.candidates import undominated
from argosy.solvers.placement.forms import alternatives
from argosy.solvers.placement.formulation import Formulation
from argosy.solvers.placement.ilp import SolverLimits, solve
from argosy.solvers.placement.printed import solve_printed
from argosy.solvers.placement.program import Program
from argosy.solvers.placement.violations import Judge
from argosy.testing.placements import PlacementInstance, random_constraint, random_instance

AIM = Objective(first=0)
#: With alternatives, over one group and over two.
RICH = (
    "w -> {w, 0, 1} or {m, 1, 3} in machine",
    "w -> {w, 3, inf} in rack or w -> {w, 0, 0} in machine",
    "m -> not {w, 1, 3} in rack hard",
)
PATIENT = SolverLimits(nodes=100_000)
AWARE = [name for name in HEURISTICS if name != "heartbeat"]


@pytest.mark.parametrize("name", HEURISTICS)
def test_what_a_heuristic_reports_is_what_the_constraints_mean(name: str) -> None:
    for seed in range(120):
        instance = random_instance(Random(seed))
        answer = place(instance.problem(), name, Random(1), AIM)
        kinds, machines = answer.kinds.tolist(), answer.machines.tolist()
        judged = instance.judge(kinds, machines)
        assert answer.worth.violation == pytest.approx(
            judged.total + answer.worth.violation_before - instance.judge((), ()).total
        )
        value = instance.value(kinds, machines, AIM)
        assert answer.worth.is_allowed == (value is not None)
        if value is not None:
            assert answer.worth.value == pytest.approx(value)


def test_only_what_does_not_look_at_constraints_breaks_hard_ones() -> None:
    for seed in range(120):
        problem = random_instance(Random(seed)).problem()
        for name in AWARE:
            assert place(problem, name, Random(1)).worth.is_allowed


@pytest.mark.parametrize("order", [0, 1])
def test_incrementally_updated_scores_equal_recomputed_ones(order: int) -> None:
    """With scored and first-fit rules, on small random cells and on a crowd with alternatives."""
    problems = [random_instance(Random(seed)).problem() for seed in range(150)]
    problems += [crowded(seed=seed, texts=RICH) for seed in range(3)]
    for problem in problems:
        sequence = list(range(len(problem.kinds)))
        unit = 1 / max(problem.concerned, 1e-12)
        for rule in (0, 1):
            answers = [
                problem.placer().run(
                    sequence, order, rule, (unit, 0.1, 0.05, 0.01), Random(1), None, thorough
                )
                for thorough in (False, True)
            ]
            for mended, anew in zip(*answers, strict=True):
                assert mended.tolist() == anew.tolist()


def best_of(instance: PlacementInstance) -> float:
    values = (instance.value(*answer, AIM) for answer in instance.answers())
    return max(value for value in values if value is not None)


@pytest.mark.parametrize("plain", [True, False])
def test_the_integer_program_is_as_good_as_trying_everything(plain: bool) -> None:
    for seed in range(1_000, 1_100):
        instance = random_instance(Random(seed), plain=plain)
        problem = instance.problem()
        answer = solve(problem, Random(1), AIM, PATIENT, always=True)
        value = instance.value(answer.kinds.tolist(), answer.machines.tolist(), AIM)
        best = best_of(instance)
        assert value == pytest.approx(best, abs=1e-7), seed
        assert answer.status == "optimal"
        assert simple_bound(problem, AIM) >= best - 1e-9
        assert pooled_bound(problem, AIM) >= best - 1e-9


def hbase(ledger: PlacementState, app: int, number: int) -> list[ContainerKind]:
    """One instance as in section 7.1 of the paper, at most two workers of one instance a machine."""
    own = f"appID:h{number}"
    for text in (
        f"{own} & w -> {{{own} & w, 9, inf}} in rack",
        f"{own} & w -> {{{own} & w, 0, 1}} in machine",
        f"{own} & m -> {{{own} & t, 1, inf}} in machine",
        f"{own} & m -> {{{own} & s, 0, 0}} in machine",
    ):
        ledger.add(parse_constraint(text))
    return [
        ContainerKind(app, frozenset({own, role}), np.array([1, memory], np.int64), count)
        for role, memory, count in (("w", 2, 10), ("m", 1, 1), ("t", 1, 1), ("s", 1, 1))
    ]


def racks(machines: int, per_rack: int) -> dict[str, Family]:
    joins = [[number // per_rack] for number in range(machines)]
    return {"rack": Family.of("rack", joins, -(-machines // per_rack))}


def crowded(machines: int = 24, seed: int = 3, texts: Sequence[str] = ()) -> PlacementProblem:
    """A cell in which room is scarce and uneven; `texts` are constraints beside the usual."""
    random = Random(seed)
    capacity = np.tile(np.array([[8, 16]], np.int64), (machines, 1))
    free = capacity - np.array([[2 + random.below(4), 4 + random.below(9)] for _ in capacity])
    ledger = PlacementState(machines, racks(machines, 6))
    kinds = hbase(ledger, 0, 0) + hbase(ledger, 1, 1)
    for text in texts:
        ledger.add(parse_constraint(text))
    for _ in range(20 if texts else 0):
        ledger.start(frozenset({"w", "appID:old"}), random.below(machines))
    return ledger.problem(free, capacity, kinds, (1, 2))


def solved(problem: PlacementProblem, aim: Objective, machines: np.ndarray) -> float:
    solution = Formulation(problem, aim, machines).program.solve()
    assert solution.is_optimal
    return -solution.objective


@pytest.mark.parametrize("aim", [AIM, Objective(first=0, used=0.2, load=0.3)])
def test_leaving_out_dominated_machines_loses_nothing(aim: Objective) -> None:
    for seed in range(6):
        random = Random(seed)
        count = 14
        capacity = np.full((count, 1), 6, np.int64)
        free = capacity - np.array([[random.below(4)] for _ in range(count)])
        ledger = PlacementState(count, racks(count, 7))
        for _ in range(2):
            ledger.add(random_constraint(random, plain=True))
        kinds = [
            ContainerKind(app, frozenset("ab"[app]), np.array([1 + random.below(2)], np.int64), 2)
            for app in range(2)
        ]
        problem = ledger.problem(free, capacity, kinds, (2,))
        kept = undominated(problem, aim)
        assert len(kept) < count
        every = np.arange(count, dtype=np.int32)
        assert solved(problem, aim, kept) == pytest.approx(solved(problem, aim, every))


def test_extra_objectives_in_the_program_are_those_of_the_appraisal() -> None:
    aim = Objective(first=0, used=0.2, load=0.3)
    problem = crowded()
    answer = solve(problem, Random(1), aim, PATIENT, always=True)
    every = np.arange(problem.cluster.machines, dtype=np.int32)
    assert answer.worth.value == pytest.approx(solved(problem, aim, every))
    assert answer.worth.value < 1 - 0.2 * 2 / 26


def test_the_program_is_never_worse_than_any_heuristic_however_few_machines_and_nodes() -> None:
    for problem in [crowded(seed=n) for n in range(4)] + [
        random_instance(Random(n)).problem() for n in range(60)
    ]:
        worths = [place(problem, name, Random(1)).worth for name in AWARE]
        greedy = max(worth.value for worth in worths)
        for limits in (SolverLimits(machines=8, nodes=1), SolverLimits(machines=12, nodes=20)):
            answer = solve(problem, Random(1), limits=limits)
            assert answer.worth.value >= greedy - 1e-12
            assert answer.worth.is_allowed
            assert answer.gap >= 0


def test_machines_are_chosen_for_kinds_of_many_containers() -> None:
    capacity = np.full((40, 1), 12, np.int64)
    kinds = [
        ContainerKind(0, frozenset("a"), np.array([1], np.int64), 300),
        ContainerKind(1, frozenset("b"), np.array([13], np.int64), 1),
    ]
    problem = problem_of(PlacementCluster(capacity, capacity), kinds, smallest=(1,))
    answer = solve(problem, Random(1), limits=SolverLimits(machines=10), always=True)
    assert answer.worth.placed == 1
    assert answer.candidates


def test_an_answer_comes_even_if_there_is_no_time() -> None:
    problem = crowded(seed=1)
    answer = solve(problem, Random(1), budget=WorkBudget(1))
    assert answer.worth.is_allowed
    assert answer.worth.placed == place(problem, "tag-popularity", Random(1)).worth.placed
    assert (answer.status, answer.candidates) == ("feasible", 0)
    assert answer.gap > 0


def test_a_bound_certifies_an_answer_that_needs_no_program() -> None:
    machines = 60
    capacity = np.tile(np.array([[8, 16]], np.int64), (machines, 1))
    ledger = PlacementState(machines, racks(machines, 30))
    problem = ledger.problem(capacity, capacity, hbase(ledger, 0, 0), (1, 2))
    answer = solve(problem, Random(1))
    assert (answer.status, answer.algorithm, answer.candidates) == ("optimal", "tag-popularity", 0)
    assert answer.worth.violation == 0


def test_a_gathering_application_goes_where_all_of_it_has_room() -> None:
    """The first rack has more room per machine, but not for all ten workers."""
    capacity = np.tile(np.array([[8, 16]], np.int64), (10, 1))
    free = capacity.copy()
    free[4:] -= 2
    ledger = PlacementState(10, {"rack": Family.of("rack", [[int(n >= 4)] for n in range(10)], 2)})
    problem = ledger.problem(free, capacity, hbase(ledger, 0, 0), (1, 2))
    for name in ("serial", "tag-popularity", "node-candidates"):
        answer = place(problem, name, Random(1))
        assert (answer.machines_of(0) >= 4).all()
        assert answer.worth.violation == 0


def test_an_application_that_does_not_fit_leaves_nothing_behind() -> None:
    capacity = np.full((3, 1), 4, np.int64)
    kinds = [
        ContainerKind(0, frozenset("a"), np.array([3], np.int64), 2),
        ContainerKind(0, frozenset("b"), np.array([3], np.int64), 2),
        ContainerKind(1, frozenset("c"), np.array([4], np.int64), 3),
    ]
    for name in HEURISTICS:
        answer = place(problem_of(PlacementCluster(capacity, capacity), kinds), name, Random(1))
        assert answer.kinds.tolist() == [2, 2, 2]


def test_a_soft_constraint_denies_no_place_unless_the_weights_alone_decide() -> None:
    capacity = np.full((1, 1), 20, np.int64)
    kind = ContainerKind(0, frozenset("a"), np.array([1], np.int64), 10)
    apart = parse_constraint("a -> {a, 0, 0} in machine")
    problem = problem_of(PlacementCluster(capacity, capacity), [kind], (), [apart])
    assert solve(problem, Random(1), always=True).worth.placed == 1
    assert solve(problem, Random(1), AIM, always=True).worth.placed == 0


def test_allowed_machines_bound_a_kind() -> None:
    capacity = np.full((4, 1), 4, np.int64)
    allowed = np.array([False, True, False, False])
    kind = ContainerKind(0, frozenset("a"), np.array([2], np.int64), 2, allowed)
    problem = problem_of(PlacementCluster(capacity, capacity), [kind])
    for name in HEURISTICS:
        assert place(problem, name, Random(1)).machines.tolist() == [1, 1]
    assert solve(problem, Random(1), always=True).machines.tolist() == [1, 1]


def test_a_ledger_after_changes_equals_a_new_one() -> None:
    for seed in range(40):
        random = Random(seed)
        instance = random_instance(random)
        families = instance.problem().cluster.families
        ledger = PlacementState(len(instance.machines), families)
        extra = [random_constraint(random) for _ in range(3)]
        for constraint in extra[:2]:
            ledger.add(constraint)
        for tags, machine, _ in instance.running:
            ledger.start(tags, machine, 2)
        for constraint in (*instance.constraints, extra[2]):
            ledger.add(constraint)
        for constraint in extra:
            ledger.remove(constraint)
        for tags, machine, _ in instance.running:
            ledger.stop(tags, machine)
        plain = instance.problem()
        lived = ledger.problem(plain.cluster.free, plain.cluster.capacity, plain.kinds, (2,))
        fresh = problem_of(
            PlacementCluster(plain.cluster.free, plain.cluster.capacity, families),
            plain.kinds,
            (),
            instance.constraints,
            (2,),
        )
        other = PlacementState(len(instance.machines), families)
        for constraint in instance.constraints:
            other.add(constraint)
        for tags, machine, _ in instance.running:
            other.start(tags, machine)
        again = other.problem(plain.cluster.free, plain.cluster.capacity, plain.kinds, (2,))
        assert len(fresh.items) == len(again.items) == len(lived.items)
        answer = place(again, "serial", Random(1))
        worth = appraise(lived, Objective(), answer.kinds, answer.machines)
        assert worth == answer.worth


def test_violations_found_in_a_ledger_agree_with_the_reference() -> None:
    for seed in range(60):
        instance = random_instance(Random(seed))
        problem = instance.problem()
        ledger = PlacementState(
            problem.cluster.machines, problem.cluster.families, problem.cluster.static
        )
        answer = place(problem, "serial", Random(1))
        kinds, machines = answer.kinds.tolist(), answer.machines.tolist()
        for tags, machine, _ in instance.running:
            ledger.start(tags, machine)
        for kind, machine in zip(kinds, machines, strict=True):
            ledger.start(instance.kinds[kind][1], machine)
        judged = instance.judge(kinds, machines)
        found = list(Judge(ledger).broken(instance.constraints))
        total = sum(b.count * b.extent * instance.constraints[b.constraint].weight for b in found)
        assert total == pytest.approx(judged.total)
        assert sum(b.count for b in found) == len(judged.violations)


def test_a_container_that_is_not_there_cannot_stop() -> None:
    ledger = PlacementState(2)
    with pytest.raises(ModelError, match="stops that is not there"):
        ledger.stop(frozenset("a"), 0)
    with pytest.raises(ModelError, match="no node group 'hall'"):
        ledger.add(parse_constraint("a -> {b, 0, 0} in hall"))


def test_a_running_container_moves_only_if_it_is_worth_its_cost() -> None:
    """A machine in the way of two new containers that want to be together."""
    capacity = np.full((2, 1), 4, np.int64)
    free = np.array([[2], [3]], np.int64)
    ledger = PlacementState(2)
    ledger.add(parse_constraint("a -> {a, 1, inf} in machine"))
    kinds = [
        ContainerKind(0, frozenset("a"), np.array([2], np.int64), 2),
        # Taken out of the cluster's room: it runs on machine 1.
        ContainerKind(1, frozenset("x"), np.array([1], np.int64), 1, origin=1),
    ]
    stay = ledger.problem(free, capacity, kinds)
    moved = solve(stay, Random(1), Objective(first=0, moved=0.1), PATIENT, always=True)
    assert moved.machines_of(1).tolist() == [1]
    free[:] = [[2], [4]]
    tight = ledger.problem(free, capacity, kinds)
    moved = solve(tight, Random(1), Objective(first=0, moved=0.1), PATIENT, always=True)
    assert moved.machines_of(1).tolist() == [0]
    assert moved.machines_of(0).tolist() == [1, 1]
    dear = solve(tight, Random(1), Objective(first=0, moved=50.0), PATIENT, always=True)
    assert dear.machines_of(1).tolist() == [1]


def test_the_printed_program_does_not_bind_racks_nor_see_what_runs() -> None:
    """Errors of the paper's figure 5 that the mended program does not have."""
    capacity = np.full((4, 1), 2, np.int64)
    kind = ContainerKind(0, frozenset("a"), np.array([1], np.int64), 4)
    gather = parse_constraint("a -> {a, 3, inf} in rack")
    problem = problem_of(
        PlacementCluster(capacity, capacity, racks(4, 2)), [kind], (), [gather], (1,)
    )
    # Two on a machine would fragment it, so the printed program uses both racks at no cost.
    assert sorted(solve_printed(problem).machines.tolist()) == [0, 1, 2, 3]
    assert solve(problem, Random(1), always=True).worth.violation == 0

    free = np.array([[1], [2], [0], [0]], np.int64)
    kind = ContainerKind(0, frozenset("a"), np.array([1], np.int64), 2)
    away = parse_constraint("a -> {b, 0, 0} in machine")
    running = [Running(frozenset("b"), np.array([1, 0, 0, 0], np.int32))]
    problem = problem_of(PlacementCluster(free, capacity), [kind], running, [away], (1,))
    assert solve_printed(problem).worth.violation == 1
    assert solve(problem, Random(1), always=True).worth.violation == 0


def test_the_printed_program_agrees_on_what_it_can_say() -> None:
    capacity = np.full((3, 1), 3, np.int64)
    kinds = [
        ContainerKind(0, frozenset("a"), np.array([1], np.int64), 3),
        ContainerKind(0, frozenset("b"), np.array([1], np.int64), 1),
    ]
    texts = ("a -> {a, 0, 0} in machine", "b -> {a, 1, inf} in machine")
    problem = problem_of(
        PlacementCluster(capacity, capacity), kinds, (), list(map(parse_constraint, texts))
    )
    answer = solve_printed(problem)
    assert answer.worth.is_allowed
    assert (answer.worth.placed, answer.worth.violation) == (1, 0)


def test_what_has_no_printed_form_is_refused() -> None:
    capacity = np.full((2, 1), 2, np.int64)
    kind = ContainerKind(0, frozenset("a"), np.array([1], np.int64), 1)
    spread = parse_constraint("a -> spread {2, inf} over machine")
    with pytest.raises(ModelError, match="no printed form"):
        solve_printed(problem_of(PlacementCluster(capacity, capacity), [kind], (), [spread]))
    many = np.full((60_000, 1), 2, np.int64)
    with pytest.raises(ModelError, match="as printed"):
        solve_printed(problem_of(PlacementCluster(many, many), [kind]))


def test_the_printed_program_leaves_out_applications_that_it_is_too_small_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(printed, "MOST_PLACES", 10)
    capacity = np.full((4, 2), 4, np.int64)
    request = np.array([1, 1], np.int64)
    kinds = [ContainerKind(app, frozenset({"w"}), request, 2) for app in range(3)]
    answer = solve_printed(problem_of(PlacementCluster(capacity, capacity), kinds))
    assert answer.kinds.tolist() == [0, 0]


@pytest.mark.parametrize(("violation", "machines"), [(10.0, [0, 1]), (0.1, [0, 0])])
def test_the_printed_program_weighs_what_it_is_told_to(
    violation: float, machines: list[int]
) -> None:
    """Two that would be apart, and machines that would be fragmented by one each."""
    capacity = np.full((2, 1), 3, np.int64)
    kind = ContainerKind(0, frozenset("a"), np.array([1], np.int64), 2)
    apart = parse_constraint("a -> {a, 0, 0} in machine")
    problem = problem_of(PlacementCluster(capacity, capacity), [kind], (), [apart], (3,))
    aim = Objective(violation=violation, fragmented=1.0)
    answer = solve_printed(problem, aim)
    assert len(set(answer.machines.tolist())) == len(set(machines))
    assert answer.worth == appraise(problem, aim, answer.kinds, answer.machines)


def test_machines_where_containers_run_are_always_considered() -> None:
    free = np.full((20, 1), 4, np.int64)
    free[19] = 1
    kinds = [ContainerKind(0, frozenset("a"), np.array([1], np.int64), 1, origin=19)]
    problem = PlacementState(20).problem(free, np.full((20, 1), 4, np.int64), kinds)
    pool = np.arange(20, dtype=np.int32)
    for limit in (1, 3):
        machines = candidates.chosen(problem, pool, [], limit, problem.placer()).tolist()
        assert 19 in machines
        assert len(machines) == limit


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(
    ("machines", "violation"), [([0, 0, 1], 0.0), ([0, 1, 4], 0.0), ([0, 2, 4], 1.5)]
)
def test_a_machine_with_the_tags_counts_for_containers_but_not_as_one_that_is_spread(
    is_turned: bool, machines: list[int], violation: float
) -> None:
    """Machine 1 has the tag itself. Each container wants three others in its rack, or two racks."""
    ways = ["a -> {a, 3, 3} in rack", "a -> spread {2, 2} over rack"]
    has_tag = np.array([False, True, False, False, False, False])
    ledger = PlacementState(6, racks(6, 2), [(frozenset("a"), has_tag)])
    ledger.add(parse_constraint(" or ".join(ways[::-1] if is_turned else ways)))
    room = np.full((6, 1), 4, np.int64)
    kinds = [ContainerKind(0, frozenset("a"), np.array([1], np.int64), 3)]
    problem = ledger.problem(room, room, kinds)
    worth = appraise(problem, Objective(), np.zeros(3, np.int32), np.array(machines, np.int32))
    assert worth.violation == violation


@pytest.mark.parametrize("origin", [0, 2])
def test_a_machine_that_is_full_is_usable_to_the_container_that_runs_there(origin: int) -> None:
    free = np.full((3, 1), 4, np.int64)
    free[[0, 2]] = 0
    kinds = [ContainerKind(0, frozenset("a"), np.array([1], np.int64), 1, origin=origin)]
    problem = PlacementState(3).problem(free, np.full((3, 1), 4, np.int64), kinds)
    assert candidates.usable(problem).tolist() == sorted({1, origin})


def one_of(count: int, tag: str = "t") -> AnyTags:
    return AnyTags(tuple(TagConstraint(frozenset({f"{tag}{n}"}), 1, None) for n in range(count)))


@pytest.mark.parametrize(
    "ways",
    [
        lambda some: PlacementConstraint(frozenset("a"), one_of(256 + some), "rack"),
        lambda some: AnyOf(
            tuple(
                PlacementConstraint(frozenset("a"), one_of(count), "rack")
                for count in (128, 128 + some)
            )
        ),
        lambda some: PlacementConstraint(
            frozenset("a"), AllTags((one_of(16, "x"), one_of(16 + some, "y"))), "rack"
        ),
    ],
)
def test_so_many_alternatives_are_considered_and_no_more(
    ways: Callable[[int], ConstraintRule],
) -> None:
    assert len(alternatives(ways(0), frozenset("a"))) == 256
    with pytest.raises(ModelError, match=r"a constraint with (257|272) alternatives"):
        alternatives(ways(1), frozenset("a"))


def test_a_column_that_a_row_names_twice_counts_twice() -> None:
    program = Program()
    program.row([4, 7, 4], [1.0, 2.0, -3.0], 0, 5)
    program.row([4, 7], [1.0, 2.0])
    assert program.rows == [
        ([4, 7], [-2.0, 2.0], 0, 5),
        ([4, 7], [1.0, 2.0], -np.inf, np.inf),
    ]
