"""The Medea paper's experiments: planned once, repeatable, and claimed only where measured."""

from __future__ import annotations

import numpy as np
import pytest

from argosy.papers.experiment import Findings, digest, run_points
from argosy.papers.medea import MEDEA
from argosy.papers.medea.points import FIGURES, SCALES
from argosy.papers.medea.world import Trial, run_point, unavailability


@pytest.mark.parametrize("scale", SCALES)
def test_no_point_is_planned_twice(scale: str) -> None:
    digests = [digest(point) for point in MEDEA.plan(scale, FIGURES)]
    assert len(set(digests)) == len(digests)


def test_every_figure_is_drawn_and_claimed_from_its_points() -> None:
    points = MEDEA.plan("smoke", ["8", "9a", "9c", "10"])
    found = Findings(points, run_points(points, run_point, None))
    figures = MEDEA.draw(found, ["8", "9a", "9c", "10"])
    assert [figure.number for figure in figures] == ["8", "9a", "9c", "10"]
    assert all(chart.lines for figure in figures for chart in figure.panels)
    claims = MEDEA.claims(found, ["8", "9a", "9c", "10"])
    assert {claim.figure for claim in claims} == {"8", "9a", "9c", "10"}
    assert MEDEA.claims(Findings([], {}), FIGURES) == []


def test_a_point_gives_the_same_result_twice() -> None:
    point = MEDEA.plan("smoke", ["9b"])[0]
    assert run_point(point) == run_point(point)


def test_a_crowded_machine_is_told_as_violating_and_fragmented() -> None:
    trial = Trial(2, 2, "yarn", 1, "rack")
    trial.place(trial.submit([("w", 1024, 30)], ["w -> {w, 0, 0} in machine"], 0))
    assert trial.violating()[0] == 1.0
    assert trial.fragmented() == 1.0
    assert trial.imbalance() < 0.1


def test_units_fail_as_the_paper_describes_them() -> None:
    down = unavailability(25, 1)
    assert np.median(down) < 0.03
    assert down.max() == 1.0
    assert (down.mean(axis=1) < 0.25).all()
