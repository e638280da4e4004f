"""Columns of a network as they are set, read and written: one by one, in part, and after removals."""

from __future__ import annotations

import io

import numpy as np
import pytest

from argosy.solvers.flow import FlowNetwork, FlowProblem, Status
from argosy.solvers.flow.checker import SAFE, FlowFault, costlier, infeasibilities, prices_for
from argosy.solvers.flow.dimacs import (
    DimacsError,
    read_problem,
    read_solution,
    write_problem,
    write_solution,
)


def columns(network: FlowNetwork, *arcs: int) -> list[list[int]]:
    return [network.capacities(arcs).tolist(), network.costs(arcs).tolist()]


def test_terms_of_arcs_that_are_left_out_stay_as_they_are() -> None:
    network = FlowNetwork()
    source, sink = network.add_vertices([6, -6]).tolist()
    arcs = network.add_arcs([source] * 2, [sink] * 2, [4, 5], [7, 8], [1, 3]).tolist()
    network.set_arcs(arcs, capacities=6)
    assert columns(network, *arcs) == [[6, 6], [7, 8]]
    network.set_arcs(arcs[1:], costs=[2])
    assert columns(network, *arcs) == [[6, 6], [7, 2]]
    # Units cost 2, 5, 8, 11 and so on there, and 7, 8, 9 here.
    assert network.solve().cost == 2 + 5 + 8 + 7 + 8 + 9
    network.set_arcs(arcs, steps=[0, 2])
    assert network.solve().cost == 2 + 4 + 6 + 7 + 7 + 7
    assert columns(network, *arcs) == [[6, 6], [7, 2]]
    network.set_arcs([], capacities=[])
    assert network.solve().cost == 33


def test_ways_begin_where_it_is_cheapest_and_avoid_all_that_is_closed() -> None:
    network = FlowNetwork()
    first, second, upper, lower, sink = network.add_vertices([0] * 5).tolist()
    tails, heads = [first, second, upper, lower, first], [upper, lower, sink, sink, sink]
    network.add_arcs(tails, heads, 1, [1, 2, 3, 4, 50])
    assert network.solve().cost == 0

    def way(**terms: object) -> tuple[int | None, list[int]]:
        found = network.cheapest_way([first, second], sink, **terms)  # type: ignore[arg-type]
        return found.cost, found.vertices.tolist()

    assert way() == (4, [first, upper, sink])
    assert way(entries=7) == (11, [first, upper, sink])
    assert way(entries=[3, 0]) == (6, [second, lower, sink])
    assert way(without=[upper]) == (6, [second, lower, sink])
    assert way(without=[upper, lower]) == (50, [first, sink])
    assert network.cheapest_way([second], sink, without=[lower, upper]).cost is None


def test_a_problem_is_numbered_anew_and_segments_are_rows_that_fill_in_order() -> None:
    network = FlowNetwork()
    gone, source, middle, sink = network.add_vertices([0, 5, 0, -5]).tolist()
    network.add_arcs([gone, source], [sink, gone], 1, 1)
    network.add_convex_arc(source, middle, [(2, 1), (3, 4)])
    network.add_convex_arc(middle, sink, [(1, 0), (1, 2), (3, 6)])
    network.remove_vertices([gone])
    solution = network.solve()
    assert (solution.status, solution.cost, solution.seconds) == (Status.OPTIMAL, 34, None)
    problem = network.problem()
    assert problem.supplies.tolist() == [5, 0, -5]
    rows = list(zip(problem.tails, problem.heads, problem.capacities, problem.costs, strict=True))
    assert rows == [(0, 1, 2, 1), (0, 1, 3, 4), (1, 2, 1, 0), (1, 2, 1, 2), (1, 2, 3, 6)]
    assert network.segment_flows().tolist() == [2, 3, 1, 1, 3]
    network.set_supplies([source, sink], [3, -3])
    assert network.solve().cost == 2 + 4 + 0 + 2 + 6
    assert network.segment_flows().tolist() == [2, 1, 1, 1, 1]
    network.set_supplies([source, sink], [9, -9])
    assert (network.solve().status, network.solve().cost) == (Status.INFEASIBLE, None)


def test_numbers_of_a_network_are_whole() -> None:
    network = FlowNetwork()
    assert network.add_vertices([]).tolist() == []
    assert network.supplies(network.add_vertices([True, False])).tolist() == [1, 0]
    for values in ([0.5], [1.0], ["1"]):
        with pytest.raises(ValueError, match="a network takes whole numbers, not"):
            network.add_vertices(values)
    assert network.vertices == 2


