"""Plots in the terminal, column by column, and maps whose cells are where their labels are."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from argosy.engines.api import NeededExtra, Settings
from argosy.papers.charts import HeatMap
from argosy.report import notable_jobs, schemas
from argosy.report.catalogue import lacking
from argosy.report.figures import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, draw_heat_map
from argosy.report.notable_jobs import NotableJob
from argosy.report.plots import Bar, bars, quantiles, stacked
from argosy.report.run_report import notable_parts


def test_bars_end_at_their_values_and_whiskers_at_their_ends() -> None:
    rows = [
        Bar("a", 5.0, 4.0, 10.0, "5 s"),
        Bar("long", 10.0, 10.0, 10.0, "10 s"),
        Bar("b", 0.0, 0.0, 0.0, "none"),
        Bar("c", 2.5, 1.0, 2.0, ""),
    ]
    # Two columns of labels and values, and ten between them: one for each second.
    assert bars(rows, len("long") + len("10 s") + 2 * 2 + 10) == [
        "a     ████├────┤  5 s",
        "long  ██████████  10 s",
        "b                 none",
        "c     █├┤",
    ]
    assert bars([], 40) == []
    assert bars([Bar("a", 0.0, 0.0, 0.0, "0")], 20) == ["a" + " " * 18 + "0"]


def test_a_drawing_has_ten_columns_at_least() -> None:
    rows = [Bar("a", 1.0, 1.0, 1.0, "x")]
    assert bars(rows, 3) == ["a  ██████████  x"]
    assert bars(rows, 17) == ["a  ███████████  x"]


def test_parts_of_a_stack_end_where_their_sums_do() -> None:
    rows = {"a": (1.0, 1.0, 3.0), "bb": (2.6, 7.4), "c": (0.0, 0.0, 0.0)}
    found = stacked(rows, ("one", "two", "three"), lambda value: f"{value:g} s", 20)
    assert found == [
        "a   ░▓███       5 s",
        "bb  ░░░▓▓▓▓▓▓▓  10 s",
        "c               0 s",
        "    ░ one  ▓ two  █ three",
    ]
    assert stacked({}, ("one",), str, 20) == ["  ░ one"]
    nothing = stacked({"a": (0.0,)}, ("one",), "{:g}".format, 15)
    assert nothing == ["a              0", "   ░ one"]


def test_quantiles_stand_on_a_common_axis_from_zero() -> None:
    rows = {"a": (1.0, 5.0, 10.0), "bb": (2.0, 2.0, 2.0)}
    assert quantiles(rows, ("p50", "p90", "p99"), "{:g}".format, 15) == [
        "a    ●───◆────▲",
        "bb    ●",
        "    0        10",
        "    ● p50  ◆ p90  ▲ p99",
    ]


def test_quantiles_far_apart_stand_on_a_logarithmic_axis() -> None:
    rows = {"a": (1.0, 10.0, 100.0), "b": (0.0, 0.5, 10.0)}
    found = quantiles(rows, ("p50", "p90", "p99"), "{:g}".format, 3 + 47)
    a, b, axis, _ = found
    # From 0.5 to 100 in 46 steps: 1 is at 46 ln 2 / ln 200, and what is less at the edge.
    assert [a.index(mark) - 3 for mark in "●◆▲"] == [6, 26, 46]
    assert [at - 3 for at, mark in enumerate(b) if mark in "●◆▲"] == [0, 26]
    assert b[3] == "●"
    assert axis == "   0.5" + "log scale".center(47 - 3 - 3) + "100"
    # Twenty times is not far.
    near = quantiles({"a": (1.0, 20.0)}, ("p50",), "{:g}".format, 40)
    assert "log" not in near[1]
    assert near[1].split() == ["0", "20"]
    far = quantiles({"a": (1.0, 20.1)}, ("p50",), "{:g}".format, 40)
    assert "log scale" in far[1]
    assert quantiles({"a": (0.0, 0.0)}, ("p50",), "{:g}".format, 40) == []


def test_cells_of_a_map_are_where_their_labels_are() -> None:
    heat = HeatMap(
        title="t", x="x", y="y", value="v", xs=("1", "2"), ys=("p", "q", "r"),
        rows=((0.0, 1.0), (0.55, 0.56), (None, 0.25)),
        struck=((False, True), (False, False), (True, False)), struck_label="s",
    )  # fmt: skip
    drawn = draw_heat_map(heat, "m")
    width, height = (WIDTH - LEFT - RIGHT) / 2, (HEIGHT - TOP - BOTTOM) / 3

    def boxes(kind: str) -> list[tuple[float, float]]:
        found = re.findall(rf'<rect {kind} ?x="([\d.]+)" y="([\d.]+)"', drawn)
        return [(float(x), float(y)) for x, y in found]

    def corner(column: int, row: int) -> tuple[float, float]:
        at = LEFT + column * width + 0.5, TOP + row * height + 0.5
        return float(f"{at[0]:.1f}"), float(f"{at[1]:.1f}")

    cells = [(column, row) for row in range(3) for column in range(2)]
    missing = (0, 2)
    assert boxes('class="cold"') == [corner(*at) for at in cells if at != missing]
    assert boxes('class="none"') == [corner(*missing)]
    assert boxes("") == [corner(1, 0)], "what was not measured is not crossed out"
    assert drawn.count('fill="url(#m)"') == 1
    numbers = re.findall(r'class="(hot|cool)-number"[^>]*>([\d.]+)<', drawn)
    assert numbers == [
        ("cool", "0.00"), ("hot", "1.00"), ("cool", "0.55"), ("hot", "0.56"), ("cool", "0.25"),
    ]  # fmt: skip

    def texts(label: str) -> tuple[float, float]:
        ((x, y),) = re.findall(rf'<text[^>]*x="([\d.]+)" y="([\d.]+)"[^>]*>{label}</text>', drawn)
        return float(x), float(y)

    for column, label in enumerate(heat.xs):
        assert texts(label) == pytest.approx(
            (LEFT + (column + 0.5) * width, HEIGHT - BOTTOM + 15), abs=0.06
        )
    for row, label in enumerate(heat.ys):
        assert texts(label) == pytest.approx((LEFT - 7, TOP + (row + 0.5) * height + 4), abs=0.06)
    assert f'width="{width - 1:.1f}" height="{height - 1:.1f}"' in drawn
    empty = msgspec.structs.replace(heat, xs=(), ys=(), rows=(), struck=())
    assert "<rect" not in draw_heat_map(empty, "m")


def test_jobs_that_took_longest_come_first_and_those_not_done_not_at_all() -> None:
    jobs = SimpleNamespace(
        submitted=np.array([0, 5, 10, 10, 20, 30]), done=np.array([4, 9, 10, -1, 23, 39])
    )
    state: Any = SimpleNamespace(jobs=jobs)
    assert notable_jobs._slowest(state) == [5, 0, 1, 4, 2]


def notable(job: str, state: Any) -> NotableJob:
    return NotableJob(job, "batch", state, 5_000_000, f"why {job}")


def test_only_states_that_some_job_is_in_have_a_part() -> None:
    slow, open_ = notable("a", "slow"), notable("b", "unfinished")
    (part,) = notable_parts([slow])
    assert "Slowest jobs" in part
    assert "JCT" in part
    assert "with" not in part
    (part,) = notable_parts([open_], "omega")
    assert "Unfinished jobs with omega" in part
    assert "so far" in part
    assert "why b" in part
    first, second = notable_parts([open_, slow])
    assert "Slowest" in first
    assert "Unfinished" in second
    assert notable_parts([]) == []


class Plain(Settings, frozen=True):
    is_on: bool = True


class Needing(msgspec.Struct, frozen=True, kw_only=True):
    given: int


class Needy:
    name = "needy"
    settings_type: Any = Plain

    @classmethod
    def lack(cls, settings: Any) -> NeededExtra | None:
        return NeededExtra("solver", "take something else") if settings.is_on else None


def test_what_an_engine_lacks_with_its_defaults_is_told() -> None:
    needy: Any = Needy
    told = lacking(needy)
    assert "needy" in told
    assert "solver" in told

    class Off(Plain, frozen=True):
        is_on: bool = False

    class Content(Needy):
        settings_type = Off

    class Asking(Needy):
        """Its settings have no default."""

        settings_type = Needing

    content: Any = Content
    asking: Any = Asking
    bare: Any = SimpleNamespace(settings_type=Plain, name="bare")
    assert lacking(content) == lacking(asking) == lacking(bare) == ""


def test_schemas_are_written_as_they_stand_in_the_documentation(tmp_path: Path) -> None:
    schemas.main(tmp_path)
    docs = Path(__file__).parents[2] / "docs" / "schemas"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["compare.json", "run.json"]
    for each in tmp_path.iterdir():
        assert each.read_text("utf-8") == (docs / each.name).read_text("utf-8")
