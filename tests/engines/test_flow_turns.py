"""Flow schedulers: what is withdrawn during a round, costs that are asked for again, and the cheapest
machines of a pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flow_bench import Bench
from msgspec import structs
from serial_attempts import tasks_of
from test_firmament_rounds import Rounds, submitted
from test_flow_policies import ALL, NO_CLUSTER, numbers, statistics

from argosy.engines.families.flow.explaining import Explainer
from argosy.engines.families.flow.gangs import decide, gang_numbers
from argosy.engines.families.flow.policies.load_spreading import LoadSpreading
from argosy.engines.families.flow.policies.multi_dimensional import MultiDimensional
from argosy.engines.families.flow.policies.network_aware import NetworkAware
from argosy.engines.families.flow.policy import ArcCosts
from argosy.engines.families.flow.pools import NO_ARC
from argosy.engines.families.flow.settings import FlowSettings
from argosy.model.effects import Deliberate
from argosy.model.events import Deliberated, JobCancelled
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.testing.builders import GIB, cell, job


def costs_of(terms: ArcCosts) -> tuple[Any, Any]:
    return np.asarray(terms.costs).tolist(), np.asarray(terms.steps).tolist()


def test_costs_asked_for_again_are_those_of_the_request_the_machines_and_the_use_of_now() -> None:
    cached = MultiDimensional(FlowSettings(), NO_CLUSTER, ("cpu", "memory"))
    larger = numbers([20, 100], [40, 100])
    seen = [
        (statistics(), numbers([2, 10]), ALL),
        (statistics(), numbers([4, 10]), ALL),
        (statistics(), numbers([4, 10], [2, 10]), ALL),
        (statistics(free=numbers([5, 100], [20, 50])), numbers([4, 10], [2, 10]), ALL),
        (statistics(capacity=larger, free=larger), numbers([4, 10], [2, 10]), ALL),
        (statistics(capacity=larger, free=larger), numbers([4, 10], [2, 10]), numbers(1)),
        (statistics(), numbers([4, 10], [2, 10]), ALL),
    ]
    found = []
    for state, requests, machines in seen:
        fresh = MultiDimensional(FlowSettings(), NO_CLUSTER, ("cpu", "memory"))
        for policy in (cached, fresh):
            policy.gather(state)
        assert costs_of(cached.pool_terms(requests, machines)) == costs_of(
            fresh.pool_terms(requests, machines)
        )
        found.append(costs_of(cached.pool_terms(requests, machines))[0])
    assert found == [
        [[150, 100]],
        [[250, 150]],
        [[250, 150], [150, 100]],
        [[500, 400], [400, 350]],
        [[150, 100], [100, 75]],
        [[100], [75]],
        [[250, 150], [150, 100]],
    ]


def test_the_capacity_of_before_is_kept_though_the_statistics_change_in_place() -> None:
    policy = MultiDimensional(FlowSettings(), NO_CLUSTER, ("cpu", "memory"))
    state = statistics(capacity=numbers([10, 100], [20, 100]), free=numbers([10, 100], [20, 100]))
    policy.gather(state)
    assert costs_of(policy.pool_terms(numbers([2, 10]), ALL))[0] == [[150, 100]]
    state.capacity[0, 0] = state.free[0, 0] = 40
    policy.gather(state)
    assert costs_of(policy.pool_terms(numbers([2, 10]), ALL))[0] == [[75, 100]]


def test_costs_of_some_machines_are_those_machines_own() -> None:
    state = statistics(pinned_tasks=numbers(3, 5), free=numbers([8, 100], [5, 100]))
    spreading = LoadSpreading(FlowSettings(per_task=7), NO_CLUSTER, ("cpu", "memory"))
    spreading.gather(state)
    assert costs_of(spreading.sink_terms(numbers(1))) == ([35], 7)
    links = NetworkAware(FlowSettings(bandwidth="cpu"), NO_CLUSTER, ("cpu", "memory"))
    links.gather(state)
    # Thousandths of the larger link of 20: 15 are in use on the second machine.
    found = costs_of(links.pool_terms(numbers([2, 0], [90, 0]), numbers(1)))
    assert found == ([[850], [1_750]], [[100], [1_000]])
    found = costs_of(links.pool_terms(numbers([2, 0]), ALL))
    assert found == ([[200, 850]], [[100]])


@pytest.mark.parametrize("gone", [0, 1])
def test_a_job_cancelled_during_a_round_is_left_out_of_its_plan(gone: int) -> None:
    """Both are new in the second round, and one goes while that is decided."""
    rounds = Rounds(2)
    asked = rounds.begin(submitted(job("blocker", 1, cpu=64_000), 9))
    jobs = [job("a", 1, cpu=3_000), job("b", 1, cpu=4_000)]
    for number, made in enumerate(jobs):
        assert not rounds.engine.handle(submitted(made, number), rounds.cell, 0)
    decision = rounds.engine.deliberate_in_place(asked.question)
    effects = rounds.engine.handle(Deliberated(asked.token, decision), rounds.cell, 0)
    [asked] = [each for each in effects if isinstance(each, Deliberate)]
    rounds.engine.handle(JobCancelled(jobs[gone].job, gone, tasks_of(gone, 0)), rounds.cell, 0)
    placing = rounds.decide(asked)
    assert placing is not None
    claims = placing.transaction.claims
    assert claims is not None
    assert claims.tasks.tolist() == tasks_of(1 - gone, 0).tolist()
    assert len(claims.machines) == len(claims.shapes) == len(claims.versions) == 1
    assert rounds.cell.shape_request(int(claims.shapes[0]))[0] == (4_000, 3_000)[gone]
    assert rounds.cell.commit(placing.transaction).all_accepted


def test_a_pool_keeps_its_cheapest_machines_and_pools_differ_among_equal_ones() -> None:
    bench = Bench(cell(6))
    pools, view = bench.graph.pools, bench.view
    made = [pools.get(Resources(cpu, GIB), {}, view) for cpu in (1, 2)]
    order = np.array([pool.number for pool in made])
    rooms = np.array([[2, 2, 0, 2, 2, 2], [1, 1, 1, 1, 1, 1]])
    costs = np.array([[5, 1, 0, 3, 3, 9], [7, 7, 7, 7, 7, 7]])
    thinned = pools.thinned(order, rooms, ArcCosts(costs), 2)
    # A machine without room is no machine; of two that cost the same, where the pool starts decides.
    start = order[0] * 7919 % 6
    third = min((3, 4), key=lambda machine: (machine - start) % 6)
    expected = [0] * 6
    expected[1] = expected[third] = 2
    assert thinned[0].tolist() == expected
    start = order[1] * 7919 % 6
    assert sorted(np.flatnonzero(thinned[1]).tolist()) == sorted([start, (start + 1) % 6])
    # With one cost for all, and as many machines as may be, nothing is left out.
    assert pools.thinned(order, rooms, ArcCosts(4), 6).tolist() == rooms.tolist()


def test_arcs_to_machines_that_are_no_longer_among_the_cheapest_go() -> None:
    bench = Bench(cell(3))
    graph, pools = bench.graph, bench.graph.pools
    pool = pools.get(Resources(1, GIB), {}, bench.view)
    number = np.array([pool.number])
    heads = graph.cluster.vertices[:3]
    arcs = graph.network.add_arcs(np.full(3, pool.vertex), heads, 1, 0)
    pools.arcs[pool.number], pools.rooms[pool.number] = arcs, 5
    rooms, costs = np.array([[5, 5, 5]]), np.array([[3, 1, 2]])
    thinned = pools.thinned(number, rooms, ArcCosts(costs), 2)
    assert thinned.tolist() == [[0, 5, 5]]
    assert pools.arcs[pool.number].tolist() == [NO_ARC, *arcs[1:].tolist()]
    assert pools.rooms[pool.number].tolist() == [0, 5, 5]


def test_rows_of_gangs_are_numbered_by_job_and_others_are_minus_one() -> None:
    bench = Bench(cell(4))
    for name, gang in (("b", True), ("a", False), ("c", True)):
        bench.add(job(name, 2, cpu=1_000, gang=gang))
    bench.solve()
    plan = decide(bench.graph).plan
    found = gang_numbers(bench.graph, plan)
    assert found is not None
    assert found.tolist() == [-1, -1, 0, 0, 1, 1]
    owners = bench.graph.classes["job"][bench.graph.tasks["task_class"][plan.rows]]
    assert owners.tolist() == [1, 1, 0, 0, 2, 2]
    bench = Bench(cell(4))
    bench.add(job("a", 2))
    bench.solve()
    assert gang_numbers(bench.graph, decide(bench.graph).plan) is None


def test_classes_placed_together_are_told_each_its_second_best_or_all_the_same() -> None:
    bench = Bench(cell(4), explain_arcs=100_000)
    for name in ("a", "b"):
        bench.add(job(name, 2))
    bench.solve()
    plan = decide(bench.graph).plan
    explainer = Explainer(bench.settings, Random(1))
    tasks = [*tasks_of(0, 0, 1).tolist(), *tasks_of(1, 0, 1).tolist()]
    # Second bests are looked up in the first, second and fourth round of a class.
    for turn, is_searched in enumerate((True, True, False, True, False), 1):
        explainer.begin()
        effects = explainer.placed(bench.graph, plan)
        has_score = [each.explanation.score is not None for each in effects]
        assert has_score == ([True, True] if is_searched else [False]), turn
        assert sorted(task for each in effects for task in each.tasks.tolist()) == tasks
        assert {each.explanation.looked_at for each in effects} == {4}
    silent = Explainer(structs.replace(bench.settings, explain_arcs=0), Random(1))
    silent.begin()
    assert silent.placed(bench.graph, plan) == []
