"""The Murmuration paper's experiments at the smallest scale: they run, and end in claims and figures."""

from __future__ import annotations

import pytest

from argosy.papers.experiment import Findings, Result, digest, run_points
from argosy.papers.murmuration import MURMURATION
from argosy.papers.murmuration.points import FIGURES, SIMULATED, SIZES
from argosy.papers.murmuration.world import run_point

_NEEDED = ("5", "11", "14", "16")


@pytest.fixture(scope="module")
def found() -> Findings:
    points = MURMURATION.plan("smoke", _NEEDED)
    return Findings(points, run_points(points, run_point, None))


def test_every_figure_has_points_and_none_is_there_twice() -> None:
    for scale in MURMURATION.scales:
        points = MURMURATION.plan(scale, FIGURES)
        assert len({digest(point) for point in points}) == len(points)
        for figure in FIGURES:
            assert MURMURATION.plan(scale, [figure])


def test_full_scale_is_the_paper_s() -> None:
    points = MURMURATION.plan("full", ["12"])
    assert {point.parameters["machines"] for point in points} == set(SIZES)
    assert {point.parameters["system"] for point in points} == set(SIMULATED)
    assert {point.parameters["jobs"] for point in points} == {10_000}


def test_points_end_in_claims_and_figures(found: Findings) -> None:
    claims = {claim.id for claim in MURMURATION.claims(found, _NEEDED)}
    assert claims == {
        "5-sparrow-waits-at-machines",
        "5-tail-close-to-average",
        "11-throughput",
        "14-error-15",
        "14-error-50",
        "16-restarted",
    }
    for figure in MURMURATION.draw(found, _NEEDED):
        assert any(line.marks for panel in figure.panels for line in panel.lines)


def test_without_points_there_are_no_claims_and_empty_figures() -> None:
    nothing = Findings([], {})
    assert MURMURATION.claims(nothing, FIGURES) == []
    assert [figure.number for figure in MURMURATION.draw(nothing, FIGURES)] == list(FIGURES)


def test_claims_are_judged_by_their_tolerance() -> None:
    points = MURMURATION.plan("smoke", ["12", "15"])
    results = {}
    for point in points:
        slow = {"sparrow": 4000.0, "eagle": 4000.0, "yaq-d": 200.0}
        jct = slow.get(str(point.parameters["system"]), 40.0)
        jct *= 1 + float(point.parameters.get("delay", 0.0)) / 12
        results[digest(point)] = Result({"jct": jct, "utilisation": 0.5})
    claims = {
        claim.id: claim.holds
        for claim in MURMURATION.claims(Findings(points, results), ["12", "15"])
    }
    assert claims == {
        "12-srjf-sparrow": True,
        "12-srjf-yaq-d": False,
        "12-srjf-eagle": True,
        "15-delay-1s": True,
        "15-delay-10s": True,
    }