class TestChecker:
    PROBLEM = FlowProblem(
        supplies=np.array([3, -3]),
        tails=np.array([0, 0], np.int32),
        heads=np.array([1, 1], np.int32),
        capacities=np.array([2, 2]),
        costs=np.array([1, 5]),
    )

    @pytest.mark.parametrize(
        ("flows", "what"),
        [
            ([2, 1], []),
            ([3, 0], [FlowFault("a flow above its capacity", 0, 1)]),
            ([2, 2], [FlowFault("a vertex that does not send its supply", 0, 2)]),
            ([1, 1], [FlowFault("a vertex that does not send its supply", 0, 2)]),
            (
                [-1, 2],
                [
                    FlowFault("a flow below zero", 0, 1),
                    FlowFault("a vertex that does not send its supply", 0, 2),
                ],
            ),
        ],
    )
    def test_what_is_wrong_with_a_flow(self, flows: list[int], what: list[FlowFault]) -> None:
        assert infeasibilities(self.PROBLEM, np.array(flows)) == what

    def test_prices_prove_it_or_are_out_of_range(self) -> None:
        best, other = np.array([2, 1]), np.array([1, 2])
        found = prices_for(self.PROBLEM, best)
        assert found is not None
        assert costlier(self.PROBLEM, best, found) == []
        assert found[0] - found[1] == 5
        assert prices_for(self.PROBLEM, other) is None
        for prices in ([SAFE + 1, 0], [0, -SAFE - 1]):
            [fault] = costlier(self.PROBLEM, best, np.array(prices))
            assert (fault.what, fault.where) == ("a price out of range", int(prices[0] == 0))


class TestFiles:
    #: Two arcs leave the first vertex, and two enter the last, with lower bounds.
    TEXT = "c two ways\np min 3 3\nn 1 4\nn 3 -4\na 1 3 1 3 5\na 1 2 2 3 1\na 2 3 1 9 -2\n"

    def test_lower_bounds_of_several_arcs_of_a_vertex_add_up(self) -> None:
        instance = read_problem(self.TEXT.splitlines(), "f")
        assert instance.problem.supplies.tolist() == [4 - 1 - 2, 2 - 1, -4 + 1 + 1]
        assert instance.problem.capacities.tolist() == [2, 1, 8]
        assert (instance.least.tolist(), instance.fixed_cost) == ([1, 2, 1], 5 + 2 - 2)
        written = io.StringIO()
        write_problem(instance.problem, written, "less")
        assert written.getvalue() == (
            "c less\np min 3 3\nn 1 1\nn 2 1\nn 3 -2\na 1 3 0 2 5\na 1 2 0 1 1\na 2 3 0 8 -2\n"
        )

    def test_a_solution_is_with_lower_bounds_and_with_prices_only_if_all_are_there(self) -> None:
        instance = read_problem(self.TEXT.splitlines(), "f")
        written = io.StringIO()
        flows, prices = np.array([0, 1, 2]), np.array([7, 6, -8])
        write_solution(instance, -3, flows, prices, written)
        text = written.getvalue()
        assert text == "s 2\nf 1 3 1\nf 1 2 3\nf 2 3 3\nd 1 7\nd 2 6\nd 3 -8\n"
        answer = read_solution(text.splitlines(), instance, "f")
        assert (answer.cost, answer.flows.tolist()) == (2, [0, 1, 2])
        assert answer.prices is not None
        assert answer.prices.tolist() == [7, 6, -8]
        assert read_solution(text.splitlines()[:-1], instance, "f").prices is None

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("f 1 3 1", "a flow for each arc of the problem, in its order"),
            ("d 4 0", "a number from 1 to 3"),
            ("cost 3", "one of c, s, f, d"),
        ],
    )
    def test_a_line_too_many_is_a_mistake(self, line: str, expected: str) -> None:
        instance = read_problem(self.TEXT.splitlines(), "f")
        lines = ["s 2", "f 1 3 1", "f 1 2 3", "f 2 3 3", line]
        with pytest.raises(DimacsError) as caught:
            read_solution(lines, instance, "f")
        assert (caught.value.line, caught.value.expected) == (5, expected)

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("a 1 3 4 3 5", "capacity 3"),
            ("a 1 4 0 3 5", "no vertex 4"),
            ("a 0 3 0 3 5", "no vertex 0"),
            ("n 3 1", "vertex 3 has a supply already"),
        ],
    )
    def test_a_line_of_a_problem_that_cannot_be(self, line: str, problem: str) -> None:
        lines = ["p min 3 1", "n 3 -1", line]
        with pytest.raises(DimacsError) as caught:
            read_problem(lines, "f")
        assert (caught.value.problem, caught.value.line) == (problem, 3)
