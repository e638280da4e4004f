"""Flow problems as files: DIMACS in and out, generated shapes, the checker, and `argosy flow`."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from flow_peer import peer

from argosy import cli
from argosy.solvers.flow import Algorithm, FlowNetwork, FlowProblem
from argosy.solvers.flow.checker import cost_of, faults, prices_for
from argosy.solvers.flow.dimacs import DimacsError, read_problem, write_problem
from argosy.solvers.flow.generators import GENERATORS

#: Two ways from 1 to 4, the cheap one with a least flow.
SMALL = """c two ways
p min 4 5
n 1 4
n 4 -4
a 1 2 0 4 2
a 1 3 1 2 2
a 2 3 0 2 1
a 2 4 0 3 3
a 3 4 0 5 1
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def argosy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    monkeypatch.chdir(tmp_path)
    Path("small.min").write_text(SMALL)

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            cli.main(arguments)
        out, err = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, out, err

    return call


@pytest.mark.parametrize("shape", GENERATORS)
def test_every_shape_is_written_and_read_back_the_same(shape: str) -> None:
    problem = GENERATORS[shape](40, 3)
    text = io.StringIO()
    write_problem(problem, text, "a shape")
    text.seek(0)
    instance = read_problem(text, "shape.min")
    assert instance.fixed_cost == 0
    for before, after in zip(
        (problem.supplies, problem.tails, problem.heads, problem.capacities, problem.costs),
        (
            instance.problem.supplies,
            instance.problem.tails,
            instance.problem.heads,
            instance.problem.capacities,
            instance.problem.costs,
        ),
        strict=True,
    ):
        assert np.array_equal(before, after)


@pytest.mark.parametrize("algorithm", Algorithm)
@pytest.mark.parametrize("shape", GENERATORS)
def test_every_algorithm_solves_every_shape(shape: str, algorithm: Algorithm) -> None:
    for size, seed in [(9, 1), (60, 2)]:
        problem = GENERATORS[shape](size, seed)
        network = FlowNetwork.of(problem)
        solution = network.solve(algorithm)
        expected = peer(problem)
        assert solution.cost == expected
        if expected is not None:
            assert faults(problem, network.flows(), network.prices()) == []


def test_the_checker_finds_prices_of_its_own_and_sees_what_is_wrong() -> None:
    problem = GENERATORS["random"](50, 4)
    network = FlowNetwork.of(problem)
    solution = network.solve()
    flows, prices = network.flows(), network.prices()
    found = prices_for(problem, flows)
    assert found is not None
    assert faults(problem, flows, found) == []
    assert cost_of(problem, flows) == solution.cost
    used = int(np.flatnonzero(flows)[0])
    less = flows.copy()
    less[used] -= 1
    assert "does not send its supply" in str(faults(problem, less, prices)[0])
    over = flows.copy()
    over[used] = problem.capacities[used] + 1
    assert "above its capacity" in str(faults(problem, over, prices)[0])
    below = flows.copy()
    below[used] = -1
    assert "below zero" in str(faults(problem, below, prices)[0])
    assert faults(problem, flows, prices + np.arange(problem.vertices) * 2_000) != []
    # A ring that costs less when it turns: feasible, and not of least cost.
    ring = FlowProblem(
        np.zeros(2, np.int64),
        np.array([0, 1], np.int32),
        np.array([1, 0], np.int32),
        np.array([1, 1]),
        np.array([-3, 1]),
    )
    assert prices_for(ring, np.zeros(2, np.int64)) is None
    assert prices_for(ring, np.ones(2, np.int64)) is not None


def test_solve_prints_one_document_and_adds_what_least_flows_cost(argosy: Call) -> None:
    code, out, _ = argosy("flow", "solve", "small.min", "-o", "json", "--solution", "small.sol")
    assert code == 0
    document = json.loads(out)
    assert document.pop("seconds") >= 0
    assert document.pop("algorithm") in list(Algorithm)
    assert document == {"status": "optimal", "cost": 14, "vertices": 4, "arcs": 5}
    assert Path("small.sol").read_text().splitlines()[0] == "s 14"
    code, out, _ = argosy("flow", "check", "small.min", "small.sol", "-o", "json")
    assert code == 0
    assert json.loads(out) == {"right": True, "cost": 14, "faults": []}


