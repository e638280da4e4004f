"""Flow schedulers: pauses between rounds, prices of the first task of all, and links between
aggregators."""

from __future__ import annotations

import numpy as np
import pytest
from flow_bench import DATA, Bench
from serial_attempts import tasks_of

from argosy.engines.families.flow.explaining import Explainer, _is_among
from argosy.engines.families.flow.gangs import decide
from argosy.engines.families.flow.local_data import LocalData, _counted, scramble
from argosy.engines.families.flow.pools import PLENTY
from argosy.engines.families.flow.pricing import price_of, second_best
from argosy.engines.families.flow.settings import DataSettings
from argosy.engines.firmament import FirmamentSettings
from argosy.engines.registry import ENGINES
from argosy.host.records import PlacedRecord
from argosy.model.jobs import job_of, task_number
from argosy.model.random import Random
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, Resources, cell, job, scenario
from argosy.testing.conformance import ConformanceRun


@pytest.mark.parametrize(
    ("ends", "placed"),
    [
        # Tasks have waited for 10 s: rounds are 105 ms apart.
        ((10.5, 10.52, 10.55), (10.5, 10.606, 10.606)),
        ((10.5, 10.7, 10.71), (10.5, 10.702, 10.81)),
        # For 60 s: never more than a quarter of a second apart.
        ((60.4, 60.5, 60.64), (60.4, 60.65, 60.65)),
        ((60.4, 60.66, 60.67), (60.4, 60.662, 60.912)),
    ],
)
def test_ends_are_collected_for_a_hundredth_of_the_time_that_tasks_have_waited(
    ends: tuple[float, ...], placed: tuple[float, ...]
) -> None:
    jobs = [job(f"j{at}", 1, cpu=4_000, seconds=end) for at, end in enumerate(ends)]
    jobs.append(job("waits", 3, cpu=4_000, seconds=100))
    settings = {"t_round": 0, "t_arcs": 0, "reschedule": False}
    spec = scenario(
        "firmament", jobs, cell=cell(3), replicas=1, settings=settings, horizon=90 * SECOND
    )
    lines = ConformanceRun(ENGINES["firmament"], spec).of(PlacedRecord, "waits")
    found = [line.at / SECOND for line in lines for _ in line.indices]
    assert found == pytest.approx(placed, abs=0.003)


