"""A job that has changed hands: whose crash ends which probes."""

from __future__ import annotations

from test_steps import read, rows

from argosy.host.records import (
    CrashedRecord,
    ProbedRecord,
    RestartedRecord,
    ResubmittedRecord,
    SubmittedRecord,
)
from argosy.records.steps import Step
from argosy.testing.builders import job


def test_probes_of_the_next_scheduler_outlive_another_crash_of_the_first() -> None:
    steps = read(
        SubmittedRecord(0, 0, job("a", 2).job, "s-0"),
        ProbedRecord(1, "a", [0, 1], [1, 2], "s-0"),
        CrashedRecord(2, "s-0"),
        ResubmittedRecord(3, "a", [0, 1], "s-1"),
        ProbedRecord(4, "a", [0], [3], "s-1"),
        RestartedRecord(5, "s-0"),
        CrashedRecord(6, "s-0"),
        CrashedRecord(7, "s-1"),
    )
    ends = [(row[0], row[1]) for row in rows(steps) if row[3] == Step.UNPROBED]
    assert ends == [(0, 2), (1, 2), (0, 7)]
    assert steps.scheduler_changes == [
        (2, "s-0", False),
        (5, "s-0", True),
        (6, "s-0", False),
        (7, "s-1", False),
    ]
