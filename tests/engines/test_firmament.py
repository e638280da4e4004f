"""The flow engines: networks, policies, rounds and prices."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from flow_bench import DATA, Bench
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.engines.families.flow.local_data import LocalData
from argosy.engines.families.flow.policies.quincy import QuincyPolicy
from argosy.engines.families.flow.policy import NewGroup
from argosy.engines.families.flow.settings import DataSettings
from argosy.engines.families.flow.tasks import PENDING, RUNNING
from argosy.engines.firmament import Firmament
from argosy.engines.quincy import Quincy
from argosy.host.records import ExplainedRecord, PlacedRecord, ReleasedRecord
from argosy.model.errors import ModelError
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, MachineCrash, MachineUse, Measured, Scenario
from argosy.model.transactions import Claims, Transaction
from argosy.model.truth import SimulatedJob
from argosy.solvers.flow import FlowNetwork, FlowSolution
from argosy.testing.builders import GIB, SECOND, cell, job, machines, scenario
from argosy.testing.conformance import ConformanceRun


def test_load_is_spread_evenly() -> None:
    bench = Bench(policy="load-spreading")
    bench.add(job("a", 20, cpu=500))
    bench.round()
    counts = np.bincount(bench.where(0), minlength=8)
    assert counts.min() == 2
    assert counts.max() == 3
    bench.add(job("b", 4, cpu=500))
    bench.round()
    assert (np.bincount(bench.where(0) + bench.where(1), minlength=8) == 3).all()


def test_a_job_of_many_equal_tasks_is_one_vertex() -> None:
    bench = Bench(policy="load-spreading")
    before = bench.graph.network.vertices
    bench.add(job("a", 1_000, cpu=100))
    # The class, its job and its pool.
    assert bench.graph.network.vertices == before + 3


def test_many_small_jobs_share_their_arcs_to_machines() -> None:
    bench = Bench(cell(200), policy="load-spreading")
    idle = bench.graph.network.arcs
    for number in range(2_000):
        bench.add(job(f"j{number}", 1, cpu=100))
    bench.solve()
    # Each job has three arcs, and each machine one from the pool and one to the sink.
    assert bench.graph.network.arcs - idle == 3 * 2_000 + 200


def test_many_different_jobs_keep_to_the_limit_of_arcs() -> None:
    bench = Bench(cell(100), policy="load-spreading", most_arcs=2_000)
    for number in range(200):
        bench.add(job(f"j{number}", 2, cpu=10 + number))
    bench.round()
    assert bench.graph.network.arcs < 2_000 + 100 + 200 * 4 + 500
    assert not (bench.graph.tasks["state"] == PENDING).any()
    # The rest of the machines are still used: each pool begins elsewhere.
    assert len({*np.concatenate([bench.where(n) for n in range(200)]).tolist()}) > 80


def test_machines_without_what_a_task_requires_have_no_arc() -> None:
    spec = cell()
    picky = tuple(
        msgspec.structs.replace(machine, attributes={"gpu": "yes"}) if i < 2 else machine
        for i, machine in enumerate(spec.machines)
    )
    bench = Bench(msgspec.structs.replace(spec, machines=picky), policy="load-spreading")
    bench.add(job("a", 6, cpu=1_000, requires={"gpu": "yes"}))
    bench.round()
    assert set(bench.where(0)) == {0, 1}
    assert (bench.graph.pools.arcs[0] >= 0).sum() == 2


def test_a_task_goes_to_its_data_and_then_to_its_rack() -> None:
    bench = Bench(cell(40), policy="quincy", data=DATA)
    bench.add(job("a", 10, seconds=30))
    bench.round()
    data = LocalData(bench.settings.data, bench.graph.cluster.racks)
    found = data.of(np.arange(10, dtype=np.int64), 30 * SECOND)
    for task, machine in enumerate(bench.where(0)):
        mine = found.machine_tasks == task
        best = found.machine_blocks[mine].max()
        here = found.machine_blocks[mine & (found.machines == machine)]
        assert len(here), "no local data although every machine has room"
        assert here[0] >= best - 1


@pytest.mark.parametrize("most", [1, 2])
def test_a_task_prefers_no_more_machines_and_racks_than_it_may(most: int) -> None:
    data = {**DATA, "threshold": 0.0, "most_preferences": most}
    bench = Bench(cell(40), policy="quincy", data=data)
    policy = QuincyPolicy(bench.settings, bench.graph.cluster, ("cpu", "memory"))
    made, nothing = job("a", 10, seconds=30).job, np.zeros(10, np.int64)
    new = NewGroup(made, 0, made.groups[0], np.arange(10), nothing, 0, 0, 0)
    found = policy.wishes([new]).preferences
    assert found is not None
    for is_rack in (False, True):
        counts = np.bincount(found.tasks[found.is_aggregator == is_rack], minlength=10)
        assert counts.max() == most


def test_data_has_its_replicas_where_hdfs_puts_them() -> None:
    racks = np.arange(100) // 10
    data = LocalData(DataSettings(rate=2**28, block=2**26, most_blocks=8), racks)
    found = data.of(np.arange(500, dtype=np.int64), SECOND)
    assert found.blocks.min() >= 1
    assert found.blocks.max() <= 8
    # Three replicas, two of them in one rack.
    held = np.bincount(found.machine_tasks, found.machine_blocks)
    assert (held <= 3 * found.blocks).all()
    assert (np.bincount(found.rack_tasks, found.rack_blocks) <= 2 * found.blocks).all()
    again = data.of(np.arange(100, 200, dtype=np.int64), SECOND)
    assert again.bytes.tolist() == found.bytes[100:200].tolist()


@pytest.mark.parametrize(
    "options", [{"policy": "load-spreading"}, {"policy": "quincy", "data": DATA}]
)
def test_rounds_from_the_last_flow_cost_what_rounds_from_scratch_cost(
    options: dict[str, Any],
) -> None:
    warm, cold = Bench(cell(20), **options), Bench(cell(20), warm=False, **options)
    random = np.random.default_rng(3)
    for step in range(25):
        count = int(random.integers(1, 8))
        for bench in (warm, cold):
            bench.add(job(f"j{step}", count, cpu=1_000, seconds=40, precedence=step % 3))
        assert warm.round() == cold.solve()
        # The one that starts from scratch follows the other's placements, so that both see the same
        # cluster.
        rows = np.flatnonzero(warm.graph.tasks["state"] == RUNNING)
        _follow(cold, warm, rows)
        for bench in (warm, cold):
            bench.now += SECOND
        ended = [task for task in warm.running() if random.uniform() < 0.2]
        for bench in (warm, cold):
            bench.finish(ended)


def _follow(cold: Bench, warm: Bench, rows: Any) -> None:
    """Puts tasks of one bench where they are in the other, at the same prices."""
    graph, other = cold.graph, warm.graph
    now_at = dict(
        zip(
            other.tasks["number"][rows].tolist(), other.tasks["machine"][rows].tolist(), strict=True
        )
    )
    mine = np.flatnonzero(graph.tasks["state"] == RUNNING)
    gone = [
        row
        for row in mine.tolist()
        if now_at.get(int(graph.tasks["number"][row])) != int(graph.tasks["machine"][row])
    ]
    if gone:
        cold.cell.commit(Transaction("s", releases=graph.tasks["number"][gone]))
        graph.stop(np.array(gone), cold.now)
    new = np.array(
        [
            row
            for row in np.flatnonzero(graph.tasks["state"] == PENDING).tolist()
            if int(graph.tasks["number"][row]) in now_at
        ],
        np.int64,
    )
    if not len(new):
        return
    numbers = graph.tasks["number"][new]
    where = np.array([now_at[task] for task in numbers.tolist()], np.int64)
    costs = []
    for task, machine in zip(numbers.tolist(), where.tolist(), strict=True):
        row = int(other.roster.rows(np.array([task]))[0])
        run = other.roster.run_of(int(other.tasks["task_class"][row]), machine)
        costs.append(int(other.runs["cost"][run]) + warm.settings.migration)
    shapes = graph.tasks["shape"][new].astype(np.int32)
    machines = where.astype(np.int32)
    claims = Claims(numbers, machines, shapes, cold.view.versions(machines))
    assert cold.cell.commit(Transaction("s", claims)).all_accepted
    graph.start(new, where, np.array(costs, np.int64), cold.now)


def linked(used: tuple[int, ...]) -> Bench:
    """Machines with links of 1,000, some of it in use by tasks of another scheduler."""
    spec = tuple(
        Machine(f"m{i}", Resources(16_000, 64 * GIB, {"bandwidth": 1_000}))
        for i in range(len(used))
    )
    bench = Bench(CellSpec(machines=spec), policy="network-aware")
    for machine, amount in enumerate(used):
        if amount:
            shape = bench.view.shape(Resources(0, 0, {"bandwidth": amount}))
            there = np.array([machine], np.int32)
            claims = Claims(
                np.array([task_number(99, machine)]),
                there,
                np.array([shape], np.int32),
                bench.view.versions(there),
            )
            assert bench.cell.commit(Transaction("other", claims)).all_accepted
    return bench


def asking(name: str, count: int, bandwidth: int) -> SimulatedJob:
    return job(name, count, request=Resources(100, GIB, {"bandwidth": bandwidth}))


def test_links_fill_evenly_and_never_beyond_what_they_have() -> None:
    bench = linked((900, 600, 0, 0))
    bench.add(asking("a", 6, 250))
    bench.round()
    # A task costs its request and what is in use: 250, 250, 500, 500, 750 and 750 on the idle two.
    assert sorted(bench.where(0)) == [2, 2, 2, 3, 3, 3]
    bench.add(asking("b", 4, 250))
    bench.round()
    bench.solve()
    assert sorted(bench.where(1)) == [-1, 1, 2, 3]
    assert (bench.view.free() >= 0).all()


def test_requests_of_different_bandwidth_do_not_overcommit_a_link_together() -> None:
    bench = linked((0, 0))
    for number, bandwidth in enumerate((700, 600, 500, 400, 300)):
        bench.add(asking(f"j{number}", 1, bandwidth))
    for _ in range(4):
        bench.round()
    placed = [bench.where(number)[0] for number in range(5)]
    assert sum(machine >= 0 for machine in placed) >= 3
    assert (bench.view.free() >= 0).all()


def test_a_link_that_is_used_less_than_reserved_stays_reserved_where_another_is_overused() -> None:
    bench = linked((0, 800))
    bench.graph.observe(bench.view, {0: 700, 1: 200})
    bench.graph.refresh(0)
    statistics = bench.graph.statistics
    assert statistics is not None
    links = statistics.free[:, bench.view.dimensions.index("bandwidth")]
    assert links.tolist() == [300, 200]


def on_links(faults: list[MachineUse], use: str = "observed", **settings: Any) -> ConformanceRun:
    """A task on each of two links of 1,000, one after the other, and a third at 10 s."""
    spec = CellSpec(
        machines=tuple(
            Machine(f"m{i}", Resources(16_000, 64 * GIB, {"bandwidth": 1_000})) for i in range(2)
        )
    )
    jobs = [
        job(f"j{at}", 1, request=Resources(100, GIB, {"bandwidth": 400}), submit=at, seconds=60)
        for at in (5, 6, 10)
    ]
    options = {"policy": "network-aware", "bandwidth_use": use, **settings}
    built = scenario("firmament", jobs, cell=spec, faults=faults, replicas=1, settings=options)
    return ConformanceRun(Firmament, built)


def used(at: int, *amounts: int) -> list[MachineUse]:
    return [
        MachineUse(at=at * SECOND, machine=f"m{number}", used={"bandwidth": amount})
        for number, amount in enumerate(amounts)
    ]


def places(trial: ConformanceRun, name: str) -> list[int]:
    return [machine for line in trial.of(PlacedRecord, name) for machine in line.machines]


def test_a_link_that_is_observed_to_be_busy_is_avoided() -> None:
    busy = used(1, 700, 0)
    trial = on_links(busy, reschedule=False)
    trial.require_all_finished()
    assert [places(trial, name) for name in ("j5", "j6")] == [[1], [1]]
    by_reservations = on_links(busy, "reserved", reschedule=False)
    by_reservations.require_all_finished()
    assert sorted(places(by_reservations, "j5") + places(by_reservations, "j6")) == [0, 1]


def test_a_task_waits_until_a_link_is_observed_to_be_idle_again_and_says_so() -> None:
    trial = on_links([*used(1, 1_000, 1_000), *used(20, 0, 1_000)], retry=1_000 * SECOND)
    trial.require_all_finished()
    for name in ("j5", "j6"):
        (line,) = trial.of(PlacedRecord, name)
        assert (line.machines, line.at // SECOND) == ([0], 20)
    why = trial.of(ExplainedRecord, "j5")[0].explanation
    assert why.remedy == "less bandwidth in use: on 2 machines it is more than is reserved"


def test_what_is_observed_counts_only_beyond_what_is_reserved() -> None:
    """A task uses what it reserved, which is not counted twice."""
    trial = on_links([*used(1, 0, 1_000), *used(8, 400, 1_000)])
    trial.require_all_finished()
    assert places(trial, "j6") == [0]


def test_a_running_task_moves_off_a_link_that_turns_out_to_be_busy() -> None:
    trial = on_links([*used(8, 1_000, 0)], migration=50)
    trial.require_all_finished()
    moved = [name for name in ("j5", "j6") if len(places(trial, name)) > 1]
    assert len(moved) == 1
    assert places(trial, moved[0]) == [0, 1]


def test_network_awareness_needs_links() -> None:
    with pytest.raises(ModelError, match="bandwidth"):
        Bench(cell(2), policy="network-aware")


def test_a_task_goes_where_all_of_its_resources_are() -> None:
    spec = tuple(
        Machine(f"m{i}", Resources(4_000, 16 * GIB, {"gpu": 2 if i == 3 else 0})) for i in range(5)
    )
    bench = Bench(CellSpec(machines=spec), policy="multi-dimensional")
    bench.add(job("a", 3, request=Resources(500, GIB, {"gpu": 1})))
    bench.round()
    assert sorted(bench.where(0)) == [-1, 3, 3]


@pytest.mark.parametrize(("prefer", "used"), [("spread", 4), ("pack", 1)])
def test_tasks_are_spread_or_packed(prefer: str, used: int) -> None:
    bench = Bench(cell(4), policy="multi-dimensional", prefer=prefer)
    for number in range(4):
        bench.add(job(f"j{number}", 1, cpu=1_000, memory=4 * GIB))
        bench.round()
    assert len({bench.where(number)[0] for number in range(4)}) == used


def test_who_has_less_than_a_fair_share_comes_first() -> None:
    bench = Bench(cell(2), policy="multi-dimensional", per_second=0)
    bench.add(job("mine", 8, cpu=1_000, owner="rich"))
    bench.round()
    late = bench.add(job("more", 1, cpu=1_000, owner="rich"))
    later = bench.add(job("first", 1, cpu=1_000, owner="poor"))
    bench.round()
    bench.finish([0])
    bench.round()
    assert bench.where(late) == [-1]
    assert bench.where(later) != [-1]


def test_a_fair_share_that_is_worth_more_than_preemption_is_enforced() -> None:
    bench = Bench(cell(2), policy="multi-dimensional", fairness=3_000, per_second=0)
    bench.add(job("mine", 8, cpu=1_000, owner="rich"))
    bench.round()
    other = bench.add(job("other", 8, cpu=1_000, owner="poor"))
    for _ in range(6):
        bench.round()
    placed = sum(machine >= 0 for machine in bench.where(other))
    assert placed == 4


def test_a_task_of_higher_precedence_preempts_one_of_lower() -> None:
    jobs = [
        job("low", 8, cpu=4_000, seconds=30),
        job("high", 1, cpu=4_000, seconds=5, submit=1, precedence=3),
    ]
    trial = ConformanceRun(Firmament, scenario("firmament", jobs, replicas=1))
    trial.require_all_finished()
    lost = trial.of(ReleasedRecord)
    assert [line.job for line in lost] == ["low"]
    placed = trial.of(PlacedRecord, "high")[0]
    assert placed.at < 2 * SECOND


@pytest.mark.parametrize("policy", ["load-spreading", "quincy", "multi-dimensional"])
@pytest.mark.parametrize("cpu", [2_000, 4_000])
def test_a_service_preempts_batch_jobs_if_services_go_first(policy: str, cpu: int) -> None:
    """Also if it is smaller than what runs."""
    jobs = [
        job("batch", 8, cpu=4_000, seconds=30),
        job("service", 1, cpu=cpu, seconds=5, submit=1, kind="service"),
        job("later", 1, cpu=cpu, seconds=5, submit=2),
    ]

    def trial(services: int) -> ConformanceRun:
        settings = {"policy": policy, "services": services}
        return ConformanceRun(Firmament, scenario("firmament", jobs, replicas=1, settings=settings))

    first, alike = trial(20_000), trial(0)
    first.require_all_finished()
    assert [line.job for line in first.of(ReleasedRecord)] == ["batch"]
    assert first.of(PlacedRecord, "service")[0].at < 2 * SECOND
    assert not alike.of(ReleasedRecord)
    assert alike.of(PlacedRecord, "service")[0].at >= 30 * SECOND


def test_running_tasks_stay_where_they_are_without_rescheduling() -> None:
    jobs = [
        job("low", 8, cpu=4_000, seconds=3),
        job("high", 1, cpu=4_000, seconds=5, submit=1, precedence=3),
    ]
    options = {"reschedule": False}
    trial = ConformanceRun(Firmament, scenario("firmament", jobs, replicas=1, settings=options))
    trial.require_all_finished()
    assert not trial.of(ReleasedRecord)


def _unbalanced() -> Scenario:
    """A machine comes back empty beside one that is full: moving half of its tasks would pay."""
    jobs = [job("a", 16, cpu=250, memory=GIB // 8, seconds=100), job("b", 1, cpu=250, submit=20)]
    back = MachineCrash(at=0, machine="m1", down=10 * SECOND)
    return scenario(
        "firmament",
        jobs,
        replicas=1,
        cell=cell(2),
        faults=(back,),
        settings={"policy": "load-spreading", "migration": 20},
    )


def test_tasks_migrate_when_that_pays_and_no_more_than_the_budget_in_a_round() -> None:
    spec = _unbalanced()
    trial = ConformanceRun(Firmament, spec)
    trial.require_all_finished()
    # A task moves from n tasks to m as long as 10 (n - 1 - m) is above its cost of 20: until 9 and 7.
    assert sum(_moves(trial)) == 7
    entry = msgspec.structs.replace(spec.fleet[0], settings={**spec.fleet[0].settings, "moves": 2})
    trial = ConformanceRun(Firmament, msgspec.structs.replace(spec, fleet=(entry,)))
    assert _moves(trial) == [2, 2, 2, 1]


def test_no_more_tasks_migrate_in_a_minute_than_the_budget_allows() -> None:
    spec = _unbalanced()
    entry = msgspec.structs.replace(
        spec.fleet[0], settings={**spec.fleet[0].settings, "moves_per_minute": 3}
    )
    trial = ConformanceRun(Firmament, msgspec.structs.replace(spec, fleet=(entry,)))
    trial.require_all_finished()
    moves = [
        (line.at // SECOND, len(line.indices))
        for line in trial.of(PlacedRecord, "a")
        if line.at > 5 * SECOND
    ]
    # The machine is back after 10 s. The others follow when a minute is over, without anything else.
    assert moves == [(10, 3), (70, 3), (130, 1)]


def test_a_round_whose_moves_are_all_forbidden_is_not_repeated_until_something_happens() -> None:
    spec = _unbalanced()
    entry = msgspec.structs.replace(spec.fleet[0], settings={**spec.fleet[0].settings, "moves": 0})
    spec = msgspec.structs.replace(spec, fleet=(entry,), horizon=30 * SECOND)
    trial = ConformanceRun(Firmament, spec)
    assert not _moves(trial)
    assert trial.log.count(b'"what":"due"') < 30


def test_running_tasks_stay_where_another_machine_is_as_good() -> None:
    late = [job(f"b{n}", 3, submit=5 + 2 * n, precedence=n % 3) for n in range(9)]
    jobs = [job("a", 8, cpu=250, seconds=100), *late]
    options = {"policy": "quincy", "migration": 0, "preemption": 0}
    trial = ConformanceRun(Firmament, scenario("firmament", jobs, replicas=1, settings=options))
    trial.require_all_finished()
    assert not _moves(trial)


def _moves(trial: ConformanceRun) -> list[int]:
    """How many tasks of the first job were placed again in each round, while all of them ran."""
    return [len(line.indices) for line in trial.of(PlacedRecord, "a") if 5 < line.at / SECOND < 50]


def test_quincy_decides_as_firmament_does_but_from_scratch() -> None:
    jobs = [job(f"j{i}", 4, cpu=1_000, submit=i) for i in range(6)]
    runs = [
        ConformanceRun(
            engine, scenario(engine.name, jobs, replicas=1, settings={"policy": "quincy"})
        )
        for engine in (Firmament, Quincy)
    ]
    placed = [[x.at // SECOND for x in run.of(PlacedRecord)] for run in runs]
    assert placed[0] == placed[1]


def test_flows_that_do_not_start_from_scratch_take_as_long_as_the_last_that_did() -> None:
    def flows(scratch_every: int) -> list[FlowSolution]:
        bench = Bench(cell(8), algorithm="cost-scaling", warm=False, scratch_every=scratch_every)
        solved = []
        for number in range(6):
            bench.add(job(f"j{number}", 4, cpu=1_000, seconds=60))
            bench.graph.observe(bench.view)
            bench.graph.refresh(bench.now)
            solved.append(bench.graph.solve())
        return solved

    often, rarely = flows(1), flows(3)
    assert [flow.cost for flow in often] == [flow.cost for flow in rarely]
    scans = [flow.scans for flow in rarely]
    assert scans[0] == scans[1] == scans[2] == often[0].scans
    assert scans[3] == scans[4] == scans[5] > scans[2]


@pytest.mark.parametrize(("measured", "flows"), [(False, [False, True, True]), (True, [False] * 3)])
def test_quincy_solves_every_flow_from_scratch_if_that_is_measured(
    measured: bool, flows: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    warm: list[bool] = []
    solve = FlowNetwork.solve

    def noted(self: FlowNetwork, *args: Any, **options: Any) -> FlowSolution:
        warm.append(options.get("warm", True))
        return solve(self, *args, **options)

    monkeypatch.setattr(FlowNetwork, "solve", noted)
    jobs = [job(f"j{i}", 1, seconds=60, submit=i) for i in range(3)]
    spec = scenario("quincy", jobs, replicas=1, horizon=3 * SECOND)
    if measured:
        entry = msgspec.structs.replace(spec.fleet[0], decision_time=Measured())
        spec = msgspec.structs.replace(spec, fleet=(entry,))
    ConformanceRun(Quincy, spec)
    assert warm[:3] == flows


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_any_course_of_events_keeps_the_network_in_step(data: st.DataObject) -> None:
    policy = data.draw(st.sampled_from(["load-spreading", "quincy", "multi-dimensional"]))
    bench = Bench(cell(5), policy=policy, data=DATA, reschedule=data.draw(st.booleans()))
    cpus = data.draw(st.sampled_from([[1_000], [500, 1_000, 2_000]]))
    for step in range(12):
        if data.draw(st.booleans()):
            count, cpu = data.draw(st.integers(1, 6)), data.draw(st.sampled_from(cpus))
            precedence = data.draw(st.integers(0, 2))
            bench.add(job(f"j{step}", count, cpu=cpu, seconds=20, precedence=precedence))
        running = bench.running()
        ended = data.draw(st.lists(st.sampled_from(running), unique=True)) if running else []
        bench.finish(ended)
        bench.round()
        bench.now += SECOND
        graph = bench.graph
        own = np.zeros_like(graph.own_tasks)
        rows = np.flatnonzero(graph.tasks["state"] == RUNNING)
        np.add.at(own, graph.tasks["machine"][rows], 1)
        assert own.tolist() == graph.own_tasks.tolist()
        assert graph.classes["running"].sum() == len(rows)
        held = bench.view.capacity() - bench.view.free()
        assert held.tolist() == graph.own.tolist()


def test_machines_in_no_rack_stand_alone() -> None:
    bare = tuple(msgspec.structs.replace(machine, joins={}) for machine in machines(3))
    bench = Bench(CellSpec(machines=bare), policy="quincy", data=DATA)
    bench.add(job("a", 3, seconds=30))
    bench.round()
    assert len(bench.graph.cluster.rack_names) == 3
