"""Charts and pages as text: one element a line, and where values of an axis are drawn."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden_log import require_golden
from hypothesis import given
from hypothesis import strategies as st

from argosy.papers.charts import Axis, Chart, Figure, HeatMap, Line, Mark, ReferenceLine
from argosy.papers.claims import Claim
from argosy.papers.registry import PAPERS
from argosy.report.figures import BOTTOM, HEIGHT, MINUS, Span, draw_chart, number
from argosy.report.html import STYLE, page
from argosy.version import __version__

#: Each sort of line, mark and rule, on axes of both sorts.
LINES = Chart(
    title="Lines & marks",
    x=Axis(label="tasks", logarithmic=True),
    y=Axis(label="seconds", low=0.0),
    lines=(
        *(
            Line(label=f"l{colour}", colour=colour, marks=(Mark(1, colour), Mark(50, 2 * colour)))
            for colour in range(7)
        ),
        Line(label="with errors", colour=1, marks=(Mark(3, 4, 1.5), Mark(9, 6)), dashed=True),
        Line(label="not measured", marks=()),
    ),
    rules=(
        ReferenceLine(at=20, label="as published", vertical=True, colour=8),
        ReferenceLine(at=-1, label="idle"),
    ),
)
STEPS = Chart(
    title="Steps",
    x=Axis(label="seconds", low=0.0, high=10.0),
    y=Axis(label="share", logarithmic=True, low=0.001, high=1.0),
    lines=(
        Line(label="cdf", colour=2, stepped=True, marks=(Mark(1, 0.01), Mark(4, 0.5), Mark(9, 1))),
        Line(label="model", marks=(Mark(1, 0.01, 0.005), Mark(4, 0.3, 0.4))),
    ),
)
EMPTY = Chart(title="Empty", x=Axis(label="x"), y=Axis(label="y"), lines=())
HEAT = HeatMap(
    title="Heat",
    x="t_job",
    y="t_task",
    value="busyness",
    xs=("1", "2", "3"),
    ys=("a", "b"),
    rows=((0.0, 1.0, 1.1), (2.0, 3.0, None)),
    struck=((False, True, False), (False, False, True)),
    struck_label="saturated",
    high=2.0,
)
CLAIMS = (
    Claim(id="a", figure="1", paper="fast", here="faster", tolerance="2x", holds=True, note="<n>"),
    Claim(id="b", figure="2", paper="slow", here="slower", tolerance="none", holds=False),
)


def test_a_page_is_pinned_element_by_element(request: pytest.FixtureRequest) -> None:
    paper = PAPERS["omega"]
    figures = [
        Figure(number="1", title="All", caption="Lines.", panels=(LINES, STEPS), note="Fewer."),
        Figure(number="2", title="Others", caption="Maps.", panels=(HEAT, EMPTY)),
    ]
    text = page(paper, paper.scales["smoke"], CLAIMS, figures, ["one figure"])
    text = text.replace(STYLE, "").replace(__version__, "VERSION")
    update = request.config.getoption("--update-golden")
    lines = re.sub(r"(?<=>)(?=<)", "\n", text)
    require_golden("page", lines, update=update, folder=Path(__file__).parent)


def test_figures_are_in_the_order_in_which_they_are_given() -> None:
    paper = PAPERS["omega"]
    numbers = ["9", "10", "2"]
    figures = [Figure(number=n, title=f"Title {n}.", caption="", panels=(EMPTY,)) for n in numbers]
    text = page(paper, paper.scales["smoke"], [], figures, [])
    assert re.findall(r"Title (\d+)\.", text) == numbers


def test_a_page_without_claims_says_nothing_of_them() -> None:
    paper = PAPERS["omega"]
    assert "Claims" not in page(paper, paper.scales["smoke"], [], [], [])


VALUES = st.lists(st.integers(-1_000, 100_000), max_size=6)


@given(VALUES, st.booleans(), st.booleans())
def test_an_axis_holds_its_values_in_order_and_has_a_few_round_ticks(
    values: list[int], is_logarithmic: bool, is_bounded: bool
) -> None:
    bounds = {"low": 0.5, "high": 2_000.0} if is_bounded else {}
    span = Span(Axis(label="x", logarithmic=is_logarithmic, **bounds), values, 300, 20)
    shown = sorted(value for value in values if value > 0 or not is_logarithmic)
    places = [span(value) for value in shown]
    assert places == sorted(places, reverse=True)
    assert all(20 - 1e-9 <= place <= 300 for place in places)
    assert span.low <= min(shown, default=1) <= max(shown, default=1) <= span.high
    # The ends are where the drawing begins and ends, and half of a linear axis is in the middle.
    assert (span(span.low), span(span.high)) == (300, pytest.approx(20))
    middle = (span.low * span.high) ** 0.5 if is_logarithmic else (span.low + span.high) / 2
    assert span(middle) == pytest.approx(160)
    ticks = span.ticks()
    assert 1 <= len(ticks) <= 12
    assert ticks == sorted(ticks)
    slack = 0.001 * (abs(span.low) + abs(span.high))
    assert all(span.low - slack <= tick <= span.high + slack for tick in ticks)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0001, "0.0001"),
        (0.00009, "9e-05"),
        (99_999, "99,999"),
        (100_000, "1e+05"),
        (-2.5, f"{MINUS}2.5"),
        (1_234.5, "1,234.5"),
    ],
)
def test_ticks_are_short(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("axis", "values", "ticks"),
    [
        (Axis(label="x", low=0.0), [9], [0, 2, 4, 6, 8]),
        (Axis(label="x", low=0.0, high=1.0), [0.3], [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (Axis(label="x"), [5], [4.96, 4.98, 5, 5.02, 5.04]),
        (Axis(label="x", logarithmic=True, low=0.01, high=10.0), [], [0.01, 0.1, 1, 10]),
        (Axis(label="x", logarithmic=True), [2, 30], [2, 5, 10, 20]),
        (Axis(label="x", logarithmic=True), [1, 1e9], [1, 1e2, 1e4, 1e6, 1e8]),
        (Axis(label="x", logarithmic=True), [3], [2.6087, 3.45]),
    ],
)
def test_ticks_are_where_people_would_put_them(
    axis: Axis, values: list[float], ticks: list[float]
) -> None:
    assert Span(axis, values, 0, 100).ticks() == pytest.approx(ticks, rel=1e-4)


def test_the_lower_half_of_an_error_bar_is_cut_off_or_where_the_edge_means_nothing_left_out() -> (
    None
):
    ends = []
    for logarithmic in (False, True):
        y = Axis(label="y", low=None if logarithmic else 0.0, logarithmic=logarithmic)
        line = Line(label="l", colour=0, marks=(Mark(1, 2, 3), Mark(2, 4)))
        drawn = draw_chart(Chart(title="", x=Axis(label="x"), y=y, lines=(line,)), "c")
        bar = re.search(r'class="error" d="M\S+ (\S+)V', drawn)
        mark = re.search(r'<circle class="mark" cx="\S+" cy="(\S+)"', drawn)
        assert bar
        assert mark
        ends.append((bar[1], mark[1]))
    (cut, _), (end, at) = ends
    assert cut == f"{HEIGHT - BOTTOM:.1f}"
    assert end == at
