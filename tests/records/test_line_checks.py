"""Which line of a journal contradicts those before it, and how that is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from argosy.host import records
from argosy.host.job_state import JobState
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import AddMachine, DrainMachine
from argosy.model.units import LARGEST
from argosy.records.journal_checks import _LineCheck
from argosy.testing.builders import job

ADD = AddMachine(Machine("m2", Resources(1, 1)))


def placed(at: int = 0, **changes: Any) -> records.PlacedRecord:
    known = {"job": "a", "indices": [0], "machines": [0], "scheduler": "s"}
    return records.PlacedRecord(at, **{**known, **changes})


def submitted(number: int, name: str = "a", at: int = 0) -> records.SubmittedRecord:
    return records.SubmittedRecord(at, number, job(name, 2).job, "s")


def problems(*lines: Any) -> list[tuple[str, str]]:
    """Of the last line; those before it are right."""
    entry = SimpleNamespace(scheduler_names=lambda: ("s", "t"))
    cell = SimpleNamespace(machines=[None, None])
    setup: Any = SimpleNamespace(cell=cell, fleet=(entry,))
    check = _LineCheck(setup)
    for line in lines[:-1]:
        assert list(check.problems(line)) == []
    return [tuple(each) for each in check.problems(lines[-1])]


FIRST = submitted(0)


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([FIRST, placed()], []),
        ([FIRST, placed(machines=[1])], []),
        ([FIRST, placed(machines=[2])], [("machine 2", "0 to 1")]),
        ([FIRST, placed(machines=[-1])], [("machine -1", "0 to 1")]),
        ([FIRST, records.MachineRecord(0, ADD), placed(machines=[2])], []),
        ([records.MachineRecord(0, DrainMachine(1))], []),
        ([records.MachineRecord(0, DrainMachine(2))], [("machine 2", "0 to 1")]),
        ([FIRST, placed(indices=[0, 1])], [("1 machines", "2, one per task")]),
        ([FIRST, placed(indices=[-1])], [("task index -1", "0 to 2^32 - 1")]),
        ([FIRST, placed(indices=[1 << 32])], [("task index 4294967296", "0 to 2^32 - 1")]),
        ([FIRST, placed(indices=[(1 << 32) - 1])], []),
        ([FIRST, placed(job="b")], [("job 'b'", "one that was submitted")]),
        ([FIRST, placed(scheduler="u")], [("scheduler 'u'", "s, t")]),
        ([FIRST, placed(scheduler="t")], []),
        ([FIRST, placed(scheduler="s:part")], []),
        ([FIRST, placed(scheduler="part:s")], [("scheduler 'part:s'", "s, t")]),
        ([submitted(1)], [("job number 1", "0")]),
        ([FIRST, submitted(1, "b")], []),
        ([FIRST, submitted(0, "b")], [("job number 0", "1")]),
        ([submitted(0, at=5), placed(5)], []),
        ([submitted(0, at=5), placed(4)], [("time 4", "5 to 2^53")]),
        ([FIRST, placed(LARGEST)], []),
        ([FIRST, placed(LARGEST + 1)], [(f"time {LARGEST + 1}", "0 to 2^53")]),
        ([FIRST, records.CancelledRecord(0, 0, [0])], []),
        ([FIRST, records.CancelledRecord(0, 1, [0])], [("job number 1", "0")]),
        ([FIRST, records.CancelledRecord(0, -1, [0])], [("job number -1", "0")]),
        (
            [FIRST, submitted(1, "b"), records.CancelledRecord(0, -1, [0])],
            [("job number -1", "0 to 1")],
        ),
        ([records.CancelledRecord(0, 0, [0])], [("job number 0", "one that was submitted")]),
        ([FIRST, records.ConfirmedRecord(0, [task_number(0, 1)])], []),
        (
            [FIRST, records.ConfirmedRecord(0, [task_number(1, 0)])],
            [(f"task number {task_number(1, 0)}", "a task of a job that was submitted")],
        ),
    ],
)
def test_a_line_that_cannot_follow_says_what_could(
    lines: list[Any], found: list[tuple[str, str]]
) -> None:
    assert problems(*lines) == found


def test_jobs_of_an_earlier_life_are_known() -> None:
    restored = records.RestoredRecord(0, 0, job("a", 2).job, "s", JobState(submitted=0))
    assert problems(restored, placed()) == []
    assert problems(restored, submitted(1, "b"), placed(job="b")) == []
    assert problems(restored, submitted(0, "b")) == [("job number 0", "1")]
