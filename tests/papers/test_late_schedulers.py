"""Runs in which a restarted scheduler, or all others, placed nothing say nothing about it."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.papers.experiment import ExperimentPoint, Findings, PointResult, digest
from argosy.papers.murmuration.points import ORDERS
from argosy.papers.murmuration.simulated import claims_16, draw_16


def level(value: float, last: float | None = None) -> list[float]:
    """Percentiles that are all alike, but for the highest two."""
    return [value] * 99 + [value if last is None else last] * 2


def findings(*runs: tuple[list[float], list[float]], system: str = ORDERS[0]) -> Findings:
    points, results = [], {}
    for seed, (new, others) in enumerate(runs):
        parameters: dict[str, Any] = {"system": system}
        point = ExperimentPoint(
            paper="murmuration", figure="16", parameters=parameters, seed=seed, scale="quick"
        )
        points.append(point)
        results[digest(point)] = PointResult({}, {"new": new, "others": others})
    return Findings(points, results)


def told(*runs: tuple[list[float], list[float]], **more: Any) -> list[tuple[str, str, bool]]:
    return [(claim.id, claim.here, claim.holds) for claim in claims_16(findings(*runs, **more))]


def test_only_runs_with_jobs_of_both_count() -> None:
    runs = ((level(1.0), level(2.0)), ([], level(3.0)), (level(9.0), []), ([], []))
    assert told(*runs) == [
        ("16-restarted", "its median JCT is 0.50 times theirs, the median of 1 runs", False),
        ("16-tail", "its 99th percentile is 0.50 times theirs", False),
    ]
    assert told(([], level(1.0))) == told((level(1.0), [])) == []


@pytest.mark.parametrize(
    ("ratio", "holds"), [(0.79, False), (0.8, True), (1.0, True), (1.2, True), (1.21, False)]
)
def test_it_places_as_well_within_a_fifth(ratio: float, holds: bool) -> None:
    [first, _] = told((level(ratio), level(1.0)))
    assert first[2] is holds


@pytest.mark.parametrize(
    ("ratio", "holds"), [(0.69, False), (0.7, True), (1.0, True), (1.001, False)]
)
def test_in_the_tail_it_is_slightly_better(ratio: float, holds: bool) -> None:
    [_, tail] = told((level(5.0, ratio), level(1.0)))
    assert tail[2] is holds


def test_several_runs_have_their_median() -> None:
    runs = [(level(ratio), level(1.0)) for ratio in (1.0, 1.1, 5.0)]
    assert told(*runs)[0][1:] == (
        "its median JCT is 1.10 times theirs, the median of 3 runs",
        True,
    )
    [first, _] = told(*runs, system=ORDERS[1])
    assert first[0] == "16-restarted-srjf"


def test_every_order_has_its_panel_and_those_without_runs_an_empty_one() -> None:
    figure = draw_16(findings((level(1.0), level(2.0)), system=ORDERS[1]))
    lines = {panel.title: [line.label for line in panel.lines] for panel in figure.panels}  # type: ignore[union-attr]
    assert lines == {
        ORDERS[0]: [],
        ORDERS[1]: ["restarted scheduler", "the others"],
        ORDERS[2]: [],
    }