def test_check_needs_no_prices_and_finds_a_flow_that_could_be_cheaper(argosy: Call) -> None:
    flows = "f 1 2 2\nf 1 3 2\nf 2 3 2\nf 2 4 0\nf 3 4 4\n"
    Path("bare.sol").write_text("s 14\n" + flows)
    assert argosy("flow", "check", "small.min", "bare.sol")[0] == 0
    dear = "f 1 2 3\nf 1 3 1\nf 2 3 0\nf 2 4 3\nf 3 4 1\n"
    Path("dear.sol").write_text("s 18\n" + dear)
    code, out, _ = argosy("flow", "check", "small.min", "dear.sol", "-o", "json")
    assert code == 1
    assert json.loads(out)["faults"] == ["a flow that can be made cheaper around a cycle"]
    Path("lie.sol").write_text("s 13\n" + flows)
    code, out, _ = argosy("flow", "check", "small.min", "lie.sol", "-o", "json")
    assert code == 1
    assert json.loads(out)["faults"] == ["its cost is not the cost of its flow"]


def test_gen_writes_what_solve_reads(argosy: Call) -> None:
    code, out, _ = argosy("flow", "gen", "quincy", "--size", "10", "--seed", "5")
    assert code == 0
    Path("made.min").write_text(out)
    code, out, _ = argosy("flow", "solve", "made.min", "-o", "csv")
    assert code == 0
    assert out.splitlines()[0] == "status,cost,seconds,algorithm,vertices,arcs"
    assert out.splitlines()[1].startswith("optimal,")
    code, out, _ = argosy("flow", "gen", "ties", "--size", "10", "--utilisation", "1.5")
    assert code == 0
    assert "\nn 1 -180\n" in out
    code, out, _ = argosy("flow", "gen", "quincy", "--size", "10", "--seed", "5", "-o", "json")
    assert code == 0
    columns = json.loads(out)
    assert sum(columns["supplies"]) == 0
    assert len(columns["tails"]) == len(columns["costs"])


def test_a_problem_without_an_answer_is_a_result_and_no_mistake(argosy: Call) -> None:
    Path("cut.min").write_text("p min 2 0\nn 1 1\nn 2 -1\n")
    code, out, err = argosy("flow", "solve", "cut.min", "-o", "json", "--solution", "cut.sol")
    assert code == 0
    assert json.loads(out)["status"] == "infeasible"
    assert json.loads(out)["cost"] is None
    assert "nothing written" in err
    assert not Path("cut.sol").exists()


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "no problem line"),
        ("n 1 2\n", 1, "no problem line"),
        ("p max 2 1\n", 1, "no min-cost flow problem"),
        ("p min 2\n", 1, "1 numbers in a line p"),
        ("p min -2 1\n", 1, "vertices -2"),
        ("p min 99999999999 1\n", 1, "vertices 99999999999"),
        ("p min 2 1\nx 1 2\n", 2, "a line 'x'"),
        ("p min 2 1\nn 3 1\n", 2, "no vertex 3"),
        ("p min 2 1\nn 0 1\n", 2, "no vertex 0"),
        ("p min 2 1\nn 1 1\nn 1 1\n", 3, "has a supply already"),
        ("p min 2 1\nn 1 99999999999999\n", 2, "supply"),
        ("p min 2 1\na 1 2 0 one 3\n", 2, "no whole numbers"),
        ("p min 2 1\na 1 2 0 1.5 3\n", 2, "no whole numbers"),
        ("p min 2 1\na 1 2 0 1\n", 2, "4 numbers in a line a"),
        ("p min 2 1\nc x\n\na 1 2 0 -1 3\n", 4, "capacity -1"),
        ("p min 2 1\na 1 2 3 2 3\n", 2, "capacity 2"),
        ("p min 2 1\na 1 2 -1 2 3\n", 2, "least flow -1"),
        ("p min 2 1\na 1 2 0 4294967296 3\n", 2, "capacity 4294967296"),
        ("p min 2 1\na 1 2 0 1 99999999999999\n", 2, "cost"),
        ("p min 2 2\na 1 2 0 1 3\n", 2, "1 arcs"),
        ("p min 2 1\np min 2 1\n", 2, "a second problem line"),
    ],
)
def test_a_malformed_file_is_one_error_with_its_line(text: str, line: int, what: str) -> None:
    with pytest.raises(DimacsError, match=what) as caught:
        read_problem(io.StringIO(text), "bad.min")
    assert str(caught.value).startswith(f"bad.min:{line}: ")


