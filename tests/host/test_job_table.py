"""The table of jobs: what remains of a finished one, and that it is little."""

from __future__ import annotations

import tracemalloc

import pytest

from argosy.host.job_table import JobTable
from argosy.model.jobs import Job
from argosy.testing.builders import job


def _table(*jobs: Job) -> JobTable:
    table = JobTable()
    for each in jobs:
        table.add(each)
    return table


def test_ids_come_back_as_they_were() -> None:
    ids = ["a", "job-1", "größer", "任务", "a", "last"]
    names = _table(*[Job(each, job("some", 1).job.groups) for each in ids]).names
    assert list(names) == ids
    assert (names[0], names[-1], names[1:4]) == ("a", "last", ids[1:4])
    assert names.index("任务") == 3
    for beyond in (6, -7):
        with pytest.raises(IndexError):
            names[beyond]


def test_kinds_come_back_as_they_were() -> None:
    kinds = ["batch", "service", "batch", "batch"]
    column = _table(*[job("some", 1, kind=kind).job for kind in kinds]).kinds
    assert list(column) == kinds
    assert (column[-1], column[1:3]) == ("batch", ["service", "batch"])


def test_a_forgotten_job_takes_few_bytes() -> None:
    """Its id of eleven characters included. Room for growth may double it."""
    count, table = 20_000, JobTable()
    made = job("some", 2).job
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(count):
            table.add(Job(f"job-{number:07}", made.groups))
            table.forget([number])
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before <= 60 * count
