"""Traces of the Eagle simulator, jobs drawn like them, and the arrival patterns of figure 2."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from argosy.model.errors import ArgosyError, TraceError
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.scenarios.loader import load
from argosy.workloads import eagle, fanout
from argosy.workloads.synthetic import Estimates

SECOND = 1_000_000


def a_trace(directory: Path, text: str) -> Path:
    path = directory / "jobs.tr"
    path.write_text(text)
    return path


def test_a_line_is_a_job_with_a_duration_for_each_task(tmp_path: Path) -> None:
    path = a_trace(tmp_path, "7.5 2 10 8 12\n15 1 0.25 0.25\n")
    first, second = eagle.read(path, Random(1), speedup=1000)
    assert (first.id, first.submit, second.submit) == ("job-1", 7_500, 15_000)
    assert first.truth[0].durations == (8 * SECOND, 12 * SECOND)
    assert first.groups[0].estimate == 10 * SECOND
    assert second.truth[0].durations == (250_000,)
    assert first.groups[0].request == Resources(cpu=1000)


def test_a_list_without_durations_gets_some_of_the_job_s_mean(tmp_path: Path) -> None:
    path = a_trace(tmp_path, f"{eagle.HEADING}\nbig,0,4000,50\nsmall,1,3,0.01\n")
    big, small = eagle.read(path, Random(1))
    seconds = np.array(big.truth[0].durations) / SECOND
    assert big.id == "big"
    assert seconds.mean() == pytest.approx(50, abs=1e-5)
    assert seconds.var() == pytest.approx(100, rel=0.1)
    assert np.mean(small.truth[0].durations) == pytest.approx(10_000, abs=1)


def test_estimates_are_wrong_within_their_range(tmp_path: Path) -> None:
    path = a_trace(tmp_path, "".join(f"{at} 1 100 100\n" for at in range(400)))
    wrong = Estimates(low=0.5, high=1.5)
    told = [job.groups[0].estimate for job in eagle.read(path, Random(1), estimates=wrong)]
    factors = np.array(told) / (100 * SECOND)
    assert 0.5 <= factors.min() < 0.52
    assert 1.48 < factors.max() < 1.5
    right = next(eagle.read(path, Random(1)))
    assert right.groups[0].estimate == 100 * SECOND


def test_only_the_requested_number_of_jobs_is_read(tmp_path: Path) -> None:
    path = a_trace(tmp_path, "0 1 1 1\n1 1 1 1\nnonsense\n")
    assert len(list(eagle.read(path, Random(1), most=2))) == 2


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("0 1 1 1\n0 2 1 1\n", 2, "durations"),
        ("0 x 1 1\n", 1, "tasks"),
        (f"0 {'9' * 5_000} 1 1\n", 1, "tasks"),
        ("0 0 1\n", 1, "tasks"),
        ("-1 1 1 1\n", 1, "submit"),
        ("0 1 nan 1\n", 1, "mean"),
        ("5 1 1 1\n\n4 1 1 1\n", 3, "submit"),
        ("0 1\n", 1, None),
        (f"{eagle.HEADING}\na,0,1,1,1\n", 2, None),
    ],
)
def test_a_mistake_in_a_trace_is_reported_with_its_line(
    tmp_path: Path, text: str, line: int, field: str | None
) -> None:
    with pytest.raises(TraceError) as caught:
        list(eagle.read(a_trace(tmp_path, text), Random(1)))
    assert (caught.value.line, caught.value.field) == (line, field)
    assert caught.value.expected


@pytest.mark.parametrize(
    ("name", "fans", "seconds", "gap", "per_job"),
    # Of the traces' first 10,000 jobs; the last is slot-seconds per job.
    [
        ("yahoo", (15, 636), (15.7, 2410), 7.5, 27_426),
        ("cloudera", (126, 3650), (47.8, 2515), 12.3, 169_151),
    ],
)
def test_drawn_jobs_have_the_characteristics_of_table_2(
    name: str, fans: tuple[int, int], seconds: tuple[float, float], gap: float, per_job: float
) -> None:
    spec = fanout.shape(name)
    means = np.array(spec.duration.steps) / SECOND
    above = np.array([least for least, _ in spec.fanouts]) / SECOND
    curves = [np.array(curve.steps) for _, curve in spec.fanouts]
    counts = np.concatenate(curves)
    # So many draws are of each curve.
    shares = [
        np.mean((means > low) & (means <= high))
        for low, high in zip(above, [*above[1:], np.inf], strict=True)
    ]
    weights = np.repeat([share / len(curves[0]) for share in shares], len(curves[0]))
    order = np.argsort(counts)
    reached = np.cumsum(weights[order])
    middle, tail = (counts[order][np.searchsorted(reached, at)] for at in (0.5, 0.99))
    assert (middle, tail) == pytest.approx(fans, rel=0.12)
    assert np.percentile(means, (50, 99)) == pytest.approx(seconds, rel=0.05)
    work = sum(
        means[(means > low) & (means <= high)].sum() / len(means) * curve.mean()
        for low, high, curve in zip(above, [*above[1:], np.inf], curves, strict=True)
    )
    assert work == pytest.approx(per_job, rel=0.15)
    jobs = list(fanout.generate(spec, 300, Random(1), scale=0.1))
    gaps = np.diff([job.submit for job in jobs]) / SECOND
    assert np.median(gaps) == pytest.approx(gap, rel=0.03)


@pytest.mark.parametrize("name", sorted(fanout.PATTERNS))
def test_a_pattern_offers_tasks_at_its_median_rate_and_never_above_its_peak(name: str) -> None:
    pattern = fanout.PATTERNS[name]
    jobs = list(fanout.generate(fanout.shape("yahoo"), 6000, Random(2), pattern=name))
    offered = np.cumsum([0, *(job.tasks for job in jobs)])[:-1]
    submit = np.array([job.submit for job in jobs]) / SECOND
    # How much had been offered by each second; within a large job the rate is even.
    per_minute = np.diff(np.interp(np.arange(0, submit[-1], 60), submit, offered)) / 60
    assert np.median(per_minute) == pytest.approx(pattern.median, rel=0.15)
    assert per_minute.max() <= pattern.peak * 1.001


@pytest.mark.parametrize("name", sorted(fanout.PATTERNS))
def test_tasks_that_come_one_by_one_have_the_pattern_s_median_and_peak(name: str) -> None:
    pattern = fanout.PATTERNS[name]
    jobs = list(fanout.generate(fanout.shape("yahoo"), 700, Random(2)))
    tasks = list(fanout.one_by_one(jobs, name, Random(3)))
    per_second = np.bincount(np.array([task.submit for task in tasks]) // SECOND)
    assert np.median(per_second) == pytest.approx(pattern.median, rel=0.25)
    assert per_second.max() == pytest.approx(pattern.peak, abs=1.01)


def test_tasks_that_come_one_by_one_keep_their_order_durations_and_job() -> None:
    jobs = list(fanout.generate(fanout.shape("yahoo"), 20, Random(2)))
    tasks = list(fanout.one_by_one(jobs, "A", Random(3)))
    submits = [task.submit for task in tasks]
    assert submits == sorted(submits)
    assert [task.job.owner for task in tasks] == [job.id for job in jobs for _ in range(job.tasks)]
    assert [task.truth[0].durations[0] for task in tasks] == [
        duration for job in jobs for duration in job.truth[0].durations
    ]
    assert len({task.id for task in tasks}) == len(tasks)


def test_a_speed_up_brings_the_same_jobs_sooner() -> None:
    slow, fast = (
        list(islice(fanout.generate(fanout.shape("yahoo"), 50, Random(3), speedup=speed), 50))
        for speed in (1.0, 1000.0)
    )
    assert [job.groups for job in slow] == [job.groups for job in fast]
    assert [job.submit // 1000 for job in slow] == [job.submit for job in fast]


SCENARIO = """
name = "t"
[[cell.machines]]
name = "m"
count = 4
capacity = {{ cpu = 1000 }}
[workload.{table}]
{keys}
[[fleet]]
name = "s"
engine = "murmuration"
"""


def write(directory: Path, table: str, keys: str) -> Path:
    path = directory / "scenario.toml"
    path.write_text(SCENARIO.format(table=table, keys=keys))
    return path


def test_a_scenario_names_a_trace_or_has_jobs_drawn(tmp_path: Path) -> None:
    a_trace(tmp_path, "0 1 1 1\n10 1 1 1\n")
    read = load(write(tmp_path, "eagle", 'path = "jobs.tr"\nspeedup = 10'))
    assert [job.submit for job in read.jobs] == [0, SECOND]
    drawn = load(write(tmp_path, "fanout", 'name = "yahoo"\njobs = 20\npattern = "C"\nscale = 0.1'))
    assert len(drawn.jobs) == 20
    assert drawn.jobs == load(tmp_path / "scenario.toml").jobs


@pytest.mark.parametrize(
    ("table", "keys", "field"),
    [
        ("eagle", 'path = "none.tr"', "workload.eagle.path"),
        ("eagle", 'path = "jobs.tr"\nrequest = { gpu = 1 }', "workload.eagle.request.gpu"),
        ("fanout", 'name = "yaho"\njobs = 3', "workload.fanout.name"),
        ("fanout", 'name = "yahoo"\njobs = 2000000', "workload.fanout.jobs"),
        ("fanout", 'name = "yahoo"\njobs = 3\npattern = "E"', "workload.fanout.pattern"),
    ],
)
def test_a_mistake_in_the_table_is_reported_with_its_field(
    tmp_path: Path, table: str, keys: str, field: str
) -> None:
    a_trace(tmp_path, "0 1 1 1\n")
    with pytest.raises(ArgosyError) as caught:
        load(write(tmp_path, table, keys))
    assert caught.value.field == field
    assert caught.value.line
