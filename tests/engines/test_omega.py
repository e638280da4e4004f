"""Omega as a function from events to effects, without a world around it."""

from __future__ import annotations

from typing import Any

import numpy as np

import argosy
from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.omega import Omega, OmegaSettings
from argosy.model.effects import Abandon, Commit, Effect, Explain, Think, WakeMe
from argosy.model.events import Committed, DecisionDue, JobSubmitted, TasksLost, TimerFired
from argosy.model.explanations import Why
from argosy.model.jobs import task_number
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, Takes
from argosy.model.tasks import indices_of
from argosy.model.transactions import OPERATOR, AddMachine, Claims, TaskArray, Transaction
from argosy.model.truth import SimulatedJob
from argosy.testing.builders import GIB, SECOND, job, machines, scenario
from argosy.testing.builders import cell as build_cell
from argosy.worlds.sim import SimulatedWorld


def a_cell(count: int) -> Cell:
    cell = Cell(("cpu", "memory"), {"rack": ("r0",)}, audited=True)
    changes = tuple(AddMachine(machine) for machine in machines(count))
    cell.commit(Transaction(OPERATOR, machines=changes))
    return cell


def an_omega(**settings: Any) -> Omega:
    return Omega(OmegaSettings(**settings), Context("s", (), Random(1)))


def tasks_of(number: int, *indices: int) -> TaskArray:
    return np.array([task_number(number, index) for index in indices], np.int64)


def submitted(submission: SimulatedJob, number: int, *indices: int) -> JobSubmitted:
    tasks = tasks_of(number, *indices or range(submission.tasks))
    return JobSubmitted(submission.job, number, tasks)


def fill(cell: Cell, cores: int) -> None:
    """So many cores of the first machine are taken, each by a task of job 99."""
    shapes = np.full(cores, cell.shape(Resources(1_000, GIB)), np.int32)
    rows = np.zeros(cores, np.int32)
    claims = Claims(tasks_of(99, *range(cores)), rows, shapes, cell.versions(rows))
    assert cell.commit(Transaction(OPERATOR, claims)).all_accepted


def only(effects: Any, kind: type[Effect]) -> Any:
    found = [effect for effect in effects if isinstance(effect, kind)]
    assert len(found) == 1, effects
    return found[0]


def attempt(engine: Omega, cell: Cell, thinking: Think, now: int) -> Any:
    """Lets one decision run its course; the effects of its end."""
    effects = engine.handle(DecisionDue(thinking.token), cell, now)
    for effect in effects:
        if isinstance(effect, Commit):
            outcome = cell.commit(effect.transaction)
            return engine.handle(Committed(effect.token, outcome), cell, now)
    return effects


def test_a_scheduler_decides_on_one_job_at_a_time() -> None:
    engine, cell = an_omega(t_job=1_000, t_task=10), a_cell(4)
    first = only(engine.handle(submitted(job("a", 3), 0), cell, 0), Think)
    assert first.duration == 1_030
    assert engine.handle(submitted(job("b", 1), 1), cell, 5) == ()
    second = only(attempt(engine, cell, first, 1_030), Think)
    assert (second.job, second.duration) == (1, 1_010)


def test_the_decision_is_made_on_the_cell_as_it_is_when_it_begins() -> None:
    engine, cell = an_omega(), a_cell(1)
    thinking = only(engine.handle(submitted(job("a", 1, cpu=3_000), 0), cell, 0), Think)
    rival = an_omega()
    other = only(rival.handle(submitted(job("b", 1, cpu=3_000), 1), cell, 0), Think)
    attempt(rival, cell, other, 1)
    commit = only(engine.handle(DecisionDue(thinking.token), cell, 2), Commit)
    outcome = cell.commit(commit.transaction)
    refusal = outcome.refusals(commit.transaction.claims)[0]
    assert (refusal.why, refusal.dimension, refusal.lacking) == (Why.NO_ROOM, "cpu", 2_000)


