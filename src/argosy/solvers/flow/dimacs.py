"""The DIMACS format for min-cost flow: problems in and out, solutions in and out.

    c a comment
    p min VERTICES ARCS
    n VERTEX SUPPLY               a supply below zero is a demand; vertices count from 1
    a TAIL HEAD LEAST CAPACITY COST

A solution has `s COST`, a line `f TAIL HEAD FLOW` for each arc in the order of the problem, and, beyond
the format, `d VERTEX PRICE` for the duals that prove it.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Final, TextIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from argosy.model.errors import ArgosyError, excerpt
from argosy.solvers.flow.arrays import Numbers
from argosy.solvers.flow.problem import FlowProblem

DimacsRows = Iterator[tuple[int, str, list[int]]]

#: Limits on a problem: anything larger is a typing error rather than a network.
MOST_VERTICES: Final = 50_000_000
MOST_CAPACITY: Final = 2**31 - 1
MOST_COST: Final = 2**40
MOST_SUPPLY: Final = 2**44


class DimacsError(ArgosyError):
    code = "dimacs"


class FlowInstance(msgspec.Struct, frozen=True):
    """A problem as read. Lower bounds are subtracted from it, and kept here to be added back."""

    problem: FlowProblem
    least: Numbers

    @property
    def fixed_cost(self) -> int:
        """The cost of the lower bounds."""
        return sum(
            int(a) * int(b) for a, b in zip(self.least, self.problem.costs, strict=True) if a
        )


class FlowAnswer(msgspec.Struct, frozen=True):
    """A solution as read: flows in the order of the problem's arcs, and prices if given."""

    cost: int
    flows: Numbers
    prices: Numbers | None


def read_problem(lines: Iterable[str], file: str) -> FlowInstance:
    rows = _rows(lines, file, {"p": 2, "n": 2, "a": 5})
    line, kind, sizes = next(rows, (1, "", []))
    if kind != "p":
        raise DimacsError(
            "no problem line", file=file, line=line, expected="p min VERTICES ARCS first"
        )
    vertices, arcs = sizes
    _within(vertices, 0, MOST_VERTICES, "vertices", file, line)
    _within(arcs, 0, 2**30, "arcs", file, line)
    supplies = [0] * vertices
    told: set[int] = set()
    table: list[list[int]] = []
    for line, kind, numbers in rows:
        if kind == "p":
            raise DimacsError("a second problem line", file=file, line=line)
        if kind == "n":
            vertex, supply = numbers
            _vertex(vertex, vertices, file, line)
            _within(supply, -MOST_SUPPLY, MOST_SUPPLY, "supply", file, line)
            if vertex in told:
                raise DimacsError(f"vertex {vertex} has a supply already", file=file, line=line)
            told.add(vertex)
            supplies[vertex - 1] = supply
        else:
            tail, head, least, capacity, cost = numbers
            _vertex(tail, vertices, file, line)
            _vertex(head, vertices, file, line)
            _within(least, 0, MOST_CAPACITY, "least flow", file, line)
            _within(capacity, least, MOST_CAPACITY, "capacity", file, line)
            _within(cost, -MOST_COST, MOST_COST, "cost", file, line)
            table.append(numbers)
    if len(table) != arcs:
        raise DimacsError(
            f"{len(table)} arcs", file=file, line=line, expected=f"{arcs} as line p says"
        )
    return _instance(np.array(supplies, np.int64), np.array(table, np.int64).reshape(-1, 5))


def _instance(supplies: Numbers, table: Numbers) -> FlowInstance:
    tails, heads, least = table[:, 0] - 1, table[:, 1] - 1, table[:, 2]
    np.subtract.at(supplies, tails, least)
    np.add.at(supplies, heads, least)
    problem = FlowProblem(
        supplies=supplies,
        tails=tails.astype(np.int32),
        heads=heads.astype(np.int32),
        capacities=np.ascontiguousarray(table[:, 3] - least),
        costs=np.ascontiguousarray(table[:, 4]),
    )
    return FlowInstance(problem, np.ascontiguousarray(least))


