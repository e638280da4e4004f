"""The Vela paper: its test bed, its points, and how claims are judged."""

from __future__ import annotations

import pytest

from argosy.papers.experiment import ExperimentPoint, Findings, PointResult, digest
from argosy.papers.vela import VELA
from argosy.papers.vela.points import FIGURES, SCALES, plan
from argosy.papers.vela.world import GIB, capacity, clusters, run_point, table_ii


def test_the_clusters_are_those_of_table_ii() -> None:
    cell = table_ii(2_000)
    assert len(clusters()) == 10
    assert len(cell.machines) == 20_000
    assert sum(machine.capacity.cpu for machine in cell.machines) == 78_800_000
    assert sum(machine.capacity.memory for machine in cell.machines) == 89_000 * GIB
    assert [capacity(cell, cores) for cores in (1, 2, 4)] == [60_600, 28_200, 11_200]
    too_small = [m for m in cell.machines if m.capacity.cpu < 4_000 or m.capacity.memory < 4 * GIB]
    assert len(too_small) == 10_000


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_has_points_for_every_figure(scale: str) -> None:
    points = plan(scale, FIGURES)
    assert {point.figure for point in points} == set(FIGURES)
    assert len({digest(point) for point in points}) == len(points)
    assert len(plan("full", ["4"])) == 40 * 3


def test_a_point_of_figure_4_fills_the_clusters() -> None:
    parameters = {"clusters": 50, "machines": 4}
    point = ExperimentPoint(paper="vela", figure="4", parameters=parameters, seed=1, scale="smoke")
    result = run_point(point)
    assert result["jobs"] == result["placed"] + result["abandoned"] == 560
    assert result["machines eligible"] <= result["machines drawn"]


def judged(
    figure: str, cases: list[tuple[dict[str, int | str], dict[str, float]]]
) -> dict[str, bool]:
    points = [
        ExperimentPoint(paper="vela", figure=figure, parameters=dict(case), seed=1, scale="quick")
        for case, _ in cases
    ]
    results = {
        digest(point): PointResult(values) for point, (_, values) in zip(points, cases, strict=True)
    }
    found = Findings(points, results)
    assert VELA.draw(found, [figure])[0].panels
    return {claim.id: claim.holds for claim in VELA.claims(found, [figure])}


@pytest.mark.parametrize(
    ("failures", "holds"),
    [((0.3, 0.0, 0.0), (True, True, True)), ((0.0, 0.001, 0.001), (False, False, False))],
)
def test_claims_about_failures(failures: tuple[float, ...], holds: tuple[bool, ...]) -> None:
    cases: list[tuple[dict[str, int | str], dict[str, float]]] = [
        ({"clusters": clusters, "machines": 4}, {"failed": failed, "jobs": 1_120.0})
        for clusters, failed in zip((10, 50, 70), failures, strict=True)
    ]
    ids = ("vela-4-zero", "vela-4-falls", "vela-4-none-from-70")
    assert judged("4", cases) == dict(zip(ids, holds, strict=True))


@pytest.mark.parametrize(
    ("with_three", "throughput", "holds"),
    [(0.005, 94.0, (True, True, True)), (0.1, 80.0, (False, False, False))],
)
def test_claims_about_conflicts(
    with_three: float, throughput: float, holds: tuple[bool, ...]
) -> None:
    cases: list[tuple[dict[str, int | str], dict[str, float]]] = [
        (
            {"rate": 94, "candidates": m, "prefer": "lowest"},
            {"conflicting": share, "retried": 0.2, "throughput": speed},
        )
        for m, share, speed in ((1, 0.28, 90.0), (3, with_three, throughput))
    ]
    names = ("factor", "rare", "throughput")
    ids = [f"vela-9-{name}-lowest" for name in names]
    assert judged("9", cases) == dict(zip(ids, holds, strict=True))
