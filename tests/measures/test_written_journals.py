"""Summaries of journals that were written by hand, and gangs that were split."""

from __future__ import annotations

import io
from typing import Any

import pytest

from argosy.experiments.execute import execute_in_memory
from argosy.host.journal import Journal
from argosy.host.records import (
    AbandonedRecord,
    EndedRecord,
    MachineRecord,
    PhaseEndedRecord,
    PlacedRecord,
    RefusedRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.measures.from_journal import sample_times, summarise_state
from argosy.model.explanations import Explanation, Why
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import (
    AddMachine,
    MachineChange,
    RemoveMachine,
    ResizeMachine,
    ReviveMachine,
)
from argosy.records.journal_file import JournalFile
from argosy.records.state import RunState
from argosy.records.summary import Summary
from argosy.testing.builders import GIB, SECOND, cell, job, scenario, shared_job

END = 100 * SECOND


def summarised(*facts: Any, machines: int = 1, until: int = END) -> Summary:
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(scenario("omega", [], cell=cell(machines))))
    for fact in facts:
        journal.write(fact)
    journal.flush()
    return summarise_state(RunState.of(JournalFile(stream.getvalue()), until))


def submitted(number: int, made: Any, at: int = 0) -> SubmittedRecord:
    return SubmittedRecord(at, number, made.job, "s-0")


def placed(at: int, name: str, *indices: int) -> PlacedRecord:
    return PlacedRecord(at, name, list(indices), [0] * len(indices), "s-0")


def test_a_job_with_several_abandoned_tasks_is_one_abandoned_job() -> None:
    why = Explanation(remedy="wait")
    found = summarised(
        submitted(0, job("a", 3)),
        submitted(1, job("b", 2)),
        AbandonedRecord(1, "a", [0, 2], "s-0", why),
    )
    assert (found.counts.jobs_abandoned, found.counts.tasks_abandoned) == (1, 2)
    assert found.kinds["batch"].jobs_abandoned == 1


class TestUse:
    """One task holds a quarter of the first machine all the time."""

    def used(self, *changes: tuple[int, MachineChange]) -> float:
        facts = (MachineRecord(at * SECOND, change) for at, change in changes)
        found = summarised(submitted(0, job("a")), placed(0, "a", 0), *facts)
        return found.utilisation["cpu"]

    def test_machines_count_while_they_are_there(self) -> None:
        new = AddMachine(Machine("new", Resources(4_000, GIB)))
        assert self.used() == 0.25
        assert self.used((50, new)) == 1 / 6
        assert self.used((50, new), (75, RemoveMachine(1))) == 0.2
        assert self.used((50, new), (60, RemoveMachine(1)), (85, ReviveMachine(1))) == 0.2
        assert self.used((0, new), (0, RemoveMachine(1))) == 0.25

    def test_a_machine_counts_with_the_size_that_it_has_by_then(self) -> None:
        half = ResizeMachine(0, Resources(2_000, GIB))
        assert self.used((50, half)) == 1 / 3
        new = AddMachine(Machine("new", Resources(4_000, GIB)))
        grown = ResizeMachine(1, Resources(8_000, GIB))
        # While it is away, its size does not count.
        away = (0, new), (0, RemoveMachine(1)), (10, grown)
        assert self.used(*away) == 0.25
        assert self.used(*away, (50, ReviveMachine(1))) == 0.125
        assert self.used((0, new), (50, grown), (75, RemoveMachine(1))) == 0.125

    def test_samples_are_of_what_was_held_just_before(self) -> None:
        found = summarised(
            submitted(0, job("a", 2)),
            placed(SECOND, "a", 0),
            placed(2 * SECOND, "a", 1),
            EndedRecord(3 * SECOND, [0]),
            until=4 * SECOND,
        )
        assert found.series["at"] == [0, *(n * SECOND for n in (1, 2, 3, 4))]
        assert found.series["cpu"] == [0.0, 0.0, 0.25, 0.5, 0.25]
        assert found.series["running"] == [0, 0, 1, 2, 1]


@pytest.mark.parametrize(
    ("seconds", "spacing", "count"),
    [(0, 1, 1), (398, 1, 399), (399, 2, 200), (797, 2, 399), (798, 4, 200)],
)
def test_there_are_less_than_four_hundred_samples(seconds: int, spacing: int, count: int) -> None:
    times = sample_times(seconds * SECOND).tolist()
    assert times == [n * spacing * SECOND for n in range(count)]


def test_work_that_is_done_at_once_is_no_faster() -> None:
    made = shared_job("m", 2, (4, 2), (1.0, 3.0))

    def faster(ended_at: int, *starts: int) -> Any:
        facts = [placed(at, "m", index) for index, at in enumerate(starts)]
        phases = [
            PhaseEndedRecord(ended_at, 0, 0, SECOND),
            PhaseEndedRecord(ended_at, 0, 1, 3 * SECOND),
        ]
        return summarised(submitted(0, made), *facts, *phases).speed_up

    # Two workers need 2 s for four activities of one, and 3 s for two of three.
    assert faster(10 * SECOND, 5 * SECOND, 8 * SECOND).p50 == 1.0
    assert faster(15 * SECOND, 5 * SECOND, 8 * SECOND).p50 == 0.5
    assert faster(5 * SECOND, 5 * SECOND).p50 == 1.0
    assert summarised(submitted(0, made)).speed_up is None


def test_conflicts_are_a_share_of_what_succeeded() -> None:
    def refused(at: int) -> RefusedRecord:
        return RefusedRecord(at, "a", [3], [0], "s-0", [int(Why.NO_ROOM)], [0], [0])

    facts = submitted(0, job("a", 4)), placed(1, "a", 0), placed(2, "a", 1)
    assert summarised(*facts).conflict_fraction == 0.0
    found = summarised(*facts, refused(3))
    assert [each.transactions for each in found.schedulers] == [3, 0]
    assert found.schedulers[0].refused == {"no_room": 1}
    assert found.conflict_fraction == 0.5
    assert summarised(facts[0], refused(3), refused(4)).conflict_fraction == 2.0


@pytest.mark.parametrize(
    ("tasks", "horizon", "split"),
    [
        (2, 60, 0),
        # Two start together, and the third is not there in the end.
        (3, 5, 1),
        # All of them start, one of them later.
        (3, 60, 1),
    ],
)
def test_a_gang_is_split_if_its_tasks_do_not_all_start_at_once(
    tasks: int, horizon: int, split: int
) -> None:
    spec = scenario(
        "sparrow",
        [job("g", tasks, gang=True, seconds=10)],
        replicas=1,
        cell=cell(2, cpu=1_000),
        horizon=horizon * SECOND,
    )
    counts = execute_in_memory(spec).summary().counts
    assert (counts.gangs, counts.gangs_split) == (1, split)
    assert counts.tasks_running + counts.tasks_finished == (2 if horizon == 5 else tasks)
