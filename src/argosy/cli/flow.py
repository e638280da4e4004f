"""`argosy flow`: min-cost flow problems as files, solved, made and checked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from argosy.cli.output import emit, note, output_option, write
from argosy.model.errors import CommandError, UnknownName

if TYPE_CHECKING:
    from argosy.solvers.flow.dimacs import FlowInstance
    from argosy.solvers.flow.problem import FlowProblem

WRONG = 1


@click.group(epilog="Example: argosy flow solve network.min -o json")
def command() -> None:
    """Solve, generate and check min-cost flow problems in the DIMACS format."""


@command.command(epilog="Example: argosy flow solve network.min --algorithm relaxation -o json")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--algorithm",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="auto, local, shortest-paths, primal-dual, relaxation, cost-scaling, cycle-cancelling, race or "
    "warm-race.",
)
@click.option(
    "--solution",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write flows and prices, in the DIMACS format.",
)
@output_option
def solve(file: Path, algorithm: str, solution: Path | None, output: str) -> None:
    """Find a flow of least cost for the problem in FILE (- is stdin). `seconds` counts solving only."""
    from argosy.solvers.flow import Algorithm, FlowNetwork
    from argosy.solvers.flow.dimacs import write_solution
    from argosy.worlds.clocks import ClockBudget

    if algorithm not in list(Algorithm):
        raise UnknownName("algorithm", algorithm, Algorithm)
    instance = _read(file)
    network = FlowNetwork.of(instance.problem)
    found = network.solve(algorithm, budget=ClockBudget())
    cost = None if found.cost is None else found.cost + instance.fixed_cost
    if solution is not None:
        if found.cost is None:
            note(f"note: nothing written to {solution}: the problem is {found.status}")
        else:
            with solution.open("w", encoding="utf-8") as to:
                write_solution(instance, found.cost, network.flows(), network.prices(), to)
    _show(
        output,
        {
            "status": str(found.status),
            "cost": cost,
            "seconds": found.seconds,
            "algorithm": str(found.algorithm),
            "vertices": instance.problem.vertices,
            "arcs": instance.problem.arcs,
        },
    )


@command.command(epilog="Example: argosy flow gen quincy --size 100 --seed 7 > network.min")
@click.argument("shape")
@click.option(
    "--size",
    type=click.IntRange(2, 1_000_000),
    default=100,
    show_default=True,
    help="Number of machines of a cluster, or of vertices.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option(
    "--utilisation",
    type=click.FloatRange(0.01, 10),
    metavar="SHARE",
    help="Tasks of a kind of cluster as a share of its slots; 0.9 unless given.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["dimacs", "json"]),
    default="dimacs",
    show_default=True,
    help="DIMACS text, or one JSON document of columns.",
)
def gen(shape: str, size: int, seed: int, utilisation: float | None, output: str) -> None:
    """Write a problem of SHAPE quincy, oversubscribed, load-spreading, random or adversarial, or of a
    kind of cluster: locality, uniform-costs, pareto-costs, ties, few-preferences, many-preferences,
    hot-spots, all-new, no-aggregators or groups.
    """
    import msgspec

    from argosy.solvers.flow.clusters import CLUSTERS, cluster
    from argosy.solvers.flow.dimacs import write_problem
    from argosy.solvers.flow.generators import GENERATORS

    if shape not in GENERATORS:
        raise UnknownName("shape", shape, GENERATORS)
    if utilisation is None:
        problem = GENERATORS[shape](size, seed)
    elif shape in CLUSTERS:
        problem = cluster(CLUSTERS[shape], size, utilisation, seed)
    else:
        raise CommandError(
            f"the shape {shape!r} has no utilisation to choose",
            hint=f"leave out --utilisation, or choose one of {', '.join(CLUSTERS)}",
        )
    if output == "json":
        columns = msgspec.structs.asdict(problem)
        write(json.dumps({name: column.tolist() for name, column in columns.items()}))
    else:
        write_problem(problem, sys.stdout, f"{shape}, size {size}, seed {seed}")


@command.command(epilog="Example: argosy flow check network.min network.sol")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.argument("solution", type=click.Path(path_type=Path, dir_okay=False))
@output_option
@click.pass_context
def check(context: click.Context, file: Path, solution: Path, output: str) -> None:
    """Prove that SOLUTION is a flow of least cost for the problem in FILE, or say what is wrong.

    Uses the prices in SOLUTION if it has any, otherwise finds them. Exits with 1 if it is wrong.
    """
    from argosy.solvers.flow import checker
    from argosy.solvers.flow.dimacs import read_solution

    instance = _read(file)
    problem = instance.problem
    with _opened(solution) as lines:
        answer = read_solution(lines, instance, str(solution))
    wrong = [str(fault) for fault in checker.infeasibilities(problem, answer.flows)]
    if checker.cost_of(problem, answer.flows) + instance.fixed_cost != answer.cost:
        wrong.append("its cost is not the cost of its flow")
    if not wrong:
        wrong = _costlier(problem, answer.flows, answer.prices)
    _show(output, {"right": not wrong, "cost": answer.cost, "faults": wrong})
    if wrong:
        context.exit(WRONG)


def _costlier(problem: FlowProblem, flows: Any, prices: Any) -> list[str]:
    from argosy.solvers.flow import checker

    if prices is None:
        prices = checker.prices_for(problem, flows)
        if prices is None:
            return ["a flow that can be made cheaper around a cycle"]
    return [str(fault) for fault in checker.costlier(problem, flows, prices)]


def _read(file: Path) -> FlowInstance:
    from argosy.solvers.flow.dimacs import read_problem

    with _opened(file) as lines:
        return read_problem(lines, "stdin" if str(file) == "-" else str(file))


@contextmanager
def _opened(file: Path) -> Iterator[TextIO]:
    if str(file) == "-":
        yield sys.stdin
        return
    try:
        with file.open(encoding="utf-8") as lines:
            yield lines
    except UnicodeDecodeError:
        from argosy.solvers.flow.dimacs import DimacsError

        raise DimacsError("not UTF-8", file=str(file), expected="a DIMACS problem") from None


def _show(output: str, result: dict[str, Any]) -> None:
    from argosy.report.tables import Column, Table

    shown = {k: "; ".join(v) if isinstance(v, list) else v for k, v in result.items()}
    table = Table(tuple(Column(name, name) for name in result), (tuple(shown.values()),))
    emit(
        output, sections=lambda width: [table.lines(width)], document=lambda: result, csv=table.csv
    )
