"""Prices as explanations: they agree with solving again, and `argosy why` shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from flow_bench import DATA, Bench
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy import cli
from argosy.engines.families.flow.extraction import extract
from argosy.engines.families.flow.graph import Graph
from argosy.engines.families.flow.pricing import FAR, entry_costs, price_of, second_best
from argosy.engines.families.flow.tasks import PENDING
from argosy.engines.firmament import Firmament
from argosy.host.records import ExplainedRecord
from argosy.model.jobs import job_of, task_number
from argosy.model.prices import Price
from argosy.solvers.flow import FlowNetwork, FlowProblem
from argosy.testing.builders import cell, job, scenario
from argosy.testing.conformance import ConformanceRun
from argosy.testing.residual import Residual

POLICIES = [
    {"policy": "load-spreading"},
    {"policy": "quincy", "data": DATA},
    {"policy": "multi-dimensional"},
    {"policy": "multi-dimensional", "fairness": 5_000},
]


def _price(graph: Graph, task_class: int) -> Price:
    price = price_of(graph, task_class, graph.tasks["machine"]).price
    assert price is not None
    return price


def _class_of(graph: Graph, number: int) -> int:
    row = int(np.flatnonzero(graph.tasks["number"] == task_number(number, 0))[0])
    return int(graph.tasks["task_class"][row])


def _full(**options: Any) -> Bench:
    """Four machines of four slots, all taken by jobs of precedence 0 to 3."""
    bench = Bench(cell(4), per_precedence=700, **options)
    for number in range(4):
        bench.add(
            job(f"j{number}", 4, cpu=1_000, seconds=30, precedence=number, owner=f"u{number % 2}")
        )
    bench.round()
    bench.solve()
    assert not (bench.graph.tasks["state"] == PENDING).any()
    return bench


@pytest.mark.parametrize("options", POLICIES)
def test_the_price_of_a_place_is_what_waiting_would_have_to_cost(options: dict[str, Any]) -> None:
    bench = _full(**options)
    number = bench.add(job("late", 1, cpu=1_000, seconds=30, owner="u0"))
    bench.solve()
    graph = bench.graph
    task_class = _class_of(graph, number)
    price = _price(graph, task_class)
    assert price.rise == price.place - price.waiting + 1
    # The one that would lose is of the lowest precedence, unless its owner would fall below its share.
    assert job_of(price.loser) == (0 if "fairness" not in options else job_of(price.holder))
    assert price.machine in range(4)
    arc = int(graph.classes["wait_arc"][task_class])
    waiting = int(graph.classes["wait_cost"][task_class])
    for rise, waits in ((price.rise - 2, 1), (price.rise, 0)):
        graph.network.set_arcs([arc], costs=[waiting + rise])
        assert graph.solve().is_optimal
        assert graph.network.flows([arc]).tolist() == [waits]


@pytest.mark.parametrize("policy", ["load-spreading", "multi-dimensional"])
def test_a_place_costs_a_waiting_task_the_same_whoever_runs_there(policy: str) -> None:
    """That a task of its own job stays there cheaply is of no use to it."""
    costs = []
    for is_of_the_same_job in (True, False):
        bench = Bench(cell(2), policy=policy)
        first = bench.add(job("a", 1, cpu=1_000, seconds=30))
        bench.round()
        if is_of_the_same_job:
            waiting = first
            bench.grow(job("a", 2, cpu=1_000, seconds=30).job, first, 1)
        else:
            waiting = bench.add(job("b", 1, cpu=1_000, seconds=30))
        bench.solve()
        graph = bench.graph
        costs.append(entry_costs(graph, _class_of(graph, waiting)).tolist())
    assert costs[0] == costs[1]


def _crowd(data: st.DataObject, options: dict[str, Any], late: int = 0) -> tuple[Bench, int]:
    """A cluster that more tasks want than it has room for, and a job that comes last, with so much more
    precedence than it was drawn."""
    bench = Bench(cell(3), per_precedence=700, per_second=30, moves=100, **options)
    for number in range(data.draw(st.integers(2, 5), label="jobs")):
        count = data.draw(st.integers(1, 6), label="tasks")
        precedence = data.draw(st.integers(0, 3), label="precedence")
        owner = data.draw(st.sampled_from(["u0", "u1"]), label="owner")
        seconds = data.draw(st.integers(5, 60), label="seconds")
        bench.add(job(f"j{number}", count, seconds=seconds, precedence=precedence, owner=owner))
        bench.round()
        bench.now += data.draw(st.integers(0, 3)) * 1_000_000
    precedence = data.draw(st.integers(0, 2), label="late precedence") + late
    count = data.draw(st.integers(1, 3), label="late tasks")
    number = bench.add(job("late", count, precedence=precedence, owner="u0", seconds=40))
    bench.solve()
    return bench, number


def _unplaced(graph: Graph, number: int) -> int:
    """Units of the job that the flow leaves without a machine."""
    return int(graph.network.flows([graph.jobs[number].arc])[0])


def _least_rise(graph: Graph, number: int) -> int | None:
    """The lowest price among the job's tasks that the flow leaves without a machine."""
    living = graph.classes["pending"] + graph.classes["running"] > 0
    classes = np.flatnonzero((graph.classes["job"] == number) & living)
    waits = classes[graph.network.flows(graph.classes["wait_arc"][classes]) > 0]
    where = graph.tasks["machine"]
    found = [price_of(graph, each, where).price for each in waits.tolist()]
    return min((price.rise for price in found if price is not None), default=None)