def test_mistakes_at_the_command_line_are_one_line(argosy: Call) -> None:
    Path("binary.min").write_bytes(b"p min \xff\xfe")
    Path("short.sol").write_text("s 14\nf 1 2 2\n")
    Path("strange.sol").write_text("s 14\nf 2 1 2\n")
    for arguments, text in [
        (["solve", "none.min"], "No such file"),
        (["solve", "binary.min"], "error[dimacs]: binary.min: not UTF-8"),
        (["solve", "small.min", "--algorithm", "simplex"], "unknown algorithm 'simplex'"),
        (["gen", "qincy"], "did you mean 'quincy'?"),
        (["gen", "quincy", "--size", "1"], "size"),
        (["gen", "quincy", "--utilisation", "1.05"], "no utilisation to choose"),
        (["check", "small.min", "short.sol"], "short.sol:2: 1 flows"),
        (["check", "small.min", "strange.sol"], "strange.sol:2: the flow of an arc 2 1"),
    ]:
        code, out, err = argosy("flow", *arguments)
        assert code == 2
        assert out == ""
        (complaint,) = err.splitlines()
        assert text in complaint


def test_a_problem_may_come_from_a_pipe(argosy: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(SMALL))
    code, out, _ = argosy("flow", "solve", "-", "-o", "json")
    assert (code, json.loads(out)["cost"]) == (0, 14)
    monkeypatch.setattr("sys.stdin", io.StringIO("p min 2 1\nx\n"))
    code, _, err = argosy("flow", "solve", "-")
    assert code == 2
    assert "stdin:2: " in err


#: Of each shape at a size of 12: vertices, arcs, the supply sent, and what an optimal flow costs.
SHAPES = {
    "quincy": (146, 1095, 130, 768, "69c465578054"),
    "oversubscribed": (167, 1268, 151, 2802, "cd4e495b1266"),
    "load-spreading": (26, 151, 12, 16, "bbbdebb7918f"),
    "random": (12, 84, 62, 29415, "c90a8fcab48a"),
    "adversarial": (9, 24, 9, 15, "41c6b17e1d94"),
    "locality": (146, 1268, 130, 633, "70710d122ffe"),
    "uniform-costs": (146, 1069, 130, 3793, "1044388e0140"),
    "pareto-costs": (146, 1010, 130, 271, "9d7893457a4a"),
    "ties": (146, 1302, 130, 870, "af8f367c9bff"),
    "few-preferences": (233, 987, 216, 2717, "c1b5e99e44f7"),
    "many-preferences": (70, 1298, 54, 49, "5123478b0fb9"),
    "hot-spots": (146, 1245, 130, 296, "f8346a42602b"),
    "all-new": (146, 1054, 130, 8859, "a47e337756c8"),
    "no-aggregators": (146, 1039, 130, 375, "7db4080880c0"),
    "groups": (59, 476, 432, 1466, "e8f5022fe5b5"),
}


@pytest.mark.parametrize("shape", GENERATORS)
def test_a_seed_makes_the_same_problem_on_every_platform(shape: str) -> None:
    problem, again, other = (GENERATORS[shape](12, seed) for seed in (5, 5, 6))
    columns = [
        (column.dtype.str, column.tolist())
        for column in (
            problem.supplies,
            problem.tails,
            problem.heads,
            problem.capacities,
            problem.costs,
        )
    ]
    digest = hashlib.sha256(repr(columns).encode()).hexdigest()[:12]
    sent = int(problem.supplies[problem.supplies > 0].sum())
    cost = FlowNetwork.of(problem).solve("cost-scaling").cost
    assert (problem.vertices, problem.arcs, sent, cost, digest) == SHAPES[shape]
    assert np.array_equal(problem.costs, again.costs)
    assert not np.array_equal(problem.costs, other.costs)


def test_what_must_flow_is_paid_for_and_its_ends_are_written_from_one_on() -> None:
    text = "p min 3 2\nn 1 4\nn 3 -4\na 1 2 2 5 3\na 2 3 3 9 -7\n"
    instance = read_problem(text.splitlines(), "f")
    assert instance.least.tolist() == [2, 3]
    assert instance.fixed_cost == 2 * 3 - 3 * 7
    assert instance.problem.capacities.tolist() == [3, 6]
    written = io.StringIO()
    write_problem(instance.problem, written, "left")
    # Vertex 2 gets 2 and has to pass on 3.
    assert written.getvalue().splitlines() == [
        "c left",
        "p min 3 2",
        "n 1 2",
        "n 2 -1",
        "n 3 -1",
        "a 1 2 0 3 3",
        "a 2 3 0 6 -7",
    ]
