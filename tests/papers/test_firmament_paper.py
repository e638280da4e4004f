"""The Firmament paper's experiments, as small as they get."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.model.units import MICROS_PER_SECOND
from argosy.papers.experiment import Findings, PointResult, digest
from argosy.papers.firmament import FIRMAMENT
from argosy.papers.firmament.claims import claims
from argosy.papers.firmament.figures import draw
from argosy.papers.firmament.links import LINK, MACHINES, TASKS, LinkWorld
from argosy.papers.firmament.points import FIGURES, SCALES, plan, run_point
from argosy.papers.firmament.world import BEGIN, Load, MeasuredReplay, arriving, found


def results(*figures: str) -> Findings:
    points = plan("smoke", figures)
    return Findings(points, {digest(point): run_point(point) for point in points})


def test_every_figure_has_points_at_every_scale() -> None:
    for scale in SCALES:
        for figure in FIGURES:
            points = plan(scale, [figure])
            assert points, f"figure {figure} at {scale}"
            assert len({digest(point) for point in points}) == len(points)


@pytest.mark.parametrize("figure", FIGURES)
def test_a_figure_ends_in_claims(figure: str) -> None:
    run = results(figure)
    made = claims(run, [figure])
    assert made
    assert all(claim.figure == figure and claim.here for claim in made)
    for chart in draw(run, [figure]):
        assert any(line.marks for panel in chart.panels for line in panel.lines)  # type: ignore[union-attr]


def test_a_claim_that_fails_says_so() -> None:
    points = plan("smoke", ["14"])
    slow = {digest(point): PointResult({"p50": 5.0}) for point in points}
    made = claims(Findings(points, slow), ["14"])
    assert [claim.holds for claim in made] == [False, False, False]


def test_two_orders_of_magnitude_are_not_claimed_with_less_than_half_of_them() -> None:
    points = plan("smoke", ["7"])

    def claimed(factor: float) -> bool:
        made = {
            digest(point): PointResult(
                {"seconds": 1.0 if point.parameters["algorithm"] == "relaxation" else factor}
            )
            for point in points
        }
        found = claims(Findings(points, made), ["7"])
        return next(claim.holds for claim in found if claim.id == "7-relaxation")

    assert not claimed(49.0)
    assert claimed(51.0)


def test_a_solver_that_is_not_stopped_misplaces_nothing() -> None:
    for point in plan("smoke", ["10"]):
        result = run_point(point)
        assert result["whole"] == 0
        assert result["half"] > 0


def test_without_results_there_is_nothing_to_claim() -> None:
    assert FIRMAMENT.claims(Findings([], {}), FIGURES) == []
    assert len(FIRMAMENT.draw(Findings([], {}), FIGURES)) == len(FIGURES) - 1


def test_the_workload_keeps_the_cluster_as_full_as_it_is() -> None:
    load = Load(machines=2_000, seconds=20_000.0)
    assert sum(job.tasks for job in found(load)) == load.live
    work = sum(job.tasks * job.truth[0].durations[0] for job in arriving(load))
    batch = sum(job.tasks for job in found(load) if job.truth[0].durations)
    # Little's law: what arrives a second times how long it stays is what is there.
    steady = work / MICROS_PER_SECOND / load.seconds
    assert 0.5 * batch < steady < 1.6 * batch


def test_the_workload_has_the_papers_durations() -> None:
    load = Load(machines=5_000, seconds=40_000.0)
    seconds = np.array([job.truth[0].durations[0] for job in arriving(load)]) / MICROS_PER_SECOND
    assert np.median(seconds) == pytest.approx(420, rel=0.1)
    assert np.percentile(seconds, 90) == pytest.approx(3_600, rel=0.15)
    assert np.percentile(seconds, 99) == pytest.approx(18_400, rel=0.4)
    early, *others = arriving(load)
    assert early.submit < BEGIN * MICROS_PER_SECOND
    assert all(job.submit >= BEGIN * MICROS_PER_SECOND for job in others)


def test_a_task_alone_reads_as_fast_as_its_link() -> None:
    world = LinkWorld("firmament", {}, seed=1)
    world.run(load=0.001, jobs=5)
    assert len(world.responses) == 5 * TASKS
    assert min(world.responses) > 3.4
    assert max(world.responses) < 5.1


@pytest.mark.parametrize("scheduler", ["firmament", "spread", "kube", "mesos", "sparrow"])
def test_links_carry_no_more_than_they_can(scheduler: str) -> None:
    world = LinkWorld(scheduler, {0: LINK // 2}, seed=2)
    world.run(load=0.7, jobs=30)
    assert len(world.responses) == 30 * TASKS
    assert world.now / MICROS_PER_SECOND * MACHINES * LINK >= sum(world._sizes.values())
    assert not any(world._reading.values())


def test_a_surge_comes_after_a_quarter_of_the_time_and_is_gone_after_half() -> None:
    load = Load(machines=100, seconds=40.0, utilisation=0.97, surge=0.08)
    jobs = list(arriving(load))
    assert [job.submit for job in jobs] == sorted(job.submit for job in jobs)
    surge = [job for job in jobs if job.id.startswith("surge")]
    assert sum(job.tasks for job in surge) == round(0.08 * load.total_slots)
    (submit,) = {job.submit for job in surge}
    (duration,) = {job.truth[0].durations[0] for job in surge}
    assert submit == (BEGIN + 10) * MICROS_PER_SECOND
    assert duration == 10 * MICROS_PER_SECOND


def test_a_scheduler_has_recovered_after_its_last_slow_round() -> None:
    nothing: Any = None
    spent = [(0.0, 0.1), (1.0, 9.0), (12.0, 2.0), (15.0, 0.1)]
    done = MeasuredReplay(np.empty(0), 0, 0, spent, 0.0, nothing)
    assert done.mean_round(0, 10) == pytest.approx(4.55)
    assert done.last_slow_round(10, 1.0) == 14.0
    assert done.last_slow_round(10, 3.0) == 10


def test_tasks_in_isolation_are_no_slower_than_under_any_scheduler() -> None:
    points = plan("smoke", ["19"])
    found = {
        point.parameters["scheduler"]: run_point(point)["p90"]
        for point in points
        if point.parameters["background"] == "no"
    }
    assert found["idle"] == min(found.values()) < 5.0