def write_problem(problem: FlowProblem, to: TextIO, comment: str = "") -> None:
    if comment:
        to.write(f"c {comment}\n")
    to.write(f"p min {problem.vertices} {problem.arcs}\n")
    given = np.flatnonzero(problem.supplies)
    _write(to, "n", given + 1, problem.supplies[given])
    none = np.zeros(problem.arcs, np.int64)
    _write(to, "a", problem.tails + 1, problem.heads + 1, none, problem.capacities, problem.costs)


def write_solution(
    instance: FlowInstance, cost: int, flows: Numbers, prices: Numbers, to: TextIO
) -> None:
    """Writes a solution; `cost` and `flows` are without lower bounds."""
    problem = instance.problem
    to.write(f"s {cost + instance.fixed_cost}\n")
    _write(to, "f", problem.tails + 1, problem.heads + 1, flows + instance.least)
    _write(to, "d", np.arange(1, problem.vertices + 1), prices)


def read_solution(lines: Iterable[str], instance: FlowInstance, file: str) -> FlowAnswer:
    """Reads a solution; flows are returned without lower bounds, the cost with them."""
    problem = instance.problem
    cost: int | None = None
    flows: list[int] = []
    prices: dict[int, int] = {}
    line = 1
    for line, kind, numbers in _rows(lines, file, {"s": 1, "f": 3, "d": 2}):
        if kind == "s":
            cost = numbers[0]
        elif kind == "d":
            _vertex(numbers[0], problem.vertices, file, line)
            _within(numbers[1], -(2**62), 2**62, "price", file, line)
            prices[numbers[0]] = numbers[1]
        else:
            row, (tail, head, flow) = len(flows), numbers
            if row >= problem.arcs or (tail, head) != (
                problem.tails[row] + 1,
                problem.heads[row] + 1,
            ):
                raise DimacsError(
                    f"the flow of an arc {tail} {head}",
                    file=file,
                    line=line,
                    expected="a flow for each arc of the problem, in its order",
                )
            _within(flow, -(2**40), 2**40, "flow", file, line)
            flows.append(flow)
    if cost is None or len(flows) != problem.arcs:
        lacking = "no line s" if cost is None else f"{len(flows)} flows"
        raise DimacsError(
            lacking, file=file, line=line, expected=f"s COST and {problem.arcs} lines f"
        )
    duals = (
        [prices[v] for v in range(1, problem.vertices + 1)]
        if (len(prices) == problem.vertices)
        else None
    )
    return FlowAnswer(
        cost,
        np.array(flows, np.int64) - instance.least,
        None if duals is None else np.array(duals, np.int64),
    )


def _rows(lines: Iterable[str], file: str, kinds: dict[str, int]) -> DimacsRows:
    """Line number, kind and numbers of each line that is not a comment."""
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0] == "c":
            continue
        kind = words[0]
        if kind not in kinds:
            raise DimacsError(
                f"a line {excerpt(kind)}",
                file=file,
                line=number,
                expected="one of " + ", ".join(["c", *kinds]),
            )
        if kind == "p":
            if words[1:2] != ["min"]:
                raise DimacsError(
                    "no min-cost flow problem", file=file, line=number, expected="p min"
                )
            del words[1]
        try:
            values = [int(word) for word in words[1:]]
        except ValueError:
            raise DimacsError(
                f"no whole numbers: {excerpt(line.strip())}", file=file, line=number
            ) from None
        if len(values) != kinds[kind]:
            raise DimacsError(
                f"{len(values)} numbers in a line {kind}",
                file=file,
                line=number,
                expected=str(kinds[kind]),
            )
        yield number, kind, values


def _vertex(vertex: int, vertices: int, file: str, line: int) -> None:
    if not 1 <= vertex <= vertices:
        raise DimacsError(
            f"no vertex {vertex}", file=file, line=line, expected=f"a number from 1 to {vertices}"
        )


def _within(value: int, least: int, most: int, what: str, file: str, line: int) -> None:
    if not least <= value <= most:
        raise DimacsError(
            f"{what} {value}", file=file, line=line, expected=f"from {least} to {most}"
        )


def _write(to: TextIO, kind: str, *columns: NDArray[np.generic]) -> None:
    if len(columns[0]):
        buffer = io.StringIO()
        table = np.column_stack(columns)
        np.savetxt(buffer, table, fmt=f"{kind} " + " ".join(["%d"] * len(columns)))
        to.write(buffer.getvalue())
