"""Costs stay in range, whatever machines have and tasks ask for."""

from __future__ import annotations

from typing import Any

import pytest
from flow_bench import Bench

from argosy.engines.firmament import Firmament
from argosy.engines.registry import ENGINES
from argosy.host.records import PlacedRecord
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec, MachineCrash, MachineResize
from argosy.testing.builders import GIB, SECOND, job, scenario
from argosy.testing.conformance import RUNNING, ConformanceRun

POLICIES = ["load-spreading", "quincy", "network-aware", "multi-dimensional"]
LARGE: dict[str, Any] = dict.fromkeys(
    (
        "per_task",
        "waiting",
        "per_second",
        "per_precedence",
        "preemption",
        "migration",
        "fairness",
        "services",
    ),
    1000000,
)


def linked_machines(count: int) -> CellSpec:
    capacity = Resources(4_000, 8 * GIB, {"bandwidth": 1_000})
    return CellSpec(machines=tuple(Machine(f"m{i}", capacity) for i in range(count)))


def run(engine: str, policy: str, request: Resources, **fields: Any) -> ConformanceRun:
    ordinary = Resources(250, 4 * GIB, {"bandwidth": 10})
    jobs = [
        job("first", 2, request=ordinary, seconds=None),
        job("second", 2, request=request, seconds=None, submit=2),
    ]
    settings = {"policy": policy, **fields.pop("settings", {})}
    spec = scenario(
        engine,
        jobs,
        replicas=1,
        settings=settings,
        cell=linked_machines(3),
        horizon=10 * SECOND,
        **fields,
    )
    return ConformanceRun(ENGINES[engine], spec)


@pytest.mark.parametrize("engine", ["firmament", "quincy"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_machine_may_lose_all_it_has_of_a_resource(engine: str, policy: str) -> None:
    resize = MachineResize(machine="m1", at=SECOND, capacity=Resources(4_000))
    trial = run(engine, policy, Resources(250, 2 * GIB, {"bandwidth": 5}), faults=(resize,))
    assert trial.counts[RUNNING] == 4
    (line,) = trial.of(PlacedRecord, "second")
    assert 1 not in line.machines


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "request_",
    [Resources(2**53), Resources(1, 2**53), Resources(1, 1, {"bandwidth": 2**53})],
    ids=["cpu", "memory", "bandwidth"],
)
def test_a_task_larger_than_any_machine_waits(policy: str, request_: Resources) -> None:
    trial = run("firmament", policy, request_)
    assert trial.counts[RUNNING] == 2
    trial.require_accounted_for()


@pytest.mark.parametrize("policy", POLICIES)
def test_tasks_that_ask_for_nothing_fit_at_the_largest_costs(policy: str) -> None:
    trial = run("firmament", policy, Resources(), settings=LARGE)
    assert trial.counts[RUNNING] == 4


def test_the_cost_of_waiting_stops_growing_before_it_is_out_of_range() -> None:
    bench = Bench(linked_machines(1), **LARGE)
    bench.add(job("large", 1, cpu=5_000))
    bench.solve()
    bench.now = 10 * 365 * 86_400 * SECOND
    assert bench.solve() <= 2**40 + 2_000_000


@pytest.mark.parametrize("jobs", [1, 8])
@pytest.mark.parametrize("policy", ["network-aware", "multi-dimensional"])
def test_tasks_leave_a_full_machine_for_an_idle_one_until_both_are_as_busy(
    policy: str, jobs: int
) -> None:
    """The tasks are one job's, which is one vertex, or each its own job's."""
    link = Resources(8_000, 8 * GIB, {"bandwidth": 800})
    share = Resources(1_000, GIB, {"bandwidth": 100})
    spec = CellSpec(machines=(Machine("m0", link), Machine("m1", link)))
    back = MachineCrash(at=0, machine="m1", down=10 * SECOND)
    submitted = [
        *(job(f"a{n}", 8 // jobs, request=share, seconds=100) for n in range(jobs)),
        job("late", 1, cpu=0, memory=0, submit=20),
    ]
    trial = ConformanceRun(
        Firmament,
        scenario(
            "firmament",
            submitted,
            replicas=1,
            cell=spec,
            faults=(back,),
            settings={"policy": policy, "migration": 50},
        ),
    )
    trial.require_all_finished()
    moved = [
        machine
        for line in trial.of(PlacedRecord)
        if line.job.startswith("a") and 5 < line.at / SECOND < 50
        for machine in line.machines
    ]
    # In thousandths, the last of n tasks costs 125 n where it is, less 50 for moving, and 125 (m + 1) as
    # the next beside m others: four of the eight gain from moving.
    assert moved == [1] * 4


@pytest.mark.parametrize("algorithm", ["cost-scaling", "local"])
def test_removing_the_flow_of_ended_tasks_changes_no_cost(algorithm: str) -> None:
    benches = [
        Bench(linked_machines(4), policy="quincy", algorithm=algorithm, task_removal=removes)
        for removes in (False, True)
    ]
    costs = []
    for bench in benches:
        for number in range(6):
            bench.add(job(f"j{number}", 3, cpu=1_000))
        costs.append([bench.round()])
        bench.finish(bench.running()[:4])
        costs[-1].append(bench.solve())
        assert len(bench.running()) == 12
    assert costs[0] == costs[1]


def test_heuristics_of_the_solver_are_settings() -> None:
    def scans(**heuristics: Any) -> int:
        bench = Bench(
            linked_machines(4),
            policy="quincy",
            algorithm="cost-scaling",
            warm=False,
            heuristics=heuristics,
        )
        for number in range(9):
            bench.add(job(f"j{number}", 3, cpu=1_000))
        bench.graph.observe(bench.view)
        bench.graph.refresh(0)
        return bench.graph.solve().scans

    assert scans(alpha=2) != scans(alpha=9)
