"""What is measured at a point of the Omega paper: on jobs that are given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from argosy.model.machines import Machine
from argosy.model.random import Random
from argosy.model.resources import Resources
from argosy.model.truth import SimulatedJob
from argosy.papers.experiment import ExperimentPoint, Findings, Parameter, PointResult, digest
from argosy.papers.omega import reading, workload
from argosy.papers.omega.points import _effort, plan
from argosy.papers.omega.world import _daily_mad, fleet, run_point
from argosy.testing.builders import job
from argosy.workloads import clusters

HOUR = 3_600


def point(figure: str = "8", **parameters: Parameter) -> ExperimentPoint:
    return ExperimentPoint(paper="omega", figure=figure, parameters=parameters, seed=1, scale="t")


@pytest.fixture
def on_jobs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs a point on these jobs, with one machine of a hundred cores."""
    one = (Machine("m", Resources(100_000, 2**40)),)
    monkeypatch.setattr(clusters, "machines", lambda *given, **more: one)
    monkeypatch.setattr(clusters, "fill", lambda *given, **more: iter(()))

    def run(jobs: list[SimulatedJob], **parameters: Parameter) -> PointResult:
        monkeypatch.setattr(clusters, "jobs", lambda *given, **more: iter(jobs))
        return run_point(point(**parameters))

    return run


#: Batch jobs of two tasks that come in pairs on two days, a service of four tasks, and a batch job that
#: no machine can hold.
JOBS = [
    job("b0", 2, kind="batch"),
    job("b1", 2, kind="batch"),
    job("s0", 4, kind="service", submit=10),
    job("large", 1, cpu=200_000, kind="batch", submit=30),
    job("b2", 2, kind="batch", submit=25 * HOUR),
    job("b3", 2, kind="batch", submit=25 * HOUR),
]


def test_measures_by_kind_are_of_the_jobs_of_that_kind(on_jobs: Any) -> None:
    found = on_jobs(
        JOBS, hours=48.0, batch_t_job=1.0, batch_t_task=0.5, service_t_job=8.0, service_t_task=1.0
    )
    # A batch job takes 1 + 2 x 0.5 s; the second of a pair waits for the first. The large one is tried
    # over and over. The run ends with the last task, which runs for 10 s.
    ended = 25 * HOUR + 2 * 2 + 10
    assert found["batch.jobs"] == 5
    assert found["batch.begun"] == 5
    assert found["service.jobs"] == found["service.begun"] == 1
    assert found["batch.unscheduled"] == pytest.approx(1 / 5)
    assert found["service.unscheduled"] == 0
    assert found["service.wait"] == 0
    assert found["service.placed_p90"] == pytest.approx(8 + 4)
    assert found["service.busyness_once"] == pytest.approx(12 / ended)
    assert found["batch.busyness_once"] == pytest.approx((4 * 2 + 1.5) / ended)
    assert found["service.conflicts"] == 0
    assert found["batch.abandoned"] == 1
    assert found["tasks_abandoned"] == 1
    assert found["tasks_pending"] == 0


def test_jobs_that_nobody_began_with_are_not_decided_on_nor_waited_for(on_jobs: Any) -> None:
    """In an hour, the first of two batch jobs of 4,000 s each is still being decided on."""
    found = on_jobs(JOBS[:3], hours=1.0, batch_t_job=4_000.0, batch_t_task=0.0)
    assert (found["batch.jobs"], found["batch.begun"], found["batch.unscheduled"]) == (2, 1, 1)
    assert found["batch.busyness_once"] == pytest.approx(4_000 / HOUR)
    assert (found["batch.wait"], found["batch.wait_mad"]) == (0, 0)


def test_deciding_once_is_shared_by_the_schedulers_of_a_kind(on_jobs: Any) -> None:
    one, two = (on_jobs(JOBS, hours=30.0, batch_t_job=1.0, schedulers=count) for count in (1, 2))
    assert one["batch.busyness_once"] == pytest.approx(2 * two["batch.busyness_once"])
    assert one["service.busyness_once"] == two["service.busyness_once"]


