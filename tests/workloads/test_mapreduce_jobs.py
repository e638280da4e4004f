"""MapReduce jobs in the clusters: drawn by the numbers of `mapreduce.toml`, and written to traces."""

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from argosy.model.errors import ArgosyError, TraceError
from argosy.model.random import Random
from argosy.scenarios.loader import load
from argosy.testing import builders
from argosy.testing.builders import SECOND
from argosy.workloads import clusters, mapreduce
from argosy.workloads.trace import read_trace, write_trace

DAY = 86_400 * SECOND


def drawn(cluster: str = "D", days: float = 5, **how: float) -> list[mapreduce.SimulatedJob]:
    spec = clusters.cluster(cluster)
    return list(mapreduce.jobs(spec, int(days * DAY), Random(1), **how))


def test_a_fifth_of_all_jobs_are_mapreduce_jobs_in_place_of_batch_jobs() -> None:
    kinds = Counter(job.kind for job in drawn(days=10))
    plain = Counter(j.kind for j in clusters.jobs(clusters.cluster("D"), 10 * DAY, Random(1)))
    total = sum(kinds.values())
    assert kinds["mapreduce"] / total == pytest.approx(0.2, rel=0.05)
    assert total == pytest.approx(sum(plain.values()), rel=0.03)
    assert kinds["service"] == plain["service"]


def test_jobs_are_as_long_as_the_literature_says() -> None:
    """Sum 1 of the file."""
    made = mapreduce.shape()
    maps = made.maps_per_hundred.average / 100
    assert maps == pytest.approx(19.4, rel=0.01)
    assert made.reduces_per_hundred.average / 100 == pytest.approx(0.40, rel=0.02)
    length = maps * made.map_duration.average + made.reduce_duration.average
    assert 634 < length / SECOND < 874


def test_jobs_are_as_large_as_batch_jobs() -> None:
    """Sum 2 of the file."""
    means = [clusters.cluster(name).kinds["batch"].tasks.average for name in ("A", "C")]
    assert mapreduce.shape().mean_workers() == pytest.approx(sum(means) / 2, rel=0.06)


def test_most_large_jobs_have_many_more_activities_than_workers() -> None:
    large = [job for job in drawn(days=30) if job.kind == "mapreduce" and job.tasks >= 200]
    ratios = sorted(job.job.activities[0] / job.tasks for job in large)
    assert len(large) > 100
    assert ratios[len(ratios) // 2] > 1
    assert sum(ratios) / len(ratios) > 10


def test_runs_of_a_program_take_about_as_long() -> None:
    durations: dict[str, list[int]] = {}
    for job in drawn(days=5):
        if job.kind == "mapreduce":
            durations.setdefault(job.job.program, []).append(job.truth[0].phases[0])
    repeated = [times for times in durations.values() if len(times) > 1]
    assert len(repeated) > 10
    for times in repeated:
        assert max(times) / min(times) <= 1.2 / 0.8 + 1e-6


def test_jobs_are_the_same_each_time_and_a_rate_of_zero_leaves_them_out() -> None:
    assert drawn(days=1) == drawn(days=1)
    spec = clusters.cluster("D")
    without = mapreduce.jobs(spec, DAY, Random(1), rate={"mapreduce": 0.0})
    assert {job.kind for job in without} == {"batch", "service"}


def test_a_trace_gives_the_same_jobs_back(tmp_path: Path) -> None:
    jobs = list(islice(drawn(days=2), 50))
    assert any(job.job.activities for job in jobs)
    write_trace(tmp_path / "jobs.jsonl", jobs)
    assert list(read_trace(tmp_path / "jobs.jsonl")) == jobs


def test_a_trace_gives_every_field_of_a_job_back(tmp_path: Path) -> None:
    of_group = {"tags": ("web",), "requires": {"arch": "x86"}, "prefers": {"rack": "r1"}}
    of_job = {"precedence": 3, "gang": True, "owner": "ann", "program": "count"}
    made = [
        builders.job("a", 2, submit=1, estimate=7, **of_group, **of_job),
        builders.job("b", 1, submit=2, seconds=None),
    ]
    write_trace(tmp_path / "jobs.jsonl", made)
    assert list(read_trace(tmp_path / "jobs.jsonl")) == made


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ('"phases": [{"activities": 0, "duration": "1s"}]', "0 activities"),
        ('"duration": "1s", "phases": [{"activities": 1, "duration": "1s"}]', "both phases"),
        ('"phases": [{"activities": 1}]', "duration"),
    ],
)
def test_a_mistake_in_phases_is_reported_with_its_line(
    keys: str, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "jobs.jsonl"
    good = '{"id": "a", "count": 2, "request": {"cpu": 100}, "duration": "1s"}\n'
    path.write_text(good + '{"id": "b", "request": {"cpu": 100}, ' + keys + "}\n")
    with pytest.raises(TraceError, match=expected) as caught:
        list(read_trace(path))
    assert caught.value.line == 2


def test_a_scenario_spells_phases_out(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text(
        """
name = "words"
[[cell.machines]]
name = "m"
count = 4
capacity = { cpu = 4000, memory = "8GiB" }
[[workload.jobs]]
id = "words"
program = "count words"
count = 3
request = { cpu = 500 }
phases = [{ activities = 120, duration = "20s" }, { activities = 3, duration = "1min" }]
[[fleet]]
name = "mr"
engine = "mapreduce"
"""
    )
    (job,) = load(path).jobs
    assert job.job.program == "count words"
    assert (job.job.activities, job.truth[0].phases) == ((120, 3), (20 * SECOND, 60 * SECOND))
    path.write_text(path.read_text().replace("activities = 120", "activities = -1"))
    with pytest.raises(ArgosyError, match="-1 activities") as caught:
        load(path)
    assert caught.value.line is not None


def test_a_cluster_has_mapreduce_jobs_where_a_scenario_asks_for_them() -> None:
    scenario = load(Path(__file__).parents[2] / "scenarios" / "mapreduce.toml")
    assert {job.kind for job in scenario.jobs} == {"mapreduce", "batch", "service", "fill"}
    assert all(bool(job.job.activities) == (job.kind == "mapreduce") for job in scenario.jobs)
