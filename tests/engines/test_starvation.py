"""A job that keeps losing gets its room in a bounded number of attempts, whatever others do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.cell import Cell
from argosy.engines.api import Context
from argosy.engines.omega import Omega, OmegaSettings
from argosy.host.records import AbandonedRecord, AttemptRecord, LostRecord
from argosy.model.effects import Abandon, Commit, Think, WakeMe
from argosy.model.events import Committed, DecisionDue, JobSubmitted, TimerFired
from argosy.model.jobs import task_number
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.scenario import FleetEntry, SchedulerLimits, Takes
from argosy.model.transactions import OPERATOR, AddMachine, Claims, MachineArray, Transaction
from argosy.testing.builders import GIB, SECOND, job, machines, scenario
from argosy.testing.builders import cell as build_cell
from argosy.testing.conformance import ConformanceRun

RIVAL = "rival"
CORES = 4


def bound(patience: int, raise_by: int, own: int, others: int) -> int:
    """Lost attempts at most, as docs/engines.md states it."""
    return patience - 1 + -(-max(1, others + 1 - own) // raise_by)


class Rival:
    """Claims single cores at the highest precedence it may have, pushes out what is below, and gives
    back what it likes: all that a scheduler can do through transactions."""

    def __init__(self, cell: Cell, precedence: int) -> None:
        self.cell = cell
        self.shape = cell.shape(Resources(1_000, GIB), precedence=precedence)
        self.last = 0

    def fill(self, where: MachineArray) -> None:
        rows = np.repeat(where, CORES).astype(np.int32)
        first, self.last = self.last, self.last + len(rows)
        tasks = np.arange(first, self.last, dtype=np.int64) | (1 << 40)
        shapes = np.full(len(rows), self.shape, np.int32)
        claims = Claims(tasks, rows, shapes, np.zeros(len(rows), np.uint32))
        self.cell.commit(Transaction(RIVAL, claims, preempt=True))

    def leave(self, where: MachineArray) -> None:
        mine = [
            task
            for machine in where.tolist()
            for task in self.cell.tasks_on(machine).tolist()
            if self.cell.scheduler_of(task) == RIVAL
        ]
        self.cell.commit(Transaction(RIVAL, releases=np.array(mine, np.int64)))


def a_cell(count: int) -> Cell:
    cell = Cell(("cpu", "memory"), {"rack": tuple(f"r{i}" for i in range(3))}, audited=True)
    changes = tuple(AddMachine(machine) for machine in machines(count, cpu=CORES * 1_000))
    cell.commit(Transaction(OPERATOR, machines=changes))
    return cell


def play(engine: Omega, cell: Cell, first: Any, moves: Any) -> tuple[int, bool]:
    """Attempts that left something over, and whether the job was given up. `moves` are made while the
    scheduler thinks: it sees the cell before them and commits after them."""
    (thinking,) = engine.handle(first, cell, 0)
    lost = 0
    while True:
        effects = engine.handle(DecisionDue(thinking.token), cell, 0)
        commits = [effect for effect in effects if isinstance(effect, Commit)]
        moves(commits[0].transaction.claims.machines if commits else np.zeros(0, np.int32))
        for commit in commits:
            outcome = cell.commit(commit.transaction)
            effects = engine.handle(Committed(commit.token, outcome), cell, 0)
        if any(isinstance(effect, Abandon) for effect in effects):
            return lost + 1, True
        timers = [effect for effect in effects if isinstance(effect, WakeMe)]
        if timers:
            effects = engine.handle(TimerFired(timers[0].name), cell, 0)
        thoughts = [effect for effect in effects if isinstance(effect, Think)]
        if not thoughts:
            return lost, False
        lost += 1
        thinking = thoughts[0]


def submission(tasks: int, cores: int, precedence: int, gang: bool) -> JobSubmitted:
    wanted = job("starved", tasks, cpu=cores * 1_000, precedence=precedence, gang=gang)
    numbers = np.array([task_number(0, index) for index in range(tasks)], np.int64)
    return JobSubmitted(wanted.job, 0, numbers)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_job_loses_more_often_than_the_stated_bound(data: st.DataObject) -> None:
    draw = data.draw
    count, cores = draw(st.integers(1, 6)), draw(st.integers(1, CORES))
    tasks = draw(st.integers(1, count * (CORES // cores)))
    own, others = draw(st.integers(-3, 3)), draw(st.integers(-3, 6))
    patience, raise_by = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    chosen = OmegaSettings(
        patience=patience,
        raise_by=raise_by,
        transaction=draw(st.sampled_from(["incremental", "atomic"])),
        detection=draw(st.sampled_from(["fine", "coarse"])),
        placement=draw(st.sampled_from(["first-fit", "best-fit", "worst-fit"])),
        backoff=draw(st.sampled_from([0, SECOND])),
    )
    cell = a_cell(count)
    cell.set_limits(RIVAL, None, None, others)
    rival = Rival(cell, others)
    everywhere = np.arange(count, dtype=np.int32)

    def moves(targets: MachineArray) -> None:
        """Whatever was drawn, with the cruellest among it: taking just what was chosen."""
        for _ in range(draw(st.integers(0, 3))):
            some = np.array(sorted(draw(st.sets(st.integers(0, count - 1)))), np.int32)
            where = draw(st.sampled_from([targets, everywhere, some]))
            (rival.fill if draw(st.integers(0, 2)) else rival.leave)(where)

    if draw(st.booleans()):
        rival.fill(everywhere)
    engine = Omega(chosen, Context("s", (), Random(draw(st.integers(0, 99)))))
    first = submission(tasks, cores, own, draw(st.booleans()))
    lost, gave_up = play(engine, cell, first, moves)
    assert not gave_up
    assert lost <= bound(patience, raise_by, own, others)
    assert cell.usage()["s"].tasks == tasks


@pytest.mark.parametrize("gang", [False, True])
def test_the_cruellest_rival_makes_the_bound_tight_and_starves_who_has_no_patience(
    gang: bool,
) -> None:
    """While the job is decided on there is room, and whatever it chose is taken just before it comes."""

    def against(**chosen: Any) -> tuple[int, bool]:
        cell = a_cell(2)
        cell.set_limits(RIVAL, None, None, 5)
        rival, everywhere = Rival(cell, 5), np.arange(2, dtype=np.int32)

        def moves(targets: MachineArray) -> None:
            rival.leave(everywhere)
            rival.fill(everywhere)

        engine = Omega(OmegaSettings(backoff=0, **chosen), Context("s", (), Random(1)))
        return play(engine, cell, submission(2, CORES, 0, gang), moves)

    assert against() == (1_000, True)
    assert against(patience=3, raise_by=2) == (bound(3, 2, 0, 5), False) == (5, False)


def test_precedence_grows_no_further_than_the_scheduler_may_wield() -> None:
    cell = a_cell(1)
    cell.set_limits("s", None, None, 4)
    rival = Rival(cell, 4)
    rival.fill(np.zeros(1, np.int32))
    engine = Omega(OmegaSettings(patience=1, attempts=20), Context("s", (), Random(1)))
    lost, gave_up = play(engine, cell, submission(1, 1, 0, False), lambda targets: None)
    assert (lost, gave_up) == (20, True)


def test_precedence_that_would_grow_beyond_the_limit_stops_there_and_still_counts() -> None:
    cell = a_cell(1)
    cell.set_limits("s", None, None, 4)
    Rival(cell, 3).fill(np.zeros(1, np.int32))
    chosen = OmegaSettings(patience=1, raise_by=9, attempts=20)
    engine = Omega(chosen, Context("s", (), Random(1)))
    assert play(engine, cell, submission(1, 1, 0, False), lambda targets: None) == (1, False)
    assert cell.usage()["s"].tasks == 1


def test_a_job_that_only_meets_its_schedulers_limit_pushes_nobody_out() -> None:
    cell = a_cell(1)
    cell.set_limits("s", Resources(1_000, GIB), None)
    engine = Omega(OmegaSettings(patience=1), Context("s", (), Random(1)))
    (thinking,) = engine.handle(submission(1, 2, 0, False), cell, 0)
    for _ in range(3):
        (commit,) = engine.handle(DecisionDue(thinking.token), cell, 0)
        assert not commit.transaction.preempt
        outcome = cell.commit(commit.transaction)
        (wake,) = engine.handle(Committed(commit.token, outcome), cell, 0)
        (thinking,) = engine.handle(TimerFired(wake.name), cell, 0)


def test_an_attempt_that_meets_a_limit_is_not_lost_to_others() -> None:
    cell = a_cell(2)
    cell.set_limits("s", Resources(1_000, GIB), None)
    rival = Rival(cell, 0)
    rival.fill(np.zeros(1, np.int32))
    engine = Omega(OmegaSettings(patience=2, attempts=20), Context("s", (), Random(1)))
    before = cell.claims()
    assert play(engine, cell, submission(1, 2, 0, False), lambda targets: None) == (20, True)
    assert cell.claims() == before


def test_a_starving_job_is_placed_in_a_full_cell_and_keeps_its_place() -> None:
    """In a world: small jobs refill whatever frees up before the large one has decided."""
    small = [job(f"s{i}", 4, seconds=3, submit=i * 0.05, kind="small") for i in range(120)]
    large = job("large", 2, cpu=4_000, seconds=5, submit=1, kind="large", gang=True)
    attempts: dict[int, int] = {}
    for patience in (0, 4):
        fleet = (
            FleetEntry(
                name="small",
                engine="omega",
                replicas=2,
                takes=Takes(kinds=("small",)),
                settings={"t_job": 1_000, "t_task": 0, "backoff": 100_000},
                limits=SchedulerLimits(precedence=0),
            ),
            FleetEntry(
                name="large",
                engine="omega",
                takes=Takes(kinds=("large",)),
                settings={
                    "t_job": SECOND // 5,
                    "patience": patience,
                    "backoff": 0,
                    "attempts": 50,
                },
            ),
        )
        spec = scenario("omega", [*small, large], cell=build_cell(4), fleet=fleet)
        result = ConformanceRun(Omega, spec)
        attempts[patience] = len(result.of(AttemptRecord, "large"))
        assert bool(result.of(AbandonedRecord, "large")) == (patience == 0)
        assert not result.of(LostRecord, "large")
        result.require_nothing_claimed()
    assert attempts == {0: 50, 4: bound(4, 1, 0, 0) + 1}