@pytest.mark.parametrize("options", POLICIES)
@settings(max_examples=25)
@given(data=st.data())
def test_a_rise_by_so_much_places_one_more_task_and_by_less_places_none(
    options: dict[str, Any], data: st.DataObject
) -> None:
    bench, _ = _crowd(data, options)
    graph = bench.graph
    for number in [*graph.jobs]:
        rise, before = _least_rise(graph, number), _unplaced(graph, number)
        if rise is None:
            continue
        assert rise >= 1
        arc, cost = graph.jobs[number].arc, graph.jobs[number].cost
        for more, is_placed in ((rise - 2, False), (rise, True)):
            graph.network.set_arcs([arc], costs=[cost + more])
            assert graph.solve().is_optimal
            assert (_unplaced(graph, number) < before) == is_placed
        graph.network.set_arcs([arc], costs=[cost])
        assert graph.solve().is_optimal


@pytest.mark.parametrize("options", POLICIES)
@settings(max_examples=15)
@given(data=st.data())
def test_so_much_more_precedence_wins_a_place_and_one_less_does_not(
    options: dict[str, Any], data: st.DataObject
) -> None:
    class Again:
        """Draws what was drawn before."""

        def __init__(self) -> None:
            self.at = 0

        def draw(self, *_: Any, **__: Any) -> Any:
            self.at += 1
            return drawn[self.at - 1]

    drawn: list[Any] = []

    class Noting:
        def draw(self, *told: Any, **named: Any) -> Any:
            drawn.append(data.draw(*told, **named))
            return drawn[-1]

    bench, number = _crowd(Noting(), options)  # type: ignore[arg-type]
    rise, before = _least_rise(bench.graph, number), _unplaced(bench.graph, number)
    if rise is None:
        return
    more = -(-rise // bench.settings.per_precedence)
    bench, number = _crowd(Again(), options, more)  # type: ignore[arg-type]
    assert _unplaced(bench.graph, number) < before
    bench, number = _crowd(Again(), options, more - 1)  # type: ignore[arg-type]
    # At a tie either is of least cost.
    left = _least_rise(bench.graph, number)
    is_tie = (more - 1) * bench.settings.per_precedence == rise - 1
    assert is_tie or _unplaced(bench.graph, number) == before
    assert left is None or left == rise - (more - 1) * bench.settings.per_precedence


@pytest.mark.parametrize("options", POLICIES)
@settings(max_examples=20)
@given(data=st.data())
def test_prices_are_what_a_search_without_duals_finds(
    options: dict[str, Any], data: st.DataObject
) -> None:
    bench, number = _crowd(data, options)
    graph = bench.graph
    task_class = _class_of(graph, number)
    price = price_of(graph, task_class, graph.tasks["machine"]).price
    vertex, job_vertex = int(graph.classes["vertex"][task_class]), graph.jobs[number].vertex
    owner = int(graph.classes["owner"][task_class])
    residual = Residual(graph.network)
    ways = [int(residual.to(graph.sink, without=[job_vertex]).distances[vertex])]
    if graph.owner_vertices[owner] != graph.sink:
        there = residual.to(graph.owner_vertices[owner], without=[job_vertex])
        ways.append(int(there.distances[vertex]) + graph.owner_cost(owner))
    # Where all that runs is its own job's, no rise of its own wins anything.
    assert (None if price is None else price.place) == (min(ways) if min(ways) < FAR else None)


@pytest.mark.parametrize("options", POLICIES)
@pytest.mark.parametrize("seed", range(5))
def test_second_best_is_what_the_flow_would_cost_without_the_best(
    seed: int, options: dict[str, Any]
) -> None:
    random = np.random.default_rng(seed)
    bench = Bench(cell(6), **options)
    for number in range(int(random.integers(2, 6))):
        bench.add(job(f"j{number}", 3, cpu=1_000, seconds=int(random.integers(5, 60))))
        bench.round()
    chosen = bench.add(job("chosen", 1, cpu=1_000, seconds=30))
    cost = bench.solve()
    graph = bench.graph
    plan = extract(graph)
    row = int(np.flatnonzero(graph.tasks["number"] == task_number(chosen, 0))[0])
    at = int(np.flatnonzero(plan.rows == row)[0])
    task_class, machine = int(graph.tasks["task_class"][row]), int(plan.machines[at])
    told = second_best(graph, task_class, machine, int(plan.costs[at])).explanation
    assert told.score is not None
    assert told.second_score is not None
    assert told.second != machine
    again = FlowNetwork.of(_without(graph, task_class, machine)).solve().cost
    assert again is not None
    assert again - cost == told.second_score - told.score


def _without(graph: Graph, task_class: int, machine: int) -> FlowProblem:
    """The problem with the class's ways to machines spelled out, and the one to `machine` left out."""
    network = graph.network
    problem, handles = network.problem(), network.all_vertices()
    number = {handle: at for at, handle in enumerate(handles.tolist())}
    me = number[int(graph.classes["vertex"][task_class])]
    job_vertex = number[graph.jobs[int(graph.classes["job"][task_class])].vertex]
    kept = (problem.tails != me) | (problem.heads == job_vertex)
    entries = entry_costs(graph, task_class)
    entries[machine] = FAR
    others = np.flatnonzero(entries < FAR)
    vertices = [number[vertex] for vertex in graph.cluster.vertices[others].tolist()]
    return FlowProblem(
        problem.supplies,
        np.concatenate([problem.tails[kept], np.full(len(others), me, np.int32)]),
        np.concatenate([problem.heads[kept], np.array(vertices, np.int32)]),
        np.concatenate([problem.capacities[kept], np.ones(len(others), np.int64)]),
        np.concatenate([problem.costs[kept], entries[others]]),
    )


def test_a_waiting_task_is_explained_by_the_price_of_a_place() -> None:
    jobs = [
        job("first", 8, cpu=4_000, seconds=30, precedence=2),
        job("late", 1, cpu=4_000, seconds=5, submit=1),
    ]
    trial = ConformanceRun(Firmament, scenario("firmament", jobs, replicas=1))
    line = trial.of(ExplainedRecord, "late")[0]
    price = line.explanation.price
    assert job_of(price.holder) == 0
    assert price.precedence >= 3
    assert line.explanation.nearest_miss.machine >= 0
    told = trial.of(ExplainedRecord, "first")
    assert all(x.explanation.rule == "cheapest flow" for x in told)


def test_all_that_wait_are_explained_in_turn_when_a_round_may_look_at_little() -> None:
    jobs = [job("first", 8, cpu=4_000, seconds=60, precedence=9)]
    jobs += [job(f"late{n}", 1, cpu=4_000, seconds=1, submit=1 + n / 10) for n in range(6)]
    options = {"explain_arcs": 1}
    trial = ConformanceRun(Firmament, scenario("firmament", jobs, replicas=1, settings=options))
    priced = {
        line.job: line.at for line in reversed(trial.of(ExplainedRecord)) if line.explanation.price
    }
    assert {name for name in priced if name != "first"} == {f"late{n}" for n in range(6)}
    assert len({*priced.values()}) == len(priced)


SCENARIO = """
name = "crowded"
horizon = "20s"

[[cell.machines]]
name = "m"
count = 2
capacity = {{ cpu = 2000, memory = "8GiB" }}

[[workload.jobs]]
id = "old"
count = 3
precedence = 5
request = {{ cpu = 1000, memory = "1GiB" }}
duration = "1min"

[[workload.jobs]]
id = "cheap"
submit = "1s"
precedence = 3
count = 1
request = {{ cpu = 1000, memory = "1GiB" }}
duration = "1min"

[[workload.jobs]]
id = "late"
submit = "2s"
precedence = {precedence}
count = 1
request = {{ cpu = 1000, memory = "1GiB" }}
duration = "1min"

[[fleet]]
name = "flow"
engine = "firmament"
settings = {{ policy = "load-spreading", per_second = 0, migration = 50 }}
"""


class Told:
    """What `argosy why` answers on a run of the scenario, in the job's own precedence."""

    def __init__(
        self, precedence: int, directory: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._capsys = capsys
        directory.mkdir()
        (directory / "crowded.toml").write_text(SCENARIO.format(precedence=precedence))
        self._run = str(directory / "run")
        self._call("run", str(directory / "crowded.toml"), "--out", self._run)

    def _call(self, *arguments: str) -> str:
        with pytest.raises(SystemExit) as stop:
            cli.main([*arguments])
        out, err = self._capsys.readouterr()
        assert stop.value.code == 0, err
        return out

    def text(self, task: str) -> str:
        return " ".join(self._call("why", task, "--run", self._run).split())

    def answer(self, task: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._call("why", task, "--run", self._run, "-o", "json"))
        return told


def test_why_tells_a_waiting_task_the_price_of_a_place_and_a_placed_one_the_second_best(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Told(1, tmp_path / "low", capsys)
    text = told.text("late/0")
    # 10,000 + 1 x 1,000 for waiting, and 50 for starting at all.
    assert "Waiting costs it 11,050" in text
    # `cheap` waits at 13,050 and loses 500 by preemption; its machine costs the same to both.
    assert "cheap/0 holds it" in text
    assert "What would help: 3 more precedence" in text
    answer = told.answer("late/0")
    assert answer["state"] == "pending"
    price = msgspec.convert(answer["price"], Price)
    assert price.place == 13_050 + 500 + 50
    assert price.rise == price.place - price.waiting + 1
    placed = told.text("old/0")
    assert "the cheapest assignment of all tasks puts it there" in placed
    assert "a cost of 60; m-1 was as good" in placed
    # Two of `old` were on m-0 by then, and one on m-1.
    assert "a cost of 60; m-0 came second with a cost of" in told.text("cheap/0")


@pytest.mark.parametrize(("more", "state"), [(2, "pending"), (3, "running")])
def test_the_precedence_that_why_asks_for_is_the_least_that_wins(
    more: int, state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = Told(1 + more, tmp_path / "higher", capsys)
    assert told.answer("late/0")["state"] == state
    assert told.answer("cheap/0")["state"] == ("running" if state == "pending" else "pending")


def test_a_job_is_told_its_second_best_place_though_another_had_its_class_before() -> None:
    jobs = [job(f"j{number}", 1, seconds=1, submit=5 * number) for number in range(5)]
    trial = ConformanceRun(Firmament, scenario("firmament", jobs, replicas=1, cell=cell(3)))
    for number in range(5):
        assert trial.of(ExplainedRecord, f"j{number}")[0].explanation.second is not None
