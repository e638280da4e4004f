"""Wide figures to the pixel, and small rules of tables, plots and sweeps."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pytest
from made_up import JCT, runs_of, summary
from msgspec import structs

from argosy.host.journal import Journal
from argosy.host.records import EndedRecord, MachineRecord, PlacedRecord, SubmittedRecord
from argosy.host.setup import HostSetup
from argosy.model.jobs import task_number
from argosy.model.machines import Machine
from argosy.model.resources import Resources
from argosy.model.transactions import AddMachine
from argosy.records.journal_file import JournalFile
from argosy.records.journal_run import JournalRun
from argosy.records.summary import Distribution, KindSummary
from argosy.report import wide_figures
from argosy.report.comparison import compare
from argosy.report.over_time import Heat
from argosy.report.plots import quantiles
from argosy.report.run_report import _cut, _kinds
from argosy.report.sweeps import SweepResult, SweepRow
from argosy.report.tables import Column, Unit
from argosy.report.wide_figures import draw_gantt, draw_machine_heat
from argosy.testing.builders import cell, job, scenario

SECOND = 1_000_000
BAR = re.compile(
    r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" fill="var\(--c(\d+)\)">'
    r"<title>(\w+)</title>"
)
HOT = re.compile(
    r'<rect class="heat" x="([\d.]+)" y="(\d+)" .*?fill-opacity="([\d.]+)"><title>(.*?)</title>'
)
TEXT = re.compile(r'text-anchor="(\w+)" class="tick">(.*?)</text>')


def run_of(*facts: Any, names: tuple[str, ...] = ("m0", "m1")) -> JournalRun:
    machines = tuple(Machine(name, Resources(4_000, 1)) for name in names)
    stream = io.BytesIO()
    journal = Journal(stream)
    spec = scenario("omega", [], cell=structs.replace(cell(1), machines=machines))
    journal.begin(HostSetup.of(spec))
    for fact in facts:
        journal.write(fact)
    journal.flush()
    return JournalRun(JournalFile(stream.getvalue()))


def submitted(number: int, name: str, tasks: int = 1, at: int = 0, **more: Any) -> SubmittedRecord:
    return SubmittedRecord(at * SECOND, number, job(name, tasks, **more).job, "s-0")


def placed(at: int, name: str, *indices: int, machine: int = 0) -> PlacedRecord:
    return PlacedRecord(at * SECOND, name, list(indices), [machine] * len(indices), "s-0")


def ended(at: int, *tasks: tuple[int, int]) -> EndedRecord:
    return EndedRecord(at * SECOND, [task_number(*task) for task in tasks])


def bars(drawn: str) -> list[tuple[str, ...]]:
    """x, y, width, height, colour and job of each bar."""
    return BAR.findall(drawn)


class TestGantt:
    def test_tasks_at_once_share_a_row_and_tasks_in_turn_share_a_lane(self) -> None:
        run = run_of(
            submitted(0, "a", 2),
            submitted(1, "b", kind="query"),
            placed(0, "a", 0, 1),
            ended(50, (0, 0), (0, 1)),
            placed(50, "b", 0),
            ended(100, (1, 0)),
            submitted(2, "z", at=100),
        )
        drawn = draw_gantt(run, ["batch", "query"])
        assert bars(drawn) == [
            ("110.0", "1.0", "388.7", "5.6", "0", "a"),
            ("110.0", "7.0", "388.7", "5.6", "0", "a"),
            ("499.0", "1.0", "388.7", "5.6", "1", "b"),
        ]
        # Only machines with tasks have a row.
        assert [text for _, text in TEXT.findall(drawn)][:2] == ["m0", "0"]

    def test_bars_are_in_the_order_of_time_whatever_the_order_of_tasks(self) -> None:
        run = run_of(
            submitted(0, "a", 2),
            placed(0, "a", 1),
            placed(10, "a", 0),
            ended(20, (0, 0)),
            ended(100, (0, 1)),
            submitted(1, "z", at=100),
        )
        assert [bar[:2] for bar in bars(draw_gantt(run, ["batch"]))] == [
            ("110.0", "1.0"),
            ("187.8", "7.0"),
        ]

    def test_a_machine_that_joined_later_has_no_row(self) -> None:
        run = run_of(
            submitted(0, "a", 2),
            MachineRecord(0, AddMachine(Machine("late", Resources(4_000, 1)))),
            placed(0, "a", 0, machine=2),
            placed(0, "a", 1, machine=1),
        )
        drawn = draw_gantt(run, ["batch"])
        assert len(bars(drawn)) == 1
        assert next(text for _, text in TEXT.findall(drawn)) == "m1"

    def test_no_more_machines_and_bars_are_drawn_than_can_be_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        facts = (submitted(0, "a", 3), placed(0, "a", 0, 1), placed(0, "a", 2, machine=1))
        assert len(bars(draw_gantt(run_of(*facts), ["batch"]))) == 3
        monkeypatch.setattr(wide_figures, "MOST_BARS", 1)
        assert len(bars(draw_gantt(run_of(*facts), ["batch"]))) == 1
        monkeypatch.setattr(wide_figures, "MOST_BARS", 3)
        monkeypatch.setattr(wide_figures, "MOST_MACHINES", 1)
        assert len(bars(draw_gantt(run_of(*facts), ["batch"]))) == 2

    def test_kinds_beyond_the_colours_begin_again(self) -> None:
        kinds = [f"k{n}" for n in range(7)]
        run = run_of(submitted(0, "a", kind="k6"), placed(0, "a", 0))
        assert [bar[4] for bar in bars(draw_gantt(run, kinds))] == ["0"]

    def test_long_names_are_cut_and_all_are_escaped(self) -> None:
        names = ("a" * 17, "b" * 18, "<c>")
        facts = [submitted(0, "a", 3), *(placed(0, "a", n, machine=n) for n in range(3))]
        drawn = draw_gantt(run_of(*facts, names=names), ["batch"])
        assert [text for _, text in TEXT.findall(drawn)][:3] == [
            "a" * 17,
            "b" * 16 + "…",
            "&lt;c&gt;",
        ]


class TestHeat:
    def test_cells_that_are_hardly_used_are_left_cold(self) -> None:
        rows = np.array([[0.005, 0.0051], [0.5, 1.25]])
        drawn = draw_machine_heat(Heat(("m0", "m1"), np.array([5.0, 10.0]), rows))
        assert HOT.findall(drawn) == [
            ("499.0", "1", "0.01", "m0: 1%"),
            ("110.0", "15", "0.50", "m1: 50%"),
            ("499.0", "15", "1.00", "m1: 125%"),
        ]
        assert drawn.count('class="cold"') == 2

    def test_the_first_and_last_tick_stay_inside(self) -> None:
        heat = Heat(("m0",), np.array([5.0, 10.0]), np.zeros((1, 2)))
        ticks = [each for each in TEXT.findall(draw_machine_heat(heat)) if each[1] != "m0"]
        assert ticks == [
            ("start", "0"),
            *(("middle", f"{n} seconds") for n in (2, 4, 6, 8)),
            ("end", "10 seconds"),
        ]


def test_the_page_of_a_run_says_which_machines_are_left_out() -> None:
    names = [f"m{n}" for n in range(41)]
    facts = submitted(0, "a")
    assert _cut(run_of(facts, names=tuple(names[:40]))) == ""
    told = _cut(run_of(facts, names=tuple(names)))
    assert told == '<p class="soft">The first 40 machines in use, of 41.</p>'


def test_kinds_of_jobs_have_a_table_if_there_are_several() -> None:
    def kind(jobs: int, jct: Distribution) -> KindSummary:
        none = Distribution()
        return KindSummary(
            jobs=jobs, jobs_finished=jct.count, jobs_abandoned=0, wait_time=none,
            placement_latency=none, jct=jct,
        )  # fmt: skip

    batch = kind(3, Distribution(count=2, p50=5.0, p99=9.0))
    one = structs.replace(summary(), kinds={"batch": batch})
    assert _kinds(one) is None
    two = structs.replace(one, kinds={"batch": batch, "service": kind(1, Distribution())})
    found = _kinds(two)
    assert found is not None
    assert found.rows == (("batch", 3, 2, 5.0, 9.0), ("service", 1, 0, None, None))


@pytest.mark.parametrize(("largest", "is_logarithmic"), [(20.0, False), (20.1, True)])
def test_an_axis_is_logarithmic_beyond_a_factor_of_twenty(
    largest: float, is_logarithmic: bool
) -> None:
    drawn = quantiles({"a": [1.0, 2.0, 3.0, largest]}, ["x"] * 4, "{:g}".format, 40)
    assert ("log scale" in "\n".join(drawn)) == is_logarithmic


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        (Unit.NUMBER, 999.4, "999"),
        (Unit.NUMBER, 1_000, "1,000"),
        (Unit.NUMBER, -1_000, "-1,000"),
        (Unit.NUMBER, 0.12345, "0.123"),
        (Unit.SHARE, 0.001234, "0.12 %"),
        (Unit.SHARE, 0.01234, "1.23 %"),
        (Unit.SHARE, 0.9994, "99.9 %"),
        (Unit.SHARE, 12.345, "1234 %"),
        (Unit.COUNT, 1234.5, "1,234"),
        (Unit.TEXT, "x", "x"),
        (Unit.TIME, None, ""),
    ],
)
def test_values_are_written_as_people_read_them(unit: Unit, value: Any, text: str) -> None:
    assert Column("", "", unit).text(value) == text


def test_the_best_changes_only_if_none_of_the_best_stays() -> None:
    def row(value: Any, **jcts: float) -> SweepRow:
        return SweepRow(value, compare(runs_of(**{name: [t] for name, t in jcts.items()}), JCT))

    rows = (
        row(1, a=1e6, b=1e6, c=9e6),
        row(2, a=5e6, b=1e6, c=2e6),
        row(4, a=5e6, b=3e6, c=1e6),
    )
    found = SweepResult(scenario="x", varied="y", metric="jct", rows=rows)
    (change,) = found.changes()
    assert (change.after, change.before, change.was, change.now) == (2, 4, ("b",), ("c",))
    # From a second ahead to two behind: a third of the way.
    assert change.crossing == pytest.approx(2 + 2 / 3)
    words = tuple(structs.replace(each, value=f"v{each.value}") for each in rows)
    (change,) = structs.replace(found, rows=words).changes()
    assert change.crossing is None
