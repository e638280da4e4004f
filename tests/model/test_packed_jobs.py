"""Workloads that are too large to be kept as objects."""

import pickle
import tracemalloc
from collections.abc import Iterator

import pytest

from argosy.model.constraints.text import parse_constraint
from argosy.model.packed_jobs import BLOCK, MOST_KEPT, PackedJobs, census_of, packed
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob, group_with_truth, simulated_job
from argosy.testing.builders import job

CONSTRAINT = parse_constraint("a -> {a, 0, 0} in rack hard")


def some(count: int) -> Iterator[SimulatedJob]:
    for number in range(count):
        yield job(
            f"job-{number}",
            1 + number % 3,
            seconds=2 + number % 7,
            submit=number // 2,
            kind="service" if number % 5 == 0 else "batch",
            precedence=number % 2,
            gang=number % 4 == 0,
            constraints=(CONSTRAINT,) if number % 9 == 0 else (),
        )


@pytest.mark.parametrize("count", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_packed_jobs_are_the_jobs(count: int) -> None:
    jobs, kept = PackedJobs(some(count)), tuple(some(count))
    assert len(jobs) == count
    assert bool(jobs) == bool(count)
    assert tuple(jobs) == tuple(jobs) == kept
    assert jobs == kept
    assert kept == jobs
    assert jobs == PackedJobs(some(count))
    assert jobs != PackedJobs(some(count + 1))
    assert pickle.loads(pickle.dumps(jobs)) == jobs
    if count:
        assert (jobs[0], jobs[-1], jobs[count // 2]) == (kept[0], kept[-1], kept[count // 2])
        assert jobs[1:5] == kept[1:5]
    with pytest.raises(IndexError):
        jobs[count]


def test_one_job_that_differs_makes_a_difference() -> None:
    jobs = PackedJobs(some(BLOCK + 3))
    changed = [*some(BLOCK + 2), job("another")]
    assert jobs != changed
    assert jobs != "text"


def test_only_workloads_of_some_weight_are_packed() -> None:
    assert isinstance(packed(some(100)), tuple)
    assert packed(some(100), most=100) == packed(some(100)) == tuple(some(100))
    assert isinstance(packed(some(100), most=100), PackedJobs)
    # Two jobs weigh as much as all others if each of their tasks has a duration of its own.
    half = MOST_KEPT // 2
    varied = group_with_truth(half, Resources(cpu=1), tuple(range(1, half + 1)))
    heavy = [simulated_job(name, varied) for name in "ab"]
    assert isinstance(packed(heavy), PackedJobs)


def test_packed_jobs_are_counted_once_and_like_others() -> None:
    mine, theirs = census_of(PackedJobs(some(300))), census_of(tuple(some(300)))
    assert mine.counts == theirs.counts
    assert sum(mine.counts.values()) == 300
    assert mine.first_of_kind == theirs.first_of_kind == {"service": "job-0", "batch": "job-1"}
    assert mine.first_endless is theirs.first_endless is None


def peak_while_read(count: int) -> int:
    """Bytes that packing a workload and reading it takes at most, beside what is there already."""
    tracemalloc.start()
    jobs = packed(some(count), most=0)
    assert sum(1 for _ in jobs) == count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_a_packed_job_takes_few_bytes() -> None:
    more = peak_while_read(12 * BLOCK) - peak_while_read(4 * BLOCK)
    assert more < 8 * BLOCK * 60
