"""Reports just where something begins to be shown, or shown otherwise."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import numpy as np
import pytest
from made_up import JCT, runs_of, summary
from msgspec import structs

from argosy.host.journal import Journal
from argosy.host.records import (
    AbandonedRecord,
    CancelledRecord,
    EndedRecord,
    MachineRecord,
    PlacedRecord,
    ScaledRecord,
    SubmittedRecord,
)
from argosy.host.setup import HostSetup
from argosy.measures.statistics import Ratio
from argosy.model.explanations import Explanation
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import AddMachine
from argosy.model.units import Time
from argosy.papers.charts import Axis, Chart, Line, Mark
from argosy.records.journal_file import JournalFile
from argosy.records.journal_run import JournalRun
from argosy.records.state import RunState
from argosy.report import compare_report, over_time
from argosy.report.catalogue import settings
from argosy.report.comparison import compare
from argosy.report.figures import Span, draw_chart
from argosy.report.markdown import markdown_table
from argosy.report.notable_jobs import count_unfinished, notable_jobs, notable_sections
from argosy.report.over_time import POINTS, RunCurves, curves_of, machine_heat, shown_until
from argosy.report.priorities import ignored_notes
from argosy.report.tables import Column, Table
from argosy.report.verdicts import _is_skewed, reasons
from argosy.scenarios.ignored_demands import PRIORITIES, IgnoredDemand
from argosy.testing.builders import cell, job, scenario

SECOND = 1_000_000


def run_of(*facts: Any, machines: int = 8) -> JournalRun:
    stream = io.BytesIO()
    journal = Journal(stream)
    journal.begin(HostSetup.of(scenario("omega", [], cell=cell(machines))))
    for fact in facts:
        journal.write(fact)
    journal.flush()
    return JournalRun(JournalFile(stream.getvalue()))


def submitted(number: int, name: str, tasks: int = 1, at: int = 0) -> SubmittedRecord:
    return SubmittedRecord(at, number, job(name, tasks).job, "s-0")


def placed(at: int, name: str, *indices: int, machine: int = 0) -> PlacedRecord:
    return PlacedRecord(at, name, list(indices), [machine] * len(indices), "s-0")


def ended(at: int, *tasks: tuple[int, int]) -> EndedRecord:
    return EndedRecord(at, [task_number(*task) for task in tasks])


class TestNotableJobs:
    def test_the_task_that_ended_last_made_its_job_late(self) -> None:
        run = run_of(
            submitted(0, "a", 2),
            placed(0, "a", 0),
            placed(5 * SECOND, "a", 1),
            ended(6 * SECOND, (0, 1)),
            ended(10 * SECOND, (0, 0)),
        )
        (slow,) = notable_jobs(run)
        assert slow.reason == "a/0, the last to end, ran for 10 s."
        assert (slow.state, slow.took) == ("slow", 10 * SECOND)

    @pytest.mark.parametrize(("waited", "is_told"), [(10, False), (11, True)])
    def test_a_wait_is_told_if_it_is_more_than_a_tenth_of_the_time(
        self, waited: int, is_told: bool
    ) -> None:
        run = run_of(
            submitted(0, "a"),
            placed(waited * SECOND, "a", 0),
            ended((100 + waited) * SECOND, (0, 0)),
        )
        (slow,) = notable_jobs(run)
        wait = f"waited {waited} s for its turn; then " if is_told else ""
        assert slow.reason == f"a/0, the last to end, {wait}ran for 1.67 min."

    def test_of_equally_slow_jobs_the_first_come_first(self) -> None:
        names = "badc"
        run = run_of(
            *(submitted(number, name) for number, name in enumerate(names)),
            *(placed(0, name, 0) for name in names),
            ended(SECOND, (0, 0), (1, 0), (3, 0)),
            ended(2 * SECOND, (2, 0)),
        )
        assert [each.job for each in notable_jobs(run, slowest=4)] == ["d", "b", "a", "c"]

    def test_what_scaling_has_removed_leaves_no_job_unfinished(self) -> None:
        given_up = AbandonedRecord(1, "a", [1], "s-0", Explanation(remedy="wait"))
        run = run_of(submitted(0, "a", 2), given_up, placed(1, "a", 0), ended(9, (0, 0)))
        assert count_unfinished(run) == 1
        smaller = ScaledRecord(2, 0, job("a", 1).job)
        run = run_of(submitted(0, "a", 2), given_up, smaller, placed(2, "a", 0), ended(9, (0, 0)))
        assert count_unfinished(run) == 0

    def test_unfinished_jobs_that_are_not_named_are_counted(self) -> None:
        def last_lines(jobs: int) -> list[str]:
            facts = [submitted(number, f"j{number}") for number in range(jobs)]
            facts.append(submitted(jobs, "done"))
            run = run_of(*facts, placed(0, "done", 0), ended(9, (jobs, 0)))
            return [section[-1] for section in notable_sections(run, None)]

        assert last_lines(7)[1] == "2 more jobs: argosy why JOB says why"
        assert last_lines(6)[1] == "1 more job: argosy why JOB says why"
        assert last_lines(5)[1].startswith("j4")
        assert last_lines(0)[0].startswith("done")

    def test_a_job_that_was_cancelled_is_not_unfinished(self) -> None:
        assert count_unfinished(run_of(submitted(0, "a"), CancelledRecord(1, 0, [0]))) == 0


class TestOverTime:
    def test_an_empty_run_has_an_extent_all_the_same(self) -> None:
        assert shown_until(run_of(submitted(0, "a")).state) == 1

    @pytest.mark.parametrize(
        ("until", "shown"),
        [(41, 41), (42, 42), (100, 42)],
    )
    def test_what_still_runs_does_not_make_a_run_longer(self, until: int, shown: int) -> None:
        run = run_of(
            submitted(0, "a", 2),
            placed(10 * SECOND, "a", 0),
            placed(20 * SECOND, "a", 1),
            ended(40 * SECOND, (0, 0)),
        )
        assert shown_until(RunState.of(run.journal, until * SECOND)) == shown * SECOND

    @pytest.mark.parametrize(("submit", "place"), [(60, 61), (60, 60), (60, None)])
    def test_a_run_is_drawn_until_the_last_job_came_or_began(
        self, submit: int, place: int | None
    ) -> None:
        began = [] if place is None else [placed(place * SECOND, "a", 0)]
        run = run_of(submitted(0, "a", at=submit * SECOND), *began)
        state = RunState.of(run.journal, 100 * SECOND)
        assert shown_until(state) == (place or submit) * SECOND * 21 // 20

    def test_what_starts_at_a_time_is_used_from_then_and_at_the_end_too(self) -> None:
        # A task on one of two machines, from the beginning until halfway, then two until the end.
        run = run_of(
            submitted(0, "a", 3),
            placed(0, "a", 0),
            placed(POINTS // 2 * SECOND, "a", 1, 2),
            ended(POINTS // 2 * SECOND, (0, 0)),
            submitted(1, "z", at=POINTS * SECOND),
            machines=1,
        )
        curves = curves_of(run)
        share = 1 / 4
        assert curves.at[-1] == POINTS
        assert curves.used["cpu"].tolist() == [share] * (POINTS // 2) + [2 * share] * (
            POINTS // 2 + 1
        )

    @pytest.mark.parametrize(
        ("machines", "names"),
        [
            (3, ("m0", "m1", "m2")),
            (4, ("m0 + 1", "m2 + 1")),
            (5, ("m0 + 1", "m2 + 1", "m4 + 0")),
            (7, ("m0 + 2", "m3 + 2", "m6 + 0")),
        ],
    )
    def test_no_more_rows_of_machines_are_drawn_than_asked_for(
        self, machines: int, names: tuple[str, ...]
    ) -> None:
        run = run_of(submitted(0, "a"), placed(0, "a", 0), machines=machines)
        assert machine_heat(run, most=3, steps=2).names == names

    def test_the_fullest_resource_of_a_machine_is_shown(self) -> None:
        big = SubmittedRecord(0, 0, job("a", cpu=3_000).job, "s-0")
        run = run_of(
            big,
            placed(0, "a", 0, machine=1),
            ended(50 * SECOND, (0, 0)),
            submitted(1, "z", at=100 * SECOND),
            machines=2,
        )
        heat = machine_heat(run, steps=4)
        assert heat.rows.tolist() == [[0.0] * 4, [0.75, 0.75, 0.0, 0.0]]
        assert heat.ends.tolist() == [25.0, 50.0, 75.0, 100.0]

    def test_what_a_machine_holds_that_joined_later_is_left_out(self) -> None:
        joins = MachineRecord(0, AddMachine(Machine("late", Resources(4_000, 1))))
        run = run_of(submitted(0, "a"), joins, placed(0, "a", 0, machine=2), machines=2)
        heat = machine_heat(run, steps=2)
        assert heat.names == ("m0", "m1")
        assert heat.rows.tolist() == [[0.0, 0.0], [0.0, 0.0]]

    def test_lines_beyond_the_colours_are_dashed_and_begin_with_the_first_colour(self) -> None:
        names = [f"l{n}" for n in range(8)]
        values = {name: np.array([1.0, 2.0]) for name in names}
        chart = over_time.time_chart("t", "y", np.array([0.0, 1.0]), values, names)
        assert [line.colour for line in chart.lines] == [0, 1, 2, 3, 4, 5, 0, 1]
        assert [line.dashed for line in chart.lines] == [False] * 6 + [True] * 2

    @pytest.mark.parametrize(
        ("longest", "unit"),
        [
            (180, "seconds"),
            (180.1, "minutes"),
            (7_200, "minutes"),
            (7_201, "hours"),
        ],
    )
    def test_a_time_axis_has_the_unit_that_fits(self, longest: float, unit: str) -> None:
        scale = {"seconds": 1.0, "minutes": 60.0, "hours": 3_600.0}[unit]
        assert over_time.time_unit(longest) == (scale, unit)

    def test_what_took_no_time_is_drawn_where_the_axis_begins(self) -> None:
        values = {"a": np.array([0.0, 4.0]), "b": np.array([2.0]), "none": np.empty(0)}
        chart = over_time.distribution_chart("t", values, ["a", "b", "none"])
        assert [[(mark.x, mark.y) for mark in line.marks] for line in chart.lines] == [
            [(2.0, 0.0), (2.0, 0.5), (4.0, 1.0)],
            [(2.0, 0.0), (2.0, 1.0)],
        ]


def curves(*at: float, kinds: tuple[str, ...] = ("batch",)) -> RunCurves:
    times = np.array(at)
    return RunCurves(
        jct={kind: np.array([1.0]) for kind in kinds},
        wait={kind: np.array([1.0]) for kind in kinds},
        at=times,
        used={"cpu": np.ones(len(at))},
        waiting=np.ones(len(at)),
        running=np.ones(len(at)),
    )


class TestComparedRuns:
    def test_engines_share_the_time_axis_of_the_longest_run(self) -> None:
        drawn = compare_report._over_time({"a": curves(0, 4), "b": curves(0, 5, 10)})
        assert [chart.title for chart in drawn] == ["used share of cpu", "tasks that wait"]
        for chart in drawn:
            assert chart.x.high == 10
            assert [[mark.y for mark in line.marks] for line in chart.lines] == [
                [1.0, 0.0, 0.0],
                [1.0, 1.0, 1.0],
            ]

    def test_the_longest_run_is_the_one_that_ends_last(self) -> None:
        for runs in ((curves(0, 9, 10), curves(0, 1, 11)), (curves(0, 1, 11), curves(0, 9, 10))):
            for chart in compare_report._over_time(dict(zip("ab", runs, strict=True))):
                assert chart.x.high == 11

    def test_jobs_of_all_kinds_are_in_one_curve_and_no_job_is_in_none(self) -> None:
        both = {"a": np.array([1.0]), "b": np.array([2.0, 3.0])}
        assert compare_report._all(both).tolist() == [1.0, 2.0, 3.0]
        assert compare_report._all({}).tolist() == []

    def test_kinds_are_drawn_if_there_are_several(self) -> None:
        def titles(*kinds: str) -> list[str]:
            found = {"a": curves(0, 1, kinds=kinds), "b": curves(0, 1)}
            return [chart.title for chart in compare_report._distributions(found)]

        whole = ["job completion time", "until all tasks had a machine"]
        assert titles("batch") == whole
        both = [f"job completion time: {kind}" for kind in ("batch", "service")]
        assert titles("batch", "service") == whole + both


class TestFigures:
    @pytest.mark.parametrize(
        ("low", "high", "ticks"),
        [
            (1, 100, [1, 10, 100]),
            (1, 10, [1, 2, 5, 10]),
            (1, 1e5, [1, 10, 100, 1e3, 1e4, 1e5]),
            (1, 1e6, [1, 100, 1e4, 1e6]),
            (1, 1e13, [1, 1e3, 1e6, 1e9, 1e12]),
        ],
    )
    def test_a_logarithmic_axis_has_no_more_than_seven_ticks(
        self, low: float, high: float, ticks: list[float]
    ) -> None:
        axis = Axis(label="", logarithmic=True, low=low, high=high)
        assert Span(axis, [], 0, 1).ticks() == ticks

    def test_the_axis_contains_marks_and_their_error_bars(self) -> None:
        line = Line(label="l", marks=(Mark(1, 10, 5),))
        chart = Chart(title="t", x=Axis(label="x"), y=Axis(label="y"), lines=(line,))
        drawn = draw_chart(chart, "c")
        # From 9.75 to 15.25, with 204 units of height above 234.
        assert 'cy="224.7"' in drawn
        assert "V39.3" in drawn


class TestWords:
    @pytest.mark.parametrize(
        ("low", "high", "is_skewed"),
        [(1.75, 2.5, False), (1.75, 2.53125, True), (1.5, 2.25, False), (1.46875, 2.25, True)],
    )
    def test_an_interval_is_skewed_if_one_side_is_more_than_twice_the_other(
        self, low: float, high: float, is_skewed: bool
    ) -> None:
        assert _is_skewed(Ratio(2.0, 0.1, low, high)) is is_skewed

    def test_parts_that_add_up_to_nothing_are_told(self) -> None:
        runs = runs_of(a=[10e6], b=[11e6])
        parts = ({"waiting": 1e6, "placing": 1e6, "running": 8e6}, {"waiting": 3e6, "placing": 0.0})
        runs["a"] = [structs.replace(runs["a"][0], breakdown=parts[0])]
        runs["b"] = [structs.replace(runs["b"][0], breakdown=parts[1] | {"running": 7e6})]
        assert reasons(compare(runs, JCT)) == [
            "A finished job took 0 µs more on average with b than with a: +2 s waiting for an attempt,"
            " -1 s being placed, -1 s placed and not yet done."
        ]

    @pytest.mark.parametrize(("passed_over", "share"), [(1, None), (2, "2 %"), (100, "100 %")])
    def test_ignored_priorities_are_told_if_they_mattered(
        self, passed_over: int, share: str | None
    ) -> None:
        made = summary()
        counts = structs.replace(made.counts, jobs_preceding=100, jobs_passed_over=passed_over)
        gangs = IgnoredDemand(engine="omega", what="gangs", asked="1 job asks for one")
        ignored = [IgnoredDemand(engine="sparrow", what=PRIORITIES, asked="2 jobs"), gangs]
        told = (
            f"sparrow ignores priorities: {share} of the jobs of higher precedence were passed over"
        )
        notes = ignored_notes(ignored, structs.replace(made, counts=counts))
        assert notes == [
            *([] if share is None else [told]),
            "omega ignores gangs; 1 job asks for one",
        ]

    def test_nothing_in_a_cell_of_markdown_is_markup(self) -> None:
        table = Table((Column("a", "a|b"),), (("\\ | `x` *y* _z_ [l]\n<t>",),))
        assert markdown_table(table).splitlines() == [
            r"| a\|b |",
            "| --- |",
            r"| \\ \| \`x\` \*y\* \_z\_ \[l\] \<t\> |",
        ]


class EarlySettings(msgspec.Struct, frozen=True, kw_only=True):
    #: Said by the base.
    kept: int = 1
    #: Said by the base.
    told_anew: int = 2


class LateSettings(EarlySettings, frozen=True, kw_only=True):
    #: Said by the class itself,
    #: in two lines.
    told_anew: int = 3
    silent: Time = 90_000_000
    #: Of what follows.

    apart: bool = False


def test_the_comment_of_the_class_itself_describes_a_setting() -> None:
    engine: Any = type("Engine", (), {"settings_type": LateSettings})
    assert {each.name: (each.default_text, each.doc) for each in settings(engine)} == {
        "kept": ("1", "Said by the base."),
        "told_anew": ("3", "Said by the class itself, in two lines."),
        "silent": ('"90s"', ""),
        "apart": ("false", ""),
    }