def test_two_parts_of_one_job_can_wait_at_once() -> None:
    engine, cell = an_omega(), a_cell(1)
    giant = job("giant", 4, cpu=64_000)
    timers = []
    for indices in ((0, 1), (2, 3)):
        thinking = only(engine.handle(submitted(giant, 7, *indices), cell, 0), Think)
        timers.append(only(attempt(engine, cell, thinking, SECOND), WakeMe).name)
    tried: list[int] = []
    for timer in timers:
        thinking = only(engine.handle(TimerFired(timer), cell, 9 * SECOND), Think)
        explained = only(attempt(engine, cell, thinking, 9 * SECOND), Explain)
        tried.extend(indices_of(explained.tasks).tolist())
    assert tried == [0, 1, 2, 3]


def test_waiting_for_room_doubles_up_to_a_bound() -> None:
    engine, cell = an_omega(backoff=SECOND), a_cell(1)
    thinking = only(engine.handle(submitted(job("giant", 1, cpu=64_000), 0), cell, 0), Think)
    delays = []
    for _ in range(9):
        wake = only(attempt(engine, cell, thinking, 0), WakeMe)
        delays.append(wake.at // SECOND)
        thinking = only(engine.handle(TimerFired(wake.name), cell, 0), Think)
    assert delays == [1, 2, 4, 8, 16, 32, 64, 64, 64]


def test_a_job_at_its_schedulers_limit_waits_instead_of_wearing_itself_out() -> None:
    engine, cell = an_omega(), a_cell(1)
    cell.set_limits("s", Resources(500, GIB), None)
    thinking = only(engine.handle(submitted(job("a", 1), 0), cell, 0), Think)
    assert only(attempt(engine, cell, thinking, 0), WakeMe).at == SECOND


def test_an_attempt_that_places_something_starts_the_waits_anew() -> None:
    engine, cell = an_omega(backoff=SECOND), a_cell(1)
    fill(cell, 4)
    thinking = only(engine.handle(submitted(job("wide", 2, cpu=4_000), 0), cell, 0), Think)
    for expected in (SECOND, 2 * SECOND):
        wake = only(attempt(engine, cell, thinking, 0), WakeMe)
        assert wake.at == expected
        thinking = only(engine.handle(TimerFired(wake.name), cell, 0), Think)
    cell.commit(Transaction(OPERATOR, releases=tasks_of(99, *range(4))))
    effects = attempt(engine, cell, thinking, 0)
    # The decision was made on the full cell; the next one places a task, and the one after it none.
    thinking = only(engine.handle(TimerFired(only(effects, WakeMe).name), cell, 0), Think)
    thinking = only(attempt(engine, cell, thinking, 0), Think)
    assert cell.claims() == 1
    assert only(attempt(engine, cell, thinking, 0), WakeMe).at == SECOND


def test_a_job_that_gets_something_within_its_schedulers_limit_tries_again_at_once() -> None:
    engine, cell = an_omega(), a_cell(1)
    cell.set_limits("s", Resources(1_500, 4 * GIB), None)
    thinking = only(engine.handle(submitted(job("a", 2), 0), cell, 0), Think)
    effects = attempt(engine, cell, thinking, 0)
    assert cell.claims() == 1
    thinking = only(effects, Think)
    assert only(attempt(engine, cell, thinking, 0), WakeMe).at == SECOND


def test_a_job_is_abandoned_after_its_attempts_with_what_it_lacked() -> None:
    engine, cell = an_omega(attempts=3, backoff=0), a_cell(2)
    thinking = only(engine.handle(submitted(job("giant", 1, cpu=64_000), 0), cell, 0), Think)
    for _ in range(2):
        thinking = only(attempt(engine, cell, thinking, 0), Think)
    abandoned = only(attempt(engine, cell, thinking, 0), Abandon).explanation
    assert (abandoned.refused.why, abandoned.refused.lacking) == (Why.ATTEMPTS, 3)
    assert (abandoned.nearest_miss.dimension, abandoned.nearest_miss.lacking) == ("cpu", 60_000)


def test_lost_tasks_join_what_still_waits_of_their_job() -> None:
    engine, cell = an_omega(), a_cell(4)
    engine.handle(submitted(job("busy", 1), 0), cell, 0)
    late = job("late", 3)
    engine.handle(submitted(late, 1, 0, 1), cell, 0)
    lost = TasksLost(late.job, 1, tasks_of(1, 2), np.zeros(1, np.int32), Why.MACHINE_GONE)
    assert engine.handle(lost, cell, 0) == ()
    thinking = only(attempt(engine, cell, Think(0, 1), 0), Think)
    commit = only(engine.handle(DecisionDue(thinking.token), cell, 0), Commit)
    assert commit.transaction.claims.tasks.tolist() == tasks_of(1, 0, 1, 2).tolist()


def test_an_atomic_attempt_claims_all_or_nothing() -> None:
    engine, cell = an_omega(transaction="atomic"), a_cell(2)
    thinking = only(engine.handle(submitted(job("wide", 3, cpu=4_000), 0), cell, 0), Think)
    effects = attempt(engine, cell, thinking, 0)
    assert len(only(effects, Explain).tasks) == 3
    assert cell.claims() == 0


def test_an_incremental_attempt_keeps_what_it_could_get() -> None:
    engine, cell = an_omega(), a_cell(2)
    thinking = only(engine.handle(submitted(job("wide", 3, cpu=4_000), 0), cell, 0), Think)
    effects = attempt(engine, cell, thinking, 0)
    assert len(only(effects, Explain).tasks) == 1
    assert cell.claims() == 2


def test_a_service_can_be_spread_over_failure_domains() -> None:
    racks = tuple(f"r{i}" for i in range(4))
    cell = Cell(("cpu", "memory"), {"rack": racks}, audited=True)
    changes = tuple(AddMachine(machine) for machine in machines(16))
    cell.commit(Transaction(OPERATOR, machines=changes))
    for placement in ("first-fit", "best-fit", "worst-fit"):
        engine = an_omega(spread="rack", placement=placement)
        thinking = only(engine.handle(submitted(job("web", 8, cpu=100), 0), cell, 0), Think)
        claims = only(
            engine.handle(DecisionDue(thinking.token), cell, 0), Commit
        ).transaction.claims
        counts = np.bincount(claims.machines // 4, minlength=4)
        assert counts.tolist() == [2, 2, 2, 2]


def test_a_job_that_cannot_be_spread_evenly_is_placed_all_the_same() -> None:
    engine, cell = an_omega(spread="rack"), a_cell(3)
    thinking = only(engine.handle(submitted(job("web", 12, cpu=1_000), 0), cell, 0), Think)
    attempt(engine, cell, thinking, 0)
    assert cell.claims() == 12


def test_schedulers_with_regions_of_their_own_collide_less() -> None:
    conflicts = {}
    for regions in (1, 4):
        jobs = [job(f"j{i}", 6, cpu=1_500, seconds=2, submit=i * 0.3) for i in range(60)]
        spec = scenario(
            "omega",
            jobs,
            replicas=4,
            cell=build_cell(40),
            settings={"t_job": SECOND, "t_task": 0, "regions": regions, "placement": "best-fit"},
        )
        world = SimulatedWorld(spec, {"omega": Omega})
        world.run()
        assert world.host.board.counts().tolist()[3] == 360
        conflicts[regions] = sum(scheduler.conflicts for scheduler in world.host.schedulers)
    assert conflicts[4] < conflicts[1] / 2


def conflicts(detection: str, *, is_claim: bool) -> int:
    """Of a decision from 1 s to 3 s about the only machine, on which a task ends, or starts, at 2 s."""
    first = job("first", seconds=1.8 if not is_claim else 60)
    second = job("second", submit=1, kind="service")
    slow = {"t_job": 2 * SECOND, "t_task": 0, "detection": detection}
    quick = {"t_job": 100_000, "t_task": 0, "detection": "fine"}
    other = job("other", submit=1.5)
    fleet = (
        FleetEntry(name="slow", engine="omega", settings=slow, takes=Takes(kinds=("service",))),
        FleetEntry(name="quick", engine="omega", settings=quick, takes=Takes(kinds=("batch",))),
    )
    jobs = [first, second, *([other] if is_claim else [])]
    spec = scenario("omega", jobs, cell=build_cell(1), fleet=fleet)
    return sum(each.conflicts for each in argosy.run(spec).summary.schedulers)


def test_ends_of_tasks_are_conflicts_by_changes_but_not_by_claims() -> None:
    assert conflicts("coarse", is_claim=False) == 1
    assert conflicts("coarse-claims", is_claim=False) == 0
    assert conflicts("coarse-claims", is_claim=True) == 1
    assert conflicts("fine", is_claim=True) == 0