def test_a_single_path_decides_on_batch_jobs_like_on_services(on_jobs: Any) -> None:
    """The second job of a pair waits for 8 + 2 x 1 s, which differs from day to day by nothing."""
    times = {
        "batch_t_job": 1.0, "batch_t_task": 0.5, "service_t_job": 8.0, "service_t_task": 1.0,
    }  # fmt: skip
    jobs = [each for each in JOBS if each.id != "large"]
    single, multi = (
        on_jobs(jobs, hours=48.0, scheme=scheme, **times)
        for scheme in ("single-path", "multi-path")
    )
    assert single["batch.wait"] == pytest.approx((0 + 10 + 0 + 10) / 4)
    assert multi["batch.wait"] == pytest.approx((0 + 2 + 0 + 2) / 4)
    assert single["batch.busyness_once"] == pytest.approx(4 * 10 / (25 * HOUR + 2 * 10 + 10))
    assert multi["batch.busyness_once"] == pytest.approx(4 * 2 / (25 * HOUR + 2 * 2 + 10))
    assert single["service.wait"] == pytest.approx(20 - 10)
    assert single["batch.wait_mad"] == 0
    assert single["batch.placed_p90"] == pytest.approx(20)
    assert single["batch.busyness"] == single["service.busyness"]
    # Busyness is of each day: the second is as long as the run goes on.
    first, second = 32 / (24 * HOUR), 20 / (HOUR + 30)
    assert single["batch.busyness"] == pytest.approx((first + second) / 2)
    assert single["batch.busyness_mad"] == pytest.approx((second - first) / 2)
    # Also with two paths, one scheduler decides on one job after another.
    first, second = 16 / (24 * HOUR), 4 / (HOUR + 14)
    assert multi["batch.busyness"] == pytest.approx((first + second) / 2)
    assert multi["service.busyness"] == multi["batch.busyness"]


def test_a_kind_without_jobs_has_no_measures(on_jobs: Any) -> None:
    found = on_jobs(JOBS[:2], hours=1.0)
    assert "batch.jobs" in found.values
    assert not any(name.startswith("service") for name in found.values)


def test_the_deviation_of_days_is_the_median_distance_from_their_median() -> None:
    day = 24 * HOUR * 1_000_000
    submit = np.array([0, day - 1, day, 5 * day, 5 * day + 1], np.int64)
    waits = np.array([1.0, 3.0, 6.0, 10.0, 20.0])
    # The days' means are 2, 6 and 15.
    assert _daily_mad(submit, waits) == 4.0
    assert _daily_mad(submit[:0], waits[:0]) == 0.0
    assert _daily_mad(submit[:2], waits[:2]) == 0.0


def test_an_unknown_scheme_is_an_error() -> None:
    with pytest.raises(ValueError, match="no scheme is called 'borg'"):
        run_point(point(scheme="borg", hours=0.1, cell=0.01))


def test_a_mapreduce_scheduler_stands_between_the_others_and_the_fill() -> None:
    told: dict[str, Parameter] = {
        "scheme": "mesos", "policy": "none", "retry": "first", "fill": "best-fit",
        **dict.fromkeys(("batch_t_job", "service_t_job"), 0.1),
        **dict.fromkeys(("batch_t_task", "service_t_task"), 0.005),
    }  # fmt: skip
    assert [(entry.name, entry.engine) for entry in fleet(told)] == [
        ("batch-service", "mesos"),
        ("mapreduce", "mapreduce"),
        ("fill", "omega"),
    ]
    assert fleet(told)[0].settings["retry"] == "first"
    assert fleet(told)[2].settings["placement"] == "best-fit"
    assert [entry.name for entry in fleet({**told, "policy": ""})] == ["batch-service", "fill"]


def test_a_workload_is_described_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    month = 30 * 24 * HOUR
    given = [
        job("b0", 2, kind="batch", seconds=10, cpu=500, memory=2 * 10**9),
        job("s0", 1, kind="service", seconds=None, submit=5, memory=10**9),
        job("b1", 4, kind="batch", seconds=30, submit=10, memory=10**9),
        job("b2", 3, kind="batch", seconds=20, submit=40, memory=10**9),
        job("s1", 1, kind="service", seconds=2 * month, submit=65, memory=10**9),
        job("s2", 2, kind="service", seconds=month - 1, submit=185, memory=10**9),
    ]
    asked: list[Any] = []

    def jobs(spec: Any, span: int, random: Random) -> Iterator[SimulatedJob]:
        asked.append((spec.name, span, random.uniform()))
        return iter(given)

    monkeypatch.setattr(clusters, "jobs", jobs)
    found = run_point(
        ExperimentPoint(
            paper="omega", figure="2", parameters={"cluster": "C", "hours": 2.0}, seed=7, scale="t"
        )
    )
    assert asked == [("C", 7_200_000_000, Random(7).child("workload").uniform())]
    assert found.values == {
        "batch.jobs": 3.0,
        "batch.tasks": 9.0,
        "batch.cpu": pytest.approx(20 * 0.5 + 120 + 60),
        "batch.memory": pytest.approx(20 * 2 + 120 + 60),
        "batch.month": 0.0,
        "service.jobs": 3.0,
        "service.tasks": 4.0,
        "service.cpu": pytest.approx(2 * month + 2 * (month - 1)),
        "service.memory": pytest.approx(2 * month + 2 * (month - 1)),
        "service.month": pytest.approx(2 / 3),
    }
    series = {name: (each[0], each[50], each[100]) for name, each in found.series.items()}
    assert series == {
        "batch.runtime": pytest.approx((10, 20, 30)),
        "batch.gap": pytest.approx((10, 20, 30)),
        "batch.count": pytest.approx((2, 3, 4)),
        "service.runtime": pytest.approx((month - 1, month, month)),
        "service.gap": pytest.approx((60, 90, 120)),
        "service.count": pytest.approx((1, 1, 2)),
    }
    assert {len(each) for each in found.series.values()} == {101}
    assert workload._share(found, "service", "tasks") == pytest.approx(4 / 13)
    nothing = PointResult({f"{kind}.jobs": 0.0 for kind in ("batch", "service")})
    assert workload._share(nothing, "batch", "jobs") == 0.0


