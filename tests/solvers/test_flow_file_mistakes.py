"""What is said of each mistake in a DIMACS file, and what is just within its limits."""

from __future__ import annotations

import io

import numpy as np
import pytest

from argosy.solvers.flow.dimacs import (
    DimacsError,
    FlowInstance,
    read_problem,
    read_solution,
    write_problem,
    write_solution,
)

TWO = "p min 2 1\n"
#: One arc from 1 to 2 that takes 2 to 5 at a cost of 3 each, and one back.
RING = "p min 2 2\nn 1 2\nn 2 -2\na 1 2 2 5 3\na 2 1 0 4 -1\n"


def ring() -> FlowInstance:
    return read_problem(io.StringIO(RING), "ring.min")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1: no problem line; expected p min VERTICES ARCS first"),
        ("c x\nn 1 2\n", "2: no problem line; expected p min VERTICES ARCS first"),
        ("p max 2 1\n", "1: no min-cost flow problem; expected p min"),
        ("p\n", "1: no min-cost flow problem; expected p min"),
        ("p min 2\n", "1: 1 numbers in a line p; expected 2"),
        ("p min 2 1 0\n", "1: 3 numbers in a line p; expected 2"),
        ("p min -1 1\n", "1: vertices -1; expected from 0 to 50000000"),
        ("p min 50000001 1\n", "1: vertices 50000001; expected from 0 to 50000000"),
        ("p min 2 -1\n", "1: arcs -1; expected from 0 to 1073741824"),
        ("p min 2 1073741825\n", "1: arcs 1073741825; expected from 0 to 1073741824"),
        (TWO + TWO, "2: a second problem line"),
        (TWO + "x 1\n", "2: a line 'x'; expected one of c, p, n, a"),
        (TWO + "n 3 1\n", "2: no vertex 3; expected a number from 1 to 2"),
        (TWO + "n 0 1\n", "2: no vertex 0; expected a number from 1 to 2"),
        (TWO + "n 2 0\n\nn 2 0\n", "4: vertex 2 has a supply already"),
        (
            TWO + "n 1 17592186044417\n",
            "2: supply 17592186044417; expected from -17592186044416 to 17592186044416",
        ),
        (
            TWO + "n 1 -17592186044417\n",
            "2: supply -17592186044417; expected from -17592186044416 to 17592186044416",
        ),
        (TWO + "a 0 2 0 1 1\n", "2: no vertex 0; expected a number from 1 to 2"),
        (TWO + "a 1 3 0 1 1\n", "2: no vertex 3; expected a number from 1 to 2"),
        (TWO + "a 1 2 -1 1 1\n", "2: least flow -1; expected from 0 to 2147483647"),
        (TWO + "a 1 2 4 3 1\n", "2: capacity 3; expected from 4 to 2147483647"),
        (TWO + "a 1 2 0 2147483648 1\n", "2: capacity 2147483648; expected from 0 to 2147483647"),
        (
            TWO + "a 1 2 0 1 1099511627777\n",
            "2: cost 1099511627777; expected from -1099511627776 to 1099511627776",
        ),
        (
            TWO + "a 1 2 0 1 -1099511627777\n",
            "2: cost -1099511627777; expected from -1099511627776 to 1099511627776",
        ),
        (TWO + "  a 1 2 0 x 1 \n", "2: no whole numbers: 'a 1 2 0 x 1'"),
        (TWO + "a 1 2 0 1 1\na 1 2 0 1 1\n", "3: 2 arcs; expected 1 as line p says"),
        (TWO, "1: 0 arcs; expected 1 as line p says"),
    ],
)
def test_a_mistake_in_a_problem_is_told_with_its_line_and_what_was_expected(
    text: str, told: str
) -> None:
    with pytest.raises(DimacsError) as caught:
        read_problem(io.StringIO(text), "bad.min")
    assert str(caught.value) == f"bad.min:{told}"
    assert caught.value.code == "dimacs"


