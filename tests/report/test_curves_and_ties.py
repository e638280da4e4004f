"""Curves of runs and engines number by number, and what is left when an engine has nothing to show."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
import pytest
from made_up import JCT, runs_of, summary
from msgspec import structs
from test_exact_reports import ranking
from test_whole_reports import campaign
from test_wide_figures import ended, placed, run_of, submitted

from argosy.papers.charts import Axis, Chart, Mark
from argosy.records.summary import Distribution, KindSummary
from argosy.report import campaigns
from argosy.report.compare_report import _distributions, _over_time
from argosy.report.comparison import KindRank, compare
from argosy.report.figures import Span, _error_bar
from argosy.report.notable_jobs import notable_jobs
from argosy.report.over_time import Heat, RunCurves, curves_of
from argosy.report.plots import stacked
from argosy.report.sweeps import SweepResult, SweepRow
from argosy.report.wide_figures import draw_machine_heat


class TestCurvesOfARun:
    def test_times_begin_when_a_job_was_submitted_and_are_those_of_its_kind(self) -> None:
        run = run_of(
            submitted(0, "a", at=2),
            placed(3, "a", 0),
            submitted(1, "b", kind="query", at=4),
            submitted(2, "c", kind="query", at=5),
            placed(9, "c", 0),
            ended(10, (0, 0)),
            submitted(3, "d", at=11),
            placed(11, "d", 0, machine=1),
            ended(16, (3, 0)),
            submitted(4, "e", kind="query", at=160),
        )
        curves = curves_of(run)
        assert {kind: times.tolist() for kind, times in curves.jct.items()} == {
            "batch": [8.0, 5.0],
            "query": [],
        }
        assert {kind: times.tolist() for kind, times in curves.wait.items()} == {
            "batch": [1.0, 0.0],
            "query": [4.0],
        }
        assert (curves.at[0], curves.at[-1], len(curves.at)) == (0.0, 160.0, 161)
        # Just before each second: a waits from 2, b from 4, c from 5, until they have a machine.
        assert curves.waiting[:13].tolist() == [0, 0, 0, 1, 0, 1, 2, 2, 2, 2, 1, 1, 1]
        assert curves.running[:13].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 1, 2]
        assert (curves.waiting[-1], curves.running[16], curves.running[17]) == (1, 2, 1)


def curves(*at: float, jct: dict[str, list[float]], **used: list[float]) -> RunCurves:
    return RunCurves(
        jct={kind: np.array(times) for kind, times in jct.items()},
        wait={"batch": np.array([2.0])},
        at=np.array(at),
        used={name: np.array(shares) for name, shares in used.items()},
        waiting=np.array([5.0] * len(at)),
        running=np.array([7.0] * len(at)),
    )


def marks(chart: Chart) -> dict[str, list[tuple[float, float]]]:
    return {line.label: [(mark.x, mark.y) for mark in line.marks] for line in chart.lines}


class TestCurvesOfEngines:
    SHORT = curves(0.0, 4.0, jct={"batch": [1.0], "query": []}, cpu=[0.5, 1.0], gpu=[0.0, 0.0])
    LONG = curves(0.0, 2.0, 6.0, jct={"batch": [3.0]}, cpu=[0.1, 0.2, 0.3], gpu=[1.0, 0.0, 1.0])

    def test_all_stand_on_the_time_of_the_longest_and_a_run_is_empty_after_its_end(self) -> None:
        cpu, gpu, waiting = _over_time({"a": self.SHORT, "b": self.LONG})
        assert marks(cpu) == {
            "a": [(0.0, 0.5), (2.0, 0.75), (6.0, 0.0)],
            "b": [(0.0, 0.1), (2.0, 0.2), (6.0, 0.3)],
        }
        assert marks(gpu)["b"] == [(0.0, 1.0), (2.0, 0.0), (6.0, 1.0)]
        assert marks(waiting) == {
            "a": [(0.0, 5.0), (2.0, 5.0), (6.0, 0.0)],
            "b": [(0.0, 5.0), (2.0, 5.0), (6.0, 5.0)],
        }
        said = [(each.title, each.y.label, each.y.high) for each in (cpu, gpu, waiting)]
        assert said == [
            ("used share of cpu", "share", 1.0),
            ("used share of gpu", "share", 1.0),
            ("tasks that wait", "tasks", None),
        ]

    def test_a_kind_has_its_own_chart_if_there_are_several_and_a_job_of_it_ended(self) -> None:
        both = _distributions({"a": self.SHORT, "b": self.LONG})
        assert [chart.title for chart in both] == [
            "job completion time",
            "until all tasks had a machine",
            "job completion time: batch",
        ]
        assert marks(both[0]) == {"a": [(1.0, 0.0), (1.0, 1.0)], "b": [(3.0, 0.0), (3.0, 1.0)]}
        assert marks(both[1]) == {name: [(2.0, 0.0), (2.0, 1.0)] for name in "ab"}
        assert len(_distributions({"b": self.LONG})) == 2
        query = structs.replace(self.SHORT, jct={"query": np.array([4.0])})
        [*_, batch, other] = _distributions({"b": self.LONG, "a": query})
        assert (batch.title, marks(batch)) == (
            "job completion time: batch",
            {"b": [(3.0, 0.0), (3.0, 1.0)]},
        )
        assert (other.title, marks(other)) == (
            "job completion time: query",
            {"a": [(4.0, 0.0), (4.0, 1.0)]},
        )


def test_engines_that_tie_in_everything_stand_in_the_order_of_their_names() -> None:
    compared = compare(runs_of(c=[10e6], a=[10e6], b=[10e6]), JCT)
    assert (compared.best, compared.leaders) == ("a", ("a", "b", "c"))
    assert [standing.engine for standing in compared.standings] == ["a", "b", "c"]
    assert compared.standing("a").ratio is None
    assert [(standing.place, standing.engine) for standing in compared.ranked()] == [
        (1, "a"),
        (1, "b"),
        (1, "c"),
    ]


def test_a_kind_of_which_no_job_finished_has_no_median() -> None:
    def kind(finished: int, jct: Distribution, endless: int = 0) -> KindSummary:
        nothing = Distribution()
        return KindSummary(
            jobs=4, jobs_finished=finished, jobs_abandoned=0, jobs_endless=endless,
            wait_time=nothing, placement_latency=nothing, jct=jct,
        )  # fmt: skip

    kinds = {
        "batch": kind(2, Distribution(count=2, p50=5.0), endless=1),
        "query": kind(0, Distribution()),
        "web": kind(0, Distribution(), endless=4),
    }
    made = structs.replace(summary("a"), kinds=kinds, owners={"ann": kinds["batch"]})
    standing = compare({"a": [made]}, JCT).standing("a")
    assert standing.kinds == {
        "batch": KindRank(jct=5.0, finished=2 / 3),
        "query": KindRank(jct=None, finished=0.0),
        "web": KindRank(jct=None, finished=None),
    }
    assert standing.owners == {}


def test_a_campaign_as_a_document_has_everything() -> None:
    found = campaigns.document(campaign())
    assert list(found) == ["runs", "world", "rows", "failures", "seconds"]
    assert found == {"runs": 2_010, **msgspec.to_builtins(campaign())}


@pytest.mark.parametrize("lost", ["a", "b"])
def test_medians_do_not_cross_if_one_of_the_two_is_unknown(lost: str) -> None:
    first: dict[str, Any] = {"a": (1, 4e6), "b": (2, 6e6)}
    last: dict[str, Any] = {"a": (2, 9e6), "b": (1, 3e6)}
    (last if lost == "a" else first)[lost] = (None, None)
    rows = tuple(SweepRow(at, ranking("jct", **each)) for at, each in enumerate((first, last)))
    [change] = SweepResult(scenario="x", varied="y", metric="jct", rows=rows).changes()
    assert (change.was, change.now, change.crossing) == (("a",), ("b",), None)


def test_stacks_of_less_than_one_fill_their_room_too() -> None:
    found = stacked({"a": (0.25, 0.25), "b": (0.25,)}, ("x", "y"), "{:g}".format, 18)
    assert found == ["a  ░░░░░▓▓▓▓▓  0.5", "b  ░░░░░       0.25", "   ░ x  ▓ y"]


def test_of_unfinished_jobs_only_services_may_run_and_those_that_run_say_so() -> None:
    run = run_of(
        submitted(0, "web", 2, seconds=None),
        submitted(1, "late"),
        submitted(2, "idle", seconds=None),
        placed(1, "web", 0, 1),
        placed(2, "late", 0),
        submitted(3, "z", at=9),
    )
    found = {each.job: (each.took, each.reason) for each in notable_jobs(run)}
    assert list(found) == ["late", "idle", "z"]
    assert found["late"] == (9_000_000, "late/0 still runs.")
    assert found["idle"][1].startswith("idle/0 ")
    assert "still runs" not in found["idle"][1]


@pytest.mark.parametrize(("error", "is_whole"), [(1.0, True), (1.01, False)])
def test_an_error_bar_may_reach_the_edge(error: float, is_whole: bool) -> None:
    axis = Axis(label="", low=1.0, high=100.0, logarithmic=True)
    y = Span(axis, [], 220.0, 20.0)
    x = Span(Axis(label="", low=0.0, high=10.0), [], 0.0, 100.0)
    drawn = _error_bar(Mark(5.0, 2.0, error), x, y)
    found = re.findall(r"M50.0 (\S+)V(\S+)M", drawn)
    middle = f"{y(2.0):.1f}"
    assert found == [(f"{y(1.0):.1f}" if is_whole else middle, f"{y(2.0 + error):.1f}")]


def test_the_axis_of_time_is_below_all_machines() -> None:
    names = ("m0", "m1", "m2")
    drawn = draw_machine_heat(Heat(names, np.array([5.0, 10.0]), np.zeros((3, 2))))
    assert re.findall(r'<line class="axis" .*?/>', drawn) == [
        '<line class="axis" x1="110" y1="42" x2="888" y2="42"/>'
    ]
    assert set(re.findall(r'y="(\d+)" text-anchor="(?:start|middle)"', drawn)) == {"58"}
