"""The table of jobs: what remains of a finished one, and that it is little."""

from __future__ import annotations

import tracemalloc

import pytest

from argosy.host.job_table import MOST_DEMANDS, OTHER_DEMAND, JobTable, demand_of
from argosy.model.jobs import Job
from argosy.model.resources import Resources
from argosy.model.truth import group_with_truth, simulated_job
from argosy.testing.builders import GIB, SECOND, job


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


def test_precedences_and_demands_of_forgotten_jobs_are_kept() -> None:
    jobs = [
        job("plain").job,
        job("urgent", precedence=-7).job,
        job("gang", 3, gang=True).job,
        job("fussy", requires={"disk": "ssd"}).job,
        job("large", cpu=2_000).job,
        job("devices", request=Resources(1_000, GIB, {"gpu": 1})).job,
    ]
    # More than room is made for at once.
    table = _table(*jobs * 300)
    table.forget(range(len(table)))
    assert table.precedences.tolist() == [each.precedence for each in jobs] * 300
    known = [*table.demand_codes]
    assert [known[code] for code in table.demands] == [demand_of(each) for each in jobs] * 300
    assert len(known) == 5


def test_only_so_many_demands_are_kept() -> None:
    table = _table(*[job("some", cpu=1 + n).job for n in range(MOST_DEMANDS + 2)])
    assert len(table.demand_codes) == MOST_DEMANDS
    assert table.demands[-3:].tolist() == [MOST_DEMANDS - 1, OTHER_DEMAND, OTHER_DEMAND]


def test_all_groups_of_a_job_are_counted_and_demanded() -> None:
    small, large = Resources(1_000, GIB), Resources(2_000, GIB, {"gpu": 1, "disk": 2})
    groups = [group_with_truth(2, small, (SECOND,)), group_with_truth(3, large, (SECOND,))]
    table = _table(
        job("plain", 4).job, simulated_job("both", *groups).job, job("gang", 2, gang=True).job
    )
    assert list(table.counts) == [4, 5, 2]
    assert table.gangs == [2]
    known = [*table.demand_codes]
    first, second = known[table.demands[1]].groups
    assert (first.cpu, first.extras) == (1_000, ())
    # The same whichever was written first.
    assert (second.cpu, second.extras) == (2_000, (("disk", 2), ("gpu", 1)))
    table.add(job("later", 6, gang=True).job)
    assert (list(table.counts)[3], table.gangs, table.kinds[3]) == (6, [2, 3], "batch")