def test_what_is_just_within_its_limits_is_read() -> None:
    most, cost, supply = 2**31 - 1, 2**40, 2**44
    text = (
        f"p min 2 3\nn 1 {supply}\nn 2 -{supply}\n"
        f"a 1 1 0 {most} {cost}\na 2 2 {most} {most} -{cost}\na 1 2 0 0 0\n"
    )
    instance = read_problem(io.StringIO(text), "large.min")
    assert instance.problem.supplies.tolist() == [supply, -supply]
    assert instance.problem.capacities.tolist() == [most, 0, 0]
    assert instance.problem.costs.tolist() == [cost, -cost, 0]
    assert instance.least.tolist() == [0, most, 0]
    assert instance.fixed_cost == -most * cost
    empty = read_problem(io.StringIO("p min 0 0\n"), "empty.min").problem
    assert (empty.vertices, empty.arcs) == (0, 0)


def test_a_problem_is_written_as_it_is_read() -> None:
    written = io.StringIO()
    write_problem(
        read_problem(io.StringIO("p min 3 1\nn 2 7\na 3 1 0 4 -9\n"), "f").problem, written
    )
    assert written.getvalue() == "p min 3 1\nn 2 7\na 3 1 0 4 -9\n"
    nothing = io.StringIO()
    write_problem(read_problem(io.StringIO("p min 2 0\n"), "f").problem, nothing, "none")
    assert nothing.getvalue() == "c none\np min 2 0\n"


def test_a_solution_is_written_with_what_must_flow_and_read_without() -> None:
    written = io.StringIO()
    instance = ring()
    # Beyond the two that must flow: one more there, and one back.
    write_solution(instance, 2, np.array([1, 1]), np.array([-4, 8]), written)
    text = written.getvalue()
    assert text == "s 8\nf 1 2 3\nf 2 1 1\nd 1 -4\nd 2 8\n"
    answer = read_solution(io.StringIO(text), instance, "ring.sol")
    assert answer.cost == 8
    assert answer.flows.tolist() == [1, 1]
    assert answer.prices is not None
    assert answer.prices.tolist() == [-4, 8]
    # Prices count only if there is one for each vertex.
    for lines in ("s 8\nf 1 2 3\nf 2 1 1\n", "d 2 8\ns 8\nf 1 2 3\nf 2 1 1\n"):
        assert read_solution(io.StringIO(lines), instance, "ring.sol").prices is None
    again = "d 2 8\nd 2 9\nd 1 -4\n" + "s 8\nf 1 2 3\nf 2 1 1\n"
    answer = read_solution(io.StringIO(again), instance, "ring.sol")
    assert answer.prices is not None
    assert answer.prices.tolist() == [-4, 9]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1: no line s; expected s COST and 2 lines f"),
        ("f 1 2 3\nf 2 1 1\n", "2: no line s; expected s COST and 2 lines f"),
        ("s 8\nf 1 2 3\n", "2: 1 flows; expected s COST and 2 lines f"),
        (
            "s 8\nf 2 1 3\n",
            "2: the flow of an arc 2 1; expected a flow for each arc of the problem, in its order",
        ),
        (
            "s 8\nf 1 1 3\n",
            "2: the flow of an arc 1 1; expected a flow for each arc of the problem, in its order",
        ),
        (
            "s 8\nf 1 2 3\nf 2 1 1\nf 1 2 3\n",
            "4: the flow of an arc 1 2; expected a flow for each arc of the problem, in its order",
        ),
        ("d 3 1\n", "1: no vertex 3; expected a number from 1 to 2"),
        (
            f"d 1 {2**62 + 1}\n",
            f"1: price {2**62 + 1}; expected from {-(2**62)} to {2**62}",
        ),
        (f"f 1 2 {2**40 + 1}\n", f"1: flow {2**40 + 1}; expected from {-(2**40)} to {2**40}"),
        ("s\n", "1: 0 numbers in a line s; expected 1"),
        ("a 1\n", "1: a line 'a'; expected one of c, s, f, d"),
    ],
)
def test_a_mistake_in_a_solution_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(DimacsError) as caught:
        read_solution(io.StringIO(text), ring(), "bad.sol")
    assert str(caught.value) == f"bad.sol:{told}"


def test_flows_and_prices_just_within_their_limits_are_read() -> None:
    text = f"s 8\nf 1 2 {2**40}\nf 2 1 {-(2**40)}\nd 1 {2**62}\nd 2 {-(2**62)}\n"
    answer = read_solution(io.StringIO(text), ring(), "large.sol")
    assert answer.flows.tolist() == [2**40 - 2, -(2**40)]
    assert answer.prices is not None
    assert answer.prices.tolist() == [2**62, -(2**62)]
