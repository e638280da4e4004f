"""What claims say beside their numbers, what figures are called, and which points a claim rests on.

`wordings_*.txt` has what the paper is said to say, the set-up and the note of every claim; the title and
the caption of every figure; and, for every claim that does not hold if experiments were not done, the
points that it is about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_log import require_golden
from made_up_results import MadeUp, identity, in_range, rising

from argosy.papers.experiment import DONE, ExperimentPoint, Findings, PointResult
from argosy.papers.paper import Paper
from argosy.papers.registry import PAPERS

HERE = Path(__file__).parent
SIZE = (0.5, 400.0)
#: What a claim notes that does not hold for that reason.
UNDONE = "of the experiment was done"


def worded(paper: Paper, found: Findings) -> Iterator[str]:
    for claim in paper.claims(found, paper.figures):
        yield f"{claim.figure} {claim.id}: {claim.paper}"
        for name, text in (("set-up", claim.setup), ("note", claim.note)):
            if text:
                yield f"    {name}: {text}"
    for figure in paper.draw(found, paper.figures):
        yield f"figure {figure.number}: {figure.title}"
        yield f"    {figure.caption}"


def short(point: ExperimentPoint) -> str:
    return hashlib.sha256(repr(identity(point)).encode()).hexdigest()[:8]


def results(
    points: list[ExperimentPoint], found: Findings
) -> list[tuple[ExperimentPoint, PointResult]]:
    figures = dict.fromkeys(point.figure for point in points)
    return [pair for figure in figures for pair in found.select(figure)]


def fall(paper: Paper, figure: str, found: Findings) -> set[str]:
    """The claims that fall with what was not done."""
    return {claim.id for claim in paper.claims(found, [figure]) if UNDONE in claim.note}


def rests(paper: Paper, made_up: MadeUp) -> Iterator[str]:
    """For each figure, the claims that fall with each point, or with so many of them."""
    for figure in paper.figures:
        points = paper.plan("quick", [figure])
        found = made_up.findings(in_range(*SIZE), rising(*SIZE), points)
        fallen: dict[str, list[str]] = {}
        chosen = results(points, found)
        for _, result in chosen:
            result.values[DONE] = 0.5
        some = fall(paper, figure, found)
        for _, result in chosen:
            result.values[DONE] = 1.0
        for point, result in chosen if some else []:
            result.values[DONE] = 0.5
            for name in fall(paper, figure, found):
                fallen.setdefault(name, []).append(short(point))
            result.values[DONE] = 1.0
        assert some == fallen.keys()
        for name in sorted(fallen):
            on = sorted(fallen[name])
            told = (
                " ".join(on) if len(on) < 5 else hashlib.sha256(repr(on).encode()).hexdigest()[:8]
            )
            yield f"{figure} {name}: {len(on)} of {len(points)} points, {told}"


@pytest.mark.parametrize("name", PAPERS)
def test_wordings_and_what_claims_rest_on_are_pinned(
    name: str, request: pytest.FixtureRequest
) -> None:
    paper = PAPERS[name]
    made_up = MadeUp(paper, "quick")
    found = made_up.findings(in_range(*SIZE), rising(*SIZE))
    lines = [*worded(paper, found), "== claims that fall with points", *rests(paper, made_up)]
    update = request.config.getoption("--update-golden")
    require_golden(f"wordings_{name}", "\n".join(lines) + "\n", update=update, folder=HERE)
