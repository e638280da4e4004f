"""Sums over parts: blocks of jobs, phases in whatever order they ended, columns of a digest, and
machines of a single unit."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import numpy as np
import pytest

from argosy.experiments.execute import execute_in_memory
from argosy.host.journal import Journal
from argosy.host.records import (
    CrashedRecord,
    MachineRecord,
    PhaseEndedRecord,
    PlacedRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.measures import measure
from argosy.measures.from_journal import summarise_state
from argosy.measures.measure import breakdown
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.scenario import CellSpec
from argosy.model.transactions import RemoveMachine
from argosy.records.journal_file import JournalFile
from argosy.records.state import RunState
from argosy.records.summary import Summary
from argosy.testing.builders import GIB, SECOND, cell, job, scenario, shared_job


def summarised(*facts: Any, capacity: Resources, until: int) -> Summary:
    stream = io.BytesIO()
    journal = Journal(stream)
    one = CellSpec(machines=(Machine("m", capacity),))
    journal.begin(HostSetup.of(scenario("omega", [], cell=one)))
    for fact in facts:
        journal.write(fact)
    journal.flush()
    return summarise_state(RunState.of(JournalFile(stream.getvalue()), until))


@pytest.mark.parametrize("at_once", [1, 2, 3, 9])
def test_the_parts_of_completion_times_are_of_all_jobs_however_many_are_added_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "_AT_ONCE", at_once)
    columns = [(0, 1, 3, 7), (10, 12, 15, 20), (20, -1, 28, 44), (30, 31, 32, -1)]
    parts = breakdown(*(np.array(column, np.int64) for column in zip(*columns, strict=True)))
    # The last job is not done; of the third, which nobody thought about, all eight are waiting.
    assert parts == {"waiting": 11 / 3, "placing": 5 / 3, "running": 25 / 3}


@pytest.mark.parametrize("phases", [(0, 1), (1, 0)])
def test_time_asked_is_of_the_phases_in_their_own_order(phases: tuple[int, int]) -> None:
    made = shared_job("m", 2, (4, 2), (1.0, 3.0))
    took = (SECOND, 3 * SECOND)
    facts = [
        SubmittedRecord(0, 0, made.job, "s-0"),
        PlacedRecord(SECOND, "m", [0], [0], "s-0"),
        *(PhaseEndedRecord(11 * SECOND, 0, phase, took[phase]) for phase in phases),
    ]
    found = summarised(*facts, capacity=Resources(8_000, 8 * GIB), until=20 * SECOND).speed_up
    assert found is not None
    # Two workers need 2 s and 3 s; it took 10.
    assert found.p50 == 0.5


def test_a_machine_of_one_unit_is_used_whole_and_one_that_is_gone_not_at_all() -> None:
    facts = [
        SubmittedRecord(0, 0, job("a", cpu=1, memory=0).job, "s-0"),
        PlacedRecord(SECOND, "a", [0], [0], "s-0"),
        MachineRecord(2 * SECOND, RemoveMachine(0)),
    ]
    found = summarised(*facts, capacity=Resources(1, 1), until=3 * SECOND)
    assert found.series["cpu"][:3] == [0.0, 0.0, 1.0]
    assert found.series["memory"] == [0.0] * 4
    assert found.utilisation["memory"] == 0.0


def test_crashes_and_jobs_are_those_of_their_schedulers() -> None:
    facts = [
        SubmittedRecord(0, 0, job("a").job, "s-1"),
        SubmittedRecord(0, 1, job("b").job, "s-1"),
        CrashedRecord(1, "s-1"),
        CrashedRecord(2, "s-0"),
        CrashedRecord(3, "s-1"),
    ]
    found = summarised(*facts, capacity=Resources(1, 1), until=9).schedulers
    assert [(each.name, each.engine, each.jobs, each.crashes) for each in found] == [
        ("s-0", "omega", 0, 1),
        ("s-1", "omega", 2, 2),
    ]


def test_a_digest_is_of_the_journal_and_of_every_column_of_tasks() -> None:
    jobs = [job("a", 3), job("b", 2, seconds=None)]
    run = execute_in_memory(scenario("omega", jobs, horizon=15 * SECOND))
    assert len(run.kept_tasks()["task"]) == 5
    digest = hashlib.blake2b(run.read_journal().data, digest_size=16)
    for column in run.kept_tasks().values():
        digest.update(column.astype(column.dtype.newbyteorder("<")).tobytes())
    assert run.summary().log_digest == digest.hexdigest()


@pytest.mark.parametrize(("second", "split"), [(1_000, 1), (3_000, 2)])
def test_gangs_that_were_split_are_counted_wherever_they_stand(second: int, split: int) -> None:
    """There is room for two tasks of three cores each; only of smaller ones, all start at once."""
    jobs = [
        job(f"g{at}", 3, cpu=cpu, seconds=5, gang=True, submit=at)
        for at, cpu in ((0, 3_000), (30, second))
    ]
    spec = scenario("sparrow", jobs, cell=cell(2), replicas=1, horizon=60 * SECOND)
    counts = execute_in_memory(spec).summary().counts
    assert (counts.gangs, counts.gangs_split, counts.tasks_finished) == (2, split, 6)
