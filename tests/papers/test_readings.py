"""What figures of Omega read from results: marks with their errors, saturation, trends and growth."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.papers.charts import Mark
from argosy.papers.experiment import ExperimentPoint, Findings, PointResult, digest
from argosy.papers.omega.points import CLUSTERS
from argosy.papers.omega.reading import (
    along,
    by_cluster,
    growth,
    has_trend,
    listed,
    marks,
    on_every_cluster,
    saturation,
)


def findings(*results: tuple[dict[str, Any], dict[str, float]], figure: str = "5") -> Findings:
    """Parameters and what was measured; a seed among the parameters is the point's."""
    points, found = [], {}
    for told, values in results:
        parameters = {name: value for name, value in told.items() if name != "seed"}
        point = ExperimentPoint(
            paper="omega",
            figure=figure,
            parameters=parameters,
            seed=told.get("seed", 1),
            scale="quick",
        )
        points.append(point)
        found[digest(point)] = PointResult(values)
    return Findings(points, found)


def at(x: float, seed: int = 1, **more: Any) -> dict[str, Any]:
    return {"x": x, "seed": seed, **more}


def test_one_seed_has_the_deviation_between_days_and_marks_are_in_order() -> None:
    found = findings(
        (at(3.0), {"wait": 7.0, "wait_mad": 0.5}),
        (at(1.0), {"wait": 9.0}),
        (at(2.0), {"other": 1.0}),
    )
    assert marks(found, "5", "x", "wait") == (Mark(1.0, 9.0, 0.0), Mark(3.0, 7.0, 0.5))
    assert marks(found, "5", "x", "none") == ()
    assert marks(found, "6", "x", "wait") == ()


@pytest.mark.parametrize(
    ("name", "shown"),
    [("batch.wait", 4.0), ("wait", 4.0), ("batch.wait_p90", 2.0), ("conflicts", 2.0)],
)
def test_several_seeds_have_their_median_or_the_mean_of_times(name: str, shown: float) -> None:
    values = (1.0, 2.0, 9.0)
    found = findings(*((at(1.0, seed), {name: value}) for seed, value in enumerate(values)))
    # The deviations from the median are 1, 0 and 7, whatever is shown.
    assert marks(found, "5", "x", name) == (Mark(1.0, shown, 1.0),)


def test_seeds_without_the_measure_do_not_count() -> None:
    found = findings(
        (at(1.0, 1), {"wait": 7.0, "wait_mad": 0.5}),
        (at(1.0, 2), {"other": 1.0}),
    )
    assert marks(found, "5", "x", "wait") == (Mark(1.0, 7.0, 0.5),)


def test_marks_are_of_the_points_that_are_asked_for() -> None:
    found = findings((at(1.0, cluster="A"), {"m": 1.0}), (at(1.0, cluster="B"), {"m": 5.0}))
    assert marks(found, "5", "x", "m", cluster="B") == (Mark(1.0, 5.0, 0.0),)
    assert marks(found, "5", "x", "m", cluster="C") == ()


@pytest.mark.parametrize(
    ("shares", "where"),
    [
        ((0.0, 0.02, 0.021), 2.5),
        ((0.0, 0.021, 0.0), 1.5),
        ((0.021, 0.0, 0.0), 1.0),
        ((0.02, 0.02, 0.02), None),
        ((), None),
    ],
)
def test_saturation_is_halfway_to_the_first_point_that_does_not_keep_up(
    shares: tuple[float, ...], where: float | None
) -> None:
    found = findings(*((at(float(x)), {"batch.unscheduled": y}) for x, y in enumerate(shares, 1)))
    assert saturation(found, "5", "x", "batch") == where


def test_a_trend_needs_several_values() -> None:
    one = findings((at(1.0, 1, cluster="A"), {}), (at(1.0, 2, cluster="A"), {}))
    two = findings(
        (at(1.0, cluster="A"), {}), (at(2.0, cluster="A"), {}), (at(3.0, cluster="B"), {})
    )
    assert (has_trend(one, "5", "x"), has_trend(two, "5", "x")) == (False, True)
    assert has_trend(two, "5", "x", cluster="A")
    assert not has_trend(two, "5", "x", cluster="B")
    assert not has_trend(two, "6", "x")


def test_every_cluster_must_have_a_trend_in_every_sweep() -> None:
    points = [({"service_t_job": t, "cluster": name}, {}) for t in (1.0, 2.0) for name in CLUSTERS]
    assert on_every_cluster(findings(*points), "5")
    assert not on_every_cluster(findings(*points), "5", "6")
    assert not on_every_cluster(findings(*points[:-1]), "5")


def test_growth_is_the_largest_relative_to_the_first() -> None:
    assert growth({2.0: 6.0, 1.0: 3.0, 3.0: 1.5}) == 2.0
    assert growth({1.0: 4.0, 2.0: 1.0}) == 1.0
    assert growth({}) == 1.0
    assert growth({1.0: 0.0, 2.0: 3.0}) == pytest.approx(3e6)


def test_lines_of_clusters_are_named_coloured_and_dashed_for_services() -> None:
    told = [
        ({"service_t_job": 1.0, "cluster": name}, {"batch.m": number, "service.m": 10.0 + number})
        for number, name in enumerate(CLUSTERS)
    ]
    found = findings(*told)
    lines = by_cluster(found, "5", "m")
    assert [(line.label, line.colour, line.dashed, line.marks[0].y) for line in lines] == [
        (f"{kind} {name}", number, kind == "service", base + number)
        for kind, base in (("batch", 0.0), ("service", 10.0))
        for number, name in enumerate(CLUSTERS)
    ]
    [first, *_] = by_cluster(found, "5", "m", ("batch",))
    assert first.label == f"all jobs, {next(iter(CLUSTERS))}"
    last = list(CLUSTERS)[-1]
    assert along(found, "5", "service.m", last) == {1.0: 10.0 + len(CLUSTERS) - 1}
    assert listed({"A": 1.0, "B": 2.5}, "{:.1f} s") == "1.0 s (A), 2.5 s (B)"
