"""Which machines an integer program considers, and upper bounds on what it may find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
from argosy.solvers.placement.answer import PlacementAnswer, appraise
from argosy.solvers.placement.bounds import pooled_bound, simple_bound
from argosy.solvers.placement.candidates import chosen, undominated

Joins = Sequence[Sequence[int]]


def kind(tags: str, count: int = 1, cpu: int = 1, app: int = 0, **fields: Any) -> ContainerKind:
    return ContainerKind(app, frozenset(tags.split()), np.array([cpu]), count, **fields)


def cell(
    free: Sequence[int],
    kinds: Sequence[ContainerKind],
    *texts: str,
    whole: Sequence[int] | int = 10,
    groups: dict[str, Joins] | None = None,
    running: Sequence[tuple[str, Sequence[int]]] = (),
    static: Sequence[tuple[str, Sequence[bool]]] = (),
    smallest: int = 1,
) -> PlacementProblem:
    rows = np.array(free, np.int64)[:, None]
    capacity = np.broadcast_to(np.array(whole, np.int64).reshape(-1, 1), rows.shape)
    families = {
        name: Family.of(name, joins, 1 + max((s for mine in joins for s in mine), default=-1))
        for name, joins in (groups or {}).items()
    }
    marked = [(frozenset(tags.split()), np.array(where)) for tags, where in static]
    return problem_of(
        PlacementCluster(rows, capacity.copy(), families, marked),
        list(kinds),
        [Running(frozenset(tags.split()), np.array(on, np.int32)) for tags, on in running],
        [parse_constraint(text) for text in texts],
        smallest=(smallest,),
    )


def picked(
    problem: PlacementProblem, limit: int, *used: Sequence[int], pool: Sequence[int] | None = None
) -> list[int]:
    everywhere = range(problem.cluster.machines)
    answers = [answer(problem, machines) for machines in used]
    machines = np.array(everywhere if pool is None else pool, np.int32)
    return chosen(problem, machines, answers, limit, problem.placer()).tolist()


def answer(problem: PlacementProblem, machines: Sequence[int]) -> PlacementAnswer:
    kinds, rows = np.zeros(len(machines), np.int32), np.array(machines, np.int32)
    return PlacementAnswer(kinds, rows, appraise(problem, Objective(), kinds, rows), "given")


class TestChosen:
    def test_without_sets_the_emptiest_are_chosen_and_of_equals_the_first(self) -> None:
        problem = cell([3, 9, 9, 5, 9], [kind("a")])
        assert picked(problem, 2) == [1, 2]
        assert picked(problem, 4) == [1, 2, 3, 4]
        assert picked(problem, 9) == [0, 1, 2, 3, 4]
        assert picked(problem, 2, pool=[0, 3]) == [0, 3]

    def test_machines_of_known_answers_come_first_however_many(self) -> None:
        problem = cell([3, 9, 9, 5, 9], [kind("a", 3)])
        assert picked(problem, 2, [0, 0, 0]) == [0, 1]
        assert picked(problem, 2, [0, 3, 4]) == [0, 3, 4]
        assert picked(problem, 3, [0], [3]) == [0, 1, 3]

    def test_room_is_that_of_the_scarcest_resource(self) -> None:
        free = np.array([[9, 1], [4, 4], [3, 9]], np.int64)
        cluster = PlacementCluster(free, np.full((3, 2), 10, np.int64))
        asks = [ContainerKind(0, frozenset("a"), np.array([1, 1]), 1)]
        assert picked(problem_of(cluster, asks), 1) == [1]
        assert picked(problem_of(cluster, asks), 2) == [1, 2]

    def test_a_clean_place_for_many_goes_before_room(self) -> None:
        asks = [kind("a", 3), kind("b", cpu=6, app=1)]
        avoided = [("c", [0, 1, 0, 0])]
        problem = cell([2, 9, 6, 5], asks, "a -> {c, 0, 0} in machine", running=avoided)
        # The second has a clean place for one only; the third has one for all four.
        assert picked(problem, 1) == [2]
        assert picked(problem, 2) == [2, 3]
        assert picked(problem, 3) == [0, 2, 3]

    def test_kinds_that_ask_for_the_same_count_once(self) -> None:
        """With the second kind, the first machine would have places for four."""
        alike = [kind("a", 2), kind("b", 2), kind("c", 3, cpu=8, app=1)]
        assert picked(cell([7, 9], alike), 1) == [1]
        assert picked(cell([7, 8], [kind("a", 2), kind("c", 1, cpu=8)]), 1) == [1]

    RACKS = tuple([rack] for rack in (0, 1, 2) for _ in range(10))
    GATHER = "a -> {a, 1, inf} in rack"

    def test_sets_with_the_most_room_give_their_best_machines_in_turn(self) -> None:
        free = [2] * 10 + [*range(1, 11)] + [9] * 10
        problem = cell(free, [kind("a", 2)], self.GATHER, groups={"rack": self.RACKS})
        assert picked(problem, 8) == [*range(20, 28)]
        # Eight of each set at most, unless a quarter of all is more.
        assert picked(problem, 10) == [18, 19, *range(20, 28)]
        assert picked(problem, 20) == [0, 1, 2, 3, *range(12, 28)]
        assert picked(problem, 40) == [*range(30)]

    def test_sets_that_answers_use_come_first(self) -> None:
        free = [2] * 10 + [*range(1, 11)] + [9] * 10
        problem = cell(free, [kind("a", 2)], self.GATHER, groups={"rack": self.RACKS})
        assert picked(problem, 9, [5, 5]) == [*range(8), 20]
        assert picked(problem, 11, [5, 11]) == [0, 5, *range(11, 20)]
        pool = [0, 1, 10, 20]
        assert picked(problem, 3, [5], pool=pool) == [0, 1, 5]

    def test_the_sets_to_gather_in_matter_more_than_those_to_avoid(self) -> None:
        """Two racks, and two zones that cross them; the last machine has the most room."""
        groups: dict[str, Joins] = {
            "rack": [[n // 8] for n in range(16)],
            "zone": [[n % 2] for n in range(16)],
        }
        free = [9 - n % 2 for n in range(16)]
        free[15] = 20
        limits = ["a -> {a, 1, inf} in rack", "a -> {a, 0, 1} in zone"]
        both = cell(free, [kind("a", 2)], *limits, groups=groups, whole=20)
        assert picked(both, 8) == [*range(8, 16)]
        only = cell(free, [kind("a", 2)], limits[1], groups=groups, whole=20)
        assert picked(only, 8) == [*range(1, 16, 2)]

    def test_machines_outside_all_sets_are_a_set_of_their_own(self) -> None:
        joins: Joins = [[0]] * 3 + [[]] * 3
        problem = cell([5, 4, 4, 9, 9, 9], [kind("a", 2)], self.GATHER, groups={"rack": joins})
        # There, nobody has company.
        assert picked(problem, 3) == [0, 1, 2]
        assert picked(problem, 4) == [0, 1, 2, 3]
        assert picked(problem, 3, [4]) == [3, 4, 5]
        assert picked(problem, 4, [4]) == [0, 3, 4, 5]


class TestUndominated:
    def kept(self, problem: PlacementProblem, **weights: float) -> list[int]:
        return undominated(problem, Objective(**weights)).tolist()

    def test_as_many_as_there_are_containers_are_kept_of_those_that_are_alike(self) -> None:
        free = [5, 3, 5, 3, 5]
        assert self.kept(cell(free, [kind("a", 1)])) == [0]
        assert self.kept(cell(free, [kind("a", 2)])) == [0, 2]
        assert self.kept(cell(free, [kind("a", 2), kind("b", 2)])) == [0, 1, 2, 4]
        assert self.kept(cell(free, [kind("a", 5)])) == [0, 1, 2, 3, 4]

    def test_one_with_less_of_one_resource_is_replaced_only_by_one_with_more_of_both(self) -> None:
        free = np.array([[5, 1], [1, 5], [4, 1], [2, 2]], np.int64)
        cluster = PlacementCluster(free, np.full((4, 2), 9, np.int64))
        asks = [ContainerKind(0, frozenset("a"), np.array([1, 1]), 1)]
        assert self.kept(problem_of(cluster, asks)) == [0, 1, 3]

    def test_where_nothing_fits_is_left_out_and_where_something_runs_is_kept(self) -> None:
        assert self.kept(cell([1, 4, 4], [kind("a", cpu=2)])) == [1]
        assert self.kept(cell([0, 4, 4], [kind("a", cpu=2, origin=0)])) == [0, 1]
        assert self.kept(cell([9, 4, 4], [kind("a", cpu=2, origin=2)])) == [0, 2]

    @pytest.mark.parametrize(
        ("texts", "around"),
        [
            (["a -> {b, 0, 2} in rack"], {"groups": {"rack": [[0], [1]]}}),
            (["a -> spread {2, inf} over rack"], {"groups": {"rack": [[0], [1]]}}),
            (["a -> {b, 0, 2} in rack"], {"groups": {"rack": [[0], []]}}),
            (["a -> {b, 0, 2} in ov"], {"groups": {"ov": [[0, 1], [0]]}}),
            (
                ["a -> {b, 0, 2} in rack or a -> {c, 0, 2} in machine"],
                {"groups": {"rack": [[0], [1]]}},
            ),
            (["a -> {b, 0, 2} in machine"], {"running": [("b", [1, 0])]}),
            (["x -> {a, 0, 2} in machine"], {"running": [("x", [1, 0])]}),
            (
                ["a -> {a, 0, 2} in machine"],
                {"running": [("a", [1, 0])], "static": [("a", [False, True])]},
            ),
            (
                ["a -> {b, 0, 2} in machine or a -> {c, 0, 2} in machine"],
                {"running": [("c", [0, 1])]},
            ),
            (
                ["x -> {a, 0, 2} in machine or x -> {q, 1, inf} in machine"],
                {"running": [("x", [0, 1])]},
            ),
        ],
    )
    def test_machines_differ_if_a_constraint_sees_a_difference(
        self, texts: list[str], around: dict[str, Any]
    ) -> None:
        assert self.kept(cell([4, 4], [kind("a")], *texts, **around)) == [0, 1]
        # The same cell without the constraint, and the constraint in a cell without the difference.
        assert self.kept(cell([4, 4], [kind("a")], **around)) == [0]
        alike = {"groups": {name: [[0, 1] if name == "ov" else [0]] * 2 for name in ("rack", "ov")}}
        assert self.kept(cell([4, 4], [kind("a")], *texts, **alike)) == [0]

    def test_machines_differ_if_not_the_same_kinds_may_go_there(self) -> None:
        asks = [kind("a"), kind("b", allowed=np.array([False, False, True]))]
        assert self.kept(cell([4, 4, 4], asks[:1])) == [0]
        assert self.kept(cell([4, 4, 4, 4], [kind("a", 2)])) == [0, 1]
        assert self.kept(cell([4, 4, 4], asks)) == [0, 1, 2]

    def test_machines_differ_if_only_one_is_fragmented(self) -> None:
        assert self.kept(cell([2, 4], [kind("a")], smallest=3)) == [0, 1]
        assert self.kept(cell([2, 4], [kind("a")], smallest=2)) == [1]
        assert self.kept(cell([2, 4], [kind("a")], smallest=5)) == [1]

    def test_what_is_in_use_matters_only_to_an_objective_that_asks(self) -> None:
        half = cell([4, 5], [kind("a")], whole=[4, 9])
        assert self.kept(half) == [1]
        assert self.kept(half, used=0.1) == [0, 1]
        assert self.kept(half, load=0.1) == [0, 1]
        # Neither is empty, but they differ in size.
        large = cell([4, 5], [kind("a")], whole=[6, 9])
        assert self.kept(large, used=0.1) == [1]
        assert self.kept(large, load=0.1) == [0, 1]
        racks: dict[str, Joins] = {"rack": [[0], [1]]}
        apart = cell([4, 5], [kind("a")], "a -> {b, 0, 1} in rack", groups=racks)
        assert self.kept(apart, load=0.1, used=0.1) == [0, 1]


class TestBounds:
    """The weights of places are 1, and of violations 1, unless said otherwise."""

    AIM = Objective(placed=1.0, first=0.0, violation=1.0)

    def bounds(
        self, problem: PlacementProblem, aim: Objective | None = None
    ) -> tuple[float, float]:
        return simple_bound(problem, aim or self.AIM), pooled_bound(problem, aim or self.AIM)

    def test_all_that_can_be_placed_is_worth_its_importance(self) -> None:
        assert self.bounds(cell([9], [kind("a"), kind("b", app=1)])) == (1.0, 1.0)
        ranked = [kind("a"), kind("b", app=1, precedence=5)]
        assert self.bounds(cell([9], ranked)) == (1.5, 1.5)
        assert self.bounds(cell([9], ranked), Objective(placed=2.0, first=1.0)) == (4.5, 4.5)
        assert simple_bound(cell([9], []), self.AIM) == 1.0

    def test_what_fits_nowhere_is_worth_nothing(self) -> None:
        asks = [kind("a"), kind("b", cpu=8, app=1)]
        assert self.bounds(cell([7, 7], asks)) == (1.0, 0.5)
        assert self.bounds(cell([7, 8], asks)) == (1.0, 1.0)

    @pytest.mark.parametrize(
        ("text", "running", "asks", "mended"),
        [
            # Two lack both of two; three new ones may come, and only the constraint is concerned.
            ("x -> {a, 2, inf} in machine", ("x", [2, 0]), [kind("a", 3)], 2.0),
            # One that is counted itself sees nobody yet; three pairs are concerned.
            ("a -> {a, 2, inf} in machine", ("a", [1, 0]), [kind("a", 3)], 1 / 3),
            # With two of three, each of three lacks one of three.
            ("a -> {a, 3, inf} in machine", ("a", [3, 0]), [kind("a", 2)], 1 / 2),
            # Both are in one set of three.
            ("a -> spread {3, inf} over machine", ("a", [2, 0]), [kind("a", 4)], 4 / 3 / 4),
            ("a -> spread {1, inf} over machine", ("a", [2, 0]), [kind("a", 4)], 0.0),
            # Two sets of three, each with one of them.
            ("a -> spread {3, inf} over machine", ("a", [1, 1]), [kind("a", 4)], 2 / 3 / 4),
            # They see enough: the other, or one that is both.
            ("a -> {a, 1, inf} in machine", ("a", [2, 0]), [kind("a", 4)], 0.0),
            # Too many cannot be mended.
            ("a -> {b, 0, 0} in machine", ("a b", [2, 0]), [kind("b", 3)], 0.0),
            # Those who ask and those that are counted are others than the new ones.
            ("x -> {y, 2, inf} in machine", ("x", [2, 0]), [kind("a", 3)], 0.0),
            # More of those who lack something are no help.
            ("x -> {y, 2, inf} in machine", ("x", [2, 0]), [kind("x", 3)], 0.0),
        ],
    )
    def test_new_containers_may_mend_what_running_ones_lack(
        self, text: str, running: tuple[str, list[int]], asks: list[ContainerKind], mended: float
    ) -> None:
        problem = cell([9, 9], asks, text, running=[running])
        assert simple_bound(problem, self.AIM) == pytest.approx(1 + mended)
        half = Objective(placed=1.0, first=0.0, violation=0.5)
        assert simple_bound(problem, half) == pytest.approx(1 + mended / 2)
        assert pooled_bound(problem, self.AIM) == pytest.approx(1 + mended)

    def test_weights_multiply_what_is_mended(self) -> None:
        texts = ["x -> {a, 2, inf} in machine weight 4", "x -> {a, 1, inf} in machine"]
        problem = cell([9, 9], [kind("a", 3)], *texts, running=[("x", [2, 0])])
        # Of a weight of five, four times two halves of two, and two wholes.
        assert simple_bound(problem, self.AIM) == pytest.approx(1 + (4 * 2 + 2) / 5)

    def test_who_sees_enough_lacks_nothing(self) -> None:
        running = [("x", [2, 1]), ("a", [1, 3])]
        problem = cell([9, 9], [kind("a", 3)], "x -> {a, 2, inf} in machine", running=running)
        # Two on the first machine lack one of two each.
        assert simple_bound(problem, self.AIM) == pytest.approx(1 + 1)

    def test_with_alternatives_all_violations_may_be_mended(self) -> None:
        text = "x -> {a, 1, inf} in machine or x -> {b, 1, inf} in machine"
        problem = cell([9, 9], [kind("a", 3)], text, running=[("x", [2, 1])])
        assert simple_bound(problem, self.AIM) == pytest.approx(1 + 3 / problem.concerned)

    @pytest.mark.parametrize(
        ("text", "running", "cost"),
        [
            # Each sees at least the two of the better machine.
            ("a -> {b, 0, 0} in machine", ("b", [3, 2]), 2.0),
            ("a -> {b, 0, 1} in machine", ("b", [3, 2]), 1.0),
            ("a -> {b, 0, 2} in machine", ("b", [6, 4]), 1.0),
            ("a -> {b, 0, 2} in machine", ("b", [6, 2]), 0.0),
            # Those that run there see one more; two pairs, but only one a container.
            ("x -> {a, 0, 0} in machine", ("x", [3, 1]), 2.0),
            # Three already see two where one is allowed: they see one more, and it sees three.
            ("a -> {a, 0, 1} in machine", ("a", [3, 3]), 5.0),
            ("a -> {a, 0, 3} in machine", ("a", [3, 3]), 0.0),
            ("a -> {a, 0, 2} in machine", ("a", [3, 3]), 2.0),
        ],
    )
    def test_each_container_costs_what_it_costs_on_its_best_machine(
        self, text: str, running: tuple[str, list[int]], cost: float
    ) -> None:
        aim = Objective(placed=100.0, first=0.0, violation=1.0)
        problem = cell([9, 9], [kind("a", 2)], text, running=[running])
        # As a share of all pairs: two subjects, or one constraint that only counts them.
        pairs = 2 if text.startswith("a") else 1
        expected = 100 - 2 * (cost / 2 if text.startswith("x") else cost) / pairs
        assert pooled_bound(problem, aim) == pytest.approx(expected)
        assert simple_bound(problem, aim) == 100

    def test_one_more_of_too_many_costs_those_who_see_them_one_step_more(self) -> None:
        aim = Objective(placed=100.0, first=0.0, violation=1.0)
        running = [("x", [2, 1]), ("a", [3, 4])]
        for most, cost in ((0, 1.0), (1, 1.0), (2, 1 / 2), (3, 1 / 3), (4, 0.0)):
            text = f"x -> {{a, 0, {most}}} in machine"
            problem = cell([9, 9], [kind("a", 2)], text, running=running)
            # On the second machine, only one sees it.
            assert pooled_bound(problem, aim) == pytest.approx(100 - 2 * cost)

    def test_only_machines_with_room_count_as_best(self) -> None:
        running = [("b", [3, 2, 1])]
        aim = Objective(placed=100.0, first=0.0, violation=1.0)
        for free, cost in (([9, 9, 9], 1), ([9, 9, 0], 2), ([9, 0, 0], 3)):
            problem = cell(free, [kind("a")], "a -> {b, 0, 0} in machine", running=running)
            assert pooled_bound(problem, aim) == pytest.approx(100 - cost)

    def test_a_machine_outside_all_sets_costs_one(self) -> None:
        aim = Objective(placed=100.0, first=0.0, violation=1.0)
        for joins, cost in (([[0], []], 0), ([[], []], 1)):
            text = "a -> {b, 0, 1} in rack"
            problem = cell([9, 9], [kind("a", 2)], text, groups={"rack": joins})
            assert pooled_bound(problem, aim) == pytest.approx(100 - cost)
            # Those that are only counted lose nothing there.
            text = "x -> {a, 0, 1} in rack"
            problem = cell([9, 9], [kind("a", 2)], text, groups={"rack": joins})
            assert pooled_bound(problem, aim) == pytest.approx(100)

    def test_what_costs_more_than_it_is_worth_is_left_out(self) -> None:
        asks = [kind("a", 2), kind("c", app=1)]
        problem = cell([9, 9], asks, "a -> {b, 0, 0} in machine", running=[("b", [3, 2])])
        assert pooled_bound(problem, self.AIM) == pytest.approx(0.5)
