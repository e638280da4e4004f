"""What papers plan, draw and claim, from results that are made up: every number is another one.

The files beside this one say what comes of them. Numbers are made of the point and of what is measured,
so a claim that reads another point, or divides the other way, says something else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from golden_log import require_golden
from made_up_results import MadeUp, identity, in_range, rising

from argosy.papers.charts import Chart, Figure, HeatMap
from argosy.papers.claims import Claim
from argosy.papers.experiment import DONE, Findings
from argosy.papers.paper import Paper
from argosy.papers.registry import PAPERS
from argosy.papers.selection import selected

HERE = Path(__file__).parent
#: How large made-up numbers are: as shares, as times, with those that should be small small, and all
#: the same.
SIZES = {
    "shares": (0.0, 1.0),
    "times": (0.5, 400.0),
    "calm": (0.0, 0.02),
    "one for all": (1.0, 1.0),
    "a half for all": (0.5, 0.5),
}


def sized(made_up: MadeUp, size: str) -> Findings:
    return made_up.findings(in_range(*SIZES[size]), rising(*SIZES[size]))


def short(told: Sequence[object]) -> str:
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def planned(paper: Paper) -> Iterator[str]:
    yield f"{paper.name} | {paper.title} | {paper.reference}"
    for figure in (*paper.figures, "none"):
        yield f"notes on {figure}: {' | '.join(paper.notes([figure]))}"
    yield f"on request: {', '.join(paper.on_request)}; usual: {paper.usual}"
    for scale in paper.scales:
        yield f"{scale}: {paper.scales[scale].name}, {paper.scales[scale].about}"
        for figure in paper.figures:
            points = paper.plan(scale, [figure])
            told = [(*identity(point), point.scale, point.paper) for point in points]
            yield f"{scale} {figure}: {len(points)} points, {short(told)}"
        yield f"{scale}: {len(paper.plan(scale, paper.figures))} points in all"


def shown(panel: Chart | HeatMap) -> Iterator[str]:
    if isinstance(panel, HeatMap):
        yield f"  {panel.title}: {panel.x} by {panel.y}, {panel.value} {panel.low:g}-{panel.high:g}"
        yield f"    x: {', '.join(panel.xs)}; crossed out: {panel.struck_label}"
        for y, row, struck in zip(panel.ys, panel.rows, panel.struck, strict=True):
            cells = (
                "-" if value is None else f"{value:.4g}{'!' * crossed}"
                for value, crossed in zip(row, struck, strict=True)
            )
            yield f"    {y}: {' '.join(cells)}"
        return
    yield f"  {panel.title}: {panel.x!r} {panel.y!r}"
    for line in panel.lines:
        sums = [
            sum(getattr(mark, part) or 0.0 for mark in line.marks) for part in ("x", "y", "error")
        ]
        # Marks in another order have another sum of this kind.
        sums.append(sum(place * (mark.x + mark.y) for place, mark in enumerate(line.marks)))
        style = f"{line.colour}{' dashed' * line.dashed}{' stepped' * line.stepped}"
        told = " ".join(f"{value:.6g}" for value in sums)
        yield f"    {line.label} ({style}): {len(line.marks)} marks, {told}"
    for rule in panel.rules:
        yield f"    {rule!r}"


def pictured(figures: Sequence[Figure]) -> Iterator[str]:
    for figure in figures:
        yield f"figure {figure.number}: {figure.title} | {figure.caption} | {figure.note}"
        for panel in figure.panels:
            yield from shown(panel)


def claims(made: Sequence[Claim], words: dict[str, str]) -> Iterator[str]:
    """`words` are those that were told of each claim before; they are told again if they differ."""
    for claim in made:
        verdict = "holds" if claim.holds else "does not hold"
        yield f"{claim.figure} {claim.id} ({claim.tolerance}): {verdict}: {claim.here}"
        told = f"    {claim.paper} | {claim.setup} | {claim.note}"
        if words.get(claim.id) != told:
            words[claim.id] = told
            yield told


@pytest.mark.parametrize("name", PAPERS)
def test_plans_figures_and_claims_are_pinned(name: str, request: pytest.FixtureRequest) -> None:
    paper = PAPERS[name]
    lines = [*planned(paper)]
    made_up = MadeUp(paper, "quick")
    words: dict[str, str] = {}
    for size in SIZES:
        claimed = paper.claims(sized(made_up, size), paper.figures)
        lines += [f"== claims of {size}", *claims(claimed, words)]
    for scale in paper.scales:
        if scale != "quick":
            claimed = paper.claims(sized(MadeUp(paper, scale), "times"), paper.figures)
            lines += [f"== claims at the scale {scale}", *claims(claimed, words)]
    drawn = paper.draw(sized(made_up, "times"), paper.figures)
    lines += ["== figures", *pictured(drawn)]
    update = request.config.getoption("--update-golden")
    require_golden(f"made_up_{name}", "\n".join(lines) + "\n", update=update, folder=HERE)


@pytest.mark.parametrize("name", PAPERS)
def test_claims_of_the_same_words_say_in_what_they_differ(name: str) -> None:
    """By their set-up or a note; numbers do not count, since they are measured."""
    paper = PAPERS[name]
    for scale in paper.scales:
        alike: dict[tuple[str, str], list[str]] = {}
        for claim in paper.claims(sized(MadeUp(paper, scale), "times"), paper.figures):
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
        for claim in paper.claims(sized(made_up, size), figures)
    }
    assert sum(map(int, re.findall(r"(\d+) (?:claims|about)", row))) == len(claimed)


@pytest.mark.parametrize("name", PAPERS)
def test_nothing_is_claimed_without_points(name: str) -> None:
    paper = PAPERS[name]
    assert paper.claims(Findings([], {}), paper.figures) == []
    for figure in paper.draw(Findings([], {}), paper.figures):
        assert figure.number in paper.figures


@pytest.mark.parametrize("name", PAPERS)
def test_a_part_of_the_points_can_be_drawn_and_claims_nothing_about_other_clusters(
    name: str, request: pytest.FixtureRequest
) -> None:
    """`parts_*.txt` has how many claims can still be decided, and digests of what is claimed and
    drawn."""
    paper = PAPERS[name]
    made_up = MadeUp(paper, "quick")
    lines = []
    for figure in paper.figures:
        points = [point for point in paper.plan("quick", [figure]) if point.seed == 1]
        values = {(key, str(at)) for point in points for key, at in point.parameters.items()}
        for key, value in sorted(values):
            part = selected(points, {key: [value]}, {})
            found = made_up.findings(in_range(0.5, 400.0), rising(0.5, 400.0), part)
            claimed = paper.claims(found, [figure])
            for claim in claimed:
                if key == "cluster":
                    assert {*re.findall(r"\(([A-D])\b", claim.here)} <= {value}, claim
            said = [*claims(claimed, {})]
            pictures = [*pictured(paper.draw(found, [figure]))]
            digests = f"{short(said)} {short(pictures)}"
            lines.append(f"{figure}, {key} {value}: {len(claimed)} claims, {digests}")
    update = request.config.getoption("--update-golden")
    require_golden(f"parts_{name}", "\n".join(lines) + "\n", update=update, folder=HERE)


@pytest.mark.parametrize("name", ["firmament", "medea"])
def test_a_claim_needs_those_experiments_to_be_done_that_it_speaks_of(
    name: str, request: pytest.FixtureRequest
) -> None:
    """`undone_*.txt` has the claims that do not hold any more if only nine tenths of the points with
    a value of a parameter were done."""
    paper = PAPERS[name]
    made_up = MadeUp(paper, "quick")
    lines = []
    for figure in paper.figures:
        points = paper.plan("quick", [figure])
        values = {(key, str(at)) for point in points for key, at in point.parameters.items()}
        for key, value in sorted(values):
            found = made_up.findings(in_range(0.5, 400.0), rising(0.5, 400.0), points)
            for of in {point.figure for point in points}:
                for point, result in found.select(of):
                    if str(point.parameters.get(key)) == value:
                        result.values[DONE] = 0.9
            claimed = paper.claims(found, [figure])
            fallen = [claim for claim in claimed if "only 90 % of the experiment" in claim.note]
            assert not any(claim.holds for claim in fallen)
            if fallen:
                lines.append(f"{figure}, {key} {value}: {', '.join(claim.id for claim in fallen)}")
    update = request.config.getoption("--update-golden")
    require_golden(f"undone_{name}", "\n".join(lines) + "\n", update=update, folder=HERE)


@pytest.mark.parametrize("name", PAPERS)
def test_points_that_measure_real_time_run_alone(name: str) -> None:
    """Those of agents in processes of their own."""
    paper = PAPERS[name]
    for scale in paper.scales:
        points = paper.plan(scale, paper.figures)
        alone = [point for point in points if paper.alone(point)]
        assert alone == [
            each
            for each in points
            if (each.figure, each.parameters.get("how")) == ("live", "processes")
        ]
        assert bool(alone) is (name == "vela")
