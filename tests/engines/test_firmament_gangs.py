"""Gangs under the flow engines, and machines that join later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flow_bench import DATA, Bench
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.engines.api import Context
from argosy.engines.families.flow.tasks import PENDING
from argosy.engines.firmament import Firmament, FirmamentSettings
from argosy.host.records import ExplainedRecord
from argosy.model.effects import Commit, Deliberate
from argosy.model.events import Committed, Deliberated, JobSubmitted, MachineJoined
from argosy.model.jobs import job_of
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.model.tasks import first_tasks
from argosy.model.transactions import OPERATOR, AddMachine, Transaction
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun


def test_a_gang_that_does_not_fit_leaves_its_places_to_others() -> None:
    bench = Bench(cell(2), policy="load-spreading")
    bench.add(job("old", 4))
    bench.round()
    gang = bench.add(job("gang", 6, gang=True))
    other = bench.add(job("other", 3))
    bench.round()
    assert bench.where(gang) == [-1] * 6
    assert -1 not in bench.where(other)
    assert [*bench.graph.parked] == [gang]


def test_a_gang_is_placed_in_the_round_in_which_it_fits() -> None:
    bench = Bench(cell(2), policy="load-spreading")
    old = bench.add(job("old", 4))
    bench.round()
    gang = bench.add(job("gang", 6, gang=True))
    bench.round()
    bench.finish(first_tasks(old, 2).tolist())
    bench.round()
    assert -1 not in bench.where(gang)
    assert bench.graph.parked == {}


def test_two_gangs_that_share_what_fits_one_do_not_block_each_other() -> None:
    bench = Bench(cell(2), policy="load-spreading")
    gangs = [bench.add(job(name, 6, gang=True)) for name in ("a", "b")]
    bench.round()
    assert sorted(-1 in bench.where(gang) for gang in gangs) == [False, True]


def test_a_small_gang_goes_where_a_large_one_does_not_fit() -> None:
    bench = Bench(cell(2), policy="load-spreading")
    large, small = (bench.add(job(f"g{n}", n, gang=True)) for n in (20, 4))
    bench.round()
    assert bench.where(large) == [-1] * 20
    assert -1 not in bench.where(small)


def test_of_two_gangs_whose_waiting_costs_the_same_the_one_of_higher_precedence_is_placed() -> None:
    bench = Bench(cell(2), policy="load-spreading", per_precedence=0)
    older = bench.add(job("older", 3, cpu=2_000, gang=True))
    higher = bench.add(job("higher", 6, precedence=5, gang=True))
    bench.round()
    assert bench.where(older) == [-1] * 3
    assert -1 not in bench.where(higher)


def test_running_tasks_of_a_gang_that_move_do_not_count_as_waiting_ones_that_are_placed() -> None:
    machines = (
        Machine("m0", Resources(2_000, 16 * GIB), attributes={"disk": "ssd"}),
        Machine("m1", Resources(3_000, 16 * GIB)),
    )
    bench = Bench(CellSpec(machines=machines), policy="load-spreading", reschedule=True)
    large = bench.add(job("large", 1, cpu=3_000))
    bench.round()
    gang = bench.add(job("gang", 2, gang=True))
    bench.round()
    assert bench.where(gang) == [0, 0]
    bench.finish(first_tasks(large, 1).tolist())
    # Two move to make room for others; beside them is room for one of the three that come.
    bench.grow(job("gang", 5, gang=True).job, gang, 3)
    other = bench.add(job("other", 2, requires={"disk": "ssd"}, precedence=5))
    bench.round()
    assert bench.where(other) == [0, 0]
    assert bench.where(gang) == [1, 1, -1, -1, -1]


def test_a_gang_of_which_a_group_has_ended_holds_up_nobody_else() -> None:
    bench = Bench(cell(2), policy="load-spreading")

    def gang_of(*counts: int) -> SimulatedJob:
        groups = [
            group_with_truth(count, Resources(cpu, GIB), (SECOND,) * count)
            for count, cpu in zip(counts, (500, 1_000), strict=True)
        ]
        return simulated_job("gang", *groups, gang=True)

    gang = bench.add(gang_of(1, 2))
    bench.round()
    bench.finish(first_tasks(gang, 1).tolist())
    bench.round()
    # What was kept about the first group may now be kept about this job.
    other = bench.add(job("other", 2, cpu=250))
    bench.grow(gang_of(1, 20).job, gang, 18)
    bench.round()
    assert -1 not in bench.where(other)
    assert [*bench.graph.parked] == [gang]


@pytest.mark.parametrize("policy", ["load-spreading", "quincy", "multi-dimensional"])
@settings(max_examples=25)
@given(data=st.data())
def test_no_gang_is_ever_placed_in_part(policy: str, data: st.DataObject) -> None:
    bench = Bench(cell(3), policy=policy, data=DATA, reschedule=data.draw(st.booleans()))
    cpus = data.draw(st.sampled_from([[1_000], [500, 1_000, 2_000]]))
    gangs: set[int] = set()
    for step in range(8):
        for _ in range(data.draw(st.integers(0, 3))):
            count, cpu = data.draw(st.integers(1, 9)), data.draw(st.sampled_from(cpus))
            gang, precedence = data.draw(st.booleans()), data.draw(st.integers(0, 2))
            number = bench.add(
                job(f"j{bench.jobs}", count, cpu=cpu, seconds=20, precedence=precedence, gang=gang)
            )
            if gang:
                gangs.add(number)
        waiting = {number: bench.waiting(number) for number in gangs}
        bench.round()
        bench.now += SECOND
        for number, before in waiting.items():
            # All that waited, or none; others of it may have been preempted.
            assert len(before & bench.waiting(number)) in (0, len(before))
        running = bench.running()
        ended = data.draw(st.lists(st.sampled_from(running), unique=True)) if running else []
        bench.finish([task for task in ended if job_of(task) not in gangs])
        if step % 3 == 2:
            bench.finish([task for task in bench.running() if job_of(task) in gangs])


def test_a_gang_that_waits_says_for_how_many_there_is_room() -> None:
    jobs = [
        job("old", 6, cpu=4_000, seconds=20),
        job("gang", 4, cpu=4_000, seconds=5, submit=1, gang=True),
    ]
    trial = ConformanceRun(Firmament, scenario("firmament", jobs, replicas=1))
    trial.require_all_finished()
    line = trial.of(ExplainedRecord, "gang")[0]
    wanted = "room for all 4 tasks at once; 2 had room"
    assert line.explanation.remedy == wanted
    assert line.explanation.gang_room == 2


def add_machine(bench: Bench, name: str, rack: str, **attributes: str) -> None:
    machine = Machine(
        name, Resources(4_000, 16 * GIB), attributes=attributes, joins={"rack": (rack,)}
    )
    assert bench.cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),))) is not None
    bench.graph.grow(bench.view)


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "load-spreading"},
        {"policy": "quincy", "data": DATA},
        {"policy": "multi-dimensional", "prefer": "pack"},
    ],
)
def test_machines_that_join_later_take_tasks(options: dict[str, Any]) -> None:
    bench = Bench(cell(2), **options)
    first = bench.add(job("a", 12, seconds=30))
    bench.round()
    assert bench.where(first).count(-1) == 4
    # One in a rack that is there, one in a rack that is new.
    add_machine(bench, "m2", "r0")
    bench.round()
    assert bench.where(first).count(-1) == 0
    assert 2 in bench.where(first)
    add_machine(bench, "m3", "r0")
    add_machine(bench, "m4", "r0")
    more = bench.add(job("b", 8, seconds=30))
    bench.round()
    assert -1 not in bench.where(more)
    assert not (bench.graph.tasks["state"] == PENDING).any()
    held = bench.view.capacity() - bench.view.free()
    assert held.tolist() == bench.graph.own.tolist()


def test_a_machine_that_joins_later_has_arcs_only_from_those_whose_attributes_it_has() -> None:
    bench = Bench(cell(2), policy="load-spreading")
    picky = bench.add(job("picky", 2, requires={"gpu": "yes"}))
    bench.round()
    add_machine(bench, "m2", "r0")
    bench.round()
    assert bench.where(picky) == [-1, -1]
    add_machine(bench, "m3", "r0", gpu="yes")
    bench.round()
    assert bench.where(picky) == [3, 3]


def test_the_scheduler_uses_a_machine_that_joins() -> None:
    bench = Bench(cell(1))
    engine = Firmament(FirmamentSettings(), Context("s", (), Random(1)))
    submitted = job("a", 6, cpu=1_000)
    tasks = np.arange(6, dtype=np.int64)
    placed: dict[int, int] = {}

    def tell(event: Any) -> None:
        for effect in engine.handle(event, bench.view, 0):
            match effect:
                case Deliberate(token, question):
                    tell(Deliberated(token, engine.deliberate_in_place(question)))
                case Commit(token, transaction):
                    outcome = bench.cell.commit(transaction)
                    claims = transaction.claims
                    assert claims is not None
                    placed.update(zip(claims.tasks.tolist(), claims.machines.tolist(), strict=True))
                    tell(Committed(token, outcome))

    tell(JobSubmitted(submitted.job, 0, tasks))
    assert len(placed) == 4
    machine = Machine("new", Resources(4_000, 16 * GIB), joins={"rack": ("r0",)})
    bench.cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    tell(MachineJoined(1))
    assert len(placed) == 6
    assert [placed[task] for task in range(6)].count(1) >= 2
