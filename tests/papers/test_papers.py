"""Experiments resume, do not depend on processes, and end in claims and figures."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from argosy.model.errors import ArgosyError, UnknownEngine, UnknownName
from argosy.papers.charts import Axis, Chart, Figure, HeatMap, Line, Mark
from argosy.papers.claims import Claim
from argosy.papers.experiment import (
    ExperimentPoint,
    Findings,
    PointResult,
    Store,
    digest,
    run_points,
)
from argosy.papers.omega import OMEGA
from argosy.papers.omega.points import FIGURES, SCALES
from argosy.papers.omega.world import run_point
from argosy.papers.registry import PAPERS
from argosy.papers.selection import selected
from argosy.report.figures import draw_chart
from argosy.report.html import page


def point(number: int = 1, seed: int = 1) -> ExperimentPoint:
    return ExperimentPoint(
        paper="none", figure="1", parameters={"number": number}, seed=seed, scale="tiny"
    )


def doubled(given: ExperimentPoint) -> PointResult:
    return PointResult({"doubled": 2.0 * float(given.parameters["number"]) + given.seed})


def refuses_three(given: ExperimentPoint) -> PointResult:
    if given.parameters["number"] == 3:
        raise KeyboardInterrupt
    return doubled(given)


def fails(given: ExperimentPoint) -> PointResult:
    raise UnknownEngine("omgea", ["omega"])


POINTS = [point(number) for number in range(1, 6)]


class TestExperiment:
    def test_what_was_done_before_an_interrupt_is_not_run_again(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        with pytest.raises(KeyboardInterrupt):
            run_points(POINTS, refuses_three, store)
        assert [store.read(each) is not None for each in POINTS] == [
            True,
            True,
            False,
            False,
            False,
        ]
        ran = []

        def counted(given: ExperimentPoint) -> PointResult:
            ran.append(given)
            return doubled(given)

        results = run_points(POINTS, counted, store)
        assert ran == POINTS[2:]
        assert results == run_points(POINTS, doubled, None)

    def test_again_runs_everything(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        store.write(POINTS[0], PointResult({"doubled": -1.0}))
        assert run_points(POINTS[:1], doubled, store)[digest(POINTS[0])]["doubled"] == -1.0
        assert (
            run_points(POINTS[:1], doubled, store, again=True)[digest(POINTS[0])]["doubled"] == 3.0
        )

    def test_results_do_not_depend_on_the_number_of_processes(self, tmp_path: Path) -> None:
        one = run_points(POINTS, doubled, Store(tmp_path / "one"))
        two = run_points(POINTS, doubled, Store(tmp_path / "two"), processes=2)
        assert one == two
        names = sorted(path.name for path in (tmp_path / "one").iterdir())
        assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
        for name in names:
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()

    def test_a_mistake_in_another_process_keeps_its_code(self) -> None:
        with pytest.raises(ArgosyError, match="omgea") as caught:
            run_points(POINTS, fails, None, processes=2)
        assert caught.value.code == "unknown-engine"

    def test_a_write_that_fails_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(source: str, target: Path) -> None:
            raise OSError("no space")

        monkeypatch.setattr("os.replace", full)
        with pytest.raises(OSError, match="no space"):
            Store(tmp_path).write(POINTS[0], PointResult({}))
        assert list(tmp_path.iterdir()) == []

    def test_a_damaged_file_counts_as_none(self, tmp_path: Path) -> None:
        store = Store(tmp_path)
        store.write(POINTS[0], PointResult({"doubled": 3.0}))
        store.path(POINTS[0]).write_bytes(store.path(POINTS[0]).read_bytes()[:40])
        assert store.read(POINTS[0]) is None

    def test_another_version_of_argosy_has_other_results(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = Store(tmp_path)
        store.write(POINTS[0], PointResult({"doubled": 3.0}))
        monkeypatch.setattr("argosy.papers.experiment.__version__", "99")
        assert store.read(POINTS[0]) is None

    def test_equal_points_and_only_they_have_one_digest(self) -> None:
        assert digest(point(1)) == digest(point(1))
        assert len({digest(p) for p in (point(1), point(2), point(1, seed=2))}) == 3

    def test_progress_ends_at_one(self) -> None:
        told: list[float] = []
        run_points(POINTS, doubled, None, tell=told.append)
        assert told == sorted(told)
        assert told[-1] == 1.0


def tiny(figures: list[str]) -> tuple[list[ExperimentPoint], Findings]:
    points = OMEGA.plan("smoke", figures)
    return points, Findings(points, run_points(points, run_point, None))


class TestSelection:
    def test_points_are_told_apart_by_their_parameters(self) -> None:
        assert selected(POINTS, {"number": ["2", "5"]}, {}) == [POINTS[1], POINTS[4]]
        assert selected(POINTS, {}, {}) == POINTS

    def test_points_that_a_change_makes_equal_are_run_once(self) -> None:
        assert selected(POINTS, {}, {"number": "7"}) == [point(7)]

    def test_a_changed_number_is_of_the_kind_that_was_planned(self) -> None:
        planned = ExperimentPoint(
            paper="none", figure="1", parameters={"seconds": 120.0}, seed=1, scale="tiny"
        )
        changed = selected([planned], {}, {"seconds": "5"})[0]
        assert digest(changed) == digest(
            msgspec.structs.replace(planned, parameters={"seconds": 5.0})
        )

    def test_points_without_a_parameter_are_left_out_and_not_changed(self) -> None:
        other = ExperimentPoint(paper="none", figure="2", parameters={}, seed=1, scale="tiny")
        assert selected([*POINTS, other], {"number": ["1"]}, {}) == [point(1)]
        assert other in selected([*POINTS, other], {}, {"number": "7"})

    def test_what_is_usual_can_be_changed_though_no_point_names_it(self) -> None:
        usual = {"fill": "first-fit", "number": 1, "hours": 2.0}
        (changed,) = selected([point(3)], {}, {"fill": "best-fit", "hours": "5"}, usual)
        assert changed.parameters == {"number": 3, "fill": "best-fit", "hours": 5.0}
        other = ExperimentPoint(paper="none", figure="2", parameters={}, seed=1, scale="tiny")
        assert other in selected([*POINTS, other], {}, {"number": "7"}, usual), "others name it"
        with pytest.raises(UnknownName, match="fill"):
            selected(POINTS, {"fill": ["best-fit"]}, {}, usual)

    def test_the_earlier_set_ups_of_omega_can_be_run_again(self) -> None:
        planned = OMEGA.plan("quick", ["12"])
        changed = selected(planned, {}, {"fill": "best-fit", "machines": "alike"}, OMEGA.usual)
        before = [p.parameters for p in planned if p.figure == "12"]
        after = [p.parameters for p in changed if p.figure == "12"]
        assert after == [{**one, "machines": "alike", "fill": "best-fit"} for one in before]


class TestOmega:
    @pytest.mark.parametrize("scale", SCALES)
    def test_no_point_is_planned_twice(self, scale: str) -> None:
        points = OMEGA.plan(scale, FIGURES)
        assert len({digest(each) for each in points}) == len(points)

    def test_a_point_gives_the_same_result_twice(self) -> None:
        chosen = OMEGA.plan("smoke", ["8"])[0]
        assert run_point(chosen) == run_point(chosen)

    def test_a_figure_end_to_end(self) -> None:
        points, found = tiny(["9"])
        assert len(points) == 6
        drawn = OMEGA.draw(found, ["9"])
        assert [panel.title for panel in drawn[0].panels] == [
            "(a) Conflict fraction",
            "(b) Scheduler busyness",
        ]
        panel = drawn[0].panels[1]
        assert isinstance(panel, Chart)
        busy = {line.label: [mark.y for mark in line.marks] for line in panel.lines}
        # Four schedulers have a quarter of the work each; four times the arrivals, four times more.
        one, four = busy["1 batch scheduler"], busy["4 batch schedulers"]
        assert one[1] == pytest.approx(4 * four[1], rel=0.1)
        assert one[1] > 2 * one[0]
        # One and four schedulers do not show how conflicts grow from two on.
        assert {claim.id for claim in OMEGA.claims(found, ["9"])} == {
            "omega-9b-busyness-falls",
            "omega-9-waits-fall",
        }

    def test_conflicts_are_compared_only_where_every_kind_of_transaction_keeps_up(self) -> None:
        """At 1 and 10 s all keep up, if just so; at 100 s one of the four falls behind, and at 1000 s
        that is only so if ends of tasks count as changes. There, all numbers are large."""
        conflicts = {
            ("incremental", "fine"): (0.1, 0.3, 50, 1.8),
            ("atomic", "fine"): (0.2, 0.4, 60, 0.6),
            ("incremental", "coarse-claims"): (0.5, 0.5, 70, 1.2),
            ("atomic", "coarse-claims"): (0.6, 0.8, 80, 0.8),
            ("incremental", "coarse"): (0.7, 0.9, 90, 9),
            ("atomic", "coarse"): (0.9, 0.7, 10, 9),
        }
        points, results = [], {}
        for (transaction, detection), values in conflicts.items():
            for t_job, value in zip((1, 10, 100, 1000), values, strict=True):
                is_behind = (transaction, detection, t_job) in (
                    ("incremental", "fine", 100), ("atomic", "coarse", 1000),
                )  # fmt: skip
                at = ExperimentPoint(
                    paper="omega", figure="14", seed=1, scale="tiny",
                    parameters={
                        "service_t_job": t_job, "transaction": transaction, "detection": detection
                    },
                )  # fmt: skip
                points.append(at)
                results[digest(at)] = PointResult(
                    {
                        "service.unscheduled": 0.021 if is_behind else 0.02,
                        "service.conflicts": float(value),
                        "service.busyness": value / (2.0 if detection == "fine" else 1.0),
                    }
                )
        found = Findings(points, results)
        told = {claim.id.removeprefix("omega-14-"): claim for claim in OMEGA.claims(found, ["14"])}
        # Means of the first two, and of the last if coarse means claims: 2.2 / 3 is usual.
        assert {name: claim.here for name, claim in told.items()} == {
            "all-or-nothing-conflicts": "0.55x",
            "all-or-nothing-busyness": "0.55x",
            "coarse-detection": "conflicts 1.00x, busyness 2.00x "
            "(with all-or-nothing 1.00x, 2.00x)",
            "coarse-detection-busyness": "2.00x",
            "coarse-detection-any-change": "conflicts 4.00x, busyness 8.00x "
            "(with all-or-nothing 4.00x, 8.00x)",
            "coarse-detection-busyness-any-change": "8.00x",
        }
        assert told["coarse-detection"].note.startswith("means up to t_job(service) = 1000 s")
        assert told["coarse-detection-any-change"].note.startswith(
            "means up to t_job(service) = 10 s"
        )
        assert told["coarse-detection-any-change"].holds
        assert not told["coarse-detection"].holds

    def test_claims_are_left_out_where_nothing_was_measured(self) -> None:
        assert OMEGA.claims(Findings([], {}), FIGURES) == []

    def test_monolithic_services_hold_up_batch_jobs_and_omega_does_not(self) -> None:
        waits = {}
        for scheme in ("multi-path", "omega"):
            parameters: dict[str, str | int | float] = {
                "scheme": scheme, "service_t_job": 100.0, "hours": 1.0, "cell": 0.1,
            }  # fmt: skip
            waits[scheme] = run_point(
                ExperimentPoint(
                    paper="omega", figure="5", parameters=parameters, seed=1, scale="test"
                )
            )["batch.wait"]
        assert waits["multi-path"] > 100 * waits["omega"]

    def test_mapreduce_jobs_are_faster_with_more_workers_than_without(self) -> None:
        results = {}
        for policy in ("none", "max-parallelism"):
            parameters: dict[str, str | int | float] = {
                "cluster": "D", "policy": policy, "hours": 3.0, "cell": 0.3,
            }  # fmt: skip
            results[policy] = run_point(
                ExperimentPoint(
                    paper="omega", figure="15", parameters=parameters, seed=1, scale="test"
                )
            )
        before, after = results["none"], results["max-parallelism"]
        assert before["mapreduce.faster"] == 0
        assert after["mapreduce.faster"] > 0.2
        assert len(after.series["speed_up"]) == 101
        assert len(after.series["cpu"]) == len(after.series["hours"])

    @pytest.mark.parametrize(
        ("heavy", "plain", "holds"),
        [
            ((0.0, 1.0), (0.0, 0.5), True),
            ((0.0, 1.0), (0.0, 1.0), True),
            ((0.0, 1.0), (0.1, 0.5), False),
            ((0.0, 1.0), (0.0, 1.1), False),
            ((1.0, 1.0), (0.0, 0.5), False),
            ((0.5, 1.0), (0.5, 0.5), False),
        ],
    )
    def test_simulators_agree_with_as_many_conflicts_as_with_first_fit(
        self, heavy: tuple[float, ...], plain: tuple[float, ...], holds: bool
    ) -> None:
        points, results = [], {}
        for figure, conflicts in (("12", heavy), ("5c", plain)):
            for t_job, fraction in zip((0.1, 1.0), conflicts, strict=True):
                made = ExperimentPoint(
                    paper="omega",
                    figure=figure,
                    parameters={"cluster": "B", "service_t_job": t_job},
                    seed=1,
                    scale="tiny",
                )
                points.append(made)
                results[digest(made)] = PointResult({"service.conflicts": fraction})
        claims = {claim.id: claim for claim in OMEGA.claims(Findings(points, results), ["12"])}
        assert claims["omega-12-simulators-agree"].holds is holds

    @pytest.mark.parametrize("figure", ["2", "3", "4"])
    def test_the_workload_is_described_without_a_run(self, figure: str) -> None:
        _, found = tiny([figure])
        (drawn,) = OMEGA.draw(found, [figure])
        for panel in drawn.panels:
            assert isinstance(panel, Chart)
            assert all(line.marks for line in panel.lines)
        assert all(
            claim.id.startswith(f"omega-{figure}-") for claim in OMEGA.claims(found, [figure])
        )
        assert OMEGA.claims(found, [figure])

    def test_the_published_simulator_s_mesos_is_measured_like_the_other(self) -> None:
        points = [
            point
            for point in OMEGA.plan("smoke", ["7"])
            if point.figure in ("7", "7-simulator")
            and point.parameters["cluster"] == "A"
            and point.parameters["service_t_job"] in (0.1, 10.0)
        ]
        found = Findings(points, {digest(point): run_point(point) for point in points})
        ids = [claim.id for claim in OMEGA.claims(found, ["7"])]
        assert ids == [
            "omega-7c-mesos-abandons-jobs",
            "omega-7c-mesos-abandons-jobs-simulator",
        ]

    @pytest.mark.parametrize("figure", ["11", "15", "16"])
    def test_figures_are_drawn_from_what_was_measured(self, figure: str) -> None:
        _, found = tiny([figure])
        (drawn,) = OMEGA.draw(found, [figure])
        assert drawn.number == figure
        # At this scale, cluster D has no MapReduce job that ends.
        for panel in drawn.panels[:2]:
            if isinstance(panel, Chart):
                assert all(len(line.marks) > 10 for line in panel.lines)
            else:
                assert all(value is not None for row in panel.rows for value in row)
        assert OMEGA.claims(found, [figure]) or figure == "15"


class TestPage:
    def test_it_has_every_figure_and_no_address(self) -> None:
        text = page(PAPERS["omega"], SCALES["smoke"], [], OMEGA.draw(Findings([], {}), FIGURES), [])
        for figure in FIGURES:
            assert f'id="figure-{figure}"' in text
        assert "://" not in text
        assert not re.search(r"\b(src|href|@import|url\((?!#))", text)

    def test_text_is_escaped(self) -> None:
        claim = Claim(id="x", figure="1", paper="a < b", here="<script>", tolerance="", holds=False)
        figure = Figure(
            number="1", title="<b>", caption="", panels=(),
        )  # fmt: skip
        text = page(OMEGA, SCALES["smoke"], [claim], [figure], ["<i>"])
        assert "<script>" not in text
        assert "<i>" not in text
        assert "a &lt; b" in text

    def test_every_mark_is_drawn_inside_the_picture(self) -> None:
        marks = (Mark(0.01, 0.0), Mark(1.0, 5.0, 10.0), Mark(100.0, 1e9))
        chart = Chart(
            title="t",
            x=Axis(label="x", logarithmic=True),
            y=Axis(label="y", logarithmic=True, low=0.01, high=1000.0),
            lines=(Line(label="l", marks=marks), Line(label="none", marks=())),
        )
        text = draw_chart(chart, "c")
        assert "nan" not in text
        assert text.count("<circle") == 3
        assert all(30 <= float(y) <= 234 for y in re.findall(r'cy="([-\d.]+)"', text))

    def test_an_error_bar_that_a_logarithmic_axis_cannot_show_begins_at_its_mark(self) -> None:
        chart = Chart(
            title="t",
            x=Axis(label="x"),
            y=Axis(label="y", logarithmic=True, low=0.01, high=100.0),
            lines=(Line(label="l", marks=(Mark(1.0, 1.0, 2.0), Mark(2.0, 10.0, 5.0))),),
        )
        text = draw_chart(chart, "c")
        heights = re.findall(r'cy="([-\d.]+)"', text)
        bars = re.findall(r'class="error" d="M[-\d.]+ ([-\d.]+)V', text)
        assert bars[0] == heights[0]
        assert float(bars[1]) > float(heights[1])

    def test_a_heat_map_shows_numbers_and_crosses_out(self) -> None:
        heat = HeatMap(
            title="t", x="x", y="y", value="busyness", xs=("1", "2"), ys=("3",),
            rows=((0.25, None),), struck=((True, False),), struck_label="unscheduled",
        )  # fmt: skip
        figure = Figure(number="1", title="", caption="", panels=(heat,))
        text = page(OMEGA, SCALES["smoke"], [], [figure], [])
        assert ">0.25<" in text
        assert text.count('fill="url(#f1-0)"') == 1


class TestCommand:
    def argosy(self, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "argosy.cli", "paper", *arguments],
            cwd=cwd, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip

    def test_claims_come_as_json_in_one_form(self, tmp_path: Path) -> None:
        done = self.argosy(tmp_path, "omega", "--smoke", "--figure", "9", "-o", "json")
        assert done.returncode == 0, done.stderr
        fields = [field.name for field in msgspec.structs.fields(Claim)]
        assert fields == ["id", "figure", "paper", "here", "tolerance", "holds", "setup", "note"]
        document = json.loads(done.stdout)
        assert [list(claim) for claim in document] == [fields] * 2
        assert msgspec.convert(document, list[Claim])
        assert len(list((tmp_path / "runs" / "paper-omega-smoke").iterdir())) == 6
        assert 'id="figure-9"' in (tmp_path / "runs" / "paper-omega.html").read_text("utf-8")

    @pytest.mark.parametrize("arguments", [("omgea",), ("omega", "--figure", "99")])
    def test_unknown_names_are_mistakes(self, tmp_path: Path, arguments: tuple[str, ...]) -> None:
        done = self.argosy(tmp_path, *arguments)
        assert done.returncode == 2
        assert done.stderr.startswith("argosy: error[unknown-name]")
        assert list(tmp_path.iterdir()) == []

    def test_a_part_of_the_points_is_run_with_other_parameters(self, tmp_path: Path) -> None:
        done = self.argosy(
            tmp_path, "firmament", "--smoke", "--figure", "14", "--where", "scheduler=firmament",
            "--where", "scheduler=race", "--set", "seconds=1", "-o", "json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert [claim["id"] for claim in json.loads(done.stdout)] == ["14-sub-second"]
        kept = (tmp_path / "runs" / "paper-firmament-smoke").iterdir()
        told = [json.loads(path.read_text("utf-8"))["point"]["parameters"] for path in kept]
        assert sorted(each["scheduler"] for each in told) == ["firmament", "race"]
        assert {each["seconds"] for each in told} == {1.0}

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--where", "schedulers=race"), "did you mean 'scheduler'"),
            (("--where", "scheduler=rase"), "did you mean 'race'"),
            (("--where", "scheduler"), "NAME=VALUE"),
            (("--set", "second=1"), "did you mean 'seconds'"),
            (("--set", "seconds=soon"), "a number such as 5.0"),
        ],
    )
    def test_parameters_that_no_point_has_are_mistakes(
        self, tmp_path: Path, arguments: tuple[str, ...], says: str
    ) -> None:
        done = self.argosy(tmp_path, "firmament", "--smoke", "--figure", "14", *arguments)
        assert done.returncode == 2
        assert says in done.stderr
        assert list(tmp_path.iterdir()) == []

    def test_a_paper_without_recorded_input_takes_no_trace(self, tmp_path: Path) -> None:
        done = self.argosy(tmp_path, "medea", "--smoke", "--trace", ".")
        assert done.returncode == 2
        assert done.stderr.startswith("argosy: error[command]")
        assert list(tmp_path.iterdir()) == []