def test_the_first_task_of_the_first_class_is_named_as_holder_and_loser() -> None:
    bench = Bench(cell(1), policy="load-spreading", per_precedence=700)
    bench.add(job("first", 1, cpu=4_000, seconds=30))
    bench.round()
    bench.add(job("second", 1, cpu=4_000, seconds=30))
    bench.solve()
    graph = bench.graph
    row = int(np.flatnonzero(graph.tasks["number"] == task_number(1, 0))[0])
    task_class = int(graph.tasks["task_class"][row])
    assert task_class > 0
    price = price_of(graph, task_class, graph.tasks["machine"]).price
    assert price is not None
    assert (price.machine, price.holder, price.loser) == (0, 0, 0)
    assert price.rise == price.place - price.waiting + 1
    assert price.precedence == -(-price.rise // 700)


def test_links_of_a_policy_without_terms_cost_nothing_and_carry_any_number() -> None:
    bench = Bench(cell(8), policy="quincy", data=DATA)
    bench.add(job("a", 2, seconds=30))
    bench.solve()
    graph = bench.graph
    assert graph.policy.dimensions == ("cpu", "memory")
    [pool] = graph.pools.by_number.values()
    assert len(pool.links) == len(pool.aggregators) == 2
    problem = graph.network.problem()
    tails, heads = problem.tails.tolist(), problem.heads.tolist()
    found = [
        (int(problem.capacities[at]), int(problem.costs[at]))
        for at, (tail, head) in enumerate(zip(tails, heads, strict=True))
        if tail == pool.vertex and head in pool.aggregators.tolist()
    ]
    assert [cost for _, cost in found] == [0, 0]
    assert all(capacity <= PLENTY and capacity >= 2 for capacity, _ in found)


def test_a_placement_is_compared_with_the_next_best_or_with_waiting() -> None:
    bench = Bench(cell(2), policy="load-spreading", per_task=1_000)
    bench.add(job("a", 1, seconds=30))
    bench.round()
    graph = bench.graph
    [machine] = bench.where(0)
    found = second_best(graph, int(graph.tasks["task_class"][0]), machine, 0).explanation
    assert (found.looked_at, found.rule, found.measure) == (2, "cheapest flow", "cost")
    assert found.second == 1 - machine
    # The task runs by now: another machine costs as much, and a move.
    assert found.score is not None
    assert found.second_score == found.score + bench.settings.migration


class TestExplainer:
    def test_prices_are_looked_up_the_less_often_the_longer_tasks_wait(self) -> None:
        explainer = Explainer(FirmamentSettings(explain=10), Random(1))
        explainer._priced = {1: (0, 0), 2: (0, 100), 3: (90, 100), 4: (50, 60)}
        assert explainer._due([1, 2, 3, 4, 5], 139) == [5, 1, 4]
        assert explainer._due([1, 2, 3, 4, 5], 140) == [5, 1, 4, 3]
        assert explainer._due([2], 199) == []
        assert explainer._due([2], 200) == [2]

    def test_a_class_is_compared_with_a_second_best_in_its_first_second_and_fourth_round(
        self,
    ) -> None:
        bench = Bench(cell(2), policy="load-spreading")
        bench.add(job("a", 2, seconds=30))
        bench.solve()
        plan = decide(bench.graph).plan
        explainer = Explainer(FirmamentSettings(), Random(1))
        told = []
        for _ in range(5):
            explainer.begin()
            [effect] = explainer.placed(bench.graph, plan)
            assert effect.tasks.tolist() == tasks_of(0, 0, 1).tolist()
            assert (effect.explanation.looked_at, effect.explanation.rule) == (2, "cheapest flow")
            told.append(effect.explanation.score is not None)
        assert told == [True, True, False, True, False]
        # Without arcs to scan, nobody is told anything.
        silent = Explainer(FirmamentSettings(explain_arcs=0), Random(1))
        silent.begin()
        assert silent.placed(bench.graph, plan) == []

    def test_numbers_are_found_among_others_in_order(self) -> None:
        numbers, others = np.array([1, 5, 9, 12]), np.array([5, 7, 9])
        assert _is_among(numbers, others).tolist() == [False, True, True, False]
        assert _is_among(numbers, others[:0]).tolist() == [False] * 4


class TestLocalData:
    def test_replicas_of_a_block_at_one_place_count_once(self) -> None:
        # Blocks 0 and 1 are of task 0, block 2 of task 1.
        task, rows = np.array([0, 0, 1]), np.array([0, 0, 1, 1, 2, 2])
        places = np.array([3, 3, 3, 1, 0, 1])
        tasks, where, blocks = _counted(task, rows, places)
        found = zip(tasks.tolist(), where.tolist(), blocks.tolist(), strict=True)
        assert [*found] == [(0, 1, 1), (0, 3, 2), (1, 0, 1), (1, 1, 1)]

    def test_third_replicas_are_in_the_rack_of_the_second(self) -> None:
        racks = np.array([0, 1, 0, 2, 1, 2, 2])
        data = LocalData(DataSettings(rate=2**20, replicas=4), racks)
        places = data._places(scramble(np.arange(4_000, dtype=np.uint64)).reshape(-1, 4))
        assert (racks[places[:, 2]] == racks[places[:, 1]]).all()
        assert (racks[places[:, 3]] == racks[places[:, 1]]).all()
        # Every machine of a rack is drawn, as every machine is.
        for replica in range(4):
            assert set(places[:, replica].tolist()) == set(range(7))
        assert (racks[places[:, 0]] != racks[places[:, 1]]).any()

    def test_inputs_are_whole_mebibytes_in_blocks_up_to_the_most(self) -> None:
        racks = np.zeros(4, np.int64)
        tasks = tasks_of(0, *range(50))

        def stored(seconds: int, **fields: float) -> tuple[set[int], set[int]]:
            settings = DataSettings(rate=2**20, block=4 * 2**20, **fields)  # type: ignore[arg-type]
            found = LocalData(settings, racks).of(tasks, seconds * SECOND)
            return set((found.bytes >> 20).tolist()), set(found.blocks.tolist())

        assert stored(9, spread=0.0) == ({9}, {3})
        assert stored(8, spread=0.0) == ({8}, {2})
        assert stored(0, spread=0.0) == ({1}, {1})
        assert stored(1_000, spread=0.0, most_blocks=5) == ({20}, {5})
        sizes, _ = stored(100, spread=0.5)
        assert min(sizes) < 70 < max(sizes) == 128

    def test_the_same_tasks_have_the_same_input_unless_the_seed_differs(self) -> None:
        racks, tasks = np.arange(6) // 2, tasks_of(3, *range(20))

        def machines(seed: int) -> list[int]:
            data = LocalData(DataSettings(rate=2**27, spread=0.5, seed=seed), racks)
            found = data.of(tasks, 10 * SECOND)
            assert found.rack_blocks.sum() <= found.machine_blocks.sum()
            return found.machines.tolist()

        assert machines(1) == machines(1) != machines(2)


def test_a_job_is_forgotten_with_its_last_task() -> None:
    bench = Bench(cell(2), policy="load-spreading")
    group = group_with_truth(2, Resources(1_000, GIB), (30 * SECOND,))
    bench.add(simulated_job("gang", group, gang=True))
    bench.round()
    bench.finish([0])
    assert (0 in bench.graph.jobs, bench.graph.gangs) == (True, {0})
    bench.finish([1])
    assert (0 in bench.graph.jobs, bench.graph.gangs) == (False, set())


def test_the_gang_with_more_precedence_is_tried_first_and_others_are_told_their_room() -> None:
    bench = Bench(cell(1), policy="load-spreading")
    for name, precedence in (("low", 0), ("high", 5), ("late", 5)):
        group = group_with_truth(3, Resources(1_000, GIB), (30 * SECOND,))
        bench.add(simulated_job(name, group, gang=True, precedence=precedence))
    bench.graph.observe(bench.view)
    bench.graph.refresh(0)
    plan = decide(bench.graph).plan
    jobs = {job_of(int(number)) for number in bench.graph.tasks["number"][plan.rows]}
    assert jobs == {1}
    assert sorted(bench.graph.parked) == [0, 2]
    assert all(wanted == 3 and room < 3 for room, wanted in bench.graph.parked.values())
