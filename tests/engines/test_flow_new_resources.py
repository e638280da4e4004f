"""Flow schedulers go on when a machine joins with a resource that none had before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from flow_bench import Bench

from argosy.engines.api import Context
from argosy.engines.families.flow.tasks import RUNNING
from argosy.engines.firmament import Firmament, FirmamentSettings
from argosy.host.runtime import build_cell
from argosy.host.setup import HostSetup
from argosy.model.effects import Commit, Deliberate, Effect
from argosy.model.events import Committed, Deliberated, Event, JobSubmitted, MachineJoined
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import first_tasks, jobs_of
from argosy.model.transactions import OPERATOR, AddMachine, DrainMachine, ResizeMachine, Transaction
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, cell, job, scenario

GPUS = Resources(4_000, 16 * GIB, {"gpu": 2})
POLICIES = ("load-spreading", "quincy", "multi-dimensional", "network-aware")


def gpu_job(name: str, tasks: int, gpus: int = 1, **options: object) -> SimulatedJob:
    return job(name, tasks, request=Resources(500, GIB, {"gpu": gpus}), **options)


def join(bench: Bench, capacity: Resources = GPUS) -> None:
    name = f"late{bench.view.machines}"
    bench.cell.commit(Transaction(OPERATOR, machines=(AddMachine(Machine(name, capacity)),)))


def require_sums(bench: Bench) -> None:
    """What the roster says of requests is what the tasks add up to."""
    graph, view = bench.graph, bench.view
    tasks, classes = graph.tasks, graph.classes
    own = np.zeros_like(view.free())
    demands = np.zeros((len(graph.owners), len(view.dimensions)), np.int64)
    for row in np.flatnonzero(tasks["state"] > 0).tolist():
        task_class = int(tasks["task_class"][row])
        request = graph.pools.requests[classes["pool"][task_class]]
        demands[classes["owner"][task_class]] += request
        if tasks["state"][row] == RUNNING:
            own[tasks["machine"][row]] += request
    assert graph.own.tolist() == own.tolist()
    assert graph.roster.demands().tolist() == demands.tolist()
    assert (view.free() + own == view.capacity()).all()


@pytest.mark.parametrize("reschedule", [True, False])
@pytest.mark.parametrize("policy", POLICIES)
def test_who_waits_for_a_resource_runs_once_a_machine_joins_that_has_it(
    policy: str, reschedule: bool
) -> None:
    options = {"policy": policy, "reschedule": reschedule, "bandwidth": "cpu"}
    bench = Bench(cell(2), **options)
    plain = bench.add(job("plain", 6, cpu=1_000))
    one, two = bench.add(gpu_job("one", 1)), bench.add(gpu_job("two", 1, 2, precedence=1))
    gang = bench.add(gpu_job("gang", 3, gang=True))
    bench.round()
    before = bench.where(plain)
    assert bench.where(one) == bench.where(two) == [-1]
    join(bench)
    bench.graph.grow(bench.view)
    assert bench.where(plain) == before
    bench.now = SECOND
    bench.round()
    assert bench.where(two) == [2]
    assert bench.where(one) == [-1]
    assert -1 not in bench.where(plain)
    require_sums(bench)
    bench.finish(first_tasks(two, 1).tolist())
    join(bench)
    bench.graph.grow(bench.view)
    bench.round()
    bench.round()
    assert sorted({*bench.where(one), *bench.where(gang)}) == [2, 3]
    require_sums(bench)
    assert bench.graph.policy.dimensions == ("cpu", "memory", "gpu")


def test_jobs_of_the_same_request_share_a_pool_before_and_after_its_resource_comes() -> None:
    bench = Bench(cell(1))
    bench.add(gpu_job("early", 1))
    bench.add(job("plain", 1, request=Resources(500, GIB)))
    assert len(bench.graph.pools) == 2
    join(bench)
    late = bench.add(gpu_job("late", 1))
    bench.add(job("other", 1, request=Resources(500, GIB)))
    assert len(bench.graph.pools) == 2
    bench.graph.grow(bench.view)
    bench.round()
    assert bench.where(late) == [1]
    require_sums(bench)


def test_a_known_machine_may_bring_the_resource_and_a_second_one_may_come_later() -> None:
    bench = Bench(cell(2))
    both = bench.add(job("both", 1, request=Resources(500, GIB, {"gpu": 1, "tape": 1})))
    gpus = bench.add(gpu_job("gpus", 1))
    bench.round()
    bench.cell.commit(Transaction(OPERATOR, machines=(ResizeMachine(1, GPUS),)))
    bench.graph.look(1, bench.view)
    bench.round()
    assert (bench.where(both), bench.where(gpus)) == ([-1], [1])
    join(bench, Resources(4_000, 16 * GIB, {"tape": 1, "gpu": 1}))
    bench.graph.grow(bench.view)
    bench.round()
    assert bench.where(both) == [2]
    require_sums(bench)


def test_room_is_looked_for_before_the_news_of_a_new_resource() -> None:
    bench = Bench(cell(1))
    bench.add(gpu_job("waits", 1))
    bench.round()
    here = np.array([0], np.int32)
    assert not bench.graph.has_room(here, bench.view)
    join(bench)
    assert not bench.graph.has_room(here, bench.view)
    assert bench.graph.has_room(np.array([1], np.int32), bench.view)


class Rounds:
    """A scheduler and a cell without a world, one event at a time."""

    def __init__(self, machines: int) -> None:
        self.cell = build_cell(HostSetup.of(scenario("firmament", [], cell=cell(machines))))
        self.engine = Firmament(FirmamentSettings(), Context("s", (), Random(1)))

    def tell(self, event: Event) -> Sequence[Effect]:
        return self.engine.handle(event, self.cell, 0)

    def submit(self, number: int, made: SimulatedJob) -> Sequence[Effect]:
        return self.tell(JobSubmitted(made.job, number, first_tasks(number, made.tasks)))

    def answer(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        (asked,) = (effect for effect in effects if isinstance(effect, Deliberate))
        return self.tell(Deliberated(asked.token, self.engine.deliberate_in_place(asked.question)))

    def commit(self, effects: Sequence[Effect]) -> Sequence[Effect]:
        (effect,) = (effect for effect in effects if isinstance(effect, Commit))
        return self.tell(Committed(effect.token, self.cell.commit(effect.transaction)))

    def gpus_come(self) -> None:
        self.cell.commit(Transaction(OPERATOR, machines=(AddMachine(Machine("g", GPUS)),)))


def placed(effects: Sequence[Effect]) -> dict[int, list[int]]:
    """Machines by job."""
    (effect,) = (effect for effect in effects if isinstance(effect, Commit))
    claims = effect.transaction.claims
    assert claims is not None
    found: dict[int, list[int]] = {}
    for number, machine in zip(
        jobs_of(claims.tasks).tolist(), claims.machines.tolist(), strict=True
    ):
        found.setdefault(number, []).append(machine)
    return found


@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_round_that_is_under_way_ends_and_the_next_knows_the_resource(
    is_told_first: bool,
) -> None:
    """The job comes while the network is lent, and the machine before or after the news of it."""
    rounds = Rounds(1)
    asked = rounds.submit(0, job("a", 1))
    assert rounds.submit(1, gpu_job("b", 2)) == ()
    rounds.gpus_come()
    if is_told_first:
        assert rounds.tell(MachineJoined(1)) == ()
    decided = rounds.answer(asked)
    assert placed(decided) == {0: [0]}
    again = rounds.answer(rounds.commit(decided))
    assert placed(again) == {1: [1, 1]}


def test_a_refusal_is_heard_of_before_the_news_of_a_new_resource() -> None:
    rounds = Rounds(2)
    decided = rounds.answer(rounds.submit(0, job("a", 1)))
    [[machine]] = placed(decided).values()
    rounds.cell.commit(Transaction(OPERATOR, machines=(DrainMachine(machine),)))
    rounds.gpus_come()
    again = rounds.answer(rounds.commit(decided))
    [[other]] = placed(again).values()
    assert other != machine
