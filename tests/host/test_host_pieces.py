"""Small parts of the host by themselves: busy time, routing, the health of agents, late claims."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec import structs
from scripted_engine import Scripted, claim, world_of
from serial_attempts import tasks_of

from argosy.cell import View
from argosy.engines.registry import ENGINES
from argosy.host.agent_desks import AgentHealth, Turns, _delay, _most
from argosy.host.busy_time import DAY, BusyTime
from argosy.host.late_claims import drop_late_claims, with_refusals
from argosy.host.requirements import QueueRequirements
from argosy.host.scheduler import Router, Scheduler
from argosy.model.effects import AskQueues, Effect, Enqueue, Probe, SamplingPipeline
from argosy.model.events import Event, JobSubmitted, QueuesReported
from argosy.model.explanations import Why
from argosy.model.machine_model import MachineModel
from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import (
    AgentDown,
    AgentModel,
    AgentSlow,
    AgentStale,
    CellSpec,
    FleetEntry,
    Places,
    SchedulerCrash,
    Takes,
)
from argosy.model.transactions import Claims, Outcome, Transaction
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, cell, job, scenario
from argosy.worlds.sim import SimulatedWorld


def test_only_the_part_of_a_decision_that_has_passed_counts() -> None:
    busy = BusyTime()
    busy.think(0, 10)
    # Another job that the decision is about takes no time, and does not end it.
    busy.think(2, 0)
    assert [busy.total(now) for now in (5, 10, 20)] == [5, 10, 10]


def test_a_decision_that_is_aborted_counts_as_far_as_it_came() -> None:
    busy = BusyTime()
    busy.think(0, 10)
    busy.stop(4)
    assert [busy.total(now) for now in (4, 20)] == [4, 4]
    assert busy.by_day(8) == [0.5]
    # Stopping again, or later, changes nothing.
    busy.stop(20)
    assert busy.total(20) == 4
    busy.think(20, 4)
    assert busy.by_day(40) == [8 / 40]


def test_decisions_that_overlap_count_each_as_far_as_they_came() -> None:
    busy = BusyTime()
    busy.think(0, 10)
    busy.think(2, 20)
    busy.think(4, 4)
    assert [busy.total(now) for now in (5, 8, 10, 22, 30)] == [9, 18, 22, 34, 34]
    assert busy.by_day(5) == [9 / 5]
    assert busy.by_day(40) == [34 / 40]
    busy.stop(5)
    assert busy.total(30) == 9
    assert busy.by_day(9) == [1.0]


def test_a_decision_over_midnight_counts_for_both_days() -> None:
    busy = BusyTime()
    busy.think(DAY - 6, 10)
    assert busy.by_day(DAY + 8) == [6 / DAY, 4 / 8]
    assert busy.by_day(DAY + 2) == [6 / DAY, 1.0]


def test_time_spent_before_counts_for_the_day_in_which_it_was_spent() -> None:
    busy = BusyTime()
    busy.think(DAY + 4, 0, before=10)
    assert busy.total(DAY + 4) == 10
    assert busy.by_day(2 * DAY) == [6 / DAY, 4 / DAY]
    early = BusyTime()
    early.think(4, 0, before=10)
    assert early.by_day(8) == [0.5]


def schedulers(*entries: FleetEntry) -> list[Scheduler]:
    return SimulatedWorld(scenario("omega", [], fleet=entries), ENGINES).host.schedulers


def routed(router: Router, *kinds: str) -> list[str]:
    found = (router.route(job(f"j{at}", kind=kind).job) for at, kind in enumerate(kinds))
    return [scheduler.name if scheduler is not None else "" for scheduler in found]


def test_jobs_are_dealt_out_in_turn_for_each_kind() -> None:
    fleet = schedulers(FleetEntry(name="s", engine="omega", replicas=3, split="round-robin"))
    names = [scheduler.name for scheduler in fleet]
    router = Router(fleet, Random(1))
    assert routed(router, *"aabaab") == [names[at] for at in (0, 1, 0, 2, 0, 1)]


def test_a_scheduler_that_is_down_gets_no_job_while_another_can_take_it() -> None:
    fleet = schedulers(
        FleetEntry(name="s", engine="omega", replicas=2, split="round-robin"),
        FleetEntry(name="t", engine="omega", takes=Takes(kinds=("c",))),
    )
    router = Router(fleet[:2], Random(1))
    for scheduler in fleet[:2]:
        scheduler.start()
    fleet[0].crash(0)
    assert routed(router, *"aaa") == [fleet[1].name] * 3
    fleet[1].crash(0)
    # Both may come back.
    assert set(routed(router, *"aa")) == {fleet[0].name, fleet[1].name}
    assert routed(Router(fleet[2:], Random(1)), "c", "d") == [fleet[2].name, ""]


def test_computing_time_below_a_microsecond_is_not_lost() -> None:
    [scheduler] = schedulers(FleetEntry(name="s", engine="omega"))
    scheduler.computed = 2_600
    assert scheduler.take_computed() == 2
    scheduler.computed += 500
    assert scheduler.take_computed() == 1


def test_an_agent_is_down_for_everything_that_overlaps_its_fault() -> None:
    health = AgentHealth([AgentDown(at=10, lasts=10, cluster="a")])
    overlaps = [(0, 9), (0, 10), (12, 13), (19, 25), (20, 25), (0, 30)]
    assert [health.is_down(*span) for span in overlaps] == [False, True, True, True, False, True]
    for_good = AgentHealth([AgentDown(at=10, lasts=None, cluster="a")])
    assert for_good.is_down(10**15, 10**15)


def test_faults_of_an_agent_end_when_their_time_is_over_and_delays_add_up() -> None:
    health = AgentHealth(
        [
            AgentSlow(at=10, lasts=10, cluster="a", extra=5),
            AgentSlow(at=15, lasts=10, cluster="a", extra=7),
            AgentStale(at=30, lasts=10, cluster="a"),
        ]
    )
    assert [health.extra(now) for now in (9, 10, 15, 19, 20, 25)] == [0, 5, 12, 12, 7, 0]
    assert [health.is_cut_off(now) for now in (29, 30, 39, 40)] == [False, True, True, False]
    assert not health.is_down(0, 100)


def test_requests_beyond_the_number_of_pipelines_wait_in_order() -> None:
    begun: list[int] = []
    turns = Turns(2, lambda now, action: action(now))
    for number in range(4):
        turns.enter(lambda now, number=number: begun.append(number), 0)  # type: ignore[misc]
    assert begun == [0, 1]
    for _ in range(4):
        turns.leave(0)
    assert begun == [0, 1, 2, 3]
    for number in (4, 5, 6):
        turns.enter(lambda now, number=number: begun.append(number), 0)  # type: ignore[misc]
    assert begun == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("limit", "t_machine", "expected"), [(0, 20, 0), (100, 0, 0), (100, 20, 5), (10, 20, 1)]
)
def test_a_time_limit_bounds_how_many_machines_are_drawn(
    limit: int, t_machine: int, expected: int
) -> None:
    assert _most(SamplingPipeline(limit=limit), AgentModel(t_machine=t_machine)) == expected


def test_distances_are_the_same_both_ways() -> None:
    places = Places(default=90, within=2, delays={"a<>b": 7})
    assert [_delay(places, one, other) for one, other in ("ab", "ba", "ac", "cc")] == [7, 7, 90, 2]
    assert _delay(places, "", "a") is None
    assert _delay(None, "a", "b") is None


def test_what_stands_or_falls_with_a_late_claim_falls_with_it() -> None:
    count = 5
    claims = Claims(
        tasks_of(0, *range(count)),
        np.arange(count, dtype=np.int32),
        np.zeros(count, np.int32),
        np.zeros(count, np.uint32),
        np.array([-1, 0, 0, 1, -1], np.int32),
    )
    late = np.array([int(Why.CANCELLED), int(Why.CANCELLED), 0, 0, 0], np.uint8)
    transaction = Transaction("s", claims)
    left = drop_late_claims(transaction, late).claims
    assert left is not None
    # The other claim without a gang does not fall with the first.
    assert left.tasks.tolist() == tasks_of(0, 3, 4).tolist()
    accepted = Outcome(
        np.array([True, False]),
        np.array([0, int(Why.NO_ROOM)], np.uint8),
        np.array([-1, 0], np.int8),
        np.array([0, 500], np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.int32),
        (),
        ("cpu", "memory"),
        machines=np.array([3, 4], np.int32),
    )
    whole = with_refusals(transaction, late, accepted)
    assert whole.accepted.tolist() == [False, False, False, True, False]
    whys = [Why.CANCELLED, Why.CANCELLED, Why.TOGETHER, Why.NONE, Why.NO_ROOM]
    assert [Why(why) for why in whole.whys.tolist()] == whys
    assert (whole.amounts[-1], whole.details[-1], whole.all_accepted) == (500, 0, False)


@pytest.mark.parametrize("crashes", [False, True])
def test_a_question_about_room_is_answered_unless_its_scheduler_crashed(crashes: bool) -> None:
    asked = []

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        if event.job.id == "full":
            return [Enqueue(event.tasks, np.zeros(len(event.tasks), np.int32))]
        asked.append(now)
        here = np.zeros(1, np.int32)
        return [AskQueues(7, until_room=here)] if len(asked) == 1 else ()

    jobs = [job("full", 2, cpu=4_000, seconds=10), job("asks", 1, submit=1)]
    crash = SchedulerCrash(at=2 * SECOND, scheduler="s", down=SECOND)
    _, heard = world_of(
        script,
        jobs,
        cell=cell(1),
        machines=MachineModel(limit=1),
        faults=(crash,) if crashes else (),
        horizon=60 * SECOND,
    )
    answers = [at for at, _, event in heard if isinstance(event, QueuesReported)]
    assert answers == ([] if crashes else [10 * SECOND])


def test_a_probe_requires_what_any_task_requires_that_it_may_fetch() -> None:
    groups = [
        group_with_truth(1, Resources(100, GIB), (), requires=requires)
        for requires in ({"disk": "ssd"}, {})
    ]
    jobs = [simulated_job("picky", *groups), job("plain", 2, seconds=None)]
    machine = Machine("m0", Resources(4_000, 64 * GIB), {"disk": "ssd"})
    spec = scenario("omega", jobs, cell=CellSpec(machines=(machine,)), horizon=SECOND)
    world = SimulatedWorld(spec, ENGINES)
    world.run()
    host = world.host
    requirements = QueueRequirements(host.runtime, host.view, host.jobs)

    def asked(number: int, *indices: int) -> int:
        tasks = tasks_of(number, *indices) if indices else None
        request = Resources(100, GIB)
        return requirements.of_probe(Probe(number, np.zeros(1, np.int32), request, 0, tasks))

    assert asked(0, 0) == asked(0, 0, 1) == asked(0) > 0
    assert asked(0, 1) == asked(1) == asked(1, 0) == 0
    assert list(requirements.of(tasks_of(0, 0, 1))) == [asked(0, 0), 0]
    assert list(requirements.of(tasks_of(1, 0, 1))) == []


def test_room_that_a_preemption_leaves_wakes_the_queue_of_the_machine() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if not isinstance(event, JobSubmitted):
            return ()
        if event.job.id == "queued":
            return [Enqueue(event.tasks, np.zeros(1, np.int32))]
        commit = claim(view, event, 0, engine.context.name)
        return [
            structs.replace(commit, transaction=structs.replace(commit.transaction, preempt=True))
        ]

    jobs = [
        job("low", 1, cpu=4_000, seconds=None),
        job("queued", 1, cpu=1_000, seconds=2, submit=1),
        job("high", 1, cpu=2_000, seconds=50, submit=3, precedence=5),
    ]
    world, _ = world_of(script, jobs, cell=cell(1), horizon=30 * SECOND)
    tasks, _, _, started, _ = world.host.runtime.task_columns()
    begun = dict(zip(tasks.tolist(), started.tolist(), strict=True))
    assert begun[int(tasks_of(1, 0)[0])] == 3 * SECOND


@pytest.mark.parametrize("waits", [False, True])
def test_a_submitted_job_is_handled_at_once_unless_something_else_comes_first(waits: bool) -> None:
    """In either case after the world has entered it."""
    spec = scenario("omega", [job("first", 1, seconds=5)], cell=cell(3), audit=False)
    host = SimulatedWorld(spec, ENGINES).host
    host.start()
    assert host.run_until(0) is None
    if waits:
        host.later(0, lambda now: None)
    handled, heard = host.events, list[int]()
    number = host.submit(spec.jobs[0].job, lambda entered: heard.extend((entered, host.events)))
    assert heard == [number, handled]
    assert host.events == handled + (not waits)
    host.run_until(0)
    assert host.events == handled + 1
