"""`argosy sweep`: one value of a scenario varied."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import QUICKSTART, Call
from made_up import JCT, runs_of

from argosy.report.comparison import compare
from argosy.report.sweeps import SweepResult, SweepRow, sweep_figure, sweep_lines, sweep_table

SMALL = "cell.machines.small.count"


def made(*rows: tuple[object, dict[str, list[float]]]) -> SweepResult:
    return SweepResult(
        scenario="made-up",
        varied="load",
        metric="jct",
        rows=tuple(SweepRow(value, compare(runs_of(**jcts), JCT)) for value, jcts in rows),
    )


def test_the_place_where_the_best_engine_changes_is_told() -> None:
    found = made(
        (0.5, {"a": [10e6], "b": [20e6]}),
        (0.7, {"a": [20e6], "b": [30e6]}),
        (0.9, {"a": [60e6], "b": [40e6]}),
    )
    (change,) = found.changes()
    assert (change.after, change.before, change.was, change.now) == (0.7, 0.9, ("a",), ("b",))
    # Ahead by 8 s of the median at 0.7 and behind by 16 s at 0.9.
    assert change.crossing == pytest.approx(0.7 + 0.2 / 3)
    assert sweep_lines(found, JCT) == [
        "The best engine by median JCT changes at about load = 0.767, from a to b."
    ]
    assert [row["best"] for row in sweep_table(found, JCT).records()] == ["a", "a", "b"]


def test_values_that_are_no_numbers_have_no_crossing() -> None:
    found = made(("cold", {"a": [10e6], "b": [20e6]}), ("hot", {"a": [60e6], "b": [40e6]}))
    assert sweep_lines(found, JCT) == [
        "The best engine by median JCT changes between load = cold and hot, from a to b."
    ]
    (panel,) = sweep_figure(found, JCT).panels
    assert [mark.x for mark in panel.lines[0].marks] == [0, 1]  # type: ignore[union-attr]


def test_an_engine_that_is_best_everywhere_is_told() -> None:
    found = made((1, {"a": [10e6], "b": [20e6]}), (2, {"a": [10e6], "b": [10e6]}))
    assert sweep_lines(found, JCT) == ["Best by median JCT at every value: a."]


def test_each_value_is_run_with_each_engine(argosy: Call, tmp_path: Path) -> None:
    picture = tmp_path / "sweep.html"
    done = argosy(
        *("sweep", QUICKSTART, "--vary", f"{SMALL}=1,16", "--engine", "omega", "--jobs", "1"),
        *("--engine", "murmuration", "--seeds", "1", "--rank-all", "--html", picture, "-o", "json"),
    )
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert [row["value"] for row in document["rows"]] == [1, 16]
    for row in document["rows"]:
        assert {s["engine"] for s in row["ranking"]["standings"]} == {"omega", "murmuration"}
    few, many = (row["ranking"]["standings"][0]["mean_jct"] for row in document["rows"])
    assert few > many
    page = picture.read_text("utf-8")
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_scenario_s_own_fleet_is_the_default(argosy: Call) -> None:
    done = argosy("sweep", QUICKSTART, "--vary", f"{SMALL}=8,16", "--seeds", "1", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [(row["value"], row["best"]) for row in rows] == [
        ("8", "own fleet"),
        ("16", "own fleet"),
    ]


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        ("horizon", "expected a place in the file and values"),
        ("=5", "expected a place in the file and values"),
        ("cell.machines.tiny.count=1", "there is no cell.machines.tiny"),
        ("cell.machines.7.count=1", "a number below 2"),
        ("seed.low=1", "there is no seed.low"),
        (f"{SMALL}=3,-1", "cell.machines[0].count: -1"),
        ("cell.color=red", "cell.color"),
    ],
)
def test_a_value_that_cannot_be_varied_is_one_clear_error(
    argosy: Call, vary: str, words: str
) -> None:
    done = argosy("sweep", QUICKSTART, "--vary", vary, "--seeds", "1")
    assert done.code == 2
    assert words in done.complaint


def test_a_picture_that_cannot_be_written_is_one_clear_error(argosy: Call, tmp_path: Path) -> None:
    done = argosy(
        *("sweep", QUICKSTART, "--vary", f"{SMALL}=8", "--seeds", "1"),
        *("--html", tmp_path / "none" / "x.html"),
    )
    assert done.code == 2
    assert "No such file" in done.complaint


def test_progress_goes_from_value_to_value(argosy: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    titles: list[str] = []

    @contextmanager
    def progress(title: str) -> Iterator[Callable[[float], None]]:
        titles.append(title)
        yield told.append

    monkeypatch.setattr("argosy.cli.sweep.progress", progress)
    vary = f"{SMALL}=6,7"
    assert argosy("sweep", QUICKSTART, "--vary", vary, "--seeds", "1", "--jobs", "1").code == 0
    assert titles == ["2 values x 1 engines x 1 seeds"]
    assert told == sorted(told)
    assert 0.5 in told
    assert min(told) == 0.0
    assert 0.5 < max(told) <= 1.0