def swept(values: dict[float, list[dict[str, float]]]) -> Findings:
    """Results along a rate; several are of several seeds."""
    points, results = [], {}
    for rate, many in values.items():
        for seed, measured in enumerate(many, 1):
            at = ExperimentPoint(
                paper="omega", figure="8", parameters={"rate": rate}, seed=seed, scale="t"
            )
            points.append(at)
            results[digest(at)] = PointResult(measured)
    return Findings(points, results)


def unscheduled(*shares: float) -> Findings:
    return swept(
        {float(rate): [{"batch.unscheduled": share}] for rate, share in enumerate(shares, 1)}
    )


@pytest.mark.parametrize(
    ("shares", "at"),
    [
        ((0.0, 0.02, 0.021, 0.5), 2.5),
        ((0.021, 0.5), 1.0),
        ((0.0, 0.5, 0.0), 1.5),
        ((0.0, 0.02), None),
        ((), None),
    ],
)
def test_a_scheduler_saturates_halfway_to_the_first_point_that_it_leaves_jobs_at(
    shares: tuple[float, ...], at: float | None
) -> None:
    assert reading.saturation(unscheduled(*shares), "8", "rate", "batch") == at


def test_marks_are_medians_over_seeds_and_means_of_times() -> None:
    found = swept(
        {
            2.0: [{"x": 1.0, "x.wait": 1.0}, {"x": 2.0, "x.wait": 2.0}, {"x": 9.0, "x.wait": 9.0}],
            1.0: [{"x": 5.0, "x_mad": 0.5, "x.wait": 3.0}],
            3.0: [{"y": 5.0}],
            4.0: [{"x": 7.0}, {"y": 1.0, "x_mad": 3.0}],
        }
    )
    told = [(mark.x, mark.y, mark.error) for mark in reading.marks(found, "8", "rate", "x")]
    assert told == [(1.0, 5.0, 0.5), (2.0, 2.0, 1.0), (4.0, 7.0, 0.0)]
    waits = [(mark.x, mark.y, mark.error) for mark in reading.marks(found, "8", "rate", "x.wait")]
    assert waits == [(1.0, 3.0, 0.0), (2.0, 4.0, 1.0)]


def test_growth_is_of_the_largest_over_the_first() -> None:
    assert reading.growth({1.0: 2.0, 0.5: 4.0, 3.0: 6.0}) == 1.5
    assert reading.growth({1.0: 2.0, 0.5: 4.0}) == 1.0
    assert reading.growth({1.0: 0.0, 2.0: 1.0}) == pytest.approx(1e6)
    assert reading.growth({}) == 1.0


def test_a_trend_needs_two_values() -> None:
    found = swept({1.0: [{}, {}], 2.0: [{}]})
    assert reading.has_trend(found, "8", "rate")
    assert not reading.has_trend(found, "8", "rate", rate=1.0)
    assert not reading.has_trend(found, "9", "rate")
    assert not reading.on_every_cluster(found, "8")


def test_points_that_take_longest_are_planned_first() -> None:
    points = plan("full", ["2", "8"])
    efforts = [_effort(each) for each in points]
    assert efforts == sorted(efforts, reverse=True)
    assert efforts[0] == 168 * max(float(each.parameters.get("rate", 1)) for each in points)
