"""What papers plan, draw and claim, from results that are made up: every number is another one.

The files beside this one say what comes of them. Numbers are made of the point and of what is measured,
so a claim that reads another point, or divides the other way, says something else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from golden_log import require_golden

from argosy.papers.charts import Chart, HeatMap
from argosy.papers.experiment import ExperimentPoint, Findings, PointResult, digest
from argosy.papers.paper import Paper
from argosy.papers.registry import PAPERS

HERE = Path(__file__).parent
#: How large made-up numbers are: as shares, as times, and with those that should be small small.
SIZES = {"shares": (0.0, 1.0), "times": (0.5, 400.0), "calm": (0.0, 0.02)}


def drawn(*parts: object) -> float:
    """From 0 to 1, the same for the same parts everywhere."""
    data = hashlib.sha256(repr(parts).encode()).digest()
    return int.from_bytes(data[:6], "big") / 2**48


def identity(point: ExperimentPoint) -> tuple[object, ...]:
    return (point.figure, sorted(point.parameters.items()), point.seed)


class MadeUpValues(dict[str, float]):
    """A number for every name that is asked for."""

    def __init__(self, point: ExperimentPoint, size: str, names: dict[str, None]) -> None:
        super().__init__()
        self._names = names
        self._point = identity(point)
        self._low, self._high = SIZES[size]

    def __missing__(self, name: str) -> float:
        self._names[name] = None
        share = drawn(*self._point, name)
        self[name] = round(self._low + (self._high - self._low) * share, 6)
        return self[name]

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._names))

    def get(self, name: str, default: Any = None) -> float:
        return self[name]


class MadeUpSeries(dict[str, list[float]]):
    """A hundred and one rising numbers for every name that is asked for."""

    def __init__(self, point: ExperimentPoint, size: str, names: dict[str, None]) -> None:
        super().__init__()
        self._names = names
        self._point = identity(point)
        self._size = SIZES[size]

    def __missing__(self, name: str) -> list[float]:
        self._names[name] = None
        low, high = self._size
        stream = Random(int(2**48 * drawn(*self._point, name)))
        steps = [stream.random() for _ in range(101)]
        total, reached, found = sum(steps), 0.0, []
        for step in steps:
            reached += step
            found.append(round(low + (high - low) * reached / total, 6))
        self[name] = found
        return found

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._names))

    def get(self, name: str, default: Any = None) -> list[float]:
        return self[name]


class MadeUp:
    """Results of a paper's points. Some readers go through all names that a result has: they are those
    that are asked for of the points with the first seed."""

    def __init__(self, paper: Paper, scale: str) -> None:
        self._points = paper.plan(scale, paper.figures)
        self._values: dict[str, None] = {}
        self._series: dict[str, None] = {}
        first = self._findings([point for point in self._points if point.seed == 1], "times")
        paper.claims(first, paper.figures)
        paper.draw(first, paper.figures)

    def findings(self, size: str) -> Findings:
        return self._findings(self._points, size)

    def _findings(self, points: list[ExperimentPoint], size: str) -> Findings:
        results = {
            digest(point): PointResult(
                MadeUpValues(point, size, self._values), MadeUpSeries(point, size, self._series)
            )
            for point in points
        }
        return Findings(points, results)


def planned(paper: Paper) -> Iterator[str]:
    for scale in paper.scales:
        for figure in paper.figures:
            points = paper.plan(scale, [figure])
            told = repr([(*identity(point), point.scale, point.paper) for point in points])
            short = hashlib.sha256(told.encode()).hexdigest()[:12]
            yield f"{scale} {figure}: {len(points)} points, {short}"
        yield f"{scale}: {len(paper.plan(scale, paper.figures))} points in all"


def shown(panel: Chart | HeatMap) -> Iterator[str]:
    if isinstance(panel, HeatMap):
        values = [value for row in panel.rows for value in row if value is not None]
        struck = sum(cell for row in panel.struck for cell in row) if panel.struck else 0
        yield f"  {panel.title}: {panel.x} by {panel.y}, {panel.value}"
        yield f"    {len(values)} of {len(panel.xs)} x {len(panel.ys)}, {sum(values):.6g}, {struck}"
        return
    yield f"  {panel.title}: {panel.x!r} {panel.y!r}"
    for line in panel.lines:
        sums = [
            sum(getattr(mark, part) or 0.0 for mark in line.marks) for part in ("x", "y", "error")
        ]
        style = f"{line.colour}{' dashed' * line.dashed}{' stepped' * line.stepped}"
        told = " ".join(f"{value:.6g}" for value in sums)
        yield f"    {line.label} ({style}): {len(line.marks)} marks, {told}"
    for rule in panel.rules:
        yield f"    {rule!r}"


def figures(paper: Paper, found: Findings) -> Iterator[str]:
    for figure in paper.draw(found, paper.figures):
        yield f"figure {figure.number}"
        for panel in figure.panels:
            yield from shown(panel)


def claims(paper: Paper, found: Findings) -> Iterator[str]:
    for claim in paper.claims(found, paper.figures):
        verdict = "holds" if claim.holds else "does not hold"
        yield f"{claim.figure} {claim.id} ({claim.tolerance}): {verdict}: {claim.here}"


@pytest.mark.parametrize("name", PAPERS)
def test_plans_figures_and_claims_are_pinned(name: str, request: pytest.FixtureRequest) -> None:
    paper = PAPERS[name]
    lines = [*planned(paper)]
    made_up = MadeUp(paper, "quick")
    for size in SIZES:
        lines += [f"== claims of {size}", *claims(paper, made_up.findings(size))]
    lines += ["== figures", *figures(paper, made_up.findings("times"))]
    update = request.config.getoption("--update-golden")
    require_golden(f"made_up_{name}", "\n".join(lines) + "\n", update=update, folder=HERE)


@pytest.mark.parametrize("name", PAPERS)
def test_claims_of_the_same_words_say_in_what_they_differ(name: str) -> None:
    """By their set-up or a note; numbers do not count, since they are measured."""
    paper = PAPERS[name]
    for scale in paper.scales:
        alike: dict[tuple[str, str], list[str]] = {}
        for claim in paper.claims(MadeUp(paper, scale).findings("times"), paper.figures):
            told = claim.setup or re.sub(r"\d+", "", claim.note)
            alike.setdefault((claim.figure, claim.paper), []).append(told)
        unclear = {
            words: told
            for words, told in alike.items()
            if len(told) > 1 and ("" in told or len({*told}) < len(told))
        }
        assert unclear == {}, scale


@pytest.mark.parametrize("name", PAPERS)
def test_the_documentation_counts_every_claim(name: str) -> None:
    """Those of all scales but the smallest; figures that are run on request are not counted."""
    paper = PAPERS[name]
    text = (HERE.parents[1] / "docs" / "papers.md").read_text("utf-8")
    (row,) = re.findall(rf"^\| \[.*\]\(papers/{name}\.md\) \|(.*)$", text, re.MULTILINE)
    figures = [figure for figure in paper.figures if figure not in paper.on_request]
    claimed = {
        claim.id
        for scale in paper.scales
        if scale != "smoke"
        for made_up in [MadeUp(paper, scale)]
        for size in SIZES
        for claim in paper.claims(made_up.findings(size), figures)
    }
    assert sum(map(int, re.findall(r"(\d+) (?:claims|about)", row))) == len(claimed)


@pytest.mark.parametrize("name", PAPERS)
def test_nothing_is_claimed_without_points(name: str) -> None:
    paper = PAPERS[name]
    assert paper.claims(Findings([], {}), paper.figures) == []
    for figure in paper.draw(Findings([], {}), paper.figures):
        assert figure.number in paper.figures
