"""Engines that probe, as functions from events to effects: how many machines they ask, and which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from argosy._core import NEVER
from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.eagle import Eagle
from argosy.engines.hawk import Hawk
from argosy.engines.shared.long_short import HybridScheduler
from argosy.engines.sparrow import Sparrow
from argosy.host.scheduler import make_settings
from argosy.model.effects import AskQueues, Effect, Enqueue, Explain, Probe, Think
from argosy.model.events import (
    DecisionDue,
    JobCancelled,
    JobSubmitted,
    MachineJoined,
    MachineLost,
    QueuesReported,
    TasksLost,
)
from argosy.model.explanations import Why
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.tasks import first_tasks
from argosy.model.transactions import OPERATOR, AddMachine, RemoveMachine, Transaction
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, job

Prober = type[Sparrow] | type[Hawk] | type[Eagle]
EVERY_PROBER = pytest.mark.parametrize("engine", [Sparrow, Hawk, Eagle])
CUTOFF = 60 * SECOND


def a_cell(count: int, **attributes: dict[str, str]) -> Cell:
    """Machines m0, m1 and so on; `attributes` of some by name."""
    cell = Cell(("cpu", "memory"), {})
    for at in range(count):
        name = f"m{at}"
        machine = Machine(name, Resources(4_000, 16 * GIB), attributes.get(name, {}))
        cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    return cell


def an_engine(engine: Prober, **settings: Any) -> Sparrow | HybridScheduler:
    if engine is not Sparrow:
        settings = {"cutoff": CUTOFF, **settings}
    return engine(make_settings(engine, settings), Context("s", (), Random(1)))


def placed(
    engine: Sparrow | HybridScheduler,
    cell: Cell,
    submission: SimulatedJob,
    number: int = 0,
    *,
    lengths: list[int] | None = None,
    waits: list[int] | None = None,
) -> Any:
    """The only effect that a job has, once machines have said how many long tasks they have."""
    tasks = first_tasks(number, submission.tasks)
    (effect,) = engine.handle(JobSubmitted(submission.job, number, tasks), cell, 0)
    if isinstance(effect, AskQueues):
        told = [np.array(x or [0] * cell.machines, np.int64) for x in (lengths, waits)]
        room = np.full(cell.machines, NEVER, np.int64)
        (effect,) = engine.handle(QueuesReported(effect.token, *told, room), cell, 0)
    return effect


@EVERY_PROBER
@pytest.mark.parametrize(("tasks", "probes"), [(1, 5), (2, 5), (3, 6)])
def test_a_small_job_sends_the_least_number_of_probes(
    engine: Prober, tasks: int, probes: int
) -> None:
    probe = placed(an_engine(engine, ratio=2, least=5), a_cell(8), job("a", tasks, seconds=1))
    assert isinstance(probe, Probe)
    assert len(probe.machines) == probes


@EVERY_PROBER
def test_a_probe_says_what_its_tasks_ask_for_and_how_long_they_should_take(
    engine: Prober,
) -> None:
    short = job("a", 3, cpu=700, seconds=1, estimate=2 * SECOND)
    probe = placed(an_engine(engine), a_cell(8), short, 4)
    assert isinstance(probe, Probe)
    assert (probe.job, probe.request) == (4, Resources(700, GIB))
    assert probe.estimate == 2 * SECOND
    assert probe.tasks is not None
    assert probe.tasks.tolist() == first_tasks(4, 3).tolist()
    assert (probe.sticky, probe.cancel) == (engine is Eagle, True)


@pytest.mark.parametrize("engine", [Sparrow, Hawk])
def test_when_a_machine_joins_all_groups_that_no_machine_could_take_are_tried_again(
    engine: Prober,
) -> None:
    group = group_with_truth(1, Resources(1_000, GIB), (SECOND,), requires={"disk": "ssd"})
    made, cell, both = an_engine(engine), a_cell(1), simulated_job("a", group, group).job
    stuck = made.handle(JobSubmitted(both, 0, first_tasks(0, 2)), cell, 0)
    assert [type(effect) for effect in stuck] == [Explain, Explain]
    machine = Machine("m1", Resources(4_000, 16 * GIB), {"disk": "ssd"})
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    probes: Any = made.handle(MachineJoined(1), cell, 0)
    tried = np.concatenate([probe.tasks for probe in probes])
    assert tried.tolist() == first_tasks(0, 2).tolist()


@EVERY_PROBER
def test_a_lost_machine_is_not_probed_any_more(engine: Prober) -> None:
    made, cell = an_engine(engine), a_cell(4)
    before = placed(made, cell, job("a", 4, seconds=1))
    assert set(before.machines.tolist()) == {0, 1, 2, 3}
    cell.commit(Transaction(OPERATOR, machines=(RemoveMachine(1),)))
    made.handle(MachineLost(1), cell, 0)
    after = placed(made, cell, job("b", 4, seconds=1), 1)
    assert set(after.machines.tolist()) == {0, 2, 3}


def test_eagle_sends_refused_probes_to_other_machines_without_long_tasks() -> None:
    """Ten machines, of which the first is for short jobs only and four have long tasks."""
    lengths = [0, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    eagle = an_engine(Eagle, long_share=0.9)
    probed = placed(eagle, a_cell(10), job("a", 5, seconds=1), lengths=lengths).machines
    counts = np.bincount(probed, minlength=10)
    assert counts[1:5].tolist() == [0] * 4
    assert (counts[[0, 5, 6, 7, 8, 9]] >= 1).all()
    # Four were refused; no two of them go to the same machine while there are others.
    assert counts.max() == 2


def test_the_state_that_eagle_is_told_includes_the_long_tasks_just_placed() -> None:
    eagle, cell = an_engine(Eagle, long_share=1.0, stale_state=True), a_cell(4)
    long = set(placed(eagle, cell, job("long", 2, seconds=600)).machines.tolist())
    assert len(long) == 2
    lengths = [int(machine in long) for machine in range(4)]
    for number in range(1, 11):
        short = placed(eagle, cell, job(f"s{number}", 2, seconds=1), number, lengths=lengths)
        assert long.isdisjoint(short.machines.tolist())


def test_a_machine_with_a_long_task_knows_none_that_were_placed_elsewhere_later() -> None:
    """A probe that the first long task refuses may be sent on to the machine of the second. That refuses
    it as well, and then it may go anywhere."""
    eagle, cell = an_engine(Eagle, long_share=1.0, stale_state=True, least=1), a_cell(4)
    (first,) = placed(eagle, cell, job("long", 1, seconds=600)).machines.tolist()
    lengths = [int(machine == first) for machine in range(4)]
    waits = [600 * SECOND * length for length in lengths]
    later = placed(eagle, cell, job("later", 1, seconds=600), 1, lengths=lengths, waits=waits)
    (second,) = later.machines.tolist()
    assert first != second
    lengths[second] = 1
    probed = [
        placed(eagle, cell, job(f"s{number}", 1, seconds=1), number, lengths=lengths).machines
        for number in range(2, 202)
    ]
    counts = np.bincount(np.concatenate(probed), minlength=4)
    assert 0 < counts[[first, second]].sum() < counts.sum() / 10


def test_eagle_keeps_what_it_was_told_when_a_machine_joins() -> None:
    eagle, cell = an_engine(Eagle, long_share=1.0, stale_state=True), a_cell(4)
    long = set(placed(eagle, cell, job("long", 3, seconds=600)).machines.tolist())
    machine = Machine("new", Resources(4_000, 16 * GIB))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    assert eagle.handle(MachineJoined(4), cell, 0) == []
    lengths = [int(machine in long) for machine in range(5)]
    for number in range(1, 11):
        short = placed(eagle, cell, job(f"s{number}", 2, seconds=1), number, lengths=lengths)
        assert set(short.machines.tolist()) == set(range(5)) - long


def test_where_all_machines_have_long_tasks_eagle_probes_those_for_short_jobs() -> None:
    eagle = an_engine(Eagle, long_share=0.8)
    probed = placed(eagle, a_cell(10), job("a", 5, seconds=1), lengths=[1] * 10).machines
    assert np.bincount(probed, minlength=10).tolist() == [5, 5] + [0] * 8


@pytest.mark.parametrize("engine", [Hawk, Eagle])
def test_long_tasks_go_only_to_machines_that_have_what_they_require(engine: Prober) -> None:
    cell = a_cell(5, m3={"disk": "ssd"}, m4={"disk": "ssd"})
    long = job("long", 4, seconds=100, requires={"disk": "ssd"})
    waits = [0, 0, 0, 200 * SECOND, 300 * SECOND]
    enqueued = placed(an_engine(engine, long_share=1.0), cell, long, waits=waits)
    assert isinstance(enqueued, Enqueue)
    # Waits of 200 and 300 s, then both at 300 s, and one at 400 s.
    assert sorted(enqueued.machines.tolist()) == [3, 3, 4, 4]


@pytest.mark.parametrize("engine", [Hawk, Eagle])
def test_a_job_as_long_as_the_cut_off_is_still_short(engine: Prober) -> None:
    for seconds, kind in ((60, Probe), (60.001, Enqueue)):
        effect = placed(an_engine(engine), a_cell(4), job("a", 1, seconds=seconds))
        assert isinstance(effect, kind)


def turned_away(submission: SimulatedJob, number: int) -> TasksLost:
    """All tasks of the job come back from a full queue."""
    tasks = first_tasks(number, submission.tasks)
    machines = np.full(submission.tasks, 3, np.int32)
    return TasksLost(submission.job, number, tasks, machines, Why.QUEUE_FULL)


def asks(effects: Sequence[Effect]) -> list[AskQueues]:
    return [effect for effect in effects if isinstance(effect, AskQueues)]


@pytest.mark.parametrize("engine", [Hawk, Eagle])
def test_short_tasks_from_full_queues_do_not_wait_in_line_behind_long_ones(engine: Prober) -> None:
    """Each kind asks for room where it may go: long tasks only in their partition."""
    made, cell = an_engine(engine, long_share=0.5), a_cell(4)
    asked = []
    for number, seconds in enumerate((100, 1)):
        back = turned_away(job("a", 1, seconds=seconds), number)
        asked += asks(made.handle(back, cell, 0))
    room = [None if each.until_room is None else each.until_room.tolist() for each in asked]
    assert room == [[2, 3], [0, 1, 2, 3]]


def sent_to(engine: Prober, submission: SimulatedJob, **columns: list[int]) -> list[int]:
    """Where tasks go that came back from a full queue, once machines report room."""
    made, cell = an_engine(engine, **({} if engine is Sparrow else {"long_share": 0.5})), a_cell(4)
    (asked,) = asks(made.handle(turned_away(submission, 0), cell, 0))
    report = {"lengths": [0] * 4, "waits": [0] * 4, "room": [0] * 4, **columns}
    told = (np.array(report[name], np.int64) for name in ("lengths", "waits", "room"))
    sent, *again = made.handle(QueuesReported(asked.token, *told), cell, 0)
    assert isinstance(sent, Enqueue if submission.job.groups[0].estimate > CUTOFF else Probe)
    assert sent.tasks is not None
    assert sent.tasks.tolist() == first_tasks(0, len(sent.machines)).tolist()
    # Tasks that are left ask again.
    assert len(asks(again)) == (len(sent.machines) < submission.tasks)
    machines: list[int] = sent.machines.tolist()
    return machines


@EVERY_PROBER
def test_tasks_from_full_queues_go_where_there_is_room(engine: Prober) -> None:
    assert sorted(sent_to(engine, job("a", 4, seconds=1), room=[0, 1, 0, 2])) == [1, 3, 3]


@EVERY_PROBER
def test_only_eagle_sends_short_tasks_from_full_queues_to_machines_without_long_ones(
    engine: Prober,
) -> None:
    short, lengths = job("a", 8, seconds=1), [3, 1, 0, 0]
    chosen = sent_to(engine, short, lengths=lengths, room=[2, 2, 2, 2])
    assert sorted(chosen) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert (sorted(chosen[:4]) == [2, 2, 3, 3]) == (engine is Eagle)
    # Without long tasks, the first places of all queues come before the second ones.
    chosen = sent_to(engine, short, room=[2, 2, 2, 2])
    assert sorted(chosen[:4]) == [0, 1, 2, 3]


@pytest.mark.parametrize("engine", [Hawk, Eagle])
def test_long_tasks_from_full_queues_go_to_the_least_work_of_their_partition(
    engine: Prober,
) -> None:
    waits, room = [0, 0, 50 * SECOND, 200 * SECOND], [9, 9, 9, 9]
    # The first machine for long tasks has 50 s of work, then 150 s, then 250 s.
    assert sent_to(engine, job("a", 3, seconds=100), waits=waits, room=room) == [2, 2, 3]


@pytest.mark.parametrize("engine", [Hawk, Eagle])
def test_long_tasks_that_fit_only_outside_their_partition_go_there(engine: Prober) -> None:
    cell = a_cell(4, m0={"disk": "ssd"}, m1={"disk": "ssd"})
    long = job("long", 4, seconds=100, requires={"disk": "ssd"})
    enqueued = placed(an_engine(engine, long_share=0.5), cell, long)
    assert isinstance(enqueued, Enqueue)
    assert sorted(enqueued.machines.tolist()) == [0, 0, 1, 1]


@EVERY_PROBER
def test_tasks_from_a_full_queue_whose_only_machine_has_gone_are_explained(engine: Prober) -> None:
    made, cell = an_engine(engine), a_cell(2, m1={"disk": "ssd"})
    cell.commit(Transaction(OPERATOR, machines=(RemoveMachine(1),)))
    made.handle(MachineLost(1), cell, 0)
    picky = job("a", 2, seconds=1, requires={"disk": "ssd"})
    (effect,) = made.handle(turned_away(picky, 0), cell, 0)
    if isinstance(effect, AskQueues):
        (effect,) = made.handle(QueuesReported(effect.token, *np.zeros((3, 2), np.int64)), cell, 0)
    assert isinstance(effect, Explain)
    assert effect.tasks.tolist() == first_tasks(0, 2).tolist()
    assert effect.explanation.feasible == 0


@pytest.mark.parametrize("engine", [Hawk, Eagle])
def test_a_machine_that_joined_while_a_report_was_on_its_way_counts_as_idle(
    engine: Prober,
) -> None:
    made, cell, long = an_engine(engine, long_share=1.0), a_cell(2), job("a", 2, seconds=100)
    (asked,) = made.handle(JobSubmitted(long.job, 0, first_tasks(0, 2)), cell, 0)
    assert isinstance(asked, AskQueues)
    machine = Machine("new", Resources(4_000, 16 * GIB))
    cell.commit(Transaction(OPERATOR, machines=(AddMachine(machine),)))
    made.handle(MachineJoined(2), cell, 0)
    lengths, waits, room = np.array([[1, 1], [500 * SECOND, 150 * SECOND], [9, 9]], np.int64)
    (sent,) = made.handle(QueuesReported(asked.token, lengths, waits, room), cell, 0)
    assert isinstance(sent, Enqueue)
    # Its wait is 0 s and then 100 s, which is still less than the others'.
    assert sent.machines.tolist() == [2, 2]


def test_sparrow_decides_on_one_job_after_another() -> None:
    engine, cell = an_engine(Sparrow, t_job=100, t_task=10), a_cell(4)
    jobs = [job(f"j{number}", 2, seconds=1) for number in range(3)]
    found = [
        engine.handle(JobSubmitted(each.job, number, first_tasks(number, 2)), cell, 0)
        for number, each in enumerate(jobs)
    ]
    assert [[effect.duration for effect in effects] for effects in found] == [[120], [], []]
    engine.handle(JobCancelled(jobs[1].job, 1, first_tasks(1, 1)), cell, 50)
    probes = []
    effects: Sequence[Effect] = found[0]
    for now in (120, 230, 350):
        [thinking] = [effect for effect in effects if isinstance(effect, Think)]
        effects = engine.handle(DecisionDue(thinking.token), cell, now)
        probes += [
            (effect.job, len(effect.tasks)) for effect in effects if isinstance(effect, Probe)
        ]
    assert probes == [(0, 2), (1, 1), (2, 2)]
    assert not [effect for effect in effects if isinstance(effect, Think)]


@pytest.mark.parametrize(("engine", "order"), [(Hawk, [0, 1, 2]), (Eagle, [0, 2, 1])])
def test_long_jobs_wait_for_the_central_scheduler_which_eagle_orders_by_their_total_time(
    engine: Prober, order: list[int]
) -> None:
    """While the first is decided on, one of 300 s comes, one of 200 s, and a short one."""
    made, cell = an_engine(engine, t_job=100, t_task=10), a_cell(4)
    jobs = [job(f"j{n}", count, seconds=100) for n, count in enumerate((2, 3, 2))]
    found = [
        made.handle(JobSubmitted(each.job, number, first_tasks(number, each.tasks)), cell, 0)
        for number, each in enumerate(jobs)
    ]
    assert [[effect.duration for effect in effects] for effects in found] == [[120], [], []]
    short = made.handle(JobSubmitted(job("s", 1, seconds=1).job, 3, first_tasks(3, 1)), cell, 0)
    assert not [effect for effect in short if isinstance(effect, Think)]
    decided, effects = [], found[0]
    while thinking := [effect for effect in effects if isinstance(effect, Think)]:
        decided.append(thinking[0].job)
        effects = made.handle(DecisionDue(thinking[0].token), cell, 0)
        assert isinstance(effects[0], AskQueues)
    assert decided == order


def test_a_long_job_that_is_cancelled_while_it_waits_is_not_placed() -> None:
    made, cell, long = an_engine(Eagle, t_job=100), a_cell(4), job("a", 2, seconds=100)
    [thinking] = made.handle(JobSubmitted(long.job, 0, first_tasks(0, 2)), cell, 0)
    made.handle(JobCancelled(long.job, 0, first_tasks(0, 2)), cell, 50)
    assert list(made.handle(DecisionDue(thinking.token), cell, 100)) == []
