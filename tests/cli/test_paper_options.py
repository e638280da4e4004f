"""Which points of a paper `argosy paper` runs, where it keeps them, and what it notes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_line import Call

from argosy.papers.claims import Claim
from argosy.papers.experiment import ExperimentPoint


def point(name: str, size: int) -> ExperimentPoint:
    values: dict[str, str | int | float] = {"name": name, "size": size}
    return ExperimentPoint(paper="p", figure="1", parameters=values, seed=1, scale="quick")


CLAIMS = (
    Claim(id="a", figure="1", paper="fast", here="faster", tolerance="2x", holds=True),
    Claim(id="b", figure="2", paper="slow", here="slower", tolerance="no", holds=True),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A paper, and what was asked of it."""
    seen = SimpleNamespace(plans=[], runs=[], claims=[], pages=[])
    points = [point("x", 1), point("x", 2), point("y", 1), point("y", 2)]

    def plan(scale: str, chosen: list[str]) -> list[ExperimentPoint]:
        seen.plans.append((scale, chosen))
        return points

    def claims(found: Any, chosen: list[str]) -> Any:
        seen.claims.append((found, chosen))
        return CLAIMS

    def run_points(points: Any, runner: Any, store: Any, **options: Any) -> dict[str, Any]:
        options.pop("tell")(0.5)
        seen.runs.append((points, str(store.directory), options))
        return {}

    def page(*parts: Any) -> str:
        seen.pages.append(parts)
        return "page"

    seen.paper = SimpleNamespace(
        name="p",
        title="The Paper",
        figures=("1", "2", "3"),
        on_request=("2",),
        alone=(),
        scales={
            name: SimpleNamespace(name=name, about=f"is {name}")
            for name in ("full", "quick", "smoke")
        },
        plan=plan,
        usual={},
        # A trace has every size.
        traced=lambda each, trace: point(str(each.parameters["name"]), 0),
        runner="runner",
        claims=claims,
        notes=lambda chosen: [],
        draw=lambda found, chosen: ["drawn"],
    )
    monkeypatch.setattr("argosy.papers.registry.find_paper", lambda name: seen.paper)
    monkeypatch.setattr("argosy.papers.experiment.run_points", run_points)
    monkeypatch.setattr("argosy.papers.experiment.Findings", lambda points, results: points)
    monkeypatch.setattr("argosy.report.html.page", page)
    return seen


@pytest.mark.parametrize(
    ("options", "scale"), [((), "quick"), (("--full",), "full"), (("--smoke",), "smoke")]
)
def test_each_scale_has_results_of_its_own(
    argosy: Call, asked: SimpleNamespace, options: tuple[str, ...], scale: str
) -> None:
    told = argosy("paper", "p", *options)
    assert asked.plans == [(scale, ["1", "3"])]
    [(points, directory, given)] = asked.runs
    assert (len(points), directory) == (4, f"runs/paper-p-{scale}")
    assert given == {"processes": os.cpu_count(), "again": False, "alone": ()}
    assert told.out.splitlines()[:3] == [
        "The Paper",
        f"scale {scale}: is {scale}",
        "2 of 2 claims hold",
    ]
    assert told.err == (
        f"\nfigures drawn in runs/paper-p.html, results saved in runs/paper-p-{scale}\n"
    )


@pytest.mark.parametrize(("count", "expected"), [(None, 1), (6, 6)])
def test_there_is_a_process_for_each_cpu_or_one_if_nobody_knows(
    argosy: Call,
    asked: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    count: int | None,
    expected: int,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    argosy("paper", "p")
    argosy("paper", "p", "--jobs", "3", "--again")
    assert [(given["processes"], given["again"]) for *_, given in asked.runs] == [
        (expected, False),
        (3, True),
    ]


def test_figures_come_in_the_order_of_the_paper_and_those_on_request_if_they_are_named(
    argosy: Call, asked: SimpleNamespace
) -> None:
    argosy("paper", "p", "--figure", "3", "--figure", "2", "--figure", "3")
    assert asked.plans == [("quick", ["2", "3"])]
    assert asked.claims[0][1] == ["2", "3"]


def test_points_are_chosen_by_any_value_of_each_parameter(
    argosy: Call, asked: SimpleNamespace
) -> None:
    told = argosy("paper", "p", "--where", "name=x", "--where", "size=1", "--where", "size=2")
    assert asked.runs[0][0] == [point("x", 1), point("x", 2)]
    assert told.err.splitlines()[0] == "note: claims are about 2 of 4 points"
    told = argosy("paper", "p", "--set", "size=9", "--set", "name=z")
    # Points that are alike now are run once.
    assert asked.runs[1][0] == [point("z", 9)]
    assert told.err.splitlines()[0] == "note: claims are about 1 of 4 points with size=9, name=z"
    _, _, _, drawn, notes = asked.pages[1]
    assert (drawn, notes) == (["drawn"], ["claims are about 1 of 4 points with size=9, name=z"])


def test_points_that_a_trace_makes_equal_are_run_once(
    argosy: Call, asked: SimpleNamespace, tmp_path: Path
) -> None:
    (tmp_path / "t").mkdir()
    argosy("paper", "p", "--trace", "t")
    assert asked.runs[0][0] == [point("x", 0), point("y", 0)]
    assert asked.claims[0][0] == [point("x", 0), point("y", 0)]


@pytest.mark.parametrize("text", ["size", "=1", "size=", "="])
@pytest.mark.parametrize("option", ["--where", "--set"])
def test_a_parameter_has_a_name_and_a_value(
    argosy: Call, asked: SimpleNamespace, option: str, text: str
) -> None:
    told = argosy("paper", "p", option, text).complaint
    assert f"{option} '{text}'; expected NAME=VALUE such as seconds=20" in told
    assert asked.runs == []


def test_claims_are_told_to_programs_with_all_that_is_known(
    argosy: Call, asked: SimpleNamespace
) -> None:
    document = json.loads(argosy("paper", "p", "-o", "json").out)
    assert [(each["id"], each["holds"], each["setup"], each["note"]) for each in document] == [
        ("a", True, "", ""),
        ("b", True, "", ""),
    ]
    lines = argosy("paper", "p").out.splitlines()
    # What is empty has no line.
    assert [" ".join(line.split()) for line in lines[4:8]] == [
        *("holds: a", "paper fast", "here faster", "tolerance 2x"),
    ]
    assert lines[8] == ""
