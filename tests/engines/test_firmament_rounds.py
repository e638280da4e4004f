"""The native parts of the flow engines' rounds, compared with plain recounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest
from flow_bench import DATA, Bench
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from argosy.cell import View
from argosy.engines.api import Context
from argosy.engines.families.flow.admission import admit
from argosy.engines.families.flow.extraction import Placements, extract
from argosy.engines.families.flow.pools import NO_ARC, PLENTY
from argosy.engines.families.flow.tasks import PENDING, RUNNING
from argosy.engines.firmament import Firmament, FirmamentSettings
from argosy.host.records import ExplainedRecord, PlacedRecord, ReleasedRecord
from argosy.host.runtime import build_cell
from argosy.host.setup import HostSetup
from argosy.model.effects import Commit, Deliberate, Effect, Think
from argosy.model.events import (
    Committed,
    Deliberated,
    Event,
    JobCancelled,
    JobSubmitted,
    MachineJoined,
    TasksLost,
)
from argosy.model.explanations import Why
from argosy.model.jobs import Job, index_of, job_of, task_number
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import first_tasks, jobs_of
from argosy.model.transactions import OPERATOR, AddMachine, DrainMachine, Transaction
from argosy.model.truth import SimulatedJob
from argosy.solvers.flow import FlowNetwork
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.testing.conformance import ConformanceRun

Numbers = NDArray[np.int64]


def fitting(requests: Numbers, room: Numbers) -> Numbers:
    """How many tasks of each request fit into each row of room."""
    least = np.full((len(requests), len(room)), PLENTY, np.int64)
    for dimension in range(requests.shape[1]):
        asked = requests[:, dimension]
        some = np.flatnonzero(asked)
        counts = room[None, :, dimension] // asked[some, None]
        least[some] = np.minimum(least[some], counts)
    return np.maximum(least, 0)


Seen = dict[int, set[int]]


def slow_rooms(bench: Bench, seen: Seen) -> tuple[Numbers, Numbers, Numbers]:
    """Living pools, their rooms on all machines, and what goes through machines, from nothing kept but
    the precedences of all tasks that each pool has `seen`."""
    graph, view = bench.graph, bench.view
    tasks, classes, pools = graph.tasks, graph.classes, graph.pools
    living = np.flatnonzero(tasks["state"] > 0)
    pool_of = classes["pool"][tasks["task_class"]]
    numbers = np.unique(pool_of[living])
    requests, free = pools.requests[numbers], view.free()
    own, own_tasks = np.zeros_like(free), np.zeros(len(free), np.int64)
    running = np.zeros((len(numbers), len(free)), np.int64)
    for row in np.flatnonzero(tasks["state"] == RUNNING).tolist():
        machine, at = int(tasks["machine"][row]), int(np.flatnonzero(numbers == pool_of[row])[0])
        own[machine] += requests[at]
        own_tasks[machine] += 1
        running[at, machine] += 1
    moves = bench.settings.reschedule
    is_open = pools.allowed[numbers] & graph.cluster.usable
    if (requests == requests[0]).all():
        slots = fitting(requests[:1], free + own if moves else free)[0]
        slots[~graph.cluster.usable] = 0
        rooms, through = np.where(is_open, slots, 0), slots
        return numbers, rooms, np.maximum(through, own_tasks) if moves else through
    is_pending = np.isin(numbers, pool_of[tasks["state"] == PENDING])
    fits = np.where(is_open, fitting(requests, free), 0)
    spare = np.max(fits[is_pending] if is_pending.any() else fits, axis=0)
    is_larger = (requests[None, :, :] >= requests[:, None, :]).all(axis=2)
    bottom, top = (np.array([f(seen[n]) for n in numbers.tolist()]) for f in (min, max))
    is_there = running > 0
    can_preempt = (is_larger & (bottom[None, :] < top[:, None])) @ is_there
    may_help = can_preempt | ~(~is_larger @ is_there)
    swaps = is_larger.astype(np.int64) @ running
    swaps = np.where(is_pending[:, None] & may_help, swaps, 0)
    rooms = np.where(is_open, np.where(spare > 0, fits, swaps), 0)
    return numbers, rooms, spare + own_tasks if moves else spare


def assert_rooms(bench: Bench, seen: Seen) -> None:
    """The arcs of the network have the room that a recount gives them."""
    graph = bench.graph
    if not (graph.tasks["state"] > 0).any():
        return
    numbers, rooms, through = slow_rooms(bench, seen)
    for number, row in zip(numbers.tolist(), rooms, strict=True):
        arcs = graph.pools.arcs[number]
        there = arcs != NO_ARC
        assert (row[~there] == 0).all()
        assert graph.network.capacities(arcs[there]).tolist() == row[there].tolist()
    assert graph.network.capacities(graph.sink_arcs).tolist() == through.tolist()


def assert_extracted(bench: Bench, found: Placements) -> None:
    """Who is placed, stays or leaves is what the flow of classes and machines adds up to."""
    graph, network = bench.graph, bench.graph.network
    tasks, classes = graph.tasks, graph.classes
    where = tasks["machine"].copy()
    where[found.leaving] = -1
    assert not set(found.leaving.tolist()) & set(found.rows.tolist())
    where[found.rows] = found.machines
    is_in = where >= 0 if bench.settings.reschedule else np.isin(np.arange(len(where)), found.rows)
    there = np.bincount(where[is_in], minlength=graph.cluster.machines)
    assert there.tolist() == network.flows(graph.sink_arcs).tolist()
    for task_class in np.unique(tasks["task_class"][tasks["state"] > 0]).tolist():
        mine = (tasks["task_class"] == task_class) & (tasks["state"] > 0)
        waits = mine & ~is_in & (where < 0)
        unplaced = network.flows(classes["wait_arc"][[task_class]]).tolist()
        assert unplaced == [int(waits.sum())]


def assert_admitted(bench: Bench, wanted: Placements) -> None:
    """Everything admitted fits once leaving tasks have left, and only wanted tasks are admitted."""
    graph, view = bench.graph, bench.view
    plan = admit(graph, wanted)
    tasks, free = graph.tasks, view.free().copy()
    asked = graph.pools.requests[graph.classes["pool"][tasks["task_class"]]]
    pairs = set(zip(wanted.rows.tolist(), wanted.machines.tolist(), strict=True))
    assert set(zip(plan.rows.tolist(), plan.machines.tolist(), strict=True)) <= pairs
    for row in [*plan.leaving.tolist(), *plan.early.tolist()]:
        assert tasks["state"][row] == RUNNING
        free[tasks["machine"][row]] += asked[row]
    np.subtract.at(free, plan.machines, asked[plan.rows])
    assert (free >= 0).all()
    moved = tasks["machine"][plan.rows] >= 0
    assert moved.sum() + len(plan.leaving) <= bench.settings.moves
    assert not set(plan.leaving.tolist()) & set(plan.rows.tolist())


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_rooms_placements_and_admission_are_what_recounts_say(data: st.DataObject) -> None:
    policy = data.draw(st.sampled_from(["load-spreading", "quincy", "multi-dimensional"]))
    bench = Bench(
        cell(5),
        policy=policy,
        data=DATA,
        reschedule=data.draw(st.booleans()),
        moves=data.draw(st.sampled_from([1_000, 2])),
    )
    cpus = data.draw(st.sampled_from([[1_000], [500, 1_000, 2_000]]))
    seen: Seen = {}
    for step in range(10):
        for _ in range(data.draw(st.integers(0, 2))):
            count, cpu = data.draw(st.integers(1, 8)), data.draw(st.sampled_from(cpus))
            precedence = data.draw(st.integers(0, 2))
            added = bench.add(job(f"j{step}", count, cpu=cpu, seconds=20, precedence=precedence))
            row = int(bench.graph.roster.rows(np.array([task_number(added, 0)]))[0])
            pool = int(bench.graph.classes["pool"][bench.graph.tasks["task_class"][row]])
            seen.setdefault(pool, set()).add(precedence)
        running = bench.running()
        bench.finish(data.draw(st.lists(st.sampled_from(running), unique=True)) if running else [])
        bench.graph.rooms.unbar()
        bench.solve()
        assert_rooms(bench, seen)
        wanted = extract(bench.graph)
        assert_extracted(bench, wanted)
        assert_admitted(bench, wanted)
        bench.graph.rooms.unbar()
        bench.round()
        bench.now += SECOND


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_jobs_that_grow_and_shrink_keep_all_and_only_their_tasks(
    data: st.DataObject,
) -> None:
    bench = Bench(cell(4), policy="load-spreading", reschedule=data.draw(st.booleans()))
    known: dict[int, tuple[Job, set[int]]] = {}
    for step in range(8):
        count, cpu = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([500, 2_000]))
        made = job(f"j{step}", count, cpu=cpu, seconds=20).job
        number = bench.add(job(f"j{step}", count, cpu=cpu, seconds=20))
        known[number] = (made, set(range(count)))
        for each in data.draw(st.lists(st.sampled_from(sorted(known)), max_size=2, unique=True)):
            older, indices = known[each]
            by = data.draw(st.integers(1, 4))
            group = msgspec.structs.replace(older.groups[0], count=older.tasks + by)
            larger = msgspec.structs.replace(older, groups=(group,))
            bench.grow(larger, each, by)
            known[each] = (larger, indices | set(range(older.tasks, larger.tasks)))
        waiting = sorted(task for each in known for task in bench.waiting(each))
        gone = data.draw(st.lists(st.sampled_from(waiting), max_size=4, unique=True))
        bench.graph.drop(np.array(gone, np.int64))
        running = bench.running()
        over = data.draw(st.lists(st.sampled_from(running), unique=True)) if running else []
        bench.finish(over)
        for task in (*gone, *over):
            known[job_of(task)][1].discard(index_of(task))
        bench.graph.rooms.unbar()
        bench.solve()
        assert_extracted(bench, extract(bench.graph))
        bench.round()
        there = {*bench.running(), *(task for each in known for task in bench.waiting(each))}
        assert there == {
            task_number(each, index) for each, (_, all_) in known.items() for index in all_
        }
        bench.now += SECOND


def full(**options: Any) -> Bench:
    """Two machines of four cores, each with two small tasks and one of two cores."""
    bench = Bench(cell(2), policy="multi-dimensional", **options)
    for number in range(2):
        bench.add(job(f"small-{number}", 2, cpu=1_000))
        bench.add(job(f"large-{number}", 1, cpu=2_000))
    bench.round()
    assert (bench.view.free()[:, 0] == 0).all()
    return bench


def test_no_task_moves_for_one_that_is_not_admitted() -> None:
    bench = full()
    [small] = [task for task in bench.running() if job_of(task) == 0][:1]
    bench.finish([small])
    # One core is free: a task of two would need another small one to move, and there is nowhere to.
    bench.add(job("late", 1, cpu=2_000))
    before = {number: bench.where(number) for number in range(4)}
    for _ in range(3):
        bench.round()
    assert bench.where(4) == [-1]
    after = {number: bench.where(number) for number in range(4)}
    assert {number: before[number] for number in (1, 2, 3)} == {n: after[n] for n in (1, 2, 3)}


@pytest.mark.parametrize(("precedence", "leaving"), [(0, 0), (1, 1)])
def test_only_tasks_of_lower_precedence_make_room(precedence: int, leaving: int) -> None:
    """Three cores are free beside a running task; two tasks that fit alone come together."""
    bench = Bench(cell(1), policy="multi-dimensional")
    bench.add(job("old", 1, cpu=1_000))
    bench.round()
    for cpu in (2_000, 1_500):
        bench.add(job(f"new-{cpu}", 1, cpu=cpu, precedence=precedence))
    bench.solve()
    wanted = extract(bench.graph)
    assert len(wanted.rows) == 2
    plan = admit(bench.graph, wanted)
    assert (len(plan.rows), len(plan.leaving)) == (1 + leaving, leaving)


def test_a_move_that_makes_room_for_nobody_is_not_made() -> None:
    """Of four cores one is free: even without the small task there is no room for three."""
    bench = Bench(cell(1), policy="multi-dimensional")
    small = bench.add(job("small", 1, cpu=1_000))
    bench.add(job("large", 1, cpu=2_000))
    bench.round()
    other = Machine("other", Resources(4_000, 16 * GIB), joins={"rack": ("r0",)})
    bench.cell.commit(Transaction(OPERATOR, machines=(AddMachine(other),)))
    bench.graph.grow(bench.view)
    late = bench.add(job("late", 1, cpu=3_000))
    bench.solve()
    tasks = np.array([task_number(small, 0), task_number(late, 0)], np.int64)
    rows, nobody = bench.graph.roster.rows(tasks), np.empty(0, np.int64)
    wanted = Placements(rows, np.array([1, 0], np.int64), np.zeros(2, np.int64), nobody)
    assert len(admit(bench.graph, wanted)) == 0
    # Where the move is for nobody's sake, it is made.
    alone = Placements(rows[:1], wanted.machines[:1], wanted.costs[:1], nobody)
    assert admit(bench.graph, alone).rows.tolist() == rows[:1].tolist()


def test_who_was_not_let_in_is_not_sent_there_again_until_something_changes() -> None:
    bench = full()
    graph = bench.graph
    bench.finish([task for task in bench.running() if job_of(task) == 0][:1])
    bench.add(job("late", 1, cpu=2_000))
    bench.solve()
    wanted = extract(graph)
    assert len(admit(graph, wanted)) == 0
    if len(wanted.rows):
        bench.solve()
        assert not set(extract(graph).machines.tolist()) & set(wanted.machines.tolist())
    bench.finish([task for task in bench.running() if job_of(task) == 1])
    bench.round()
    assert bench.where(4) != [-1]


def test_one_of_higher_precedence_tries_where_others_were_not_let_in() -> None:
    bench = full()
    bench.add(job("late", 2, cpu=2_000))
    bench.round()
    first = bench.add(job("first", 1, cpu=2_000, precedence=5))
    for _ in range(3):
        bench.round()
    assert bench.where(first) != [-1]


class Counting(Firmament):
    """Notes when its rounds begin."""

    begun: ClassVar[list[int]] = []

    def _begin(self, view: View, now: int) -> Sequence[Effect]:
        self.begun.append(now // SECOND)
        return super()._begin(view, now)


@pytest.mark.parametrize("reschedule", [True, False])
def test_ends_alone_begin_a_round_only_where_tasks_may_move(reschedule: bool) -> None:
    jobs = [job(f"j{i}", 2, cpu=500, seconds=5 + 5 * i) for i in range(3)]
    jobs.append(job("late", 1, cpu=500, seconds=1, submit=30))
    Counting.begun.clear()
    spec = scenario("firmament", jobs, replicas=1, settings={"reschedule": reschedule})
    ConformanceRun(Counting, spec).require_all_finished()
    # Nobody waits for the room, so moving others into it is left for a second.
    assert sorted(set(Counting.begun)) == ([0, 6, 11, 16, 30] if reschedule else [0, 30])


def test_ends_begin_a_round_at_once_if_they_make_room_for_a_waiting_task() -> None:
    """On one machine of four cores: an end after 5 s leaves two free, one after 8 s leaves three."""
    jobs = [job(f"j{i}", 1, cpu=1_000, seconds=seconds) for i, seconds in enumerate((5, 8, 90, 2))]
    jobs.append(job("small", 1, cpu=1_000, seconds=90, submit=1))
    jobs.append(job("large", 1, cpu=2_000, seconds=90, submit=3))
    settings = {"retry": 60 * SECOND}
    Counting.begun.clear()
    spec = scenario("firmament", jobs, replicas=1, cell=cell(1), settings=settings)
    [placed] = ConformanceRun(Counting, spec).of(PlacedRecord, "large")
    assert placed.at // SECOND == 8
    # The end after 5 s makes no room for the large task, and nobody else waits.
    assert 5 not in Counting.begun
    assert {0, 1, 2, 3, 8} <= {*Counting.begun}


def test_ends_during_a_round_are_looked_at_when_it_is_over() -> None:
    jobs = [
        job("first", 2, cpu=2_000, seconds=5),
        # Its round has begun when the others end.
        job("next", 2, cpu=2_000, submit=4.9995),
    ]
    settings = {"retry": 600 * SECOND, "reschedule": False}
    spec = scenario("firmament", jobs, replicas=1, cell=cell(1), settings=settings)
    [placed] = ConformanceRun(Firmament, spec).of(PlacedRecord, "next")
    assert placed.at // SECOND == 5


def test_without_rescheduling_a_waiting_task_gets_the_room_of_one_that_ends() -> None:
    jobs = [job("first", 1, cpu=4_000, seconds=5), job("next", 1, cpu=4_000, submit=1)]
    settings = {"reschedule": False, "retry": 600 * SECOND}
    spec = scenario("firmament", jobs, replicas=1, cell=cell(1), settings=settings)
    [placed] = ConformanceRun(Firmament, spec).of(PlacedRecord, "next")
    assert placed.at // SECOND == 5


def test_who_was_kept_out_by_the_budget_is_let_in_after_a_while_though_nothing_changed() -> None:
    """One preemption a round: the second place is refused, and tried again when the timer fires."""
    jobs = [
        job("tiny", 2, cpu=200, seconds=100, precedence=9),
        job("low", 2, cpu=3_800, seconds=100),
        job("high", 2, cpu=3_800, seconds=100, submit=1.5, precedence=5),
    ]
    spec = scenario("firmament", jobs, replicas=1, cell=cell(2), settings={"moves": 1})
    placed = ConformanceRun(Firmament, spec).of(PlacedRecord, "high")
    assert [(line.at // SECOND, len(line.indices)) for line in placed] == [(1, 1), (2, 1)]


class Rounds:
    """A scheduler and a cell without a world, one round at a time."""

    def __init__(self, machines: int) -> None:
        self.cell = build_cell(HostSetup.of(scenario("firmament", [], cell=cell(machines))))
        self.engine = Firmament(FirmamentSettings(), Context("s", (), Random(1)))

    def begin(self, event: Event) -> Deliberate:
        """The question of the round that the event begins."""
        (asked,) = self.engine.handle(event, self.cell, 0)
        assert isinstance(asked, Deliberate)
        return asked

    def decide(self, asked: Deliberate) -> Commit | None:
        answer = Deliberated(asked.token, self.engine.deliberate_in_place(asked.question))
        effects = self.engine.handle(answer, self.cell, 0)
        return next((effect for effect in effects if isinstance(effect, Commit)), None)

    def commit(self, effect: Commit) -> Sequence[Effect]:
        outcome = self.cell.commit(effect.transaction)
        return self.engine.handle(Committed(effect.token, outcome), self.cell, 0)

    def run(self, event: Event) -> Commit | None:
        effect = self.decide(self.begin(event))
        if effect is not None:
            self.commit(effect)
        return effect


def submitted(made: SimulatedJob, number: int) -> JobSubmitted:
    return JobSubmitted(made.job, number, first_tasks(number, made.tasks))


def test_news_of_a_loss_is_stale_once_the_task_runs_elsewhere() -> None:
    rounds, made = Rounds(2), job("a", 1)
    placed = rounds.run(submitted(made, 0))
    assert placed is not None
    claims = placed.transaction.claims
    assert claims is not None
    elsewhere = TasksLost(made.job, 0, claims.tasks, 1 - claims.machines, Why.MACHINE_GONE)
    assert rounds.run(elsewhere) is None
    here = TasksLost(made.job, 0, claims.tasks, claims.machines, Why.MACHINE_GONE)
    again = rounds.run(here)
    assert again is not None
    assert again.transaction.claims is not None
    assert again.transaction.claims.tasks.tolist() == claims.tasks.tolist()


def test_a_round_does_not_speak_of_new_jobs_that_are_gone_when_it_begins() -> None:
    rounds = Rounds(2)
    placing = rounds.decide(rounds.begin(submitted(job("runs", 1), 0)))
    assert placing is not None
    # All of this comes while the first round is under way: of four new jobs, two are cancelled,
    # among them the first, and of one a part is.
    made = {number: job(f"j{number}", 2) for number in (1, 2, 3, 4)}
    for number, each in made.items():
        assert not rounds.engine.handle(submitted(each, number), rounds.cell, 0)
    for number, count in ((1, 2), (3, 2), (4, 1)):
        gone = JobCancelled(made[number].job, number, first_tasks(number, count))
        assert not rounds.engine.handle(gone, rounds.cell, 0)
    asked, *others = rounds.commit(placing)
    assert isinstance(asked, Deliberate)
    assert asked.job == 2
    assert others == [Think(0, -1, 4)]
    placed = rounds.decide(asked)
    assert placed is not None
    assert placed.transaction.claims is not None
    assert sorted(set(jobs_of(placed.transaction.claims.tasks).tolist())) == [2, 4]


def test_a_task_whose_release_was_refused_is_not_placed_again() -> None:
    """It ended while the round that preempts it was decided on; the news is still on the way."""
    rounds = Rounds(1)
    rounds.run(submitted(job("low", 1, cpu=4_000), 0))
    preempting = rounds.decide(rounds.begin(submitted(job("high", 1, cpu=4_000, precedence=5), 1)))
    assert preempting is not None
    assert preempting.transaction.releases is not None
    assert preempting.transaction.releases.tolist() == [task_number(0, 0)]
    rounds.cell.commit(Transaction(OPERATOR, releases=first_tasks(0, 1)))
    rounds.commit(preempting)
    other = Machine("other", Resources(4_000, 16 * GIB), joins={"rack": ("r0",)})
    rounds.cell.commit(Transaction(OPERATOR, machines=(AddMachine(other),)))
    assert rounds.run(MachineJoined(1)) is None


def test_a_machine_that_refuses_is_looked_at_before_the_news_of_it_comes() -> None:
    rounds = Rounds(2)
    placing = rounds.decide(rounds.begin(submitted(job("a", 1), 0)))
    assert placing is not None
    assert placing.transaction.claims is not None
    (machine,) = placing.transaction.claims.machines.tolist()
    rounds.cell.commit(Transaction(OPERATOR, machines=(DrainMachine(machine),)))
    (asked,) = rounds.commit(placing)
    assert isinstance(asked, Deliberate)
    again = rounds.decide(asked)
    assert again is not None
    assert again.transaction.claims is not None
    assert again.transaction.claims.machines.tolist() == [1 - machine]


def test_a_roster_refuses_what_it_does_not_know() -> None:
    network = FlowNetwork()
    roster = network.roster(1, reschedules=True, migration=0)
    roster.add_machines(network.add_vertices([0, 0]))
    none, one = np.empty(0, np.int64), np.array([0], np.int64)
    with pytest.raises(ValueError, match="no such row"):
        roster.start(one, one, one, 0)
    with pytest.raises(ValueError, match="no such job"):
        roster.job(3)
    with pytest.raises(ValueError, match="no such pool"):
        roster.running(one)
    with pytest.raises(KeyError, match="colour"):
        roster.tasks("colour")
    assert roster.finish(np.array([task_number(5, 0), -1], np.int64)) == []
    assert roster.enter(np.array([task_number(5, 0)], np.int64), 0).tolist() == []
    roster.stop(none, 0)
    roster.sync()


def test_columns_that_were_read_stay_as_they_were_when_the_roster_grows() -> None:
    bench = Bench(policy="load-spreading")
    bench.add(job("a", 4))
    numbers = bench.graph.tasks["number"]
    before = numbers.tolist()
    for at in range(200):
        bench.add(job(f"b{at}", 20))
    assert numbers.tolist() == before
    with pytest.raises(ValueError, match="read-only"):
        numbers[0] = 7


def test_tasks_that_come_to_wait_later_are_told_what_the_others_were_told() -> None:
    jobs = [
        job("low", 10, cpu=2_000, seconds=None),
        job("high", 2, cpu=2_000, seconds=None, precedence=9, submit=30),
    ]
    settings = {"explain_arcs": 0, "moves": 5}
    spec = scenario(
        "firmament",
        jobs,
        replicas=1,
        settings=settings,
        cell=cell(4),
        horizon=90 * SECOND,
    )
    result = ConformanceRun(Firmament, spec)
    released = {index for line in result.of(ReleasedRecord, "low") for index in line.indices}
    assert released
    late = [line for line in result.of(ExplainedRecord, "low") if line.at >= 30 * SECOND]
    assert {index for line in late for index in line.indices} == released
    assert [line.explanation.feasible for line in late] == [0]
