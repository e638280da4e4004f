"""Which schedulers hear of what, and which decisions the journal gets."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from host_bench import Bench, web
from msgspec import structs
from scripted_engine import NO_LATENCY, Scripted, claim, first_fit, scripted, world_of
from serial_attempts import tasks_of

from argosy.cell import View
from argosy.engines.api import Capabilities, Finishes
from argosy.engines.registry import find_engines
from argosy.host import records
from argosy.host.job_table import JobTable
from argosy.host.journal import DecisionWriter
from argosy.model.effects import EarlierTime, Effect, Pace, Think
from argosy.model.events import (
    DecisionDue,
    Event,
    JobSubmitted,
    MachineChanged,
    MachineJoined,
    MachineLost,
    TaskFinished,
)
from argosy.model.explanations import Explanation, Why
from argosy.model.jobs import index_of, job_of
from argosy.model.scenario import FleetEntry, MachineCrash, MachineDrain, SchedulerCrash, Takes
from argosy.model.transactions import Claims, Outcome
from argosy.testing.builders import SECOND, cell, job, scenario
from argosy.worlds.sim import SimulatedWorld

NOBODY = np.empty(0, np.int32)


def test_ends_of_tasks_are_told_to_those_who_listen() -> None:
    kinds = {"own": Finishes.OWN, "other": Finishes.OWN, "all": Finishes.ALL, "none": Finishes.NONE}
    engines = {
        name: scripted(first_fit, Capabilities(finishes=finishes))
        for name, finishes in kinds.items()
    }
    fleet = tuple(
        FleetEntry(name=name, engine=name, takes=Takes(kinds=(name,))) for name in engines
    )
    # All end together, but for a second job of `own`, which ends alone.
    jobs = [job(f"j{at}", 2, kind=name, seconds=5) for at, name in enumerate(kinds)]
    jobs.append(job("late", 1, kind="own", seconds=9))
    jobs.append(job("last", 1, kind="none", seconds=20))
    spec = scenario("own", jobs, cell=cell(8), fleet=fleet, network=NO_LATENCY)
    SimulatedWorld(spec, engines).run()

    def heard(name: str) -> list[tuple[int, set[int]]]:
        ends = [(at, event) for at, _, event in engines[name].heard]
        told: dict[int, set[int]] = {}
        for at, event in ends:
            if isinstance(event, TaskFinished):
                assert len(event.tasks) == len(event.machines) == len(event.shapes)
                told.setdefault(at // SECOND, set()).update(map(job_of, event.tasks.tolist()))
        return [*told.items()]

    assert heard("own") == [(5, {0}), (9, {4})]
    assert heard("other") == [(5, {1})]
    assert heard("all") == [(5, {0, 1, 2, 3}), (9, {4})]
    assert heard("none") == []


def test_a_scheduler_that_is_down_hears_neither_of_machines_nor_of_its_tasks() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        return first_fit(engine, event, view, now)

    faults = (
        SchedulerCrash(at=SECOND, scheduler="s", down=4 * SECOND),
        MachineCrash(at=2 * SECOND, machine="m3", down=SECOND),
        MachineDrain(at=7 * SECOND, machine="m2", lasts=SECOND),
        MachineCrash(at=9 * SECOND, machine="m1", down=SECOND),
    )
    jobs = [job("a", 1, seconds=3), job("b", 1, seconds=6), job("c", 1, seconds=None)]
    _, heard = world_of(
        script, jobs, finishes=Finishes.OWN, faults=faults, cell=cell(4), horizon=20 * SECOND
    )
    told = [
        (at // SECOND, event)
        for at, _, event in heard
        if isinstance(event, MachineJoined | MachineLost | MachineChanged)
    ]
    assert told == [
        (7, MachineChanged(2)),
        (8, MachineChanged(2)),
        (9, MachineLost(1)),
        (10, MachineJoined(1)),
    ]
    assert [at // SECOND for at, _, event in heard if isinstance(event, TaskFinished)] == [6]


def test_schedulers_hear_of_the_first_machine_that_gets_an_attribute_and_of_none_that_loses_it() -> (
    None
):
    bench = Bench(lambda *_: ())
    machines = ["m2", "m1"]
    bench.host.mark("open", "machine", machines, is_given=True)
    bench.go(1)
    assert bench.told(MachineChanged) == [MachineChanged(1)]
    bench.host.mark("open", "machine", machines, is_given=False)
    bench.go(2)
    assert bench.told(MachineChanged) == [MachineChanged(1)]


def test_time_spent_on_a_job_is_recorded_for_that_job() -> None:
    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        match event:
            case JobSubmitted(_, number):
                # The first thought is about no job.
                return [
                    Think(5, 9),
                    Think(30 + number, number, number, earlier=EarlierTime(8, number + 2)),
                ]
            case DecisionDue(token) if token < 9:
                engine.context.random.bits()
        return ()

    bench = Bench(script)
    for _ in range(2):
        bench.host.submit(web(1))
    bench.go(1)
    facts = [fact for fact in bench.replay().facts() if isinstance(fact, records.AttemptRecord)]
    assert [(fact.job, fact.takes, fact.earlier) for fact in facts] == [
        ("web", 30, 2),
        ("web", 31, 3),
    ]
    [scheduler] = bench.host.schedulers
    assert sum(lane.total(SECOND) for lane in scheduler.lanes.values()) == 2 * (5 + 8) + 30 + 31


class TestJournal:
    def writer(self, *, everything: bool = False) -> tuple[DecisionWriter, list[Any]]:
        """Jobs a and b with three tasks each, and what was written."""
        jobs, written = JobTable(), list[Any]()
        for name in "ab":
            jobs.add(job(name, 3).job)
        journal: Any = SimpleNamespace(everything=everything, write=written.append)
        return DecisionWriter(journal, jobs), written

    def mixed(self) -> np.ndarray:
        return np.concatenate([tasks_of(0, 1), tasks_of(1, 0), tasks_of(0, 2), tasks_of(1, 1)])

    def test_tasks_sent_at_a_pace_are_recorded_with_the_time_of_the_first(self) -> None:
        writer, written = self.writer()
        machines = np.array([5, 6, 7, 8], np.int32)
        writer.enqueued(9, tasks_of(0, 0, 1, 2), machines[:3], "s", None, Pace(100, 10))
        [record] = written
        assert (record.at, record.job, record.indices, record.machines) == (
            9,
            "a",
            [0, 1, 2],
            [5, 6, 7],
        )
        assert (record.scheduler, record.first, record.every) == ("s", 100, 10)
        written.clear()
        writer.enqueued(9, self.mixed(), machines, "s", None, Pace(100, 10))
        assert [(each.job, each.indices, each.machines, each.first) for each in written] == [
            ("a", [1], [5], 100),
            ("a", [2], [7], 120),
            ("b", [0], [6], 110),
            ("b", [1], [8], 130),
        ]
        written.clear()
        # Without a pace, one line for each job is enough.
        writer.enqueued(9, self.mixed(), machines, "s", None, Pace(100, 0))
        assert [(each.job, each.indices, each.first, each.every) for each in written] == [
            ("a", [1, 2], 100, 0),
            ("b", [0, 1], 100, 0),
        ]

    def test_consecutive_tasks_of_a_job_share_a_line(self) -> None:
        writer, written = self.writer()
        tasks = np.concatenate([tasks_of(0, 0, 1), tasks_of(1, 0)])
        writer.enqueued(0, tasks, np.zeros(3, np.int32), "s", None, Pace(0, 10))
        assert [(each.job, each.indices, each.first) for each in written] == [
            ("a", [0, 1], 0),
            ("b", [0], 20),
        ]

    def test_decisions_about_tasks_are_written_job_by_job(self) -> None:
        writer, written = self.writer()
        machines = np.array([5, 6, 7, 8], np.int32)
        writer.placed(9, self.mixed(), machines, "s", None, assumed=True)
        writer.lost(9, 1, self.mixed()[[1, 3]], machines[[1, 3]], Why.MACHINE_GONE)
        writer.tasks(
            9, records.AbandonedRecord, self.mixed()[:2], scheduler="s", explanation=Explanation()
        )
        placed, lost, abandoned = written[:2], written[2], written[3:]
        assert [(each.job, each.indices, each.machines) for each in placed] == [
            ("a", [1, 2], [5, 7]),
            ("b", [0, 1], [6, 8]),
        ]
        assert [(each.scheduler, each.assumed) for each in placed] == [("s", True)] * 2
        assert (lost.job, lost.indices, lost.machines) == ("b", [0, 1], [6, 8])
        assert lost.why == "machine_gone"
        assert [(each.job, each.indices) for each in abandoned] == [("a", [1]), ("b", [0])]

    def test_refusals_are_those_of_the_rows_that_are_named(self) -> None:
        writer, written = self.writer()
        claims = Claims(
            self.mixed(),
            np.array([5, 6, 7, 8], np.int32),
            np.zeros(4, np.int32),
            np.zeros(4, np.uint32),
        )
        outcome = Outcome(
            accepted=np.array([True, False, False, False]),
            whys=np.array([0, 1, 2, 3], np.uint8),
            details=np.array([-1, 0, 1, -1], np.int8),
            amounts=np.array([0, 10, 20, 30]),
            evicted=np.empty(0, np.int64),
            evicted_from=NOBODY,
            unreleased=(),
            dimensions=(),
            all_accepted=False,
            # The last was checked on another machine than its first.
            machines=np.array([5, 6, 7, 4], np.int32),
        )
        writer.refused(9, claims, outcome, np.array([1, 2, 3]), "s")
        first, second = written
        assert (first.job, first.indices, first.machines) == ("a", [2], [7])
        assert (first.whys, first.details, first.amounts) == ([2], [1], [20])
        assert (second.job, second.indices, second.machines) == ("b", [0, 1], [6, 4])
        assert (second.whys, second.details, second.amounts) == ([1, 3], [0, -1], [10, 30])
        assert first.scheduler == "s"

    @pytest.mark.parametrize("everything", [False, True])
    def test_messages_and_timers_are_written_only_with_everything(self, everything: bool) -> None:
        writer, written = self.writer(everything=everything)
        writer.detail(records.TimerRecord(1, "s", "tick", 5))
        assert len(written) == everything

    def test_nothing_is_written_without_a_journal(self) -> None:
        writer = DecisionWriter(None, JobTable())
        tasks, machines = tasks_of(0, 0), np.zeros(1, np.int32)
        # Not even the name of the job is looked up.
        writer.placed(0, tasks, machines, "s", None)
        writer.enqueued(0, tasks, machines, "s", None, Pace())
        writer.lost(0, 0, tasks, machines, Why.NO_ROOM)
        writer.attempt(0, 0, "s", 1, 0)
        writer.tasks(0, records.AbandonedRecord, tasks)
        assert not writer.has_details


def test_a_task_that_moves_keeps_its_index() -> None:
    """Starts at machines are passed on as soon as the host has run."""

    def script(engine: Scripted, event: Event, view: View, now: int) -> Sequence[Effect]:
        if isinstance(event, JobSubmitted):
            return [claim(view, event, 2, engine.context.name)]
        return ()

    bench = Bench(script)
    bench.host.submit(web(2))
    assert bench.machines.running == {}
    bench.go(1)
    assert [index_of(task) for task in bench.machines.running] == [0, 1]
    assert [machine for machine, _ in bench.machines.running.values()] == [2, 2]


@pytest.mark.parametrize("crashed", ["ledger", "published-1"])
def test_ends_are_told_to_the_views_that_are_there(crashed: str) -> None:
    """Two views follow one log, one keeps a ledger; one of the three is away for the second of three
    ends."""
    fleet = (
        FleetEntry(
            name="published", engine="murmuration", replicas=2, settings={"as_published": True}
        ),
        FleetEntry(name="ledger", engine="murmuration", takes=Takes(kinds=("none",))),
    )
    jobs = [job(f"j{seconds}", 1, seconds=seconds) for seconds in (5, 15, 25)]
    away = SchedulerCrash(at=10 * SECOND, scheduler=crashed, down=10 * SECOND)
    spec = scenario("murmuration", jobs, cell=cell(8), fleet=fleet, network=NO_LATENCY)
    world = SimulatedWorld(structs.replace(spec, faults=(away,)), find_engines(spec.engine_names()))
    world.run()
    assert world.host.runtime.ends_told == 3 + 2 + 3
